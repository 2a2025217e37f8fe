//! Chunks of one node read the log together when they are near its end, and each for itself when
//! they are behind, alone, or have no room.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::{
    FollowOptions, Followed, LogError, LogFollower, LogStore, OpenedLog, PageFilter, PageRead,
    PageStore, WriterEpoch,
};
use firn_base::event::Event;
use firn_base::{Environment, Extents, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::local::page_log::PageLog;
use firn_storage::local::{DatabaseId, LocalDirectory, LocalLog, LogOptions, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions, SharedReader};
use parking_lot::Mutex;

const DATABASE: DatabaseId = DatabaseId(*b"database of test");
const EXTENTS: Extents = Extents { pages: 2 };
const PARTS: u32 = 4;
/// How long a condition is waited for.
const DEADLINE: Duration = Duration::from_secs(60);
/// The name of the reader of all chunks.
const READER: &str = "node";

fn filter(part: u32) -> PageFilter {
    let width = u32::MAX / PARTS;
    let end = if part + 1 == PARTS { u32::MAX } else { (part + 1) * width };
    PageFilter::places(EXTENTS, part * width..end)
}

fn page(number: u32) -> PageId {
    PageId::new(SpaceId(1), PageNo(number))
}

fn part_of(number: u32) -> u32 {
    (0..PARTS).find(|part| filter(*part).takes(page(number))).unwrap()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let pause = || Event::new().wait_until(Some(Duration::from_millis(5)), || false);
    let tries = DEADLINE.as_millis() / 5;
    assert!((0..tries).any(|_| condition() || pause()), "{what}");
}

/// A log that counts what its readers get, and fails for the reader of all chunks when told to.
struct Counted {
    log: Arc<LocalLog>,
    /// Bytes that each reader got.
    bytes: Arc<Mutex<BTreeMap<String, u64>>>,
    fails: Arc<AtomicBool>,
}

struct CountedFollower {
    follower: Box<dyn LogFollower>,
    name: String,
    bytes: Arc<Mutex<BTreeMap<String, u64>>>,
    fails: Arc<AtomicBool>,
}

impl LogStore for Counted {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.log.open(epoch)
    }

    fn durable_lsn(&self) -> Lsn {
        self.log.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.log.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.log.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        let name = options.name.clone();
        let follower = LogStore::follow(self.log.as_ref(), options)?;
        let (bytes, fails) = (Arc::clone(&self.bytes), Arc::clone(&self.fails));
        Ok(Box::new(CountedFollower { follower, name, bytes, fails }))
    }
}

