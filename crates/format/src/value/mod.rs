//! Column values as the storage engine sees them: typed enough to be stored, compared and cut out
//! of a row, without SQL meaning beyond their order.
//!
//! [`ValueRef`] borrows, so that reading a column of a row needs no allocation; [`Value`] owns.
//! Both are used together with the column's [`ColumnType`], which gives the stored width and the
//! meaning of a packed number:
//!
//! ```text
//!   ColumnType                          ValueRef
//!   Int (1,2,3,4,8 bytes)               Int(i64)
//!   UInt, Bit, Year, Enum, Set          UInt(u64)     Enum: ordinal from 1, Set: bit per member
//!   Float / Double                      Float(f32) / Double(f64)
//!   Decimal(p, s)                       Decimal(&[u8])   comparable form, see `decimal`
//!   Date, Time, DateTime, Timestamp     Temporal(i64)    packed, see `temporal`
//!   Char … Json, Geometry               Bytes(&[u8])
//!   any                                 Null
//! ```
//!
//! Invariant: for every fixed-width type except the two floats, the stored bytes of a value compare
//! as the values do (`fixed`), so that the row and the key share one form.

mod column_type;
pub(crate) mod decimal;
pub(crate) mod fixed;
mod temporal;
#[cfg(test)]
mod tests;

pub use column_type::{CollationId, ColumnType, IntWidth};
pub use decimal::DecimalType;
pub use temporal::{Date, DateTime, Time};

/// A value that borrows its bytes. Cheap to copy.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum ValueRef<'a> {
    Null,
    Int(i64),
    /// An unsigned integer, a bit field, a year, an enum's ordinal or a set's bits.
    UInt(u64),
    Float(f32),
    Double(f64),
    /// A decimal in the comparable form of its column's [`DecimalType`].
    Decimal(&'a [u8]),
    /// A date, time, datetime or timestamp, packed as [`Date`], [`Time`] and [`DateTime`] say. A
    /// timestamp is microseconds since 1970-01-01 UTC.
    Temporal(i64),
    /// Text in the column's character set, or binary.
    Bytes(&'a [u8]),
}

/// A value that owns its bytes.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Box<[u8]>),
    Temporal(i64),
    Bytes(Box<[u8]>),
}

impl ValueRef<'_> {
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, ValueRef::Null)
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        match *self {
            ValueRef::Null => Value::Null,
            ValueRef::Int(number) => Value::Int(number),
            ValueRef::UInt(number) => Value::UInt(number),
            ValueRef::Float(number) => Value::Float(number),
            ValueRef::Double(number) => Value::Double(number),
            ValueRef::Decimal(bytes) => Value::Decimal(bytes.into()),
            ValueRef::Temporal(packed) => Value::Temporal(packed),
            ValueRef::Bytes(bytes) => Value::Bytes(bytes.into()),
        }
    }
}

impl Value {
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Int(number) => ValueRef::Int(*number),
            Value::UInt(number) => ValueRef::UInt(*number),
            Value::Float(number) => ValueRef::Float(*number),
            Value::Double(number) => ValueRef::Double(*number),
            Value::Decimal(bytes) => ValueRef::Decimal(bytes),
            Value::Temporal(packed) => ValueRef::Temporal(*packed),
            Value::Bytes(bytes) => ValueRef::Bytes(bytes),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> ValueRef<'a> {
        value.as_ref()
    }
}

/// Why a value, or stored bytes, do not fit their column. The first two errors are the caller's
/// fault, the third is damage of stored bytes, the fourth an impossible definition, and the last
/// lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The value is of a kind that the column does not hold.
    #[error("the value's kind differs from the column's type {0:?}")]
    Mismatch(ColumnType),
    /// The value is outside what the column's type can store.
    #[error("the value is out of range for a column of type {0:?}")]
    OutOfRange(ColumnType),
    /// The stored bytes are not a value of the column's type.
    #[error("the stored bytes are not a value of type {0:?}")]
    Corrupt(ColumnType),
    /// The type itself is impossible, such as a bit field of 65 bits.
    #[error("the column type {0:?} is impossible")]
    InvalidType(ColumnType),
    /// The memory budget has no room for the converted value.
    #[error(transparent)]
    NoMemory(#[from] firn_base::memory::NoRoom),
}
