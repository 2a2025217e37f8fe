//! When the value of an expression may change: from row to row, or from execution to execution.

use crate::expression::{Expression, ExpressionKind};
use crate::functions::Volatility;

use super::visit::any;

/// Whether two evaluations for the same row may differ, or have effects: such an expression is neither
/// moved nor evaluated more or less often than it is written.
#[must_use]
pub fn is_row_dependent(expression: &Expression) -> bool {
    any(expression, &|one| match &one.kind {
        ExpressionKind::Call { function, .. } => function.volatility >= Volatility::Session,
        ExpressionKind::AssignVariable { .. } | ExpressionKind::UserVariable(_) => true,
        _ => false,
    })
}

/// Whether the value is known when the statement is planned: literals and pure functions of them.
#[must_use]
pub fn is_constant(expression: &Expression) -> bool {
    !any(expression, &|one| match &one.kind {
        ExpressionKind::Call { function, .. } => function.volatility > Volatility::Pure,
        ExpressionKind::Parameter(_)
        | ExpressionKind::Slot(_)
        | ExpressionKind::Subquery(_)
        | ExpressionKind::UserVariable(_)
        | ExpressionKind::AssignVariable { .. }
        | ExpressionKind::SystemVariable { .. }
        | ExpressionKind::Unresolved(_) => true,
        _ => false,
    })
}

/// Whether there is a subquery in it.
#[must_use]
pub fn has_subquery(expression: &Expression) -> bool {
    any(expression, &|one| matches!(one.kind, ExpressionKind::Subquery(_)))
}
