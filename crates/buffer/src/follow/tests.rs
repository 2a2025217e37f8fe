#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::PageStoreError;
use firn_api::page_store::conformance;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::StopAtEnd;
use firn_base::{Lsn, PageId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::{Change, Group, GroupBuilder};

use super::ApplyFailure;
use crate::test_support::logged::{
    LoggedPages, Promises, RandomChanges, number, other_page, set_number,
};
use crate::test_support::page;
use crate::{BufferPool, Miss};

const PAGES: u32 = 120;
const HEADER: Change<'_> = Change::Format { kind: PageKind::SpaceHeader };

#[test]
fn the_store_of_these_tests_keeps_the_promises_of_page_stores() {
    (0..4).for_each(|seed| conformance::check(&mut Promises(LoggedPages::new()), seed, 600));
}

/// The page as `pool` shows it.
fn shown(pool: &BufferPool, page: PageId) -> Option<Box<PageBuf>> {
    loop {
        let _pin = match pool.load(page) {
            Ok(pin) => pin,
            Err(PageStoreError::Absent(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        if let Ok(guard) = pool.shared(page) {
            return Some(Box::new((*guard).clone()));
        }
    }
}

fn assert_as_of(log: &LoggedPages, pool: &BufferPool, page: PageId, position: Lsn) {
    let (shown, expected) = (shown(pool, page), log.as_of(page, position));
    let same = match (&shown, &expected) {
        (Some(shown), Some(expected)) => shown.bytes() == expected.bytes(),
        (shown, expected) => shown.is_none() && expected.is_none(),
    };
    assert!(same, "{page} at {position}: {shown:?} instead of {expected:?}");
}

#[test]
fn every_page_is_as_the_writer_had_it_at_the_position() {
    for seed in 0..8 {
        let (log, changes) = (LoggedPages::new(), RandomChanges::new(seed, PAGES));
        let writer = log.writer(40);
        let (pool, mut applier) = log.follower(34, Lsn::FIRST);
        for _ in 0..600 {
            for _ in 0..changes.below(4) {
                changes.commit(&log, &writer);
            }
            for _ in 0..changes.below(4) {
                log.feed(&mut applier);
            }
            for _ in 0..3 {
                assert_as_of(&log, &pool, changes.page(), applier.applied_lsn());
            }
        }
        while log.feed(&mut applier) {}
        assert_eq!(pool.applied_lsn(), Some(log.end()));
        (0..PAGES).for_each(|number| assert_as_of(&log, &pool, page(number), log.end()));
        let statistics = pool.statistics();
        assert!(statistics.pages_applied > 100, "{statistics:?}");
        assert!(statistics.evictions_clean > 500, "{statistics:?}");
    }
}

/// Every group sets all four pages to the next number.
fn change_all(log: &LoggedPages, writer: &BufferPool, number: u64) {
    let bytes = number.to_le_bytes();
    let pages = (0..4).map(page);
    let changes: Vec<_> = pages.rev().map(|page| (page, set_number(&bytes))).collect();
    log.change(writer, &changes);
}

fn format_pages(log: &LoggedPages, writer: &BufferPool, count: u32) {
    (0..count).for_each(|number| _ = log.change(writer, &[(page(number), HEADER)]));
}

/// Reads two pages latched together.
fn read_pair(pool: &BufferPool, first: PageId, second: PageId) -> (u64, u64) {
    let mut _pin = None;
    loop {
        let read = || {
            let first = pool.shared(first)?;
            let second = pool.shared(second)?;
            Ok((number(&first), number(&second)))
        };
        match read() {
            Ok(numbers) => return numbers,
            Err(Miss(page)) => _pin = Some(pool.load(page).unwrap()),
        }
    }
}

#[test]
fn a_group_is_seen_on_all_its_pages_or_on_none() {
    const GROUPS: u64 = 4000;
    let log = LoggedPages::new();
    let writer = log.writer(40);
    format_pages(&log, &writer, 60);
    let start = log.end();
    (1..=GROUPS).for_each(|number| change_all(&log, &writer, number));
    let (pool, mut applier) = log.follower(32, start);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (pool, done) = (&pool, &done);
            scope.spawn(move || {
                let random = SplitMix::new(seed);
                let mut newest = 0;
                while !done.load(Ordering::SeqCst) {
                    let word = random.next_u64() as u32;
                    let first = word % 3;
                    let second = first + 1 + (word >> 8) % (3 - first);
                    let (one, other) = read_pair(pool, page(first), page(second));
                    assert_eq!(one, other, "pages {first} and {second}");
                    assert!(one >= newest, "from {newest} back to {one}");
                    newest = one;
                    // Evicts the four pages now and then.
                    for step in 0..(word >> 16) % 12 {
                        drop(pool.load(page(4 + (word >> 20) % 40 + step)).unwrap());
                    }
                }
            });
        }
        let _stop = StopAtEnd(&done);
        while log.feed(&mut applier) {}
    });
    assert_eq!(read_pair(&pool, page(0), page(3)), (GROUPS, GROUPS));
}

#[test]
fn a_page_of_a_group_is_not_seen_before_the_group_is_applied() {
    let log = LoggedPages::new();
    let writer = log.writer(40);
    format_pages(&log, &writer, 4);
    let (pool, mut applier) = log.follower(32, log.end());
    change_all(&log, &writer, 1);
    drop(pool.load(page(3)).unwrap());
    let latched = pool.shared(page(3)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| log.feed(&mut applier));
        while pool.statistics().blocked_exclusive == 0 {
            firn_base::task::yield_now();
        }
        let loaded = scope.spawn(|| number(&shown(&pool, page(1)).unwrap()));
        firn_base::task::sleep(Duration::from_millis(20));
        assert_eq!(number(&latched), 0);
        assert!(!pool.contains(page(1)), "page 3 is still without the group");
        drop(latched);
        assert_eq!(loaded.join().unwrap(), 1);
    });
}

