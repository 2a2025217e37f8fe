//! A transaction at a remote node.
//!
//! ```text
//!   begin          nothing is sent
//!   set a timeout  nothing is sent          waiting: Begin, LockWaitTimeout
//!   get            Begin, LockWaitTimeout and Get are one message
//!   end_statement  waits for the next call, unless others wait for what it releases
//! ```

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Awaited, Cancellation, DescribedTransaction, DetachedLocks, FoundRow, Grouping, IsolationLevel,
    MetadataContext, Prepared, ReadMark, ReadMode, RowWrite, RowsError, RowsResult, Savepoint,
    Scan, ScanOptions, Summaries, TableRef, Transaction,
};
use firn_base::{Cts, TableId};
use firn_format::row::OverflowReference;
use firn_format::value::ValueRef;
use serde_bytes::{ByteBuf, Bytes};

use crate::message::{Answer, Call, Handle, Message, Setting, TransactionCall, TransactionState};

use super::connection::{Connection, unexpected};
use super::locks::{RemoteContext, handle_of_detached};
use super::outcome_unknown;
use super::scan::RemoteScan;
use super::summary::{RemoteSummaries, Shape};
use super::tables::version_of;

/// Stands for the point at which the transaction began, until the node has named it.
const FIRST: Savepoint = Savepoint(u64::MAX);

/// An open transaction of a remote node.
pub(super) struct RemoteTransaction {
    connection: Arc<Connection>,
    handle: Handle,
    isolation: IsolationLevel,
    cancellation: Option<Arc<Cancellation>>,
    /// Settings that wait for the next call.
    waiting: RefCell<Vec<Setting>>,
    /// Whether the node knows of it.
    has_begun: Cell<bool>,
    keeps_reads: bool,
    state: Cell<TransactionState>,
    /// An error from a place that cannot return one; the next call returns it.
    failed: RefCell<Option<RowsError>>,
}

impl RemoteTransaction {
    /// A transaction that begins at the node with its first call.
    pub(super) fn begin(
        connection: &Arc<Connection>,
        isolation: IsolationLevel,
        snapshot: Option<Cts>,
    ) -> RemoteTransaction {
        let waiting = vec![Setting::Begin { isolation, snapshot }];
        RemoteTransaction::of(connection, connection.new_handle(), isolation, waiting)
    }

    /// A transaction that goes on from another node. The node does not know of it yet.
    pub(super) fn take_up(
        connection: &Arc<Connection>,
        described: &DescribedTransaction,
    ) -> RemoteTransaction {
        let waiting = vec![Setting::TakeUp(Box::new(described.clone()))];
        RemoteTransaction::of(connection, connection.new_handle(), described.isolation, waiting)
    }

