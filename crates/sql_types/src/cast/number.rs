//! Anything to numbers.

use crate::context::EvaluationContext;
use crate::datum::Datum;
use crate::decimal::{Decimal, MAX_PRECISION, Rounding};
use crate::error::{Result, SqlError};
use crate::json::JsonValue;
use crate::number_text::{double_to_text, parse_double_prefix};
use crate::sql_type::{Coercibility, SqlType, TypeKind};
use crate::temporal::format;

use super::{shown, truncated};

const CODE_COMPLEMENT: u16 = 1105;
const CODE_INVALID_JSON_FOR_CAST: u16 = 3156;
const CODE_OUT_OF_RANGE: u16 = 1264;
const CODE_DOUBLE_OUT_OF_RANGE: u16 = 1690;

/// A value as a number, before it is fitted into a type.
pub(super) enum Number {
    Signed(i64),
    Unsigned(u64),
    Double(f64),
    Exact(Decimal),
}

/// The number of a value that is neither text nor JSON: dates and times are
/// `YYYYMMDDHHMMSS.ffffff`.
pub(super) fn number_of(datum: &Datum, from: &SqlType) -> Option<Number> {
    use firn_format::value::{Date, DateTime, Time};
    let fsp = from.kind.fsp();
    Some(match datum {
        Datum::Int(number) => Number::Signed(*number),
        Datum::UInt(number) => Number::Unsigned(*number),
        Datum::Double(number) => Number::Double(*number),
        Datum::Decimal(number) => Number::Exact(*number),
        Datum::Date(packed) => Number::Signed(format::date_number(Date::unpack(*packed))),
        Datum::Time(packed) if fsp == 0 => {
            Number::Signed(format::time_number(Time::unpack(*packed)))
        }
        Datum::Time(packed) => Number::Exact(format::time_decimal(Time::unpack(*packed), fsp)),
        Datum::DateTime(packed) if fsp == 0 => {
            Number::Signed(format::date_time_number(DateTime::unpack(*packed)))
        }
        Datum::DateTime(packed) => {
            Number::Exact(format::date_time_decimal(DateTime::unpack(*packed), fsp))
        }
        Datum::Null | Datum::Text(_) | Datum::Json(_) => return None,
    })
}

/// The value inside a JSON scalar that may be a number; `None`, and a warning, for dates, times,
/// bytes, arrays, objects and null.
fn json_inner(json: &JsonValue, wanted: &str, ctx: &EvaluationContext) -> Result<Option<Datum>> {
    let inner = match json {
        JsonValue::Bool(truth) => Datum::Int((*truth).into()),
        JsonValue::Int(number) => Datum::Int(*number),
        JsonValue::UInt(number) => Datum::UInt(*number),
        JsonValue::Double(number) => Datum::Double(*number),
        JsonValue::Decimal(number) => Datum::Decimal(*number),
        JsonValue::String(text) => Datum::text(&**text),
        JsonValue::Date(_)
        | JsonValue::Time(_)
        | JsonValue::DateTime(_)
        | JsonValue::Opaque { .. }
        | JsonValue::Null
        | JsonValue::Array(_)
        | JsonValue::Object(_) => {
            invalid_json(wanted, ctx)?;
            return Ok(None);
        }
    };
    Ok(Some(inner))
}

/// Warning 3156 for a document that is not a value of the wanted type.
pub(super) fn invalid_json(wanted: &str, ctx: &EvaluationContext) -> Result<()> {
    ctx.bad_value(CODE_INVALID_JSON_FOR_CAST, || {
        format!("Invalid JSON value for CAST to {wanted} from column json at row 1")
    })
}

/// A plain type for a value from JSON.
pub(super) fn plain_type(datum: &Datum) -> SqlType {
    SqlType::new(match datum {
        Datum::Int(_) => return SqlType::bigint(),
        Datum::UInt(_) => return SqlType::bigint_unsigned(),
        Datum::Double(_) => TypeKind::Double,
        Datum::Decimal(number) => {
            return SqlType::decimal(number.digits().max(1), number.scale());
        }
        Datum::Date(_) => TypeKind::Date,
        Datum::Time(_) => TypeKind::Time { fsp: 6 },
        Datum::DateTime(_) => TypeKind::DateTime { fsp: 6 },
        Datum::Json(_) => TypeKind::Json,
        Datum::Null => TypeKind::Null,
        Datum::Text(text) => {
            return SqlType::varchar(text.len() as u32, firn_format::value::CollationId(255));
        }
    })
}

