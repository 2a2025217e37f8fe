//! JSON documents as values: parsed, printed and compared as in MySQL.
//!
//! ```text
//!   '{"bb": 1, "a": [1.0, null]}'  ──parse──►  Object {a: Array [Double 1, Null], bb: Int 1}
//!                                  ──print──►  {"a": [1.0, null], "bb": 1}
//! ```
//!
//! A document is stored as its printed text, so exact numbers and dates that SQL put into it come
//! back as doubles and strings.

mod compare;
mod object;
mod parse;
mod print;
mod storage_size;
#[cfg(test)]
pub(crate) mod tests;

pub use object::JsonObject;
pub use parse::{JsonError, MAX_DEPTH};
pub use print::write_quoted;

use super::decimal::Decimal;

/// A document or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonValue {
    Null,
    /// `true` or `false`
    Bool(bool),
    Int(i64),
    /// A whole number above the largest `i64`, or one made from an unsigned SQL value.
    UInt(u64),
    /// A number with a point or an exponent.
    Double(f64),
    /// An exact SQL number.
    Decimal(Decimal),
    String(Box<str>),
    /// A SQL date, packed.
    Date(i64),
    /// A SQL time, packed.
    Time(i64),
    /// A SQL datetime or timestamp, packed.
    DateTime(i64),
    /// Bytes of a binary SQL value.
    Opaque {
        /// The type byte of MySQL's protocol.
        type_code: u8,
        bytes: Box<[u8]>,
    },
    /// `[…]`
    Array(Vec<JsonValue>),
    /// `{…}`
    Object(JsonObject),
}

impl JsonValue {
    /// The result of `JSON_TYPE()`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            JsonValue::Null => "NULL",
            JsonValue::Bool(_) => "BOOLEAN",
            JsonValue::Int(_) => "INTEGER",
            JsonValue::UInt(_) => "UNSIGNED INTEGER",
            JsonValue::Double(_) => "DOUBLE",
            JsonValue::Decimal(_) => "DECIMAL",
            JsonValue::String(_) => "STRING",
            JsonValue::Date(_) => "DATE",
            JsonValue::Time(_) => "TIME",
            JsonValue::DateTime(_) => "DATETIME",
            JsonValue::Opaque { type_code: 16, .. } => "BIT",
            JsonValue::Opaque { type_code: 249..=252, .. } => "BLOB",
            JsonValue::Opaque { .. } => "OPAQUE",
            JsonValue::Array(_) => "ARRAY",
            JsonValue::Object(_) => "OBJECT",
        }
    }

    #[must_use]
    pub fn string(text: impl Into<Box<str>>) -> JsonValue {
        JsonValue::String(text.into())
    }

    /// The depth; a value without nested values has depth 1.
    #[must_use]
    pub fn depth(&self) -> usize {
        let below = match self {
            JsonValue::Array(items) => items.iter().map(JsonValue::depth).max(),
            JsonValue::Object(object) => object.values().map(JsonValue::depth).max(),
            _ => None,
        };
        1 + below.unwrap_or(0)
    }
}
