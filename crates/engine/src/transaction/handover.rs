//! Open transactions that go on at the next writer (paper 001 §3.5: a planned switch).
//!
//! A restart rolls back what was open. A writer that ends on purpose *hands its open transactions
//! over* instead. The changes and the undo are in the log already; what a transaction has in memory
//! goes in a message:
//!
//! ```text
//!   this writer                                       the next one
//!   each: marker in its undo log, snapshot, locks     for each: the marker is the last record?
//!   no more commits                                      yes: it goes on, with snapshot and locks
//!   commits above the oldest snapshot                     no: it is a loser like any other
//!   all of that durable, or sent: ─ HandedOver ─►     a second marker: a crash makes it a loser
//! ```
//!
//! The first marker is that of a prepared transaction, whose identifier is the handover's number
//! with a prefix that no client's identifier has. Replicas know it as open, and `XA RECOVER` does
//! not show it.
//!
//! Rules, cited by number:
//!
//! 1. *A transaction goes on from what was handed over, or not at all*: its undo log ends with the
//!    marker of this very handover, behind the record that the message names.
//! 2. *A snapshot that goes on sees what it saw.* A restart forgets when transactions committed and
//!    takes all of them as old. So the commits that the oldest snapshot does not see are entered
//!    again, and none is missing: nothing commits after they were listed. Purge starts at the
//!    oldest snapshot, as it did here.
//! 3. *Nobody comes between*: locks and snapshots are there before the first session, and before
//!    purge and rollback begin.
//!
//! 4. *Snapshots of nodes that follow go on, too*: their transactions move to the next writer when
//!    they learn of it. Until then a transaction that nobody asks for has the oldest of them.
//!
//! We depart from the paper, where the new node finds the transactions in the undo space and asks
//! the proxy for the rest: a snapshot and locks that only read leave nothing there.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use firn_api::rows::{
    DetachedLocks, HandedLock, HandedOver, HandedTarget, HandedTransaction, HandedWriter,
    IsolationLevel,
};
use firn_base::event::Event;
use firn_base::{Lsn, TrxId};
use firn_format::undo::UndoPointer;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::EngineError;
use crate::lock::{Extent, LockMode, LockSpace, LockTarget, Locked, Outcome};
use crate::metadata_lock::locks_of;
use crate::sync::Ordering;
use crate::transaction::handle::{Transaction, Writer};
use crate::transaction::system::TransactionSystem;
use crate::transaction::undo::{UndoLog, Work};
use crate::transaction::versions::ReadView;

/// The first bytes of a marker's identifier. A client's begins with its format, which is a positive
/// number of 32 bits.
const MARKER_PREFIX: [u8; 8] = *b"\xff\xff\xffhand\xff";
/// How many commits are handed over at most. A snapshot that does not see more than these, because
/// it is very old, does not go on.
const MOST_COMMITS: usize = 1 << 18;
/// How often a commit that waits for the end of a handover looks whether the log has failed.
const LOOK: Duration = Duration::from_millis(10);

/// The identifier of a handover's markers.
fn marker(handover: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&MARKER_PREFIX);
    bytes[8..].copy_from_slice(&handover.to_le_bytes());
    bytes
}

/// The handover whose marker has this identifier; `None` for a client's.
pub(crate) fn handover_of(xid: &[u8]) -> Option<u64> {
    let number = xid.strip_prefix(&MARKER_PREFIX)?;
    number.try_into().ok().map(u64::from_le_bytes)
}

/// Whether transactions may commit.
#[derive(Debug, Default)]
pub(crate) struct CommitGate {
    is_closed: AtomicBool,
    opened: Event,
}

impl CommitGate {
    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    fn open(&self) {
        self.is_closed.store(false, Ordering::SeqCst);
        self.opened.notify_all();
    }

    /// A commit asks this again once it has its timestamp: it and [`TransactionSystem::hand_over`],
    /// which closes the gate before it reads the last timestamp, do not miss each other.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }
}

impl Transaction {
    /// See [`firn_api::rows::Transaction::hand_over`]. The locks on rows come with
    /// [`TransactionSystem::hand_over`]. Blocks for I/O.
    ///
    /// # Errors
    /// If the transaction has ended, the log has failed, or a page cannot be read.
    pub fn hand_over(
        &mut self,
        handover: u64,
        session: u64,
        locks: &DetachedLocks,
    ) -> Result<Option<HandedTransaction>, EngineError> {
        self.check_open()?;
        let snapshot = match &self.view {
            None => None,
            Some(ReadView::Timestamp(snapshot)) => Some(*snapshot),
            Some(ReadView::ActiveList(_)) => return Ok(None),
        };
        let writer = self.writer.as_ref().map(|writer| {
            let UndoLog { trx, last, records, .. } = &writer.undo;
            HandedWriter { trx: *trx, last: last.to_u64(), records: *records }
        });
        if let Some(writer) = self.writer.as_ref().filter(|writer| writer.undo.records > 0) {
            self.system.write_prepared(&writer.undo, &marker(handover))?;
        }
        Ok(Some(HandedTransaction {
            session,
            isolation: self.isolation,
            writer,
            snapshot,
            row_locks: Vec::new(),
            table_locks: locks_of(locks),
        }))
    }

