//! Conditions and computed columns over an input, in one pass.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute;
use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use firn_format::value::CollationId;
use futures::StreamExt;

use super::{chosen, over_input, properties};
use crate::batch::batch_of;
use crate::expression::{Kernel, negate_zero_away, weights};
use crate::scope::Scope;
use crate::stop_reason::Result;
use crate::value::Physical;

/// A column that a stage returns.
#[derive(Debug)]
pub(crate) enum Output {
    Value(Kernel),
    /// Bytes that compare as the text does.
    Weights(Kernel, CollationId),
    /// A double in which both zeros are equal.
    Number(Kernel),
}

impl Output {
    pub(crate) fn physical(&self) -> Physical {
        match self {
            Output::Value(kernel) => kernel.physical(),
            Output::Weights(..) => Physical::Bytes,
            Output::Number(_) => Physical::Double,
        }
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        match self {
            Output::Value(kernel) => kernel.evaluate(batch),
            Output::Weights(kernel, collation) => Ok(weights(&kernel.evaluate(batch)?, *collation)),
            Output::Number(kernel) => Ok(negate_zero_away(&kernel.evaluate(batch)?)),
        }
    }
}

/// An operator that filters and computes.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    input: Arc<dyn ExecutionPlan>,
    work: Arc<Work>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug)]
struct Work {
    conditions: Vec<Kernel>,
    outputs: Vec<Output>,
}

impl Stage {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        conditions: Vec<Kernel>,
        outputs: Vec<Output>,
    ) -> Stage {
        let column = |(number, output): (usize, &Output)| {
            arrow::datatypes::Field::new(format!("c{number}"), output.physical().data_type(), true)
        };
        let fields: Vec<_> = outputs.iter().enumerate().map(column).collect();
        let schema = Arc::new(arrow::datatypes::Schema::new(fields));
        let properties = properties(schema, input.output_partitioning().partition_count());
        Stage { input, work: Arc::new(Work { conditions, outputs }), properties }
    }
}

impl DisplayAs for Stage {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stage")
    }
}

impl ExecutionPlan for Stage {
    over_input!("Stage");

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let scope = Scope::of(&context)?;
        let input = self.input.execute(partition, context)?;
        let (work, schema) = (Arc::clone(&self.work), self.schema());
        let out_schema = Arc::clone(&schema);
        let stream = input.filter_map(move |batch| {
            let batch = scope.check().and_then(|()| Ok(batch?));
            let done = batch.and_then(|batch| work.run(&batch, &out_schema));
            futures::future::ready(done.map_err(Into::into).transpose())
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }
}

impl Work {
    fn run(
        &self,
        batch: &RecordBatch,
        schema: &arrow::datatypes::SchemaRef,
    ) -> Result<Option<RecordBatch>> {
        let mut left = batch.clone();
        if !self.conditions.is_empty() {
            let chosen = chosen(&self.conditions, batch)?;
            match chosen.true_count() {
                0 => return Ok(None),
                count if count == batch.num_rows() => {}
                _ => left = compute::filter_record_batch(batch, &chosen)?,
            }
        }
        let columns = self.outputs.iter().map(|output| output.evaluate(&left));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        batch_of(Arc::clone(schema), columns, left.num_rows()).map(Some)
    }
}
