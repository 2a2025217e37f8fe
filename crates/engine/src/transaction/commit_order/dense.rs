//! Timestamps of one node, without gaps. A transaction that has filled its slot marks its timestamp
//! in a window, and `max_committed` advances over marked timestamps up to the first gap.

use crossbeam_utils::CachePadded;
use firn_base::Cts;

use super::Counters;
use crate::sync::{AtomicU64, Ordering, yield_now};

/// The most commits that may have a timestamp and not yet a filled slot.
#[cfg(not(feature = "shuttle"))]
const WINDOW: u64 = 8192;
/// Small, so that tests wrap around it.
#[cfg(feature = "shuttle")]
const WINDOW: u64 = 4;

pub(super) struct Dense {
    filled: Box<[CachePadded<AtomicU64>]>,
}

impl Dense {
    pub(super) fn new() -> Dense {
        Dense { filled: (0..WINDOW).map(|_| CachePadded::new(AtomicU64::new(0))).collect() }
    }

    pub(super) fn allocate(&self, counters: &Counters) -> Cts {
        let cts = counters.last().fetch_add(1, Ordering::AcqRel) + 1;
        while cts - counters.max_committed().load(Ordering::SeqCst) >= WINDOW {
            yield_now();
        }
        Cts(cts)
    }

    /// Marks the slot of `cts` as filled, and advances `max_committed` up to the first gap.
    pub(super) fn publish(&self, counters: &Counters, cts: Cts) {
        self.filled[(cts.0 % WINDOW) as usize].store(cts.0, Ordering::SeqCst);
        let max_committed = counters.max_committed();
        let mut reached = max_committed.load(Ordering::SeqCst);
        loop {
            let next = reached + 1;
            if self.filled[(next % WINDOW) as usize].load(Ordering::SeqCst) != next {
                return;
            }
            let moved =
                max_committed.compare_exchange(reached, next, Ordering::SeqCst, Ordering::SeqCst);
            reached = moved.map_or_else(|found| found, |_| next);
        }
    }
}
