//! The stored form of user variables' values, with their types.
//!
//! ```json
//! {"type": ["decimal", 5, 2, false], "nullable": true, "coercibility": 5, "value": ["decimal", "12.30"]}
//! ```
//!
//! Numbers are texts, since JSON numbers would lose digits; bytes that are not UTF-8 are `["bytes",
//! "C3FF"]`. The display of a constant's type is not kept: a value that was moved is shown by its
//! type.

use std::sync::Arc;

use firn_format::value::CollationId;
use firn_sql::types::hexadecimal::hexadecimal_digits;
use firn_sql::types::{
    Coercibility, Datum, Decimal, IntWidth, JsonValue, Members, SqlType, TypeKind,
};
use serde_json::{Value, json};

use super::{Fields, Read, missing};

pub(in crate::session) fn encode_value(value: &Datum, ty: &SqlType) -> Value {
    json!({
        "type": encode_kind(&ty.kind),
        "nullable": ty.nullable,
        "coercibility": ty.coercibility.code(),
        "value": encode_datum(value),
    })
}

pub(super) fn decode_value(value: &Value) -> Read<(Datum, SqlType)> {
    let fields = Fields(value.as_object().ok_or_else(|| missing("a user variable"))?);
    let parts = fields.list("type")?;
    let kind = decode_kind(parts).ok_or_else(|| missing("a user variable's type"))?;
    let code = u8::try_from(fields.unsigned("coercibility")?).ok();
    let coercibility = code.and_then(Coercibility::of_code);
    let mut ty = SqlType::new(kind);
    ty.coercibility = coercibility.ok_or_else(|| missing("a user variable's coercibility"))?;
    let nullable = fields.value("nullable")?.as_bool();
    ty.nullable = nullable.ok_or_else(|| missing("a user variable's nullability"))?;
    let datum = decode_datum(fields.value("value")?);
    Ok((datum.ok_or_else(|| missing("a user variable's value"))?, ty))
}

/// A value: the name of its form, and its text.
fn encode_datum(value: &Datum) -> Value {
    match value {
        Datum::Null => Value::Null,
        Datum::Int(number) => json!(["int", number.to_string()]),
        Datum::UInt(number) => json!(["uint", number.to_string()]),
        // The shortest text that is read back as the same number.
        Datum::Double(number) => json!(["double", format!("{number:?}")]),
        Datum::Decimal(number) => json!(["decimal", number.to_string()]),
        Datum::Text(bytes) => match bytes.as_str() {
            Some(text) => json!(["text", text]),
            None => json!(["bytes", hexadecimal_digits(bytes)]),
        },
        Datum::Date(packed) => json!(["date", packed.to_string()]),
        Datum::Time(packed) => json!(["time", packed.to_string()]),
        Datum::DateTime(packed) => json!(["datetime", packed.to_string()]),
        Datum::Json(document) => json!(["json", document.to_text()]),
    }
}

