//! Constants, evaluated when the statement is planned.

use firn_sql_functions::{Call, Volatility};
use firn_sql_types::{Datum, EvaluationContext, cast};

use super::{Expression, ExpressionKind};

/// The longest text that a constant may become: a plan keeps its constants, and may itself be
/// cached.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Folds a call of a pure function, or a cast, over literals into its value; returns any other
/// expression unchanged. Anything that fails or warns is left for the execution, and so are calls
/// that return bytes: a literal of bytes is a number beside numbers.
#[must_use]
pub fn fold(expression: Expression, context: &EvaluationContext) -> Expression {
    let value = match &expression.kind {
        ExpressionKind::Call { function, arguments }
            if function.volatility == Volatility::Pure && !expression.ty.kind.is_binary() =>
        {
            let Some(values) = literals(arguments) else { return expression };
            if function.strict && values.iter().any(Datum::is_null) {
                Ok(Datum::Null)
            } else {
                let types: Vec<_> = arguments.iter().map(|one| &one.ty).collect();
                quietly(context, |context| {
                    let call = Call { context, arguments: &types, result: &expression.ty };
                    (function.evaluate)(&values, &call)
                })
            }
        }
        ExpressionKind::Cast(inner) => match &inner.kind {
            ExpressionKind::Literal(datum) if is_short(datum) => {
                quietly(context, |context| cast::cast(datum, &inner.ty, &expression.ty, context))
            }
            _ => return expression,
        },
        _ => return expression,
    };
    match value {
        Ok(value) => {
            let ty = expression.ty.with_nullable(value.is_null());
            Expression { kind: ExpressionKind::Literal(value), ty }
        }
        Err(_) => expression,
    }
}

#[allow(clippy::field_reassign_with_default)] // the context has fields of its own module
/// Runs `evaluate` so that its warnings do not become the statement's; a warning counts as a
/// failure.
fn quietly<E>(
    context: &EvaluationContext,
    evaluate: impl FnOnce(&EvaluationContext) -> Result<Datum, E>,
) -> Result<Datum, Option<E>> {
    let mut quiet = EvaluationContext::default();
    quiet.sql_mode = context.sql_mode;
    quiet.time_zone = context.time_zone.clone();
    quiet.statement_time_us = context.statement_time_us;
    quiet.div_precision_increment = context.div_precision_increment;
    // A longer text causes a warning here, so it is evaluated at execution.
    quiet.max_allowed_packet_bytes = context.max_allowed_packet_bytes.min(MAX_TEXT_BYTES as u64);
    quiet.connection_collation = context.connection_collation;
    quiet.default_week_format = context.default_week_format;
    let value = evaluate(&quiet).map_err(Some)?;
    if quiet.warning_count() > 0 { Err(None) } else { Ok(value) }
}

fn literals(arguments: &[Expression]) -> Option<Vec<Datum>> {
    let values = arguments.iter().map(|argument| match &argument.kind {
        ExpressionKind::Literal(datum) if is_short(datum) => Some(datum.clone()),
        _ => None,
    });
    values.collect()
}

fn is_short(datum: &Datum) -> bool {
    datum.as_bytes().is_none_or(|bytes| bytes.len() <= MAX_TEXT_BYTES)
}

/// Whether a condition is false or NULL for every row.
#[must_use]
pub fn is_never_true(condition: &Expression) -> bool {
    matches!(condition.kind, ExpressionKind::Literal(Datum::Null | Datum::Int(0)))
}
