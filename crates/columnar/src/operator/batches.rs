//! Batches that exist already.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::{leaf, properties};

/// An operator that returns existing batches.
#[derive(Debug)]
pub(crate) struct Batches {
    batches: Vec<RecordBatch>,
    properties: Arc<PlanProperties>,
}

impl Batches {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Batches {
        Batches { batches, properties: properties(schema, 1) }
    }
}

impl DisplayAs for Batches {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Batches")
    }
}

impl ExecutionPlan for Batches {
    leaf!("Batches");

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> LibraryResult<SendableRecordBatchStream> {
        let batches = futures::stream::iter(self.batches.clone().into_iter().map(Ok));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