#[test]
fn a_load_that_a_group_overtakes_is_begun_again() {
    let log = LoggedPages::new();
    let writer = log.writer(40);
    format_pages(&log, &writer, 4);
    let (pool, applier) = log.follower(32, log.end());
    change_all(&log, &writer, 1);
    let (applier, weak) = (Arc::new(std::sync::Mutex::new(applier)), Arc::downgrade(&log));
    let feed = Arc::clone(&applier);
    *log.during_read.lock().unwrap() = Some(Arc::new(move |_: PageId| {
        weak.upgrade().unwrap().feed(&mut feed.lock().unwrap());
    }));
    assert_eq!(number(&shown(&pool, page(2)).unwrap()), 1);
    assert_eq!(pool.statistics().misses, 2);
    *log.during_read.lock().unwrap() = None;
    assert!(pool.wait_until_applied(log.end(), Some(Duration::ZERO)));
    assert!(!pool.wait_until_applied(log.end().advance(8), Some(Duration::from_millis(1))));
}

#[test]
fn a_dropped_space_is_gone_at_its_position() {
    let log = LoggedPages::new();
    let writer = log.writer(40);
    log.change(&writer, &[(other_page(0), HEADER), (page(0), HEADER)]);
    let before = log.end();
    log.drop_space(&writer, other_page(0).space);
    let (pool, mut applier) = log.follower(32, before);
    assert!(shown(&pool, other_page(0)).is_some());
    assert!(log.feed(&mut applier));
    assert!(shown(&pool, other_page(0)).is_none());
    assert!(pool.contains(page(0)) || shown(&pool, page(0)).is_some());
}

