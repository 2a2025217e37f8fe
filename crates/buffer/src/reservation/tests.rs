#![cfg(not(feature = "shuttle"))]

use std::sync::atomic::Ordering;

use firn_base::Lsn;
use firn_format::page::{PAGE_SIZE, PageKind};

use crate::Miss;
use crate::test_support::{World, number, page};

#[test]
fn a_created_page_is_zero_and_stays_once_it_is_logged() {
    let world = World::with_pages(0);
    let pool = world.pool(32);
    let mut reservation = pool.reserve(2);
    let mut guard = pool.create(&mut reservation, page(5));
    assert_eq!(guard.bytes(), &[0; PAGE_SIZE]);
    assert_eq!(reservation.remaining(), 1);
    world.change(&mut guard, PageKind::TreeLeaf, 4);
    drop(guard);
    assert_eq!(number(&pool.shared(page(5)).unwrap()), 4);
    drop(reservation);
    assert_eq!(pool.free.count(), pool.frame_count() - 1);
    assert_eq!(world.reads.load(Ordering::SeqCst), 0);
}

#[test]
fn a_created_page_that_is_not_logged_was_never_there() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    let mut reservation = pool.reserve(1);
    drop(pool.create(&mut reservation, page(5)));
    assert_eq!(pool.shared(page(5)).unwrap_err(), Miss(page(5)));
    // Over an earlier life: the version in the log comes back.
    drop(pool.load(page(0)).unwrap());
    let mut reservation = pool.reserve(1);
    drop(pool.create(&mut reservation, page(0)));
    assert_eq!(reservation.remaining(), 1, "the cached frame was used");
    drop(reservation);
    drop(pool.load(page(0)).unwrap());
    assert_eq!(pool.shared(page(0)).unwrap().page_id(), page(0));
    assert_eq!(pool.free.count(), pool.frame_count() - 1);
}

#[test]
fn a_page_begins_a_new_life_in_its_frame() {
    let world = World::with_pages(1);
    let pool = world.pool(32);
    drop(pool.load(page(0)).unwrap());
    let mut reservation = pool.reserve(1);
    let mut guard = pool.create(&mut reservation, page(0));
    assert_eq!(guard.lsn(), Lsn(0));
    world.change(&mut guard, PageKind::TreeInner, 6);
    drop(guard);
    assert_eq!(reservation.remaining(), 1);
    assert_eq!(number(&pool.shared(page(0)).unwrap()), 6);
}

#[test]
fn reservations_of_many_threads_do_not_wait_for_each_other_for_ever() {
    let world = World::with_pages(0);
    let pool = world.pool(32);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let reservation = pool.reserve(8);
                    assert_eq!(reservation.remaining(), 8);
                }
            });
        }
    });
    assert_eq!(pool.free.count(), pool.frame_count());
}

#[test]
#[should_panic(expected = "a frame is reserved")]
fn a_reservation_ends() {
    let world = World::with_pages(0);
    let pool = world.pool(32);
    let mut reservation = pool.reserve(0);
    drop(pool.create(&mut reservation, page(1)));
}
