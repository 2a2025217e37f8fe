//! A value at run time. Its meaning follows from the static [`SqlType`](super::SqlType) of the
//! expression that returned it; the datum holds only what differs from row to row.
//!
//! ```text
//!   TypeKind                                  Datum
//!   Integer (signed)                          Int
//!   Integer (unsigned), Bit, Year, Enum, Set  UInt
//!   Float, Double                             Double     a FLOAT holds a number that an f32 holds
//!   Decimal                                   Decimal
//!   Char, Varchar, Text                       Text       always UTF-8, whatever the type's charset
//!   Binary, Varbinary, Blob, Geometry         Text       any bytes
//!   Date / Time                               Date / Time      packed by `firn_format::value`
//!   DateTime, Timestamp                       DateTime         packed; in the session's time zone
//!   Json                                      Json
//!   any nullable                              Null
//! ```

use std::sync::Arc;

use firn_format::value;

use super::byte_string::ByteString;
use super::decimal::Decimal;
use super::json::JsonValue;
use super::number_text::double_to_text;

/// A value at run time.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Datum {
    #[default]
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, a bit field, a year, an enum's ordinal or a set's bits.
    UInt(u64),
    /// A float or double. Never NaN or infinite.
    Double(f64),
    /// An exact number.
    Decimal(Decimal),
    /// Text in UTF-8, or the bytes of a binary type.
    Text(ByteString),
    /// A date, packed as [`value::Date`] says.
    Date(i64),
    /// A time, packed as [`value::Time`] says.
    Time(i64),
    /// A date with a time, packed as [`value::DateTime`] says.
    DateTime(i64),
    Json(Arc<JsonValue>),
}

// Rows are arrays of these.
const _: () = assert!(size_of::<Datum>() <= 40);

impl Datum {
    /// MySQL's TRUE.
    pub const TRUE: Datum = Datum::Int(1);
    /// MySQL's FALSE.
    pub const FALSE: Datum = Datum::Int(0);

    /// 1, 0 or NULL.
    #[must_use]
    pub fn from_bool(truth: impl Into<Option<bool>>) -> Datum {
        truth.into().map_or(Datum::Null, |truth| Datum::Int(i64::from(truth)))
    }

    /// Text or bytes.
    #[must_use]
    pub fn text(bytes: impl Into<ByteString>) -> Datum {
        Datum::Text(bytes.into())
    }

    /// A copy. Requests memory for a long text that is not shared.
    ///
    /// # Errors
    /// 1041 if there is none.
    #[inline]
    pub fn try_clone(&self) -> crate::error::Result<Datum> {
        let _promise = match self {
            Datum::Text(octets) if octets.shared().is_none() => {
                Some(firn_base::memory::ask(octets.len())?)
            }
            _ => None,
        };
        Ok(self.clone())
    }

    /// Text or bytes, copied. Requests memory for long ones.
    ///
    /// # Errors
    /// 1041 if there is none.
    pub fn try_text(bytes: &[u8]) -> crate::error::Result<Datum> {
        let _promise = firn_base::memory::ask(bytes.len())?;
        Ok(Datum::text(bytes))
    }

    /// The value for a message: without its type, and therefore without fractional seconds.
    #[must_use]
    pub fn plain_text(&self) -> String {
        use super::temporal::format;
        match self {
            Datum::Null => "NULL".to_owned(),
            Datum::Int(number) => number.to_string(),
            Datum::UInt(number) => number.to_string(),
            Datum::Double(number) => double_to_text(*number).to_str_lossy().into_owned(),
            Datum::Decimal(number) => number.to_string(),
            Datum::Text(octets) => octets.to_str_lossy().into_owned(),
            Datum::Date(packed) => format::date_text(value::Date::unpack(*packed)),
            Datum::Time(packed) => format::time_text(value::Time::unpack(*packed), 0),
            Datum::DateTime(packed) => format::date_time_text(value::DateTime::unpack(*packed), 0),
            Datum::Json(json) => json.to_text(),
        }
    }

    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    /// The bytes of text or of a binary string.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Datum::Text(octets) => Some(octets),
            _ => None,
        }
    }
}

impl From<value::Date> for Datum {
    fn from(date: value::Date) -> Datum {
        Datum::Date(date.pack())
    }
}

impl From<value::Time> for Datum {
    fn from(time: value::Time) -> Datum {
        Datum::Time(time.pack())
    }
}

impl From<value::DateTime> for Datum {
    fn from(date_time: value::DateTime) -> Datum {
        Datum::DateTime(date_time.pack())
    }
}

impl From<Decimal> for Datum {
    fn from(decimal: Decimal) -> Datum {
        Datum::Decimal(decimal)
    }
}

impl From<JsonValue> for Datum {
    fn from(json: JsonValue) -> Datum {
        Datum::Json(Arc::new(json))
    }
}
