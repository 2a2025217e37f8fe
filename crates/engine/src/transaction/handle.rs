//! A transaction, as its session uses it.
//!
//! ```text
//!   begin ──► reads, writes, savepoints ──► commit ──► (durable)
//!                    │                  ├─► rollback
//!                    └─ deadlock ──────►┘
//!                                       └─► prepare ──► commit or rollback, also after a crash
//! ```
//!
//! A transaction gets an id with its first write or lock, and a snapshot with its first consistent
//! read. The snapshot is closed when the transaction ends, and under READ COMMITTED when the
//! statement ends.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::{
    CommitListener, Confirmation, DetachedLocks, IsolationLevel, MetadataContext, MetadataLock,
    Prepared,
};
use firn_base::{Cts, Lsn, TableId, TrxId};
use firn_format::undo::UndoPointer;

use crate::error::EngineError;
use crate::lock::{LockError, LockMode, LockTarget, Outcome as LockOutcome, Wait};
use crate::log::completions::Completion;
use crate::log::writer::Purpose;
use crate::metadata_lock::LockContext;
use crate::transaction::read_transaction::ReadTransaction;
use crate::transaction::system::TransactionSystem;
use crate::transaction::undo::UndoLog;

/// The part of a transaction that writes: its id and its undo log.
pub(crate) struct Writer {
    pub(crate) undo: UndoLog,
    /// The number of undo records, by which the lock manager chooses victims.
    pub(crate) weight: Arc<AtomicU64>,
    /// Memory for the value that is being written.
    pub(crate) scratch: Vec<u8>,
}

/// Most records are at most this long.
const USUAL_RECORD_BYTES: usize = 512;

/// A point in a transaction to which it can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(pub(crate) UndoPointer);

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    pub(crate) read: ReadTransaction,
    pub(crate) system: Arc<TransactionSystem>,
    pub(crate) writer: Option<Writer>,
    lock_wait_timeout: Duration,
    /// Whether a write to a record that has changed since the snapshot is refused.
    pub(crate) first_updater_wins: bool,
    /// Whether the transaction drops whole tables, which must work on a full disk.
    frees_space: bool,
    metadata: Option<Arc<LockContext>>,
}

impl Deref for Transaction {
    type Target = ReadTransaction;

    #[inline]
    fn deref(&self) -> &ReadTransaction {
        &self.read
    }
}

impl DerefMut for Transaction {
    #[inline]
    fn deref_mut(&mut self) -> &mut ReadTransaction {
        &mut self.read
    }
}

impl Transaction {
    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If the number of open transactions has reached the limit.
    pub fn begin(
        system: &Arc<TransactionSystem>,
        isolation: IsolationLevel,
    ) -> Result<Transaction, EngineError> {
        Ok(Transaction {
            read: ReadTransaction::begin(system.versions(), isolation)?,
            system: Arc::clone(system),
            writer: None,
            lock_wait_timeout: system.options().lock_wait_timeout,
            first_updater_wins: system.options().first_updater_wins,
            frees_space: false,
            metadata: None,
        })
    }

