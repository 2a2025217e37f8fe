//! Which lock spaces certainly have no explicit lock: one load on a writer's path.
//!
//! A fixed array of counters, indexed by a hash of the space, counts the structures that have an
//! entry of the space: each shard with a queue in it, and each range. Zero proves that there is
//! none. Another value may come from another space with the same hash, and then the shard decides.
//!
//! A counter is incremented before the request that needs it returns. The reader's leaf latch
//! orders the increment before its own load (README, rule 8), so acquire and release are enough.

use super::target::{LockSpace, space_hash};
use crate::sync::{AtomicU32, Ordering};

/// Counters; two spaces share one with a probability of 1 in this number.
const COUNTERS: usize = if cfg!(feature = "shuttle") { 2 } else { 1024 };

#[derive(Debug)]
pub(super) struct Occupancy {
    counters: Box<[AtomicU32]>,
}

impl Occupancy {
    pub(super) fn new() -> Occupancy {
        Occupancy { counters: (0..COUNTERS).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Counts one more structure that has an entry of `space`.
    pub(super) fn enter(&self, space: LockSpace) {
        self.counter(space).fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn leave(&self, space: LockSpace) {
        let before = self.counter(space).fetch_sub(1, Ordering::AcqRel);
        assert!(before > 0, "no structure has entered {space}");
    }

    /// Whether `space` has no explicit lock. False may be wrong: then the shard decides.
    pub(super) fn is_vacant(&self, space: LockSpace) -> bool {
        self.counter(space).load(Ordering::Acquire) == 0
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counters.iter().all(|counter| counter.load(Ordering::Acquire) == 0)
    }

    fn counter(&self, space: LockSpace) -> &AtomicU32 {
        &self.counters[space_hash(space) % COUNTERS]
    }
}
