//! Values and types in the storage engine's form.
//!
//! ```text
//!   SqlType             ColumnType               stored value
//!   TIMESTAMP           Timestamp                µs since 1970 UTC; the session's zone at run time
//!   CHAR … TEXT         Char … Text              UTF-8, whatever the character set
//!   CHAR … of `binary`  Binary, Varbinary, Blob  bytes
//!   ENUM, SET           Enum, Set (a count)      members' names are in the definition's options
//!   JSON                Json                     the document's text
//! ```

use std::sync::Arc;

use firn_format::value::{
    CollationId, ColumnType, Date, DateTime, DecimalType, Time, Value, ValueError, ValueRef,
};

use super::byte_string::ByteString;
use super::calendar;
use super::datum::Datum;
use super::decimal::{Decimal, Rounding};
use super::json::{JsonError, JsonValue};
use super::sql_type::{Coercibility, Members, SqlType, TypeKind};
use super::temporal::round::fraction_unit_us;
use super::time_zone::TimeZone;

impl TypeKind {
    /// The stored type; `None` for the type of NULL, which no column has.
    #[must_use]
    pub fn column_type(&self) -> Option<ColumnType> {
        Some(match self {
            TypeKind::Null => return None,
            TypeKind::Integer { width, unsigned: false } => ColumnType::Int(*width),
            TypeKind::Integer { width, unsigned: true } => ColumnType::UInt(*width),
            TypeKind::Bit { bits } => ColumnType::Bit { bits: *bits },
            TypeKind::Year => ColumnType::Year,
            TypeKind::Decimal { precision, scale, .. } => {
                ColumnType::Decimal(DecimalType::new(*precision, *scale)?)
            }
            TypeKind::Float => ColumnType::Float,
            TypeKind::Double => ColumnType::Double,
            TypeKind::Char { max_chars, collation: CollationId::BINARY } => {
                ColumnType::Binary { max_bytes: *max_chars }
            }
            TypeKind::Varchar { max_chars, collation: CollationId::BINARY } => {
                ColumnType::Varbinary { max_bytes: *max_chars }
            }
            TypeKind::Text { max_bytes, collation: CollationId::BINARY } => {
                ColumnType::Blob { max_bytes: *max_bytes }
            }
            TypeKind::Char { max_chars, collation } => {
                ColumnType::Char { max_chars: *max_chars, collation: *collation }
            }
            TypeKind::Varchar { max_chars, collation } => {
                ColumnType::Varchar { max_chars: *max_chars, collation: *collation }
            }
            TypeKind::Text { max_bytes, collation } => {
                ColumnType::Text { max_bytes: *max_bytes, collation: *collation }
            }
            TypeKind::Binary { max_bytes } => ColumnType::Binary { max_bytes: *max_bytes },
            TypeKind::Varbinary { max_bytes } => ColumnType::Varbinary { max_bytes: *max_bytes },
            TypeKind::Blob { max_bytes } => ColumnType::Blob { max_bytes: *max_bytes },
            TypeKind::Date => ColumnType::Date,
            TypeKind::Time { fsp } => ColumnType::Time { fsp: *fsp },
            TypeKind::DateTime { fsp } => ColumnType::DateTime { fsp: *fsp },
            TypeKind::Timestamp { fsp } => ColumnType::Timestamp { fsp: *fsp },
            TypeKind::Enum { members, .. } => {
                ColumnType::Enum { members: members.names().len().try_into().ok()? }
            }
            TypeKind::Set { members, .. } => {
                ColumnType::Set { members: members.names().len().try_into().ok()? }
            }
            TypeKind::Json => ColumnType::Json,
            TypeKind::Geometry => ColumnType::Geometry,
        })
    }

