//! The signals between the pool and its tasks. Waiting tasks hold this and not the pool, so that
//! they do not keep the pool alive.

use std::collections::VecDeque;

use firn_base::{PageId, SpaceId};

use crate::frame::Access;
use crate::sync::{AtomicBool, Event, Mutex, Ordering};

/// The most pages in the prefetch queue; later ones are dropped.
const PREFETCH_QUEUE: usize = 1024;

/// The signals that the tasks wait for, and the pages to prefetch.
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

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// The next pages to prefetch, for one kind of access: one task's share of what is queued.
    /// `None` when the tasks must end. Blocks.
    pub(crate) fn next_prefetch(&self, share: PrefetchShare) -> Option<(Vec<PageId>, Access)> {
        let mut next = None;
        self.prefetch_queued.wait_until(None, || {
            next = take_batch(&mut self.prefetch.lock(), share);
            next.is_some() || self.is_stopped()
        });
        next.filter(|_| !self.is_stopped())
    }
}

/// How much of the queue a prefetching task takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrefetchShare {
    /// How many tasks take from the queue.
    pub(crate) tasks: usize,
    /// The most pages at once.
    pub(crate) limit: usize,
}

/// If one task took everything, the pages would be checked by one thread while the others sleep,
/// and the disk would idle until the last page has landed.
fn take_batch(
    queue: &mut VecDeque<(PageId, Access)>,
    share: PrefetchShare,
) -> Option<(Vec<PageId>, Access)> {
    let access = queue.front()?.1;
    let limit = queue.len().div_ceil(share.tasks).min(share.limit);
    let alike = queue.iter().take(limit).take_while(|(_, other)| *other == access).count();
    Some((queue.drain(..alike).map(|(page, _)| page).collect(), access))
}
