//! What reading comes to behind the seam, for transactions that write and for those that only read.
//!
//! ```text
//!   EngineTransaction ───► Transaction ──────┐
//!                                            ├─ RecordReader ──► get, scan, check
//!   ReplicaTransaction ──► ReadTransaction ──┘
//! ```
//!
//! Which of the two it is, is known when this is compiled: no read asks for it.

use std::any::Any;
use std::marker::PhantomData;

use firn_api::rows::{
    ExpressionEvaluator, Fetched, FilteredScan, Grouping, HeldLeaves, ReadMode, RowBatch,
    RowSummaries, RowsError, RowsResult, Scan, ScanOptions, ScanRow, Summaries, TableRef,
    Transaction as RowsTransaction,
};

use crate::check::{Problem, Problems, entries};
use crate::dictionary::DictionaryReader;
use crate::table::{self, RowBuffer, Table, TableScan};
use crate::transaction::{ReadTransaction, RecordReader};

use super::engine_table;
use super::lookup::{secondary, shared_engine_table};

/// A transaction behind the seam that has an engine's transaction in it.
pub(super) trait OverReader: RowsTransaction {
    /// The engine's transaction.
    type Reader: RecordReader;
    /// The engine's transaction.
    fn reader_mut(&mut self) -> &mut Self::Reader;
    /// The meaning of expressions.
    fn evaluator(&self) -> &dyn ExpressionEvaluator;
    /// The result of a read, or a refusal if the snapshot may have lost what it sees meanwhile.
    #[inline]
    fn checked<R>(&self, read: RowsResult<R>) -> RowsResult<R> {
        read
    }
}

/// Whether `table`, looked up while the definitions had `version`, holds for the snapshot, which is
/// opened first: what is dropped from then on stays until it is closed.
pub(super) fn is_current(
    dictionary: &DictionaryReader,
    trx: &mut ReadTransaction,
    table: &TableRef,
    version: u64,
) -> bool {
    trx.ensure_snapshot();
    let is_visible =
        |table: &Table| trx.snapshot().is_none_or(|snapshot| snapshot >= table.visible_from());
    dictionary.version() == version && engine_table(table).is_ok_and(is_visible)
}

/// What is wrong with the table's entries, in words. Blocks for I/O.
pub(super) fn check_table(
    trx: &mut impl RecordReader,
    table: &TableRef,
) -> RowsResult<Vec<String>> {
    let table = engine_table(table)?;
    trx.snapshot_reader().ensure_snapshot();
    let mut problems = Problems::default();
    entries::check(trx, table, &mut problems)?;
    let mut words: Vec<String> = problems.first.iter().map(Problem::to_string).collect();
    let left_out = problems.count - words.len() as u64;
    if left_out > 0 {
        words.push(format!("{left_out} more"));
    }
    Ok(words)
}

/// Reads the row to which an entry leads. `row` is memory to work in.
pub(super) fn get_by_entry(
    trx: &mut impl RecordReader,
    table: &TableRef,
    (index, entry): (usize, &[u8]),
    mode: ReadMode,
    row: &mut RowBuffer,
    (primary_key, payload): (&mut Vec<u8>, &mut Vec<u8>),
) -> RowsResult<bool> {
    let table = engine_table(table)?;
    let index = secondary(table, index)?;
    std::mem::swap(&mut row.key, primary_key);
    std::mem::swap(&mut row.payload, payload);
    let found = table.get_by_entry(trx, index, entry, mode, row);
    std::mem::swap(&mut row.key, primary_key);
    std::mem::swap(&mut row.payload, payload);
    Ok(found?)
}

/// A scan for transactions of type `T`; looks at nothing yet.
pub(super) fn scan<T: OverReader>(
    trx: &mut T,
    table: &TableRef,
    options: &ScanOptions,
) -> RowsResult<Box<dyn Scan>> {
    let seam_table = table;
    let table = shared_engine_table(table)?;
    let index = options.index.map(|number| secondary(&table, number)).transpose()?.copied();
    let is_sifted = options.filter.is_some() || options.limit.is_some();
    // Without a filter, no more rows are read than are wanted.
    let most_rows = options.limit.filter(|_| options.filter.is_none()).unwrap_or(u64::MAX);
    let most_rows = usize::try_from(most_rows.max(1)).unwrap_or(usize::MAX);
    let scanned = table::ScanOptions {
        index,
        range: options.range.clone(),
        direction: options.direction,
        mode: options.mode,
        columns: options.columns.clone(),
        batch_rows: options.batch_rows.min(most_rows),
    };
    let scan = table.scan(trx.reader_mut(), scanned)?;
    let scan = Box::new(RowScan::<T> { scan, transactions: PhantomData });
    Ok(match is_sifted {
        true => Box::new(FilteredScan::over(scan, seam_table, options, trx.evaluator())),
        false => scan,
    })
}

/// The summary of a scan's rows for transactions of type `T`; `None` if it has expressions that
/// this node does not know.
pub(super) fn summarise<T: OverReader>(
    trx: &mut T,
    table: &TableRef,
    options: &ScanOptions,
    grouping: &Grouping,
) -> RowsResult<Option<Box<dyn Summaries>>> {
    let unfiltered = ScanOptions { filter: None, limit: None, ..options.clone() };
    let scan = scan(trx, table, &unfiltered)?;
    let summaries = RowSummaries::over(scan, table, options, grouping, trx.evaluator());
    Ok(summaries.map(|summaries| Box::new(summaries) as _))
}

/// A scan in transactions of type `T`.
struct RowScan<T> {
    scan: TableScan,
    transactions: PhantomData<fn(&mut T)>,
}

/// A transaction behind the seam, as this node made it.
fn own<T: OverReader>(trx: &mut dyn RowsTransaction) -> RowsResult<&mut T> {
    let any: &mut dyn Any = trx;
    any.downcast_mut::<T>().ok_or_else(|| RowsError::of_another_node("transaction"))
}

impl<T: OverReader> Scan for RowScan<T> {
    fn fetch(&mut self, trx: &mut dyn RowsTransaction) -> RowsResult<bool> {
        let trx = own::<T>(trx)?;
        let fetched = self.scan.fetch(trx.reader_mut());
        trx.checked(fetched.map_err(RowsError::from))
    }

    fn fetch_unless_held(
        &mut self,
        trx: &mut dyn RowsTransaction,
        held: HeldLeaves<'_>,
    ) -> RowsResult<Fetched> {
        let trx = own::<T>(trx)?;
        let fetched = self.scan.fetch_unless_held(trx.reader_mut(), held);
        trx.checked(fetched.map_err(RowsError::from))
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
