#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::page::{PAGE_SIZE, PageBuf, PageKind};

use crate::frame::Frame;
use crate::test_support::{World, number, page};
use crate::{BufferPool, BufferPoolOptions, Miss, pin_epoch};

/// Loads until the page can be latched, as operations do.
fn change(pool: &BufferPool, world: &World, id: PageId, kind: PageKind, value: u64) {
    let _pin = pool.load(id).unwrap();
    let mut guard = pool.exclusive(id).unwrap();
    world.change(&mut guard, kind, value);
}

#[test]
fn a_page_is_missed_loaded_changed_and_read() {
    let world = World::with_pages(2);
    let pool = world.pool(32);
    assert_eq!(pool.shared(page(1)).unwrap_err(), Miss(page(1)));
    change(&pool, &world, page(1), PageKind::TreeLeaf, 5);
    let guard = pool.shared(page(1)).unwrap();
    assert_eq!(number(&guard), 5);
    assert_eq!(guard.page_id(), page(1));
    assert!(pool.try_exclusive(page(1)).unwrap().is_none());
    assert_eq!(world.reads.load(Ordering::SeqCst), 1);
}

#[test]
fn a_frame_is_one_cache_line() {
    assert_eq!(size_of::<Frame>(), 64);
}

#[test]
fn the_budget_bounds_frames_and_images() {
    let budget_bytes = 8 << 20;
    let options = BufferPoolOptions {
        prefetch_tasks: 0,
        clean_ahead: false,
        ..BufferPoolOptions::with_budget(budget_bytes)
    };
    let world = World::with_pages(2000);
    let pool = world.pool_with(options);
    for number in 0..2000 {
        change(&pool, &world, page(number), PageKind::TreeInner, 1);
        let epoch = pin_epoch();
        assert!(pool.optimistic(page(number), &epoch).is_ok());
    }
    let translation_bytes = pool.translation.size_bytes();
    assert!(pool.resident_bytes() - translation_bytes <= budget_bytes);
    assert!(pool.resident_bytes() > budget_bytes - 16 * PAGE_SIZE - budget_bytes / 16);
    assert!(pool.statistics().images_refused > 0 || pool.images.live() <= 32);
}

#[test]
fn what_is_withheld_is_not_used_until_it_is_given_back() {
    let world = World::with_pages(200);
    let pool = world.pool(64);
    for number in 0..100 {
        change(&pool, &world, page(number), PageKind::TreeLeaf, 1);
    }
    world.make_durable();
    let before = pool.resident_bytes();
    assert_eq!(pool.withhold(20 * PAGE_SIZE - 1), 20 * PAGE_SIZE);
    assert!(pool.resident_bytes() <= before - 16 * PAGE_SIZE);
    for number in 0..200 {
        change(&pool, &world, page(number), PageKind::TreeLeaf, 2);
        world.make_durable();
    }
    assert_eq!(pool.withheld_bytes(), 20 * PAGE_SIZE);
    assert_eq!(pool.withhold(usize::MAX), 32 * PAGE_SIZE, "half of the pool stays");
    assert_eq!(pool.withhold(0), 0);
    for number in 0..200 {
        change(&pool, &world, page(number), PageKind::TreeLeaf, 3);
        world.make_durable();
        assert_eq!(number_of(&pool, number), 3);
    }
}

/// The number in the page that was just changed.
fn number_of(pool: &BufferPool, id: u32) -> u64 {
    let _pin = pool.load(page(id)).unwrap();
    number(&pool.shared(page(id)).unwrap())
}

