//! The store as a whole, over a log and a disk in memory; tests run the materialiser's rounds by
//! hand.

mod conformance;
mod fake_disk;
mod fake_log;
mod model;
mod narrowing;
mod scenarios;
mod stress;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LocalImages, Offer, PageRead, PageStore, PageStoreError, Room};
use firn_base::clock::Clock;
use firn_base::random::SplitMix;
use firn_base::task::ThreadSpawner;
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_format::redo::RawRecord;

use super::materialiser::Materialiser;
use super::*;
use fake_disk::FakeDisk;
use fake_log::{CHAIN, CREATE, FakeLog, chain};

#[derive(Default)]
struct FakeClock(AtomicU64);

impl Clock for FakeClock {
    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn wall_time_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn page(space: u32, number: u32) -> PageId {
    PageId::new(SpaceId(space), PageNo(number))
}

fn small_options() -> PageStoreOptions {
    PageStoreOptions {
        queue_bytes: 6 * PAGE_SIZE,
        batch_pages: 4,
        grow_bytes: 8 * PAGE_SIZE as u64,
        reserve_bytes: 0,
        behind_limit_bytes: 1 << 30,
        idle_pages_per_second: 4,
        history_window_ms: 0,
        retry_delay_ms: 1000,
        kept: PageFilter::All,
    }
}

/// A store with the log that feeds it, and every version that its pages ever had.
struct Store {
    disk: Arc<FakeDisk>,
    log: Arc<FakeLog>,
    clock: Arc<FakeClock>,
    options: PageStoreOptions,
    pages: LocalPages,
    materialiser: Materialiser,
    versions: BTreeMap<PageId, Vec<PageBuf>>,
    dropped: BTreeMap<SpaceId, Lsn>,
}

fn home() -> Home<'static> {
    Home { path: Path::new("/db"), database: DatabaseId(*b"database of test") }
}

fn open(
    disk: &Arc<FakeDisk>,
    clock: &Arc<FakeClock>,
    log: &Arc<FakeLog>,
    options: &PageStoreOptions,
) -> Result<(LocalPages, Materialiser), PageStoreError> {
    open_with(disk, clock, log, options, fake_log::apply)
}

fn open_with(
    disk: &Arc<FakeDisk>,
    clock: &Arc<FakeClock>,
    log: &Arc<FakeLog>,
    options: &PageStoreOptions,
    apply: ApplyRecord,
) -> Result<(LocalPages, Materialiser), PageStoreError> {
    let environment = Environment {
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        disk: Arc::clone(disk) as Arc<dyn firn_base::disk::Disk>,
        random: Arc::new(SplitMix::new(0)),
        spawner: Arc::new(ThreadSpawner),
        ..Environment::system()
    };
    let log = Arc::clone(log) as Arc<dyn PageLog>;
    let options = options.clone();
    let (shared, materialiser) =
        open_parts(&environment, home(), options, Box::new(|_| Ok(log)), None, apply)?;
    Ok((LocalPages { shared, task: Mutex::new(None) }, materialiser))
}

impl Store {
    fn new(options: PageStoreOptions) -> Store {
        let (disk, clock, log) = (Arc::default(), Arc::default(), FakeLog::new());
        let (pages, materialiser) = open(&disk, &clock, &log, &options).unwrap();
        let (versions, dropped) = (BTreeMap::new(), BTreeMap::new());
        Store { disk, log, clock, options, pages, materialiser, versions, dropped }
    }

    /// Cuts the power and starts again.
    fn restart(&mut self, random: &SplitMix, told_as_one: usize) {
        self.disk = Arc::new(self.disk.after_power_loss(random));
        self.log = self.log.reopened(told_as_one);
        (self.pages, self.materialiser) =
            open(&self.disk, &self.clock, &self.log, &self.options).unwrap();
    }

    /// One log group that changes these pages, creating the new ones.
    fn change(&mut self, pages: &[PageId], value: u64) -> Lsn {
        let kinds = pages.iter().map(|page| (*page, self.kind_for(*page), value));
        let changes: Vec<_> = kinds.collect();
        let end = self.log.append(&changes);
        changes.iter().for_each(|(page, kind, value)| self.note(*page, *kind, *value, end));
        end
    }

