//! A transaction of a node that follows the log: snapshot and consistent reads, and no more.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Awaited, Cancellation, DescribedTransaction, DetachedLocks, ExpressionEvaluator, Grouping,
    IsolationLevel, Prepared, ReadMark, ReadMode, RowsError, RowsResult, Savepoint, Scan,
    ScanOptions, Summaries, TableRef, Transaction as RowsTransaction,
};
use firn_base::{Cts, TableId};
use firn_format::row::OverflowReference;
use firn_format::undo::UndoPointer;
use firn_format::value::ValueRef;

use crate::dictionary::DictionaryReader;
use crate::error::EngineError;
use crate::replica::by_page::ByPage;
use crate::rows::buffers::SpareBuffers;
use crate::rows::engine_table;
use crate::rows::reading::{self, OverReader};
use crate::transaction::ReadTransaction;

use super::not_leader;

/// An open transaction of a node that follows the log.
pub struct ReplicaTransaction {
    inner: ReadTransaction,
    dictionary: Arc<DictionaryReader>,
    /// For reads that wait only if they meet a change.
    by_page: Option<Arc<ByPage>>,
    buffers: SpareBuffers,
}

impl ReplicaTransaction {
    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If as many transactions are open as the node was set up for.
    pub fn begin(
        dictionary: &Arc<DictionaryReader>,
        isolation: IsolationLevel,
    ) -> Result<ReplicaTransaction, EngineError> {
        let inner = ReadTransaction::begin(dictionary.versions(), isolation)?;
        Ok(ReplicaTransaction::over(dictionary, inner))
    }

    /// Begins a transaction at a snapshot that was decided elsewhere. What it sees is visible here
    /// already. Does not block.
    ///
    /// # Errors
    /// As [`ReplicaTransaction::begin`]; [`EngineError::SnapshotTooOld`] if what it sees may have
    /// been purged.
    pub fn begin_at(
        dictionary: &Arc<DictionaryReader>,
        isolation: IsolationLevel,
        snapshot: Cts,
    ) -> Result<ReplicaTransaction, EngineError> {
        let mut transaction = ReplicaTransaction::begin(dictionary, isolation)?;
        transaction.inner.open_at(snapshot)?;
        Ok(transaction)
    }

    /// The same transaction, which can read before everything is applied that it must see.
    pub(super) fn with_changes_by_page(self, by_page: Option<&Arc<ByPage>>) -> ReplicaTransaction {
        ReplicaTransaction { by_page: by_page.map(Arc::clone), ..self }
    }

    fn over(dictionary: &Arc<DictionaryReader>, inner: ReadTransaction) -> ReplicaTransaction {
        let (dictionary, buffers) = (Arc::clone(dictionary), SpareBuffers::default());
        ReplicaTransaction { inner, dictionary, by_page: None, buffers }
    }
}

impl OverReader for ReplicaTransaction {
    type Reader = ReadTransaction;

    #[inline]
    fn reader_mut(&mut self) -> &mut ReadTransaction {
        &mut self.inner
    }

    fn evaluator(&self) -> &dyn ExpressionEvaluator {
        self.dictionary.evaluator()
    }

    /// Looks after the read: a purge that a snapshot was given up for is applied later than that.
    fn checked<R>(&self, read: RowsResult<R>) -> RowsResult<R> {
        let given_up = self.dictionary.versions().snapshots().given_up();
        if self.inner.snapshot().is_none_or(|snapshot| snapshot >= given_up) {
            return read;
        }
        let message = "This snapshot is older than replica_snapshot_seconds allows, and the \
                       node that writes may have purged what it sees; please retry the transaction";
        Err(RowsError::Other { code: 1412, message: message.to_owned() })
    }
}

impl RowsTransaction for ReplicaTransaction {
    fn isolation(&self) -> IsolationLevel {
        self.inner.isolation()
    }

    fn id(&self) -> Option<u64> {
        None
    }

    fn snapshot(&self) -> Option<Cts> {
        self.inner.snapshot()
    }

    fn set_lock_wait_timeout(&mut self, _timeout: Duration) {}

