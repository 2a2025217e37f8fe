//! Choices among several values: `CASE`, `IF`, `COALESCE`, `GREATEST`, and the sides of a `UNION`.

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::metadata::{NOT_FIXED_DECIMALS, type_code};
use firn_sql_types::{Datum, Display, SqlType, TypeKind};

use super::super::{Frame, Typing, literal};
use crate::binder::coerce::is_written_cast;
use crate::binder::display;

/// One of several values.
pub(super) fn of_choice<'e>(
    typing: &Typing<'_>,
    values: impl Iterator<Item = &'e Expression>,
    ty: &SqlType,
) -> Display {
    // A constant that was evaluated to NULL keeps its written length.
    let is_null = |value: &&Expression| {
        matches!(value.kind, ExpressionKind::Literal(Datum::Null))
            && value.ty.before.get().is_none()
    };
    let values: Vec<&Expression> = values.collect();
    if let [null, value] = *values
        && null.ty.kind != TypeKind::Null
        && is_null(&null)
        && let Some(shown) = of_null_or(typing, value)
    {
        return shown;
    }
    let values: Vec<(SqlType, Display)> = values
        .into_iter()
        .filter(|value| !is_null(value))
        .map(|value| {
            let value = without_zeros(value);
            let (of, display) = display::shown_operand(typing, value);
            (own_fixed_type(&typing.frame, value).unwrap_or_else(|| of.clone()), display)
        })
        .collect();
    let values: Vec<(&SqlType, Display)> =
        values.iter().map(|(of, display)| (of, *display)).collect();
    common_display(&values, ty)
}

/// The value of `NULLIF`, where it is told of as the value alone would not be in a choice.
fn of_null_or(typing: &Typing<'_>, value: &Expression) -> Option<Display> {
    let shown = display::display(typing, value);
    if literal::written_bytes(value).is_some() {
        // Like a column of such bytes.
        return Some(shown.as_stored());
    }
    if matches!(value.ty.kind, TypeKind::Float | TypeKind::Double) {
        return Some(shown.as_expression());
    }
    match &value.kind {
        ExpressionKind::Cast(name) if name.ty.kind.is_enum_or_set() => {
            Some(Display { type_code: Some(type_code::STRING), ..shown })
        }
        _ => None,
    }
}

/// The number behind the text that a zero-filled column becomes beside texts.
fn without_zeros(value: &Expression) -> &Expression {
    match &value.kind {
        ExpressionKind::Cast(inner) if matches!(inner.kind, ExpressionKind::Call { .. }) => {
            let number = without_zeros(inner);
            if std::ptr::eq(number, &**inner) { value } else { number }
        }
        ExpressionKind::Call { function, arguments } if function.name == "ZEROFILL" => {
            match arguments.first().map(|text| &text.kind) {
                Some(ExpressionKind::Cast(number)) => number,
                _ => value,
            }
        }
        _ => value,
    }
}

/// The type of a `CHAR` or `BINARY` column, which is a `VARCHAR` in an expression.
fn own_fixed_type(frame: &Frame, value: &Expression) -> Option<SqlType> {
    // Beside longer texts it is cast.
    let slot = match &value.kind {
        ExpressionKind::Cast(inner) if !is_written_cast(value) => &inner.kind,
        kind => kind,
    };
    let ExpressionKind::Slot(slot) = *slot else { return None };
    let kind = display::column_kind(frame, slot)?;
    let is_fixed = matches!(kind, TypeKind::Char { .. } | TypeKind::Binary { .. });
    is_fixed.then(|| SqlType::new(kind.clone()))
}

/// The display of values of several types together. `ty` is their common type.
#[must_use]
pub(crate) fn common_display(values: &[(&SqlType, Display)], ty: &SqlType) -> Display {
    let known = || values.iter().filter(|(of, _)| of.kind != TypeKind::Null);
    let longest = known().map(|(_, display)| display.length).max().unwrap_or(0);
    let worked_out = Display::of_expression(ty);
    let worked_out = Display { type_code: common_code(values, ty), ..worked_out };
    match &ty.kind {
        TypeKind::Integer { .. } => Display { length: longest, ..worked_out },
        TypeKind::Decimal { .. } => {
            let scale = known().map(|(_, one)| fixed(one.decimals)).max().unwrap_or(0);
            let before = known().map(|(of, display)| digits_before_point(of, display)).max();
            let precision = before.unwrap_or(1).saturating_add(scale.into()).clamp(1, 65) as u8;
            Display::exact(ty, precision, scale)
        }
        TypeKind::Float | TypeKind::Double => {
            let decimals = known().map(|(_, one)| one.decimals).max().unwrap_or(0);
            match decimals {
                NOT_FIXED_DECIMALS => worked_out,
                _ => {
                    let before =
                        |one: &Display| one.length.saturating_sub(fixed(one.decimals).into());
                    let before = known().map(|(_, one)| before(one)).max().unwrap_or(0);
                    Display { length: before + u32::from(decimals), decimals, ..worked_out }
                }
            }
        }
        kind if kind.is_string() && known().all(|(of, _)| counts_characters(of)) => {
            // Bytes beside characters count as many as those characters may have.
            let is_binary = kind.is_binary();
            let length = known().map(|(of, display)| {
                let display = if is_binary { *display } else { display.as_text_of(of) };
                let bytes = of.charset().map_or(1, |charset| charset.max_character_bytes());
                display.length.saturating_mul(if is_binary { bytes } else { 1 })
            });
            Display { length: length.max().unwrap_or(0), ..worked_out }
        }
        _ => worked_out,
    }
}

/// The type byte of the result if it differs from the common type's: long texts of columns keep
/// theirs, and so do `CHAR` and `BINARY` beside numbers and times.
fn common_code(values: &[(&SqlType, Display)], ty: &SqlType) -> Option<u8> {
    let mut kinds = values.iter().map(|(of, _)| &of.kind).filter(|kind| **kind != TypeKind::Null);
    let is_fixed =
        |kind: &TypeKind| matches!(kind, TypeKind::Char { .. } | TypeKind::Binary { .. });
    match &ty.kind {
        TypeKind::Text { .. } | TypeKind::Blob { .. } => {
            let is_long = |kind: &TypeKind| {
                matches!(kind, TypeKind::Text { .. } | TypeKind::Blob { .. })
                    || !kind.is_string() && *kind != TypeKind::Json
                    || kind.is_string() && SqlType::new(kind.clone()).max_text_bytes() < 65_536
            };
            kinds.all(is_long).then_some(type_code::BLOB)
        }
        TypeKind::Varchar { .. } | TypeKind::Varbinary { .. } => {
            let is_short = |kind: &TypeKind| !kind.is_string() && !kind.is_enum_or_set();
            let keeps = kinds.clone().all(|kind| is_fixed(kind) || is_short(kind));
            (keeps && kinds.any(is_fixed)).then_some(type_code::STRING)
        }
        _ => None,
    }
}

fn counts_characters(ty: &SqlType) -> bool {
    !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry)
}

fn fixed(decimals: u8) -> u8 {
    if decimals == NOT_FIXED_DECIMALS { 0 } else { decimals }
}

fn digits_before_point(ty: &SqlType, display: &Display) -> u32 {
    let precision = display.precision(&ty.kind);
    u32::from(precision.saturating_sub(fixed(display.decimals)))
}
