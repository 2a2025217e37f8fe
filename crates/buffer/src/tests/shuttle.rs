//! The pool's latches, pins, loads and evictions under many interleavings. Four frames, a few
//! pages, threads with a handful of operations each; shuttle reports deadlocks itself.

#![cfg(feature = "shuttle")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::{PageId, PageNo, SpaceId};
use firn_format::page::{PageBuf, PageKind};
use firn_format::redo::Change;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;

use crate::test_support::logged::{self, LoggedPages, set_number};
use crate::test_support::{World, number, page};
use crate::translation::Translation;
use crate::{BufferPool, Miss, pin_epoch};

fn check(test: impl Fn() + Send + Sync + Copy + 'static) {
    explore(RandomScheduler::new(1500), test);
    explore(PctScheduler::new(4, 1500), test);
}

fn explore(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = shuttle::Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(200_000);
    shuttle::Runner::new(scheduler, config).run(test);
}

fn kind(id: PageId) -> PageKind {
    if id.page_no.0.is_multiple_of(2) { PageKind::TreeInner } else { PageKind::TreeLeaf }
}

/// A pool of four frames over `pages` pages, whose reads let others run.
fn small_pool(pages: u32) -> (Arc<World>, Arc<BufferPool>) {
    let world = World::with_pages(0);
    (0..pages).for_each(|number| world.put(page(number), kind(page(number)), 0));
    *world.during_read.lock().unwrap() = Some(Arc::new(|_| thread::yield_now()));
    let pool = world.pool(0);
    assert_eq!(pool.frame_count(), 4);
    (world, pool)
}

fn run<T>(pool: &BufferPool, mut operation: impl FnMut() -> Result<T, Miss>) -> T {
    let mut pin = None;
    loop {
        match operation() {
            Ok(done) => return done,
            Err(Miss(page)) => {
                drop(pin.take());
                pin = Some(pool.load(page).unwrap());
            }
        }
    }
}

fn increment(world: &World, pool: &BufferPool, id: PageId) {
    run(pool, || {
        let mut guard = pool.exclusive(id)?;
        let value = number(&guard) + 1;
        world.change(&mut guard, kind(id), value);
        Ok(())
    });
}

fn read(pool: &BufferPool, id: PageId) -> u64 {
    run(pool, || pool.shared(id).map(|guard| number(&guard)))
}

/// Every frame is free or caches a page that is found.
fn assert_no_frame_is_lost(pool: &BufferPool, pages: u32) {
    let cached = (0..pages).filter(|&number| pool.contains(page(number))).count();
    assert_eq!(cached + pool.free.count(), pool.frame_count());
}

