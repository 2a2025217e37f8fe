//! Groups in a hash table, one table for each input partition; the tables are merged at the end.
//!
//! ```text
//!   columns: keys │ arguments     keys ──intern──► number of the group ──► accumulators
//! ```

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result as LibraryResult;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::EmitTo;
use datafusion_physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion_physical_plan::aggregates::order::GroupOrdering;
use datafusion_physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use firn_sql::execute::free;
use futures::StreamExt;
use tokio::task::JoinSet;

use super::{over_input, properties};
use crate::aggregate::{Accumulator, Call};
use crate::batch::{BATCH_ROWS, batch_of};
use crate::scope::Scope;
use crate::stop_reason::{Result, Stop};

/// Its columns are the keys and then the calls.
#[derive(Debug, Clone)]
pub(crate) struct HashAggregate {
    input: Arc<dyn ExecutionPlan>,
    shape: Arc<Shape>,
    properties: Arc<PlanProperties>,
}

/// The grouped input and the resulting columns.
#[derive(Debug)]
pub(super) struct Shape {
    /// The first columns of the input.
    pub(super) key_schema: SchemaRef,
    calls: Vec<Call>,
    pub(super) schema: SchemaRef,
}

impl Shape {
    /// Groups by the first `keys` columns of an input.
    pub(super) fn new(input: &SchemaRef, keys: usize, calls: Vec<Call>) -> Shape {
        let mut fields: Vec<_> = input.fields().iter().take(keys).cloned().collect();
        let key_schema = Arc::new(Schema::new(fields.clone()));
        for call in &calls {
            let name = format!("c{}", fields.len());
            let field = arrow::datatypes::Field::new(name, call.physical.data_type(), true);
            fields.push(Arc::new(field));
        }
        Shape { key_schema, calls, schema: Arc::new(Schema::new(fields)) }
    }
}

impl HashAggregate {
    /// Groups by the first `keys` columns of the input.
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        keys: usize,
        calls: Vec<Call>,
    ) -> HashAggregate {
        let shape = Arc::new(Shape::new(&input.schema(), keys, calls));
        let properties = properties(Arc::clone(&shape.schema), 1);
        HashAggregate { input, shape, properties }
    }
}

impl DisplayAs for HashAggregate {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashAggregate")
    }
}

impl ExecutionPlan for HashAggregate {
    over_input!("HashAggregate");

