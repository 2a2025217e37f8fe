//! Values that a client sends in binary: parameters of statements, and query attributes.

use crate::packet::{Malformed, PayloadReader};
use crate::value::{ColumnType, Date, DateTime, Parameter, Time};

/// A parameter's type as the client bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParameterType {
    column_type: ColumnType,
    unsigned: bool,
}

impl ParameterType {
    pub(super) fn decode(reader: &mut PayloadReader<'_>) -> Result<ParameterType, Malformed> {
        let column_type = ColumnType::from_code(reader.u8()?).ok_or(Malformed)?;
        Ok(ParameterType { column_type, unsigned: reader.u8()? & 0x80 != 0 })
    }

    /// A value other than `NULL`.
    pub(super) fn value<'a>(
        self,
        reader: &mut PayloadReader<'a>,
    ) -> Result<Parameter<'a>, Malformed> {
        use ColumnType::*;
        Ok(match self.column_type {
            Null => Parameter::Null,
            Tiny => self.integer(reader.u8()?.into(), 8),
            Short | Year => self.integer(reader.u16()?.into(), 16),
            Long | Int24 => self.integer(reader.u32()?.into(), 32),
            LongLong => self.integer(reader.u64()?, 64),
            Float => Parameter::Float(f32::from_bits(reader.u32()?)),
            Double => Parameter::Double(f64::from_bits(reader.u64()?)),
            Date => Parameter::Date(date_time(reader)?.date),
            DateTime | Timestamp => Parameter::DateTime(date_time(reader)?),
            Time => Parameter::Time(time(reader)?),
            _ => self.bytes(reader.length_encoded_bytes()?),
        })
    }

    /// The value of `width` bits, of which the highest is the sign.
    fn integer<'a>(self, bits: u64, width: u32) -> Parameter<'a> {
        if self.unsigned {
            return Parameter::UInt(bits);
        }
        let unused = 64 - width;
        Parameter::Int((bits << unused) as i64 >> unused)
    }

    /// A value that arrives as bytes, as long data always does.
    pub(super) fn bytes(self, bytes: &[u8]) -> Parameter<'_> {
        use ColumnType::*;
        match self.column_type {
            Decimal | NewDecimal => Parameter::Decimal(bytes),
            TinyBlob | Blob | MediumBlob | LongBlob | Bit | Geometry => Parameter::Bytes(bytes),
            _ => Parameter::Text(bytes),
        }
    }
}

fn date_time(reader: &mut PayloadReader<'_>) -> Result<DateTime, Malformed> {
    let length = reader.u8()?;
    let mut value = DateTime::default();
    if !matches!(length, 0 | 4 | 7 | 11) {
        return Err(Malformed);
    }
    if length >= 4 {
        value.date = Date { year: reader.u16()?, month: reader.u8()?, day: reader.u8()? };
    }
    if length >= 7 {
        (value.hour, value.minute, value.second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    }
    if length == 11 {
        value.microsecond = reader.u32()?;
    }
    Ok(value)
}

fn time(reader: &mut PayloadReader<'_>) -> Result<Time, Malformed> {
    let length = reader.u8()?;
    let mut value = Time::default();
    if !matches!(length, 0 | 8 | 12) {
        return Err(Malformed);
    }
    if length >= 8 {
        value.negative = reader.u8()? != 0;
        let days = reader.u32()?;
        let hours = u32::from(reader.u8()?);
        value.hours =
            days.checked_mul(24).and_then(|of_days| of_days.checked_add(hours)).ok_or(Malformed)?;
        (value.minute, value.second) = (reader.u8()?, reader.u8()?);
    }
    if length == 12 {
        value.microsecond = reader.u32()?;
    }
    Ok(value)
}
