//! A session's transaction: when it begins and ends, savepoints, XA.
//!
//! ```text
//!   autocommit     statement ──► begin, run, commit
//!   BEGIN          begin ── statement ── statement ── COMMIT
//!   autocommit=0   first statement begins, COMMIT ends
//!   XA START x     begin ── statements ── XA END ── XA PREPARE ── XA COMMIT (from any session)
//! ```
//!
//! Metadata locks of statements are released when the transaction ends, those of `LOCK TABLES` by
//! `UNLOCK TABLES`.
//!
//! A statement that fails leaves the transaction as it was before, unless the node has rolled back
//! or lost the whole transaction ([`SqlError::ends_transaction`]).

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Awaited, Cancellation, DatabaseNode, DescribedTransaction, IsolationLevel, LockDuration,
    LockPatience, MetadataContext, MetadataLock, ReadMark, RowsError, Savepoint, Transaction,
};
use firn_base::TableId;
use firn_base::clock::Clock;
use firn_sql::error::{Result, SqlError};
use firn_sql::execute::error::from_rows;
use firn_sql::grammar::ast::{AccessMode, Xid};
use firn_wire::{CommandIdentity, CommittedAnswer, ConnectionControl};

use super::late_commits::LateCommits;
use super::settings::Settings;
use crate::commits::CommitNotes;
use crate::instance::Instance;
use crate::left_sessions::LeftTransaction;
use crate::session_facts::Facts;

pub(crate) struct OpenTransaction {
    pub(crate) inner: Box<dyn Transaction>,
    /// It continues after the statement.
    pub(crate) lasting: bool,
    pub(crate) read_only: bool,
    savepoints: Vec<(String, Savepoint)>,
}

/// The properties of only the next transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NextTransaction {
    pub(crate) isolation: Option<IsolationLevel>,
    pub(crate) read_only: Option<bool>,
}

/// The state of this session's XA transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum XaState {
    Active(Xid),
    Idle(Xid),
}

pub(crate) struct Transactions {
    pub(crate) open: Option<OpenTransaction>,
    pub(crate) next: NextTransaction,
    pub(crate) xa: Option<XaState>,
    /// What the statement's snapshot must see, on a node that follows another one.
    awaited: Option<Awaited>,
    /// Commits and rollbacks that have not been counted yet.
    pub(crate) ended: Ended,
    /// The session's locks on definitions.
    pub(crate) metadata: Arc<dyn MetadataContext>,
    /// Tells the thread that cancels the statement that a commit waits to become durable.
    cancellation: Arc<Cancellation>,
    late: LateCommits,
    /// The running command, if its commit leaves a note, and what it will answer.
    noted: Option<(CommandIdentity, CommittedAnswer)>,
    notes: Arc<CommitNotes>,
    clock: Arc<dyn Clock>,
    /// The tables of `LOCK TABLES`.
    locked: Vec<TableId>,
    /// The tables that the transaction has used, with the versions of their definitions, on a node
    /// that follows another one.
    used: Vec<UsedTable>,
}

/// A table, and its definition's `schema_version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct UsedTable {
    pub(crate) table: TableId,
    pub(crate) version: u64,
}

/// A transaction that has only read, on its way to a session of another node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct MovingTransaction {
    pub(crate) read_only: bool,
    /// The tables that its snapshot was read with.
    pub(crate) tables: Vec<UsedTable>,
    /// The names of savepoints, oldest first. Nothing was written before any of them.
    pub(crate) savepoints: Vec<String>,
    pub(crate) inner: DescribedTransaction,
}

/// What there was before a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BeforeStatement {
    has_transaction: bool,
    read: ReadMark,
}

/// Transactions that ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ended {
    pub(crate) commits: u64,
    pub(crate) rollbacks: u64,
}

