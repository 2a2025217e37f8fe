//! The length of a document in MySQL's binary form: the result of `JSON_STORAGE_SIZE()`.
//!
//! ```text
//!   document   type:1  value
//!   array      count  size  (type:1 offset)×n             values
//!   object     count  size  (key offset, key length:2)×n  (type:1 offset)×n  keys  values
//!   string     length:1..5  bytes
//!   opaque     SQL type:1  length:1..5  bytes               decimals, dates, times, bytes
//! ```
//!
//! Counts, sizes and offsets take two bytes, or four if a value is too long for that. Literals and
//! numbers that fit are stored in place of their offset.

use super::JsonValue;
use crate::decimal::Decimal;

/// The two forms of arrays and objects.
#[derive(Clone, Copy)]
enum Form {
    Small,
    Large,
}

impl Form {
    const fn offset_bytes(self) -> usize {
        match self {
            Form::Small => 2,
            Form::Large => 4,
        }
    }

    /// The largest count, size or offset of the small form.
    const MOST_OF_SMALL: usize = u16::MAX as usize;
}

const TYPE_BYTES: usize = 1;
const KEY_LENGTH_BYTES: usize = 2;
/// A precision and a scale.
const DECIMAL_HEAD_BYTES: usize = 2;
const PACKED_TIME_BYTES: usize = 8;

impl JsonValue {
    /// Bytes of the document in MySQL's binary form.
    #[must_use]
    pub fn storage_size_bytes(&self) -> usize {
        TYPE_BYTES + value_bytes(self)
    }
}

fn value_bytes(value: &JsonValue) -> usize {
    match value {
        JsonValue::Null | JsonValue::Bool(_) => 1,
        JsonValue::Int(number) => match number {
            -0x8000..=0x7fff => 2,
            -0x8000_0000..=0x7fff_ffff => 4,
            _ => 8,
        },
        JsonValue::UInt(number) => match number {
            0..=0xffff => 2,
            0..=0xffff_ffff => 4,
            _ => 8,
        },
        JsonValue::Double(_) => 8,
        JsonValue::String(text) => with_length_bytes(text.len()),
        JsonValue::Decimal(number) => opaque_bytes(DECIMAL_HEAD_BYTES + decimal_bytes(number)),
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) => {
            opaque_bytes(PACKED_TIME_BYTES)
        }
        JsonValue::Opaque { bytes, .. } => opaque_bytes(bytes.len()),
        JsonValue::Array(items) => container_bytes(&[], items.iter()),
        JsonValue::Object(object) => {
            let keys: Vec<usize> = object.keys().map(str::len).collect();
            container_bytes(&keys, object.values())
        }
    }
}

/// An array or object, in the small form if it fits. Each value is measured once, however deep it
/// is.
fn container_bytes<'v>(keys: &[usize], values: impl Iterator<Item = &'v JsonValue>) -> usize {
    let values: Vec<(bool, usize)> =
        values.map(|value| (can_be_inlined(value), value_bytes(value))).collect();
    let in_form = |form: Form| {
        let offset = form.offset_bytes();
        let keys: usize = keys.iter().map(|key| offset + KEY_LENGTH_BYTES + key).sum();
        let entries = values.len() * (TYPE_BYTES + offset);
        let apart = values.iter().filter(|(inlined, bytes)| !inlined || *bytes > offset);
        2 * offset + keys + entries + apart.map(|(_, bytes)| bytes).sum::<usize>()
    };
    let small = in_form(Form::Small);
    if small <= Form::MOST_OF_SMALL { small } else { in_form(Form::Large) }
}

/// Whether a value is stored in place of its offset, if it is not longer.
fn can_be_inlined(value: &JsonValue) -> bool {
    matches!(value, JsonValue::Null | JsonValue::Bool(_) | JsonValue::Int(_) | JsonValue::UInt(_))
}

/// A length in groups of seven bits, followed by that many bytes.
fn with_length_bytes(length_bytes: usize) -> usize {
    let bits = usize::BITS - length_bytes.leading_zeros();
    bits.div_ceil(7).max(1) as usize + length_bytes
}

fn opaque_bytes(length_bytes: usize) -> usize {
    TYPE_BYTES + with_length_bytes(length_bytes)
}

/// Nine digits take four bytes, on each side of the point.
fn decimal_bytes(number: &Decimal) -> usize {
    const REST_BYTES: [usize; 9] = [0, 1, 1, 2, 2, 3, 3, 4, 4];
    let of = |digits: u8| usize::from(digits / 9) * 4 + REST_BYTES[usize::from(digits % 9)];
    of(number.integer_digits().max(1)) + of(number.scale())
}
