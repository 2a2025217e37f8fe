//! Firn's own operators, beside those of the library.

mod aggregate;
mod batches;
mod sequence;
mod sorted_aggregate;
mod stage;

use std::sync::Arc;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::compute;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_physical_expr::EquivalenceProperties;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::{Partitioning, PlanProperties};

use crate::expression::Kernel;
use crate::stop_reason::Result;
use crate::value::Field;

pub(crate) use aggregate::HashAggregate;
pub(crate) use batches::Batches;
pub(crate) use sequence::Sequence;
pub(crate) use sorted_aggregate::SortedAggregate;
pub(crate) use stage::{Output, Stage};

/// The library's methods for one of Firn's operators: it has `properties`, and no expressions of
/// the library.
macro_rules! own {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &Arc<PlanProperties> {
            &self.properties
        }

        fn apply_expressions(
            &self,
            _: &mut dyn FnMut(
                &Arc<dyn datafusion_physical_expr::PhysicalExpr>,
            )
                -> LibraryResult<datafusion_common::tree_node::TreeNodeRecursion>,
        ) -> LibraryResult<datafusion_common::tree_node::TreeNodeRecursion> {
            Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
        }
    };
}
pub(crate) use own;

/// The library's methods for an operator over one `input`, including a copy over another input.
macro_rules! over_input {
    ($name:literal) => {
        $crate::operator::own!($name);

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn with_new_children(
            self: Arc<Self>,
            mut children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> LibraryResult<Arc<dyn ExecutionPlan>> {
            let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
            Ok(Arc::new(Self { input, ..Self::clone(&self) }))
        }
    };
}
pub(crate) use over_input;

/// The library's methods for a leaf of a plan.
macro_rules! leaf {
    ($name:literal) => {
        $crate::operator::own!($name);

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            Vec::new()
        }

        fn with_new_children(
            self: Arc<Self>,
            _: Vec<Arc<dyn ExecutionPlan>>,
        ) -> LibraryResult<Arc<dyn ExecutionPlan>> {
            Ok(self)
        }
    };
}
pub(crate) use leaf;

/// The schema of a relation: a column for each field, by its number.
pub(crate) fn schema_of(fields: &[Field]) -> SchemaRef {
    let column = |(number, field): (usize, &Field)| {
        arrow::datatypes::Field::new(format!("c{number}"), field.physical.data_type(), true)
    };
    Arc::new(Schema::new(fields.iter().enumerate().map(column).collect::<Vec<_>>()))
}

/// The properties of an operator that promises no order.
pub(crate) fn properties(schema: SchemaRef, partitions: usize) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        EquivalenceProperties::new(schema),
        Partitioning::UnknownPartitioning(partitions),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

/// The rows for which all conditions are true. Expensive conditions are evaluated only for the rows
/// that pass the others.
pub(crate) fn chosen(conditions: &[Kernel], batch: &RecordBatch) -> Result<BooleanArray> {
    let mut so_far: Option<BooleanArray> = None;
    for condition in conditions {
        let next = match so_far {
            None => is_true(&condition.truth(batch)?),
            Some(known) if condition.is_cheap() => {
                compute::and(&known, &is_true(&condition.truth(batch)?))?
            }
            Some(known) => among(condition, batch, &known)?,
        };
        let is_over = !next.has_true();
        so_far = Some(next);
        if is_over {
            break;
        }
    }
    Ok(so_far.unwrap_or_else(|| BooleanArray::from(vec![true; batch.num_rows()])))
}

fn is_true(truth: &BooleanArray) -> BooleanArray {
    match truth.nulls() {
        None => truth.clone(),
        Some(nulls) => BooleanArray::new(truth.values() & nulls.inner(), None),
    }
}

fn among(condition: &Kernel, batch: &RecordBatch, known: &BooleanArray) -> Result<BooleanArray> {
    if known.true_count() == batch.num_rows() {
        return Ok(is_true(&condition.truth(batch)?));
    }
    let part = compute::filter_record_batch(batch, known)?;
    let truth = is_true(&condition.truth(&part)?);
    let mut next = 0;
    let rows = (0..batch.num_rows()).map(|row| {
        if !known.value(row) {
            return false;
        }
        next += 1;
        truth.value(next - 1)
    });
    Ok(BooleanArray::from(rows.collect::<Vec<bool>>()))
}