    /// Forgets the transaction, as a writer does that ends: nothing of it is undone here.
    #[cfg(test)]
    pub(crate) fn leave(mut self) {
        self.writer = None;
        self.finish();
    }
}

impl TransactionSystem {
    /// Forbids commits and collects what the next writer must know (rule 2). Blocks until all of it
    /// is durable.
    ///
    /// # Errors
    /// If the log has failed. Then commits are allowed again, and fail as the log does.
    pub(crate) fn hand_over(
        &self,
        handover: u64,
        transactions: Vec<HandedTransaction>,
    ) -> Result<HandedOver, EngineError> {
        self.gate().close();
        let collected = self.collect(handover, transactions);
        collected.inspect_err(|_| self.keep_writing())
    }

    pub(crate) fn keep_writing(&self) {
        self.gate().open();
    }

    fn collect(
        &self,
        handover: u64,
        mut transactions: Vec<HandedTransaction>,
    ) -> Result<HandedOver, EngineError> {
        // Commits that had their timestamps already are in the table after this.
        self.order().close_up_to(self.order().last())?;
        transactions.extend(self.of_followers());
        let mut commits = match transactions.iter().filter_map(|one| one.snapshot).min() {
            Some(oldest) => self.table().commits_after(oldest),
            None => Vec::new(),
        };
        if commits.len() > MOST_COMMITS {
            commits.sort_unstable_by_key(|(_, cts)| std::cmp::Reverse(*cts));
            let oldest = commits[MOST_COMMITS].1;
            commits.truncate(MOST_COMMITS);
            transactions.retain(|one| one.snapshot.is_none_or(|snapshot| snapshot >= oldest));
        }
        self.add_row_locks(&mut transactions);
        self.pages().log.wait_durable(self.pages().log.end_lsn())?;
        Ok(HandedOver { number: handover, transactions, commits })
    }

    /// Rule 4.
    fn of_followers(&self) -> Option<HandedTransaction> {
        self.snapshots().have_peers().then(|| HandedTransaction {
            session: HandedTransaction::OF_FOLLOWERS,
            isolation: IsolationLevel::RepeatableRead,
            writer: None,
            snapshot: Some(self.snapshots().horizon()),
            row_locks: Vec::new(),
            table_locks: Vec::new(),
        })
    }

    fn add_row_locks(&self, transactions: &mut [HandedTransaction]) {
        let owner = |one: &HandedTransaction| one.writer.map(|writer| writer.trx);
        let owners: FxHashSet<TrxId> = transactions.iter().filter_map(owner).collect();
        let mut locks: FxHashMap<TrxId, Vec<HandedLock>> = FxHashMap::default();
        let held = self.locks().snapshot().into_iter().filter(|lock| lock.wait.is_none());
        for lock in held.filter(|lock| owners.contains(&lock.owner)) {
            locks.entry(lock.owner).or_default().push(handed(&lock.locked, lock.mode));
        }
        for one in transactions {
            one.row_locks = owner(one).and_then(|trx| locks.remove(&trx)).unwrap_or_default();
        }
    }

    /// Waits while commits are forbidden. Nothing may be latched.
    ///
    /// # Errors
    /// The log has failed, because another node writes it now.
    pub(crate) fn wait_for_gate(&self) -> Result<(), EngineError> {
        while self.gate().is_closed() {
            if let Some(failure) = self.pages().log.failure() {
                return Err(failure.into());
            }
            self.gate().opened.wait_until(Some(LOOK), || !self.gate().is_closed());
        }
        Ok(())
    }

    /// Goes on with the transactions of the writer before. `expected` has the undo logs that the
    /// restart has found; those that do not go on become losers. Call it before the background
    /// tasks begin (rule 3).
    ///
    /// # Errors
    /// The log has failed, a page cannot be read, or there is no memory.
    pub(crate) fn go_on_with(
        self: &Arc<Self>,
        handed: &HandedOver,
        mut expected: Expected,
        losers: &mut Vec<UndoLog>,
    ) -> Result<Vec<(HandedTransaction, Transaction)>, EngineError> {
        self.enter_commits(handed)?;
        let mut going_on = Vec::new();
        for one in &handed.transactions {
            let undo = expected.found(one);
            if let Some(transaction) = self.go_on(one, undo)? {
                going_on.push((one.clone(), transaction));
            }
        }
        losers.extend(expected.into_losers());
        Ok(going_on)
    }