    fn of(
        connection: &Arc<Connection>,
        handle: Handle,
        isolation: IsolationLevel,
        waiting: Vec<Setting>,
    ) -> RemoteTransaction {
        RemoteTransaction {
            connection: Arc::clone(connection),
            handle,
            isolation,
            cancellation: None,
            has_begun: Cell::new(waiting.is_empty()),
            waiting: RefCell::new(waiting),
            keeps_reads: false,
            state: Cell::default(),
            failed: RefCell::default(),
        }
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Sends what waits.
    ///
    /// # Errors
    /// The node's error.
    pub(super) fn tell_now(&self) -> RowsResult<()> {
        self.ask(TransactionCall::Settings).map(|_| ())
    }

    /// Makes a call, together with the settings that wait for one.
    ///
    /// # Errors
    /// The node's error, or the reply did not come.
    pub(super) fn ask(&self, call: TransactionCall<'_>) -> RowsResult<Answer> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let before = self.waiting.take();
        // A transaction that could not begin may succeed the next time.
        let beginning = if self.has_begun.get() { None } else { Some(before.clone()) };
        let call = Call::Transaction { handle: self.handle, before, call };
        let reply = self.connection.call(call, self.cancellation.as_deref())?;
        match reply.transaction {
            Some(state) => {
                self.has_begun.set(true);
                self.state.set(state);
            }
            None => {
                if let (Some(beginning), Err(_)) = (beginning, &reply.outcome) {
                    self.waiting.replace(beginning);
                }
            }
        }
        reply.outcome
    }

    fn wait(&self, setting: Setting) {
        self.waiting.borrow_mut().push(setting);
    }

    /// Sends the waiting settings without waiting for a reply.
    fn tell(&self) {
        if self.has_begun.get() {
            let settings = self.waiting.take();
            self.connection.cast(&Message::Tell { transaction: self.handle, settings });
        }
    }

    fn ask_flag(&self, call: TransactionCall<'_>) -> RowsResult<bool> {
        match self.ask(call)? {
            Answer::Flag(flag) => Ok(flag),
            other => Err(unexpected(&other)),
        }
    }

    fn ask_table(
        &self,
        table: TableId,
        call: impl FnOnce(Option<u64>) -> TransactionCall<'static>,
    ) -> RowsResult<TableRef> {
        let known = self.connection.tables.newest(table);
        let answer = self.ask(call(known.as_ref().map(|table| table.version().version)))?;
        self.connection.table_in(answer)?.ok_or(RowsError::NoSuchTable(table))
    }

    fn ask_row(
        &self,
        call: TransactionCall<'_>,
        key: Option<&mut Vec<u8>>,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        match self.ask(call)? {
            Answer::Row(Some((found_key, found))) => {
                if let Some(key) = key {
                    *key = found_key.into_vec();
                }
                *payload = found.into_vec();
                Ok(true)
            }
            Answer::Row(None) => Ok(false),
            other => Err(unexpected(&other)),
        }
    }

    /// Ends the transaction with this call; sends nothing if the node does not know it.
    fn end(&self, call: TransactionCall<'_>) -> RowsResult<()> {
        let ended = match self.has_begun.get() {
            true => self.ask(call).map(|_| ()),
            false => Ok(()),
        };
        self.has_begun.set(false);
        ended
    }
}

impl Transaction for RemoteTransaction {
    fn isolation(&self) -> IsolationLevel {
        self.isolation
    }

    fn id(&self) -> Option<u64> {
        self.state.get().id
    }

    fn snapshot(&self) -> Option<Cts> {
        self.state.get().snapshot
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.wait(Setting::LockWaitTimeout(timeout));
    }