impl Transactions {
    /// No transaction yet, in a session with these locks.
    pub(crate) fn new(
        metadata: Arc<dyn MetadataContext>,
        cancellation: &Arc<Cancellation>,
        control: &Arc<ConnectionControl>,
        instance: &Instance,
    ) -> Transactions {
        Transactions {
            open: None,
            next: NextTransaction::default(),
            xa: None,
            awaited: None,
            ended: Ended::default(),
            metadata,
            cancellation: Arc::clone(cancellation),
            late: LateCommits::new(control),
            noted: None,
            notes: Arc::clone(&instance.commits),
            clock: Arc::clone(&instance.facts.environment.clock),
            locked: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Sets what the next snapshot must see: that of the open transaction, or of one that begins.
    pub(crate) fn must_see(&mut self, awaited: Option<Awaited>) {
        self.awaited = awaited;
        if let Some(open) = &mut self.open {
            open.inner.must_see(awaited);
        }
    }

    /// The transaction for a statement; it begins if none is open. Without autocommit it lasts,
    /// unless the statement uses no table.
    ///
    /// # Errors
    /// If the node has as many open transactions as it was set up for.
    pub(crate) fn for_statement(
        &mut self,
        node: &dyn DatabaseNode,
        settings: &Settings,
        facts: &Facts,
        uses_tables: bool,
    ) -> Result<&mut OpenTransaction> {
        if self.open.is_none() {
            self.begin(node, settings, facts, !settings.autocommit && uses_tables, None)?;
        }
        Ok(self.open.as_mut().expect("just begun"))
    }

    /// Begins a transaction; the caller has ended the previous one.
    ///
    /// # Errors
    /// If the node has as many open transactions as it was set up for.
    pub(crate) fn begin(
        &mut self,
        node: &dyn DatabaseNode,
        settings: &Settings,
        facts: &Facts,
        lasting: bool,
        access: Option<AccessMode>,
    ) -> Result<()> {
        let next = std::mem::take(&mut self.next);
        let isolation = next.isolation.unwrap_or(settings.isolation);
        let mut inner = node.begin(isolation).map_err(from_rows)?;
        inner.must_see(self.awaited);
        inner.set_cancelled(&facts.cancelled);
        inner.set_lock_wait_timeout(settings.lock_wait_timeout);
        inner.set_first_updater_wins(settings.first_updater_wins);
        let read_only = match access {
            Some(access) => access == AccessMode::ReadOnly,
            None => next.read_only.unwrap_or(settings.read_only),
        };
        if lasting {
            keep_reads(&mut *inner, read_only, settings);
        }
        inner.set_metadata_context(Arc::clone(&self.metadata));
        self.open = Some(OpenTransaction { inner, lasting, read_only, savepoints: Vec::new() });
        Ok(())
    }

    /// How much the open transaction has read from its snapshot.
    pub(crate) fn read_mark(&self) -> ReadMark {
        self.open.as_ref().map_or_else(ReadMark::default, |open| open.inner.read_mark())
    }

    /// Moves the open transaction to a newer snapshot, if it could just as well have begun now;
    /// `before`: what it had read before the statement.
    ///
    /// # Errors
    /// Errors of the node.
    pub(crate) fn renew_snapshot(&mut self, before: ReadMark) -> Result<bool> {
        match &mut self.open {
            Some(open) => open.inner.renew_snapshot(before).map_err(from_rows),
            None => Ok(false),
        }
    }

    /// How long the open transaction waits for a row's lock.
    pub(crate) fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        if let Some(open) = &mut self.open {
            open.inner.set_lock_wait_timeout(timeout);
        }
    }

    /// Locks tables until [`Transactions::unlock_tables`], and releases earlier ones that are not
    /// among them. Blocks.
    ///
    /// # Errors
    /// If a lock is not granted.
    pub(crate) fn lock_tables(
        &mut self,
        tables: &[(TableId, MetadataLock)],
        patience: &LockPatience<'_>,
    ) -> Result<()> {
        for (table, lock) in tables {
            let explicit = LockDuration::Explicit;
            self.metadata.acquire(*table, *lock, explicit, patience).map_err(from_rows)?;
            self.locked.push(*table);
        }
        let metadata = &self.metadata;
        self.locked.retain(|table| {
            let stays = tables.iter().any(|(other, _)| other == table);
            if !stays {
                metadata.release_explicit(Some(*table));
            }
            stays
        });
        Ok(())
    }

    /// Commits an open transaction and releases the locks of `LOCK TABLES`. Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub(crate) fn unlock_tables(&mut self) -> Result<()> {
        let committed = self.commit();
        self.forget_table_locks();
        committed
    }

    /// Releases the locks of `LOCK TABLES`.
    pub(crate) fn forget_table_locks(&mut self) {
        for table in std::mem::take(&mut self.locked) {
            self.metadata.release_explicit(Some(table));
        }
    }

    /// Whether an open transaction, if there is one, can be left.
    pub(crate) fn can_be_left(&self) -> bool {
        self.open.is_none() || self.is_lasting()
    }

    /// Leaves the open transaction to the session that goes on elsewhere.
    pub(crate) fn leave(&mut self) -> Option<LeftTransaction> {
        let OpenTransaction { inner, read_only, savepoints, .. } = self.open.take()?;
        Some(LeftTransaction { inner, read_only, savepoints, locks: self.metadata.detach() })
    }

