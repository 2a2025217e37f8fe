#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::task::monotonic;
use firn_format::page::{PageBuf, PageKind};

use crate::test_support::{World, number, page};
use crate::{Access, BufferPool, BufferPoolOptions, LoadOptions};

const SCAN: LoadOptions = LoadOptions { access: Access::Scan, at_least: firn_base::Lsn(0) };

fn change(pool: &BufferPool, world: &World, number: u32, value: u64) {
    let _pin = pool.load(page(number)).unwrap();
    let mut guard = pool.exclusive(page(number)).unwrap();
    world.change(&mut guard, PageKind::TreeLeaf, value);
}

/// Reads pages once, so that everything evictable is evicted.
fn read_others(pool: &BufferPool, numbers: std::ops::Range<u32>) {
    for number in numbers {
        drop(pool.load(page(number)).unwrap());
    }
}

#[test]
fn the_pool_never_grows_and_frames_are_never_lost() {
    let world = World::with_pages(1000);
    let pool = world.pool(40);
    read_others(&pool, 0..1000);
    let cached = (0..1000).filter(|&number| pool.contains(page(number))).count();
    assert_eq!(cached + pool.free.count(), pool.frame_count());
    assert!(cached <= 40);
    assert_eq!(world.offers.load(Ordering::SeqCst), 0, "clean pages are just dropped");
}

#[test]
fn pinned_and_latched_pages_stay() {
    let world = World::with_pages(1000);
    let pool = world.pool(32);
    let pin = pool.load(page(0)).unwrap();
    drop(pool.load(page(1)).unwrap());
    let guard = pool.shared(page(1)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| read_others(&pool, 2..1000));
    });
    assert!(pool.contains(page(0)) && pool.contains(page(1)));
    drop((pin, guard));
    read_others(&pool, 2..1000);
    assert!(!pool.contains(page(0)) && !pool.contains(page(1)));
}

#[test]
fn a_scan_leaves_the_working_set_alone() {
    let world = World::with_pages(2000);
    let pool = world.pool(64);
    for _ in 0..3 {
        for number in 0..40 {
            drop(pool.load(page(number)).unwrap());
            drop(pool.shared(page(number)).unwrap());
        }
    }
    let mut next = 0;
    for number in 100..2000 {
        let _pin = pool.load_with(page(number), SCAN).unwrap();
        drop(pool.shared_for(page(number), Access::Scan).unwrap());
        // The working set stays in use: each of its pages once per 160 pages of the scan.
        if number % 4 == 0 {
            drop(pool.load(page(next)).unwrap());
            drop(pool.shared(page(next)).unwrap());
            next = (next + 1) % 40;
        }
    }
    let reads = world.reads.load(Ordering::SeqCst);
    assert!(reads <= 40 + 1900 + 40, "{reads} reads");
}

#[test]
fn a_dirty_page_is_offered_and_comes_back_as_it_was() {
    let world = World::with_pages(200);
    let pool = world.pool(32);
    for value in 1..4 {
        change(&pool, &world, 0, value);
        read_others(&pool, 1..200);
        assert!(!pool.contains(page(0)));
    }
    assert_eq!(world.offers.load(Ordering::SeqCst), 3);
    assert_eq!(pool.statistics().evictions_offered, 3);
    drop(pool.load(page(0)).unwrap());
    assert_eq!(number(&pool.shared(page(0)).unwrap()), 3);
}

#[test]
fn a_page_that_was_copied_for_the_store_is_not_offered_again() {
    let world = World::with_pages(200);
    let pool = world.pool(32);
    change(&pool, &world, 0, 8);
    assert!(world.image_source().copy_image(page(0), &mut PageBuf::boxed()));
    read_others(&pool, 1..200);
    assert!(!pool.contains(page(0)));
    assert_eq!(world.offers.load(Ordering::SeqCst), 0);
    // This test's store has thrown the copy away, and finds the version in the log.
    drop(pool.load(page(0)).unwrap());
    assert_eq!(number(&pool.shared(page(0)).unwrap()), 8);
}

