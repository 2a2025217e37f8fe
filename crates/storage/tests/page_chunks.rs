//! Several chunks on one node keep the promises of page stores together, also while chunks come and
//! go.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::page_store::conformance::{Subject, check};
use firn_api::{
    PageFilter, PageRead, PageRequest, PageSink, PageStore, PageStoreError, PageVersion,
    WriterEpoch,
};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Environment, Extents, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::local::page_log::PageLog;
use firn_storage::local::{DatabaseId, LocalDirectory, LocalLog, LogOptions, PageStoreOptions};
use firn_storage::page_node::{
    PageChunks, PageNode, PageNodeOptions, ReceivedLogOptions, SharedReader,
};
use parking_lot::Mutex;

const DATABASE: DatabaseId = DatabaseId(*b"database of test");
const EXTENTS: Extents = Extents { pages: 4 };
const PARTS: u32 = 3;

fn filter(part: u32) -> PageFilter {
    let width = u32::MAX / PARTS;
    let end = if part + 1 == PARTS { u32::MAX } else { (part + 1) * width };
    PageFilter::places(EXTENTS, part * width..end)
}

fn places(range: std::ops::Range<u32>) -> PageFilter {
    PageFilter::places(EXTENTS, range)
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

fn part_of(page: PageId) -> u32 {
    (0..PARTS).find(|part| filter(*part).takes(page)).unwrap()
}

/// A node with a store for each chunk, over one log that the chunks read together.
struct ChunkedNode {
    place: tempfile::TempDir,
    log: Arc<LocalLog>,
    appender: Appender,
    random: SplitMix,
    /// Of each chunk, for log.
    memory_bytes: usize,
    nodes: Vec<Arc<PageNode>>,
    reader: Option<Arc<SharedReader>>,
    chunks: Arc<PageChunks>,
}

impl ChunkedNode {
    fn new(seed: u64, memory_bytes: usize) -> ChunkedNode {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = place.path().join("log");
        let directory = LocalDirectory::open_for(&Environment::system(), &path, DATABASE).unwrap();
        let options = LogOptions { segment_size_bytes: 4096 + 64 * 512, ..LogOptions::default() };
        let log = LocalLog::open(&directory, options).unwrap();
        let appender = Appender::open(log.as_ref(), WriterEpoch::Next).unwrap();
        let (random, chunks) = (SplitMix::new(seed), Arc::new(PageChunks::new("node")));
        let nodes = Vec::new();
        let reader = None;
        let mut node =
            ChunkedNode { place, log, appender, random, memory_bytes, nodes, reader, chunks };
        node.open();
        node
    }

    fn open(&mut self) {
        self.chunks = Arc::new(PageChunks::new("node"));
        let environment = Environment::system();
        let reader = SharedReader::start(&environment, Arc::clone(&self.log) as _, "node");
        self.reader = Some(Arc::clone(&reader));
        let open = |part| open(self.place.path(), &reader, part, self.memory_bytes);
        self.nodes = (0..PARTS).map(open).collect();
        for (part, node) in self.nodes.iter().enumerate() {
            self.chunks.insert(part as u64, filter(part as u32), Arc::clone(node) as _);
        }
    }

    fn append(&self, number: u32) -> Lsn {
        let mut group = GroupBuilder::new();
        Change::Format { kind: PageKind::SpaceHeader }.encode(page(number), &mut group);
        self.appender.commit(group.finish()).unwrap()
    }
}

fn open(place: &Path, reader: &Arc<SharedReader>, part: u32, memory_bytes: usize) -> Arc<PageNode> {
    let name = format!("part-{part}");
    let path = place.join(&name);
    let options = PageNodeOptions {
        log: ReceivedLogOptions {
            name,
            pages: filter(part),
            memory_bytes,
            ..ReceivedLogOptions::default()
        },
        pages: PageStoreOptions {
            grow_bytes: 1 << 20,
            reserve_bytes: 0,
            ..PageStoreOptions::default()
        },
    };
    PageNode::open_sharing(&Environment::system(), &path, DATABASE, reader, options).unwrap()
}

impl Subject for ChunkedNode {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.chunks) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        self.appender.commit(group).unwrap()
    }

    fn work(&mut self) {
        let lucky = self.random.below(u64::from(PARTS) + 1) as usize;
        if let Some(node) = self.nodes.get(lucky) {
            node.materialise_up_to(firn_api::LogStore::durable_lsn(&*self.log)).unwrap();
        }
    }

    fn truncate_log(&mut self, position: Lsn) {
        self.log.wait_until_indexed(position).unwrap();
        self.log.release_before(position);
    }

    fn restart(&mut self) {
        self.nodes.iter().for_each(|node| node.close());
        self.nodes.clear();
        self.chunks = Arc::new(PageChunks::new("node"));
        self.open();
    }
}

#[test]
fn the_promises_of_page_stores_hold() {
    for (seed, memory_bytes) in [(0, 1 << 20), (1, 4096), (2, 1), (3, 1 << 20)] {
        check(&mut ChunkedNode::new(seed, memory_bytes), seed, 300);
    }
}

