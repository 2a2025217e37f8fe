//! Batches of rows, as they pass between operators.

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;

use crate::stop_reason::Result;

/// Rows of a full batch.
pub(crate) const BATCH_ROWS: usize = 8192;

/// A batch, which may have no columns.
pub(crate) fn batch_of(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}
