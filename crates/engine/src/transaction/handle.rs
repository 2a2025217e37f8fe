//! A transaction, as its session holds it.
//!
//! ```text
//!   begin ──► reads, writes, savepoints ──► commit ──► (durable)
//!                    │                  ├─► rollback
//!                    └─ deadlock ──────►┘
//!                                       └─► prepare ──► commit or rollback, also after a crash
//! ```
//!
//! It gets an id with its first write or lock, and a snapshot with its first consistent read. A
//! snapshot is closed when the transaction ends, and under READ COMMITTED when the statement does.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::{DetachedLocks, IsolationLevel, MetadataContext, MetadataLock, Prepared};
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
    /// Undo records, as the lock manager weighs victims.
    pub(crate) weight: Arc<AtomicU64>,
    /// Memory for the value that is being written.
    pub(crate) scratch: Vec<u8>,
}

/// Most records are no longer.
const USUAL_RECORD_BYTES: usize = 512;

/// A place in a transaction to which it can be rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(pub(crate) UndoPointer);

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    pub(crate) read: ReadTransaction,
    pub(crate) system: Arc<TransactionSystem>,
    pub(crate) writer: Option<Writer>,
    lock_wait_timeout: Duration,
    /// A write to a record that has changed since the snapshot is refused.
    pub(crate) first_updater_wins: bool,
    /// It gives up whole tables, which a full disk does not prevent.
    frees_space: bool,
    /// The session's locks on definitions.
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
    /// If as many transactions are open as the engine was set up for.
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

    /// Begins a transaction whose snapshot was decided elsewhere: it sees what was committed up to
    /// that timestamp, and no later commit of this node gets one that it would see. Blocks for a
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

    /// The transaction's id, if it has one by now.
    #[must_use]
    pub fn id(&self) -> Option<TrxId> {
        self.writer.as_ref().map(|writer| writer.undo.trx)
    }

    /// Sets the longest wait for a lock.
    pub fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    /// From now on it may use the room in the log that is kept for commits and rollbacks: it gives
    /// up a table.
    pub(crate) fn free_space(&mut self) {
        self.frees_space = true;
    }

    /// What its changes are for.
    pub(crate) fn purpose(&self, deletes: bool) -> Purpose {
        match (self.frees_space, deletes) {
            (true, _) => Purpose::Completion,
            (false, true) => Purpose::Freeing,
            (false, false) => Purpose::Forward,
        }
    }

    /// Sets whether REPEATABLE READ refuses a write to a record that has changed since the
    /// snapshot; otherwise it goes to the present version, and an update that others made in
    /// between is built upon unseen.
    pub fn set_first_updater_wins(&mut self, refuses: bool) {
        self.first_updater_wins = refuses;
    }

    /// The session's metadata locks; see [`firn_api::rows::Transaction::set_metadata_context`].
    pub fn set_metadata_context(&mut self, context: Arc<LockContext>) {
        self.metadata = Some(context);
    }

    /// Another reader of the same snapshot and of this transaction's own writes. It has no slot in
    /// the registry of snapshots: this transaction's slot keeps what both read. What the reader
    /// sees is in the log by now, so this transaction waits with its end until the log is durable
    /// up to here.
    ///
    /// Dropped before the snapshot is let go of. `None` where reads lock.
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

    /// Gives the transaction an id and an undo segment, if it has none yet.
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

    /// Locks a table as a whole: shared by who uses it, exclusive by who changes its definition.
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

    /// Waits for a lock; a transaction that was chosen to break a deadlock is rolled back.
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

    /// Marks this place.
    #[must_use]
    pub fn savepoint(&self) -> Savepoint {
        let last = self.writer.as_ref().map_or(UndoPointer::NONE, |writer| writer.undo.last);
        Savepoint(last)
    }

    /// Undoes what was done since `savepoint`; locks are kept. Blocks.
    ///
    /// # Errors
    /// Why a page or the log could not be had; the transaction is then to be rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<(), EngineError> {
        self.check_open()?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        self.system.undo_back_to(writer.undo.last, savepoint.0)?;
        writer.undo.last = savepoint.0;
        Ok(())
    }

    /// Commits, and blocks until the commit is durable. A transaction that only read waits until
    /// what it saw is durable, which nearly always is so already.
    ///
    /// # Errors
    /// If the log has failed: the commit may or may not survive a restart.
    pub fn commit(mut self) -> Result<(), EngineError> {
        let (cts, lsn) = self.commit_in_memory()?;
        self.system.pages().log.wait_durable(lsn)?;
        if let Some(cts) = cts {
            self.system.order().wait_visible(cts);
        }
        Ok(())
    }

    /// Commits, and has the listener of `completion` told when the commit is durable, so that one
    /// thread can have many commits in flight. Does not wait for the disk. Every snapshot from now
    /// on sees the transaction, the session's own next one in particular.
    ///
    /// # Errors
    /// If the transaction has ended or the log has failed already; the listener is not told then.
    pub fn commit_then(mut self, completion: Completion) -> Result<(), EngineError> {
        let (cts, lsn) = self.commit_in_memory()?;
        if let Some(cts) = cts {
            self.system.order().wait_visible(cts);
        }
        self.system.pages().log.when_durable(lsn, completion);
        Ok(())
    }

    /// Commits, and has the commit made durable soon; nobody is told. Does not wait for the disk.
    ///
    /// # Errors
    /// If the transaction has ended or the log has failed already.
    pub fn commit_without_waiting(self) -> Result<(), EngineError> {
        self.commit_then(Completion::nobody())
    }

    fn commit_in_memory(&mut self) -> Result<(Option<Cts>, Lsn), EngineError> {
        self.check_open()?;
        let writes = self.writer.as_ref().is_some_and(|writer| writer.undo.records > 0);
        // Before the writer is given up: without a timestamp the transaction is rolled back.
        let reserved = if writes { self.system.prepare_commit(None)? } else { None };
        let mut committed = (None, self.observed.get());
        if let Some(writer) = self.writer.take() {
            let (cts, lsn) = self.system.commit_writer(writer.undo, reserved)?;
            committed = (Some(cts), lsn.max(self.observed.get()));
        }
        self.finish();
        Ok(committed)
    }

    /// Undoes everything. Blocks.
    ///
    /// # Errors
    /// Why a page or the log could not be had; what is left is undone at the next start.
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

    /// Makes the transaction survive the session and a crash under `xid`; it is then ended with
    /// [`TransactionSystem::commit_prepared`] or [`TransactionSystem::rollback_prepared`]. Its
    /// locks stay, and `locks` with them. Blocks until this is durable.
    ///
    /// # Errors
    /// If the identifier is too long or taken, or the log has failed.
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
        self.system.add_prepared(xid, writer.undo, locks);
        let observed = self.observed.get();
        self.finish();
        let position = lsn.max(observed);
        self.system.pages().log.wait_durable(position)?;
        let lowest = Cts(self.system.order().last().0 + 1);
        Ok(Prepared { position, lowest })
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
    /// Tells the lock manager how much would be lost.
    pub(crate) fn publish_weight(&self) {
        self.weight.store(self.undo.records, Ordering::Relaxed);
    }
}
