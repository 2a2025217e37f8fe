//! The engine's counters, as differences over a measurement.

use firn_engine::transaction::TransactionSystem;

/// A reading of the counters, or a difference of two.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) splits: u64,
    pub(crate) merges: u64,
    pub(crate) right_moves: u64,
    pub(crate) restarts: u64,
    /// Structure changes that waited for another one of the same tree.
    pub(crate) structure_waits: u64,
    /// Snapshots and transactions that waited for the list of active transactions.
    pub(crate) list_waits: u64,
    /// Page latches that were not free at once.
    pub(crate) latch_waits: u64,
    /// Row locks that were not free at once.
    pub(crate) lock_waits: u64,
    pub(crate) syncs: u64,
    pub(crate) log_bytes: u64,
    /// Pages read from the page store.
    pub(crate) misses: u64,
    /// Waits because no page could be evicted.
    pub(crate) eviction_waits: u64,
}

impl Counts {
    /// The counters as they are.
    pub(crate) fn read(system: &TransactionSystem) -> Counts {
        let (tree, pages) = (system.forest().statistics(), system.pages());
        let pool = pages.pool.statistics();
        Counts {
            splits: tree.splits.get(),
            merges: tree.merges.get(),
            right_moves: tree.right_moves.get(),
            restarts: tree.restarts.get(),
            structure_waits: tree.structure_waits.get(),
            list_waits: system.active_list_waits(),
            latch_waits: pool.blocked_shared + pool.blocked_exclusive,
            lock_waits: system.locks().statistics().waits,
            syncs: pages.log.round_count(),
            log_bytes: pages.log.end_lsn().0,
            misses: pool.misses,
            eviction_waits: pool.eviction_waits,
        }
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            splits: self.splits - earlier.splits,
            merges: self.merges - earlier.merges,
            right_moves: self.right_moves - earlier.right_moves,
            restarts: self.restarts - earlier.restarts,
            structure_waits: self.structure_waits - earlier.structure_waits,
            list_waits: self.list_waits - earlier.list_waits,
            latch_waits: self.latch_waits - earlier.latch_waits,
            lock_waits: self.lock_waits - earlier.lock_waits,
            syncs: self.syncs - earlier.syncs,
            log_bytes: self.log_bytes - earlier.log_bytes,
            misses: self.misses - earlier.misses,
            eviction_waits: self.eviction_waits - earlier.eviction_waits,
        }
    }
}
