//! The owners of locks, and the locks that each was granted.
//!
//! A transaction appears here with its first explicit lock (or when it registers its weight) and
//! disappears with [`Owners::remove`]. The shard's mutex ensures rule 9: one critical section asks
//! whether an implicit holder is still active and records the lock, and another one removes the
//! owner. Whichever comes second sees the first:
//!
//! ```text
//!   make_explicit first:  the lock is on the list when the removal takes the list away
//!   removal first:        the transaction table had said "finished" before, so is_active is false
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::TrxId;
use rustc_hash::FxHashMap;

use super::target::Locked;
use crate::sync::{Event, Mutex};

/// Mutexes over which owners are spread by their ids.
const SHARDS: usize = if cfg!(feature = "shuttle") { 2 } else { 64 };

/// Approximate size of a key.
const KEY_BYTES: usize = 32;

/// What an owner waits on, and what its rollback costs.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) event: Event,
    weight: Arc<AtomicU64>,
}

impl Waiter {
    /// Undo records written so far.
    pub(super) fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct Owner {
    weight: Option<Arc<AtomicU64>>,
    /// Made for the owner's first wait.
    waiter: Option<Arc<Waiter>>,
    /// Granted locks. A lock may be listed twice, and some may have been released since.
    locks: Vec<Locked>,
}

/// What remains of a removed owner.
#[derive(Debug)]
pub(super) struct Estate {
    pub(super) locks: Vec<Locked>,
    /// The waiter's event, if the owner ever had to wait.
    pub(super) waiter: Option<Arc<Waiter>>,
}

/// One shard of the owners.
#[derive(Debug)]
pub(super) struct Owners {
    shards: Box<[Mutex<FxHashMap<TrxId, Owner>>]>,
}

impl Owners {
    pub(super) fn new() -> Owners {
        Owners { shards: (0..SHARDS).map(|_| Mutex::new(FxHashMap::default())).collect() }
    }

    fn shard(&self, owner: TrxId) -> &Mutex<FxHashMap<TrxId, Owner>> {
        &self.shards[owner.0 as usize % SHARDS]
    }

    /// Registers the weight of `owner`.
    pub(super) fn register(&self, owner: TrxId, weight: Arc<AtomicU64>) {
        self.shard(owner).lock().entry(owner).or_default().weight = Some(weight);
    }

    /// Notes that `owner` has been granted `locked`.
    pub(super) fn note(&self, owner: TrxId, locked: Locked) {
        self.shard(owner).lock().entry(owner).or_default().locks.push(locked);
    }

    /// If `is_active()`, records a lock for `owner` that `grant` makes (rule 9).
    pub(super) fn note_if_active(
        &self,
        owner: TrxId,
        is_active: impl FnOnce() -> bool,
        grant: impl FnOnce() -> Locked,
    ) -> bool {
        let mut owners = self.shard(owner).lock();
        let active = is_active();
        if active {
            owners.entry(owner).or_default().locks.push(grant());
        }
        active
    }

    /// Removes `locked` from the list of `owner`.
    pub(super) fn forget(&self, owner: TrxId, locked: &Locked) {
        let mut owners = self.shard(owner).lock();
        let Some(locks) = owners.get_mut(&owner).map(|owner| &mut owner.locks) else { return };
        // A lock that is released early was usually taken last.
        if let Some(position) = locks.iter().rposition(|listed| listed == locked) {
            locks.swap_remove(position);
        }
    }

    pub(super) fn waiter(&self, owner: TrxId) -> Arc<Waiter> {
        let mut owners = self.shard(owner).lock();
        let owner = owners.entry(owner).or_default();
        let weight = &owner.weight;
        let waiter = owner.waiter.get_or_insert_with(|| {
            let weight = weight.clone().unwrap_or_default();
            Arc::new(Waiter { event: Event::new(), weight })
        });
        Arc::clone(waiter)
    }

    /// Approximate memory of the owners and their locks: each lock is here and in its queue.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_owner = |owner: &Owner| {
            size_of::<(TrxId, Owner)>() + owner.locks.len() * 2 * (size_of::<Locked>() + KEY_BYTES)
        };
        let of_shard = |shard: &Mutex<FxHashMap<TrxId, Owner>>| {
            shard.lock().values().map(of_owner).sum::<usize>()
        };
        self.shards.iter().map(of_shard).sum()
    }

    /// Removes `owner`; `None` if it is unknown.
    pub(super) fn remove(&self, owner: TrxId) -> Option<Estate> {
        let owner = self.shard(owner).lock().remove(&owner)?;
        Some(Estate { locks: owner.locks, waiter: owner.waiter })
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }
}
