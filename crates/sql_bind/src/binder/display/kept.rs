//! The types of the columns that `CREATE TABLE … SELECT` creates from expressions: as long as their
//! values.

use firn_sql_logical::OutputColumn;
use firn_sql_logical::expression::{Expression, ExpressionKind, SubqueryKind};
use firn_sql_types::metadata::NOT_FIXED_DECIMALS;
use firn_sql_types::{Datum, Display, IntWidth, SqlType, TypeKind};

use super::super::Typing;

/// The longest number stored as an `INT`, in characters.
const LONGEST_INT_CHARS: u32 = 11;
/// The longest number of a temporary table that is an `INT`, in characters.
pub(super) const FEW_DIGITS: u32 = 9;
/// The width of a computed `DOUBLE(M,D)`.
const DOUBLE_CHARS: u32 = 22;
const LONGEST_TEXT_BYTES: u32 = 65_535;
/// The longest computed text that is stored as a `VARCHAR`, in characters.
const LONGEST_VARCHAR_CHARS: u32 = 512;

/// The type of a column that stores an output's values, with the width and the digits after the
/// point of its definition.
#[must_use]
pub fn kept_type(column: &OutputColumn) -> (TypeKind, Option<(u16, u8)>) {
    let OutputColumn { value, origin, display, .. } = column;
    let kind = value.ty.kind.clone();
    let Some(display) = display.filter(|_| !is_column(column)) else { return (kind, None) };
    match kind {
        TypeKind::Integer { .. } | TypeKind::Year if display.type_code.is_some() => {
            let unsigned = kind.is_unsigned();
            (TypeKind::Integer { width: width_of(&display), unsigned }, None)
        }
        TypeKind::Integer { unsigned, .. } if is_of_query(value) => {
            (TypeKind::Integer { width: width_of(&display), unsigned }, None)
        }
        TypeKind::Integer { unsigned, .. } if is_worked_out(value) && !display.keeps_type => {
            let fits = fits_int(value, unsigned) && display.length <= LONGEST_INT_CHARS;
            let width = if fits { IntWidth::Four } else { IntWidth::Eight };
            (TypeKind::Integer { width, unsigned }, None)
        }
        TypeKind::Decimal { scale, unsigned, .. } if origin.is_none() => {
            let precision = display.precision(&kind).max(scale);
            let ty = SqlType::new(TypeKind::Decimal { precision, scale, unsigned });
            (ty.as_column().kind, None)
        }
        TypeKind::Float | TypeKind::Double => {
            let width = double_width(value, &display);
            (kind, width)
        }
        TypeKind::Text { .. } | TypeKind::Blob { .. } => (long_kind(kind, value, &display), None),
        TypeKind::Char { .. } | TypeKind::Binary { .. } if !is_worked_out(value) => (kind, None),
        TypeKind::Varchar { collation, .. } | TypeKind::Char { collation, .. } => {
            let max_chars = display.length;
            let kind = match max_chars > LONGEST_VARCHAR_CHARS && origin.is_none() {
                true => TypeKind::Text { max_bytes: long_bytes(&kind, max_chars), collation },
                false => TypeKind::Varchar { max_chars, collation },
            };
            (kind, None)
        }
        TypeKind::Varbinary { .. } | TypeKind::Binary { .. } => {
            let max_bytes = display.length;
            let kind = match max_bytes > LONGEST_VARCHAR_CHARS && origin.is_none() {
                true => TypeKind::Blob { max_bytes: long_bytes(&kind, max_bytes) },
                false => TypeKind::Varbinary { max_bytes },
            };
            (kind, None)
        }
        kind => (kind, None),
    }
}

/// The width of a whole number that comes from a temporary table.
fn width_of(display: &Display) -> IntWidth {
    if display.length <= FEW_DIGITS { IntWidth::Four } else { IntWidth::Eight }
}

/// The longest text of the type that stores texts of up to `length` characters.
fn long_bytes(kind: &TypeKind, length: u32) -> u32 {
    let bytes = kind.charset().map_or(1, |charset| charset.max_character_bytes());
    match length.saturating_mul(bytes) {
        0..=LONGEST_TEXT_BYTES => LONGEST_TEXT_BYTES,
        _ => u32::MAX,
    }
}

