//! Values of arguments as Rust types. None of these functions panics on a value of another type.

use std::borrow::Cow;

use firn_base::memory::{self, Promise};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, Decimal};

use crate::Call;

/// The bytes of text or of a binary string.
pub(super) fn bytes(datum: &Datum) -> &[u8] {
    datum.as_bytes().unwrap_or_default()
}

/// A hexadecimal literal as a number, most significant byte first; 0 if it does not fit, as in
/// MySQL.
fn number_of_bytes(bytes: &[u8]) -> u64 {
    let (beyond, last) = bytes.split_at(bytes.len().saturating_sub(8));
    match beyond.iter().all(|byte| *byte == 0) {
        true => last.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        false => 0,
    }
}

pub(super) fn text(datum: &Datum) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes(datum))
}

/// A whole number, cut to the range of an `i64`.
pub(super) fn int(datum: &Datum) -> i64 {
    wide_int(datum).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A whole number, signed or unsigned.
pub(super) fn wide_int(datum: &Datum) -> i128 {
    match datum {
        Datum::Int(number) => (*number).into(),
        Datum::UInt(number) => (*number).into(),
        Datum::Double(number) => number.round_ties_even() as i128,
        Datum::Decimal(number) => number.to_i128().unwrap_or(match number.is_negative() {
            true => i128::MIN,
            false => i128::MAX,
        }),
        Datum::Text(octets) => number_of_bytes(octets).into(),
        _ => 0,
    }
}

/// A whole number's 64 bits.
pub(super) fn word(datum: &Datum) -> u64 {
    match datum {
        Datum::UInt(number) => *number,
        Datum::Int(number) => *number as u64,
        other => match wide_int(other) {
            number @ ..0 => number.max(i64::MIN.into()) as i64 as u64,
            number => u64::try_from(number).unwrap_or(u64::MAX),
        },
    }
}

pub(super) fn double(datum: &Datum) -> f64 {
    match datum {
        Datum::Double(number) => *number,
        Datum::Int(number) => *number as f64,
        Datum::UInt(number) => *number as f64,
        Datum::Decimal(number) => number.to_double(),
        Datum::Text(octets) => number_of_bytes(octets) as f64,
        _ => 0.0,
    }
}

/// An exact number.
pub(super) fn decimal(datum: &Datum) -> Decimal {
    match datum {
        Datum::Decimal(number) => *number,
        Datum::Int(number) => Decimal::from(*number),
        Datum::UInt(number) => Decimal::from(*number),
        Datum::Double(number) => Decimal::from_double(*number).unwrap_or(Decimal::ZERO),
        Datum::Text(octets) => Decimal::from(number_of_bytes(octets)),
        _ => Decimal::ZERO,
    }
}

/// Whether a number is not 0.
pub(super) fn truth(datum: &Datum) -> bool {
    match datum {
        Datum::Decimal(number) => !number.is_zero(),
        other => double(other) != 0.0,
    }
}

/// A number as MySQL shows it in an error message.
pub(super) fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Text(octets) => format!("'{}'", octets.to_str_lossy()),
        other => other.plain_text(),
    }
}

/// Error 1690.
pub(super) fn out_of_range(kind: &str, expression: &str) -> SqlError {
    SqlError::new(1690, format!("{kind} value is out of range in '{expression}'"))
}

/// A double as a value; error 1690 if it is not finite.
pub(super) fn finite(number: f64, expression: impl FnOnce() -> String) -> Result<Datum> {
    if number.is_finite() {
        Ok(Datum::Double(number))
    } else {
        Err(out_of_range("DOUBLE", &expression()))
    }
}

/// Reserves memory for a result of this many bytes, to be held until it is filled. `None` if a
/// function's result may not be that long: adds the warning, and the result is NULL.
///
/// # Errors
/// 1041 if there is no memory, and 1301 instead of the warning in a strict statement that stores.
pub(super) fn fits_packet(
    size_bytes: u128,
    function: &str,
    call: &Call<'_>,
) -> Result<Option<Promise>> {
    let limit = call.context.max_allowed_packet_bytes;
    if size_bytes <= limit.into() {
        return room(usize::try_from(size_bytes).unwrap_or(usize::MAX), call).map(Some);
    }
    call.context.longer_than_packet(function)?;
    Ok(None)
}

/// Reserves memory for a result of this many bytes, to be held until it is filled. As much as the
/// arguments take was granted before the call.
///
/// # Errors
/// 1041 if there is no memory.
pub(super) fn room(size_bytes: usize, call: &Call<'_>) -> Result<Promise> {
    Ok(memory::ask(size_bytes.saturating_sub(call.context.promised_bytes.get()))?)
}

/// Error 1210.
pub(super) fn incorrect_arguments(function: &str) -> SqlError {
    SqlError::new(1210, format!("Incorrect arguments to {function}"))
}

/// Warning 1411, and NULL.
pub(super) fn incorrect_value(kind: &str, value: &str, function: &str, call: &Call<'_>) -> Datum {
    call.context
        .warn(1411, || format!("Incorrect {kind} value: '{value}' for function {function}"));
    Datum::Null
}
