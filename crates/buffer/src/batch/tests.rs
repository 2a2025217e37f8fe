#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::PageStoreError;
use firn_base::PageId;
use firn_base::task::yield_now;
use firn_format::page::PageKind;

use crate::BufferPoolOptions;
use crate::frame::Access;
use crate::test_support::{World, number, page};

fn pages(numbers: std::ops::Range<u32>) -> Vec<PageId> {
    numbers.map(page).collect()
}

fn options(frames: usize) -> BufferPoolOptions {
    BufferPoolOptions {
        prefetch_tasks: 1,
        clean_ahead: false,
        ..BufferPoolOptions::with_budget(frames * 17_600)
    }
}

#[test]
fn many_pages_are_read_with_one_call() {
    let world = World::with_pages(30);
    let pool = world.pool(240);
    drop(pool.load(page(3)).unwrap());
    let pins = pool.load_many(&pages(0..20)).unwrap();
    assert_eq!(pins.iter().map(crate::PagePin::id).collect::<Vec<_>>(), pages(0..20));
    assert_eq!(*world.batches.lock().unwrap(), [19]);
    assert_eq!(pool.statistics().reads_in_flight, 0);
    assert!(pool.load_many(&[page(25), page(99)]).is_err());
    assert!(pool.load_many(&[]).unwrap().is_empty());
    drop(pins);
    assert_eq!(pool.free.count(), pool.frame_count() - 21);
    assert!((0..20).all(|number| pool.frame_of(page(number)).unwrap().1.looks_evictable()));
}

#[test]
fn a_small_pool_is_not_filled_by_one_call() {
    let world = World::with_pages(30);
    let pool = world.pool(32);
    let pins = pool.load_many(&pages(0..8)).unwrap();
    assert_eq!((pins.len(), world.batches.lock().unwrap().clone()), (8, vec![4, 4]));
}

#[test]
fn a_page_that_somebody_else_reads_is_not_read_twice() {
    let world = World::with_pages(8);
    let pool = world.pool(64);
    let weak = Arc::downgrade(&pool);
    *world.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        // The batch starts while page 3 is being read, and reads only the other pages.
        let pool = weak.upgrade().unwrap();
        while id == page(3) && pool.statistics().misses < 8 {
            yield_now();
        }
    }));
    std::thread::scope(|scope| {
        scope.spawn(|| drop(pool.load(page(3)).unwrap()));
        while pool.statistics().reads_in_flight == 0 {
            yield_now();
        }
        assert_eq!(pool.load_many(&pages(0..8)).unwrap().len(), 8);
    });
    assert_eq!(world.reads.load(Ordering::SeqCst), 8);
}

#[test]
fn one_page_that_fails_does_not_take_the_others_along() {
    let world = World::with_pages(4);
    let pool = world.pool(64);
    world.broken.lock().unwrap().insert(page(1));
    let loaded = pool.load_missing(&pages(0..6), Access::Normal);
    assert!(matches!(loaded.error, Some(PageStoreError::Absent(_) | PageStoreError::Io { .. })));
    assert_eq!(loaded.pins.len(), 3);
    drop(loaded);
    assert_eq!(pool.free.count(), pool.frame_count() - 3);
}

#[test]
fn a_page_that_is_created_while_its_batch_is_read_is_the_new_one() {
    let world = World::with_pages(6);
    let pool = world.pool(64);
    let (weak, log) = (Arc::downgrade(&pool), Arc::downgrade(&world));
    *world.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        if id == page(2) {
            let (pool, world) = (weak.upgrade().unwrap(), log.upgrade().unwrap());
            let mut reservation = pool.reserve(1);
            let mut guard = pool.create(&mut reservation, id);
            world.change(&mut guard, PageKind::TreeLeaf, 77);
        }
    }));
    let pins = pool.load_many(&pages(0..6)).unwrap();
    assert_eq!((pins.len(), number(&pool.shared(page(2)).unwrap())), (6, 77));
}

#[test]
fn a_batch_is_read_again_where_it_is_too_old() {
    let world = World::with_pages(6);
    let pool = world.pool(64);
    let (weak, log) = (Arc::downgrade(&pool), Arc::downgrade(&world));
    *world.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        let (pool, world) = (weak.upgrade().unwrap(), log.upgrade().unwrap());
        *world.during_read.lock().unwrap() = None;
        world.put(id, PageKind::TreeLeaf, 5);
        pool.invalidate(id, world.durable());
    }));
    let pins = pool.load_many(&pages(0..6)).unwrap();
    assert_eq!(*world.batches.lock().unwrap(), [6, 1]);
    let numbers = pages(0..6).into_iter().map(|page| number(&pool.shared(page).unwrap()));
    assert_eq!((pins.len(), numbers.sum::<u64>()), (6, 5));
}

#[test]
fn a_prefetch_is_one_call_that_fails_in_silence() {
    let world = World::with_pages(10);
    let pool = world.pool_with(options(128));
    pool.prefetch(&[&[page(20)], &*pages(0..8)].concat());
    while !(0..8).all(|number| pool.contains(page(number))) {
        yield_now();
    }
    assert_eq!(*world.batches.lock().unwrap(), [9]);
    assert!(matches!(pool.load(page(20)), Err(PageStoreError::Absent(_))));
    pool.shutdown();
    pool.prefetch(&[page(9)]);
    assert!(!pool.contains(page(9)));
}