fn group_of(changes: &[(PageId, Change<'_>)]) -> Vec<u8> {
    let mut group = GroupBuilder::new();
    changes.iter().for_each(|(page, change)| change.encode(*page, &mut group));
    group.finish().to_vec()
}

#[test]
fn what_cannot_be_applied_is_refused_and_leaves_no_page_half_changed() {
    let log = LoggedPages::new();
    let writer = log.writer(40);
    format_pages(&log, &writer, 2);
    let start = log.end();
    let (pool, mut applier) = log.follower(32, start);
    (0..2).for_each(|number| assert!(shown(&pool, page(number)).is_some()));

    let good = group_of(&[(page(0), set_number(&[7; 8])), (page(1), set_number(&[7; 8]))]);
    let later = start.advance(8);
    let failure = applier.apply(later, &Group::parse(&good).unwrap());
    assert_eq!(failure, Err(ApplyFailure::OutOfOrder { applied: start, start: later }));

    let mut unknown = good.clone();
    unknown[firn_format::redo::group::GROUP_HEADER_BYTES] = 200;
    let failure = applier.apply(start, &Group::parse(&unknown).unwrap());
    assert!(matches!(failure, Err(ApplyFailure::Damaged { .. })), "{failure:?}");
    assert_eq!((pool.applied_lsn(), number(&shown(&pool, page(0)).unwrap())), (Some(start), 0));

    // The second page is not an undo page.
    let wrong = Change::UndoLink { next: firn_base::PageNo(3) };
    let misfit = group_of(&[(page(0), set_number(&[7; 8])), (page(1), wrong)]);
    let failure = applier.apply(start, &Group::parse(&misfit).unwrap());
    assert!(matches!(failure, Err(ApplyFailure::Mismatch { .. })), "{failure:?}");
    assert!(!pool.contains(page(0)) && !pool.contains(page(1)));
    assert_eq!(pool.applied_lsn(), Some(start.advance(misfit.len() as u64)));
}

#[test]
fn an_invalidated_page_is_read_again_unless_it_is_new_enough() {
    let log = LoggedPages::new();
    let (writer, other) = (log.writer(40), log.writer(40));
    format_pages(&log, &writer, 4);
    assert_eq!(number(&shown(&other, page(1)).unwrap()), 0);
    let kept = other.load(page(1)).unwrap();
    change_all(&log, &writer, 5);
    assert_eq!(number(&other.shared(page(1)).unwrap()), 0, "nobody has said so yet");
    other.invalidate(page(1), log.end());
    assert!(!other.contains(page(1)));
    drop(kept);
    assert_eq!(number(&shown(&other, page(1)).unwrap()), 5);
    other.invalidate(page(1), log.end());
    other.invalidate(page(2), log.end());
    assert!(other.contains(page(1)));
    assert_eq!(other.statistics().invalidations, 1);
}

#[test]
fn a_load_under_way_of_an_invalidated_page_begins_again() {
    let log = LoggedPages::new();
    let (writer, other) = (log.writer(40), log.writer(40));
    format_pages(&log, &writer, 4);
    let (weak_log, weak) = (Arc::downgrade(&log), Arc::downgrade(&other));
    *log.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        let log = weak_log.upgrade().unwrap();
        *log.during_read.lock().unwrap() = None;
        change_all(&log, &writer, 9);
        weak.upgrade().unwrap().invalidate(id, log.end());
    }));
    assert_eq!(number(&shown(&other, page(1)).unwrap()), 9);
    assert_eq!(other.statistics().misses, 2);
}

#[test]
fn a_pool_at_a_position_keeps_what_changes_later() {
    let log = LoggedPages::new();
    let writer = log.writer(40);
    format_pages(&log, &writer, 4);
    let (pool, mut applier) = log.follower(32, log.end());
    assert!(shown(&pool, page(1)).is_some());
    change_all(&log, &writer, 5);
    pool.invalidate(page(1), log.end());
    assert!(pool.contains(page(1)), "the change is not to be seen yet");
    log.feed(&mut applier);
    assert_eq!(number(&pool.shared(page(1)).unwrap()), 5);
}
