//! Groups of rows that arrive in the order of their keys: a group is complete when the next key
//! arrives, so few groups are in memory at a time.
//!
//! ```text
//!   rows  a a a b b c c c c d     table:  a b c ─► out when there are many, at the border of a key
//! ```

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::not_distinct;
use datafusion_common::Result as LibraryResult;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion_physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use super::aggregate::{Groups, Shape};
use super::{over_input, properties};
use crate::aggregate::Call;
use crate::scope::Scope;
use crate::stop_reason::Result;

/// Groups that are returned together.
const MANY_GROUPS: usize = 4096;

/// Its input has one partition; its columns are the keys and then the
/// calls.
#[derive(Debug, Clone)]
pub(crate) struct SortedAggregate {
    input: Arc<dyn ExecutionPlan>,
    shape: Arc<Shape>,
    properties: Arc<PlanProperties>,
}

impl SortedAggregate {
    /// Groups by the first `keys` columns of an input that is sorted by them.
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: usize,
        calls: Vec<Call>,
    ) -> SortedAggregate {
        let shape = Arc::new(Shape::new(&input.schema(), keys, calls));
        let properties = properties(Arc::clone(&shape.schema), 1);
        SortedAggregate { input, shape, properties }
    }
}

impl DisplayAs for SortedAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SortedAggregate")
    }
}

impl ExecutionPlan for SortedAggregate {
    over_input!("SortedAggregate");

    fn execute(
        &self,
        _: usize,
        context: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), 2);
        let sender = builder.tx();
        let mut input = self.input.execute(0, Arc::clone(&context))?;
        let shape = Arc::clone(&self.shape);
        builder.spawn(async move {
            let scope = Scope::of(&context)?;
            let mut work =
                Work { groups: Groups::new(&shape, &context)?, last: None, shape, context };
            while let Some(batch) = input.next().await {
                scope.check()?;
                for complete in work.add(batch?)? {
                    if sender.send(Ok(complete)).await.is_err() {
                        return Ok(());
                    }
                }
            }
            for complete in work.groups.finish(&work.shape)? {
                if sender.send(Ok(complete)).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// A running sorted aggregate.
struct Work {
    groups: Groups,
    /// The key of the last row, as one value each.
    last: Option<Vec<ArrayRef>>,
    shape: Arc<Shape>,
    context: Arc<TaskContext>,
}

impl Work {
    /// Adds rows; returns the completed groups.
    fn add(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        let Some(last_row) = batch.num_rows().checked_sub(1) else { return Ok(Vec::new()) };
        let mut complete = Vec::new();
        let mut batch = batch;
        if self.groups.total() >= MANY_GROUPS
            && let Some(last) = &self.last
        {
            let same = leading_rows_with(last, &batch)?;
            if same <= last_row {
                self.groups.add(&batch.slice(0, same), &self.shape)?;
                batch = batch.slice(same, batch.num_rows() - same);
                let next = Groups::new(&self.shape, &self.context)?;
                complete = std::mem::replace(&mut self.groups, next).finish(&self.shape)?;
            }
        }
        self.groups.add(&batch, &self.shape)?;
        let keys = self.shape.key_schema.fields().len();
        let last = |column: &ArrayRef| column.slice(column.len() - 1, 1);
        self.last = Some(batch.columns()[..keys].iter().map(last).collect());
        Ok(complete)
    }
}

/// How many of a batch's first rows have this key.
fn leading_rows_with(key: &[ArrayRef], batch: &RecordBatch) -> Result<usize> {
    let mut rows = batch.num_rows();
    for (value, column) in key.iter().zip(batch.columns()) {
        let same: BooleanArray = not_distinct(column, &Scalar::new(Arc::clone(value)))?;
        rows = rows.min(same.values().iter().take_while(|same| *same).count());
    }
    Ok(rows)
}
