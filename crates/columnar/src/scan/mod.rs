//! Scans: a separate task reads rows of a table and makes batches.
//!
//! ```text
//!   reader of the snapshot ──fetch──► row bytes, or kept columns
//!     ──gather──► decode the conditions' columns ──► filter
//!               └► decode the rest of the remaining rows ──► batch
//! ```
//!
//! Decoded columns are kept by leaf (see [`crate::cache`]): no row of an unchanged leaf is read
//! again.
//!
//! A task reads a few batches ahead of the operators, so that two processors overlap. Columns that
//! are needed only after the conditions are decoded only for the selected rows.

mod decode;
pub(crate) mod split;

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use firn_api::rows::{
    Direction, Fetched, HeldLeaves, LeafVersion, ReadMode, RowContent, Scan, ScanOptions, TableRef,
    Transaction,
};
use firn_base::Cts;
use firn_format::key::KeyRange;
use firn_sql::execute::error::from_rows;
use firn_sql::types::TimeZone;
use parking_lot::Mutex;

use crate::batch::{BATCH_ROWS, batch_of};
use crate::cache::{CacheUse, Kept, PackedRows, Place};
use crate::expression::Kernel;
use crate::operator::{leaf, properties, schema_of};
use crate::scope::Reader;
use crate::stop_reason::{Result, Stop, declined};
use crate::value::Field;

pub(crate) use decode::Decoder;
use decode::Gathered;

/// The most bytes of rows for a batch.
const BATCH_BYTES: usize = 4 << 20;
/// Most leaves whose columns are kept together.
const RUN_LEAVES: usize = 16;
/// How many batches a scan reads ahead.
const AHEAD: usize = 3;

/// A column that a scan gives.
#[derive(Debug, Clone)]
pub(crate) struct ScanColumn {
    pub(crate) ordinal: u16,
    pub(crate) field: Field,
}

/// Description of a scan.
pub(crate) struct ScanPart {
    pub(crate) reader: Reader,
    pub(crate) table: TableRef,
    pub(crate) ranges: Vec<(Option<usize>, KeyRange)>,
}

/// The common properties of all parts of a scan.
pub(crate) struct ScanShape {
    pub(crate) direction: Direction,
    /// The columns come from an index alone.
    pub(crate) covered: bool,
    /// All columns that are decoded; conditions read the first ones.
    pub(crate) columns: Vec<ScanColumn>,
    /// How many of them are decoded for every row.
    pub(crate) tested: usize,
    /// Conditions over the tested columns.
    pub(crate) conditions: Vec<Kernel>,
    /// The columns that are returned.
    pub(crate) output: Vec<usize>,
    pub(crate) time_zone: TimeZone,
    /// The cache for the columns, if they are cached.
    pub(crate) cache: Option<CacheUse>,
}

/// An operator that scans a table.
pub(crate) struct TableScan {
    shape: Arc<ScanShape>,
    parts: Mutex<Vec<Option<ScanPart>>>,
    properties: Arc<PlanProperties>,
}

impl TableScan {
    pub(crate) fn new(shape: ScanShape, parts: Vec<ScanPart>) -> TableScan {
        let fields: Vec<Field> =
            shape.output.iter().map(|&number| shape.columns[number].field.clone()).collect();
        let properties = properties(schema_of(&fields), parts.len());
        let parts = Mutex::new(parts.into_iter().map(Some).collect());
        TableScan { shape: Arc::new(shape), parts, properties }
    }
}

impl fmt::Debug for TableScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableScan")
    }
}

impl DisplayAs for TableScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TableScan")
    }
}

impl ExecutionPlan for TableScan {
    leaf!("TableScan");

