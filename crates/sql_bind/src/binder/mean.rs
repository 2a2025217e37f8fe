//! An `AVG` has more digits than it shows, and operations on it use all of them.
//!
//! ```text
//!   AVG(a)          1.3333
//!   AVG(a) * 3      4.0000 and not 3.9999: what is multiplied is 1.333333333
//!   AVG(a) = 1.3333 false
//!   1 / 3 * 3       0.9999: a quotient is rounded at once, and so is arithmetic on a mean
//! ```
//!
//! MySQL stores exact numbers in groups of nine digits and divides until the last group is full.
//! The aggregate's slot has all these digits. Its readers get a call of [`SHOWN`], which rounds to
//! the digits of the type; [`unrounded`] removes that call where MySQL reads the whole number.

use firn_sql_functions as functions;
use firn_sql_functions::AggregateFunction;
use firn_sql_logical::expression::{AggregateCall, Expression, ExpressionKind};
use firn_sql_types::decimal::{MAX_PRECISION, MAX_SCALE, quotient_digits};
use firn_sql_types::{SqlType, TypeKind};

use super::expression_builders;

/// Digits of a group of an exact number.
const GROUP_DIGITS: u8 = 9;
/// The function that rounds a mean to the digits that it shows.
pub(super) const SHOWN: &str = "AVG SHOWN";

/// Whether a function uses all digits of its arguments.
pub(super) fn takes_all_digits(name: &str) -> bool {
    matches!(
        name,
        "+" | "-" | "*" | "/" | "%" | "DIV" | "TRUNCATE" | "FLOOR" | "CEILING" | "SIGN" | "FORMAT"
    )
}

/// Gives an aggregate's slot all digits of a mean.
pub(super) fn widen(call: &mut AggregateCall) {
    let (AggregateFunction::Average, [argument]) = (call.function, &*call.arguments) else {
        return;
    };
    let TypeKind::Decimal { precision, scale: shown, unsigned } = call.ty.kind else { return };
    let from = scale_of(&argument.ty.kind);
    let digits = quotient_digits(from, 0, shown.saturating_sub(from));
    // Of distinct numbers with digits after the point, one more group of digits is divided.
    let more = if call.distinct && from > 0 { GROUP_DIGITS } else { 0 };
    let scale = digits.saturating_add(more).min(MAX_SCALE);
    if scale > shown {
        let precision = precision.saturating_add(scale - shown).min(MAX_PRECISION);
        call.ty.kind = TypeKind::Decimal { precision, scale, unsigned };
    }
}

/// The value of an aggregate's slot as a type shows it.
pub(super) fn shown(value: Expression, ty: SqlType) -> Expression {
    match functions::find(SHOWN).filter(|_| value.ty.kind != ty.kind) {
        Some(function) => {
            let kind = ExpressionKind::Call { function, arguments: vec![value] };
            Expression { kind, ty }
        }
        None => value,
    }
}

/// The expression as an operand: a mean in it keeps all its digits.
#[must_use]
pub(super) fn unrounded(mut expression: Expression) -> Expression {
    match &mut expression.kind {
        ExpressionKind::Call { function, arguments } if function.name == SHOWN => {
            arguments.pop().unwrap_or_else(expression_builders::null)
        }
        ExpressionKind::Case { branches, otherwise } => {
            let TypeKind::Decimal { scale: shown, unsigned, .. } = expression.ty.kind else {
                return expression;
            };
            let values = branches.iter_mut().map(|(_, value)| value);
            let scales = values.chain(otherwise.as_deref_mut()).map(|value| {
                *value = unrounded(value.clone());
                scale_of(&value.ty.kind)
            });
            let scale = scales.max().unwrap_or(0);
            if scale > shown {
                expression.ty.kind =
                    TypeKind::Decimal { precision: MAX_PRECISION, scale, unsigned };
            }
            expression
        }
        _ => expression,
    }
}

fn scale_of(kind: &TypeKind) -> u8 {
    if let TypeKind::Decimal { scale, .. } = kind { *scale } else { 0 }
}
