//! When the value of an expression may change: from row to row, or from execution to execution.

use crate::functions::{Function, Volatility};

use super::visit::{any, for_each_operand};
use super::{Expression, ExpressionKind};

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

/// Whether a call does what outlasts a transaction that is taken back, or takes its time on purpose.
#[must_use]
pub(crate) fn acts(function: &Function) -> bool {
    matches!(function.name, "SLEEP" | "GET_LOCK" | "RELEASE_LOCK" | "RELEASE_ALL_LOCKS")
}

/// A function in it whose value does not depend on the row alone.
#[must_use]
pub(crate) fn volatile_function(expression: &Expression) -> Option<&'static str> {
    if let ExpressionKind::Call { function, arguments } = &expression.kind {
        let is_volatile = match function.volatility {
            Volatility::Pure => false,
            Volatility::Row => true,
            // Of a moment that is given, it says the same each time.
            Volatility::Statement => function.name != "UNIX_TIMESTAMP" || arguments.is_empty(),
            // A session's cipher mode is taken for a constant, as MySQL does.
            Volatility::Session => !function.name.starts_with("AES_"),
        };
        if is_volatile {
            return Some(function.name);
        }
    }
    let mut found = None;
    for_each_operand(expression, &mut |operand| {
        found = found.or_else(|| volatile_function(operand));
    });
    found
}

/// Whether there is a subquery in it.
#[must_use]
pub(crate) fn has_subquery(expression: &Expression) -> bool {
    any(expression, &|one| matches!(one.kind, ExpressionKind::Subquery(_)))
}
