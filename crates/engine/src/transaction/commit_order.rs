//! Commit timestamps, and the number that a snapshot is (paper 000 §4.2).
//!
//! ```text
//!   CTS handed out:      1   2   3   4   5
//!   slot is filled:      ✓   ✓   –   ✓   –
//!                            ▲ max_committed: every timestamp up to here can be looked up
//! ```
//!
//! The paper makes handing out a timestamp and filling the transaction's slot one step under a lock, so
//! that `CTS_max_committed` never passes a slot that is not filled. Here both are free of locks: whoever
//! has filled its slot marks the timestamp in a window, and `max_committed` moves over what is marked
//! without a gap. The counters lie in a fabric region, for nodes that take snapshots from afar; what those may
//! see is durable.
//!
//! Invariant: `durable ≤ max_committed ≤ last`, and every transaction with `cts ≤ max_committed` has its slot filled.

use crossbeam_utils::CachePadded;
use firn_base::Cts;
use firn_fabric::OwnedRegion;

use crate::sync::{AtomicU64, Ordering, yield_now};

/// The region of both counters and of what is durable.
pub(super) const REGION: &str = "timestamps";
/// Word of the region: the last timestamp that was handed out.
pub const LAST_WORD: usize = 0;
/// Word of the region: what a snapshot taken now sees. On a cache line of its own.
pub const MAX_COMMITTED_WORD: usize = 8;
/// Word of the region: up to which timestamp all commits are durable, which is what other nodes may see.
pub(super) const DURABLE_WORD: usize = 16;
/// Words that the region needs.
pub const REGION_WORDS: usize = 24;

/// Commits that may be between timestamp and filled slot at once.
#[cfg(not(feature = "shuttle"))]
const WINDOW: u64 = 8192;
/// Small, so that tests wrap around it.
#[cfg(feature = "shuttle")]
const WINDOW: u64 = 4;

/// See the module's page.
#[derive(Debug)]
pub struct CommitOrder {
    region: OwnedRegion,
    filled: Box<[CachePadded<AtomicU64>]>,
}

impl CommitOrder {
    /// Continues after `last`, of which everything is committed.
    ///
    /// # Panics
    /// If the region is too small.
    #[must_use]
    pub fn new(region: OwnedRegion, last: Cts) -> CommitOrder {
        assert!(region.words().len() >= REGION_WORDS, "the region holds the counters");
        region.words()[LAST_WORD].store(last.0, Ordering::Release);
        region.words()[MAX_COMMITTED_WORD].store(last.0, Ordering::Release);
        region.words()[DURABLE_WORD].store(last.0, Ordering::Release);
        let filled = (0..WINDOW).map(|_| CachePadded::new(AtomicU64::new(0))).collect();
        CommitOrder { region, filled }
    }

    fn max_committed_word(&self) -> &AtomicU64 {
        &self.region.words()[MAX_COMMITTED_WORD]
    }

    /// What a snapshot taken now sees.
    #[must_use]
    pub fn max_committed(&self) -> Cts {
        Cts(self.max_committed_word().load(Ordering::SeqCst))
    }

    /// Up to which timestamp all commits are durable, as far as other nodes have been told.
    #[must_use]
    pub fn durable(&self) -> Cts {
        Cts(self.region.words()[DURABLE_WORD].load(Ordering::SeqCst))
    }

    /// Tells other nodes that all commits up to `cts` are durable. Never goes back.
    pub fn publish_durable(&self, cts: Cts) {
        self.region.words()[DURABLE_WORD].fetch_max(cts.0, Ordering::SeqCst);
    }

    /// The last timestamp that was handed out.
    #[must_use]
    pub fn last(&self) -> Cts {
        Cts(self.region.words()[LAST_WORD].load(Ordering::Acquire))
    }

    /// Hands out the next timestamp. The caller fills its slot soon and calls [`CommitOrder::publish`]:
    /// until then no later commit becomes visible.
    #[must_use]
    pub fn allocate(&self) -> Cts {
        let cts = self.region.words()[LAST_WORD].fetch_add(1, Ordering::AcqRel) + 1;
        while cts - self.max_committed().0 >= WINDOW {
            yield_now();
        }
        Cts(cts)
    }

    /// Marks the slot of `cts` as filled and moves `max_committed` as far as there is no gap.
    pub fn publish(&self, cts: Cts) {
        self.filled[(cts.0 % WINDOW) as usize].store(cts.0, Ordering::SeqCst);
        let mut reached = self.max_committed().0;
        loop {
            let next = reached + 1;
            if self.filled[(next % WINDOW) as usize].load(Ordering::SeqCst) != next {
                return;
            }
            let moved = self.max_committed_word().compare_exchange(
                reached,
                next,
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
            reached = moved.map_or_else(|found| found, |_| next);
        }
    }

    /// Blocks until a snapshot taken from now on sees `cts`: a moment, if at all.
    pub fn wait_visible(&self, cts: Cts) {
        while self.max_committed() < cts {
            yield_now();
        }
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