    /// Leaves the locks on definitions that outlive transactions, once a transaction was left.
    pub(crate) fn leave_definitions(
        &mut self,
        fresh: Arc<dyn MetadataContext>,
    ) -> Arc<dyn MetadataContext> {
        self.locked.clear();
        std::mem::replace(&mut self.metadata, fresh)
    }

    /// Goes on with such locks, before a transaction goes on; `locked`: those of `LOCK TABLES`.
    pub(crate) fn take_definitions(
        &mut self,
        metadata: Arc<dyn MetadataContext>,
        locked: Vec<TableId>,
    ) {
        (self.metadata, self.locked) = (metadata, locked);
    }

    /// Goes on with a transaction that was left.
    pub(crate) fn go_on(&mut self, left: LeftTransaction, settings: &Settings, facts: &Facts) {
        let LeftTransaction { inner, read_only, savepoints, locks } = left;
        self.metadata.attach(locks);
        // The reads of a snapshot that was open before are not known any more.
        self.adopt(inner, read_only, savepoints, settings, facts);
    }

    /// Describes the open transaction, if it has only read and another node can go on with it. It
    /// stays open.
    pub(crate) fn describe(&mut self) -> Option<MovingTransaction> {
        let open = self.open.as_mut().filter(|open| open.lasting)?;
        let inner = match open.inner.describe() {
            Ok(inner) => inner?,
            Err(error) => {
                tracing::debug!(%error, "a transaction cannot be described");
                return None;
            }
        };
        // What was read from another snapshot than this one does not matter any more.
        let tables = inner.snapshot.as_ref().map_or_else(Vec::new, |_| self.used.clone());
        let savepoints = open.savepoints.iter().map(|(name, _)| name.clone()).collect();
        Some(MovingTransaction { read_only: open.read_only, tables, savepoints, inner })
    }

    /// Goes on with a transaction of another node. The caller has locked the definitions of its
    /// tables, and no transaction is open. Blocks.
    ///
    /// # Errors
    /// 1412 if its snapshot is too old; other errors of the node. No transaction is open then.
    pub(crate) fn take_up(
        &mut self,
        node: &dyn DatabaseNode,
        described: MovingTransaction,
        settings: &Settings,
        facts: &Facts,
    ) -> Result<()> {
        let MovingTransaction { read_only, savepoints, inner, .. } = described;
        let inner = node.take_up(&inner).map_err(from_rows)?;
        let first = inner.savepoint();
        let savepoints = savepoints.into_iter().map(|name| (name, first)).collect();
        self.adopt(inner, read_only, savepoints, settings, facts);
        Ok(())
    }

    /// A transaction that was begun elsewhere becomes the open one.
    fn adopt(
        &mut self,
        mut inner: Box<dyn Transaction>,
        read_only: bool,
        savepoints: Vec<(String, Savepoint)>,
        settings: &Settings,
        facts: &Facts,
    ) {
        inner.must_see(self.awaited);
        inner.set_cancelled(&facts.cancelled);
        inner.set_lock_wait_timeout(settings.lock_wait_timeout);
        inner.set_first_updater_wins(settings.first_updater_wins);
        inner.set_metadata_context(Arc::clone(&self.metadata));
        keep_reads(&mut *inner, read_only, settings);
        self.open = Some(OpenTransaction { inner, lasting: true, read_only, savepoints });
    }

    /// Notes the tables that a statement uses, on a node that follows another one.
    pub(crate) fn use_tables(&mut self, tables: impl Iterator<Item = UsedTable>) {
        for used in tables {
            // Another version of a table that was used before shows that it has changed since.
            if self.used.iter().all(|other| other.table != used.table) {
                self.used.push(used);
            }
        }
    }

    /// Releases what the transaction has locked of definitions.
    fn release_definitions(&mut self) {
        self.used.clear();
        self.metadata.release_transaction();
    }