    /// The type of a stored column. The caller supplies what storage does not know: the members of
    /// an enum or set with their collation, and whether a decimal is unsigned.
    #[must_use]
    pub fn from_column_type(
        column_type: ColumnType,
        members: Option<(Arc<Members>, CollationId)>,
        unsigned_decimal: bool,
    ) -> TypeKind {
        let named = || members.unwrap_or((Arc::default(), CollationId::BINARY));
        match column_type {
            ColumnType::Int(width) => TypeKind::Integer { width, unsigned: false },
            ColumnType::UInt(width) => TypeKind::Integer { width, unsigned: true },
            ColumnType::Decimal(digits) => TypeKind::Decimal {
                precision: digits.precision(),
                scale: digits.scale(),
                unsigned: unsigned_decimal,
            },
            ColumnType::Float => TypeKind::Float,
            ColumnType::Double => TypeKind::Double,
            ColumnType::Bit { bits } => TypeKind::Bit { bits },
            ColumnType::Char { max_chars, collation } => TypeKind::Char { max_chars, collation },
            ColumnType::Varchar { max_chars, collation } => {
                TypeKind::Varchar { max_chars, collation }
            }
            ColumnType::Text { max_bytes, collation } => TypeKind::Text { max_bytes, collation },
            ColumnType::Binary { max_bytes } => TypeKind::Binary { max_bytes },
            ColumnType::Varbinary { max_bytes } => TypeKind::Varbinary { max_bytes },
            ColumnType::Blob { max_bytes } => TypeKind::Blob { max_bytes },
            ColumnType::Date => TypeKind::Date,
            ColumnType::Time { fsp } => TypeKind::Time { fsp },
            ColumnType::DateTime { fsp } => TypeKind::DateTime { fsp },
            ColumnType::Timestamp { fsp } => TypeKind::Timestamp { fsp },
            ColumnType::Year => TypeKind::Year,
            ColumnType::Enum { .. } => {
                let (members, collation) = named();
                TypeKind::Enum { members, collation }
            }
            ColumnType::Set { .. } => {
                let (members, collation) = named();
                TypeKind::Set { members, collation }
            }
            ColumnType::Json => TypeKind::Json,
            ColumnType::Geometry => TypeKind::Geometry,
        }
    }
}

impl SqlType {
    /// The type of a column's values in an expression.
    #[must_use]
    pub fn of_column(kind: TypeKind, nullable: bool) -> SqlType {
        let ty = SqlType::new(kind).with_nullable(nullable);
        let is_named = ty.kind.is_string() || ty.kind.is_enum_or_set();
        if is_named { ty.with_coercibility(Coercibility::Implicit) } else { ty }
    }
}

impl Datum {
    /// The value of a column, read from a row.
    ///
    /// # Errors
    /// [`ValueError`] if the stored value does not match the type.
    pub fn from_value_ref(
        value: ValueRef<'_>,
        ty: &SqlType,
        time_zone: &TimeZone,
    ) -> Result<Datum, ValueError> {
        Ok(match (value, &ty.kind) {
            (ValueRef::Null, _) => Datum::Null,
            (ValueRef::Int(number), _) => Datum::Int(number),
            (ValueRef::UInt(number), _) => Datum::UInt(number),
            (ValueRef::Float(number), _) => Datum::Double(number.into()),
            (ValueRef::Double(number), _) => Datum::Double(number),
            (ValueRef::Decimal(encoded), TypeKind::Decimal { precision, scale, .. }) => {
                let digits = DecimalType::new(*precision, *scale).ok_or_else(|| mismatch(ty))?;
                Datum::Decimal(Decimal::from_stored(digits, encoded)?)
            }
            (ValueRef::Temporal(packed), TypeKind::Date) => Datum::Date(packed),
            (ValueRef::Temporal(packed), TypeKind::Time { .. }) => Datum::Time(packed),
            (ValueRef::Temporal(packed), TypeKind::DateTime { .. }) => Datum::DateTime(packed),
            (ValueRef::Temporal(0), TypeKind::Timestamp { .. }) => Datum::DateTime(0),
            (ValueRef::Temporal(timestamp_us), TypeKind::Timestamp { .. }) => {
                Datum::from(time_zone.to_local(timestamp_us).ok_or_else(|| mismatch(ty))?)
            }
            (ValueRef::Bytes(text), TypeKind::Json) => {
                let text = std::str::from_utf8(text).map_err(|_| mismatch(ty))?;
                Datum::from(JsonValue::parse(text).map_err(|error| match error {
                    JsonError::NoRoom(no_room) => no_room.into(),
                    _ => mismatch(ty),
                })?)
            }
            (ValueRef::Bytes(bytes), _) => Datum::Text(ByteString::from(bytes)),
            _ => return Err(mismatch(ty)),
        })
    }

