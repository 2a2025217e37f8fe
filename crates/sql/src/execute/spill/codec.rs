//! Values as bytes, within the lifetime of a statement.
//!
//! ```text
//!   tag ‖ payload  1 Int 8 bytes, 2 UInt 8, 3 Double 8, 4 Decimal text, 5 Text, 6 Date 8,
//!                  7 Time 8, 8 DateTime 8, 9 JSON text; texts after a 4-byte length; 0 is NULL
//! ```

use std::sync::Arc;

use crate::types::{Datum, Decimal, JsonValue};

pub(super) fn write_values(values: &[Datum], out: &mut Vec<u8>) {
    for value in values {
        write_value(value, out);
    }
}

fn write_value(value: &Datum, out: &mut Vec<u8>) {
    let mut fixed = |tag: u8, bytes: [u8; 8]| {
        out.push(tag);
        out.extend_from_slice(&bytes);
    };
    match value {
        Datum::Null => out.push(0),
        Datum::Int(number) => fixed(1, number.to_le_bytes()),
        Datum::UInt(number) => fixed(2, number.to_le_bytes()),
        Datum::Double(number) => fixed(3, number.to_le_bytes()),
        Datum::Decimal(number) => write_bytes(4, number.to_string().as_bytes(), out),
        Datum::Text(octets) => write_bytes(5, octets, out),
        Datum::Date(packed) => fixed(6, packed.to_le_bytes()),
        Datum::Time(packed) => fixed(7, packed.to_le_bytes()),
        Datum::DateTime(packed) => fixed(8, packed.to_le_bytes()),
        Datum::Json(document) => write_bytes(9, document.to_text().as_bytes(), out),
    }
}

fn write_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Replaces `values` by what [`write_values`] wrote; `None` for other bytes.
pub(super) fn read_values(mut bytes: &[u8], values: &mut Vec<Datum>) -> Option<()> {
    values.clear();
    while let Some((&tag, rest)) = bytes.split_first() {
        bytes = rest;
        values.push(read_value(tag, &mut bytes)?);
    }
    Some(())
}

fn read_value(tag: u8, bytes: &mut &[u8]) -> Option<Datum> {
    Some(match tag {
        0 => Datum::Null,
        1 => Datum::Int(i64::from_le_bytes(read_fixed(bytes)?)),
        2 => Datum::UInt(u64::from_le_bytes(read_fixed(bytes)?)),
        3 => Datum::Double(f64::from_le_bytes(read_fixed(bytes)?)),
        4 => Datum::Decimal(Decimal::parse(std::str::from_utf8(read_bytes(bytes)?).ok()?)?),
        5 => Datum::text(read_bytes(bytes)?),
        6 => Datum::Date(i64::from_le_bytes(read_fixed(bytes)?)),
        7 => Datum::Time(i64::from_le_bytes(read_fixed(bytes)?)),
        8 => Datum::DateTime(i64::from_le_bytes(read_fixed(bytes)?)),
        9 => Datum::Json(Arc::new(
            JsonValue::parse(std::str::from_utf8(read_bytes(bytes)?).ok()?).ok()?,
        )),
        _ => return None,
    })
}

fn read_fixed<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (fixed, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*fixed)
}

fn read_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(read_fixed(bytes)?) as usize;
    let (text, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(text)
}
