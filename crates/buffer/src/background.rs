//! The pool's tasks: the cleaner, which keeps a stock of free frames, and the prefetchers.
//!
//! A task keeps the pool alive only while it works on it; between that it holds the [`Signals`] alone, and
//! ends when they say so.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use firn_base::task::TaskHandle;
use firn_base::{Environment, PageId, SpaceId};

use crate::frame::Access;
use crate::load::LoadOptions;
use crate::pool::{BufferPool, BufferPoolOptions};
use crate::statistics::Counter;
use crate::sync::{AtomicBool, Event, Mutex, Ordering};

/// Pages that wait to be prefetched; later ones are forgotten.
const PREFETCH_QUEUE: usize = 1024;

/// What the tasks wait for.
#[derive(Default)]
pub(crate) struct Signals {
    stopped: AtomicBool,
    pub(crate) stock_is_low: Event,
    prefetch_queued: Event,
    prefetch: Mutex<VecDeque<(PageId, Access)>>,
}

impl Signals {
    /// Ends the tasks.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stock_is_low.notify_all();
        self.prefetch_queued.notify_all();
    }

    pub(crate) fn queue_prefetch(&self, pages: impl Iterator<Item = (PageId, Access)>) {
        let mut queue = self.prefetch.lock();
        let before = queue.len();
        queue.extend(pages.take(PREFETCH_QUEUE.saturating_sub(before)));
        let queued = queue.len() > before;
        drop(queue);
        if queued {
            self.prefetch_queued.notify_all();
        }
    }

    pub(crate) fn forget_prefetches(&self, space: SpaceId) {
        self.prefetch.lock().retain(|(page, _)| page.space != space);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// The next page to prefetch; `None` when the tasks are to end. Blocks.
    fn next_prefetch(&self) -> Option<(PageId, Access)> {
        let mut next = None;
        self.prefetch_queued.wait_until(None, || {
            next = self.prefetch.lock().pop_front();
            next.is_some() || self.is_stopped()
        });
        next.filter(|_| !self.is_stopped())
    }
}

/// Starts the tasks that `options` ask for.
pub(crate) fn start(
    env: &Environment,
    pool: &Arc<BufferPool>,
    options: &BufferPoolOptions,
) -> Vec<Box<dyn TaskHandle>> {
    let mut tasks = Vec::new();
    if options.clean_ahead {
        let (signals, pool) = (Arc::clone(&pool.signals), Arc::downgrade(pool));
        tasks.push(env.spawner.spawn("pool-clean", Box::new(move || clean(&signals, &pool))));
    }
    for _ in 0..options.prefetch_tasks {
        let (signals, pool) = (Arc::clone(&pool.signals), Arc::downgrade(pool));
        tasks.push(env.spawner.spawn("pool-prefetch", Box::new(move || prefetch(&signals, &pool))));
    }
    tasks
}

fn clean(signals: &Signals, pool: &Weak<BufferPool>) {
    loop {
        let ticket = signals.stock_is_low.listen();
        if signals.is_stopped() {
            return;
        }
        let Some(pool) = pool.upgrade() else { return };
        let is_low = pool.free.is_low();
        if is_low {
            pool.restock();
        }
        drop(pool);
        if !is_low {
            signals.stock_is_low.wait(ticket, None);
        }
    }
}

fn prefetch(signals: &Signals, pool: &Weak<BufferPool>) {
    while let Some((page, access)) = signals.next_prefetch() {
        let Some(pool) = pool.upgrade() else { return };
        let loaded = pool.load_with(page, LoadOptions { access, ..LoadOptions::default() });
        // Whoever needs the page loads it and is told what is wrong.
        if loaded.is_ok() {
            pool.counters.count(Counter::Prefetches);
        }
    }
}