    /// Whether a transaction continues beyond statements.
    pub(crate) fn is_lasting(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.lasting)
    }

    /// Ends a statement that succeeded: commits a transaction that does not last. Blocks until it
    /// is durable.
    ///
    /// # Errors
    /// If the log has failed.
    pub(crate) fn statement_succeeded(&mut self) -> Result<()> {
        match &mut self.open {
            Some(open) if open.lasting => {
                open.inner.end_statement();
                Ok(())
            }
            Some(_) => self.commit(),
            None => {
                self.release_definitions();
                Ok(())
            }
        }
    }

    /// Ends a statement that failed.
    pub(crate) fn statement_failed(&mut self, error: &SqlError) {
        match &mut self.open {
            Some(open) if open.lasting && !error.ends_transaction() => open.inner.end_statement(),
            Some(_) => self.roll_back_quietly(),
            None => self.release_definitions(),
        }
    }

    /// What there is before a statement, for [`Transactions::statement_cut`].
    pub(crate) fn before_statement(&self) -> BeforeStatement {
        BeforeStatement { has_transaction: self.open.is_some(), read: self.read_mark() }
    }

    /// Ends a statement that failed and will be run elsewhere, as if it had not begun.
    pub(crate) fn statement_cut(&mut self, before: BeforeStatement) {
        match &mut self.open {
            Some(open) if before.has_transaction => {
                if before.read == ReadMark::default() {
                    open.inner.forget_snapshot();
                }
                open.inner.end_statement();
            }
            // A transaction that lasts would be one that its client does not know of.
            Some(_) => self.roll_back_quietly(),
            None => self.release_definitions(),
        }
    }

    /// Whether the running statement's commit may be left to the log, which then confirms the
    /// answer. It is the last thing that the statement does, apart from its answer.
    pub(crate) fn may_leave_commit(&mut self, may_leave: bool) {
        self.late.may_leave = may_leave;
    }

    /// A command begins whose commit leaves a note ([`crate::commits`]).
    pub(crate) fn identify(&mut self, command: CommandIdentity) {
        self.noted = Some((command, CommittedAnswer::default()));
    }

    /// What the running statement will answer if it commits.
    pub(crate) fn will_answer(&mut self, answer: impl FnOnce() -> CommittedAnswer) {
        if let Some((_, noted)) = &mut self.noted {
            *noted = answer();
        }
    }

    /// Leaves a note of the running command in the transaction that is about to be committed.
    fn leave_note(&mut self) -> Result<()> {
        let Some(open) = self.open.as_mut().filter(|open| open.inner.has_written()) else {
            return Ok(());
        };
        // A second commit of the command cannot be asked for.
        let Some((command, answer)) = self.noted.take() else { return Ok(()) };
        let now_ms = self.clock.wall_time_ms();
        self.notes.note(&mut *open.inner, command, &answer, now_ms).map_err(from_rows)
    }

    /// Commits, if a transaction is open. Blocks until it is durable, or until the log has promised
    /// to confirm the answer.
    ///
    /// # Errors
    /// If the log has failed. If no note can be left, the transaction is rolled back.
    pub(crate) fn commit(&mut self) -> Result<()> {
        if let Err(error) = self.leave_note() {
            self.roll_back_quietly();
            return Err(error);
        }
        let committed = match self.open.take() {
            Some(open) => {
                self.ended.commits += 1;
                let late = &mut self.late;
                let commit = || late.commit(open.inner);
                self.cancellation.while_confirming(commit).map_err(from_rows)
            }
            None => Ok(()),
        };
        self.release_definitions();
        committed
    }

    /// Rolls back, if a transaction is open. Blocks.
    ///
    /// # Errors
    /// If a page or the log could not be read.
    pub(crate) fn roll_back(&mut self) -> Result<()> {
        self.xa = None;
        let rolled_back = match self.open.take() {
            Some(open) => {
                self.ended.rollbacks += 1;
                open.inner.rollback().map_err(from_rows)
            }
            None => Ok(()),
        };
        self.release_definitions();
        rolled_back
    }

    /// Rolls back where no error can be reported: the next start would finish it.
    pub(crate) fn roll_back_quietly(&mut self) {
        if let Err(error) = self.roll_back() {
            tracing::warn!(%error, "a transaction could not be rolled back now");
        }
    }

    /// `SAVEPOINT`; replaces one with the same name.
    pub(crate) fn set_savepoint(&mut self, name: &str) {
        let Some(open) = self.open.as_mut().filter(|open| open.lasting) else { return };
        open.savepoints.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        open.savepoints.push((name.to_owned(), open.inner.savepoint()));
    }

    /// `ROLLBACK TO SAVEPOINT`; removes those set after it.
    ///
    /// # Errors
    /// 1305 if there is none with that name.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let (open, at) = self.find_savepoint(name)?;
        let savepoint = open.savepoints[at].1;
        open.savepoints.truncate(at + 1);
        open.inner.rollback_to(savepoint).map_err(from_rows)
    }

    /// `RELEASE SAVEPOINT`, with those set after it.
    ///
    /// # Errors
    /// 1305 if there is none with that name.
    pub(crate) fn release_savepoint(&mut self, name: &str) -> Result<()> {
        let (open, at) = self.find_savepoint(name)?;
        open.savepoints.truncate(at);
        Ok(())
    }

    fn find_savepoint(&mut self, name: &str) -> Result<(&mut OpenTransaction, usize)> {
        let unknown = || SqlError::new(1305, format!("SAVEPOINT {name} does not exist"));
        let open = self.open.as_mut().ok_or_else(unknown)?;
        let is_it = |(other, _): &(String, Savepoint)| other.eq_ignore_ascii_case(name);
        let at = open.savepoints.iter().position(is_it).ok_or_else(unknown)?;
        Ok((open, at))
    }

    /// The state of XA, for messages.
    pub(crate) fn xa_state_name(&self) -> &'static str {
        match &self.xa {
            Some(XaState::Active(_)) => "ACTIVE",
            Some(XaState::Idle(_)) => "IDLE",
            None => "NON-EXISTING",
        }
    }

    /// `XA END`
    ///
    /// # Errors
    /// 1397 for another identifier, 1399 in the wrong state.
    pub(crate) fn xa_end(&mut self, xid: &Xid) -> Result<()> {
        match &self.xa {
            Some(XaState::Active(active)) if active == xid => {
                self.xa = Some(XaState::Idle(xid.clone()));
                Ok(())
            }
            Some(XaState::Active(_)) => Err(unknown_xid()),
            _ => Err(self.wrong_xa_state()),
        }
    }

    /// `XA PREPARE`. Blocks until it is durable.
    ///
    /// # Errors
    /// 1397 for another identifier, 1399 in the wrong state, 1440 for an identifier that already
    /// exists.
    pub(crate) fn xa_prepare(&mut self, xid: &Xid) -> Result<()> {
        self.take_idle(xid)?;
        let Some(open) = self.open.take() else { return Err(unknown_xid()) };
        let locks = self.metadata.detach();
        let prepared =
            self.cancellation.while_confirming(|| open.inner.prepare(&encode_xid(xid), locks));
        prepared.map(drop).map_err(from_rows)
    }

    /// `XA COMMIT … ONE PHASE`. Blocks until it is durable.
    ///
    /// # Errors
    /// As [`Transactions::xa_prepare`].
    pub(crate) fn xa_commit_one_phase(&mut self, xid: &Xid) -> Result<()> {
        self.take_idle(xid)?;
        self.commit()
    }

    /// `XA ROLLBACK` of this session's own transaction; false if it has another identifier.
    ///
    /// # Errors
    /// 1399 while it is active.
    pub(crate) fn xa_roll_back(&mut self, xid: &Xid) -> Result<bool> {
        match &self.xa {
            Some(XaState::Idle(idle)) if idle == xid => self.roll_back().map(|()| true),
            Some(_) => Err(self.wrong_xa_state()),
            None => Ok(false),
        }
    }

    fn take_idle(&mut self, xid: &Xid) -> Result<()> {
        match &self.xa {
            Some(XaState::Idle(idle)) if idle == xid => {
                self.xa = None;
                Ok(())
            }
            Some(XaState::Idle(_)) => Err(unknown_xid()),
            _ => Err(self.wrong_xa_state()),
        }
    }

    /// The error for an operation that the current state of XA does not allow.
    pub(crate) fn wrong_xa_state(&self) -> SqlError {
        let state = self.xa_state_name();
        let message = format!(
            "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {state} \
             state"
        );
        SqlError::new(1399, message)
    }
}

