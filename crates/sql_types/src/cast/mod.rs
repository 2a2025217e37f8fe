//! Conversions between types: `CAST`, the implicit ones of mixed expressions, and storing into a
//! column.
//!
//! ```text
//!   cast('12x', CHAR → BIGINT)        12, warning 1292 Truncated incorrect INTEGER value: '12x'
//!   assign('12x', into a INT)         error 1265 Data truncated for column 'a' at row 1
//!                                     (not strict, or IGNORE: 12 with a warning)
//! ```
//!
//! [`cast`] is for reading: a value that it cannot convert is adjusted, with a warning, or becomes
//! NULL. In a strict statement that stores, the warnings are errors. [`assign`] knows the column
//! and has its own, stricter rules and messages.

mod assign;
mod canonical_text;
mod geometry;
mod held;
mod json;
mod json_fitting;
mod number;
mod store_json;
mod store_temporal;
mod store_text;
mod temporal;
#[cfg(test)]
mod tests;
mod text;

use firn_sql_collation as collation;

use crate::error::Result;

use super::context::EvaluationContext;
use super::datum::Datum;
use super::decimal::Decimal;
use super::number_text::{double_column_in_text, parse_double_prefix};
use super::sql_type::{Coercibility, SqlType, TypeKind};

pub use assign::{FloatLimits, Source, Target, assign, assign_within, implicit_default};
pub use held::{held, is_readable_date};
pub use json::{json_scalar, parse_json};
pub use json_fitting::{fitting_context, fitting_value};
pub use number::{to_decimal, to_double, to_signed, to_unsigned};
pub use temporal::{
    date_of_number, date_of_time, to_date, to_date_time, to_time, to_year, warn_of_delimiter,
};
pub(crate) use text::text_of;
pub use text::{to_binary, to_text};

/// Whether [`assign`] would return the value unchanged; false means unknown.
#[must_use]
pub fn is_stored_as_it_is(datum: &Datum, from: &SqlType, to: &SqlType) -> bool {
    match (datum, &to.kind) {
        (Datum::Int(number), TypeKind::Integer { width, unsigned: false }) => {
            let unused_bits = 64 - width.bytes() as u32 * 8;
            (number << unused_bits) >> unused_bits == *number
        }
        (Datum::Text(text), TypeKind::Varchar { max_chars, .. }) => {
            from.kind.is_text() && text.len() <= *max_chars as usize && text.is_ascii()
        }
        (Datum::Text(text), TypeKind::Char { max_chars, .. }) => {
            let fits = text.len() <= *max_chars as usize && text.last() != Some(&b' ');
            from.kind.is_text() && fits && text.is_ascii()
        }
        (Datum::Text(text), TypeKind::Text { max_bytes, collation }) => {
            let stored_bytes = text.len() * collation::get(*collation).charset.unit_bytes();
            let fits = stored_bytes as u64 <= u64::from(*max_bytes);
            from.kind.is_text() && fits && text.is_ascii()
        }
        _ => false,
    }
}

/// `utf8mb4_0900_ai_ci`, the collation of enum names.
const UTF8MB4: firn_format::value::CollationId = firn_format::value::CollationId(255);
/// Characters of a value that a message shows.
const SHOWN_CHARACTERS: usize = 128;

/// Converts a value from its type to another. NULL stays NULL.
///
/// # Errors
/// 1292 and the like in a strict statement that stores; 3141 for text that is not JSON.
pub fn cast(datum: &Datum, from: &SqlType, to: &SqlType, ctx: &EvaluationContext) -> Result<Datum> {
    if datum.is_null() {
        return Ok(Datum::Null);
    }
    if from.kind == to.kind {
        return Ok(datum.clone());
    }
    let is_bytes = matches!(from.kind, TypeKind::Bit { .. });
    if (from.kind.is_enum_or_set() || is_bytes) && to.kind.is_temporal() {
        // The name is read, not its number; for bits, the bytes.
        let name = Datum::Text(text::text_of(datum, from));
        return cast(&name, &SqlType::long_text(UTF8MB4), to, ctx);
    }
    let converted = match &to.kind {
        TypeKind::Null => Datum::Null,
        TypeKind::Integer { unsigned: false, .. } => Datum::Int(to_signed(datum, from, ctx)?),
        TypeKind::Integer { unsigned: true, .. } => Datum::UInt(to_unsigned(datum, from, ctx)?),
        TypeKind::Bit { bits } => {
            let mask = u64::MAX >> 64_u32.saturating_sub((*bits).into()).min(63);
            Datum::UInt(to_unsigned(datum, from, ctx)? & mask)
        }
        TypeKind::Year => to_year(datum, from, ctx)?.map_or(Datum::Null, Datum::UInt),
        TypeKind::Decimal { precision, scale, .. } => {
            number::to_decimal_type(datum, from, to, (*precision, *scale), ctx)?
        }
        TypeKind::Float => Datum::Double(number::to_float(datum, from, ctx)?),
        TypeKind::Double => Datum::Double(to_double(datum, from, ctx)?),
        TypeKind::Char { .. } | TypeKind::Varchar { .. } | TypeKind::Text { .. } => {
            text::to_text_type(datum, from, &to.kind, ctx)?
        }
        TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. } => {
            text::to_binary_type(datum, from, &to.kind, ctx)?
        }
        TypeKind::Geometry => Datum::Text(to_binary(datum, from, ctx)),
        TypeKind::Date => to_date(datum, from, ctx)?.map_or(Datum::Null, Datum::from),
        TypeKind::Time { fsp } => to_time(datum, from, *fsp, ctx)?.map_or(Datum::Null, Datum::from),
        TypeKind::DateTime { fsp } | TypeKind::Timestamp { fsp } => {
            to_date_time(datum, from, *fsp, ctx)?.map_or(Datum::Null, Datum::from)
        }
        TypeKind::Enum { .. } | TypeKind::Set { .. } => Datum::UInt(to_unsigned(datum, from, ctx)?),
        TypeKind::Json => json::to_json(datum, from)?,
    };
    Ok(converted)
}