impl LogFollower for CountedFollower {
    fn next(&mut self, limit_bytes: usize, timeout: Duration) -> Result<Followed, LogError> {
        if self.name == READER && self.fails.load(Ordering::SeqCst) {
            return Err(LogError::Unavailable { reason: "it is cut off".to_owned() });
        }
        let followed = self.follower.next(limit_bytes, timeout)?;
        if let Followed::Piece(piece) = &followed {
            *self.bytes.lock().entry(self.name.clone()).or_default() += piece.bytes().len() as u64;
        }
        Ok(followed)
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

/// A node and its log.
struct World {
    place: tempfile::TempDir,
    log: Arc<LocalLog>,
    appender: Appender,
    bytes: Arc<Mutex<BTreeMap<String, u64>>>,
    fails: Arc<AtomicBool>,
    reader: Arc<SharedReader>,
    chunks: BTreeMap<u32, Arc<PageNode>>,
}

impl World {
    fn new() -> World {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let path = place.path().join("log");
        let environment = Environment::system();
        let directory = LocalDirectory::open_for(&environment, &path, DATABASE).unwrap();
        let options = LogOptions { segment_size_bytes: 4096 + 64 * 512, ..LogOptions::default() };
        let log = LocalLog::open(&directory, options).unwrap();
        let appender = Appender::open(log.as_ref(), WriterEpoch::Next).unwrap();
        let (bytes, fails) = (Arc::default(), Arc::default());
        let counted =
            Counted { log: Arc::clone(&log), bytes: Arc::clone(&bytes), fails: Arc::clone(&fails) };
        let reader = SharedReader::start(&environment, Arc::new(counted), READER);
        World { place, log, appender, bytes, fails, reader, chunks: BTreeMap::new() }
    }

    fn open(&mut self, part: u32, change: impl FnOnce(&mut PageNodeOptions)) {
        let name = format!("{READER}/{part}");
        let path = self.place.path().join(format!("chunk-{part}"));
        let mut options = PageNodeOptions {
            log: ReceivedLogOptions { name, pages: filter(part), ..ReceivedLogOptions::default() },
            pages: PageStoreOptions {
                grow_bytes: 1 << 20,
                reserve_bytes: 0,
                ..PageStoreOptions::default()
            },
        };
        change(&mut options);
        let path: &Path = &path;
        let environment = Environment::system();
        let node = PageNode::open_sharing(&environment, path, DATABASE, &self.reader, options);
        self.chunks.insert(part, node.unwrap());
    }

    /// Waits until `count` chunks get their log by one stream.
    fn wait_until_joined(&self, count: usize) {
        wait_until("the chunks have joined", || self.reader.status().chunks == count);
        // What the stream before has brought meanwhile comes once more.
        let end = self.append(0..1);
        wait_until("the log is given out", || self.reader.status().position >= end);
    }

    /// Makes pages, each in a group of its own; returns the end of the log.
    fn append(&self, numbers: std::ops::Range<u32>) -> Lsn {
        let create = |number| {
            let mut group = GroupBuilder::new();
            Change::Format { kind: PageKind::SpaceHeader }.encode(page(number), &mut group);
            let bytes = [number as u8; 500];
            Change::WriteBytes { at: 4096, bytes: &bytes }.encode(page(number), &mut group);
            self.appender.commit(group.finish()).unwrap()
        };
        numbers.fold(Lsn::FIRST, |_, number| create(number))
    }

    /// The chunks that are open have the pages, as of `end`.
    fn check(&self, numbers: std::ops::Range<u32>, end: Lsn) {
        for number in numbers {
            let Some(chunk) = self.chunks.get(&part_of(number)) else { continue };
            let mut image = PageBuf::boxed();
            let version = PageRead::Latest { at_least: end };
            chunk.read(page(number), version, &mut image).unwrap();
            assert_eq!(image.bytes()[4096], number as u8, "page {number}");
        }
    }

    /// Bytes that chunks got by themselves, and that all got together.
    fn received(&self) -> (u64, u64) {
        let bytes = self.bytes.lock();
        let (shared, own): (Vec<_>, Vec<_>) = bytes.iter().partition(|(name, _)| **name == READER);
        let sum = |all: Vec<(&String, &u64)>| all.into_iter().map(|(_, bytes)| *bytes).sum();
        (sum(own), sum(shared))
    }

    fn let_go(&self, lsn: Lsn) {
        self.log.wait_until_indexed(lsn).unwrap();
        self.log.release_before(lsn);
    }
}

#[test]
fn chunks_near_the_end_get_the_log_once() {
    let mut world = World::new();
    let begin = world.append(0..200);
    (0..PARTS).for_each(|part| world.open(part, |_| {}));
    world.check(0..200, begin);
    world.append(0..10);
    world.wait_until_joined(PARTS as usize);
    let (own, shared) = world.received();
    let before = world.log.durable_lsn();
    let end = world.append(200..600);
    world.check(0..600, end);
    let log_bytes = end.since(before);
    assert_eq!(world.received(), (own, shared + log_bytes), "of all pages, once");

    // A chunk that goes takes its records with it.
    world.chunks.remove(&1).unwrap().close();
    world.wait_until_joined(PARTS as usize - 1);
    let (own, shared) = world.received();
    let before = world.log.durable_lsn();
    let end = world.append(610..1010);
    world.check(610..1010, end);
    let (own_after, shared_after) = world.received();
    assert_eq!(own_after, own);
    let left_out = (610..1010).filter(|number| part_of(*number) == 1).count() as u64;
    let of_one = end.since(before) / 400;
    assert!(left_out > 50);
    assert!(shared_after - shared <= (400 - left_out) * of_one, "less than the whole log");
}

#[test]
fn a_chunk_that_comes_later_has_all_its_log() {
    let mut world = World::new();
    let lazy = |options: &mut PageNodeOptions| options.pages.idle_pages_per_second = 0;
    (1..PARTS).for_each(|part| world.open(part, lazy));
    world.append(0..10);
    world.wait_until_joined(PARTS as usize - 1);
    for round in 0..20 {
        let first = round * 100;
        world.append(first..first + 50);
        world.open(0, lazy);
        let end = world.append(first + 50..first + 100);
        world.check(first..first + 100, end);
        if round % 2 == 0 {
            world.wait_until_joined(PARTS as usize);
        }
        world.chunks.remove(&0).unwrap().close();
    }
    assert_eq!(world.log.truncated_lsn(), Lsn::FIRST, "all chunks need all log");
}

#[test]
fn the_log_is_held_for_the_chunk_that_needs_most_and_for_no_other() {
    let mut world = World::new();
    let lazy = |options: &mut PageNodeOptions| {
        options.pages.idle_pages_per_second = 0;
        options.log.hold_limit_bytes = 100_000;
    };
    (0..PARTS - 1).for_each(|part| world.open(part, |_| {}));
    world.open(PARTS - 1, lazy);
    world.append(0..10);
    world.wait_until_joined(PARTS as usize);
    let middle = world.append(10..60);
    (0..PARTS - 1).for_each(|part| world.chunks[&part].materialise_up_to(middle).unwrap());
    world.let_go(middle);
    assert_eq!(world.log.truncated_lsn(), Lsn::FIRST, "the last chunk has stored nothing");
    let end = world.append(60..400);
    (0..PARTS - 1).for_each(|part| world.chunks[&part].materialise_up_to(end).unwrap());
    let last = &world.chunks[&(PARTS - 1)];
    let mut position = end;
    wait_until("the chunk that holds back too much is dropped", || {
        position = world.append(0..1);
        world.let_go(position);
        last.status().log.failure.is_some()
    });
    let failure = last.status().log.failure;
    assert!(matches!(failure, Some(LogError::ReaderDropped { .. })), "{failure:?}");
    wait_until("the log goes", || {
        let position = world.append(0..1);
        (0..PARTS - 1).for_each(|part| world.chunks[&part].materialise_up_to(position).unwrap());
        world.let_go(position);
        world.log.truncated_lsn() > middle
    });
    world.chunks.remove(&(PARTS - 1));
    let end = world.append(400..500);
    world.check(0..500, end);
}

#[test]
fn chunks_without_room_or_without_the_reader_follow_by_themselves() {
    let mut world = World::new();
    let small = |options: &mut PageNodeOptions| options.log.memory_bytes = 4096;
    (0..PARTS).for_each(|part| world.open(part, small));
    for round in 0..10 {
        let end = world.append(round * 50..round * 50 + 50);
        world.check(0..round * 50 + 50, end);
        world.chunks[&(round % PARTS)].materialise_up_to(end).unwrap();
    }
    wait_until("the chunks join again", || {
        let end = world.append(0..1);
        world.chunks.values().for_each(|chunk| chunk.materialise_up_to(end).unwrap());
        world.reader.status().chunks == PARTS as usize
    });
    world.fails.store(true, Ordering::SeqCst);
    wait_until("the reader has failed", || world.reader.status().chunks == 0);
    let end = world.append(500..600);
    world.check(0..600, end);
    world.fails.store(false, Ordering::SeqCst);
    wait_until("the chunks join again", || {
        let end = world.append(0..1);
        world.chunks.values().for_each(|chunk| chunk.materialise_up_to(end).unwrap());
        world.reader.status().chunks == PARTS as usize
    });
    let end = world.append(600..700);
    world.check(0..700, end);
    world.reader.close();
    let end = world.append(700..800);
    world.check(0..800, end);
}

#[test]
fn a_chunk_that_was_alone_reads_with_those_that_it_was_cut_into() {
    let mut world = World::new();
    let options = PageNodeOptions {
        log: ReceivedLogOptions { name: READER.to_owned() + "/0", ..Default::default() },
        pages: PageStoreOptions {
            grow_bytes: 1 << 20,
            reserve_bytes: 0,
            ..PageStoreOptions::default()
        },
    };
    let path = world.place.path().join("chunk-0");
    let store = Arc::clone(world.reader.store());
    let alone = PageNode::open(&Environment::system(), &path, DATABASE, store, options).unwrap();
    let end = world.append(0..200);
    alone.materialise_up_to(end).unwrap();
    world.chunks.insert(0, Arc::clone(&alone));
    (1..PARTS).for_each(|part| world.open(part, |_| {}));
    world.append(0..10);
    world.wait_until_joined(PARTS as usize - 1);
    alone.narrow(&filter(0));
    alone.share_log(&world.reader);
    world.append(0..10);
    world.wait_until_joined(PARTS as usize);
    let (own, _) = world.received();
    let end = world.append(200..400);
    world.check(200..400, end);
    assert_eq!(world.received().0, own, "nobody reads by itself any more");
}