/// Has a transaction's snapshot be renewed where that is possible and needed.
fn keep_reads(transaction: &mut dyn Transaction, read_only: bool, settings: &Settings) {
    let may_conflict = transaction.isolation() == IsolationLevel::RepeatableRead && !read_only;
    if may_conflict && settings.first_updater_wins {
        transaction.keep_reads();
    }
}

fn unknown_xid() -> SqlError {
    SqlError::new(RowsError::NoSuchPrepared.mysql_code(), "XAER_NOTA: Unknown XID")
}

/// An identifier in the node's form: format, length of the global part, both parts.
pub(crate) fn encode_xid(xid: &Xid) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9 + xid.global.len() + xid.branch.len());
    bytes.extend_from_slice(&xid.format.to_le_bytes());
    bytes.push(xid.global.len() as u8);
    bytes.extend_from_slice(&xid.global);
    bytes.extend_from_slice(&xid.branch);
    bytes
}

/// The inverse of [`encode_xid`]; `None` for identifiers of other clients.
pub(crate) fn decode_xid(bytes: &[u8]) -> Option<Xid> {
    let (format, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first()?;
    let (global, branch) = rest.split_at_checked(usize::from(*length))?;
    let format = u64::from_le_bytes(*format);
    Some(Xid { global: global.to_vec(), branch: branch.to_vec(), format })
}
