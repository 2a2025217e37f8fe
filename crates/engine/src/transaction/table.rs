//! The transaction information table (paper 000 §4.2, "TIT"): the outcome of each recent
//! transaction.
//!
//! The table is an array of slots in a fabric region; a transaction's slot is its id modulo the
//! number of slots. Begin and commit write only that slot, and a reader needs two or three loads:
//!
//! ```text
//!   slot word 0   transaction id      0: free
//!        word 1   outcome             the commit timestamp, or ACTIVE or COMMITTING with the id
//!        word 2   commit LSN          the commit's position in the log
//!        word 3   owner's latch       0: open, 1: held (begin, finish and offload of this slot)
//! ```
//!
//! A reader that finds another id, or zero, knows that the transaction has ended and is visible to
//! every snapshot: a slot is recycled only when its timestamp is at or below the horizon of all
//! snapshots. If a transaction finds its slot taken by one that cannot be recycled yet, it
//! *offloads* that one to further regions ([`overflow`]). These are nearly always empty, and then
//! readers skip them.
//!
//! `COMMITTING` is for two-phase commit (paper 000 §4.3): another node is choosing the timestamp,
//! and a reader waits until it is known. The owner sets it, or the coordinator by one compare and
//! swap on the region. That is why the outcome of an open transaction contains its id: a slot may
//! pass to another transaction at any moment, and then the compare and swap fails.
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
//! 4. A remote coordinator takes no latch, and changes nothing but ACTIVE to COMMITTING. So an
//!    owner that takes an ACTIVE outcome away swaps it, and acts by what it finds. While such an
//!    entry is on its way to the overflow, its copy there is MOVING: readers and coordinators look
//!    again.

pub(super) mod overflow;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_base::{Cts, Lsn, TrxId};
use firn_fabric::{Fabric, FabricError, OwnedRegion};

use self::overflow::Overflow;
use crate::pages::{Restart, UnfinishedCommit};
use crate::sync::{AtomicU64, Event, Ordering, spin};

pub(super) const REGION: &str = "transaction-table";
pub const SLOT_WORDS: usize = 4;

const ID: usize = 0;
const OUTCOME: usize = 1;
const COMMIT_LSN: usize = 2;
const LATCH: usize = 3;

/// The outcome of a transaction that has not ended, with its id in the low bits. Commit timestamps
/// are below it.
const ACTIVE: u64 = 1 << 63;
/// With [`ACTIVE`]: the timestamp is being chosen.
const COMMITTING: u64 = 1 << 62;
/// With [`ACTIVE`]: the entry is being offloaded.
const MOVING: u64 = 1 << 61;

/// The outcome word of a transaction that is ACTIVE.
pub(super) const fn active(trx: TrxId) -> u64 {
    ACTIVE | trx.0
}

/// The outcome word of a transaction that is COMMITTING.
pub(super) const fn committing(trx: TrxId) -> u64 {
    ACTIVE | COMMITTING | trx.0
}