    /// Enters the commits that a snapshot which goes on does not see (rule 2).
    fn enter_commits(&self, handed: &HandedOver) -> Result<(), EngineError> {
        for (trx, cts) in &handed.commits {
            self.table().begin(*trx, self.snapshots().horizon())?;
            // Whatever a session of the writer before has seen is durable.
            self.table().commit(*trx, *cts, Lsn::default());
        }
        Ok(())
    }

    /// Goes on with a transaction of the writer before. `undo`: its undo log, if that ends as it
    /// was handed over (rule 1), and `None` otherwise. `None` if the transaction cannot go on.
    ///
    /// # Errors
    /// The log has failed, a page cannot be read, or too many transactions are open.
    fn go_on(
        self: &Arc<Self>,
        handed: &HandedTransaction,
        undo: Option<UndoLog>,
    ) -> Result<Option<Transaction>, EngineError> {
        let changes = handed.writer.map_or(0, |writer| writer.records);
        if changes > 0 && undo.is_none() {
            return Ok(None);
        }
        let mut transaction = Transaction::begin(self, handed.isolation)?;
        if let Some(snapshot) = handed.snapshot {
            transaction.open_at(snapshot)?;
        }
        if let Some(undo) = undo {
            // From here on, a crash rolls it back.
            self.begin_rollback(&undo)?;
            let trx = undo.trx;
            let weight = Arc::new(AtomicU64::new(undo.records));
            self.locks().register(trx, Arc::clone(&weight));
            transaction.go_on_as(Writer { undo, weight, scratch: Vec::new() });
        }
        if !handed.row_locks.is_empty() {
            let owner = transaction.ensure_writer()?;
            handed.row_locks.iter().for_each(|lock| self.lock_again(owner, lock));
        }
        Ok(Some(transaction))
    }

    fn lock_again(&self, owner: TrxId, lock: &HandedLock) {
        let as_slice = |bound: &'_ Bound<Vec<u8>>| bound.as_ref().map(Vec::clone);
        let mode = if lock.is_exclusive { LockMode::Exclusive } else { LockMode::Shared };
        let (low, high);
        let target = match &lock.target {
            HandedTarget::Key(index, key) => LockTarget::Record { index: *index, key },
            HandedTarget::Table(table) => LockTarget::Table { table: *table },
            HandedTarget::Range(index, from, to) => {
                (low, high) = (as_slice(from), as_slice(to));
                let low = low.as_ref().map(Vec::as_slice);
                let high = high.as_ref().map(Vec::as_slice);
                LockTarget::Range { index: *index, low, high }
            }
        };
        let outcome = self.locks().request(owner, target, mode);
        assert!(!matches!(outcome, Outcome::Queued(_)), "locks that were held do not conflict");
    }
}

fn handed(locked: &Locked, mode: LockMode) -> HandedLock {
    let target = match (&locked.space, &locked.extent) {
        (LockSpace::Table(table), _) => HandedTarget::Table(*table),
        (LockSpace::Index(index), Extent::Key(key)) => HandedTarget::Key(*index, key.to_vec()),
        (LockSpace::Index(index), Extent::Range(range)) => {
            let (low, high) = (range.low().map(<[u8]>::to_vec), range.high().map(<[u8]>::to_vec));
            HandedTarget::Range(*index, low, high)
        }
    };
    HandedLock { target, is_exclusive: mode == LockMode::Exclusive }
}

/// The undo logs of a restart that end with the marker of this handover, as it describes them
/// (rule 1).
#[derive(Debug, Default)]
pub(crate) struct Expected {
    number: u64,
    /// The last change, and how many there are.
    writers: FxHashMap<TrxId, (UndoPointer, u64)>,
    found: FxHashMap<TrxId, UndoLog>,
}

impl Expected {
    pub(crate) fn of(handed: &HandedOver) -> Expected {
        let writers = handed.transactions.iter().filter_map(|one| one.writer);
        let place = |writer: HandedWriter| {
            (writer.trx, (UndoPointer::from_u64(writer.last), writer.records))
        };
        Expected {
            number: handed.number,
            writers: writers.map(place).collect(),
            found: FxHashMap::default(),
        }
    }

    /// Takes an undo log that ends with the marker of a handover, or gives it back: a loser.
    pub(crate) fn take(&mut self, number: u64, undo: UndoLog) -> Option<UndoLog> {
        match self.writers.get(&undo.trx) {
            Some((last, records)) if number == self.number && *last == undo.last => {
                let undo = UndoLog { records: *records, work: Work::AllBefore, ..undo };
                self.found.insert(undo.trx, undo);
                None
            }
            _ => Some(undo),
        }
    }

    /// The undo log of a transaction that was found.
    pub(crate) fn found(&mut self, handed: &HandedTransaction) -> Option<UndoLog> {
        self.found.remove(&handed.writer?.trx)
    }

    /// Those that were found and do not go on after all.
    pub(crate) fn into_losers(self) -> impl Iterator<Item = UndoLog> {
        self.found.into_values()
    }
}