    /// The value to store in a column. It was converted to the type by [`assign`](super::assign),
    /// or already has that type.
    ///
    /// # Errors
    /// [`ValueError`] if it does not fit the type.
    pub fn to_stored(&self, ty: &SqlType, time_zone: &TimeZone) -> Result<Value, ValueError> {
        self.with_stored(ty, time_zone, |value| value.to_value())
    }

    /// As [`Datum::to_stored`], but passes the stored value to `take` without copying texts.
    ///
    /// # Errors
    /// [`ValueError`] if it does not fit the type.
    pub fn with_stored<R>(
        &self,
        ty: &SqlType,
        time_zone: &TimeZone,
        take: impl FnOnce(ValueRef<'_>) -> R,
    ) -> Result<R, ValueError> {
        let value = match (self, &ty.kind) {
            (Datum::Null, _) => ValueRef::Null,
            (Datum::Int(number), TypeKind::Integer { unsigned: false, .. }) => {
                ValueRef::Int(*number)
            }
            (Datum::Int(number), kind) if kind.is_unsigned() => {
                ValueRef::UInt(u64::try_from(*number).map_err(|_| mismatch(ty))?)
            }
            (Datum::UInt(number), TypeKind::Integer { unsigned: false, .. }) => {
                ValueRef::Int(i64::try_from(*number).map_err(|_| mismatch(ty))?)
            }
            (Datum::UInt(number), _) => ValueRef::UInt(*number),
            (Datum::Double(number), TypeKind::Float) => ValueRef::Float(*number as f32),
            (Datum::Double(number), _) => ValueRef::Double(*number),
            (Datum::Decimal(number), TypeKind::Decimal { precision, scale, .. }) => {
                let digits = DecimalType::new(*precision, *scale).ok_or_else(|| mismatch(ty))?;
                let rounded = number.round((*scale).into(), Rounding::HalfUp);
                let encoded = rounded.and_then(|rounded| rounded.to_stored(digits));
                return Ok(take(ValueRef::Decimal(&encoded.ok_or_else(|| mismatch(ty))?)));
            }
            (Datum::Text(bytes), _) => ValueRef::Bytes(bytes),
            (Datum::Json(json), _) => {
                let text = json.to_text();
                return Ok(take(ValueRef::Bytes(text.as_bytes())));
            }
            _ => {
                ValueRef::Temporal(self.stored_temporal(ty, time_zone).ok_or_else(|| mismatch(ty))?)
            }
        };
        Ok(take(value))
    }

    fn stored_temporal(&self, ty: &SqlType, time_zone: &TimeZone) -> Option<i64> {
        let unit_us = fraction_unit_us(ty.kind.fsp());
        match (self, &ty.kind) {
            (Datum::Date(packed), TypeKind::Date) => Some(*packed),
            (Datum::Time(packed), TypeKind::Time { .. }) => Some(packed - packed % unit_us),
            (Datum::DateTime(packed), TypeKind::DateTime { .. }) => {
                let microseconds = i64::from(DateTime::unpack(*packed).microsecond);
                Some(packed - microseconds % unit_us)
            }
            (Datum::DateTime(0), TypeKind::Timestamp { .. }) => Some(0),
            (Datum::DateTime(packed), TypeKind::Timestamp { .. }) => {
                let timestamp_us = time_zone.to_timestamp_us(DateTime::unpack(*packed))?;
                Some(timestamp_us - timestamp_us.rem_euclid(unit_us))
            }
            _ => None,
        }
    }

    /// Microseconds since 1970 of a date or datetime, ignoring time zones; for statistics and
    /// histograms. `None` for other values and for dates that are not on the calendar.
    #[must_use]
    pub fn calendar_us(&self) -> Option<i64> {
        match self {
            Datum::Date(packed) => {
                let date = Date::unpack(*packed);
                calendar::unix_us(DateTime { date, ..DateTime::default() })
            }
            Datum::DateTime(packed) => calendar::unix_us(DateTime::unpack(*packed)),
            Datum::Time(packed) => Some(Time::unpack(*packed).pack()),
            _ => None,
        }
    }
}

fn mismatch(ty: &SqlType) -> ValueError {
    ValueError::Mismatch(ty.kind.column_type().unwrap_or(ColumnType::Json))
}