    fn set_first_updater_wins(&mut self, refuses: bool) {
        self.wait(Setting::FirstUpdaterWins(refuses));
    }

    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>) {
        self.cancellation = Some(Arc::clone(cancellation));
    }

    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>) {
        if let Some(handle) = RemoteContext::handle_of(context) {
            self.wait(Setting::MetadataContext(handle));
        }
    }

    /// A remote node has no [`firn_api::rows::Freshness`], so nothing is awaited.
    fn must_see(&mut self, _awaited: Option<Awaited>) {}

    fn open_snapshot(&mut self) {
        let opened = self.ask(TransactionCall::OpenSnapshot);
        self.failed.replace(opened.err());
    }

    fn end_statement(&mut self) {
        let mut state = self.state.get();
        let lets_go = self.isolation == IsolationLevel::ReadCommitted && state.snapshot.is_some();
        if lets_go {
            state.snapshot = None;
            self.state.set(state);
        }
        if self.has_begun.get() {
            self.wait(Setting::EndStatement);
        }
        let unlocks = |setting: &Setting| matches!(setting, Setting::Unlock { .. });
        if lets_go || self.waiting.borrow().iter().any(unlocks) {
            self.tell();
        }
    }

    fn keep_reads(&mut self) {
        if !self.keeps_reads {
            self.keeps_reads = true;
            self.wait(Setting::KeepReads);
        }
    }

    fn read_mark(&self) -> ReadMark {
        self.state.get().read_mark
    }

    fn renew_snapshot(&mut self, before: ReadMark) -> RowsResult<bool> {
        self.ask_flag(TransactionCall::RenewSnapshot { before })
    }

    fn describe(&mut self) -> RowsResult<Option<DescribedTransaction>> {
        match self.ask(TransactionCall::Describe)? {
            Answer::Described(described) => Ok(described.map(|described| *described)),
            other => Err(unexpected(&other)),
        }
    }

    fn reader(&mut self) -> Option<Box<dyn Transaction>> {
        let handle = self.connection.new_handle();
        match self.ask_flag(TransactionCall::OpenReader { handle }) {
            Ok(true) => {}
            // The caller then reads through this transaction instead, which reports what is wrong.
            Ok(false) | Err(_) => return None,
        }
        let mut reader =
            RemoteTransaction::of(&self.connection, handle, self.isolation, Vec::new());
        reader.cancellation.clone_from(&self.cancellation);
        reader.state.set(self.state.get());
        Some(Box::new(reader))
    }

    fn table_for_read(&mut self, table: TableId) -> RowsResult<TableRef> {
        self.ask_table(table, |known| TransactionCall::TableForRead { table, known })
    }

    fn table_for_write(&mut self, table: TableId) -> RowsResult<TableRef> {
        self.ask_table(table, |known| TransactionCall::TableForWrite { table, known })
    }

    fn check_table(&mut self, table: &TableRef) -> RowsResult<Vec<String>> {
        match self.ask(TransactionCall::CheckTable { table: version_of(table)? })? {
            Answer::Texts(problems) => Ok(problems),
            other => Err(unexpected(&other)),
        }
    }

    fn get(
        &mut self,
        table: &TableRef,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        let table = version_of(table)?;
        self.ask_row(TransactionCall::Get { table, key: Bytes::new(key), mode }, None, payload)
    }

    fn get_by_entry(
        &mut self,
        table: &TableRef,
        index: usize,
        entry: &[u8],
        mode: ReadMode,
        primary_key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        let (table, entry) = (version_of(table)?, Bytes::new(entry));
        let call = TransactionCall::GetByEntry { table, index, entry, mode };
        self.ask_row(call, Some(primary_key), payload)
    }

    fn get_rows(
        &mut self,
        table: &TableRef,
        index: Option<usize>,
        keys: &[Vec<u8>],
        mode: ReadMode,
        found: &mut Vec<Option<FoundRow>>,
    ) -> RowsResult<()> {
        let table = version_of(table)?;
        let asked = keys.len();
        let keys = keys.iter().map(|key| ByteBuf::from(key.as_slice())).collect();
        match self.ask(TransactionCall::GetRows { table, index, keys, mode })? {
            Answer::Found(rows) if rows.len() == asked => {
                found.extend(rows);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    fn scan(&mut self, table: &TableRef, options: &ScanOptions) -> RowsResult<Box<dyn Scan>> {
        let handle = self.connection.new_handle();
        let (table, options) = (version_of(table)?, options.clone());
        let is_covered = self.ask_flag(TransactionCall::Scan { handle, table, options })?;
        Ok(Box::new(RemoteScan::new(&self.connection, self.handle, handle, is_covered)))
    }

    fn summarise(
        &mut self,
        table: &TableRef,
        options: &ScanOptions,
        grouping: &Grouping,
    ) -> RowsResult<Option<Box<dyn Summaries>>> {
        let handle = self.connection.new_handle();
        let (table, options, shape) =
            (version_of(table)?, Box::new(options.clone()), Shape::of(grouping));
        let grouping = Box::new(grouping.clone());
        let call = TransactionCall::Summarise { handle, table, options, grouping };
        let first = shape.summed_in(self.ask(call)?)?;
        Ok(first.map(|first| {
            let summaries =
                RemoteSummaries::new(&self.connection, self.handle, handle, shape, first);
            Box::new(summaries) as _
        }))
    }

    fn unlock(&mut self, table: &TableRef, key: &[u8]) {
        if let Ok(table) = version_of(table) {
            self.wait(Setting::Unlock { table, key: ByteBuf::from(key.to_vec()) });
        }
    }

    fn read_overflow(
        &self,
        table: &TableRef,
        reference: OverflowReference,
        range: Range<u64>,
        into: &mut Vec<u8>,
    ) -> RowsResult<()> {
        let Range { start, end } = range;
        let table = version_of(table)?;
        match self.ask(TransactionCall::ReadOverflow { table, reference, start, end })? {
            Answer::Bytes(Some(bytes)) => {
                into.extend_from_slice(&bytes);
                Ok(())
            }
            other => Err(unexpected(&other)),
        }
    }

    fn insert(&mut self, table: &TableRef, row: &[ValueRef<'_>]) -> RowsResult<()> {
        let call = TransactionCall::Insert { table: version_of(table)?, row: row.to_vec() };
        self.ask(call).map(|_| ())
    }

    fn insert_rows(&mut self, table: &TableRef, values: &[ValueRef<'_>]) -> RowsResult<()> {
        let (table, values) = (version_of(table)?, values.to_vec());
        self.ask(TransactionCall::InsertRows { table, values }).map(|_| ())
    }

    fn update(
        &mut self,
        table: &TableRef,
        key: &[u8],
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
    ) -> RowsResult<()> {
        let table = version_of(table)?;
        let (key, payload) = (Bytes::new(key), Bytes::new(payload));
        let changes = changes.to_vec();
        self.ask(TransactionCall::Update { table, key, payload, changes }).map(|_| ())
    }

    fn delete(&mut self, table: &TableRef, key: &[u8], payload: &[u8]) -> RowsResult<()> {
        let table = version_of(table)?;
        let (key, payload) = (Bytes::new(key), Bytes::new(payload));
        self.ask(TransactionCall::Delete { table, key, payload }).map(|_| ())
    }

    fn write_rows(&mut self, table: &TableRef, rows: &[RowWrite<'_>]) -> RowsResult<()> {
        let (table, rows) = (version_of(table)?, rows.to_vec());
        self.ask(TransactionCall::WriteRows { table, rows }).map(|_| ())
    }

    fn savepoint(&self) -> Savepoint {
        self.state.get().savepoint.unwrap_or(FIRST)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> RowsResult<()> {
        if !self.has_begun.get() {
            return Ok(());
        }
        let savepoint = Some(savepoint).filter(|savepoint| *savepoint != FIRST);
        self.ask(TransactionCall::RollbackTo { savepoint }).map(|_| ())
    }

    fn commit(self: Box<Self>) -> RowsResult<()> {
        self.end(TransactionCall::Commit).map_err(outcome_unknown)
    }

    fn rollback(self: Box<Self>) -> RowsResult<()> {
        self.end(TransactionCall::Rollback)
    }

    fn prepare(self: Box<Self>, xid: &[u8], locks: DetachedLocks) -> RowsResult<Prepared> {
        let locks = locks.and_then(handle_of_detached);
        let answer = self.ask(TransactionCall::Prepare { xid: Bytes::new(xid), locks });
        self.has_begun.set(false);
        match answer.map_err(outcome_unknown)? {
            Answer::Prepared(prepared) => Ok(prepared),
            other => Err(unexpected(&other)),
        }
    }
}

impl Drop for RemoteTransaction {
    fn drop(&mut self) {
        if self.has_begun.get() {
            self.connection.cast(&Message::Close(self.handle));
        }
    }
}

/// This crate's transaction behind the seam.
///
/// # Errors
/// It is another node's.
pub(super) fn remote_transaction(trx: &mut dyn Transaction) -> RowsResult<&mut RemoteTransaction> {
    let any: &mut dyn Any = trx;
    any.downcast_mut::<RemoteTransaction>().ok_or_else(|| RowsError::of_another_node("transaction"))
}
