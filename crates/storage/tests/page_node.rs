//! Page nodes over the log of another directory: they keep the promises of page stores with little
//! memory, through restarts and while the log does not answer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::page_store::conformance::{Subject, check};
use firn_api::{
    FollowOptions, Followed, LogError, LogFollower, LogStore, OpenedLog, PageFilter, PageRead,
    PageStore, PageStoreError, WriterEpoch,
};
use firn_base::random::{RandomSource, SplitMix};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::local::page_log::PageLog;
use firn_storage::local::{
    DatabaseId, LocalDirectory, LocalLog, LogOptions, OpenError, PageStoreOptions,
};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use parking_lot::Mutex;

const DATABASE: DatabaseId = DatabaseId(*b"database of test");
/// How long a read waits for log that comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a read waits for log that is cut off.
const MOMENT: Duration = Duration::from_millis(200);

/// A log that somebody writes.
struct WrittenLog {
    log: Arc<LocalLog>,
    appender: Appender,
}

impl WrittenLog {
    fn create(path: &Path) -> WrittenLog {
        let directory = LocalDirectory::open_for(&Environment::system(), path, DATABASE).unwrap();
        let options = LogOptions { segment_size_bytes: 4096 + 64 * 512, ..LogOptions::default() };
        let log = LocalLog::open(&directory, options).unwrap();
        let appender = Appender::open(log.as_ref(), WriterEpoch::Next).unwrap();
        WrittenLog { log, appender }
    }

    fn append(&self, group: &[u8]) -> Lsn {
        self.appender.commit(group).unwrap()
    }

    /// Creates and changes pages of space 1, each in a group of its own.
    fn append_pages(&self, numbers: std::ops::Range<u32>) -> Lsn {
        numbers.fold(Lsn::FIRST, |_, number| self.append(&creating(page(number))))
    }

    fn let_go(&self, lsn: Lsn) {
        self.log.wait_until_indexed(lsn).unwrap();
        self.log.release_before(lsn);
    }
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

fn creating(page: PageId) -> Vec<u8> {
    let mut group = GroupBuilder::new();
    Change::Format { kind: PageKind::SpaceHeader }.encode(page, &mut group);
    let bytes = [page.page_no.0 as u8; 900];
    Change::WriteBytes { at: 4096, bytes: &bytes }.encode(page, &mut group);
    group.finish().to_vec()
}

fn options(name: &str) -> PageNodeOptions {
    PageNodeOptions {
        log: ReceivedLogOptions {
            name: name.to_owned(),
            patience: PATIENCE,
            ..ReceivedLogOptions::default()
        },
        pages: PageStoreOptions {
            grow_bytes: 1 << 20,
            reserve_bytes: 0,
            ..PageStoreOptions::default()
        },
    }
}

fn open(
    path: &Path,
    store: Arc<dyn LogStore>,
    options: PageNodeOptions,
) -> Result<Arc<PageNode>, OpenError> {
    PageNode::open(&Environment::system(), path, DATABASE, store, options)
}

fn newest(node: &PageNode, number: u32, at_least: Lsn) -> Result<PageBuf, PageStoreError> {
    let mut into = PageBuf::boxed();
    node.read(page(number), PageRead::Latest { at_least }, &mut into).map(|_| *into)
}

fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

struct Promises {
    place: tempfile::TempDir,
    log: WrittenLog,
    options: PageNodeOptions,
    random: SplitMix,
    node: Arc<PageNode>,
}

impl Promises {
    fn new(seed: u64, memory_bytes: usize, history_window_ms: u64) -> Promises {
        let place = place();
        let log = WrittenLog::create(&place.path().join("log"));
        let mut options = options("promises");
        options.log.memory_bytes = memory_bytes;
        options.pages.history_window_ms = history_window_ms;
        let node = open(&place.path().join("pages"), Arc::clone(&log.log) as _, options.clone());
        Promises { place, log, options, random: SplitMix::new(seed), node: node.unwrap() }
    }
}

impl Subject for Promises {
    fn store(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.node) as _
    }

    fn append(&mut self, group: &[u8]) -> Lsn {
        self.log.append(group)
    }

    fn work(&mut self) {
        if self.random.next_u64().is_multiple_of(2) {
            self.node.materialise_up_to(self.log.log.durable_lsn()).unwrap();
        }
    }

    fn truncate_log(&mut self, position: Lsn) {
        self.log.let_go(position);
    }

    fn restart(&mut self) {
        self.node.close();
        let path = self.place.path().join("pages");
        self.node = open(&path, Arc::clone(&self.log.log) as _, self.options.clone()).unwrap();
    }
}

#[test]
fn a_page_node_keeps_its_promises() {
    for (seed, memory_bytes, window_ms) in
        [(0, 1 << 20, 0), (1, 1, 0), (2, 4096, 0), (3, 4096, 50), (4, 1 << 20, 50)]
    {
        check(&mut Promises::new(seed, memory_bytes, window_ms), seed, 500);
    }
}

