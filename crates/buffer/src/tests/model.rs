//! Threads that read, change, create and evict more pages than fit: no update is lost, and no
//! thread sees a page go back in time.

#![cfg(not(feature = "shuttle"))]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use firn_base::PageId;
use firn_base::random::{RandomSource, SplitMix};
use firn_format::page::{PageBuf, PageKind};

use crate::test_support::{World, number, page};
use crate::{BufferPool, BufferPoolOptions, Miss, pin_epoch};

const PAGES: u32 = 120;
const CHANGES: u64 = 15_000;

/// Even pages are inner nodes.
fn kind(id: PageId) -> PageKind {
    if id.page_no.0.is_multiple_of(2) { PageKind::TreeInner } else { PageKind::TreeLeaf }
}

/// Runs `operation` as the engine does: on a miss, load with nothing held and run again.
fn run<T>(pool: &BufferPool, mut operation: impl FnMut() -> Result<T, Miss>) -> T {
    let mut _pin = None;
    loop {
        match operation() {
            Ok(done) => return done,
            Err(Miss(page)) => _pin = Some(pool.load(page).unwrap()),
        }
    }
}

struct Worker<'a> {
    pool: &'a BufferPool,
    world: &'a World,
    increments: &'a [AtomicU64],
    random: SplitMix,
    seen: HashMap<PageId, u64>,
}

impl Worker<'_> {
    fn work(&mut self) {
        for _ in 0..CHANGES {
            let word = self.random.next_u64();
            let id = page((word >> 32) as u32 % PAGES);
            match word % 8 {
                0..3 => self.increment(id),
                3 | 4 => self.read(id),
                5 => self.read_optimistically(id),
                6 => self.increment_two(id, page((word >> 16) as u32 % PAGES)),
                _ => self.recreate(id),
            }
        }
    }

    fn saw(&mut self, id: PageId, value: u64) {
        let seen = self.seen.entry(id).or_default();
        assert!(value >= *seen, "{id} went from {seen} back to {value}");
        *seen = value;
    }

    fn increment(&mut self, id: PageId) {
        let value = run(self.pool, || {
            let mut guard = self.pool.exclusive(id)?;
            assert_eq!(guard.page_id(), id);
            let value = number(&guard) + 1;
            self.world.change(&mut guard, kind(id), value);
            Ok(value)
        });
        self.increments[id.page_no.0 as usize].fetch_add(1, Ordering::Relaxed);
        self.saw(id, value);
    }

    /// Two latches at once, in page order.
    fn increment_two(&mut self, one: PageId, other: PageId) {
        let (first, second) = (one.min(other), one.max(other));
        if first == second {
            return;
        }
        run(self.pool, || {
            let mut first_guard = self.pool.exclusive(first)?;
            let mut second_guard = self.pool.exclusive(second)?;
            for guard in [&mut first_guard, &mut second_guard] {
                let value = number(guard) + 1;
                self.world.change(guard, kind(guard.id()), value);
            }
            Ok(())
        });
        for id in [first, second] {
            self.increments[id.page_no.0 as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&mut self, id: PageId) {
        let value = run(self.pool, || self.pool.shared(id).map(|guard| number(&guard)));
        self.saw(id, value);
    }

    fn read_optimistically(&mut self, id: PageId) {
        let epoch = pin_epoch();
        let read = |pool: &BufferPool| {
            let image = pool.optimistic(id, &epoch)?;
            Ok(image.map(|image| (image.page_id(), number(&image))))
        };
        if let Some((read_id, value)) = run(self.pool, || read(self.pool)) {
            assert_eq!((read_id, kind(id)), (id, PageKind::TreeInner));
            self.saw(id, value);
        }
    }

    /// Frees the page and creates it again, keeping its count.
    fn recreate(&mut self, id: PageId) {
        let mut reservation = self.pool.reserve(1);
        let mut guard = loop {
            // A thread that frees a page holds it; here the new life begins before any other thread
            // reaches the page.
            if let Ok(guard) = self.pool.exclusive(id) {
                break guard;
            }
            drop(self.pool.load(id).unwrap());
        };
        let value = number(&guard) + 1;
        self.world.change(&mut guard, kind(id), value);
        drop(guard);
        self.increments[id.page_no.0 as usize].fetch_add(1, Ordering::Relaxed);
        let mut guard = self.pool.create(&mut reservation, page(PAGES + id.page_no.0));
        self.world.change(&mut guard, PageKind::TreeLeaf, value);
    }
}

#[test]
fn no_update_is_lost_and_no_page_goes_back() {
    let world = World::with_pages(PAGES);
    (0..PAGES).for_each(|number| world.put(page(number), kind(page(number)), 0));
    world.auto_durable.store(false, Ordering::SeqCst);
    world.make_durable();
    world.room.store(4, Ordering::SeqCst);
    world.room_per_wait.store(3, Ordering::SeqCst);
    let log = Arc::clone(&world);
    let pool = world.pool_with(BufferPoolOptions {
        prefetch_tasks: 1,
        clean_ahead: true,
        request_durable: Some(Arc::new(move |_| log.make_durable())),
        ..BufferPoolOptions::with_budget(40 * 17_600)
    });
    let increments: Vec<AtomicU64> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|seed| {
                let (pool, world, increments) = (&pool, &world, &increments);
                scope.spawn(move || {
                    let random = SplitMix::new(seed);
                    let seen = HashMap::new();
                    Worker { pool, world, increments, random, seen }.work();
                })
            })
            .collect();
        scope.spawn(|| {
            let random = SplitMix::new(99);
            let (source, mut image) = (world.image_source(), PageBuf::boxed());
            while !done.load(Ordering::Relaxed) {
                pool.prefetch(&[page(random.next_u64() as u32 % PAGES)]);
                // As if the store had asked for an image and lost it.
                source.copy_image(page(random.next_u64() as u32 % PAGES), &mut image);
                world.make_durable();
                firn_base::task::yield_now();
            }
        });
        let ended = workers.into_iter().map(|worker| worker.join().is_ok()).collect::<Vec<_>>();
        done.store(true, Ordering::Relaxed);
        assert!(ended.into_iter().all(|ended| ended));
    });
    pool.shutdown();
    world.make_durable();
    for id in (0..PAGES).map(page) {
        let value = run(&pool, || pool.shared(id).map(|guard| number(&guard)));
        assert_eq!(value, increments[id.page_no.0 as usize].load(Ordering::Relaxed), "{id}");
    }
    let statistics = pool.statistics();
    assert!(statistics.evictions_offered > 1000, "{statistics:?}");
    assert!(statistics.optimistic_hits > 100, "{statistics:?}");
}
