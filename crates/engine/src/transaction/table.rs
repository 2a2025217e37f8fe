//! The transaction information table (paper 000 §4.2, "TIT"): the outcome of each recent
//! transaction.
//!
//! The table is an array of slots in a fabric region; a transaction's slot is its id modulo the
//! number of slots. Begin and commit write only that slot, and a reader needs two or three loads:
//!
//! ```text
//!   slot word 0   transaction id      0: free
//!        word 1   outcome             ACTIVE, COMMITTING, or the commit timestamp
//!        word 2   commit LSN          the commit's position in the log
//!        word 3   owner's latch       0: open, 1: held (begin, finish and offload of this slot)
//! ```
//!
//! A reader that finds another id, or zero, knows that the transaction has ended and is visible to
//! every snapshot: a slot is recycled only when its timestamp is at or below the horizon of all
//! snapshots. If a transaction finds its slot taken by one that cannot be recycled yet, it
//! *offloads* that one to further regions ([`overflow`]). These are nearly always empty, and then
//! readers skip them. `COMMITTING` is for two-phase commit: another node is choosing the timestamp,
//! and a reader waits until it is known.
//!
//! After the slots, two words say how many entries were offloaded and to how many regions, so that
//! a peer that has only the regions decides like the owner ([`super::remote`]).
//!
//! Departures: the slot has no pointer to a transaction object, which nothing here needs. It stores
//! the commit's LSN, so that a reader knows whether what it saw is durable.
//!
//! Rules, cited by number:
//!
//! 1. A slot's words change only under its own latch, and the id is zero while the others change.
//! 2. An entry is offloaded before its slot is reused.
//! 3. A transaction that rolls back leaves the table after its last change was undone. So "not in
//!    the table" never stands for a change that will be undone. Readers look a transaction up while
//!    they hold the record's page latch.

pub(super) mod overflow;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_base::{Cts, Lsn, TrxId};
use firn_fabric::{Fabric, FabricError, OwnedRegion};

use self::overflow::Overflow;
use crate::pages::{Restart, UnfinishedCommit};
use crate::sync::{AtomicU64, Event, Ordering, spin};

/// The region of the table.
pub(super) const REGION: &str = "transaction-table";
/// Words of one slot.
pub const SLOT_WORDS: usize = 4;

const ID: usize = 0;
const OUTCOME: usize = 1;
const COMMIT_LSN: usize = 2;
const LATCH: usize = 3;

const ACTIVE: u64 = u64::MAX;
const COMMITTING: u64 = u64::MAX - 1;

/// The outcome of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It has not ended (running, rolling back or prepared).
    Active,
    /// It is committing, and the timestamp is not known yet: look again.
    Committing,
    /// It has committed at this timestamp; its commit record is at this position in the log.
    Committed(Cts, Lsn),
    /// It ended so long ago that every snapshot sees its changes.
    Settled,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) outcome: u64,
    pub(super) commit_lsn: u64,
}

impl Entry {
    pub(super) fn outcome(self) -> Outcome {
        match self.outcome {
            ACTIVE => Outcome::Active,
            COMMITTING => Outcome::Committing,
            cts => Outcome::Committed(Cts(cts), Lsn(self.commit_lsn)),
        }
    }

    fn is_settled(self, horizon: Cts) -> bool {
        self.outcome <= horizon.0
    }
}

#[derive(Debug)]
pub struct TransactionTable {
    region: OwnedRegion,
    slot_mask: u64,
    /// Where the two words after the slots begin.
    header_start: usize,
    overflow: Overflow,
    offloads: AtomicU64,
    /// Notified when a transaction that was [`Outcome::Committing`] has its outcome.
    decided: Arc<Event>,
}

/// A held slot latch (rule 1).
struct SlotLatch<'a>(&'a [AtomicU64]);

impl Drop for SlotLatch<'_> {
    fn drop(&mut self) {
        self.0[LATCH].store(0, Ordering::Release);
    }
}

impl TransactionTable {
    /// The length of the region for a table with `slots` slots.
    #[must_use]
    pub const fn region_words(slots: usize) -> usize {
        slots * SLOT_WORDS + overflow::HEADER_WORDS
    }

    /// An empty table of `slots` slots in regions of the fabric.
    ///
    /// # Errors
    /// If the fabric has a region with that name already, or no memory for it.
    ///
    /// # Panics
    /// If the number of slots is not a power of two.
    pub fn register(
        fabric: Arc<dyn Fabric>,
        slots: usize,
    ) -> Result<TransactionTable, FabricError> {
        assert!(slots.is_power_of_two(), "the number of slots is a power of two");
        Ok(TransactionTable {
            region: fabric.register(REGION, TransactionTable::region_words(slots))?,
            slot_mask: slots as u64 - 1,
            header_start: slots * SLOT_WORDS,
            overflow: Overflow::new(fabric),
            offloads: AtomicU64::new(0),
            decided: Arc::default(),
        })
    }

    /// The two words after the slots.
    fn header(&self) -> &[AtomicU64] {
        &self.region.words()[self.header_start..]
    }

