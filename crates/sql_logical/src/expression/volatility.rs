//! When the value of an expression may change: between rows, or between executions.

use firn_sql_functions::{Function, Volatility};

use super::visit::{any, for_each_operand};
use super::{Expression, ExpressionKind};

/// Whether two evaluations for the same row may differ, or have effects: such an expression is
/// neither moved nor evaluated more or less often than it is written.
#[must_use]
pub fn is_row_dependent(expression: &Expression) -> bool {
    any(expression, &|one| match &one.kind {
        // `LAST_INSERT_ID()` and `DATABASE()` are constant, `LAST_INSERT_ID(x)` and `GET_LOCK(…)`
        // have effects.
        ExpressionKind::Call { function, arguments } => match function.volatility {
            Volatility::Row => true,
            Volatility::Session => !arguments.is_empty(),
            Volatility::Pure | Volatility::Statement => false,
        },
        ExpressionKind::AssignVariable { .. } => true,
        _ => false,
    })
}

/// Whether a call has an effect that survives a rollback, or takes its time on purpose.
#[must_use]
pub fn acts(function: &Function) -> bool {
    matches!(function.name, "SLEEP" | "GET_LOCK" | "RELEASE_LOCK" | "RELEASE_ALL_LOCKS")
}

/// A function in the expression whose value does not depend on the row alone.
#[must_use]
pub fn volatile_function(expression: &Expression) -> Option<&'static str> {
    if let ExpressionKind::Call { function, arguments } = &expression.kind {
        let is_volatile = match function.volatility {
            Volatility::Pure => false,
            Volatility::Row => true,
            // For a given moment, it returns the same each time.
            Volatility::Statement => function.name != "UNIX_TIMESTAMP" || arguments.is_empty(),
            // A session's cipher mode counts as a constant, as in MySQL.
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
pub fn has_subquery(expression: &Expression) -> bool {
    any(expression, &|one| matches!(one.kind, ExpressionKind::Subquery(_)))
}

/// Whether an expression has one value for all rows of a statement: it reads nothing, and no call
/// of it has an effect.
#[must_use]
pub fn is_constant(expression: &Expression) -> bool {
    !is_row_dependent(expression)
        && !any(expression, &|one| {
            matches!(
                one.kind,
                ExpressionKind::Slot(_)
                    | ExpressionKind::Kept(_)
                    | ExpressionKind::Subquery(_)
                    | ExpressionKind::Row(_)
                    | ExpressionKind::UserVariable(_)
                    | ExpressionKind::Unresolved(_)
            )
        })
}
