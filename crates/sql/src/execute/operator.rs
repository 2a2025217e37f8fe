//! Pull operators: each asks its inputs for rows, one by one, and leaves a row's values in the
//! frame.
//!
//! ```text
//!   Sort ──next──► NestedLoop ──next──► Scan t     fills slots 1, 2
//!                       └──────next──► Scan u      fills slot 3, reads slot 2
//! ```
//!
//! Rules: `open` restarts the operator, whatever came before. After `next` has returned false, it
//! is not called before another `open`. A row's slots are valid until the next call of `next` of
//! the same operator.

use crate::error::Result;
use crate::execute::Evaluate;
use crate::expression::Expression;
use crate::plan::{NodeKind, PlanNode, QueryPlan};
use crate::types::Datum;

use super::Execution;
use super::aggregate::{Aggregate, AggregateAtNode, AggregateOverScan};
use super::common_table::CommonTableScan;
use super::counters::Counted;
use super::derived::Derived;
use super::distinct::Distinct;
use super::join::{HashJoin, KeyJoin, KeyJoinPlan, NestedLoop};
use super::json_table::JsonTable;
use super::limit::{Limit, most_rows, rows_wanted};
use super::row_operators::{Compute, Empty, Filter, OneRow, Values};
use super::scan::TableScan;
use super::set_operation::SetOperator;
use super::sort::Sort;
use super::virtual_scan::VirtualScan;
use super::window::Window;

/// A running part of a plan.
pub(crate) trait Operator {
    /// Begins with the first row; slots of operators to the left and of outer queries are filled.
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()>;
    /// Fills the slots with the next row's values; false if there is none.
    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool>;
}

/// An operator with all below it.
pub(crate) type Input<'p> = Box<dyn Operator + 'p>;

/// The operators of a plan. `counted`: each counts its rows for `EXPLAIN ANALYZE`.
pub(crate) fn build<'p>(node: &'p PlanNode, execution: &Execution<'_>) -> Input<'p> {
    let operator = build_uncounted(node, execution);
    if execution.measures.operators.is_none() {
        return operator;
    }
    Box::new(Counted::new(node, operator))
}

fn build_uncounted<'p>(node: &'p PlanNode, execution: &Execution<'_>) -> Input<'p> {
    let below = |node: &'p PlanNode| build(node, execution);
    match &node.kind {
        NodeKind::OneRow => Box::new(OneRow::default()),
        NodeKind::Empty => Box::new(Empty),
        NodeKind::Values { rows, slots } => Box::new(Values::new(rows, slots)),
        NodeKind::Scan(plan) => Box::new(TableScan::new(plan)),
        NodeKind::Virtual { table, slots, hints } => {
            Box::new(VirtualScan::new(&**table, slots, hints))
        }
        NodeKind::JsonTable { document, level, slots } => {
            Box::new(JsonTable::new(document, level, slots))
        }
        NodeKind::CommonTable { number, slots } => Box::new(CommonTableScan::new(*number, slots)),
        NodeKind::Derived { query, slots, .. } => Box::new(Derived::new(query, slots, execution)),
        NodeKind::Filter { input, conditions } => Box::new(Filter::new(below(input), conditions)),
        NodeKind::Compute { input, outputs } => Box::new(Compute::new(below(input), outputs)),
        NodeKind::NestedLoop { left, right, join, conditions, right_slots } => {
            if execution.data.is_remote
                && execution.measures.operators.is_none()
                && let Some(plan) = KeyJoinPlan::of(node, execution)
            {
                let left = below(plan.left());
                return Box::new(KeyJoin::new(plan, left));
            }
            Box::new(NestedLoop::new(below(left), below(right), *join, conditions, right_slots))
        }
        NodeKind::HashJoin { left, right, .. } => {
            Box::new(HashJoin::new(below(left), below(right), node))
        }
        NodeKind::Aggregate { input, .. } => {
            let is_counted = execution.measures.operators.is_some();
            let by_rows: Input<'p> = match AggregateOverScan::of(node) {
                // To count the work of each node, each node must do its own part.
                Some(over_scan) if !is_counted => Box::new(over_scan),
                _ => Box::new(Aggregate::new(below(input), node)),
            };
            if is_counted || !execution.data.is_remote {
                return by_rows;
            }
            match AggregateAtNode::of(node) {
                Some(at_node) => Box::new(at_node.or(by_rows)),
                None => by_rows,
            }
        }
        NodeKind::Window(plan) => Box::new(Window::new(below(&plan.input), plan)),
        NodeKind::Sort { input, keys, keep, limit } => {
            Box::new(Sort::new(below(input), keys, keep, limit.as_ref()))
        }
        NodeKind::Limit { input, offset, count, count_all } => {
            let input = match &input.kind {
                NodeKind::Scan(plan) if execution.measures.operators.is_none() && !count_all => {
                    // It is unknown how many rows must be examined for those that are wanted.
                    let wanted = match plan.conditions.is_empty() {
                        true => rows_wanted(offset.as_ref(), count.as_ref(), execution),
                        false => 1,
                    };
                    let most = most_rows(offset.as_ref(), count.as_ref(), execution);
                    Box::new(TableScan::new(plan).wanting(wanted).ending_after(most))
                }
                _ => below(input),
            };
            Box::new(Limit::new(input, offset.as_ref(), count.as_ref(), *count_all))
        }
        NodeKind::Distinct { input, slots, keep } => {
            Box::new(Distinct::new(below(input), slots, keep))
        }
        NodeKind::SetOperation { operation, all, inputs, slots } => {
            let set = SetOperator::new(*operation, *all, inputs, slots, execution);
            match operation {
                crate::logical::SetOperation::Union if !all => {
                    Box::new(Distinct::new(Box::new(set), slots, &[]))
                }
                _ => Box::new(set),
            }
        }
    }
}

/// A query whose rows are taken one by one, outside the frame.
pub(crate) struct QueryRows<'p> {
    plan: &'p QueryPlan,
    root: Input<'p>,
}

impl<'p> QueryRows<'p> {
    pub(crate) fn open(
        plan: &'p QueryPlan,
        execution: &mut Execution<'_>,
    ) -> Result<QueryRows<'p>> {
        let mut root = build(&plan.root, execution);
        root.open(execution)?;
        Ok(QueryRows { plan, root })
    }

    /// Goes to the next row, without evaluating its columns.
    pub(crate) fn advance(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        self.root.next(execution)
    }

    /// Replaces `row` by the next row's columns; false if there is none.
    pub(crate) fn next(
        &mut self,
        execution: &mut Execution<'_>,
        row: &mut Vec<Datum>,
    ) -> Result<bool> {
        row.clear();
        if !self.root.next(execution)? {
            return Ok(false);
        }
        for column in &self.plan.columns {
            row.push(column.value.evaluate(execution)?);
        }
        Ok(true)
    }
}

/// Whether all conditions are true, evaluated from the first.
#[inline]
pub(crate) fn all_true(conditions: &[Expression], execution: &mut Execution<'_>) -> Result<bool> {
    for condition in conditions {
        if !condition.is_true(execution)? {
            return Ok(false);
        }
    }
    Ok(true)
}
