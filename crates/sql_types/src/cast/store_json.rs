//! Storing the content of a document into columns of numbers, dates and times.
//!
//! ```text
//!   1.5         into INT     2
//!   "12"        into INT     12             "12x"   12, with a warning
//!   "10:11:12"  into TIME    10:11:12       12      00:00:00, with a warning
//! ```

use crate::datum::Datum;
use crate::decimal::Decimal;
use crate::error::Result;
use crate::json::JsonValue;
use crate::sql_type::{SqlType, TypeKind};
use crate::temporal::parse::DateRules;

use super::assign::{Source, Target, assign};
use super::number::plain_type;
use super::temporal::{read_date_time, read_time};

const CODE_INVALID: u16 = 3156;

/// The type to which a column of this kind converts a document; `None`: text.
pub(super) fn cast_name(kind: &TypeKind) -> Option<&'static str> {
    Some(match kind {
        TypeKind::Integer { .. } | TypeKind::Year => "INTEGER",
        TypeKind::Decimal { .. } => "DECIMAL",
        TypeKind::Float | TypeKind::Double => "DOUBLE",
        TypeKind::Date => "DATE",
        TypeKind::Time { .. } => "TIME",
        TypeKind::DateTime { .. } | TypeKind::Timestamp { .. } => "DATETIME/TIMESTAMP",
        _ => return None,
    })
}

/// Stores the scalar of a document; a document that is not a scalar counts as zero, with a warning.
pub(super) fn scalar(json: &JsonValue, wanted: &str, target: Target<'_>) -> Result<Datum> {
    let (value, is_whole) = match target.ty.kind.is_temporal() && target.ty.kind != TypeKind::Year {
        true => (moment(json, target), true),
        false => number(json),
    };
    if value.is_none() || !is_whole {
        target.ctx.bad_value(CODE_INVALID, || {
            let row = target.row;
            format!("Invalid JSON value for CAST to {wanted} from column json at row {row}")
        })?;
    }
    match value {
        Some(value) => assign(&value, &plain_type(&value), target),
        // A document that is chosen among others is not stored as the zero date.
        None if target.source == Source::Choice
            && target.ty.kind.is_temporal()
            && target.ty.nullable =>
        {
            Ok(Datum::Null)
        }
        None => Ok(super::implicit_default(&target.ty.clone().not_null())),
    }
}

/// The number of a document, and whether the document is exactly that number.
fn number(json: &JsonValue) -> (Option<Datum>, bool) {
    let number = match json {
        JsonValue::Bool(truth) => Datum::Int((*truth).into()),
        JsonValue::Int(number) => Datum::Int(*number),
        JsonValue::UInt(number) => Datum::UInt(*number),
        JsonValue::Double(number) => Datum::Double(*number),
        JsonValue::Decimal(number) => Datum::Decimal(*number),
        JsonValue::String(text) => {
            let parsed = Decimal::parse_prefix(text.as_bytes());
            let is_whole = parsed.length_bytes > 0 && parsed.length_bytes == text.len();
            return (Some(Datum::Decimal(parsed.number)), is_whole);
        }
        _ => return (None, false),
    };
    (Some(number), true)
}

/// The date or time of a document, if it fits such a column.
fn moment(json: &JsonValue, target: Target<'_>) -> Option<Datum> {
    let is_time = matches!(target.ty.kind, TypeKind::Time { .. });
    match json {
        JsonValue::Time(packed) if is_time => Some(Datum::Time(*packed)),
        JsonValue::Date(packed) if !is_time => Some(Datum::Date(*packed)),
        JsonValue::DateTime(packed) if !is_time => Some(Datum::DateTime(*packed)),
        JsonValue::String(text) => {
            let (datum, from) = (Datum::text(&**text), SqlType::varchar(64, super::UTF8MB4));
            if is_time {
                let parsed = read_time(&datum, &from, target.ctx);
                let is_written = text.contains(':') && parsed.fault.is_none();
                return parsed.value.filter(|_| is_written).map(Datum::from);
            }
            let rules = DateRules::from_mode(target.ctx.sql_mode);
            let parsed = read_date_time(&datum, &from, rules, target.ctx);
            let value = parsed.value.filter(|_| parsed.fault.is_none())?;
            Some(match target.ty.kind {
                TypeKind::Date => Datum::from(value.date),
                _ => Datum::from(value),
            })
        }
        _ => None,
    }
}