/// What became of each page of a batch.
#[derive(Default)]
struct Replies {
    pages: Vec<Box<PageBuf>>,
    replies: Vec<Option<Result<PageVersion, PageStoreError>>>,
}

impl PageSink for Replies {
    fn page_mut(&mut self, index: usize) -> &mut PageBuf {
        &mut self.pages[index]
    }

    fn complete(&mut self, index: usize, reply: Result<PageVersion, PageStoreError>) {
        assert!(self.replies[index].replace(reply).is_none(), "page {index} is complete twice");
    }
}

#[test]
fn pages_of_a_chunk_that_is_not_here_are_refused() {
    let node = ChunkedNode::new(1, 1 << 20);
    let end = (0..80).map(|number| node.append(number)).last().unwrap();
    node.chunks.remove(1);
    let version = PageRead::Latest { at_least: end };
    let requests: Vec<_> =
        (0..80).map(|number| PageRequest { page: page(number), version }).collect();
    let mut sink = Replies::default();
    sink.pages.resize_with(80, PageBuf::boxed);
    sink.replies.resize_with(80, || None);
    node.chunks.read_many(&requests, &mut sink);
    let mut refused = 0;
    for (number, reply) in (0..80).zip(sink.replies) {
        let (page, reply) = (page(number), reply.expect("each page is complete"));
        let mut into = PageBuf::boxed();
        let alone = node.chunks.read(page, version, &mut into);
        if part_of(page) == 1 {
            let is_wrong = |reply: &_| matches!(reply, Err(PageStoreError::WrongChunk { .. }));
            assert!(is_wrong(&reply) && is_wrong(&alone), "{reply:?} {alone:?}");
            assert_eq!(node.chunks.applied_lsn(page), Lsn(0));
            refused += 1;
        } else {
            assert_eq!(reply.unwrap(), alone.unwrap());
            assert_eq!(sink.pages[number as usize].page_id(), page);
        }
    }
    assert!((10..70).contains(&refused), "{refused}");
}

#[test]
fn a_lease_holds_versions_of_chunks_that_come_later() {
    let node = ChunkedNode::new(1, 1 << 20);
    node.chunks.remove(2);
    let held = (0..40).map(|number| node.append(number)).last().unwrap();
    let lease = node.chunks.hold("reader", held).unwrap();
    let late = Arc::clone(&node.nodes[2]);
    node.chunks.insert(2, filter(2), late);
    let end = (0..40).map(|number| node.append(number)).last().unwrap();
    node.nodes.iter().for_each(|node| node.materialise_up_to(end).unwrap());
    let read = |number| {
        let mut into = PageBuf::boxed();
        node.chunks.read(page(number), PageRead::AsOf(held), &mut into)
    };
    for number in 0..40 {
        assert!(read(number).unwrap().lsn <= held, "page {number}");
    }
    drop(lease);
    // Versions that nobody holds go with the next changes.
    let until = firn_base::task::monotonic() + Duration::from_secs(60);
    while firn_base::task::monotonic() < until {
        let end = (0..40).map(|number| node.append(number)).last().unwrap();
        node.nodes.iter().for_each(|node| node.materialise_up_to(end).unwrap());
        if (0..40).all(|number| read(number).is_err()) {
            return;
        }
        firn_base::task::sleep(Duration::from_millis(5));
    }
    panic!("versions are kept for nobody");
}

#[test]
fn a_node_without_chunks_holds_nothing() {
    let refused = PageChunks::new("node").hold("reader", Lsn(8)).map(|_| ()).unwrap_err();
    assert!(matches!(refused, PageStoreError::Unavailable { .. }), "{refused}");
}

/// What a chunk that is cut in two serves, while a writer and readers go on.
struct Cut {
    node: ChunkedNode,
    ends: AtomicBool,
    /// Where the newest change of each page ends.
    newest: Mutex<Vec<Lsn>>,
}

const CUT_PAGES: u32 = 120;

