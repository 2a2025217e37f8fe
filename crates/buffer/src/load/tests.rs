#![cfg(not(feature = "shuttle"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_api::PageStoreError;
use firn_base::task::yield_now;
use firn_base::{Lsn, PageId};
use firn_format::page::PageKind;

use crate::test_support::{World, number, page};
use crate::{Access, BufferPool, BufferPoolOptions, LoadOptions};

/// A hook that keeps a read from ending until `count` others have joined it.
fn until_joined(world: &World, pool: &Arc<BufferPool>, count: u64) {
    let pool = Arc::downgrade(pool);
    *world.during_read.lock().unwrap() = Some(Arc::new(move |_: PageId| {
        let pool = pool.upgrade().unwrap();
        while pool.statistics().loads_joined < count {
            yield_now();
        }
    }));
}

#[test]
fn loads_of_one_page_share_one_read() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    until_joined(&world, &pool, 3);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let _pin = pool.load(page(0)).unwrap();
                assert!(pool.shared(page(0)).is_ok());
            });
        }
    });
    let statistics = pool.statistics();
    assert_eq!((statistics.misses, statistics.loads_joined), (1, 3));
    assert_eq!(statistics.reads_in_flight, 0);
}

#[test]
fn an_error_reaches_everybody_and_is_not_remembered() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    until_joined(&world, &pool, 1);
    world.broken.lock().unwrap().insert(page(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert!(matches!(pool.load(page(0)), Err(PageStoreError::Io { .. }))));
        }
    });
    world.broken.lock().unwrap().clear();
    assert!(pool.load(page(0)).is_ok());
    assert!(matches!(pool.load(page(1)), Err(PageStoreError::Absent(absent)) if absent == page(1)));
    assert_eq!(pool.free.count(), pool.frame_count() - 1);
}

#[test]
fn another_page_than_asked_for_is_damage() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    world.misplaced.lock().unwrap().insert(page(0));
    for _ in 0..2 {
        let error = pool.load(page(0)).unwrap_err();
        assert!(
            matches!(error, PageStoreError::Damaged { page: damaged, .. } if damaged == page(0))
        );
    }
    assert!(!pool.contains(page(0)));
}

#[test]
fn a_page_that_the_log_does_not_have_is_refused() {
    let world = World::with_pages(1);
    world.put(page(0), PageKind::TreeLeaf, 1);
    let end = Arc::new(AtomicU64::new(0));
    let read_end = Arc::clone(&end);
    let pool = world.pool_with(BufferPoolOptions {
        log_end: Some(Arc::new(move || Lsn(read_end.load(Ordering::SeqCst)))),
        ..BufferPoolOptions::with_budget(32 * 17_600)
    });
    let Err(PageStoreError::AheadOfLog { lsn, .. }) = pool.load(page(0)) else {
        panic!("the page is ahead of an empty log")
    };
    assert!(!pool.contains(page(0)));
    end.store(lsn.0, Ordering::SeqCst);
    assert!(pool.load(page(0)).is_ok());
}

#[test]
fn a_joiner_that_needs_a_newer_version_gets_it() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    world.put(page(1), PageKind::TreeLeaf, 1);
    let newer = {
        // The log grows; the store may return the old version unless it learns of that.
        let mut reservation = pool.reserve(1);
        let mut guard = pool.create(&mut reservation, page(2));
        world.change(&mut guard, PageKind::TreeLeaf, 0);
        guard.lsn()
    };
    until_joined(&world, &pool, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| drop(pool.load(page(1)).unwrap()));
        scope.spawn(|| {
            while pool.statistics().reads_in_flight == 0 {
                yield_now();
            }
            let options = LoadOptions { access: Access::Normal, at_least: newer };
            drop(pool.load_with(page(1), options).unwrap());
        });
    });
    assert_eq!(pool.statistics().misses, 2, "what was read was not new enough");
}

#[test]
fn what_was_read_before_a_page_was_created_is_thrown_away() {
    let world = World::with_pages(100);
    let pool = world.pool(32);
    let (weak, log) = (Arc::downgrade(&pool), Arc::downgrade(&world));
    *world.during_read.lock().unwrap() = Some(Arc::new(move |id| {
        let (pool, world) = (weak.upgrade().unwrap(), log.upgrade().unwrap());
        *world.during_read.lock().unwrap() = None;
        let mut reservation = pool.reserve(1);
        let mut guard = pool.create(&mut reservation, id);
        world.change(&mut guard, PageKind::TreeLeaf, 77);
        drop((guard, reservation));
        // The new version is evicted again before the old one has arrived.
        (1..100).for_each(|number| drop(pool.load(page(number)).unwrap()));
        assert!(!pool.contains(id));
    }));
    drop(pool.load(page(0)).unwrap());
    assert_eq!(number(&pool.shared(page(0)).unwrap()), 77);
}

#[test]
fn a_space_that_is_discarded_while_it_is_read_is_read_again() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    let (weak, log) = (Arc::downgrade(&pool), Arc::downgrade(&world));
    *world.during_read.lock().unwrap() = Some(Arc::new(move |id: PageId| {
        *log.upgrade().unwrap().during_read.lock().unwrap() = None;
        weak.upgrade().unwrap().discard_space(id.space);
    }));
    drop(pool.load(page(0)).unwrap());
    assert_eq!(world.reads.load(Ordering::SeqCst), 2);
}

#[test]
fn a_store_that_panics_leaves_nobody_waiting() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    let weak = Arc::downgrade(&pool);
    *world.during_read.lock().unwrap() = Some(Arc::new(move |_| {
        while weak.upgrade().unwrap().statistics().loads_joined < 1 {
            yield_now();
        }
        panic!("expected by the test");
    }));
    std::thread::scope(|scope| {
        let loads = [0, 1].map(|_| scope.spawn(|| pool.load(page(0)).map(drop)));
        let ends = loads.map(|load| load.join());
        assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1, "one panicked");
        assert!(ends.iter().any(|end| matches!(end, Ok(Err(PageStoreError::Io { .. })))));
    });
    *world.during_read.lock().unwrap() = None;
    assert!(pool.load(page(0)).is_ok());
    assert_eq!(pool.free.count(), pool.frame_count() - 1);
}

#[test]
fn a_loaded_page_is_clean() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    drop(pool.load(page(0)).unwrap());
    let (_, frame) = pool.frame_of(page(0)).unwrap();
    assert_eq!(frame.lsn(), frame.stored_lsn());
    assert!(frame.lsn() > Lsn(0));
}