#[test]
fn a_node_has_the_pages_of_its_filter_and_no_others() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let mut some = options("some");
    some.log.pages = PageFilter::Ranges(vec![page(10)..=page(19)]);
    let some = open(&place.path().join("some"), Arc::clone(&log.log) as _, some).unwrap();
    let all = open(&place.path().join("all"), Arc::clone(&log.log) as _, options("all")).unwrap();
    let end = log.append_pages(0..30);
    for number in 0..30 {
        let whole = newest(&all, number, end).unwrap();
        match newest(&some, number, end) {
            Ok(part) => {
                assert!((10..20).contains(&number), "{number}");
                assert_eq!(part.bytes(), whole.bytes());
            }
            Err(PageStoreError::WrongChunk { page: found, place }) => {
                assert!(!(10..20).contains(&number), "{number}");
                assert_eq!((found, place.as_str()), (page(number), "some"));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_log_is_kept_until_the_pages_are_durable() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let path = place.path().join("pages");
    let mut lazy = options("lazy");
    lazy.pages.idle_pages_per_second = 0;
    let node = open(&path, Arc::clone(&log.log) as _, lazy.clone()).unwrap();
    let middle = log.append_pages(0..100);
    assert_eq!(newest(&node, 99, middle).unwrap().lsn(), middle);
    log.let_go(middle);
    assert_eq!(log.log.truncated_lsn(), Lsn::FIRST, "nothing is stored yet");
    node.materialise_up_to(middle).unwrap();
    let end = log.append_pages(100..200);
    node.materialise_up_to(end).unwrap();
    // The lease follows what the page map names.
    while log.log.truncated_lsn() == Lsn::FIRST {
        log.let_go(middle);
        firn_base::task::sleep(Duration::from_millis(5));
    }
    node.close();
    let node = open(&path, Arc::clone(&log.log) as _, lazy.clone()).unwrap();
    for number in 0..200 {
        assert_eq!(newest(&node, number, end).unwrap().page_id(), page(number));
    }

    // Without the node's lease, log that it needs may go.
    drop(node);
    let end = log.append_pages(200..400);
    log.let_go(end);
    let refused = open(&path, Arc::clone(&log.log) as _, lazy).map(|_| ()).unwrap_err();
    assert!(matches!(refused, OpenError::Pages(PageStoreError::StoreDamaged { .. })), "{refused}");
}

/// Copies all pages of `from` as of `position` into a directory, or only the first few.
fn copy(from: &PageNode, path: &Path, position: Lsn, most: usize) -> Option<usize> {
    let environment = Environment::system();
    let mut copy = PageNode::begin_copy(&environment, path, DATABASE, position).unwrap();
    from.materialise_up_to(position).unwrap();
    let (mut after, mut image) = (None, PageBuf::boxed());
    loop {
        let pages = from.stored_pages(after, 64);
        let Some(last) = pages.last() else { break };
        after = Some(*last);
        for page in pages {
            if copy.pages() == most {
                return None;
            }
            match from.read(page, PageRead::AsOf(position), &mut image) {
                Ok(_) => copy.add(page, &image).unwrap(),
                Err(PageStoreError::Absent(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    let pages = copy.pages();
    copy.finish().unwrap();
    Some(pages)
}

#[test]
fn a_node_begins_with_the_pages_of_another_one() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let old = open(&place.path().join("old"), Arc::clone(&log.log) as _, options("old")).unwrap();
    log.append_pages(0..200);
    let position = log.append_pages(100..300);
    let held = old.hold("copy", position).unwrap();
    let kept = FollowOptions {
        name: "copy".to_owned(),
        from: position,
        until: None,
        pages: PageFilter::All,
        hold_limit_bytes: 1 << 30,
    };
    let kept = LogStore::follow(log.log.as_ref(), kept).unwrap();
    let end = log.append_pages(250..350);
    old.materialise_up_to(end).unwrap();
    // The lease of the old node follows what its page map names.
    while log.log.truncated_lsn() == Lsn::FIRST {
        log.let_go(end);
        firn_base::task::sleep(Duration::from_millis(5));
    }
    let path = place.path().join("new");
    assert_eq!(copy(&old, &path, position, 100), None, "the copy is interrupted");
    let refused = open(&path, Arc::clone(&log.log) as _, options("new")).map(|_| ()).unwrap_err();
    assert!(matches!(refused, OpenError::Pages(PageStoreError::StoreDamaged { .. })), "{refused}");
    assert_eq!(copy(&old, &path, position, usize::MAX), Some(300));
    drop(held);
    let new = open(&path, Arc::clone(&log.log) as _, options("new")).unwrap();
    drop(kept);
    assert!(log.log.truncated_lsn() > Lsn::FIRST, "no log makes the first pages");
    for number in 0..350 {
        // A page that was built of log has no checksum yet.
        let sealed = |node: &PageNode| {
            let mut page = newest(node, number, end).unwrap();
            page.seal();
            page
        };
        assert!(sealed(&old).bytes() == sealed(&new).bytes(), "page {number}");
    }
    let last = log.append_pages(0..10);
    new.close();
    drop(new);
    let again = open(&path, Arc::clone(&log.log) as _, options("new")).unwrap();
    assert_eq!(newest(&again, 9, last).unwrap().lsn(), last);
}

#[test]
fn a_directory_of_another_database_is_refused() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let other = DatabaseId(*b"another database");
    let path = place.path().join("pages");
    drop(LocalDirectory::open_for(&Environment::system(), &path, other).unwrap());
    let refused = open(&path, Arc::clone(&log.log) as _, options("pages")).map(|_| ()).unwrap_err();
    let OpenError::OtherDatabase { found, wanted, .. } = refused else { panic!("{refused}") };
    assert_eq!((found, wanted), (other, DATABASE));
}

/// Whether the log is cut off. A follower that asks for log holds it, so that a cut comes after the
/// answer.
type Cut = Arc<Mutex<bool>>;

/// A log store whose followers get nothing while it is cut off.
struct CutOff {
    store: Arc<LocalLog>,
    is_cut: Cut,
}

struct CutOffFollower {
    follower: Box<dyn LogFollower>,
    is_cut: Cut,
}

impl LogStore for CutOff {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.store.open(epoch)
    }

    fn durable_lsn(&self) -> Lsn {
        self.store.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.store.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.store.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        let follower = LogStore::follow(self.store.as_ref(), options)?;
        let is_cut = Arc::clone(&self.is_cut);
        Ok(Box::new(CutOffFollower { follower, is_cut }))
    }
}

impl LogFollower for CutOffFollower {
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError> {
        let is_cut = self.is_cut.lock();
        match *is_cut {
            true => Err(LogError::Unavailable { reason: "it is cut off".to_owned() }),
            false => self.follower.next(limit_bytes, timeout),
        }
    }

    fn position(&self) -> Lsn {
        self.follower.position()
    }

    fn skip_to(&mut self, lsn: Lsn) {
        self.follower.skip_to(lsn);
    }

    fn check(&self) -> Result<(), LogError> {
        self.follower.check()
    }

    fn release(&mut self, lsn: Lsn) {
        self.follower.release(lsn);
    }
}

#[test]
fn a_node_without_its_log_answers_what_it_has() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let is_cut = Cut::default();
    let store = CutOff { store: Arc::clone(&log.log), is_cut: Arc::clone(&is_cut) };
    let mut options = options("cut off");
    options.log.patience = MOMENT;
    let node = open(&place.path().join("pages"), Arc::new(store), options).unwrap();
    let before = log.append_pages(0..10);
    assert!(node.wait_until_ready(page(9), PageRead::Latest { at_least: before }, PATIENCE));
    assert_eq!(newest(&node, 9, before).unwrap().lsn(), before);
    *is_cut.lock() = true;
    let after = log.append_pages(10..20);
    assert_eq!(newest(&node, 9, before).unwrap().lsn(), before);
    let missing = newest(&node, 19, after).unwrap_err();
    assert!(missing.is_transient(), "{missing}");
    *is_cut.lock() = false;
    assert!(node.wait_until_ready(page(19), PageRead::Latest { at_least: after }, PATIENCE));
    assert_eq!(newest(&node, 19, after).unwrap().lsn(), after);
}

#[test]
fn a_node_says_whether_a_read_would_wait_for_log() {
    let place = place();
    let log = WrittenLog::create(&place.path().join("log"));
    let is_cut = Cut::default();
    let store = CutOff { store: Arc::clone(&log.log), is_cut: Arc::clone(&is_cut) };
    let mut options = options("ready");
    options.log.pages = PageFilter::Ranges(vec![page(0)..=page(99)]);
    let node = open(&place.path().join("pages"), Arc::new(store), options).unwrap();
    let before = log.append_pages(0..10);
    newest(&node, 9, before).unwrap();
    *is_cut.lock() = true;
    let after = log.append_pages(10..20);
    let is_ready = |number, version, timeout| {
        node.wait_until_ready(page(number), version, Duration::from_millis(timeout))
    };
    let latest = |at_least| PageRead::Latest { at_least };
    assert!(is_ready(9, latest(before), 0) && is_ready(0, PageRead::AsOf(before), 0));
    assert!(!is_ready(19, latest(after), 0) && !is_ready(0, PageRead::AsOf(after), 20));
    assert!(is_ready(100, latest(after), 0), "a page of another node is refused at once");
    *is_cut.lock() = false;
    assert!(is_ready(19, latest(after), 60_000), "the log is back");
    assert_eq!(newest(&node, 19, after).unwrap().lsn(), after);
}
