//! `UNION ALL`: the rows of one input, then those of the other.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use super::{leaf, properties};

/// The inputs have one partition and one schema.
#[derive(Debug)]
pub(crate) struct Sequence {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl Sequence {
    pub(crate) fn new(
        schema: arrow::datatypes::SchemaRef,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Sequence {
        Sequence { inputs, properties: properties(schema, 1) }
    }
}

impl DisplayAs for Sequence {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sequence")
    }
}

impl ExecutionPlan for Sequence {
    leaf!("Sequence");

    fn execute(
        &self,
        _: usize,
        context: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let inputs: Vec<_> = self.inputs.clone();
        let stream = futures::stream::iter(inputs).flat_map(move |input| {
            match input.execute(0, Arc::clone(&context)) {
                Ok(stream) => stream.boxed(),
                Err(error) => futures::stream::once(futures::future::ready(Err(error))).boxed(),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}
