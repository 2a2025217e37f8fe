//! Counters of rare events in the trees.

use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of all trees.
#[derive(Debug, Default)]
pub struct TreeStatistics {
    /// Pages that were split, roots included.
    pub splits: Counter,
    /// Pages that were merged into their left neighbour.
    pub merges: Counter,
    /// Descents that followed a right link.
    pub right_moves: Counter,
    pub restarts: Counter,
    /// Structure changes that waited for another one of the same tree (baseline only).
    pub structure_waits: Counter,
}
