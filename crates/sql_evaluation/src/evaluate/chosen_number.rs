//! The number of a value that was chosen among values of several types, or of a text that a
//! function made of a moment.
//!
//! ```text
//!   IF(c, '1x', DATE'2024-02-29') + 0    1 with a warning, or 20240229: not the number of '2024-…'
//!   COALESCE('1x', d) + 0                1 without a warning
//! ```
//!
//! MySQL asks the value that `IF`, `CASE` or `ELT` chooses for its own number. `ANY_VALUE`,
//! `COALESCE`, `GREATEST`, `LEAST` and the functions of regular expressions give a text, whose
//! number is taken as far as it goes: only an exact number warns, of a text without any digit. Of a
//! text that is a function's moment, the number is the moment's, as in `ADDTIME('10:11:12', 1) +
//! 0`.

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::error::{ErrorKind, Result};
use firn_sql_types::moment_text::moment_of_text;
use firn_sql_types::{Coercibility, Datum, EvaluationContext, SqlType, TypeKind, cast};

use super::{Evaluate, cast_operand, moves_moments};
use crate::frame::Frame;

/// Whether a cast of an operand is one of these.
pub(crate) fn is_number_of_choice(operand: &Expression, ty: &SqlType) -> bool {
    let is_choice = match &operand.kind {
        _ if is_text_of_moment(operand) => true,
        ExpressionKind::Case { .. } | ExpressionKind::Coalesce(_) => true,
        ExpressionKind::Call { function, .. } => operand.is_quiet_text() || function.name == "ELT",
        ExpressionKind::Literal(_) => operand.is_quiet_text(),
        _ => false,
    };
    let is_number_of_text = !operand.ty.kind.is_numeric() && ty.kind.is_numeric();
    is_choice && is_number_of_text && !is_text_as_written(operand, ty)
}

/// The number of an operand of a cast, if it is one of these; `None` for all others.
pub(super) fn number_of_choice(
    operand: &Expression,
    ty: &SqlType,
    frame: &mut impl Frame,
) -> Option<Result<Datum>> {
    if !is_number_of_choice(operand, ty) {
        return None;
    }
    Some(match &operand.kind {
        _ if is_text_of_moment(operand) => number_of_moment(operand, ty, frame),
        // The text of a document is read.
        ExpressionKind::Case { .. }
            if operand.ty.kind == TypeKind::Json && is_written_integer(ty) =>
        {
            quiet_number(operand, ty, frame)
        }
        ExpressionKind::Case { branches, otherwise } => {
            number_of_case(branches, otherwise.as_deref(), ty, frame)
        }
        ExpressionKind::Call { function, arguments } if function.name == "ELT" => {
            number_of_element(arguments, ty, frame)
        }
        _ => quiet_number(operand, ty, frame),
    })
}

/// Whether a written cast to an integer reads the text of its operand.
fn is_text_as_written(operand: &Expression, ty: &SqlType) -> bool {
    is_written_integer(ty) && operand.ty.kind.is_string()
}

fn is_written_integer(ty: &SqlType) -> bool {
    ty.coercibility == Coercibility::Implicit && matches!(ty.kind, TypeKind::Integer { .. })
}

/// Whether an expression is a function's date, time or moment as text, or a constant that was.
fn is_text_of_moment(operand: &Expression) -> bool {
    match &operand.kind {
        ExpressionKind::Call { function, .. } => {
            operand.ty.kind.is_text() && moves_moments(function.name)
        }
        ExpressionKind::Literal(_) => {
            let before = operand.ty.before.get();
            before.is_some_and(|before| before.written.0.is_text_of_moment())
        }
        _ => false,
    }
}

fn number_of_moment(operand: &Expression, ty: &SqlType, frame: &mut impl Frame) -> Result<Datum> {
    let value = operand.evaluate(frame)?;
    match value.as_bytes().and_then(moment_of_text) {
        Some((moment, own)) => cast::cast(&moment, &own, ty, frame.context()),
        None => cast::cast(&value, &operand.ty, ty, frame.context()),
    }
}

fn number_of_case(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    ty: &SqlType,
    frame: &mut impl Frame,
) -> Result<Datum> {
    for (condition, value) in branches {
        if condition.is_true(frame)? {
            return number_of_branch(value, ty, frame);
        }
    }
    otherwise.map_or(Ok(Datum::Null), |value| number_of_branch(value, ty, frame))
}

