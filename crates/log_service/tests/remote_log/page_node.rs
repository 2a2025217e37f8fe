//! A page node that follows a log elsewhere, while members of the group and the node itself die.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogStore, PageRead, PageStore, PageStoreError};
use firn_base::{Environment, Lsn, PageId, task};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_log_service::RemoteLogOptions;
use firn_storage::local::{DatabaseId, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
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

fn options() -> PageNodeOptions {
    PageNodeOptions {
        log: ReceivedLogOptions {
            name: "pages-1".to_owned(),
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

/// Starts the node's process over its disk.
fn start(group: &Group, disk: &SimulatedDisk) -> (Process, Arc<PageNode>) {
    let process = group.world.start("pages-1", disk);
    let own = group.clone();
    let open = move |environment: &Environment| {
        let stays = RemoteLogOptions { stays: Some("pages-1".to_owned()), ..client_options() };
        let log = own.client(environment, own.cluster.ids(), stays).expect("a majority answers");
        let log = log as Arc<dyn LogStore>;
        PageNode::open(environment, Path::new("/pages"), DATABASE, log, options())
    };
    let node = process.run(open).expect("nobody kills it");
    (process, node.expect("the log that it needs is kept"))
}

fn newest(node: &PageNode, page: PageId, at_least: Lsn) -> Result<u32, PageStoreError> {
    let mut into = PageBuf::boxed();
    node.read(page, PageRead::Latest { at_least }, &mut into)?;
    Ok(u32::from_le_bytes(into.bytes()[4096..4100].try_into().expect("four bytes")))
}

#[test]
fn a_page_node_has_every_acknowledged_change_while_members_and_itself_die() {
    for_each_seed(0..6, |world| {
        let group = Group::of_three(world);
        let random = world.random();
        let disk = world.new_disk();
        let (mut process, mut node) = start(&group, &disk);
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
                (process, node) = start(&group, &disk);
            }
            if random.chance(0.1) {
                let stores = group.cluster.ids().filter_map(|id| group.cluster.store(id));
                stores.for_each(|store| store.let_go(store.durable_lsn()));
                task::sleep(5 * MS);
            }
        }
        let end = log.durable();
        let checked = process.run(move |_| {
            for last in number - 50..number {
                assert_eq!(newest(&node, page(last), end).expect("it has the page"), last);
            }
            node.close();
        });
        checked.expect("nobody kills it");
    });
}
