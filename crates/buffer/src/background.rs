//! The pool's tasks: the cleaner, which keeps a stock of free frames, and the prefetchers.
//!
//! A task keeps the pool alive only while it works on it. In between it holds only the [`Signals`],
//! and ends when they say so.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use firn_base::task::TaskHandle;
use firn_base::{Environment, PageId, SpaceId};

use crate::frame::Access;
use crate::pool::{BufferPool, BufferPoolOptions};
use crate::statistics::Counter;
use crate::sync::{AtomicBool, Event, Mutex, Ordering};

/// The most pages in the prefetch queue; later ones are dropped.
const PREFETCH_QUEUE: usize = 1024;

/// The signals that the tasks wait for.
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

    /// The next pages to prefetch, up to `limit` for one kind of access; `None` when the tasks must
    /// end. Blocks.
    fn next_prefetch(&self, limit: usize) -> Option<(Vec<PageId>, Access)> {
        let mut next = None;
        self.prefetch_queued.wait_until(None, || {
            next = take_batch(&mut self.prefetch.lock(), limit);
            next.is_some() || self.is_stopped()
        });
        next.filter(|_| !self.is_stopped())
    }
}

fn take_batch(
    queue: &mut VecDeque<(PageId, Access)>,
    limit: usize,
) -> Option<(Vec<PageId>, Access)> {
    let access = queue.front()?.1;
    let alike = queue.iter().take(limit).take_while(|(_, other)| *other == access).count();
    Some((queue.drain(..alike).map(|(page, _)| page).collect(), access))
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
        let (signals, limit) = (Arc::clone(&pool.signals), pool.batch_pages());
        let pool = Arc::downgrade(pool);
        let body = Box::new(move || prefetch(&signals, limit, &pool));
        tasks.push(env.spawner.spawn("pool-prefetch", body));
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

fn prefetch(signals: &Signals, limit: usize, pool: &Weak<BufferPool>) {
    while let Some((pages, access)) = signals.next_prefetch(limit) {
        let Some(pool) = pool.upgrade() else { return };
        // The operation that needs a page which failed loads it itself and gets the error.
        let loaded = pool.load_missing(&pages, access).pins.len();
        pool.counters.add(Counter::Prefetches, loaded as u64);
    }
}