/// The number of the argument that `ELT` returns.
fn number_of_element(
    arguments: &[Expression],
    ty: &SqlType,
    frame: &mut impl Frame,
) -> Result<Datum> {
    let Some((place, values)) = arguments.split_first() else { return Ok(Datum::Null) };
    let place = match place.evaluate(frame)? {
        Datum::Int(place) => usize::try_from(place).ok(),
        Datum::UInt(place) => usize::try_from(place).ok(),
        _ => None,
    };
    let value = place.and_then(|place| values.get(place.checked_sub(1)?));
    value.map_or(Ok(Datum::Null), |value| number_of_branch(value, ty, frame))
}

/// The number of a branch before it was converted to the type of the choice.
fn number_of_branch(value: &Expression, ty: &SqlType, frame: &mut impl Frame) -> Result<Datum> {
    match &value.kind {
        // CHAR(… USING …) is a text of bytes.
        ExpressionKind::Cast(inner) if inner.ty.kind.is_binary() => cast_operand(value, ty, frame),
        ExpressionKind::Cast(inner)
            if value.ty.coercibility != Coercibility::Implicit
                || inner.ty.kind.is_enum_or_set()
                || !ty.kind.is_integer()
                    && is_long_text(&value.ty.kind)
                    && is_long_text(&inner.ty.kind) =>
        {
            number_of_branch(inner, ty, frame)
        }
        ExpressionKind::Call { .. } => match value.number_behind_text() {
            Some(number) => cast_operand(number, ty, frame),
            None => cast_operand(value, ty, frame),
        },
        // A date, a time or a document that the planner has made a text.
        ExpressionKind::Literal(Datum::Text(text)) => match value.ty.before.get() {
            // Written bytes are a number beside numbers.
            Some(before) if before.bytes.is_some() && text.len() <= size_of::<u64>() => {
                let number = text.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
                cast::cast(&Datum::UInt(number), &SqlType::bigint_unsigned(), ty, frame.context())
            }
            Some(before)
                if before.written.0.kind.is_temporal()
                    || before.written.0.kind == TypeKind::Json
                    || is_number_as_text(value, &before.written.0.kind) =>
            {
                let own = SqlType::new(before.written.0.kind.clone());
                let moment = cast_operand(value, &own, frame)?;
                cast::cast(&moment, &own, ty, frame.context())
            }
            _ => cast_operand(value, ty, frame),
        },
        _ => cast_operand(value, ty, frame),
    }
}

/// Whether a constant was a number with digits after the point, which only the choice has made a
/// text.
fn is_number_as_text(value: &Expression, written: &TypeKind) -> bool {
    value.ty.coercibility != Coercibility::Implicit
        && matches!(written, TypeKind::Decimal { .. } | TypeKind::Double)
}

/// Whether a type is one of long texts, to which no cast is written.
fn is_long_text(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Text { .. } | TypeKind::Blob { .. })
}

/// The number at the start of a text, without a warning for what follows.
fn quiet_number(operand: &Expression, ty: &SqlType, frame: &mut impl Frame) -> Result<Datum> {
    let value = operand.evaluate(frame)?;
    let context = frame.context();
    let told = context.warning_count();
    let number = match &value {
        Datum::Json(_) => {
            let text_type = SqlType::long_text(context.connection_collation);
            let text = cast::cast(&value, &operand.ty, &text_type, context)?;
            if is_written_integer(ty) || ty.kind == TypeKind::Year {
                return cast::cast(&text, &text_type, ty, context);
            }
            if matches!(ty.kind, TypeKind::Decimal { .. }) {
                return cast::exact_of(&text, &text_type, ty, context);
            }
            cast::cast(&text, &text_type, ty, context)
        }
        Datum::Text(_) if matches!(ty.kind, TypeKind::Decimal { .. }) => {
            return cast::exact_of(&value, &operand.ty, ty, context);
        }
        _ => cast::cast(&value, &operand.ty, ty, context),
    };
    context.forget_conditions_after(told);
    match number {
        Err(error) if error.kind == ErrorKind::BadValue => {
            cast::cast(&value, &operand.ty, ty, &EvaluationContext::default())
        }
        number => number,
    }
}
