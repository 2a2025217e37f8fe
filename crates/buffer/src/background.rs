//! The pool's tasks: the cleaner, which keeps a stock of free frames, and the prefetchers.
//!
//! A task keeps the pool alive only while it works on it. In between it holds only the [`Signals`],
//! and ends when they say so.

use std::sync::{Arc, Weak};

use firn_base::Environment;

use crate::pool::{BufferPool, BufferPoolOptions};
use crate::signals::{PrefetchShare, Signals};
use crate::statistics::Counter;

impl BufferPool {
    /// Starts the tasks that `options` ask for.
    pub(crate) fn start_tasks(self: &Arc<Self>, env: &Environment, options: &BufferPoolOptions) {
        let mut tasks = self.tasks.lock();
        if options.clean_ahead {
            let (signals, pool) = (Arc::clone(&self.signals), Arc::downgrade(self));
            tasks.push(env.spawner.spawn("pool-clean", Box::new(move || clean(&signals, &pool))));
        }
        for _ in 0..options.prefetch_tasks {
            let share = PrefetchShare { tasks: options.prefetch_tasks, limit: self.batch_pages() };
            let (signals, pool) = (Arc::clone(&self.signals), Arc::downgrade(self));
            let body = Box::new(move || prefetch(&signals, share, &pool));
            tasks.push(env.spawner.spawn("pool-prefetch", body));
        }
    }
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

fn prefetch(signals: &Signals, share: PrefetchShare, pool: &Weak<BufferPool>) {
    while let Some((pages, access)) = signals.next_prefetch(share) {
        let Some(pool) = pool.upgrade() else { return };
        // The operation that needs a page which failed loads it itself and gets the error.
        let loaded = pool.load_missing(&pages, access).pins.len();
        pool.counters.add(Counter::Prefetches, loaded as u64);
    }
}
