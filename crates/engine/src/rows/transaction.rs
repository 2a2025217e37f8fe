//! A transaction and its scans behind the seam.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Cancellation, DetachedLocks, Fetched, FilteredScan, HeldLeaves, IsolationLevel,
    MetadataContext, Prepared, ReadMark, ReadMode, RowBatch, RowsError, RowsResult, Savepoint,
    Scan, ScanOptions, ScanRow, TableRef, Transaction as RowsTransaction,
};
use firn_base::{Cts, TableId};
use firn_format::row::OverflowReference;
use firn_format::undo::UndoPointer;
use firn_format::value::ValueRef;

use crate::check::{Problem, Problems, entries};
use crate::dictionary::Dictionary;
use crate::error::EngineError;
use crate::lock::LockMode;
use crate::table::{self, Table, TableScan};
use crate::transaction::{self, Transaction};

use super::buffers::SpareBuffers;
use super::error::of_commit;
use super::{engine_table, secondary, shared_engine_table};

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

    fn over(dictionary: &Arc<Dictionary>, inner: Transaction) -> EngineTransaction {
        let buffers = SpareBuffers::default();
        EngineTransaction { inner, dictionary: Arc::clone(dictionary), buffers }
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
        let table = engine_table(table)?;
        self.inner.ensure_snapshot();
        let mut problems = Problems::default();
        entries::check(&mut self.inner, table, &mut problems)?;
        let mut words: Vec<String> = problems.first.iter().map(Problem::to_string).collect();
        let left_out = problems.count - words.len() as u64;
        if left_out > 0 {
            words.push(format!("{left_out} more"));
        }
        Ok(words)
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

    fn read_mark(&self) -> ReadMark {
        self.inner.read_mark()
    }

    fn renew_snapshot(&mut self, before: ReadMark) -> RowsResult<bool> {
        Ok(self.inner.renew_snapshot(before)?)
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
        // The snapshot first: what is dropped from now on stays until it is closed.
        self.inner.ensure_snapshot();
        let is_visible = |table: &Table| {
            self.inner.snapshot().is_none_or(|snapshot| snapshot >= table.visible_from())
        };
        self.dictionary.version() == version && engine_table(table).is_ok_and(is_visible)
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
        let table = engine_table(table)?;
        let index = secondary(table, index)?;
        let row = &mut self.buffers.get().row;
        std::mem::swap(&mut row.key, primary_key);
        std::mem::swap(&mut row.payload, payload);
        let found = table.get_by_entry(&mut self.inner, index, entry, mode, row);
        std::mem::swap(&mut row.key, primary_key);
        std::mem::swap(&mut row.payload, payload);
        Ok(found?)
    }

    fn scan(&mut self, table: &TableRef, options: &ScanOptions) -> RowsResult<Box<dyn Scan>> {
        let seam_table = table;
        let table = shared_engine_table(table)?;
        let index = options.index.map(|number| secondary(&table, number)).transpose()?.copied();
        let scanned = table::ScanOptions {
            index,
            range: options.range.clone(),
            direction: options.direction,
            mode: options.mode,
            columns: options.columns.clone(),
            batch_rows: options.batch_rows,
        };
        let scan = Box::new(EngineScan { scan: table.scan(&mut self.inner, scanned)? });
        Ok(match &options.filter {
            Some(filter) => {
                let columns = options.columns.as_deref();
                Box::new(FilteredScan::over(scan, seam_table, (**filter).clone(), columns))
            }
            None => scan,
        })
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

    fn commit(self: Box<Self>) -> RowsResult<()> {
        self.inner.commit().map_err(of_commit)
    }

    fn rollback(self: Box<Self>) -> RowsResult<()> {
        Ok(self.inner.rollback()?)
    }

    fn prepare(self: Box<Self>, xid: &[u8], locks: DetachedLocks) -> RowsResult<Prepared> {
        self.inner.prepare(xid, locks).map_err(of_commit)
    }
}

/// A scan of this process's engine.
struct EngineScan {
    scan: TableScan,
}

/// The engine's transaction behind the seam.
fn engine_transaction(trx: &mut dyn RowsTransaction) -> RowsResult<&mut Transaction> {
    let any: &mut dyn std::any::Any = trx;
    let trx = any.downcast_mut::<EngineTransaction>();
    let trx = trx.ok_or_else(|| RowsError::Other {
        code: 1030,
        message: "the transaction is of another database node".to_owned(),
    })?;
    Ok(&mut trx.inner)
}

impl Scan for EngineScan {
    fn fetch(&mut self, trx: &mut dyn RowsTransaction) -> RowsResult<bool> {
        Ok(self.scan.fetch(engine_transaction(trx)?)?)
    }

    fn fetch_unless_held(
        &mut self,
        trx: &mut dyn RowsTransaction,
        held: HeldLeaves<'_>,
    ) -> RowsResult<Fetched> {
        Ok(self.scan.fetch_unless_held(engine_transaction(trx)?, held)?)
    }

    fn len(&self) -> usize {
        self.scan.row_count()
    }

    fn row(&self, number: usize) -> ScanRow<'_> {
        self.scan.row(number)
    }

    fn batch(&self) -> Option<RowBatch<'_>> {
        self.scan.batch()
    }

    fn is_covered(&self) -> bool {
        self.scan.is_covered()
    }
}
