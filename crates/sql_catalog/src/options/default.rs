//! Column defaults as bytes: one field, whose tag says which kind.

use std::sync::Arc;

use firn_sql_types::error::Result;
use firn_sql_types::{Datum, Decimal, JsonValue};

use super::super::properties::DefaultValue;
use super::codec::{Body, Reader, Writer, damaged, each_field};

const NULL: u8 = 1;
const LITERAL: u8 = 2;
const EXPRESSION: u8 = 3;
const CURRENT_TIMESTAMP: u8 = 4;

/// A default as the bytes of a column's definition.
#[must_use]
pub fn encode_default(default: &DefaultValue) -> Option<Vec<u8>> {
    let mut writer = Writer::new();
    match default {
        DefaultValue::None => return None,
        DefaultValue::Null => writer.field(NULL, |_| {}),
        DefaultValue::Literal(datum) => writer.field(LITERAL, |body| write_datum(body, datum)),
        DefaultValue::Expression(text) => {
            writer.field(EXPRESSION, |body| body.rest(text.as_bytes()));
        }
        DefaultValue::CurrentTimestamp { fsp } => {
            writer.field(CURRENT_TIMESTAMP, |body| body.u8(*fsp));
        }
    }
    Some(writer.finish())
}

/// Reads what [`encode_default`] wrote. The bytes are untrusted.
///
/// # Errors
/// 1712 for bytes that are not a default.
pub fn decode_default(bytes: Option<&[u8]>) -> Result<DefaultValue> {
    let Some(bytes) = bytes else { return Ok(DefaultValue::None) };
    let mut default = DefaultValue::None;
    each_field(bytes, |tag, body| {
        default = match tag {
            NULL => DefaultValue::Null,
            LITERAL => DefaultValue::Literal(read_datum(body)?),
            EXPRESSION => DefaultValue::Expression(body.rest_text()?.into()),
            CURRENT_TIMESTAMP => DefaultValue::CurrentTimestamp { fsp: body.u8()? },
            _ => return Err(damaged("kind of default")),
        };
        Ok(())
    })?;
    Ok(default)
}

pub(crate) fn write_datum(body: &mut Body, datum: &Datum) {
    match datum {
        Datum::Null => body.u8(0),
        Datum::Int(number) => tagged(body, 1, *number as u64),
        Datum::UInt(number) => tagged(body, 2, *number),
        Datum::Double(number) => tagged(body, 3, number.to_bits()),
        Datum::Decimal(decimal) => bytes(body, 4, decimal.to_string().as_bytes()),
        Datum::Text(text) => bytes(body, 5, text),
        Datum::Date(packed) => tagged(body, 6, *packed as u64),
        Datum::Time(packed) => tagged(body, 7, *packed as u64),
        Datum::DateTime(packed) => tagged(body, 8, *packed as u64),
        Datum::Json(json) => bytes(body, 9, json.to_text().as_bytes()),
    }
}

fn tagged(body: &mut Body, tag: u8, number: u64) {
    body.u8(tag);
    body.u64(number);
}

fn bytes(body: &mut Body, tag: u8, bytes: &[u8]) {
    body.u8(tag);
    body.bytes(bytes);
}

pub(crate) fn read_datum(body: &mut Reader<'_>) -> Result<Datum> {
    Ok(match body.u8()? {
        0 => Datum::Null,
        1 => Datum::Int(body.u64()? as i64),
        2 => Datum::UInt(body.u64()?),
        3 => Datum::Double(f64::from_bits(body.u64()?)),
        4 => {
            Datum::Decimal(Decimal::parse(body.text()?).ok_or_else(|| damaged("decimal default"))?)
        }
        5 => Datum::text(body.bytes()?),
        6 => Datum::Date(body.u64()? as i64),
        7 => Datum::Time(body.u64()? as i64),
        8 => Datum::DateTime(body.u64()? as i64),
        9 => {
            let json = JsonValue::parse(body.text()?).map_err(|_| damaged("JSON default"))?;
            Datum::Json(Arc::new(json))
        }
        _ => return Err(damaged("kind of value")),
    })
}
