//! The stored form of fixed-width values. All except floats are big endian and compare as values:
//!
//! ```text
//!   Int        value + 2^(bits-1), so that the sign bit is flipped
//!   UInt, Bit, Set, Enum   the number
//!   Year       year - 1900, 0 for year 0
//!   Decimal    its comparable form
//!   Date       3 bytes
//!   Time       seconds rounded down + 2^23 (3 bytes) ‖ fraction
//!   DateTime, Timestamp    seconds part (5 bytes) ‖ fraction
//!   fraction   0, 1, 2 or 3 bytes: hundredths, ten-thousandths or millionths of a second
//!   Float, Double          the IEEE bits (not ordered; the key codec has its own form)
//! ```

use super::column_type::fraction_bytes;
use super::{ColumnType, ValueError, ValueRef};

const MICROSECONDS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in one unit of a fraction with this many bytes.
const FRACTION_UNIT_US: [i64; 4] = [MICROSECONDS_PER_SECOND, 10_000, 100, 1];
/// Added to the seconds of a time, so that they are not negative.
const TIME_BIAS_SECONDS: i64 = 1 << 23;
/// Years are stored relative to this one; the first year that can be stored follows it.
const YEAR_BIAS: u64 = 1900;
/// Bits of a packed datetime that hold the microseconds.
pub(crate) const DATETIME_MICROSECOND_BITS: u32 = 20;

/// Writes `value` into `out`, which is `fixed_length` bytes.
#[inline]
pub(crate) fn write(
    column_type: ColumnType,
    value: ValueRef<'_>,
    out: &mut [u8],
) -> Result<(), ValueError> {
    let word = match (column_type, value) {
        (ColumnType::Int(width), ValueRef::Int(number)) => bias(number, width.bits()),
        (ColumnType::Float, ValueRef::Float(number)) => u64::from(number.to_bits()),
        (ColumnType::Double, ValueRef::Double(number)) => number.to_bits(),
        (_, ValueRef::UInt(number)) => return write_unsigned(column_type, number, out),
        (_, ValueRef::Temporal(packed)) => return write_temporal(column_type, packed, out),
        (ColumnType::Decimal(decimal_type), ValueRef::Decimal(encoded)) => {
            if encoded.len() != decimal_type.encoded_length() {
                return Err(ValueError::OutOfRange(column_type));
            }
            out.copy_from_slice(encoded);
            return Ok(());
        }
        _ => return Err(ValueError::Mismatch(column_type)),
    };
    put(word, out).ok_or(ValueError::OutOfRange(column_type))
}

/// Reads the result of [`write()`]. `bytes` may have any content, `fixed_length` long.
#[inline]
pub(crate) fn read(column_type: ColumnType, bytes: &[u8]) -> Result<ValueRef<'_>, ValueError> {
    let value = match column_type {
        ColumnType::Int(width) => ValueRef::Int(unbias(get(bytes), width.bits())),
        ColumnType::Float => ValueRef::Float(f32::from_bits(get(bytes) as u32)),
        ColumnType::Double => ValueRef::Double(f64::from_bits(get(bytes))),
        ColumnType::Decimal(_) => ValueRef::Decimal(bytes),
        ColumnType::Date => ValueRef::Temporal(get(bytes) as i64),
        ColumnType::Time { .. } | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
            ValueRef::Temporal(read_seconds(column_type, bytes)?)
        }
        ColumnType::Year => match get(bytes) {
            0 => ValueRef::UInt(0),
            years => ValueRef::UInt(years + YEAR_BIAS),
        },
        _ => ValueRef::UInt(get(bytes)),
    };
    Ok(value)
}

fn write_unsigned(column_type: ColumnType, number: u64, out: &mut [u8]) -> Result<(), ValueError> {
    let out_of_range = ValueError::OutOfRange(column_type);
    let (word, limit) = match column_type {
        ColumnType::UInt(_) => (number, u64::MAX),
        ColumnType::Bit { bits } | ColumnType::Set { members: bits } => {
            (number, u64::MAX.checked_shr(64_u32.saturating_sub(bits.into())).unwrap_or(0))
        }
        ColumnType::Enum { members } => (number, members.into()),
        ColumnType::Year if number == 0 => (0, 0),
        ColumnType::Year if number > YEAR_BIAS => (number - YEAR_BIAS, 255),
        ColumnType::Year => return Err(out_of_range),
        _ => return Err(ValueError::Mismatch(column_type)),
    };
    if word > limit {
        return Err(out_of_range);
    }
    put(word, out).ok_or(out_of_range)
}