    /// Begins a transaction at a snapshot that another node has chosen. It sees commits up to that
    /// timestamp, and no later commit of this node gets a timestamp that it would see. Blocks for a
    /// round trip to the source of timestamps, and for commits that are being written.
    ///
    /// # Errors
    /// As [`Transaction::begin`]; if the snapshot is too old, or the source of timestamps refuses
    /// it.
    pub fn begin_at(
        system: &Arc<TransactionSystem>,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> Result<Transaction, EngineError> {
        let mut transaction = Transaction::begin(system, isolation)?;
        system.order().close_up_to(snapshot)?;
        transaction.open_at(snapshot)?;
        Ok(transaction)
    }

    /// The transaction's id, if it has one already.
    #[must_use]
    pub fn id(&self) -> Option<TrxId> {
        self.writer.as_ref().map(|writer| writer.undo.trx)
    }

    /// Sets the longest wait for a lock.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    /// Lets the transaction use the room in the log that is reserved for commits and rollbacks,
    /// because it drops a table.
    pub(crate) fn free_space(&mut self) {
        self.frees_space = true;
    }

    /// The purpose of a change, for the log.
    pub(crate) fn purpose(&self, deletes: bool) -> Purpose {
        match (self.frees_space, deletes) {
            (true, _) => Purpose::Completion,
            (false, true) => Purpose::Freeing,
            (false, false) => Purpose::Forward,
        }
    }

    /// Sets whether REPEATABLE READ refuses a write to a record that has changed since the
    /// snapshot. Otherwise the write changes the current version, and the transaction overwrites
    /// updates that it has not seen.
    pub fn set_first_updater_wins(&mut self, refuses: bool) {
        self.first_updater_wins = refuses;
    }

    /// The session's metadata locks; see [`firn_api::rows::Transaction::set_metadata_context`].
    pub fn set_metadata_context(&mut self, context: Arc<LockContext>) {
        self.metadata = Some(context);
    }

    /// Another reader of the same snapshot and of this transaction's own writes. It has no slot in
    /// the registry of snapshots: this transaction's slot covers both. Everything that the reader
    /// sees is in the log by now, so the end of this transaction waits until the log is durable up
    /// to here.
    ///
    /// The caller drops the reader before the snapshot is closed. `None` if reads take locks.
    pub fn open_reader(&mut self) -> Option<Transaction> {
        if self.isolation == IsolationLevel::Serializable || self.ended {
            return None;
        }
        let sibling = self.open_sibling();
        self.note_observed_all();
        Some(Transaction {
            read: sibling,
            system: Arc::clone(&self.system),
            writer: None,
            lock_wait_timeout: self.lock_wait_timeout,
            first_updater_wins: self.first_updater_wins,
            frees_space: false,
            metadata: None,
        })
    }

    /// Goes on as a transaction of the writer before.
    pub(super) fn go_on_as(&mut self, writer: Writer) {
        self.own = Some(writer.undo.trx);
        self.writer = Some(writer);
    }

    /// Gives the transaction an id and an undo segment, unless it has them.
    pub(crate) fn ensure_writer(&mut self) -> Result<TrxId, EngineError> {
        if let Some(writer) = &self.writer {
            return Ok(writer.undo.trx);
        }
        let trx = self.system.begin_trx()?;
        let undo = match self.system.undo().bind(trx) {
            Ok(undo) => undo,
            Err(error) => {
                self.system.table().remove(trx);
                return Err(error);
            }
        };
        let weight = Arc::new(AtomicU64::new(0));
        self.system.locks().register(trx, Arc::clone(&weight));
        let scratch = Vec::with_capacity(USUAL_RECORD_BYTES);
        self.writer = Some(Writer { undo, weight, scratch });
        self.own = Some(trx);
        Ok(trx)
    }

    /// Locks a table as a whole: shared for its use, exclusive for a change of its definition.
    /// Blocks.
    ///
    /// # Errors
    /// If the lock is not granted.
    pub fn lock_table(&mut self, table: TableId, mode: LockMode) -> Result<(), EngineError> {
        let trx = self.ensure_writer()?;
        let is_covered = |context: &LockContext| context.holds(table, MetadataLock::Write);
        if mode == LockMode::Shared && self.metadata.as_deref().is_some_and(is_covered) {
            return Ok(());
        }
        match self.system.locks().request(trx, LockTarget::Table { table }, mode) {
            LockOutcome::Granted | LockOutcome::Held => Ok(()),
            LockOutcome::Queued(wait) => self.wait(wait),
        }
    }

    /// Waits for a lock. If the transaction was chosen to break a deadlock, it is rolled back.
    pub(crate) fn wait(&mut self, wait: Wait) -> Result<(), EngineError> {
        let timeout = Some(self.lock_wait_timeout);
        let waits_at_rows = |owner: Option<TrxId>| {
            if let Some(context) = &self.metadata {
                context.waits_at_rows(owner.map(|owner| owner.0));
            }
        };
        waits_at_rows(Some(wait.owner()));
        let waited = self.system.locks().wait_unless(wait, timeout, self.read.cancelled.as_deref());
        waits_at_rows(None);
        match waited {
            Ok(()) => Ok(()),
            Err(error) => {
                if matches!(error, LockError::Deadlock { .. }) {
                    self.end_by_rollback()?;
                }
                Err(error.into())
            }
        }
    }

    /// A savepoint at the current point.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        let last = self.writer.as_ref().map_or(UndoPointer::NONE, |writer| writer.undo.last);
        Savepoint(last)
    }

