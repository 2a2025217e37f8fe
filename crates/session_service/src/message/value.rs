//! Parameters and attributes of statements as bytes.

use firn_wire::{Attribute, Date, DateTime, Parameter, Time};
use serde::{Deserialize, Serialize};

use super::Bytes;

/// A [`Parameter`] as bytes. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Bytes),
    Text(Bytes),
    Bytes(Bytes),
    /// Year, month, day.
    Date(u16, u8, u8),
    /// Year, month, day, hour, minute, second, microsecond.
    DateTime(u16, u8, u8, u8, u8, u8, u32),
    /// Whether it is negative; hours, minute, second, microsecond.
    Time(bool, u32, u8, u8, u32),
}

/// A query attribute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedValue {
    pub name: Bytes,
    pub value: Value,
}

impl From<&Parameter<'_>> for Value {
    fn from(parameter: &Parameter<'_>) -> Value {
        match *parameter {
            Parameter::Null => Value::Null,
            Parameter::Int(number) => Value::Int(number),
            Parameter::UInt(number) => Value::UInt(number),
            Parameter::Float(number) => Value::Float(number),
            Parameter::Double(number) => Value::Double(number),
            Parameter::Decimal(text) => Value::Decimal(text.into()),
            Parameter::Text(text) => Value::Text(text.into()),
            Parameter::Bytes(bytes) => Value::Bytes(bytes.into()),
            Parameter::Date(Date { year, month, day }) => Value::Date(year, month, day),
            Parameter::DateTime(DateTime { date, hour, minute, second, microsecond }) => {
                let Date { year, month, day } = date;
                Value::DateTime(year, month, day, hour, minute, second, microsecond)
            }
            Parameter::Time(Time { negative, hours, minute, second, microsecond }) => {
                Value::Time(negative, hours, minute, second, microsecond)
            }
        }
    }
}

impl Value {
    /// The parameter, which borrows its bytes from here.
    #[must_use]
    pub fn parameter(&self) -> Parameter<'_> {
        match self {
            Value::Null => Parameter::Null,
            Value::Int(number) => Parameter::Int(*number),
            Value::UInt(number) => Parameter::UInt(*number),
            Value::Float(number) => Parameter::Float(*number),
            Value::Double(number) => Parameter::Double(*number),
            Value::Decimal(text) => Parameter::Decimal(text),
            Value::Text(text) => Parameter::Text(text),
            Value::Bytes(bytes) => Parameter::Bytes(bytes),
            &Value::Date(year, month, day) => Parameter::Date(Date { year, month, day }),
            &Value::DateTime(year, month, day, hour, minute, second, microsecond) => {
                let date = Date { year, month, day };
                Parameter::DateTime(DateTime { date, hour, minute, second, microsecond })
            }
            &Value::Time(negative, hours, minute, second, microsecond) => {
                Parameter::Time(Time { negative, hours, minute, second, microsecond })
            }
        }
    }
}

impl From<&Attribute<'_>> for NamedValue {
    fn from(attribute: &Attribute<'_>) -> NamedValue {
        NamedValue { name: attribute.name.into(), value: (&attribute.value).into() }
    }
}

impl NamedValue {
    /// The attribute, which borrows its bytes from here.
    #[must_use]
    pub fn attribute(&self) -> Attribute<'_> {
        Attribute { name: &self.name, value: self.value.parameter() }
    }
}