    fn execute(
        &self,
        _: usize,
        context: Arc<TaskContext>,
    ) -> LibraryResult<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStreamBuilder::new(self.schema(), 2);
        let sender = builder.tx();
        let (input, shape) = (Arc::clone(&self.input), Arc::clone(&self.shape));
        builder.spawn(async move {
            let groups = gather(&input, &shape, &context).await?;
            for batch in groups.finish(&shape)? {
                if sender.send(Ok(batch)).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// The groups of all partitions.
async fn gather(
    input: &Arc<dyn ExecutionPlan>,
    shape: &Arc<Shape>,
    context: &Arc<TaskContext>,
) -> Result<Groups> {
    let mut tasks: Vec<JoinSet<Result<Groups>>> = Vec::new();
    for partition in 0..input.output_partitioning().partition_count() {
        let stream = input.execute(partition, Arc::clone(context))?;
        let (shape, context) = (Arc::clone(shape), Arc::clone(context));
        let task = async move { group(stream, &shape, &context).await };
        // A set of one: dropping it ends the task.
        let mut alone = JoinSet::new();
        alone.spawn(task);
        tasks.push(alone);
    }
    let mut all: Option<Groups> = None;
    for mut task in tasks {
        let part = match task.join_next().await {
            Some(joined) => joined.map_err(ended)??,
            None => return crate::stop_reason::declined("a task is gone"),
        };
        all = Some(match all {
            None => part,
            Some(mut all) => {
                all.merge(part)?;
                all
            }
        });
    }
    all.ok_or_else(|| Stop::Declined("a plan has no partitions".to_owned()))
}

fn ended(error: impl fmt::Display) -> Stop {
    Stop::Declined(error.to_string())
}

async fn group(
    mut stream: SendableRecordBatchStream,
    shape: &Shape,
    context: &TaskContext,
) -> Result<Groups> {
    let scope = Scope::of(context)?;
    let mut groups = Groups::new(shape, context)?;
    while let Some(batch) = stream.next().await {
        scope.check()?;
        groups.add(&batch?, shape)?;
    }
    Ok(groups)
}

/// The groups of a partition.
pub(super) struct Groups {
    keys: Option<Box<dyn GroupValues>>,
    accumulators: Vec<Box<dyn Accumulator>>,
    numbers: Vec<usize>,
    held: MemoryReservation,
}

impl Groups {
    pub(super) fn new(shape: &Shape, context: &TaskContext) -> Result<Groups> {
        let keys = match shape.key_schema.fields().is_empty() {
            true => None,
            false => Some(new_group_values(Arc::clone(&shape.key_schema), &GroupOrdering::None)?),
        };
        let held = MemoryConsumer::new("groups").register(context.memory_pool());
        let accumulators = shape.calls.iter().map(Call::accumulator).collect();
        Ok(Groups { keys, accumulators, numbers: Vec::new(), held })
    }

    /// The number of groups; without keys there is one, even without rows.
    pub(super) fn total(&self) -> usize {
        self.keys.as_ref().map_or(1, |keys| keys.len())
    }

    fn intern(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        match &mut self.keys {
            Some(keys) => keys.intern(columns, &mut self.numbers)?,
            None => {
                self.numbers.clear();
                self.numbers.resize(rows, 0);
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, batch: &RecordBatch, shape: &Shape) -> Result<()> {
        let keys = shape.key_schema.fields().len();
        self.intern(&batch.columns()[..keys], batch.num_rows())?;
        let total = self.total();
        for (call, accumulator) in shape.calls.iter().zip(&mut self.accumulators) {
            let column = |(number, _): &(usize, _)| batch.column(*number).clone();
            let values: Vec<ArrayRef> = call.arguments.iter().map(column).collect();
            accumulator.add(&values, &self.numbers, total)?;
        }
        let sizes = self.accumulators.iter().map(|accumulator| accumulator.size_bytes());
        let keys_bytes = self.keys.as_ref().map_or(0, |keys| keys.size());
        Ok(self.held.try_resize(sizes.sum::<usize>() + keys_bytes)?)
    }

    /// Appends the groups of the next partition.
    fn merge(&mut self, mut other: Groups) -> Result<()> {
        let rows = other.total();
        if rows == 0 {
            return Ok(());
        }
        let columns = match &mut other.keys {
            Some(keys) => keys.emit(EmitTo::All)?,
            None => Vec::new(),
        };
        self.intern(&columns, rows)?;
        let total = self.total();
        let others = std::mem::take(&mut other.accumulators);
        for (accumulator, other) in self.accumulators.iter_mut().zip(others) {
            let other: Box<dyn Any> = other;
            accumulator.merge(other, &self.numbers, total)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self, shape: &Shape) -> Result<Vec<RecordBatch>> {
        let total = self.total();
        let mut columns = match &mut self.keys {
            Some(keys) if total > 0 => keys.emit(EmitTo::All)?,
            Some(_) => return Ok(Vec::new()),
            None => Vec::new(),
        };
        for accumulator in &mut self.accumulators {
            columns.push(accumulator.finish(total)?);
        }
        let batch = batch_of(Arc::clone(&shape.schema), columns, total)?;
        let starts = (0..total).step_by(BATCH_ROWS);
        Ok(starts.map(|start| batch.slice(start, BATCH_ROWS.min(total - start))).collect())
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        free(self.total(), || std::mem::take(&mut self.accumulators));
    }
}
