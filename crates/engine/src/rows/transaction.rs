//! A transaction of a node that writes, behind the seam.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Awaited, Cancellation, CommitListener, Confirmation, DescribedTransaction, DetachedLocks,
    ExpressionEvaluator, Grouping, HandedTransaction, IsolationLevel, MetadataContext, Prepared,
    ReadMark, ReadMode, RowsResult, Savepoint, Scan, ScanOptions, Summaries, TableRef,
    Transaction as RowsTransaction,
};
use firn_base::{Cts, TableId};
use firn_format::row::OverflowReference;
use firn_format::undo::UndoPointer;
use firn_format::value::ValueRef;

use crate::dictionary::Dictionary;
use crate::error::EngineError;
use crate::lock::LockMode;
use crate::transaction::{self, Transaction};

use super::buffers::SpareBuffers;
use super::engine_table;
use super::reading::{self, OverReader};

/// An open transaction of this process's engine.
pub struct EngineTransaction {
    inner: Transaction,
    dictionary: Arc<Dictionary>,
    buffers: SpareBuffers,
}

impl EngineTransaction {
    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If as many transactions are open as the engine was set up for.
    pub fn begin(
        dictionary: &Arc<Dictionary>,
        isolation: IsolationLevel,
    ) -> Result<EngineTransaction, EngineError> {
        let inner = Transaction::begin(dictionary.system(), isolation)?;
        Ok(EngineTransaction::over(dictionary, inner))
    }

    /// Begins a transaction at a snapshot chosen elsewhere, see [`Transaction::begin_at`].
    ///
    /// # Errors
    /// As there.
    pub fn begin_at(
        dictionary: &Arc<Dictionary>,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> Result<EngineTransaction, EngineError> {
        let inner = Transaction::begin_at(dictionary.system(), isolation, snapshot)?;
        Ok(EngineTransaction::over(dictionary, inner))
    }

    /// Goes on as a transaction of a node that follows, see [`Transaction::take_up`].
    ///
    /// # Errors
    /// As there.
    pub fn take_up(
        dictionary: &Arc<Dictionary>,
        described: &DescribedTransaction,
    ) -> Result<EngineTransaction, EngineError> {
        let inner = Transaction::take_up(dictionary.system(), described)?;
        Ok(EngineTransaction::over(dictionary, inner))
    }

    /// A transaction of the engine behind the seam.
    pub(crate) fn over(dictionary: &Arc<Dictionary>, inner: Transaction) -> EngineTransaction {
        let buffers = SpareBuffers::default();
        EngineTransaction { inner, dictionary: Arc::clone(dictionary), buffers }
    }
}

impl OverReader for EngineTransaction {
    type Reader = Transaction;

    #[inline]
    fn reader_mut(&mut self) -> &mut Transaction {
        &mut self.inner
    }

    fn evaluator(&self) -> &dyn ExpressionEvaluator {
        self.dictionary.evaluator()
    }
}

impl RowsTransaction for EngineTransaction {
    fn isolation(&self) -> IsolationLevel {
        self.inner.isolation()
    }

    fn id(&self) -> Option<u64> {
        self.inner.id().map(|id| id.0)
    }

    fn snapshot(&self) -> Option<Cts> {
        self.inner.snapshot()
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.inner.set_lock_wait_timeout(timeout);
    }

    fn set_first_updater_wins(&mut self, refuses: bool) {
        self.inner.set_first_updater_wins(refuses);
    }

    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>) {
        self.inner.set_cancelled(Arc::clone(cancellation.flag()));
    }

    fn set_metadata_context(&mut self, context: Arc<dyn MetadataContext>) {
        if let Some(context) = super::engine_context(context) {
            self.inner.set_metadata_context(context);
        }
    }

    fn check_table(&mut self, table: &TableRef) -> RowsResult<Vec<String>> {
        reading::check_table(&mut self.inner, table)
    }

    /// This node has everything.
    fn must_see(&mut self, _awaited: Option<Awaited>) {}

    fn open_snapshot(&mut self) {
        self.inner.open_snapshot();
    }

    fn end_statement(&mut self) {
        self.inner.end_statement();
    }

    fn keep_reads(&mut self) {
        self.inner.keep_reads();
    }

    fn forget_snapshot(&mut self) {
        self.inner.forget_snapshot();
    }

    fn read_mark(&self) -> ReadMark {
        self.inner.read_mark()
    }

    fn renew_snapshot(&mut self, before: ReadMark) -> RowsResult<bool> {
        Ok(self.inner.renew_snapshot(before)?)
    }

    fn describe(&mut self) -> RowsResult<Option<DescribedTransaction>> {
        Ok(self.inner.describe())
    }

