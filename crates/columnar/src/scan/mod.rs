//! Scans: rows of a table, read by a task of their own, as batches.
//!
//! ```text
//!   reader of the snapshot ──Scan::fetch──► row bytes ──gather──► decode conditions' columns ──► filter
//!                                                                 └► decode the rest of what is left ──► batch
//! ```
//!
//! A task reads ahead of the operators by a few batches, so that two processors overlap. Columns that only
//! rows with true conditions need are decoded of those rows alone.

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
use firn_api::rows::{Direction, ReadMode, RowContent, ScanOptions, TableRef};
use firn_format::key::KeyRange;
use firn_sql::error::SqlError;
use firn_sql::execute::error::from_rows;
use firn_sql::types::TimeZone;
use parking_lot::Mutex;

use crate::expression::Kernel;
use crate::operator::{leaf, properties, schema_of};
use crate::scope::Reader;
use crate::stop::{Result, Stop};
use crate::value::Field;

pub(crate) use decode::Decoder;
use decode::Gathered;

/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 8192;
/// Bytes of rows that a batch is made of at most.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that a scan is ahead.
const AHEAD: usize = 3;

/// A column that a scan gives.
#[derive(Debug, Clone)]
pub(crate) struct ScanColumn {
    pub(crate) ordinal: u16,
    pub(crate) field: Field,
}

/// What a scan does.
pub(crate) struct ScanPart {
    pub(crate) reader: Reader,
    pub(crate) table: TableRef,
    pub(crate) ranges: Vec<(Option<usize>, KeyRange)>,
}

/// What all parts of a scan do.
pub(crate) struct ScanShape {
    pub(crate) direction: Direction,
    /// Ordinals that an index gives by itself.
    pub(crate) covered: bool,
    /// All columns that are decoded; conditions read the first ones.
    pub(crate) columns: Vec<ScanColumn>,
    /// How many of them are decoded for every row.
    pub(crate) tested: usize,
    /// Over the tested columns.
    pub(crate) conditions: Vec<Kernel>,
    /// Which of the columns go out.
    pub(crate) output: Vec<usize>,
    pub(crate) time_zone: TimeZone,
}

/// See the module's page.
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
                    // Whoever wants an end is heard between two batches, also where no row is let through.
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

/// A scan at work.
struct Work {
    part: ScanPart,
    shape: Arc<ScanShape>,
    schema: SchemaRef,
    decoder: Decoder,
    scan: Option<Box<dyn firn_api::rows::Scan>>,
    next_range: usize,
    gathered: Gathered,
}

/// What came of reading some rows.
enum Step {
    Batch(RecordBatch),
    /// No row was let through.
    Nothing,
    End,
}

impl Work {
    fn new(part: ScanPart, shape: Arc<ScanShape>, schema: SchemaRef) -> Work {
        let decoder = Decoder::new(&shape);
        let gathered = Gathered::default();
        Work { part, shape, schema, decoder, scan: None, next_range: 0, gathered }
    }

    /// Reads some rows.
    fn step(&mut self) -> Result<Step> {
        let batch = match self.gather()? {
            Some((covered, rows)) => self.finish(covered, rows)?,
            None if self.gathered.len() == 0 => return Ok(Step::End),
            None => self.decode_gathered()?,
        };
        Ok(batch.map_or(Step::Nothing, Step::Batch))
    }

    /// Gathers rows until there are enough for a batch or no more. Rows that come from an index alone are
    /// answered as columns.
    fn gather(&mut self) -> Result<Option<(Vec<arrow::array::ArrayRef>, usize)>> {
        self.gathered.clear();
        while !self.gathered.is_full() {
            if self.scan.is_none() && !self.begin_range()? {
                break;
            }
            let Some(scan) = &mut self.scan else { break };
            if !scan.fetch(self.part.reader.transaction()).map_err(sql)? {
                self.scan = None;
                continue;
            }
            if let Some(batch) = scan.batch() {
                self.gathered.append(&batch);
                continue;
            }
            for number in 0..scan.len() {
                if let RowContent::Columns(values) = scan.row(number).content {
                    self.decoder.append_values(values)?;
                }
            }
            if self.decoder.value_rows() >= BATCH_ROWS {
                break;
            }
        }
        let rows = self.decoder.value_rows();
        if rows > 0 { Ok(Some((self.decoder.finish_values(), rows))) } else { Ok(None) }
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
        };
        let table = &self.part.table;
        self.scan = Some(self.part.reader.transaction().scan(table, &options).map_err(sql)?);
        Ok(true)
    }

    fn decode_gathered(&mut self) -> Result<Option<RecordBatch>> {
        let shape = Arc::clone(&self.shape);
        let source = decode::Source {
            gathered: &self.gathered,
            table: &self.part.table,
            transaction: self.part.reader.shared(),
        };
        let tested = self.decoder.decode(&source, 0..shape.tested, None)?;
        if shape.conditions.is_empty() {
            let mut columns = tested;
            columns.extend(self.decoder.decode(
                &source,
                shape.tested..shape.columns.len(),
                None,
            )?);
            return self.output(columns, self.gathered.len()).map(Some);
        }
        let schema = decode::schema(&shape.columns[..shape.tested]);
        let batch = batch_of(schema, tested, self.gathered.len())?;
        let chosen = crate::operator::chosen(&shape.conditions, &batch)?;
        let chosen_rows = chosen.true_count();
        if chosen_rows == 0 {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(shape.columns.len());
        for column in batch.columns() {
            columns.push(compute::filter(column, &chosen)?);
        }
        let rest = shape.tested..shape.columns.len();
        columns.extend(self.decoder.decode(&source, rest, Some(&chosen))?);
        self.output(columns, chosen_rows).map(Some)
    }

    /// A batch of columns that have all been decoded.
    fn finish(
        &self,
        columns: Vec<arrow::array::ArrayRef>,
        rows: usize,
    ) -> Result<Option<RecordBatch>> {
        let schema = decode::schema(&self.shape.columns);
        let mut batch = batch_of(schema, columns, rows)?;
        if !self.shape.conditions.is_empty() {
            let chosen = crate::operator::chosen(&self.shape.conditions, &batch)?;
            batch = compute::filter_record_batch(&batch, &chosen)?;
        }
        if batch.num_rows() == 0 {
            return Ok(None);
        }
        let rows = batch.num_rows();
        self.output(batch.columns().to_vec(), rows).map(Some)
    }

    fn output(&self, columns: Vec<arrow::array::ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let columns = self.shape.output.iter().map(|&number| columns[number].clone()).collect();
        batch_of(Arc::clone(&self.schema), columns, rows)
    }
}

/// A batch, which may have no columns.
pub(crate) fn batch_of(
    schema: SchemaRef,
    columns: Vec<arrow::array::ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

fn sql(error: firn_api::rows::RowsError) -> SqlError {
    from_rows(error)
}