/// As [`cast`], for a text or a double of a column. A double has more digits in a text than one
/// that was worked out. A long text becomes a double without a warning, and also an integer if no
/// cast is written; exact numbers are as in [`exact_of`]. A `FLOAT` beyond all integers becomes the
/// lowest one, a `DOUBLE` the nearest, with a warning.
///
/// # Errors
/// As [`cast`].
pub fn cast_column(
    datum: &Datum,
    from: &SqlType,
    to: &SqlType,
    ctx: &EvaluationContext,
) -> Result<Datum> {
    let is_long = matches!(from.kind, TypeKind::Text { .. } | TypeKind::Blob { .. });
    match (datum, &to.kind) {
        (Datum::Double(number), TypeKind::Integer { unsigned, .. })
            if !(i64::MIN as f64..i64::MAX as f64).contains(number) =>
        {
            // A FLOAT has no largest whole number.
            if from.kind == TypeKind::Float {
                return Ok(match *unsigned {
                    true => Datum::UInt(i64::MIN as u64),
                    false => Datum::Int(i64::MIN),
                });
            }
            truncated("INTEGER", datum, from, ctx)?;
            cast(datum, from, to, ctx)
        }
        (Datum::Double(number), kind) if kind.is_string() && from.kind == TypeKind::Double => {
            let text = Datum::Text(double_column_in_text(*number));
            let ty = SqlType::varchar(from.max_text_chars(), ctx.connection_collation);
            cast(&text, &ty, to, ctx)
        }
        (Datum::Text(text), TypeKind::Double) if is_long => Ok(Datum::Double(double_of(text))),
        (Datum::Text(text), TypeKind::Float)
            if is_long && double_of(text).abs() <= f64::from(f32::MAX) =>
        {
            Ok(Datum::Double(f64::from(double_of(text) as f32)))
        }
        (Datum::Text(text), TypeKind::Integer { unsigned: false, .. })
            if is_long && to.coercibility != Coercibility::Implicit =>
        {
            let (number, _) = number::whole_number(text);
            Ok(Datum::Int(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64))
        }
        (Datum::Text(_), TypeKind::Decimal { .. }) if is_long => exact_of(datum, from, to, ctx),
        (Datum::Text(text), TypeKind::Decimal { .. }) if !number::is_decimal(text) => {
            truncated("DECIMAL", datum, from, ctx)?;
            exact_of(datum, from, to, ctx)
        }
        _ => cast(datum, from, to, ctx),
    }
}

/// As [`cast`], to an exact number, for a text that was worked out or a long one of a column: a
/// text that does not begin with a number has its own warning, and what follows the number has
/// none.
///
/// # Errors
/// As [`cast`].
pub fn exact_of(
    datum: &Datum,
    from: &SqlType,
    to: &SqlType,
    ctx: &EvaluationContext,
) -> Result<Datum> {
    match datum {
        Datum::Text(text) if !number::is_decimal(text) => {
            ctx.bad_value(1366, || {
                "Incorrect DECIMAL value: '0' for column '' at row -1".to_owned()
            })?;
            cast(&Datum::Int(0), &SqlType::bigint(), to, ctx)
        }
        Datum::Text(text) => match Decimal::parse_prefix(text) {
            parsed if parsed.overflow => cast(datum, from, to, ctx),
            parsed => match to.kind {
                TypeKind::Decimal { precision, scale, .. } => {
                    let (number, exact) = (Datum::Decimal(parsed.number), SqlType::decimal(1, 0));
                    number::to_decimal_type(&number, &exact, to, (precision, scale), ctx)
                }
                _ => cast(datum, from, to, ctx),
            },
        },
        _ => cast(datum, from, to, ctx),
    }
}

fn double_of(text: &[u8]) -> f64 {
    parse_double_prefix(text).number
}

/// A value as a message shows it.
fn shown(datum: &Datum, from: &SqlType) -> String {
    let text = text::text_of(datum, from);
    text.to_str_lossy().chars().take(SHOWN_CHARACTERS).collect()
}

/// Adds warning 1292 `Truncated incorrect KIND value: '…'`; the error, in a strict statement that
/// stores.
fn truncated(kind: &str, datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<()> {
    ctx.bad_value(1292, || format!("Truncated incorrect {kind} value: '{}'", shown(datum, from)))
}