    fn change_unindexed(&mut self, page: PageId, value: u64) -> Lsn {
        let kind = self.kind_for(page);
        let end = self.log.append_unindexed(page, kind, value);
        self.note(page, kind, value, end);
        end
    }

    fn kind_for(&self, page: PageId) -> u8 {
        if self.versions.contains_key(&page) { CHAIN } else { CREATE }
    }

    fn note(&mut self, page: PageId, kind: u8, value: u64, end: Lsn) {
        let versions = self.versions.entry(page).or_default();
        let mut next = versions.last().cloned().unwrap_or_else(PageBuf::zeroed);
        let body = value.to_le_bytes();
        fake_log::apply(&mut next, page, RawRecord { kind, page, body: &body }).unwrap();
        next.set_lsn(end);
        versions.push(next);
    }

    fn drop_space(&mut self, space: SpaceId) {
        let end = self.log.drop_space(space);
        self.dropped.insert(space, end);
    }

    fn newest(&self, page: PageId) -> &PageBuf {
        self.versions[&page].last().unwrap()
    }

    fn offer(&self, page: PageId) -> Offer {
        self.pages.offer(self.newest(page))
    }

    fn round(&mut self) -> Result<usize, PageStoreError> {
        self.clock.0.fetch_add(100, Ordering::Relaxed);
        self.materialiser.round()
    }

    /// Runs rounds until all reported log is applied and stored.
    fn settle(&mut self) {
        self.pages.shared.hurry_to.store(self.log.durable_lsn().0, Ordering::Relaxed);
        for _ in 0..1000 {
            self.round().unwrap();
            if self.pages.applied_lsn(page(1, 0)) == self.log.durable_lsn() {
                return;
            }
        }
        panic!("the store does not settle: {:?}", self.pages.status());
    }

    fn read(&self, page: PageId, version: PageRead) -> Result<PageBuf, PageStoreError> {
        let mut into = PageBuf::zeroed();
        let reply = self.pages.read(page, version, &mut into)?;
        assert!(reply.lsn == into.lsn() && reply.as_of >= version.position(), "{reply:?}");
        Ok(into)
    }

    fn read_latest(&self, page: PageId) -> Result<PageBuf, PageStoreError> {
        self.read(page, PageRead::Latest { at_least: self.log.durable_lsn() })
    }

    /// The result of a read as of `wanted`.
    fn expected(&self, page: PageId, wanted: Lsn) -> Option<&PageBuf> {
        let is_gone = self.dropped.get(&page.space).is_some_and(|end| *end <= wanted);
        let versions = self.versions.get(&page).filter(|_| !is_gone)?;
        versions.iter().rev().find(|version| version.lsn() <= wanted)
    }

    fn check_latest(&self, page: PageId) {
        let found = self.read_latest(page);
        assert_same(page, &found, self.expected(page, Lsn::MAX));
    }

    /// Reads of old versions are correct or refused; from the horizon on they are not refused.
    fn check_as_of(&self, page: PageId, wanted: Lsn) {
        let horizon = self.pages.status().horizon_lsn;
        match self.read(page, PageRead::AsOf(wanted)) {
            Err(PageStoreError::TooOld { .. }) => assert!(wanted < horizon, "{wanted} {horizon}"),
            // Nothing is kept of a space that was dropped before the horizon.
            Err(PageStoreError::Absent(_)) if wanted < horizon => {}
            found => assert_same(page, &found, self.expected(page, wanted)),
        }
    }

    fn check_all(&self) {
        self.versions.keys().for_each(|page| self.check_latest(*page));
        self.pages.verify_all(&mut |_| ()).unwrap();
    }
}

fn assert_same(page: PageId, found: &Result<PageBuf, PageStoreError>, expected: Option<&PageBuf>) {
    match (found, expected) {
        (Err(PageStoreError::Absent(_)), None) => {}
        (Ok(found), Some(expected)) => {
            assert_eq!((found.lsn(), chain(found)), (expected.lsn(), chain(expected)), "{page}");
            assert_eq!(found.page_id(), page);
        }
        _ => panic!("{page}: found {found:?}, expected {expected:?}"),
    }
}
