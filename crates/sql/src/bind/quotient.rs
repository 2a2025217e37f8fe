//! Quotients inside of arithmetic keep more digits than they show.
//!
//! ```text
//!   1 / 3            0.3333
//!   1 / 3 * 3        1.0000 and not 0.9999: what is multiplied is 0.333333333
//!   1 / 30000 > 0    true: what is compared is 0.000033333
//! ```
//!
//! MySQL keeps exact numbers in groups of nine digits and divides until the last group is full; a number is cut to the
//! scale of its type where it leaves the expression or becomes a text. Here an inner operation gets a type of that larger
//! scale, which is all that it goes by; the type of the outermost one stays what MySQL tells of it.

use crate::expression::{Expression, ExpressionKind};
use crate::types::decimal::{MAX_PRECISION, MAX_SCALE, quotient_digits};
use crate::types::{Datum, TypeKind};

/// Whether a function goes by all digits of its arguments.
pub(super) fn takes_all_digits(name: &str) -> bool {
    is_arithmetic(name)
        || matches!(
            name,
            "ROUND" | "TRUNCATE" | "FLOOR" | "CEILING" | "SIGN" | "FORMAT" | "INTERVAL"
        )
}

fn is_arithmetic(name: &str) -> bool {
    matches!(name, "+" | "-" | "*" | "/" | "%" | "DIV" | "NEG" | "ABS")
}

/// The expression as an operand: an exact quotient in it keeps the digits of its last group.
#[must_use]
pub(super) fn unrounded(mut expression: Expression) -> Expression {
    let TypeKind::Decimal { scale: shown, unsigned, .. } = expression.ty.kind else {
        return expression;
    };
    let scale = match &mut expression.kind {
        ExpressionKind::Call { function, arguments } => {
            scale_of_call(function.name, arguments, shown)
        }
        ExpressionKind::Case { branches, otherwise } => {
            let values = branches.iter_mut().map(|(_, value)| value);
            unround(values.chain(otherwise.as_deref_mut()))
        }
        ExpressionKind::Coalesce(list) => unround(list.iter_mut()),
        _ => return expression,
    };
    let scale = scale.min(MAX_SCALE);
    if scale > shown {
        expression.ty.kind = TypeKind::Decimal { precision: MAX_PRECISION, scale, unsigned };
    }
    expression
}

/// Unrounds values of which one is handed on, and says how many digits they have at most.
fn unround<'e>(values: impl Iterator<Item = &'e mut Expression>) -> u8 {
    let scales = values.map(|value| {
        *value = unrounded(value.clone());
        scale_of(&value.ty.kind)
    });
    scales.max().unwrap_or(0)
}

/// The digits of what a function makes of its arguments.
fn scale_of_call(name: &str, arguments: &[Expression], shown: u8) -> u8 {
    let scales = arguments.iter().map(|argument| scale_of(&argument.ty.kind));
    match name {
        "/" => {
            let scales: Vec<u8> = scales.collect();
            quotient_digits(scales[0], scales[1], shown.saturating_sub(scales[0]))
        }
        "*" => scales.fold(0, u8::saturating_add),
        _ if is_arithmetic(name) => scales.max().unwrap_or(0),
        _ => shown,
    }
}

fn scale_of(kind: &TypeKind) -> u8 {
    if let TypeKind::Decimal { scale, .. } = kind { *scale } else { 0 }
}

/// A call as its value if it is constant; but arithmetic of constants that has digits behind those that it shows stays a
/// call: it must not become a constant of its type before it is known what it is part of.
pub(super) fn folded(call: Expression, fold: impl Fn(Expression) -> Expression) -> Expression {
    let ExpressionKind::Call { function, arguments } = &call.kind else { return fold(call) };
    let is_literal = |one: &Expression| matches!(one.kind, ExpressionKind::Literal(_));
    if !is_arithmetic(function.name)
        || !matches!(call.ty.kind, TypeKind::Decimal { .. })
        || !arguments.iter().all(is_literal)
    {
        return fold(call);
    }
    let (all, shown) = (fold(unrounded(call.clone())), fold(call.clone()));
    match (&all.kind, &shown.kind) {
        (
            ExpressionKind::Literal(Datum::Decimal(all)),
            ExpressionKind::Literal(Datum::Decimal(shown)),
        ) if all.cmp(shown).is_ne() => call,
        _ => shown,
    }
}