/// To a `BIGINT`. Fractions are rounded, except those of text, which ends at its integer digits;
/// unsigned numbers keep their 64 bits.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_signed(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<i64> {
    let number = match (datum, number_of(datum, from)) {
        (_, Some(number)) => number,
        (Datum::Text(text), None) => return text_to_signed(text, datum, from, ctx),
        (Datum::Json(json), None) => {
            let Some(inner) = json_inner(json, "INTEGER", ctx)? else { return Ok(0) };
            if let Datum::Text(text) = &inner {
                let (number, clean) = whole_number(text);
                if !clean || i64::try_from(number).is_err() {
                    invalid_json("INTEGER", ctx)?;
                    return Ok(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
                }
            }
            return to_signed(&inner, &plain_type(&inner), ctx);
        }
        _ => return Ok(0),
    };
    Ok(match number {
        Number::Signed(number) => number,
        Number::Unsigned(number) => number as i64,
        Number::Double(number) => {
            // Out of range, it is the end of the range, without a warning.
            number.round_ties_even() as i64
        }
        Number::Exact(number) => match number.to_i64() {
            Some(number) => number,
            None => {
                truncated("DECIMAL", datum, from, ctx)?;
                if number.is_negative() { i64::MIN } else { i64::MAX }
            }
        },
    })
}

/// To a `BIGINT UNSIGNED`. Negative integers keep their 64 bits.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_unsigned(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<u64> {
    let number = match (datum, number_of(datum, from)) {
        (_, Some(number)) => number,
        (Datum::Text(text), None) => return text_to_unsigned(text, datum, from, ctx),
        (Datum::Json(json), None) => {
            let Some(inner) = json_inner(json, "INTEGER", ctx)? else { return Ok(0) };
            if let Datum::Text(text) = &inner {
                let (number, clean) = whole_number(text);
                if !clean || i64::try_from(number).is_err() {
                    invalid_json("INTEGER", ctx)?;
                    return Ok(number.clamp(i64::MIN.into(), i64::MAX.into()) as u64);
                }
            }
            return to_unsigned(&inner, &plain_type(&inner), ctx);
        }
        _ => return Ok(0),
    };
    Ok(match number {
        Number::Signed(number) => number as u64,
        Number::Unsigned(number) => number,
        Number::Double(number) => {
            // Even to an unsigned number, a double is converted through a signed one.
            number.round_ties_even() as i64 as u64
        }
        Number::Exact(number) if number.is_negative() => match number.to_i64() {
            Some(number) => number as u64,
            None => {
                truncated("DECIMAL", datum, from, ctx)?;
                i64::MIN as u64
            }
        },
        Number::Exact(number) => match number.to_u64() {
            Some(number) => number,
            None => {
                truncated("DECIMAL", datum, from, ctx)?;
                u64::MAX
            }
        },
    })
}