    /// Undoes all changes since `savepoint`; locks are kept. Blocks.
    ///
    /// # Errors
    /// Errors of the page store and the log; the caller must then roll the transaction back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), EngineError> {
        self.check_open()?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.system.undo_back_to(writer.undo.last, savepoint.0)?;
        writer.undo.last = savepoint.0;
        Ok(())
    }

    /// Commits, and blocks until the commit is durable. A transaction that only read waits until
    /// everything that it saw is durable, which it nearly always is.
    ///
    /// # Errors
    /// [`EngineError::OutcomeUnknown`] if the log does not confirm the commit: it may or may not
    /// survive a restart. With any other error the transaction is not committed.
    pub fn commit(mut self) -> Result<(), EngineError> {
        self.end_by_commit()
    }

    /// As [`Transaction::commit`], without moving the transaction.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn end_by_commit(&mut self) -> Result<(), EngineError> {
        let (cts, lsn) = self.commit_in_memory()?;
        let waited = self.system.pages().log.wait_durable(lsn);
        let Some(cts) = cts else { return Ok(waited?) };
        self.system.order().wait_visible(cts);
        waited.map_err(EngineError::OutcomeUnknown)
    }

    /// As [`Transaction::commit`], but if many commits share a round of the log, the thread may
    /// leave before the commit is durable: `listener` gets the outcome. Every later snapshot sees
    /// the transaction.
    ///
    /// # Errors
    /// As [`Transaction::commit`]; the listener is not called then.
    pub fn commit_or_leave(
        mut self,
        listener: &Arc<dyn CommitListener>,
    ) -> Result<Confirmation, EngineError> {
        let (cts, lsn) = self.commit_in_memory()?;
        let Some(cts) = cts else {
            self.system.pages().log.wait_durable(lsn)?;
            return Ok(Confirmation::Durable);
        };
        self.system.order().wait_visible(cts);
        let waited = self.system.pages().log.wait_or_leave(lsn, listener);
        waited.map_err(EngineError::OutcomeUnknown)
    }

    /// Commits, and calls `completion` when the commit is durable, so that one thread can have many
    /// commits in flight. Does not wait for the log. Every later snapshot sees the transaction, in
    /// particular the session's next one.
    ///
    /// # Errors
    /// If the transaction has ended or the log has failed already; `completion` is not called then.
    pub fn commit_then(mut self, completion: Completion) -> Result<(), EngineError> {
        let (cts, lsn) = self.commit_in_memory()?;
        if let Some(cts) = cts {
            self.system.order().wait_visible(cts);
        }
        self.system.pages().log.when_durable(lsn, completion);
        Ok(())
    }

    /// Commits. The commit becomes durable soon, without a notification. Does not wait for the log.
    ///
    /// # Errors
    /// If the transaction has ended or the log has failed already.
    pub fn commit_without_waiting(self) -> Result<(), EngineError> {
        self.commit_then(Completion::nobody())
    }

    fn commit_in_memory(&mut self) -> Result<(Option<Cts>, Lsn), EngineError> {
        self.check_open()?;
        let writes = self.writer.as_ref().is_some_and(|writer| writer.undo.records > 0);
        // Before the writer is taken: without a timestamp the transaction is rolled back.
        let reserved = if writes { self.system.prepare_commit(None)? } else { None };
        let mut committed = (None, self.observed.get());
        if let Some(writer) = self.writer.take() {
            let (cts, lsn) = self.system.commit_writer(writer.undo, reserved)?;
            committed = (Some(cts), lsn.max(self.observed.get()));
        }
        self.finish();
        Ok(committed)
    }

    /// Undoes all changes. Blocks.
    ///
    /// # Errors
    /// Errors of the page store and the log; the next start undoes the rest.
    pub fn rollback(mut self) -> Result<(), EngineError> {
        self.end_by_rollback()
    }

    fn end_by_rollback(&mut self) -> Result<(), EngineError> {
        let outcome = match self.writer.take() {
            Some(writer) => self.system.rollback_writer(writer.undo),
            None => Ok(()),
        };
        self.finish();
        outcome
    }

    /// Prepares the transaction under `xid`: it survives its session and a crash, until
    /// [`TransactionSystem::commit_prepared`] or [`TransactionSystem::rollback_prepared`] ends it.
    /// It keeps its row locks and takes over `locks`. Blocks until this is durable.
    ///
    /// # Errors
    /// If the identifier is too long or in use; [`EngineError::OutcomeUnknown`] if the log does not
    /// confirm that the transaction is prepared.
    pub fn prepare(mut self, xid: &[u8], locks: DetachedLocks) -> Result<Prepared, EngineError> {
        self.check_open()?;
        self.ensure_writer()?;
        let writer = self.writer.take().expect("just ensured");
        let lsn = match self.system.prepare_writer(&writer.undo, xid) {
            Ok(lsn) => lsn,
            Err(error) => {
                self.writer = Some(writer);
                return Err(error);
            }
        };
        let trx = writer.undo.trx;
        let lowest = self.system.add_prepared(xid, writer.undo, locks);
        let observed = self.observed.get();
        self.finish();
        let position = lsn.max(observed);
        let waited = self.system.pages().log.wait_durable(position);
        waited.map_err(EngineError::OutcomeUnknown)?;
        Ok(Prepared { position, lowest, trx })
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Err(error) = self.end_by_rollback()
            && !error.is_fatal()
        {
            tracing::error!(%error, "a transaction could not be rolled back; its rows stay locked");
        }
    }
}

impl Writer {
    /// Reports the cost of a rollback to the lock manager.
    pub(crate) fn publish_weight(&self) {
        self.weight.store(self.undo.records, Ordering::Relaxed);
    }
}
