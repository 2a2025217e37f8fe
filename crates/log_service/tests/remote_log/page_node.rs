//! A page node that follows a log elsewhere, while members of the group and the node itself die: as
//! one chunk, and as several chunks that follow the log together.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogStore, PageFilter, PageRead, PageStore, PageStoreError};
use firn_base::{Environment, Lsn, PageId, task};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_log_service::RemoteLogOptions;
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions, SharedReader};
use firn_testing::simulation::{Process, SimulatedDisk, for_each_seed};

use crate::support::{Group, MS, client_options, page};

const DATABASE: DatabaseId = DatabaseId(*b"database of test");

/// Makes page `number % 50` one that has `number` in it.
fn creating(number: u32) -> Vec<u8> {
    let mut group = GroupBuilder::new();
    Change::Format { kind: PageKind::SpaceHeader }.encode(page(number), &mut group);
    let bytes = number.to_le_bytes();
    Change::WriteBytes { at: 4096, bytes: &bytes }.encode(page(number), &mut group);
    group.finish().to_vec()
}

/// The chunks of a node, if it has several: each has a part of the pages.
const CHUNKS: u32 = 3;
/// How many pages there are.
const PAGES: u32 = 50;

fn chunk_of(page: PageId) -> usize {
    (page.page_no.0 * CHUNKS / PAGES) as usize
}

fn name(chunk: u32) -> String {
    format!("pages-1/{chunk}")
}

fn chunk_pages(chunk: u32) -> PageFilter {
    let bound = |chunk: u32| (chunk * PAGES).div_ceil(CHUNKS);
    let (first, last) = (page(bound(chunk)), page(bound(chunk + 1) - 1));
    PageFilter::Ranges(vec![first..=last])
}

fn options(name: String, pages: PageFilter) -> PageNodeOptions {
    PageNodeOptions {
        log: ReceivedLogOptions {
            name,
            pages,
            memory_bytes: 20_000,
            patience: Duration::from_secs(10),
            ..ReceivedLogOptions::default()
        },
        pages: PageStoreOptions {
            grow_bytes: 1 << 20,
            reserve_bytes: 0,
            ..PageStoreOptions::default()
        },
    }
}

/// What a node has.
struct Chunks {
    chunks: Vec<Arc<PageNode>>,
    reader: Option<Arc<SharedReader>>,
}

impl Chunks {
    fn of(&self, page: PageId) -> &PageNode {
        let chunk = if self.chunks.len() == 1 { 0 } else { chunk_of(page) };
        &self.chunks[chunk]
    }

    fn close(&self) {
        self.chunks.iter().for_each(|chunk| chunk.close());
        self.reader.iter().for_each(|reader| reader.close());
    }
}

/// Starts the node's process over its disk.
fn start(group: &Group, disk: &SimulatedDisk, has_chunks: bool) -> (Process, Chunks) {
    let process = group.world.start("pages-1", disk);
    let own = group.clone();
    let open = move |environment: &Environment| {
        let names = match has_chunks {
            true => (0..CHUNKS).map(name).collect(),
            false => vec!["pages-1".to_owned()],
        };
        let stays = RemoteLogOptions { stays: names.clone(), ..client_options() };
        let log = own.client(environment, own.cluster.ids(), stays).expect("a majority answers");
        let log = log as Arc<dyn LogStore>;
        if !has_chunks {
            let options = options(names[0].clone(), PageFilter::All);
            let node = PageNode::open(environment, Path::new("/pages"), DATABASE, log, options)?;
            return Ok(Chunks { chunks: vec![node], reader: None });
        }
        let reader = SharedReader::start(environment, log, "pages-1");
        let open = |chunk| {
            let (path, options) = (name(chunk), options(name(chunk), chunk_pages(chunk)));
            let path = Path::new("/").join(path.replace('/', "-"));
            PageNode::open_sharing(environment, &path, DATABASE, &reader, options)
        };
        let chunks = (0..CHUNKS).map(open).collect::<Result<_, OpenError>>()?;
        Ok(Chunks { chunks, reader: Some(reader) })
    };
    let node: Result<_, OpenError> = process.run(open).expect("nobody kills it");
    (process, node.expect("the log that it needs is kept"))
}

fn newest(node: &PageNode, page: PageId, at_least: Lsn) -> Result<u32, PageStoreError> {
    let mut into = PageBuf::boxed();
    node.read(page, PageRead::Latest { at_least }, &mut into)?;
    Ok(u32::from_le_bytes(into.bytes()[4096..4100].try_into().expect("four bytes")))
}

#[test]
fn a_page_node_has_every_acknowledged_change_while_members_and_itself_die() {
    for_each_seed(0..10, |world| {
        let group = Group::of_three(world);
        let random = world.random();
        let disk = world.new_disk();
        let has_chunks = random.chance(0.5);
        let (mut process, mut node) = start(&group, &disk, has_chunks);
        let mut log = group.open();
        let (mut number, mut down) = (0, None);
        while number < 300 {
            let end = log.append(&creating(number));
            match log.writer.wait_durable(end) {
                Ok(()) => number += 1,
                Err(_) => log = group.open(),
            }
            if random.chance(0.05) {
                match down.take() {
                    Some(id) => group.start(id),
                    None => {
                        let id = 1 + random.below(3);
                        group.crash(id);
                        down = Some(id);
                    }
                }
            }
            if random.chance(0.01) {
                process.crash();
                drop(node);
                (process, node) = start(&group, &disk, has_chunks);
            }
            if random.chance(0.1) {
                let stores = group.cluster.ids().filter_map(|id| group.cluster.store(id));
                stores.for_each(|store| store.let_go(store.durable_lsn()));
                task::sleep(5 * MS);
            }
        }
        let end = log.durable();
        let checked = process.run(move |_| {
            for last in number - PAGES..number {
                let page = page(last);
                assert_eq!(newest(node.of(page), page, end).expect("it has the page"), last);
            }
            node.close();
        });
        checked.expect("nobody kills it");
    });
}
