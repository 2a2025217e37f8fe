//! `ANALYZE TABLE`: reading rows and counting their values.
//!
//! Rows are read in slices, each with its own snapshot: no session waits, and however long it takes
//! to read a table beside its writers, old versions can be purged. Of a table with more than
//! [`MAX_ROWS`] rows, only that many are read, and the counts are scaled up. Distinct values are
//! [counted](distinct) by hashes of their sort keys; histograms are made from a sample of at
//! most [`SAMPLE_ROWS`] values. Sort keys of texts are the most expensive part: for texts without
//! an index, only the sample is used.

mod distinct;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use firn_api::rows::{IsolationLevel, RowContent, RowsError, ScanOptions, cell_value};
use firn_format::key::KeyRange;
use firn_format::row::{ColumnValue, RowView};
use firn_format::value::ValueRef;
use firn_sql_types::error::{Result, SqlError, from_rows};
use firn_sql_types::{Datum, EvaluationContext, SqlType, TypeKind, sort_key};
use rustc_hash::FxHasher;

use super::lookup::Catalog;
use super::model::{ColumnModel, IndexModel, TableModel};
use super::statistics::{ColumnStatistics, Gathered, Histogram, scaled, stored};
use distinct::{DistinctCount, estimated_from};

/// The most rows that are read.
const MAX_ROWS: u64 = 1_000_000;
/// Approximate number of rows that one snapshot reads.
const SLICE_ROWS: u64 = 1_000;
/// The most values of a column for its histogram.
const SAMPLE_ROWS: usize = 16_384;

/// How often a table is read at most if its definition changes meanwhile.
const MOST_LOOKS: usize = 3;

/// Reads a table and keeps its statistics for the planner, unless another caller has stored newer
/// ones meanwhile. Blocks until it is done; calls `go_on` after each slice.
///
/// # Errors
/// If rows cannot be read; 1317 if `go_on` returns false.
pub fn analyze_table(
    catalog: &Catalog,
    table: &Arc<TableModel>,
    evaluation: &EvaluationContext,
    go_on: &dyn Fn() -> bool,
) -> Result<()> {
    let mut table = Arc::clone(table);
    for _ in 0..MOST_LOOKS {
        let look = table.statistics.begin_look();
        let gathered = gather(catalog, &table, evaluation, go_on)?.map(Arc::new);
        match (catalog.table_by_id(table.id)?, gathered) {
            (Some(current), Some(gathered)) if Arc::ptr_eq(&current, &table) => {
                if table.statistics.set_gathered(Arc::clone(&gathered), look) {
                    // A server that cannot write continues with the statistics in memory.
                    let _ = stored::write(catalog.node(), table.id, &gathered);
                }
                return Ok(());
            }
            // Statistics of an index that was added meanwhile must not be lost.
            (Some(current), _) => table = current,
            (None, _) => return Ok(()),
        }
    }
    Ok(())
}