    fn reader(&mut self) -> Option<Box<dyn RowsTransaction>> {
        Some(Box::new(EngineTransaction {
            inner: self.inner.open_reader()?,
            dictionary: Arc::clone(&self.dictionary),
            buffers: SpareBuffers::default(),
        }))
    }

    fn table_for_read(&mut self, table: TableId) -> RowsResult<TableRef> {
        Ok(self.dictionary.table_for_read(&mut self.inner, table)?)
    }

    fn is_current(&mut self, table: &TableRef, version: u64) -> bool {
        reading::is_current(&self.dictionary, &mut self.inner, table, version)
    }

    fn table_for_write(&mut self, table: TableId) -> RowsResult<TableRef> {
        Ok(self.dictionary.table_for_write(&mut self.inner, table)?)
    }

    fn lock_current(&mut self, table: &TableRef, version: u64) -> RowsResult<bool> {
        self.inner.lock_table(engine_table(table)?.id(), LockMode::Shared)?;
        Ok(self.dictionary.version() == version)
    }

    #[inline]
    fn get(
        &mut self,
        table: &TableRef,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        Ok(engine_table(table)?.get(&mut self.inner, key, mode, payload)?)
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
        let row = &mut self.buffers.get().row;
        let found = (primary_key, payload);
        reading::get_by_entry(&mut self.inner, table, (index, entry), mode, row, found)
    }

    fn summarise(
        &mut self,
        table: &TableRef,
        options: &ScanOptions,
        grouping: &Grouping,
    ) -> RowsResult<Option<Box<dyn Summaries>>> {
        reading::summarise(self, table, options, grouping)
    }

    fn scan(&mut self, table: &TableRef, options: &ScanOptions) -> RowsResult<Box<dyn Scan>> {
        reading::scan(self, table, options)
    }

    fn unlock(&mut self, table: &TableRef, key: &[u8]) {
        if self.inner.isolation() == IsolationLevel::ReadCommitted
            && let Ok(table) = engine_table(table)
        {
            self.inner.unlock(table.clustered(), key);
        }
    }

    fn read_overflow(
        &self,
        table: &TableRef,
        reference: OverflowReference,
        range: Range<u64>,
        into: &mut Vec<u8>,
    ) -> RowsResult<()> {
        Ok(engine_table(table)?.read_part(&self.inner, reference, range, into)?)
    }

    fn insert(&mut self, table: &TableRef, row: &[ValueRef<'_>]) -> RowsResult<()> {
        Ok(engine_table(table)?.insert(&mut self.inner, row, &mut self.buffers.get().write)?)
    }

    fn insert_rows(&mut self, table: &TableRef, values: &[ValueRef<'_>]) -> RowsResult<()> {
        let buffers = &mut self.buffers.get().write;
        Ok(engine_table(table)?.insert_rows(&mut self.inner, values, buffers)?)
    }

    fn update(
        &mut self,
        table: &TableRef,
        key: &[u8],
        payload: &[u8],
        changes: &[(usize, ValueRef<'_>)],
    ) -> RowsResult<()> {
        let table = engine_table(table)?;
        Ok(table.update_columns(
            &mut self.inner,
            key,
            payload,
            changes,
            &mut self.buffers.get().write,
        )?)
    }

    fn delete(&mut self, table: &TableRef, key: &[u8], payload: &[u8]) -> RowsResult<()> {
        Ok(engine_table(table)?.delete_row(
            &mut self.inner,
            key,
            payload,
            &mut self.buffers.get().write,
        )?)
    }

    fn savepoint(&self) -> Savepoint {
        Savepoint(self.inner.savepoint().0.to_u64())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> RowsResult<()> {
        let pointer = UndoPointer::from_u64(savepoint.0);
        Ok(self.inner.rollback_to(transaction::Savepoint(pointer))?)
    }

    fn commit(mut self: Box<Self>) -> RowsResult<()> {
        Ok(self.inner.end_by_commit()?)
    }

    fn commit_or_leave(
        self: Box<Self>,
        listener: &Arc<dyn CommitListener>,
    ) -> RowsResult<Confirmation> {
        Ok(self.inner.commit_or_leave(listener)?)
    }

    fn rollback(self: Box<Self>) -> RowsResult<()> {
        Ok(self.inner.rollback()?)
    }

    fn prepare(self: Box<Self>, xid: &[u8], locks: DetachedLocks) -> RowsResult<Prepared> {
        Ok(self.inner.prepare(xid, locks)?)
    }

    fn hand_over(
        &mut self,
        handover: u64,
        session: u64,
        locks: &DetachedLocks,
    ) -> RowsResult<Option<HandedTransaction>> {
        Ok(self.inner.hand_over(handover, session, locks)?)
    }
}
