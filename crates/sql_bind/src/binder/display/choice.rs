//! Choices among several values: `CASE`, `IF`, `COALESCE`, `GREATEST`, and the sides of a `UNION`.

use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_types::metadata::{NOT_FIXED_DECIMALS, type_code};
use firn_sql_types::unify::unify;
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
    let is_zero_filled_decimal = values.iter().any(|value| match value.kind {
        ExpressionKind::Slot(slot) => {
            let column = typing.frame.table_column(slot);
            column.is_some_and(|column| column.zerofill) && ty.kind.is_numeric()
        }
        _ => false,
    }) && matches!(ty.kind, TypeKind::Decimal { .. });
    let chosen: Vec<&Expression> = values.into_iter().filter(|value| !is_null(value)).collect();
    let values: Vec<(SqlType, Display)> =
        chosen.iter().map(|value| operand(typing, value)).collect();
    let values: Vec<(&SqlType, Display)> =
        values.iter().map(|(of, display)| (of, *display)).collect();
    if let Some(number) = number_as_text(&values, ty) {
        return number;
    }
    let common = with_code(typing, chosen.iter().copied(), &values, ty);
    let known: Vec<_> = values.iter().filter(|(of, _)| of.kind != TypeKind::Null).collect();
    match known.as_slice() {
        [_] if is_zero_filled_decimal => {
            let length = common.length + u32::from(common.unsigned);
            Display { length, unsigned: false, ..common }
        }
        _ => common,
    }
}

/// A value that is chosen among others, as it was before it got their common type.
pub(super) fn operand(typing: &Typing<'_>, value: &Expression) -> (SqlType, Display) {
    let value = without_zeros(value);
    let text = within_text(typing, value);
    let (of, display) = text.unwrap_or_else(|| display::shown_operand(typing, value));
    let is_told_as_fixed = display.type_code == Some(type_code::STRING);
    let of = match of.kind {
        TypeKind::Varchar { collation, .. } if is_told_as_fixed => {
            SqlType::new(TypeKind::Char { max_chars: display.length, collation })
        }
        TypeKind::Varbinary { .. } if is_told_as_fixed => {
            SqlType::new(TypeKind::Binary { max_bytes: display.length })
        }
        // A cast to `BINARY(n)` is not a column of that type: its values are not filled up.
        TypeKind::Binary { max_bytes } => SqlType::varbinary(max_bytes),
        _ => of.clone(),
    };
    let is_made = matches!(value.kind, ExpressionKind::Slot(slot) if display::column_kind(&typing.frame, slot).is_none());
    match value.ty.kind {
        // What an aggregate has chosen keeps its type.
        TypeKind::Char { .. } if is_made => (value.ty.clone(), display),
        _ => (own_fixed_type(&typing.frame, value).unwrap_or(of), display),
    }
}

/// The common display of the values of expressions, with its type byte.
pub(super) fn with_code<'e>(
    typing: &Typing<'_>,
    expressions: impl Iterator<Item = &'e Expression>,
    values: &[(&SqlType, Display)],
    ty: &SqlType,
) -> Display {
    let common = common_display(values, ty);
    let code = match ty.kind {
        TypeKind::Text { .. } | TypeKind::Blob { .. } => {
            let codes = expressions.map(|one| text_code(typing, one));
            match codes.reduce(merged_code) {
                None | Some(type_code::VAR_STRING) => Some(ty.code_of_made_text(common.length)),
                code => code,
            }
        }
        _ => code_of_only_name(values, ty).or(common.type_code),
    };
    Display { type_code: code, ..common }
}

/// The type byte of a value as a text: a column of long texts has that of a `BLOB`, and a text that
/// was made has one by its length.
fn text_code(typing: &Typing<'_>, value: &Expression) -> u8 {
    let ty = &value.ty;
    if let ExpressionKind::Cast(inner) = &value.kind {
        let is_made_longer = matches!(ty.kind, TypeKind::Text { .. } | TypeKind::Blob { .. })
            || !inner.ty.kind.is_string();
        if is_made_longer {
            return text_code(typing, inner);
        }
    }
    match &value.kind {
        _ if ty.kind == TypeKind::Json => type_code::JSON,
        _ if !ty.kind.is_string() => type_code::VAR_STRING,
        ExpressionKind::Slot(slot) => {
            let column = display::column_kind(&typing.frame, *slot);
            let shown = typing.displays.of_slot(*slot).filter(|shown| !shown.stored);
            match (column.unwrap_or(&ty.kind), shown) {
                // What an aggregate made has a type byte by its length.
                (TypeKind::Text { .. } | TypeKind::Blob { .. }, Some(shown))
                    if column.is_none() =>
                {
                    ty.code_of_made_text(shown.length)
                }
                (TypeKind::Text { .. } | TypeKind::Blob { .. }, _) => type_code::BLOB,
                _ => type_code::VAR_STRING,
            }
        }
        _ => {
            let (of, shown) = match (&value.kind, ty.before.get()) {
                (ExpressionKind::Literal(_), Some(before)) => (&before.operand.0, before.operand.1),
                _ => (ty, display::display(typing, value)),
            };
            match shown.type_code {
                _ if of.kind == TypeKind::Json => type_code::JSON,
                _ if !of.kind.is_string() => type_code::VAR_STRING,
                None => ty.code_of_made_text(shown.length),
                Some(type_code::STRING) => type_code::VAR_STRING,
                Some(code) => code,
            }
        }
    }
}