/// The type of a column of a temporary table that keeps an output's values, and what clients see of
/// it: whole numbers that are worked out are `INT` if they have few digits. `is_set`: the column is
/// one of a set, which has its own type.
pub(crate) fn stored_column(
    typing: &Typing<'_>,
    column: &OutputColumn,
    is_set: bool,
) -> (SqlType, Option<Display>) {
    let ty = column.value.ty.clone();
    let Some(display) = column.display else { return (ty, None) };
    let is_computed = !is_set && is_computed(typing, column, &display);
    let ty = match ty.kind {
        TypeKind::Year if is_computed => whole(ty, IntWidth::Four, true),
        TypeKind::Integer { unsigned, .. } if is_computed => {
            whole(ty, width_of(&display), unsigned)
        }
        _ => ty,
    };
    match ty.kind {
        TypeKind::Integer { .. } => {
            let operand_length = Some(Display::of_column(&ty).length.max(display.length));
            let zerofill = display.zerofill && column.value.ty.kind != TypeKind::Year;
            (ty, Some(Display { operand_length, zerofill, ..display }))
        }
        _ => (ty, Some(display)),
    }
}

fn whole(ty: SqlType, width: IntWidth, unsigned: bool) -> SqlType {
    SqlType { kind: TypeKind::Integer { width, unsigned }, ..ty }
}

/// Whether a value is an expression's or a window function's: those of columns and of aggregates
/// have their own types.
fn is_computed(typing: &Typing<'_>, column: &OutputColumn, display: &Display) -> bool {
    match column.value.kind {
        ExpressionKind::Slot(slot) => {
            let is_known = typing.displays.of_slot(slot).is_some()
                || typing.frame.table_column(slot).is_some();
            !is_known || display.stored && column.origin.is_none()
        }
        _ => true,
    }
}

fn is_column(column: &OutputColumn) -> bool {
    let is_slot = matches!(column.value.kind, ExpressionKind::Slot(_));
    is_slot && column.origin.as_ref().is_some_and(|origin| !origin.schema.is_empty())
}

/// Whether an expression is computed, rather than passed on from a table or a query within it.
fn is_worked_out(value: &Expression) -> bool {
    !matches!(value.kind, ExpressionKind::Slot(_)) && !is_of_query(value)
}

/// Whether a value is the one of a query within the expression.
fn is_of_query(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::Subquery(subquery) => matches!(subquery.kind, SubqueryKind::Scalar),
        _ => false,
    }
}

/// Whether a known value fits an `INT`.
fn fits_int(value: &Expression, unsigned: bool) -> bool {
    match &value.kind {
        ExpressionKind::Literal(Datum::Int(number)) if unsigned => u32::try_from(*number).is_ok(),
        ExpressionKind::Literal(Datum::Int(number)) => i32::try_from(*number).is_ok(),
        ExpressionKind::Literal(Datum::UInt(number)) => u32::try_from(*number).is_ok(),
        _ => true,
    }
}

fn double_width(value: &Expression, display: &Display) -> Option<(u16, u8)> {
    if display.decimals == NOT_FIXED_DECIMALS {
        return None;
    }
    let keeps = display.keeps_type || matches!(value.kind, ExpressionKind::Slot(_));
    let width = if keeps { display.length } else { DOUBLE_CHARS };
    Some((u16::try_from(width).unwrap_or(u16::MAX), display.decimals))
}

/// If one of several long texts is chosen, the longest type is stored; a concatenated text is
/// stored by its own length.
fn long_kind(kind: TypeKind, value: &Expression, display: &Display) -> TypeKind {
    let is_chosen = matches!(value.kind, ExpressionKind::Case { .. } | ExpressionKind::Coalesce(_));
    let shorter = |max_bytes: u32| match max_bytes {
        _ if is_chosen => u32::MAX,
        u32::MAX => long_bytes(&kind, display.length),
        other => other,
    };
    match kind {
        TypeKind::Text { max_bytes, collation } => {
            TypeKind::Text { max_bytes: shorter(max_bytes), collation }
        }
        TypeKind::Blob { max_bytes } => TypeKind::Blob { max_bytes: shorter(max_bytes) },
        ref other => other.clone(),
    }
}