fn join_all<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn shuttle_no_update_is_lost() {
    check(|| {
        let (world, pool) = small_pool(6);
        let increments: Arc<Vec<AtomicU64>> = Arc::new((0..6).map(|_| AtomicU64::new(0)).collect());
        let changers = [0, 1, 2].map(|_| {
            let (world, pool) = (Arc::clone(&world), Arc::clone(&pool));
            let increments = Arc::clone(&increments);
            thread::spawn(move || {
                for _ in 0..3 {
                    let number = thread_rng().gen_range(0..6);
                    increment(&world, &pool, page(number));
                    increments[number as usize].fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        // A store that asks for images and forgets them.
        let asks = {
            let source = world.image_source();
            thread::spawn(move || {
                let mut image = PageBuf::boxed();
                (0..6).for_each(|number| _ = source.copy_image(page(number), &mut image));
            })
        };
        join_all(changers);
        join_all([asks]);
        for number in 0..6 {
            let expected = increments[number as usize].load(Ordering::Relaxed);
            assert_eq!(read(&pool, page(number)), expected);
        }
        assert_no_frame_is_lost(&pool, 6);
    });
}

#[test]
fn shuttle_two_latches_in_order_never_deadlock_however_frames_move() {
    check(|| {
        let (world, pool) = small_pool(6);
        let pair = |low: u32, high: u32| {
            let (world, pool) = (Arc::clone(&world), Arc::clone(&pool));
            thread::spawn(move || {
                run(&pool, || {
                    let first = pool.shared(page(low))?;
                    let mut second = pool.exclusive(page(high))?;
                    let value = number(&first) + number(&second) + 1;
                    world.change(&mut second, kind(page(high)), value);
                    Ok(())
                });
            })
        };
        // Two frames are left: while page 1 is latched, page 0 fits only into the frame of page 2.
        let kept = [3, 4].map(|number| pool.load(page(number)).unwrap());
        [1, 2].iter().for_each(|&number| assert_eq!(read(&pool, page(number)), 0));
        let busy = {
            let (world, pool) = (Arc::clone(&world), Arc::clone(&pool));
            thread::spawn(move || increment(&world, &pool, page(2)))
        };
        join_all([pair(0, 1), pair(1, 2), busy]);
        drop(kept);
        assert_no_frame_is_lost(&pool, 6);
    });
}

#[test]
fn shuttle_a_page_that_is_created_while_it_is_loaded_is_the_new_one() {
    check(|| {
        let (world, pool) = small_pool(5);
        let creator = {
            let (world, pool) = (Arc::clone(&world), Arc::clone(&pool));
            thread::spawn(move || {
                let mut reservation = pool.reserve(1);
                let mut guard = pool.create(&mut reservation, page(0));
                world.change(&mut guard, kind(page(0)), 100);
                drop((guard, reservation));
                // Probably evicts it again.
                (1..5).for_each(|number| drop(pool.load(page(number)).unwrap()));
                assert_eq!(read(&pool, page(0)), 100);
            })
        };
        let reader = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let first = read(&pool, page(0));
                assert!(first <= read(&pool, page(0)));
            })
        };
        join_all([creator, reader]);
        assert_eq!(read(&pool, page(0)), 100);
        assert_no_frame_is_lost(&pool, 5);
    });
}

#[test]
fn shuttle_images_are_current_after_the_last_change_and_never_go_back() {
    check(|| {
        let (world, pool) = small_pool(6);
        let writer = {
            let (world, pool) = (Arc::clone(&world), Arc::clone(&pool));
            thread::spawn(move || (0..3).for_each(|_| increment(&world, &pool, page(0))))
        };
        let reader = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let mut seen = 0;
                for _ in 0..4 {
                    let epoch = pin_epoch();
                    let image = run(&pool, || pool.optimistic(page(0), &epoch));
                    let value = image.map_or(seen, |image| number(&image));
                    assert!(value >= seen);
                    seen = value;
                    assert!(read(&pool, page(0)) >= seen);
                }
            })
        };
        let evictor = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || (1..6).for_each(|number| assert!(read(&pool, page(number)) == 0)))
        };
        join_all([writer, reader, evictor]);
        assert_eq!(read(&pool, page(0)), 3);
        let epoch = pin_epoch();
        let image = run(&pool, || pool.optimistic(page(0), &epoch)).unwrap();
        assert_eq!((number(&image), image.is_current()), (3, true));
    });
}

#[test]
fn shuttle_a_discarded_space_leaves_no_frame_behind() {
    check(|| {
        let (world, pool) = small_pool(3);
        let other = |number| PageId::new(SpaceId(1), PageNo(number));
        (0..3).for_each(|number| world.put(other(number), PageKind::TreeLeaf, 5));
        let users = [0, 1].map(|_| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                for number in 0..3 {
                    assert_eq!(read(&pool, other(number)), 5);
                    assert_eq!(read(&pool, page(number)), 0);
                }
            })
        });
        let dropper = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || (0..2).for_each(|_| pool.discard_space(SpaceId(1))))
        };
        join_all(users);
        join_all([dropper]);
        pool.discard_space(SpaceId(1));
        assert!((0..3).all(|number| !pool.contains(other(number))));
        (0..3).for_each(|number| assert_eq!(read(&pool, page(number)), 0));
        // The clock finds frames that were pinned when their page was discarded.
        (0..20).for_each(|_| drop(pool.reserve(1)));
        let frames: Vec<_> = (0..4).map(|_| pool.take_frame()).collect();
        frames.into_iter().for_each(|frame| pool.free.push(frame));
        assert_eq!(pool.free.count(), 4);
    });
}