/// The outcome word of an ACTIVE transaction that is being offloaded.
pub(super) const fn moving(trx: TrxId) -> u64 {
    ACTIVE | MOVING | trx.0
}

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
        if self.outcome & ACTIVE == 0 {
            Outcome::Committed(Cts(self.outcome), Lsn(self.commit_lsn))
        } else if self.outcome & COMMITTING == 0 {
            Outcome::Active
        } else {
            Outcome::Committing
        }
    }

    /// Whether the owner is offloading the entry: look again (rule 4).
    pub(super) fn is_moving(self) -> bool {
        self.outcome & (ACTIVE | MOVING) == ACTIVE | MOVING
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
        let entry = Entry {
            outcome: slot[OUTCOME].load(Ordering::Relaxed),
            commit_lsn: slot[COMMIT_LSN].load(Ordering::Relaxed),
        };
        let offloads = occupant != TrxId::NONE && !entry.is_settled(horizon);
        let is_moving = offloads && entry.outcome == active(occupant);
        if offloads {
            let outcome = if is_moving { moving(occupant) } else { entry.outcome };
            self.overflow.insert(occupant, Entry { outcome, ..entry }, self.header())?;
            self.offloads.fetch_add(1, Ordering::Relaxed);
        }
        slot[ID].store(0, Ordering::SeqCst);
        let left = slot[OUTCOME].swap(active(trx), Ordering::SeqCst);
        slot[COMMIT_LSN].store(0, Ordering::Relaxed);
        slot[ID].store(trx.0, Ordering::SeqCst);
        if is_moving {
            self.overflow.set(occupant, Entry { outcome: left, commit_lsn: 0 });
        }
        Ok(())
    }

    /// Sets a transaction whose timestamp another node is choosing to COMMITTING: readers wait for
    /// its outcome. Returns whether it was ACTIVE before.
    ///
    /// # Panics
    /// If the transaction is not in the table: a prepared transaction is there until it ends.
    pub fn set_committing(&self, trx: TrxId) -> bool {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        let word = match slot[ID].load(Ordering::Relaxed) == trx.0 {
            true => &slot[OUTCOME],
            false => self.overflow.outcome_word(trx),
        };
        let (from, to) = (active(trx), committing(trx));
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Records the commit: from now on, snapshots at or after `cts` see the transaction.
    pub fn commit(&self, trx: TrxId, cts: Cts, commit_lsn: Lsn) {
        self.set(trx, Entry { outcome: cts.0, commit_lsn: commit_lsn.0 });
    }

    fn set(&self, trx: TrxId, entry: Entry) {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        let before = if slot[ID].load(Ordering::Relaxed) == trx.0 {
            slot[COMMIT_LSN].store(entry.commit_lsn, Ordering::SeqCst);
            slot[OUTCOME].swap(entry.outcome, Ordering::SeqCst)
        } else {
            self.overflow.set(trx, entry)
        };
        self.wake_waiters(trx, before);
    }

    /// Wakes the readers that wait for the outcome of `trx`. Usually this node decides, and there
    /// are none.
    fn wake_waiters(&self, trx: TrxId, before: u64) {
        if before == committing(trx) {
            self.decided.notify_all();
        }
    }

    /// Removes a transaction that was rolled back, after all its changes were undone (rule 3).
    pub fn remove(&self, trx: TrxId) {
        let slot = self.slot(trx);
        let _latch = self.latch(slot);
        let before = if slot[ID].load(Ordering::Relaxed) == trx.0 {
            slot[ID].store(0, Ordering::SeqCst);
            slot[OUTCOME].load(Ordering::SeqCst)
        } else {
            self.overflow.remove(trx, self.header())
        };
        self.wake_waiters(trx, before);
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
        loop {
            match self.overflow.get(trx) {
                None => return Outcome::Settled,
                Some(entry) if !entry.is_moving() => return entry.outcome(),
                Some(_) => spin(),
            }
        }
    }

    /// The reason to interrupt an operation that depends on a transaction which is
    /// [`Outcome::Committing`]. `cancelled` ends its wait.
    #[cold]
    pub(crate) fn undecided(&self, cancelled: Option<&Arc<AtomicBool>>) -> Restart {
        let changed = Arc::clone(&self.decided);
        Restart::Unfinished(UnfinishedCommit { changed, cancelled: cancelled.cloned() })
    }

    /// The commits after a timestamp, sorted by id. The caller keeps the horizon at or below the
    /// timestamp, and none of them may be committing now.
    #[must_use]
    pub fn commits_after(&self, cts: Cts) -> Vec<(TrxId, Cts)> {
        let mut found = Vec::new();
        let mut note = |trx: TrxId| match self.outcome(trx) {
            Outcome::Committed(at, _) if at > cts => found.push((trx, at)),
            _ => {}
        };
        let slots = self.region.words()[..self.header_start].chunks_exact(SLOT_WORDS);
        slots.for_each(|slot| note(TrxId(slot[ID].load(Ordering::SeqCst))));
        self.overflow.ids().into_iter().for_each(&mut note);
        // One that was offloaded in between was met twice.
        found.sort_unstable();
        found.dedup();
        found
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
