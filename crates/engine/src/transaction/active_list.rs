//! The baseline for snapshots: a global list of active transactions, which every snapshot copies
//! under a mutex. It exists only for measurements against it.

use firn_base::TrxId;
use parking_lot::{Mutex, MutexGuard};

use crate::tree::statistics::Counter;

/// Active transactions in the order of their ids.
#[derive(Debug, Default)]
pub struct ActiveList {
    list: Mutex<List>,
    waits: Counter,
}

#[derive(Debug, Default)]
struct List {
    active: Vec<TrxId>,
    highest: TrxId,
}

/// A snapshot's copy of the list.
#[derive(Debug, Clone)]
pub struct ActiveListView {
    active: Vec<TrxId>,
    highest: TrxId,
}

impl ActiveList {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.try_lock().unwrap_or_else(|| {
            self.waits.add(1);
            self.list.lock()
        })
    }

    /// How often a thread found the mutex taken.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits.get()
    }

    /// Adds a transaction that begins.
    pub fn add(&self, trx: TrxId) {
        let mut list = self.lock();
        let at = list.active.partition_point(|active| *active < trx);
        list.active.insert(at, trx);
        list.highest = list.highest.max(trx);
    }

    /// Removes a transaction that has ended.
    pub fn remove(&self, trx: TrxId) {
        let mut list = self.lock();
        if let Ok(at) = list.active.binary_search(&trx) {
            list.active.remove(at);
        }
    }

    #[must_use]
    pub fn copy(&self) -> ActiveListView {
        let list = self.lock();
        ActiveListView { active: list.active.clone(), highest: list.highest }
    }
}

impl ActiveListView {
    /// Whether `trx` had ended when the list was copied.
    #[must_use]
    pub fn sees(&self, trx: TrxId) -> bool {
        trx <= self.highest && self.active.binary_search(&trx).is_err()
    }
}