    /// The memory of the table in bytes.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(self.region.words()) + self.overflow.size_bytes()
    }

    fn slot(&self, trx: TrxId) -> &[AtomicU64] {
        let start = (trx.0 & self.slot_mask) as usize * SLOT_WORDS;
        &self.region.words()[start..start + SLOT_WORDS]
    }

    fn latch<'a>(&self, slot: &'a [AtomicU64]) -> SlotLatch<'a> {
        while slot[LATCH].compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err()
        {
            spin();
        }
        SlotLatch(slot)
    }

    /// Enters a new transaction. Never waits for another transaction.
    ///
    /// # Errors
    /// If another transaction must be offloaded and the fabric has no memory for it. The new
    /// transaction is not in the table then.
    pub fn begin(&self, trx: TrxId, horizon: Cts) -> Result<(), FabricError> {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        let occupant = TrxId(slot[ID].load(Ordering::Relaxed));
        if occupant != TrxId::NONE {
            let entry = Entry {
                outcome: slot[OUTCOME].load(Ordering::Relaxed),
                commit_lsn: slot[COMMIT_LSN].load(Ordering::Relaxed),
            };
            if !entry.is_settled(horizon) {
                self.overflow.insert(occupant, entry, self.header())?;
                self.offloads.fetch_add(1, Ordering::Relaxed);
            }
        }
        slot[ID].store(0, Ordering::SeqCst);
        slot[OUTCOME].store(ACTIVE, Ordering::SeqCst);
        slot[COMMIT_LSN].store(0, Ordering::Relaxed);
        slot[ID].store(trx.0, Ordering::SeqCst);
        Ok(())
    }

    /// Marks a transaction whose timestamp another node is choosing (two-phase commit).
    pub fn set_committing(&self, trx: TrxId) {
        self.set(trx, Entry { outcome: COMMITTING, commit_lsn: 0 });
    }

    /// Records the commit: from now on, snapshots at or after `cts` see the transaction.
    pub fn commit(&self, trx: TrxId, cts: Cts, commit_lsn: Lsn) {
        self.set(trx, Entry { outcome: cts.0, commit_lsn: commit_lsn.0 });
    }

    fn set(&self, trx: TrxId, entry: Entry) {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        let before = if slot[ID].load(Ordering::Relaxed) == trx.0 {
            let before = slot[OUTCOME].load(Ordering::Relaxed);
            slot[COMMIT_LSN].store(entry.commit_lsn, Ordering::SeqCst);
            slot[OUTCOME].store(entry.outcome, Ordering::SeqCst);
            before
        } else {
            self.overflow.set(trx, entry)
        };
        // Usually this node decides, and no reader waits for the outcome.
        if before == COMMITTING {
            self.decided.notify_all();
        }
    }

    /// Removes a transaction that was rolled back, after all its changes were undone (rule 3).
    pub fn remove(&self, trx: TrxId) {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        if slot[ID].load(Ordering::Relaxed) == trx.0 {
            slot[ID].store(0, Ordering::SeqCst);
        } else {
            self.overflow.remove(trx, self.header());
        }
    }

    /// The outcome of `trx`. Takes no lock.
    #[must_use]
    pub fn outcome(&self, trx: TrxId) -> Outcome {
        let words = self.region.words();
        let start = (trx.0 & self.slot_mask) as usize * SLOT_WORDS;
        let slot = &words[start..start + SLOT_WORDS];
        if slot[ID].load(Ordering::SeqCst) == trx.0 {
            let outcome = slot[OUTCOME].load(Ordering::SeqCst);
            let commit_lsn = slot[COMMIT_LSN].load(Ordering::SeqCst);
            if slot[ID].load(Ordering::SeqCst) == trx.0 {
                return Entry { outcome, commit_lsn }.outcome();
            }
        }
        // The usual case: every snapshot sees the row's writer. Readers ask this for each row.
        if words[self.header_start + overflow::COUNT].load(Ordering::SeqCst) == 0 {
            return Outcome::Settled;
        }
        self.offloaded_outcome(trx)
    }

    #[cold]
    fn offloaded_outcome(&self, trx: TrxId) -> Outcome {
        self.overflow.get(trx).map_or(Outcome::Settled, Entry::outcome)
    }

    /// The reason to interrupt an operation that depends on a transaction which is
    /// [`Outcome::Committing`]. `cancelled` ends its wait.
    #[cold]
    pub(crate) fn undecided(&self, cancelled: Option<&Arc<AtomicBool>>) -> Restart {
        let changed = Arc::clone(&self.decided);
        Restart::Unfinished(UnfinishedCommit { changed, cancelled: cancelled.cloned() })
    }

    /// Whether `trx` has not ended.
    #[must_use]
    pub fn is_active(&self, trx: TrxId) -> bool {
        matches!(self.outcome(trx), Outcome::Active | Outcome::Committing)
    }

    /// Removes offloaded transactions that every snapshot sees. Called by a background task.
    pub fn recycle(&self, horizon: Cts) {
        if self.header()[overflow::COUNT].load(Ordering::SeqCst) > 0 {
            self.overflow.recycle(horizon, self.header());
        }
    }

    /// How often a transaction was offloaded, and how many are offloaded now.
    #[must_use]
    pub fn offload_counts(&self) -> (u64, u64) {
        let now = self.header()[overflow::COUNT].load(Ordering::Relaxed);
        (self.offloads.load(Ordering::Relaxed), now)
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