/// The table's statistics; `None` if its definition has changed meanwhile.
fn gather(
    catalog: &Catalog,
    table: &Arc<TableModel>,
    evaluation: &EvaluationContext,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Gathered>> {
    let estimate = table.statistics.rows();
    let mut counts = Counts::new(table);
    let mut row = vec![Datum::Null; table.ordinals()];
    let mut place = Some(Vec::new());
    while let Some(start) = place.take_if(|_| counts.rows < MAX_ROWS) {
        match read_slice(catalog, table, evaluation, start, &mut row, &mut counts)? {
            Slice::Changed => return Ok(None),
            Slice::UpTo(next) => place = next,
        }
        if !go_on() {
            return Err(from_rows(RowsError::Cancelled));
        }
    }
    let is_complete = place.is_none();
    let rows = if is_complete { counts.rows as f64 } else { estimate.max(counts.rows as f64) };
    Ok(Some(counts.finish(rows)))
}

/// How a slice of a table ended.
enum Slice {
    /// The definition has changed.
    Changed,
    /// Where the next one begins; `None` at the table's end.
    UpTo(Option<Vec<u8>>),
}

/// Counts about [`SLICE_ROWS`] rows from a key on, as of now.
fn read_slice(
    catalog: &Catalog,
    table: &Arc<TableModel>,
    evaluation: &EvaluationContext,
    start: Vec<u8>,
    row: &mut [Datum],
    counts: &mut Counts<'_>,
) -> Result<Slice> {
    let node = catalog.node();
    let mut trx = node.begin(IsolationLevel::ReadCommitted).map_err(from_rows)?;
    let mut values = node.begin(IsolationLevel::ReadCommitted).map_err(from_rows)?;
    trx.open_snapshot();
    values.open_snapshot();
    let Some(current) = catalog.table_by_id(table.id)? else { return Ok(Slice::Changed) };
    if !Arc::ptr_eq(&current, table) {
        return Ok(Slice::Changed);
    }
    let from = trx.table_for_read(table.id).map_err(from_rows)?;
    let range = KeyRange { start, end: None };
    let mut scan =
        trx.scan(&from, &ScanOptions { range, ..ScanOptions::all() }).map_err(from_rows)?;
    let mut buffer = Vec::new();
    let mut last = Vec::new();
    let end = counts.rows + SLICE_ROWS;
    while counts.rows < end {
        if !scan.fetch(&mut *trx).map_err(from_rows)? {
            return Ok(Slice::UpTo(None));
        }
        for number in 0..scan.len() {
            let found = scan.row(number);
            let RowContent::Payload(payload) = found.content else { continue };
            let view = RowView::parse(&from.layout().row, payload).map_err(damaged)?;
            for counted in &mut counts.columns {
                let ordinal = usize::from(counted.column.ordinal);
                let cell = view.column(ordinal).map_err(damaged)?;
                let Some(place) = counted.wants(&cell) else { continue };
                let value = cell_value(&*values, &from, cell, &mut buffer).map_err(from_rows)?;
                let datum = Datum::from_value_ref(value, &counted.column.ty, &evaluation.time_zone);
                row[ordinal] = datum.map_err(damaged)?;
                counted.add(&row[ordinal], place, &mut counts.key);
            }
            counts.add_to_indexes(row);
            last.clear();
            last.extend_from_slice(found.key);
        }
    }
    // The first key after the last one.
    last.push(0);
    Ok(Slice::UpTo(Some(last)))
}

fn damaged(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(1030, format!("Got error '{error}' from storage engine"))
}

/// What is counted while rows are read.
struct Counts<'a> {
    rows: u64,
    columns: Vec<ColumnCount<'a>>,
    indexes: Vec<IndexCount<'a>>,
    table: &'a TableModel,
    /// Bytes of a sort key, reused.
    key: Vec<u8>,
}

struct ColumnCount<'a> {
    column: &'a ColumnModel,
    nulls: u64,
    /// `None`: estimated from the sample.
    distinct: Option<DistinctCount>,
    sample: Vec<Datum>,
    /// Values that were not NULL.
    seen: u64,
}

struct IndexCount<'a> {
    index: &'a IndexModel,
    /// For the first one, two … columns.
    distinct: Vec<DistinctCount>,
}

