//! Quotients inside of arithmetic keep more digits than they show.
//!
//! ```text
//!   1 / 3            0.3333
//!   1 / 3 * 3        1.0000 and not 0.9999: what is multiplied is 0.333333333
//! ```
//!
//! MySQL keeps exact numbers in groups of nine digits and divides until the last group is full; a number is cut to the
//! scale of its type where it leaves the arithmetic. Here an inner operation gets a type of that larger scale, which
//! is all that it goes by; the type of the outermost one stays what MySQL tells of it.

use crate::expression::{Expression, ExpressionKind};
use crate::types::decimal::{MAX_PRECISION, MAX_SCALE};
use crate::types::{Datum, TypeKind};

/// Digits of a group.
const GROUP: u8 = 9;

/// Whether a function is arithmetic that hands on the digits of its arguments.
pub(super) fn is_arithmetic(name: &str) -> bool {
    matches!(name, "+" | "-" | "*" | "/" | "%" | "DIV" | "NEG" | "ABS")
}

/// The expression as an operand: an exact quotient in it keeps the digits of its last group.
#[must_use]
pub(super) fn unrounded(mut expression: Expression) -> Expression {
    let ExpressionKind::Call { function, arguments } = &expression.kind else { return expression };
    let TypeKind::Decimal { scale: shown, unsigned, .. } = expression.ty.kind else {
        return expression;
    };
    let scales = arguments.iter().map(|argument| scale_of(&argument.ty.kind));
    let wanted = match function.name {
        "/" => {
            let scales: Vec<u8> = scales.collect();
            let groups = scales.iter().map(|scale| scale.next_multiple_of(GROUP)).sum::<u8>();
            let gained = groups - scales.iter().sum::<u8>();
            let more = shown.saturating_sub(scales[0]).saturating_sub(gained);
            (groups + more).next_multiple_of(GROUP)
        }
        "*" => scales.fold(0, u8::saturating_add),
        "+" | "-" | "%" | "NEG" | "ABS" => scales.max().unwrap_or(0),
        _ => return expression,
    };
    let scale = wanted.min(MAX_SCALE);
    if scale > shown {
        expression.ty.kind = TypeKind::Decimal { precision: MAX_PRECISION, scale, unsigned };
    }
    expression
}

fn scale_of(kind: &TypeKind) -> u8 {
    if let TypeKind::Decimal { scale, .. } = kind { *scale } else { 0 }
}

/// Whether a call is a quotient of constants with digits behind those that it shows: it must not become a constant
/// of its type before it is known what it is part of.
#[must_use]
pub(super) fn has_more_digits(call: &Expression, folded: &Expression) -> bool {
    let ExpressionKind::Call { function, arguments } = &call.kind else { return false };
    let number = |expression: &Expression| match &expression.kind {
        ExpressionKind::Literal(Datum::Decimal(number)) => Some(*number),
        ExpressionKind::Literal(Datum::Int(number)) => Some((*number).into()),
        ExpressionKind::Literal(Datum::UInt(number)) => Some((*number).into()),
        _ => None,
    };
    if function.name != "/" {
        return false;
    }
    let ([dividend, divisor], Some(quotient)) = (arguments.as_slice(), number(folded)) else {
        return false;
    };
    match (number(dividend), number(divisor)) {
        (Some(dividend), Some(divisor)) => quotient.multiply(&divisor) != Some(dividend),
        _ => false,
    }
}