/// The whole number at the start of a text, cut to 66 bits, and whether it is the whole text.
pub(super) fn whole_number(text: &[u8]) -> (i128, bool) {
    let rest = text.trim_ascii_start();
    let negative = rest.first() == Some(&b'-');
    let sign = usize::from(matches!(rest.first(), Some(b'-' | b'+')));
    let digits = rest[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let add = |value: i128, byte: &u8| (value * 10 + i128::from(byte - b'0')).min(1 << 66);
    let magnitude = rest[sign..sign + digits].iter().fold(0, add);
    let clean = digits > 0 && rest[sign + digits..].trim_ascii().is_empty();
    (if negative { -magnitude } else { magnitude }, clean)
}

fn text_to_signed(
    text: &[u8],
    datum: &Datum,
    from: &SqlType,
    ctx: &EvaluationContext,
) -> Result<i64> {
    let (number, clean) = whole_number(text);
    let in_range = (i64::MIN.into()..=u64::MAX.into()).contains(&number);
    if !clean || !in_range {
        truncated("INTEGER", datum, from, ctx)?;
    }
    if let Ok(number) = i64::try_from(number) {
        return Ok(number);
    }
    if !in_range {
        return Ok(if number < 0 { i64::MIN } else { u64::MAX as i64 });
    }
    ctx.warn(CODE_COMPLEMENT, || {
        "Cast to signed converted positive out-of-range integer to its negative complement".into()
    });
    Ok(number as u64 as i64)
}

fn text_to_unsigned(
    text: &[u8],
    datum: &Datum,
    from: &SqlType,
    ctx: &EvaluationContext,
) -> Result<u64> {
    let (number, clean) = whole_number(text);
    let in_range = (i64::MIN.into()..=u64::MAX.into()).contains(&number);
    if !clean || !in_range {
        truncated("INTEGER", datum, from, ctx)?;
    }
    if number < 0 {
        if in_range {
            ctx.warn(CODE_COMPLEMENT, || {
                "Cast to unsigned converted negative integer to its positive complement".into()
            });
        }
        return Ok(number.max(i64::MIN.into()) as i64 as u64);
    }
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

/// To a `DOUBLE`.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_double(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<f64> {
    Ok(match (datum, number_of(datum, from)) {
        (_, Some(Number::Signed(number))) => number as f64,
        (_, Some(Number::Unsigned(number))) => number as f64,
        (_, Some(Number::Double(number))) => number,
        (_, Some(Number::Exact(number))) => number.to_double(),
        (Datum::Text(text), None) => {
            let parsed = parse_double_prefix(text);
            if parsed.overflow || !text[parsed.length_bytes..].trim_ascii().is_empty() {
                truncated("DOUBLE", datum, from, ctx)?;
            }
            parsed.number
        }
        (Datum::Json(json), None) => match json_inner(json, "DOUBLE", ctx)? {
            Some(Datum::Text(text)) => {
                let parsed = parse_double_prefix(&text);
                if parsed.overflow || !text[parsed.length_bytes..].trim_ascii().is_empty() {
                    invalid_json("DOUBLE", ctx)?;
                }
                parsed.number
            }
            Some(inner) => to_double(&inner, &plain_type(&inner), ctx)?,
            None => 0.0,
        },
        _ => 0.0,
    })
}

/// To a `FLOAT`: a double that an `f32` holds.
pub(super) fn to_float(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<f64> {
    let number = to_double(datum, from, ctx)?;
    if number.abs() > f32::MAX.into() {
        let message =
            format!("DOUBLE value is out of range in 'cast({} as float)'", shown(datum, from));
        return Err(SqlError::new(CODE_DOUBLE_OUT_OF_RANGE, message));
    }
    Ok(f64::from(number as f32))
}

/// To an exact number with as many digits as it has.
///
/// # Errors
/// 1292 in a strict statement that stores.
pub fn to_decimal(datum: &Datum, from: &SqlType, ctx: &EvaluationContext) -> Result<Decimal> {
    Ok(match (datum, number_of(datum, from)) {
        (_, Some(Number::Signed(number))) => Decimal::from(number),
        (_, Some(Number::Unsigned(number))) => Decimal::from(number),
        (_, Some(Number::Exact(number))) => number,
        (_, Some(Number::Double(number))) => match Decimal::from_double(number) {
            Some(number) => number,
            None => {
                truncated("DECIMAL", datum, from, ctx)?;
                largest(number < 0.0)
            }
        },
        (Datum::Text(text), None) => {
            let parsed = Decimal::parse_prefix(text);
            let whole =
                parsed.length_bytes > 0 && text[parsed.length_bytes..].trim_ascii().is_empty();
            if parsed.overflow || !whole {
                truncated("DECIMAL", datum, from, ctx)?;
            }
            parsed.number
        }
        (Datum::Json(json), None) => match json_inner(json, "DECIMAL", ctx)? {
            Some(Datum::Text(text)) => {
                let parsed = Decimal::parse_prefix(&text);
                let is_all = text[parsed.length_bytes..].trim_ascii().is_empty();
                if parsed.overflow || parsed.length_bytes == 0 || !is_all {
                    invalid_json("DECIMAL", ctx)?;
                }
                parsed.number
            }
            Some(inner) => to_decimal(&inner, &plain_type(&inner), ctx)?,
            None => Decimal::ZERO,
        },
        _ => Decimal::ZERO,
    })
}

/// Whether a text begins with an exact number.
pub(super) fn is_decimal(text: &[u8]) -> bool {
    Decimal::parse_prefix(text).length_bytes > 0
}

fn largest(negative: bool) -> Decimal {
    let largest = Decimal::max(MAX_PRECISION, 0);
    if negative { largest.negate() } else { largest }
}

/// To `DECIMAL(precision, scale)`; a number that does not fit becomes the largest one that does,
/// with a warning if the cast `to` it was written, and not added for an operation.
pub(super) fn to_decimal_type(
    datum: &Datum,
    from: &SqlType,
    to: &SqlType,
    (precision, scale): (u8, u8),
    ctx: &EvaluationContext,
) -> Result<Datum> {
    let is_written = to.coercibility == Coercibility::Implicit;
    let number = to_decimal(datum, from, ctx)?;
    let rounded = number.round(scale.into(), Rounding::HalfUp);
    if let Some(rounded) = rounded.filter(|number| number.fits(precision, scale)) {
        return Ok(Datum::Decimal(rounded));
    }
    if is_written {
        ctx.bad_value(CODE_OUT_OF_RANGE, || {
            format!("Out of range value for column '{}' at row 1", shown(datum, from))
        })?;
    }
    let largest = Decimal::max(precision, scale);
    Ok(Datum::Decimal(if number.is_negative() { largest.negate() } else { largest }))
}

/// The text of a double in a message.
pub(super) fn double_text(number: f64) -> String {
    double_to_text(number).to_str_lossy().into_owned()
}