impl Cut {
    fn write(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            let number = self.node.random.below(u64::from(CUT_PAGES)) as u32;
            let end = self.node.append(number);
            self.newest.lock()[number as usize] = end;
        }
    }

    /// Reads at the node until it is told to stop; returns how many pages it has read.
    fn read(&self) -> u64 {
        let (mut into, mut count) = (PageBuf::boxed(), 0);
        while !self.ends.load(Ordering::Relaxed) {
            let number = self.node.random.below(u64::from(CUT_PAGES)) as u32;
            let at_least = self.newest.lock()[number as usize];
            let version = PageRead::Latest { at_least };
            let found = match count % 2 {
                0 => self.node.chunks.read(page(number), version, &mut into),
                _ => self.read_in_batch(number, version, &mut into),
            };
            let found = found.unwrap_or_else(|error| panic!("page {number}: {error}"));
            assert!(found.lsn >= at_least, "page {number} is old");
            assert_eq!(into.page_id(), page(number));
            count += 1;
        }
        count
    }

    fn read_in_batch(
        &self,
        number: u32,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError> {
        let request = |number| PageRequest { page: page(number), version };
        let requests = [request(number), request((number + CUT_PAGES / 2) % CUT_PAGES)];
        let version = |request: &PageRequest| match request.page == page(number) {
            true => request.version,
            false => PageRead::Latest { at_least: Lsn(0) },
        };
        let requests = requests.map(|one| PageRequest { version: version(&one), ..one });
        let mut sink = Replies::default();
        sink.pages.resize_with(2, PageBuf::boxed);
        sink.replies.resize_with(2, || None);
        self.node.chunks.read_many(&requests, &mut sink);
        into.bytes_mut().copy_from_slice(sink.pages[0].bytes());
        let other = sink.replies[1].take().expect("each page is complete");
        other?;
        sink.replies[0].take().expect("each page is complete")
    }

    /// Copies the part of a chunk that `upper` takes, and leaves `lower` to the chunk.
    fn cut(
        &self,
        number: u64,
        whole: &Arc<PageNode>,
        lower: &PageFilter,
        upper: PageFilter,
    ) -> Arc<PageNode> {
        let position = firn_api::LogStore::durable_lsn(&*self.node.log);
        let held = whole.hold("cut", position).unwrap();
        let path = self.node.place.path().join(format!("cut-{number}"));
        let environment = Environment::system();
        let mut copy = PageNode::begin_copy(&environment, &path, DATABASE, position).unwrap();
        whole.materialise_up_to(position).unwrap();
        let mut into = PageBuf::boxed();
        for page in whole.stored_pages(None, 1000).into_iter().filter(|page| upper.takes(*page)) {
            match whole.read(page, PageRead::AsOf(position), &mut into) {
                Ok(_) => copy.add(page, &into).unwrap(),
                Err(PageStoreError::Absent(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        copy.finish().unwrap();
        let name = format!("cut-{number}");
        let log = ReceivedLogOptions {
            name,
            pages: upper.clone(),
            only_needed: true,
            ..ReceivedLogOptions::default()
        };
        let options = PageNodeOptions { log, pages: PageStoreOptions::default() };
        let reader = self.node.reader.as_ref().unwrap();
        let node = PageNode::open_sharing(&environment, &path, DATABASE, reader, options).unwrap();
        drop(held);
        self.node.chunks.insert(number, upper, Arc::clone(&node) as _);
        self.node.chunks.narrow(number - 1, lower);
        whole.narrow(lower);
        node
    }
}

#[test]
fn a_chunk_is_cut_in_two_while_it_is_read_and_written() {
    let node = ChunkedNode::new(7, 1 << 20);
    let quarter = u32::MAX / PARTS;
    let newest = (0..CUT_PAGES).map(|number| node.append(number)).collect();
    let cut = Cut { node, ends: AtomicBool::new(false), newest: Mutex::new(newest) };
    let last = PARTS - 1;
    let whole = Arc::clone(&cut.node.nodes[last as usize]);
    // Some reads take any version, and the node may not have heard of the page yet.
    let created = firn_api::LogStore::durable_lsn(&*cut.node.log);
    cut.node.nodes.iter().for_each(|node| node.materialise_up_to(created).unwrap());
    let first = quarter * last;
    let (nodes, filters) = std::thread::scope(|scope| {
        scope.spawn(|| cut.write());
        let readers: Vec<_> = (0..2).map(|_| scope.spawn(|| cut.read())).collect();
        let (mut nodes, mut filters) = (vec![whole], Vec::new());
        let mut begins = first;
        // Each cut leaves half of the places to the chunk.
        for number in 0..3 {
            firn_base::task::sleep(Duration::from_millis(100));
            let middle = begins + (u32::MAX - begins) / 2;
            let (lower, upper) = (places(begins..middle), places(middle..u32::MAX));
            let before = Arc::clone(&nodes[number as usize]);
            nodes.push(cut.cut(u64::from(last + number) + 1, &before, &lower, upper));
            filters.push(lower);
            begins = middle;
        }
        filters.push(places(begins..u32::MAX));
        firn_base::task::sleep(Duration::from_millis(100));
        cut.ends.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().map(|reader| reader.join().unwrap()).all(|count| count > 0));
        (nodes, filters)
    });
    let end = firn_api::LogStore::durable_lsn(&*cut.node.log);
    let mut found = 0;
    for (node, filter) in nodes.iter().zip(&filters) {
        node.materialise_up_to(end).unwrap();
        while node.is_narrowing() {
            firn_base::task::sleep(Duration::from_millis(5));
        }
        let pages = node.stored_pages(None, 1000);
        assert!(pages.iter().all(|page| filter.takes(*page)), "{filter:?}: {pages:?}");
        found += pages.len();
    }
    let expected = (0..CUT_PAGES).filter(|number| part_of(page(*number)) == last).count();
    assert_eq!(found, expected, "each page is in one of them");
    nodes.iter().for_each(|node| node.close());
}
