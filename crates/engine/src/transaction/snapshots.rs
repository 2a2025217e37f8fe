//! The registry of open snapshots: how the engine knows what nobody reads any more.
//!
//! Each open snapshot stands in a slot of its own, on a cache line of its own; opening one is two stores
//! and two loads. The oldest one bounds what may be purged and which transaction slots may be recycled:
//!
//! ```text
//!   horizon ≤ every registered snapshot ≤ max_committed
//! ```
//!
//! A snapshot that is just being opened could be missed by a scan. So the scanner *announces* the
//! horizon before it scans a second time, and the opener looks at the announcement after it has
//! registered: either the scan sees the registration, or the opener sees the announcement and begins
//! again with a newer timestamp. Both sides use sequentially consistent operations for this.

use crossbeam_utils::CachePadded;
use firn_base::Cts;

use crate::free_list::FreeList;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use crate::transaction::commit_order::CommitOrder;

const FREE: u64 = u64::MAX;

/// See the module's page.
#[derive(Debug)]
pub struct Snapshots {
    slots: Box<[CachePadded<AtomicU64>]>,
    free: FreeList<usize>,
    /// Slots at and above this index were never used.
    used: AtomicUsize,
    announced: AtomicU64,
    horizon: AtomicU64,
}

/// A place for one snapshot at a time; a session keeps one.
#[derive(Debug)]
pub struct SnapshotSlot {
    index: usize,
}

/// There are as many open snapshots as the registry has slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many open transactions: at most {limit} can be open at once")]
pub struct TooManySnapshots {
    /// How many slots there are.
    pub limit: usize,
}

impl Snapshots {
    /// A registry of `limit` slots; nothing older than `horizon` will be asked for.
    #[must_use]
    pub fn new(limit: usize, horizon: Cts) -> Snapshots {
        Snapshots {
            slots: (0..limit).map(|_| CachePadded::new(AtomicU64::new(FREE))).collect(),
            free: FreeList::new(),
            used: AtomicUsize::new(0),
            announced: AtomicU64::new(horizon.0),
            horizon: AtomicU64::new(horizon.0),
        }
    }

    /// What a registry of `limit` slots takes in memory.
    pub(crate) fn size_bytes(limit: usize) -> usize {
        limit * (size_of::<CachePadded<AtomicU64>>() + size_of::<usize>())
    }

    /// Takes a slot; give it back with [`Snapshots::give_back`].
    ///
    /// # Errors
    /// [`TooManySnapshots`].
    pub fn take(&self) -> Result<SnapshotSlot, TooManySnapshots> {
        let index = self.free.take().or_else(|| self.take_unused());
        index
            .map(|index| SnapshotSlot { index })
            .ok_or(TooManySnapshots { limit: self.slots.len() })
    }

    #[cold]
    fn take_unused(&self) -> Option<usize> {
        let next = |used: usize| (used < self.slots.len()).then_some(used + 1);
        self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()
    }

    /// Closes the slot's snapshot, if one is open, and frees the slot.
    pub fn give_back(&self, slot: SnapshotSlot) {
        self.close(&slot);
        self.free.put(slot.index);
    }

    /// Opens a snapshot of everything committed so far.
    pub fn open(&self, slot: &SnapshotSlot, order: &CommitOrder) -> Cts {
        loop {
            let snapshot = order.max_committed();
            self.slots[slot.index].store(snapshot.0, Ordering::SeqCst);
            if self.announced.load(Ordering::SeqCst) <= snapshot.0 {
                return snapshot;
            }
        }
    }

    /// Registers an older snapshot than the newest, for as long as another one keeps it alive.
    ///
    /// # Panics
    /// If the snapshot is already behind the horizon.
    pub fn share(&self, slot: &SnapshotSlot, snapshot: Cts) {
        self.slots[slot.index].store(snapshot.0, Ordering::SeqCst);
        let horizon = self.horizon.load(Ordering::SeqCst);
        assert!(horizon <= snapshot.0, "a shared snapshot is kept alive by its owner");
    }

    /// Closes the slot's snapshot.
    pub fn close(&self, slot: &SnapshotSlot) {
        self.slots[slot.index].store(FREE, Ordering::SeqCst);
    }

    fn oldest(&self, limit: u64) -> u64 {
        let used = self.used.load(Ordering::SeqCst);
        let open = self.slots[..used].iter().map(|slot| slot.load(Ordering::SeqCst));
        open.min().unwrap_or(FREE).min(limit)
    }

    /// Computes the horizon anew, up to `limit`, which some snapshot could have been by now: every open
    /// snapshot, and every one opened later, is at or above it. For one background task.
    pub fn advance_horizon(&self, limit: Cts) -> Cts {
        let candidate = self.oldest(limit.0);
        self.announced.fetch_max(candidate, Ordering::SeqCst);
        let horizon = self.oldest(candidate);
        self.horizon.fetch_max(horizon, Ordering::SeqCst);
        self.horizon()
    }

    /// The horizon as last computed.
    #[must_use]
    pub fn horizon(&self) -> Cts {
        Cts(self.horizon.load(Ordering::SeqCst))
    }

    /// How many snapshots are open. Takes a look at each slot.
    #[must_use]
    pub fn open_count(&self) -> usize {
        let used = self.used.load(Ordering::SeqCst);
        self.slots[..used].iter().filter(|slot| slot.load(Ordering::SeqCst) != FREE).count()
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
