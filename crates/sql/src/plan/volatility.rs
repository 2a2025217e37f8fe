//! When the value of an expression may change: from row to row, or from execution to execution.

use crate::expression::{Expression, ExpressionKind};
use crate::functions::Volatility;

use super::visit::any;

/// Whether two evaluations for the same row may differ, or have effects: such an expression is neither
/// moved nor evaluated more or less often than it is written.
#[must_use]
pub(crate) fn is_row_dependent(expression: &Expression) -> bool {
    any(expression, &|one| match &one.kind {
        // `LAST_INSERT_ID()` and `DATABASE()` stay as they are, `LAST_INSERT_ID(x)` and `GET_LOCK(…)` act.
        ExpressionKind::Call { function, arguments } => match function.volatility {
            Volatility::Row => true,
            Volatility::Session => !arguments.is_empty(),
            Volatility::Pure | Volatility::Statement => false,
        },
        ExpressionKind::AssignVariable { .. } => true,
        _ => false,
    })
}

/// Whether there is a subquery in it.
#[must_use]
pub(crate) fn has_subquery(expression: &Expression) -> bool {
    any(expression, &|one| matches!(one.kind, ExpressionKind::Subquery(_)))
}