/// The type byte of one of two texts. Documents beside long texts are the longest texts.
fn merged_code(one: u8, other: u8) -> u8 {
    const BY_LENGTH: [u8; 3] = [type_code::LONG_BLOB, type_code::MEDIUM_BLOB, type_code::BLOB];
    let longest = BY_LENGTH.into_iter().find(|code| [one, other].contains(code));
    match ([one, other].contains(&type_code::JSON), longest) {
        (true, Some(_)) => type_code::LONG_BLOB,
        (_, Some(longest)) => longest,
        (true, None) if one == other => type_code::JSON,
        (_, None) => type_code::VAR_STRING,
    }
}

/// The text of a choice among numbers: as long as that of the number that it would be.
fn number_as_text(values: &[(&SqlType, Display)], ty: &SqlType) -> Option<Display> {
    let is_number = |(of, _): &(&SqlType, Display)| of.kind.is_numeric();
    let is_bits = |(of, _): &(&SqlType, Display)| matches!(of.kind, TypeKind::Bit { .. });
    if !ty.kind.is_text() || !values.iter().all(is_number) || values.iter().any(is_bits) {
        return None;
    }
    let types: Vec<SqlType> = values.iter().map(|(of, _)| (*of).clone()).collect();
    let number = unify(&types, ty.collation()?, "case").ok()?;
    let shown = common_display(values, &number).as_text_of(&number);
    Some(Display { length: shown.length, ..Display::of_expression(ty) })
}

/// The type byte of a name that nothing but NULL stands beside: it is told of as one, though it is
/// a text.
fn code_of_only_name(values: &[(&SqlType, Display)], ty: &SqlType) -> Option<u8> {
    let mut known = values.iter().filter(|(of, _)| of.kind != TypeKind::Null);
    let (name, shown) = known.next()?;
    if known.next().is_some() {
        return None;
    }
    match (&name.kind, shown.type_code) {
        // One that was chosen before.
        (_, Some(code @ (type_code::ENUM | type_code::SET))) => Some(code),
        (TypeKind::Enum { .. }, _) if is_text_of_name(name, ty) => Some(type_code::ENUM),
        (TypeKind::Set { .. }, _) if is_text_of_name(name, ty) => Some(type_code::SET),
        _ => None,
    }
}

/// Whether a text type is that of the names of an `ENUM` or a `SET`, with no cast in between.
fn is_text_of_name(name: &SqlType, text: &SqlType) -> bool {
    matches!(text.kind, TypeKind::Varchar { max_chars, .. } if max_chars == name.max_text_chars())
        && text.collation() == name.collation()
}

/// A text that the choice casts to a longer one, or to another character set: it is no longer for
/// that.
fn within_text<'e>(typing: &Typing<'_>, value: &'e Expression) -> Option<(&'e SqlType, Display)> {
    let ExpressionKind::Cast(inner) = &value.kind else { return None };
    let (most, before) = match (&value.ty.kind, &inner.ty.kind) {
        (TypeKind::Varchar { max_chars: most, .. }, TypeKind::Varchar { max_chars, .. }) => {
            (*most, *max_chars)
        }
        (
            TypeKind::Varbinary { max_bytes: most },
            TypeKind::Varbinary { max_bytes } | TypeKind::Binary { max_bytes },
        ) => (*most, *max_bytes),
        _ => return None,
    };
    let (of, display) = match within_text(typing, inner) {
        Some(shown) => shown,
        None => display::shown_operand(typing, inner),
    };
    // A longer type does not cut.
    let length = if most < before { display.length.min(most) } else { display.length };
    Some((of, Display { length, ..display }))
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
    if matches!(value.ty.kind, TypeKind::Decimal { .. }) {
        // Not even a sign is added.
        return Some(display::shown_operand(typing, value).1.as_expression());
    }
    match &value.kind {
        ExpressionKind::Cast(name) if name.ty.kind.is_enum_or_set() => {
            Some(Display { type_code: Some(type_code::STRING), ..shown })
        }
        _ => None,
    }
}

/// The number behind the text that a zero-filled column, or a double with fixed digits, becomes
/// beside texts.
fn without_zeros(value: &Expression) -> &Expression {
    match &value.kind {
        ExpressionKind::Cast(inner) if matches!(inner.kind, ExpressionKind::Call { .. }) => {
            let number = without_zeros(inner);
            if std::ptr::eq(number, &**inner) { value } else { number }
        }
        ExpressionKind::Call { .. } => value.number_behind_text().unwrap_or(value),
        _ => value,
    }
}

/// The type of a `CHAR` or `BINARY` column, which is a `VARCHAR` in an expression.
pub(super) fn own_fixed_type(frame: &Frame, value: &Expression) -> Option<SqlType> {
    // Beside longer texts it is cast.
    let slot = match &value.kind {
        ExpressionKind::Cast(inner) if !is_written_cast(value) => &inner.kind,
        kind => kind,
    };
    if let (ExpressionKind::Call { .. }, ExpressionKind::Cast(inner)) = (slot, &value.kind) {
        // A moment becomes a text.
        return matches!(inner.ty.kind, TypeKind::Char { .. }).then(|| inner.ty.clone());
    }
    if let (ExpressionKind::Call { .. }, Some(before)) = (slot, value.ty.before.get()) {
        let of = &before.operand.0;
        return matches!(of.kind, TypeKind::Char { .. }).then(|| of.clone());
    }
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
            let keeps = kinds.clone().all(|kind| is_fixed(kind) || !kind.is_string());
            // What comes before must not have made another text of itself: a number does beside a
            // time, and a name beside anything else.
            let before: Vec<&TypeKind> = kinds.clone().take_while(|kind| !is_fixed(kind)).collect();
            let stays = match before[..] {
                [only] if only.is_enum_or_set() => true,
                _ => {
                    before.iter().all(|kind| kind.is_numeric())
                        || before.iter().all(|kind| kind.is_temporal())
                }
            };
            (keeps && stays && kinds.any(is_fixed)).then_some(type_code::STRING)
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
