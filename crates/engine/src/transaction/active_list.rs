//! The baseline for snapshots: a global list of active transactions that every snapshot copies under a
//! mutex. Only there to be measured against.

use firn_base::TrxId;
use parking_lot::Mutex;

/// Active transactions in the order of their ids.
#[derive(Debug, Default)]
pub struct ActiveList {
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    active: Vec<TrxId>,
    highest: TrxId,
}

/// A copy of the list.
#[derive(Debug, Clone)]
pub struct ActiveListView {
    active: Vec<TrxId>,
    highest: TrxId,
}

impl ActiveList {
    /// Enters a transaction that begins.
    pub fn add(&self, trx: TrxId) {
        let mut list = self.list.lock();
        let at = list.active.partition_point(|active| *active < trx);
        list.active.insert(at, trx);
        list.highest = list.highest.max(trx);
    }

    /// Takes out a transaction that has ended.
    pub fn remove(&self, trx: TrxId) {
        let mut list = self.list.lock();
        if let Ok(at) = list.active.binary_search(&trx) {
            list.active.remove(at);
        }
    }

    /// Copies the list.
    #[must_use]
    pub fn copy(&self) -> ActiveListView {
        let list = self.list.lock();
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