#[test]
fn shuttle_loads_of_one_page_share_a_read_and_its_error() {
    check(|| {
        let (world, pool) = small_pool(1);
        let loads = || {
            [0, 1, 2].map(|_| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || {
                    let pin = pool.load(page(0));
                    assert!(pin.is_err() || pool.contains(page(0)));
                })
            })
        };
        join_all(loads());
        assert_eq!(pool.statistics().misses, 1);
        let (_, frame) = pool.frame_of(page(0)).unwrap();
        assert!(frame.looks_evictable(), "every pin has ended");
        pool.discard_space(page(0).space);
        world.broken.lock().unwrap().insert(page(0));
        join_all(loads());
        assert_eq!(pool.free.count(), 4);
    });
}

#[test]
fn shuttle_lookups_are_right_while_nodes_change_their_space() {
    check(|| {
        let table = Arc::new(Translation::new());
        let id = |space, page_no| PageId::new(SpaceId(space), PageNo(page_no));
        table.insert(id(1, 3), 33).unwrap();
        let stays = {
            let table = Arc::clone(&table);
            thread::spawn(move || (0..4).for_each(|_| assert_eq!(table.lookup(id(1, 3)), Some(33))))
        };
        let comes_and_goes = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for space in [2, 3, 17] {
                    table.insert(id(space, 20), 7).unwrap();
                    assert_eq!(table.lookup(id(space, 20)), Some(7));
                    table.remove(id(space, 20), 7);
                    table.release(SpaceId(space));
                    assert_eq!(table.lookup(id(space, 20)), None);
                }
            })
        };
        let grows = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                table.insert(id(1, 70), 1).unwrap();
                assert_eq!(table.lookup(id(1, 70)), Some(1));
            })
        };
        join_all([stays, comes_and_goes, grows]);
        assert_eq!(table.pages_of(SpaceId(1)), [(id(1, 3), 33), (id(1, 70), 1)]);
    });
}

#[test]
fn shuttle_a_group_is_applied_to_all_its_pages_at_once() {
    check(|| {
        let log = LoggedPages::new();
        let writer = log.writer(40);
        let header = Change::Format { kind: PageKind::SpaceHeader };
        (0..5).for_each(|number| _ = log.change(&writer, &[(page(number), header)]));
        let (pool, mut applier) = log.follower(0, log.end());
        for number in 1..4_u64 {
            let bytes = number.to_le_bytes();
            log.change(&writer, &[(page(1), set_number(&bytes)), (page(0), set_number(&bytes))]);
        }
        *log.during_read.lock().unwrap() = Some(Arc::new(|_| thread::yield_now()));
        let applies = {
            let log = Arc::clone(&log);
            thread::spawn(move || while log.feed(&mut applier) {})
        };
        let reads = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || {
                let mut newest = 0;
                for _ in 0..3 {
                    let numbers = run(&pool, || {
                        let (first, second) = (pool.shared(page(0))?, pool.shared(page(1))?);
                        Ok((logged::number(&first), logged::number(&second)))
                    });
                    assert!(numbers.0 == numbers.1 && numbers.0 >= newest, "{numbers:?}");
                    newest = numbers.0;
                }
            })
        };
        let evicts = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || (2..5).for_each(|number| drop(pool.load(page(number)).unwrap())))
        };
        join_all([applies, reads, evicts]);
        let last = run(&pool, || pool.shared(page(1)).map(|guard| logged::number(&guard)));
        assert_eq!(last, 3);
        assert_no_frame_is_lost(&pool, 5);
    });
}