#[test]
fn images_follow_changes() {
    let world = World::with_pages(2);
    let pool = world.pool(32);
    change(&pool, &world, page(0), PageKind::TreeInner, 1);
    let epoch = pin_epoch();
    let image = pool.optimistic(page(0), &epoch).unwrap().unwrap();
    assert!(image.is_current());
    {
        let mut guard = pool.exclusive(page(0)).unwrap();
        world.change(&mut guard, PageKind::TreeInner, 2);
        assert!(image.is_current(), "nothing was let go yet");
    }
    assert!(!image.is_current());
    assert_eq!(number(&image), 1, "an image never changes");
    let newer = pool.optimistic(page(0), &epoch).unwrap().unwrap();
    assert_eq!((number(&newer), newer.is_current()), (2, true));
    assert_eq!(newer.version(), pool.shared(page(0)).unwrap().version());
    change(&pool, &world, page(0), PageKind::TreeLeaf, 3);
    assert!(pool.optimistic(page(0), &epoch).unwrap().is_none(), "it is no inner node any more");
    assert_eq!(pool.optimistic(page(1), &epoch).unwrap_err(), Miss(page(1)));
}

#[test]
fn an_image_outlives_the_eviction_of_its_page() {
    let world = World::with_pages(100);
    let pool = world.pool(32);
    change(&pool, &world, page(0), PageKind::TreeInner, 9);
    let epoch = pin_epoch();
    let image = pool.optimistic(page(0), &epoch).unwrap().unwrap();
    for number in 1..100 {
        drop(pool.load(page(number)).unwrap());
    }
    assert!(!pool.contains(page(0)));
    assert!(!image.is_current());
    assert_eq!((number(&image), image.page_id()), (9, page(0)));
}

#[test]
fn the_store_is_given_durable_images_only() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    world.auto_durable.store(false, Ordering::SeqCst);
    change(&pool, &world, page(0), PageKind::TreeLeaf, 3);
    let (source, mut copy) = (world.image_source(), PageBuf::boxed());
    assert!(!source.copy_image(page(0), &mut copy), "its log is not durable");
    world.make_durable();
    assert!(source.copy_image(page(0), &mut copy));
    assert_eq!(number(&copy), 3);
    {
        let _guard = pool.exclusive(page(0)).unwrap();
        assert!(!source.copy_image(page(0), &mut copy), "it would have to wait");
    }
    drop(pool);
    assert!(!source.copy_image(page(0), &mut copy), "the store does not keep the pool");
}

#[test]
fn a_discarded_space_is_gone_and_others_stay() {
    let world = World::with_pages(20);
    let other = PageId::new(SpaceId(8), PageNo(3));
    world.put(other, PageKind::TreeLeaf, 1);
    let pool = world.pool(32);
    for number in 0..20 {
        change(&pool, &world, page(number), PageKind::TreeLeaf, 1);
    }
    drop(pool.load(other).unwrap());
    let pin = pool.load(page(4)).unwrap();
    pool.discard_space(SpaceId(7));
    assert!((0..20).all(|number| !pool.contains(page(number))));
    assert!(pool.contains(other));
    assert_eq!(world.offers.load(Ordering::SeqCst), 0);
    assert_eq!(pool.free.count(), pool.frame_count() - 2, "the pinned frame is still out");
    drop(pin);
    // The clock finds the frame that was pinned.
    let taken = pool.take_frames(pool.frame_count() - 1);
    taken.into_iter().for_each(|frame| pool.free.push(frame));
}

#[test]
fn a_new_pool_reads_what_the_log_had_before_it() {
    let world = World::with_pages(1);
    change(&world.pool(32), &world, page(0), PageKind::TreeLeaf, 4);
    assert_eq!(world.offers.load(Ordering::SeqCst), 0, "the store has not applied the change");
    let pool = world.pool(32);
    drop(pool.load(page(0)).unwrap());
    assert_eq!(number(&pool.shared(page(0)).unwrap()), 4);
}

#[test]
fn tasks_end_with_the_pool() {
    let world = World::with_pages(10);
    let pool = world.pool_with(BufferPoolOptions::with_budget(1 << 20));
    pool.prefetch(&(0..10).map(page).collect::<Vec<_>>());
    while !(0..10).all(|number| pool.contains(page(number))) {
        firn_base::task::yield_now();
    }
    pool.shutdown();
    assert_eq!(Arc::strong_count(&pool), 1);
    assert_eq!(pool.statistics().prefetches, 10);
}