fn write_temporal(column_type: ColumnType, packed: i64, out: &mut [u8]) -> Result<(), ValueError> {
    let (seconds, microseconds) = match column_type {
        ColumnType::Date => (packed, 0),
        ColumnType::Time { .. } => {
            let (seconds, microseconds) = split_microseconds(packed);
            (seconds + TIME_BIAS_SECONDS, microseconds)
        }
        ColumnType::Timestamp { .. } => split_microseconds(packed),
        ColumnType::DateTime { .. } => {
            let microseconds = packed & ((1 << DATETIME_MICROSECOND_BITS) - 1);
            (packed >> DATETIME_MICROSECOND_BITS, microseconds)
        }
        _ => return Err(ValueError::Mismatch(column_type)),
    };
    let out_of_range = ValueError::OutOfRange(column_type);
    let unit_us = FRACTION_UNIT_US[fraction_length(column_type)];
    if microseconds % unit_us != 0 || microseconds >= MICROSECONDS_PER_SECOND {
        return Err(out_of_range);
    }
    let (whole, fraction) = out.split_at_mut(out.len() - fraction_length(column_type));
    put(u64::try_from(seconds).map_err(|_| out_of_range)?, whole).ok_or(out_of_range)?;
    put((microseconds / unit_us) as u64, fraction).ok_or(out_of_range)
}

fn read_seconds(column_type: ColumnType, bytes: &[u8]) -> Result<i64, ValueError> {
    let length = fraction_length(column_type);
    let (whole, fraction) = bytes.split_at(bytes.len().saturating_sub(length));
    let seconds = get(whole) as i64;
    let microseconds = get(fraction) as i64 * FRACTION_UNIT_US[length];
    if microseconds >= MICROSECONDS_PER_SECOND {
        return Err(ValueError::Corrupt(column_type));
    }
    Ok(match column_type {
        ColumnType::DateTime { .. } => seconds << DATETIME_MICROSECOND_BITS | microseconds,
        ColumnType::Time { .. } => {
            (seconds - TIME_BIAS_SECONDS) * MICROSECONDS_PER_SECOND + microseconds
        }
        _ => seconds * MICROSECONDS_PER_SECOND + microseconds,
    })
}

/// Bytes of the fraction of a second; a type that has passed `check` has at most three.
fn fraction_length(column_type: ColumnType) -> usize {
    match column_type {
        ColumnType::Time { fsp } | ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            fraction_bytes(fsp).min(FRACTION_UNIT_US.len() - 1)
        }
        _ => 0,
    }
}

fn split_microseconds(packed: i64) -> (i64, i64) {
    (packed.div_euclid(MICROSECONDS_PER_SECOND), packed.rem_euclid(MICROSECONDS_PER_SECOND))
}

/// Adds half the range. A number outside it ends up with bits above `bits` set.
#[inline]
fn bias(number: i64, bits: u32) -> u64 {
    (number as u64).wrapping_add(1 << (bits - 1))
}

#[inline]
fn unbias(word: u64, bits: u32) -> i64 {
    word.wrapping_sub(1 << (bits - 1)) as i64
}

/// Writes `word` big endian into all of `out`, at most eight bytes; `None` when it does not fit.
#[inline]
pub(crate) fn put(word: u64, out: &mut [u8]) -> Option<()> {
    match out.len() {
        4 => out.copy_from_slice(&u32::try_from(word).ok()?.to_be_bytes()),
        8 => out.copy_from_slice(&word.to_be_bytes()),
        length => {
            if word.checked_shr(length as u32 * 8).unwrap_or(0) != 0 {
                return None;
            }
            let bytes = word.to_be_bytes();
            out.copy_from_slice(bytes.get(bytes.len().checked_sub(length)?..)?);
        }
    }
    Some(())
}

/// Reads a big-endian number of at most eight bytes.
#[inline]
pub(crate) fn get(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}