#[test]
fn a_full_store_is_waited_for() {
    let world = World::with_pages(200);
    world.room.store(2, Ordering::SeqCst);
    world.room_per_wait.store(1, Ordering::SeqCst);
    let pool = world.pool(32);
    for number in 0..200 {
        change(&pool, &world, number, 1);
    }
    assert!(world.waits.load(Ordering::SeqCst) > 100);
    assert!(pool.statistics().offers_full > 100);
    assert_eq!(world.offers.load(Ordering::SeqCst), 200 - pool.frame_count() + pool.free.count());
}

#[test]
fn clean_pages_go_while_the_store_is_full() {
    let world = World::with_pages(200);
    world.room.store(0, Ordering::SeqCst);
    let pool = world.pool(32);
    (0..10).for_each(|number| change(&pool, &world, number, 1));
    read_others(&pool, 10..200);
    assert_eq!(world.waits.load(Ordering::SeqCst), 0);
    assert!((0..10).all(|number| pool.contains(page(number))));
}

#[test]
fn pages_stay_until_their_log_is_durable_and_the_log_is_asked_for() {
    let world = World::with_pages(200);
    world.auto_durable.store(false, Ordering::SeqCst);
    world.make_durable();
    let log = Arc::clone(&world);
    let pool = world.pool_with(BufferPoolOptions {
        prefetch_tasks: 0,
        clean_ahead: false,
        request_durable: Some(Arc::new(move |lsn| {
            log.make_durable();
            assert!(lsn <= log.durable());
        })),
        ..BufferPoolOptions::with_budget(0)
    });
    assert_eq!(pool.frame_count(), crate::MIN_FRAMES);
    let frames = pool.frame_count() as u32;
    (0..frames).for_each(|number| change(&pool, &world, number, 1));
    assert_eq!(pool.statistics().eviction_waits, 0);
    // Nothing can be evicted before the pool has asked for the log.
    change(&pool, &world, frames, 1);
    assert!(pool.statistics().eviction_waits >= 1);
    assert!(world.durable() > firn_base::Lsn(0));
}

#[test]
fn a_reservation_that_gives_frames_back_still_waits() {
    const PAUSES: u64 = 50;
    let world = World::with_pages(200);
    world.auto_durable.store(false, Ordering::SeqCst);
    world.make_durable();
    let (log, asked) = (Arc::clone(&world), AtomicU64::new(0));
    let pool = world.pool_with(BufferPoolOptions {
        prefetch_tasks: 0,
        clean_ahead: false,
        request_durable: Some(Arc::new(move |_| {
            if asked.fetch_add(1, Ordering::SeqCst) == PAUSES {
                log.make_durable();
            }
        })),
        ..BufferPoolOptions::with_budget(0)
    });
    // One frame is free, and nothing can be evicted before the log is durable.
    let frames = pool.frame_count() as u32;
    (1..frames).for_each(|number| change(&pool, &world, number, 1));
    let began = monotonic();
    drop(pool.reserve(2));
    let waited = monotonic() - began;
    assert!(waited >= PAUSES as u32 * super::PAUSE, "{PAUSES} pauses took {waited:?}");
}

#[test]
fn the_cleaner_keeps_a_stock() {
    let world = World::with_pages(500);
    let pool = world.pool_with(BufferPoolOptions {
        prefetch_tasks: 0,
        ..BufferPoolOptions::with_budget(4 << 20)
    });
    (0..500).for_each(|number| change(&pool, &world, number, u64::from(number)));
    while pool.free.is_low() {
        firn_base::task::yield_now();
    }
    for number_wanted in 0..500 {
        let _pin = pool.load(page(number_wanted)).unwrap();
        assert_eq!(number(&pool.shared(page(number_wanted)).unwrap()), u64::from(number_wanted));
    }
    pool.shutdown();
}
