//! Expressions over a scan's rows, as the node gets them.
//!
//! ```text
//!   day >= DATE(?) AND v < @@limit      Column day, Literal 2026-01-01, …
//! ```
//!
//! Parts that have one value for all rows of the scan are evaluated here, under the session's
//! settings. A part that raises something stays: the statement raises it row by row. So does one
//! that is NULL: an `IN` whose first operand is a written NULL does not evaluate its list.

use firn_api::rows::expression as message;
use firn_sql_evaluation::{Given, sent_expression};

use crate::execute::Evaluate;
use crate::expression::visit::{any, for_each_operand_mut};
use crate::expression::{Expression, ExpressionKind, Slot};
use crate::functions::Volatility;
use crate::plan::ScanPlan;
use crate::types::Datum;

use super::super::Execution;

/// An expression over the rows of a scan that begins; `None` if the node cannot evaluate it.
pub(crate) fn sent(
    plan: &ScanPlan,
    expression: &Expression,
    execution: &mut Execution<'_>,
) -> Option<message::Expression> {
    let mut expression = expression.clone();
    put_constants(&mut expression, plan, execution);
    sent_expression(&expression, &Readable { plan, execution })
}

/// What an expression over a scan's rows may read.
struct Readable<'a, 'e> {
    plan: &'a ScanPlan,
    execution: &'a Execution<'e>,
}

fn ordinal_of(plan: &ScanPlan, slot: Slot) -> Option<u16> {
    plan.slots.iter().find(|(_, own)| *own == slot).map(|(ordinal, _)| *ordinal)
}

impl Given for Readable<'_, '_> {
    fn ordinal(&self, slot: Slot) -> Option<u16> {
        ordinal_of(self.plan, slot)
    }

    fn slot(&self, slot: Slot) -> Option<&Datum> {
        self.execution.frame.slots.get(slot.0 as usize)
    }

    fn parameter(&self, number: u32) -> Option<&Datum> {
        self.execution.frame.parameters.get(number as usize)
    }
}

/// Replaces the largest parts that have one value for all rows by that value.
fn put_constants(expression: &mut Expression, plan: &ScanPlan, execution: &mut Execution<'_>) {
    if expression.place(execution).is_some() {
        return;
    }
    if !is_constant(expression, plan) {
        for_each_operand_mut(expression, &mut |operand| put_constants(operand, plan, execution));
        return;
    }
    let before = execution.context.warning_count();
    let value = expression.evaluate(execution);
    if execution.context.warning_count() > before {
        execution.context.forget_conditions_after(before);
    } else if let Ok(value) = value
        && !value.is_null()
    {
        expression.kind = ExpressionKind::Literal(value);
    }
}

/// Whether the value is the same for all rows, and its evaluation has no effects.
fn is_constant(expression: &Expression, plan: &ScanPlan) -> bool {
    let varies = |one: &Expression| match &one.kind {
        ExpressionKind::Slot(slot) => ordinal_of(plan, *slot).is_some(),
        ExpressionKind::Call { function, .. } => function.volatility > Volatility::Statement,
        ExpressionKind::Keep { .. }
        | ExpressionKind::Kept(_)
        | ExpressionKind::Subquery(_)
        | ExpressionKind::Row(_)
        | ExpressionKind::UserVariable(_)
        | ExpressionKind::AssignVariable { .. }
        | ExpressionKind::Unresolved(_) => true,
        _ => false,
    };
    !any(expression, &varies)
}