    fn set_first_updater_wins(&mut self, _refuses: bool) {}

    fn set_cancelled(&mut self, cancellation: &Arc<Cancellation>) {
        self.inner.set_cancelled(Arc::clone(cancellation.flag()));
    }

    /// Without [`ReplicaTransaction::with_changes_by_page`] nothing is ever awaited.
    fn must_see(&mut self, awaited: Option<Awaited>) {
        let behind = awaited.map(|awaited| {
            let by_page = self.by_page.as_ref().expect("what is awaited is found by page");
            by_page.behind(awaited)
        });
        self.inner.must_see(behind);
    }

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

    fn describe(&mut self) -> RowsResult<Option<DescribedTransaction>> {
        Ok(self.inner.describe())
    }

    fn reader(&mut self) -> Option<Box<dyn RowsTransaction>> {
        let sibling = self.inner.open_sibling();
        Some(Box::new(ReplicaTransaction::over(&self.dictionary, sibling)))
    }

    /// No metadata lock keeps the writer from dropping or copying a table after a statement has
    /// looked it up: then it has changed, and the statement looks again.
    fn table_for_read(&mut self, table: TableId) -> RowsResult<TableRef> {
        let found = match self.dictionary.table_for_read(&mut self.inner, table) {
            Err(EngineError::NoSuchTable(gone)) => Err(RowsError::TableChanged(gone)),
            found => found.map(|table| table as TableRef).map_err(RowsError::from),
        };
        self.checked(found)
    }

    fn is_current(&mut self, table: &TableRef, version: u64) -> bool {
        reading::is_current(&self.dictionary, &mut self.inner, table, version)
    }

    fn table_for_write(&mut self, _table: TableId) -> RowsResult<TableRef> {
        not_leader()
    }

    fn check_table(&mut self, table: &TableRef) -> RowsResult<Vec<String>> {
        let problems = reading::check_table(&mut self.inner, table);
        self.checked(problems)
    }

    #[inline]
    fn get(
        &mut self,
        table: &TableRef,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> RowsResult<bool> {
        let found = engine_table(table)?.get(&mut self.inner, key, mode, payload);
        self.checked(found.map_err(RowsError::from))
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
        let found = reading::get_by_entry(&mut self.inner, table, (index, entry), mode, row, found);
        self.checked(found)
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

    fn unlock(&mut self, _table: &TableRef, _key: &[u8]) {}

    fn read_overflow(
        &self,
        table: &TableRef,
        reference: OverflowReference,
        range: Range<u64>,
        into: &mut Vec<u8>,
    ) -> RowsResult<()> {
        let read = engine_table(table)?.read_part(&self.inner, reference, range, into);
        self.checked(read.map_err(RowsError::from))
    }

    fn insert(&mut self, _table: &TableRef, _row: &[ValueRef<'_>]) -> RowsResult<()> {
        not_leader()
    }

    fn insert_rows(&mut self, _table: &TableRef, _values: &[ValueRef<'_>]) -> RowsResult<()> {
        not_leader()
    }

    fn update(
        &mut self,
        _table: &TableRef,
        _key: &[u8],
        _payload: &[u8],
        _changes: &[(usize, ValueRef<'_>)],
    ) -> RowsResult<()> {
        not_leader()
    }

    fn delete(&mut self, _table: &TableRef, _key: &[u8], _payload: &[u8]) -> RowsResult<()> {
        not_leader()
    }

    fn savepoint(&self) -> Savepoint {
        Savepoint(UndoPointer::NONE.to_u64())
    }

    fn rollback_to(&mut self, _savepoint: Savepoint) -> RowsResult<()> {
        Ok(self.inner.check_open()?)
    }

    fn commit(self: Box<Self>) -> RowsResult<()> {
        Ok(self.inner.check_open()?)
    }

    fn rollback(self: Box<Self>) -> RowsResult<()> {
        Ok(())
    }

    fn prepare(self: Box<Self>, _xid: &[u8], _locks: DetachedLocks) -> RowsResult<Prepared> {
        not_leader()
    }
}
