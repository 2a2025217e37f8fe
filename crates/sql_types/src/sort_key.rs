//! Sort keys of values: bytes that compare as the values do, for `ORDER BY`, `GROUP BY`, `DISTINCT`
//! and hash joins. Keys of several columns are concatenated.
//!
//! ```text
//!   00            NULL                     01 ‖ …    any other value
//!   integers      8 bytes, signed ones with the sign bit flipped
//!   Double        8 bytes: the IEEE bits, ordered
//!   Decimal       see Decimal::write_sort_key
//!   texts, bytes  the collation's key, 00 written as 00 FF, ended by 00 00
//!   dates, times  8 bytes of the packed form
//!   JSON          a byte for the kind, then as above
//! ```
//!
//! A descending column has every bit inverted. Invariants: two values of one type have equal keys
//! if and only if they compare as equal; no key is a prefix of another. These keys are never
//! stored.

use firn_sql_collation as collation;

use super::compare::own_kind;
use super::datum::Datum;
use super::decimal::Decimal;
use super::json::JsonValue;
use super::sql_type::SqlType;
use super::{ComparisonKind, compare};

const NULL: u8 = 0;
const NOT_NULL: u8 = 1;
const SIGN: u64 = 1 << 63;

/// Appends the key of a value of a type.
pub fn write_sort_key(datum: &Datum, ty: &SqlType, descending: bool, out: &mut Vec<u8>) {
    write_key_as(datum, own_kind(ty), ty.kind.is_unsigned(), descending, out);
}

/// Appends the key of a value that is compared with values of other types as `kind`; it has been
/// cast to the kind's operand type.
pub fn write_comparison_key(datum: &Datum, kind: ComparisonKind, out: &mut Vec<u8>) {
    match (kind, datum) {
        (ComparisonKind::Integer, Datum::Int(number)) => write_integer((*number).into(), out),
        (ComparisonKind::Integer, Datum::UInt(number)) => write_integer((*number).into(), out),
        _ => write_key_as(datum, kind, false, false, out),
    }
}

/// Signed and unsigned integers are compared with each other, so negative numbers have a separate
/// mark.
fn write_integer(number: i128, out: &mut Vec<u8>) {
    out.push(if number < 0 { NOT_NULL } else { NOT_NULL + 1 });
    out.extend_from_slice(&(number as u64).to_be_bytes());
}

fn write_key_as(
    datum: &Datum,
    kind: ComparisonKind,
    unsigned: bool,
    descending: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if datum.is_null() {
        out.push(NULL);
    } else {
        out.push(NOT_NULL);
        write_value(datum, kind, unsigned, out);
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

fn write_value(datum: &Datum, kind: ComparisonKind, unsigned: bool, out: &mut Vec<u8>) {
    match kind {
        ComparisonKind::Integer => {
            let word = match datum {
                Datum::Int(number) if unsigned => (*number).max(0) as u64,
                Datum::Int(number) => *number as u64 ^ SIGN,
                Datum::UInt(number) if unsigned => *number,
                Datum::UInt(number) => *number ^ SIGN,
                _ => 0,
            };
            out.extend_from_slice(&word.to_be_bytes());
        }
        ComparisonKind::Decimal => compare::decimal_of(datum).write_sort_key(out),
        ComparisonKind::Double => write_double(compare::double_of(datum), out),
        ComparisonKind::Text(collation) => {
            let start = out.len();
            let text = datum.as_bytes().unwrap_or_default();
            collation::get(collation).write_sort_key(text, out);
            finish_text(out, start);
        }
        ComparisonKind::DateTime => write_signed(compare::date_time_of(datum), out),
        ComparisonKind::Time => {
            let packed = if let Datum::Time(packed) = datum { *packed } else { 0 };
            write_signed(packed, out);
        }
        ComparisonKind::Json => write_json(&compare::json_of(datum), out),
    }
}

fn write_signed(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u64 ^ SIGN).to_be_bytes());
}

fn write_double(number: f64, out: &mut Vec<u8>) {
    let bits = (number + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    out.extend_from_slice(&ordered.to_be_bytes());
}

/// Escapes and terminates what is in `out` from `start` on.
fn finish_text(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&0) {
        let raw = out.split_off(start);
        for byte in raw {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(bytes);
    finish_text(out, start);
}

fn write_json(value: &JsonValue, out: &mut Vec<u8>) {
    out.push(value.rank());
    match value {
        JsonValue::Null => {}
        JsonValue::Bool(truth) => out.push((*truth).into()),
        JsonValue::String(text) => write_bytes(text.as_bytes(), out),
        JsonValue::Opaque { bytes, .. } => write_bytes(bytes, out),
        JsonValue::Date(packed) | JsonValue::Time(packed) | JsonValue::DateTime(packed) => {
            write_signed(*packed, out);
        }
        JsonValue::Array(items) => {
            for item in items {
                out.push(1);
                write_json(item, out);
            }
            out.push(0);
        }
        JsonValue::Object(object) => {
            out.extend_from_slice(&(object.len() as u32).to_be_bytes());
            object.keys().for_each(|key| write_bytes(key.as_bytes(), out));
            object.values().for_each(|value| write_json(value, out));
        }
        number => {
            let (approximate, exact): (f64, Decimal) = number.as_number();
            write_double(approximate, out);
            exact.write_sort_key(out);
        }
    }
}