    fn execute(
        &self,
        partition: usize,
        _: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let part = self.parts.lock().get_mut(partition).and_then(Option::take);
        let part = part.ok_or_else(|| Stop::Declined("a scan is run twice".to_owned()))?;
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), AHEAD);
        let (sender, shape, schema) = (builder.tx(), Arc::clone(&self.shape), self.schema());
        builder.spawn(async move {
            let mut work = Work::new(part, shape, schema);
            let scope = Arc::clone(work.part.reader.scope());
            while scope.check().is_ok() {
                match work.step()? {
                    Step::Batch(batch) => match scope.until_end(sender.send(Ok(batch))).await {
                        Some(Ok(())) => {}
                        _ => break,
                    },
                    // A receiver that has gone is noticed between two batches, even if no row
                    // passes the conditions.
                    Step::Nothing if sender.is_closed() => break,
                    Step::Nothing => tokio::task::yield_now().await,
                    Step::End => break,
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// A scan in progress.
struct Work {
    part: ScanPart,
    shape: Arc<ScanShape>,
    schema: SchemaRef,
    decoder: Decoder,
    scan: Option<Box<dyn Scan>>,
    next_range: usize,
    gathered: Gathered,
    pending: Pending,
    /// Whether the columns still have room in the cache and may be kept.
    keeps: bool,
}

/// The leaves of the rows that were gathered last, whose columns will be kept together.
#[derive(Default)]
struct Pending {
    leaves: Vec<(LeafVersion, usize)>,
    rows: usize,
    /// The places of other cached columns of the first and the last leaf.
    known: Option<(Place, Place)>,
}

impl Pending {
    /// Whether a leaf continues these: all columns have the same runs.
    fn goes_on_with(&self, known: Option<&Place>) -> bool {
        match (&self.known, known) {
            _ if self.leaves.is_empty() => true,
            (None, None) => self.leaves.len() < RUN_LEAVES,
            (Some((_, last)), Some(next)) => last.is_before(next),
            _ => false,
        }
    }

    fn push(&mut self, leaf: LeafVersion, rows: usize, known: Option<Place>) {
        self.leaves.push((leaf, rows));
        self.rows += rows;
        self.known = known.map(|last| {
            let first = self.known.take().map(|(first, _)| first);
            (first.unwrap_or_else(|| last.clone()), last)
        });
    }
}

/// The result of reading some rows.
enum Step {
    Batch(RecordBatch),
    /// No row passed.
    Nothing,
    End,
}

impl Work {
    fn new(part: ScanPart, shape: Arc<ScanShape>, schema: SchemaRef) -> Work {
        let decoder = Decoder::new(&shape);
        let gathered = Gathered::default();
        let keeps = shape.cache.is_some();
        let (scan, pending) = (None, Pending::default());
        Work { part, shape, schema, decoder, scan, next_range: 0, gathered, pending, keeps }
    }

    /// Reads some rows.
    fn step(&mut self) -> Result<Step> {
        self.gather()?;
        if self.gathered.len() == 0 {
            return Ok(Step::End);
        }
        Ok(self.decode_gathered()?.map_or(Step::Nothing, Step::Batch))
    }

    /// Gathers rows until there are enough for a batch, or no more.
    fn gather(&mut self) -> Result<()> {
        self.gathered.clear();
        // Leaves that are kept together are gathered together.
        while !self.gathered.is_full() || !self.pending.leaves.is_empty() {
            if self.scan.is_none() && !self.begin_range()? {
                break;
            }
            let Some(mut scan) = self.scan.take() else { break };
            if self.gather_next(&mut *scan)? {
                self.scan = Some(scan);
            } else {
                self.finish_pending()?;
            }
        }
        Ok(())
    }

    /// Gathers the next rows; false at the end.
    fn gather_next(&mut self, scan: &mut dyn Scan) -> Result<bool> {
        let transaction = self.part.reader.transaction();
        let (cache, snapshot) = (self.shape.cache.as_ref(), transaction.snapshot());
        let (fetched, kept) = match cache.zip(snapshot) {
            None if scan.fetch(transaction).map_err(from_rows)? => {
                (Fetched::Rows(None), Kept::Nothing)
            }
            None => (Fetched::End, Kept::Nothing),
            Some((cache, snapshot)) => fetch_unless_kept(scan, transaction, cache, snapshot)?,
        };
        match (fetched, kept) {
            (Fetched::End | Fetched::Next(_), _) => return Ok(false),
            (Fetched::Held(leaves), Kept::All(part)) => {
                self.finish_pending()?;
                let Some(rows) = part.rows_of(leaves) else {
                    return declined("more leaves were left out than are held");
                };
                self.gathered.append_packed(rows);
            }
            (Fetched::Held(_), _) => return declined("a leaf was left out that is not held"),
            (Fetched::Rows(leaf), kept) => {
                let known = match kept {
                    Kept::Others(place) => Some(place),
                    Kept::Nothing | Kept::All(_) => None,
                };
                self.gather_rows(scan, leaf.filter(|_| self.keeps), known)?;
            }
        }
        Ok(true)
    }

    /// Gathers the rows of a batch; if they are all rows of a leaf, its columns will be kept.
    fn gather_rows(
        &mut self,
        scan: &dyn Scan,
        leaf: Option<LeafVersion>,
        known: Option<Place>,
    ) -> Result<()> {
        if leaf.is_none() || !self.pending.goes_on_with(known.as_ref()) {
            self.finish_pending()?;
        }
        match scan.batch() {
            Some(batch) => self.gathered.append(&batch),
            None => {
                for row in 0..scan.len() {
                    if let RowContent::Columns(values) = scan.row(row).content {
                        self.decoder.append_entry(values)?;
                    }
                }
                if leaf.is_none() {
                    let (total, columns) = (scan.len(), self.decoder.finish_entries());
                    self.gathered.append_packed(PackedRows { total, rows: 0..total, columns });
                }
            }
        }
        if let Some(leaf) = leaf {
            self.pending.push(leaf, scan.len(), known);
            let is_last = self.pending.known.as_ref().is_some_and(|(_, last)| last.is_last());
            if is_last || self.pending.rows >= BATCH_ROWS {
                self.finish_pending()?;
            }
        }
        Ok(())
    }

    /// Keeps the columns of the leaves that were gathered last.
    fn finish_pending(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if pending.leaves.is_empty() {
            return Ok(());
        }
        let total = pending.rows;
        let packed = |columns| PackedRows { total, rows: 0..total, columns };
        let columns = if self.shape.covered {
            let columns = self.decoder.finish_entries();
            self.gathered.append_packed(packed(columns.clone()));
            columns
        } else {
            let source = decode::Source {
                table: &self.part.table,
                transaction: self.part.reader.shared(),
                reads_overflow: false,
            };
            let columns = match self.decoder.pack(&source, &self.gathered.last_rows(total)) {
                Ok(columns) => columns,
                // Rows that are not chosen may have values for which there is no column.
                Err(Stop::Declined(_)) => {
                    self.keeps = false;
                    return Ok(());
                }
                Err(stop) => return Err(stop),
            };
            self.gathered.replace_last_rows(packed(columns.clone()));
            columns
        };
        let snapshot = self.part.reader.transaction().snapshot();
        if let (Some(cache), Some(snapshot)) = (&self.shape.cache, snapshot) {
            let known = pending.known.filter(|(_, last)| last.is_last());
            let first = known.as_ref().map(|(first, _)| first);
            self.keeps = cache.put(&pending.leaves, snapshot, &columns, first);
        }
        Ok(())
    }

    fn begin_range(&mut self) -> Result<bool> {
        let Some((index, range)) = self.part.ranges.get(self.next_range) else { return Ok(false) };
        self.next_range += 1;
        let ordinals = || self.shape.columns.iter().map(|column| column.ordinal).collect();
        let options = ScanOptions {
            index: *index,
            range: range.clone(),
            direction: self.shape.direction,
            mode: ReadMode::Consistent,
            columns: self.shape.covered.then(ordinals),
            batch_rows: usize::MAX,
            filter: None,
            limit: None,
        };
        let table = &self.part.table;
        self.scan = Some(self.part.reader.transaction().scan(table, &options).map_err(from_rows)?);
        Ok(true)
    }

    fn decode_gathered(&mut self) -> Result<Option<RecordBatch>> {
        let shape = Arc::clone(&self.shape);
        let source = decode::Source {
            table: &self.part.table,
            transaction: self.part.reader.shared(),
            reads_overflow: true,
        };
        let (gathered, rest) = (&self.gathered, shape.tested..shape.columns.len());
        let tested = self.decoder.decode(&source, gathered, 0..shape.tested, None)?;
        if shape.conditions.is_empty() {
            let mut columns = tested;
            columns.extend(self.decoder.decode(&source, gathered, rest, None)?);
            return self.output(columns, gathered.len()).map(Some);
        }
        let schema = decode::schema(&shape.columns[..shape.tested]);
        let batch = batch_of(schema, tested, gathered.len())?;
        let chosen = crate::operator::chosen(&shape.conditions, &batch)?;
        let chosen_rows = chosen.true_count();
        if chosen_rows == 0 {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(shape.columns.len());
        for column in batch.columns() {
            columns.push(compute::filter(column, &chosen)?);
        }
        columns.extend(self.decoder.decode(&source, gathered, rest, Some(&chosen))?);
        self.output(columns, chosen_rows).map(Some)
    }

    fn output(&self, columns: Vec<arrow::array::ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let columns = self.shape.output.iter().map(|&number| columns[number].clone()).collect();
        batch_of(Arc::clone(&self.schema), columns, rows)
    }
}

/// Fetches the next rows, unless the cache has their columns; returns what it has of them.
fn fetch_unless_kept(
    scan: &mut dyn Scan,
    transaction: &mut dyn Transaction,
    cache: &CacheUse,
    snapshot: Cts,
) -> Result<(Fetched, Kept)> {
    let mut named = None;
    loop {
        let held = match &named {
            None => HeldLeaves::Unknown,
            Some(Kept::All(part)) => HeldLeaves::Leaves(part.leaves()),
            Some(Kept::Nothing | Kept::Others(_)) => HeldLeaves::No,
        };
        match scan.fetch_unless_held(transaction, held).map_err(from_rows)? {
            Fetched::Next(leaf) => named = Some(cache.get(leaf, snapshot)),
            fetched => return Ok((fetched, named.unwrap_or(Kept::Nothing))),
        }
    }
}
