//! Sorts and limits.

use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use firn_format::value::CollationId;
use firn_sql::expression::{Expression, Slot, SortKey};
use firn_sql::plan::PlanNode;
use firn_sql::plan::visit::{self, SlotSet};
use firn_sql::types::SqlType;

use super::{Relation, Translator, kept, single};
use crate::expression::{Kernel, column};
use crate::operator::{Batches, Output, Stage, schema_of};
use crate::stop_reason::{Result, declined};
use crate::value::{Field, Physical};

/// A column that orders and groups as values of a type do.
pub(super) fn key_output(kernel: Kernel, ty: &SqlType) -> Output {
    match kernel.physical() {
        Physical::Bytes => match ty.collation() {
            Some(collation) if collation != CollationId::BINARY => {
                Output::Weights(kernel, collation)
            }
            _ => Output::Value(kernel),
        },
        Physical::Double => Output::Number(kernel),
        _ => Output::Value(kernel),
    }
}

/// A plan's rows, in the order of some of its columns.
pub(super) fn sorted_by(
    plan: Arc<dyn ExecutionPlan>,
    columns: std::ops::Range<usize>,
) -> Arc<dyn ExecutionPlan> {
    let order = columns.map(|number| PhysicalSortExpr::new(column(number), SortOptions::default()));
    match LexOrdering::new(order) {
        Some(order) => Arc::new(SortExec::new(order, plan)),
        None => plan,
    }
}

impl<'p> Translator<'p, '_, '_> {
    pub(super) fn sort(
        &mut self,
        input: &'p PlanNode,
        keys: &'p [SortKey],
        keep: &'p [Slot],
        limit: Option<&Expression>,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let mut below = keep.iter().copied().collect::<SlotSet>().intersection(needed);
        below.extend(needed);
        visit::add_key_reads(keys, &mut below);
        let input = self.node(input, &below)?;
        let (fields, mut outputs) = kept(&input.fields, needed);
        let first_key = outputs.len();
        {
            let mut compiler = self.compiler(&input.fields);
            for key in keys {
                let kernel = compiler.compile(&key.expression)?;
                outputs.push(key_output(kernel, &key.expression.ty));
            }
        }
        let staged = Arc::new(Stage::new(single(input.plan), Vec::new(), outputs));
        let order = keys.iter().enumerate().map(|(number, key)| {
            let options = SortOptions { descending: key.descending, nulls_first: !key.descending };
            PhysicalSortExpr::new(column(first_key + number), options)
        });
        let Some(order) = LexOrdering::new(order) else { return declined("a sort has no keys") };
        let fetch = match limit {
            Some(limit) => usize::try_from(self.execution.row_count(limit)?).ok(),
            None => None,
        };
        if fetch == Some(0) {
            // The library has no sort of nothing.
            let plan = Arc::new(Batches::new(schema_of(&fields), Vec::new()));
            return Ok(Relation { plan, fields, rows: 0.0 });
        }
        let sorted = Arc::new(SortExec::new(order, staged).with_fetch(fetch));
        let plain = |(number, field): (usize, &Field)| {
            Output::Value(Kernel::Column(number, field.physical))
        };
        let outputs = fields.iter().enumerate().map(plain).collect();
        let plan = Arc::new(Stage::new(sorted, Vec::new(), outputs));
        Ok(Relation { plan, fields, rows })
    }

    pub(super) fn limit(
        &mut self,
        input: &'p PlanNode,
        offset: Option<&Expression>,
        count: Option<&Expression>,
        rows: f64,
        needed: &SlotSet,
    ) -> Result<Relation> {
        let skip = offset.map_or(Ok(0), |offset| self.execution.row_count(offset))?;
        let fetch = match count {
            Some(count) => usize::try_from(self.execution.row_count(count)?).ok(),
            None => None,
        };
        let input = self.node(input, needed)?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let plan = Arc::new(GlobalLimitExec::new(single(input.plan), skip, fetch));
        Ok(Relation { plan, fields: input.fields, rows })
    }
}
