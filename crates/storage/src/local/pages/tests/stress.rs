//! Threads that change, offer and read a few pages while the materialiser works beside them, so
//! that slots are reused and log is released during reads.

#![allow(clippy::disallowed_types, reason = "tests use the machine as it is")]

use std::sync::atomic::AtomicBool;

use firn_base::clock::SystemClock;
use firn_base::random::RandomSource;
use firn_base::task;

use super::*;

const PAGES: u32 = 12;
const CHANGES: u64 = 3000;
const READERS: u64 = 3;

/// The expected versions of each page.
type Truth = Vec<Mutex<Vec<PageBuf>>>;

struct Stress {
    pages: LocalPages,
    log: Arc<FakeLog>,
    truth: Truth,
    is_over: AtomicBool,
}

impl Stress {
    /// Changes pages and offers some of them, like a buffer pool that evicts.
    fn write(&self, random: &SplitMix, disk: &FakeDisk) {
        for value in 0..CHANGES {
            let number = (random.next_u64() % u64::from(PAGES)) as u32;
            let id = page(1, number);
            let mut versions = self.truth[number as usize].lock();
            let kind = if versions.is_empty() { CREATE } else { CHAIN };
            let mut next = versions.last().cloned().unwrap_or_else(PageBuf::zeroed);
            let record = RawRecord { kind, page: id, body: &value.to_le_bytes() };
            fake_log::apply(&mut next, id, record).unwrap();
            next.set_lsn(self.log.append_unindexed(id, kind, value));
            versions.push(next.clone());
            drop(versions);
            match random.next_u64() % 8 {
                0..3 => self.log.tell(),
                3..6 => drop(self.pages.offer(&next)),
                6 => self.pages.wait_for_room(),
                _ if value % 50 == 0 => {
                    disk.faults.good_syncs.store(value as u32 % 4, Ordering::Relaxed);
                    disk.faults.failing_syncs.store(1, Ordering::Relaxed);
                }
                _ => task::yield_now(),
            }
        }
        self.log.tell();
        self.is_over.store(true, Ordering::Release);
    }

    fn read(&self, random: &SplitMix) {
        while !self.is_over.load(Ordering::Acquire) {
            let number = (random.next_u64() % u64::from(PAGES)) as usize;
            let Some(at_least) = self.truth[number].lock().last().map(PageBuf::lsn) else {
                continue;
            };
            self.read_latest(number, at_least);
            self.read_past(number, Lsn(at_least.0.saturating_sub(random.next_u64() % 64 * 8)));
        }
    }

    fn read_latest(&self, number: usize, at_least: Lsn) {
        let mut found = PageBuf::zeroed();
        let id = page(1, number as u32);
        self.pages.read(id, PageRead::Latest { at_least }, &mut found).unwrap();
        assert!(found.lsn() >= at_least, "{id} as of {} lacks {at_least}", found.lsn());
        let versions = self.truth[number].lock();
        let is_found = |version: &&PageBuf| version.lsn() == found.lsn();
        assert_eq!(chain(versions.iter().rev().find(is_found).unwrap()), chain(&found));
    }

    fn read_past(&self, number: usize, wanted: Lsn) {
        let horizon = self.pages.status().horizon_lsn;
        let mut found = PageBuf::zeroed();
        let id = page(1, number as u32);
        let result = self.pages.read(id, PageRead::AsOf(wanted), &mut found);
        let versions = self.truth[number].lock();
        let expected = versions.iter().rev().find(|version| version.lsn() <= wanted);
        match (result, expected) {
            (Ok(_), Some(expected)) => assert_eq!(chain(&found), chain(expected)),
            (Err(PageStoreError::Absent(_)), None) => {}
            // The horizon may have moved between the two calls.
            (Err(PageStoreError::TooOld { kept_from, .. }), _) => {
                assert!(wanted < kept_from.max(horizon));
            }
            (result, _) => panic!("{id} as of {wanted}: {result:?}"),
        }
    }
}

fn stress(history_window_ms: u64) {
    let (disk, log) = (Arc::<FakeDisk>::default(), FakeLog::new());
    let options = PageStoreOptions {
        history_window_ms,
        retry_delay_ms: 1,
        behind_limit_bytes: 0,
        ..small_options()
    };
    let environment = Environment {
        clock: Arc::new(SystemClock),
        disk: Arc::clone(&disk) as Arc<dyn firn_base::disk::Disk>,
        ..Environment::system()
    };
    let follow = Arc::clone(&log) as Arc<dyn PageLog>;
    let (shared, materialiser) =
        open_parts(&environment, home(), options, Box::new(|_| Ok(follow)), None, fake_log::apply)
            .unwrap();
    let pages = LocalPages { shared, task: Mutex::new(None) };
    let truth = (0..PAGES).map(|_| Mutex::default()).collect();
    let stress = Stress { pages, log, truth, is_over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        scope.spawn(|| materialiser.run());
        for seed in 0..READERS {
            let stress = &stress;
            scope.spawn(move || stress.read(&SplitMix::new(100 + seed)));
        }
        stress.write(&SplitMix::new(1), &disk);
        disk.faults.failing_syncs.store(0, Ordering::Relaxed);
        let is_settled = |_| stress.pages.materialise_up_to(stress.log.durable_lsn()).is_ok();
        assert!((0..1000).any(is_settled));
        stress.pages.close();
    });
    let status = stress.pages.status();
    assert!(status.images_offered > 0 && status.images_built > 0, "{status:?}");
    assert!(stress.pages.verify_all(&mut |_| ()).unwrap() >= u64::from(PAGES));
}

#[test]
fn readers_find_every_version_while_slots_and_log_are_used_again() {
    stress(0);
}

#[test]
fn readers_of_the_past_do_so_too() {
    stress(50);
}