fn decode_datum(value: &Value) -> Option<Datum> {
    if value.is_null() {
        return Some(Datum::Null);
    }
    let [Value::String(form), Value::String(text)] = value.as_array()?.as_slice() else {
        return None;
    };
    Some(match form.as_str() {
        "int" => Datum::Int(text.parse().ok()?),
        "uint" => Datum::UInt(text.parse().ok()?),
        "double" => Datum::Double(text.parse().ok().filter(|number: &f64| number.is_finite())?),
        "decimal" => Datum::Decimal(Decimal::parse(text)?),
        "text" => Datum::text(text.as_bytes()),
        "bytes" => Datum::text(bytes_of(text)?),
        "date" => Datum::Date(text.parse().ok()?),
        "time" => Datum::Time(text.parse().ok()?),
        "datetime" => Datum::DateTime(text.parse().ok()?),
        "json" => Datum::Json(Arc::new(JsonValue::parse(text).ok()?)),
        _ => return None,
    })
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

/// A type's name and its parameters.
fn encode_kind(kind: &TypeKind) -> Value {
    match kind {
        TypeKind::Null => json!(["null"]),
        TypeKind::Integer { width, unsigned } => {
            json!(["integer", width.bytes(), unsigned])
        }
        TypeKind::Bit { bits } => json!(["bit", bits]),
        TypeKind::Year => json!(["year"]),
        TypeKind::Decimal { precision, scale, unsigned } => {
            json!(["decimal", precision, scale, unsigned])
        }
        TypeKind::Float => json!(["float"]),
        TypeKind::Double => json!(["double"]),
        TypeKind::Char { max_chars, collation } => json!(["char", max_chars, collation.0]),
        TypeKind::Varchar { max_chars, collation } => json!(["varchar", max_chars, collation.0]),
        TypeKind::Text { max_bytes, collation } => json!(["text", max_bytes, collation.0]),
        TypeKind::Binary { max_bytes } => json!(["binary", max_bytes]),
        TypeKind::Varbinary { max_bytes } => json!(["varbinary", max_bytes]),
        TypeKind::Blob { max_bytes } => json!(["blob", max_bytes]),
        TypeKind::Date => json!(["date"]),
        TypeKind::Time { fsp } => json!(["time", fsp]),
        TypeKind::DateTime { fsp } => json!(["datetime", fsp]),
        TypeKind::Timestamp { fsp } => json!(["timestamp", fsp]),
        TypeKind::Enum { members: names, collation } => {
            json!(["enum", names.names(), collation.0])
        }
        TypeKind::Set { members: names, collation } => json!(["set", names.names(), collation.0]),
        TypeKind::Json => json!(["json"]),
        TypeKind::Geometry => json!(["geometry"]),
    }
}

fn decode_kind(parts: &[Value]) -> Option<TypeKind> {
    let (name, rest) = parts.split_first()?;
    Some(match (name.as_str()?, rest) {
        ("null", []) => TypeKind::Null,
        ("integer", [bytes, unsigned]) => {
            let width = IntWidth::of_bytes(usize::try_from(bytes.as_u64()?).ok()?)?;
            TypeKind::Integer { width, unsigned: unsigned.as_bool()? }
        }
        ("bit", [bits]) => TypeKind::Bit { bits: number(bits)? },
        ("year", []) => TypeKind::Year,
        ("decimal", [precision, scale, unsigned]) => TypeKind::Decimal {
            precision: number(precision)?,
            scale: number(scale)?,
            unsigned: unsigned.as_bool()?,
        },
        ("float", []) => TypeKind::Float,
        ("double", []) => TypeKind::Double,
        ("char", [chars, id]) => {
            TypeKind::Char { max_chars: number(chars)?, collation: collation(id)? }
        }
        ("varchar", [chars, id]) => {
            TypeKind::Varchar { max_chars: number(chars)?, collation: collation(id)? }
        }
        ("text", [bytes, id]) => {
            TypeKind::Text { max_bytes: number(bytes)?, collation: collation(id)? }
        }
        ("binary", [bytes]) => TypeKind::Binary { max_bytes: number(bytes)? },
        ("varbinary", [bytes]) => TypeKind::Varbinary { max_bytes: number(bytes)? },
        ("blob", [bytes]) => TypeKind::Blob { max_bytes: number(bytes)? },
        ("date", []) => TypeKind::Date,
        ("time", [fsp]) => TypeKind::Time { fsp: number(fsp)? },
        ("datetime", [fsp]) => TypeKind::DateTime { fsp: number(fsp)? },
        ("timestamp", [fsp]) => TypeKind::Timestamp { fsp: number(fsp)? },
        ("enum", [names, id]) => {
            TypeKind::Enum { members: members(names)?, collation: collation(id)? }
        }
        ("set", [names, id]) => {
            TypeKind::Set { members: members(names)?, collation: collation(id)? }
        }
        ("json", []) => TypeKind::Json,
        ("geometry", []) => TypeKind::Geometry,
        _ => return None,
    })
}

fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_u64()?).ok()
}

fn collation(value: &Value) -> Option<CollationId> {
    let id = CollationId(number(value)?);
    firn_sql::collation::by_id(id).map(|_| id)
}

fn members(value: &Value) -> Option<Arc<Members>> {
    let names = value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned));
    Some(Arc::new(Members::new(names.collect::<Option<Vec<String>>>()?)))
}
