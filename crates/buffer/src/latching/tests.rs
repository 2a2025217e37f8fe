#![cfg(not(feature = "shuttle"))]

use firn_base::task::yield_now;
use firn_format::page::PageKind;

use crate::sync::SPINS;
use crate::test_support::{World, number, page};

#[test]
fn who_waits_for_a_latch_keeps_the_page_in_its_frame() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    drop(pool.load(page(0)).unwrap());
    let (_, frame) = pool.frame_of(page(0)).unwrap();
    std::thread::scope(|scope| {
        let mut guard = pool.exclusive(page(0)).unwrap();
        assert!(frame.looks_evictable());
        let waits = [
            scope.spawn(|| number(&pool.shared(page(0)).unwrap())),
            scope.spawn(|| number(&pool.exclusive(page(0)).unwrap())),
        ];
        while pool.statistics().spins < 2 * u64::from(SPINS) {
            yield_now();
        }
        assert!(!frame.try_claim(), "rule 3");
        world.change(&mut guard, PageKind::TreeLeaf, 6);
        drop(guard);
        assert_eq!(waits.map(|wait| wait.join().unwrap()), [6, 6]);
    });
    assert!(frame.looks_evictable());
    let statistics = pool.statistics();
    assert_eq!((statistics.blocked_shared, statistics.blocked_exclusive), (1, 1));
}

#[test]
fn readers_share_and_a_writer_excludes() {
    let world = World::with_pages(2);
    let pool = world.pool(32);
    let _pins = [0, 1].map(|number| pool.load(page(number)).unwrap());
    let readers = [pool.shared(page(0)).unwrap(), pool.shared(page(0)).unwrap()];
    assert!(pool.try_exclusive(page(0)).unwrap().is_none());
    assert!(pool.try_exclusive(page(1)).unwrap().is_some());
    drop(readers);
    assert!(pool.try_exclusive(page(0)).unwrap().is_some());
    assert!(pool.try_exclusive(page(9)).is_err());
}

#[test]
fn a_hint_is_seen_by_others_and_lost_with_the_page() {
    let world = World::with_pages(100);
    let pool = world.pool(32);
    drop(pool.load(page(0)).unwrap());
    {
        let mut guard = pool.exclusive(page(0)).unwrap();
        let version = guard.version();
        guard.page_mut().set_flags(9);
        assert!(guard.is_changed());
        drop(guard);
        let guard = pool.shared(page(0)).unwrap();
        assert_eq!((guard.flags(), guard.version()), (9, version + 1));
    }
    for other in 1..100 {
        drop(pool.load(page(other)).unwrap());
    }
    drop(pool.load(page(0)).unwrap());
    assert_eq!(pool.shared(page(0)).unwrap().flags(), 0);
}

#[test]
#[should_panic(expected = "changed at 1 after")]
fn changes_come_in_the_order_of_the_log() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    let _pin = pool.load(page(0)).unwrap();
    pool.exclusive(page(0)).unwrap().mark_changed(firn_base::Lsn(1));
}

/// Set in the process that has to die.
const HALF_CHANGE: &str = "FIRN_TEST_HALF_CHANGE";

#[test]
fn a_half_made_change_ends_the_process() {
    if std::env::var_os(HALF_CHANGE).is_some() {
        let world = World::with_pages(1);
        let pool = world.pool(32);
        let _pin = pool.load(page(0)).unwrap();
        let mut guard = pool.exclusive(page(0)).unwrap();
        guard.page_mut().set_flags(1);
        panic!("expected by the test");
    }
    let name = "latching::tests::a_half_made_change_ends_the_process";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(HALF_CHANGE, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.code(), None, "a signal ends it, not the test's own failure");
}
