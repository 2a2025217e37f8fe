//! Anything to JSON.

use firn_sql_collation::Charset;

use crate::datum::Datum;
use crate::error::{ErrorKind, Result, SqlError};
use crate::json::{JsonError, JsonValue};
use crate::sql_type::{SqlType, TypeKind};

use super::text::text_of;

const CODE_INVALID_IN_COLUMN: u16 = 3140;
const CODE_INVALID_ARGUMENT: u16 = 3141;
const CODE_INVALID_CHARSET: u16 = 3144;
const CODE_TOO_DEEP: u16 = 3157;
/// The protocol's type bytes of opaque values.
const TYPE_BIT: u8 = 16;
const TYPE_GEOMETRY: u8 = 255;

/// Text to JSON by parsing it, anything else as a scalar.
pub(super) fn to_json(datum: &Datum, from: &SqlType) -> Result<Datum> {
    match datum {
        Datum::Text(text) if from.kind.is_text() => {
            Ok(Datum::from(parse_json(text, "cast_as_json", 1)?))
        }
        Datum::Json(_) => Ok(datum.clone()),
        _ => Ok(Datum::from(json_scalar(datum, from)?)),
    }
}

/// Parses the JSON text in the argument of a function.
///
/// # Errors
/// 3141 with the fault and its position, 3157 if it is nested too deeply.
pub fn parse_json(text: &[u8], function: &str, argument: usize) -> Result<JsonValue> {
    parse(text, |message, position| {
        SqlError::of_kind(
            ErrorKind::InvalidJson,
            CODE_INVALID_ARGUMENT,
            format!(
                "Invalid JSON text in argument {argument} to function {function}: \"{message}\" \
                 at position {position}."
            ),
        )
    })
}

/// Parses the JSON text that is stored into a column.
pub(super) fn parse_for_column(text: &[u8], column: &str) -> Result<JsonValue> {
    parse(text, |message, position| invalid_in_column(message, position, column))
}

/// A number or a date is stored into a column of documents only through a cast.
pub(super) fn not_a_text(column: &str) -> SqlError {
    invalid_in_column("not a JSON text, may need CAST", 0, column)
}

fn invalid_in_column(message: &str, position: usize, column: &str) -> SqlError {
    SqlError::new(
        CODE_INVALID_IN_COLUMN,
        format!(
            "Invalid JSON text: \"{message}\" at position {position} in value for column \
             '{column}'."
        ),
    )
}

fn parse(text: &[u8], error: impl Fn(&str, usize) -> SqlError) -> Result<JsonValue> {
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(at) => return Err(error("Invalid encoding in string.", at.valid_up_to())),
    };
    JsonValue::parse(text).map_err(|problem| match problem {
        JsonError::Syntax { message, position } => error(message, position),
        JsonError::NoRoom(no_room) => no_room.into(),
        JsonError::TooDeep => {
            SqlError::new(CODE_TOO_DEEP, "The JSON document exceeds the maximum depth.")
        }
    })
}

/// A value as a JSON scalar, as `JSON_ARRAY()` takes its arguments: text becomes a string and is
/// not parsed. A JSON value stays what it is, NULL becomes `null`.
///
/// # Errors
/// 3144 for text in a character set that is not Unicode, which JSON made from Firn's text never
/// has; binary strings become opaque values.
pub fn json_scalar(datum: &Datum, from: &SqlType) -> Result<JsonValue> {
    let opaque = |type_code, bytes: &[u8]| JsonValue::Opaque { type_code, bytes: bytes.into() };
    Ok(match (datum, &from.kind) {
        (Datum::Null, _) => JsonValue::Null,
        (Datum::Json(json), _) => (**json).clone(),
        (Datum::UInt(_), TypeKind::Enum { .. } | TypeKind::Set { .. }) => {
            JsonValue::string(text_of(datum, from).to_str_lossy())
        }
        (Datum::UInt(_), TypeKind::Bit { .. }) => opaque(TYPE_BIT, &text_of(datum, from)),
        (Datum::Int(number), _) => JsonValue::Int(*number),
        (Datum::UInt(number), _) => JsonValue::UInt(*number),
        (Datum::Double(number), _) => JsonValue::Double(*number),
        (Datum::Decimal(number), _) => JsonValue::Decimal(*number),
        (Datum::Date(packed), _) => JsonValue::Date(*packed),
        (Datum::Time(packed), _) => JsonValue::Time(*packed),
        (Datum::DateTime(packed), _) => JsonValue::DateTime(*packed),
        (Datum::Text(bytes), TypeKind::Geometry) => opaque(TYPE_GEOMETRY, bytes),
        (Datum::Text(bytes), kind) if kind.is_binary() => opaque(from.code_in_document(), bytes),
        (Datum::Text(text), _) => {
            let text = text.as_str().ok_or_else(|| invalid_charset(from))?;
            JsonValue::string(text)
        }
    })
}

/// Error 3144.
pub(super) fn invalid_charset(from: &SqlType) -> SqlError {
    let charset = from.charset().unwrap_or(Charset::Binary);
    SqlError::new(
        CODE_INVALID_CHARSET,
        format!(
            "Cannot create a JSON value from a string with CHARACTER SET '{}'.",
            charset.name()
        ),
    )
}
