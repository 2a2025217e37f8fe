//! Shards in groups: which mutexes an operation takes.
//!
//! A space hashes to a group, a key to a shard of that group. The range list belongs to the group:
//!
//! ```text
//!   group        shards 0 1 2 … 15   (a mutex each)
//!                ranges              (read with any shard's mutex held, changed with all)
//! ```
//!
//! So a thread that holds one shard sees a stable range list without taking other shards (README,
//! rules 5 and 6).

use std::sync::Arc;

use super::occupancy::Occupancy;
use super::range::Ranges;
use super::table::{LockTable, RangeAccess, Records, Wanted};
use super::target::shard_hash;
use crate::sync::{
    AtomicUsize, Mutex, MutexGuard, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard,
};

/// Shards of a group.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 16 };

/// A group of shards and its range list.
#[derive(Debug)]
pub(super) struct Group {
    shards: [Mutex<Records>; SHARDS],
    ranges: RwLock<Ranges>,
    /// Number of ranges, and of waiting ranges. Stored with all shards' mutexes held, so a load
    /// with one of them held is exact.
    range_count: AtomicUsize,
    waiting_ranges: AtomicUsize,
}

/// The mutexes of one operation, held.
#[derive(Debug)]
pub(super) enum Scope<'a> {
    /// One shard. `ranges` is `None` if there are no ranges.
    Narrow { shard: MutexGuard<'a, Records>, ranges: Option<RwLockReadGuard<'a, Ranges>> },
    Wide {
        /// Boxed, so that the common narrow scope is cheap to move.
        shards: Box<[MutexGuard<'a, Records>]>,
        ranges: RwLockWriteGuard<'a, Ranges>,
        group: &'a Group,
    },
}

impl Group {
    pub(super) fn new(occupancy: &Arc<Occupancy>) -> Group {
        Group {
            shards: std::array::from_fn(|_| Mutex::new(Records::new(Arc::clone(occupancy)))),
            ranges: RwLock::new(Ranges::new(Arc::clone(occupancy))),
            range_count: AtomicUsize::new(0),
            waiting_ranges: AtomicUsize::new(0),
        }
    }

    /// Locks what a change at `wanted` needs: all shards for a range, or while a range waits.
    pub(super) fn enter(&self, wanted: Wanted<'_>) -> Scope<'_> {
        if let Wanted::Key(key) = wanted {
            let shard = self.shards[shard_hash(key) % SHARDS].lock();
            if self.waiting_ranges.load(Ordering::Relaxed) == 0 {
                return self.narrow(shard);
            }
        }
        self.enter_wide()
    }

    /// Locks what reading the state of `key` needs.
    pub(super) fn look(&self, key: &[u8]) -> Scope<'_> {
        self.narrow(self.shards[shard_hash(key) % SHARDS].lock())
    }

    /// Takes all mutexes of the group, in the order of rule 5.
    pub(super) fn enter_wide(&self) -> Scope<'_> {
        let shards = self.shards.iter().map(Mutex::lock).collect();
        Scope::Wide { shards, ranges: self.ranges.write(), group: self }
    }

    fn narrow<'a>(&'a self, shard: MutexGuard<'a, Records>) -> Scope<'a> {
        let has_ranges = self.range_count.load(Ordering::Relaxed) > 0;
        Scope::Narrow { shard, ranges: has_ranges.then(|| self.ranges.read()) }
    }
}

impl<'a> Scope<'a> {
    /// The decisions over what this scope holds.
    pub(super) fn table(&mut self) -> LockTable<'_, MutexGuard<'a, Records>> {
        match self {
            Scope::Narrow { shard, ranges } => {
                let ranges = ranges.as_deref().map_or(RangeAccess::None, RangeAccess::Shared);
                LockTable::new(std::slice::from_mut(shard), ranges)
            }
            Scope::Wide { shards, ranges, .. } => {
                LockTable::new(shards, RangeAccess::Exclusive(ranges))
            }
        }
    }
}

impl Drop for Scope<'_> {
    fn drop(&mut self) {
        if let Scope::Wide { ranges, group, .. } = self {
            group.range_count.store(ranges.locks().len(), Ordering::Relaxed);
            group.waiting_ranges.store(ranges.waiting(), Ordering::Relaxed);
        }
    }
}