impl<'a> Counts<'a> {
    fn new(table: &'a TableModel) -> Counts<'a> {
        let is_indexed = |column: &ColumnModel| {
            let mut parts = table.indexes.iter().flat_map(|index| &index.parts);
            parts.any(|part| part.ordinal == column.ordinal)
        };
        let columns = table.columns.iter().filter(|column| {
            !matches!(
                column.ty.kind,
                TypeKind::Json | TypeKind::Geometry | TypeKind::Blob { .. } | TypeKind::Text { .. }
            ) || is_indexed(column)
        });
        let columns = columns.map(|column| ColumnCount {
            column,
            nulls: 0,
            distinct: (is_indexed(column) || !column.ty.kind.is_string())
                .then(DistinctCount::default),
            sample: Vec::new(),
            seen: 0,
        });
        let indexes = table.indexes.iter().filter(|index| index.parts.len() > 1 || !index.unique);
        let indexes = indexes.map(|index| IndexCount {
            index,
            distinct: vec![DistinctCount::default(); index.parts.len()],
        });
        Counts {
            rows: 0,
            columns: columns.collect(),
            indexes: indexes.collect(),
            table,
            key: Vec::new(),
        }
    }

    /// Counts a row whose indexed columns are in `row`.
    fn add_to_indexes(&mut self, row: &[Datum]) {
        self.rows += 1;
        for counted in &mut self.indexes {
            self.key.clear();
            for (part, distinct) in counted.index.parts.iter().zip(&mut counted.distinct) {
                let Some(column) = self.table.by_ordinal(part.ordinal) else { continue };
                let datum = &row[usize::from(part.ordinal)];
                sort_key::write_sort_key(datum, &column.ty, false, &mut self.key);
                distinct.add(hash(&self.key));
            }
        }
    }

    fn finish(self, rows: f64) -> Gathered {
        let read = self.rows as f64;
        let scale = |distinct: &DistinctCount| scaled(distinct.estimate(), read, rows);
        let columns = self.columns.into_iter().map(|counted| {
            let statistics = ColumnStatistics {
                null_fraction: if read > 0.0 { counted.nulls as f64 / read } else { 0.0 },
                distinct: match &counted.distinct {
                    Some(distinct) => scale(distinct),
                    None => counted.distinct_of_sample(rows / read.max(1.0)),
                },
                histogram: histogram(&counted.column.ty, counted.sample),
            };
            (counted.column.name.as_ref().into(), statistics)
        });
        let indexes = self.indexes.into_iter().map(|counted| {
            let distinct = counted.distinct.iter().map(scale).collect();
            (counted.index.name.as_ref().into(), distinct)
        });
        Gathered { rows, columns: columns.collect(), indexes: indexes.collect() }
    }
}

/// Long values tell little and would be stored twice.
fn histogram(ty: &SqlType, sample: Vec<Datum>) -> Option<Histogram> {
    let is_long = matches!(ty.kind, TypeKind::Text { .. } | TypeKind::Blob { .. });
    if is_long { None } else { Histogram::of(ty, sample) }
}

impl ColumnCount<'_> {
    /// Counts the value of the current row. Returns whether the value must also be
    /// [added](ColumnCount::add), and its place in the sample if it gets one.
    fn wants(&mut self, cell: &ColumnValue<'_>) -> Option<Option<usize>> {
        let mut place = None;
        if matches!(cell, ColumnValue::Inline(ValueRef::Null)) {
            self.nulls += 1;
        } else {
            self.seen += 1;
            place = self.place_of_next();
        }
        (place.is_some() || self.distinct.is_some()).then_some(place)
    }

    /// Every value is in the sample with the same probability: once it is full, the n-th value gets
    /// a place with probability size / n. The places are as random as the hash of n.
    fn place_of_next(&self) -> Option<usize> {
        if self.sample.len() < SAMPLE_ROWS {
            return Some(self.sample.len());
        }
        let place = hash(&self.seen.to_le_bytes()) % self.seen;
        Some(place as usize).filter(|place| *place < SAMPLE_ROWS)
    }

    /// Counts a value that was [wanted](ColumnCount::wants), or a NULL.
    fn add(&mut self, datum: &Datum, place: Option<usize>, key: &mut Vec<u8>) {
        if datum.is_null() {
            return;
        }
        if let Some(distinct) = &mut self.distinct {
            distinct.add(hash_of(datum, &self.column.ty, key));
        }
        match place {
            Some(place) if place == self.sample.len() => self.sample.push(datum.clone()),
            Some(place) => self.sample[place] = datum.clone(),
            None => {}
        }
    }

    /// The estimated number of distinct values, from the sample, in this many times the rows that
    /// were read.
    fn distinct_of_sample(&self, times: f64) -> f64 {
        let mut key = Vec::new();
        let hashes = self.sample.iter().map(|datum| hash_of(datum, &self.column.ty, &mut key));
        let mut hashes: Vec<_> = hashes.collect();
        estimated_from(&mut hashes, self.seen as f64 * times)
    }
}

fn hash_of(datum: &Datum, ty: &SqlType, key: &mut Vec<u8>) -> u64 {
    key.clear();
    sort_key::write_sort_key(datum, ty, false, key);
    hash(key)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    bytes.hash(&mut hasher);
    // The hasher's low bits are its weakest.
    hasher.finish().swap_bytes().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hasher.finish()
}
