//! Arguments as documents, values and paths.

use std::borrow::Cow;

use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::json::JsonError;
use firn_sql_types::metadata::type_code;
use firn_sql_types::{Datum, JsonValue, SqlType, TypeKind};

use super::path::Path;
use crate::arguments::{bytes, text};
use crate::signature::{Want, decoded, text_type};
use crate::{Call, ResolveContext, Signature};

/// The protocol's type byte of bits inside documents.
const BIT: u8 = 16;

/// Error 3141.
fn invalid_text(error: &JsonError, argument: usize, function: &str) -> SqlError {
    match error {
        JsonError::Syntax { message, position } => SqlError::of_kind(
            ErrorKind::InvalidJson,
            3141,
            format!(
                "Invalid JSON text in argument {argument} to function {function}: \"{message}\" \
                 at position {position}."
            ),
        ),
        JsonError::NoRoom(no_room) => (*no_room).into(),
        JsonError::TooDeep => too_deep(),
    }
}

/// Error 3157.
pub(super) fn too_deep() -> SqlError {
    SqlError::new(3157, "The JSON document exceeds the maximum depth.")
}

/// Error 3144.
pub(super) fn binary_text() -> SqlError {
    SqlError::new(3144, "Cannot create a JSON value from a string with CHARACTER SET 'binary'.")
}

/// The type of a document argument: JSON or text. Any other type stays, and [`document`] refuses
/// the value once it is needed.
pub(super) fn document_type(
    types: &[SqlType],
    at: usize,
    context: &ResolveContext<'_>,
) -> Result<SqlType> {
    let ty = &types[at];
    match &ty.kind {
        TypeKind::Json | TypeKind::Null => Ok(ty.clone()),
        kind if kind.is_text() => Ok(text_type(ty, context.connection_collation)),
        kind if kind.is_binary() => Err(binary_text()),
        _ => Ok(ty.clone()),
    }
}

/// The kinds of arguments that JSON functions have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Document,
    Value,
    Text,
    /// Text, or bytes as they are.
    TextOrBytes,
}

/// A signature by the roles of the arguments; the last `repeat` roles are repeated.
pub(super) fn resolve_roles(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    roles: (&[Role], usize),
    result: SqlType,
) -> Result<Signature> {
    let (roles, repeat) = roles;
    let role = |at: usize| match at.checked_sub(roles.len()) {
        None => roles[at],
        Some(beyond) => roles[roles.len() - repeat.max(1) + beyond % repeat.max(1)],
    };
    let cast = |at: usize| match role(at) {
        Role::Document => document_type(types, at, context),
        Role::Value => Ok(value_type(&types[at], context)),
        Role::TextOrBytes => Ok(Want::Text.of(&types[at], context)),
        Role::Text => Ok(match Want::Text.of(&types[at], context) {
            bytes if bytes.kind.is_binary() => decoded(&bytes, context.connection_collation),
            text => text,
        }),
    };
    let arguments = (0..types.len()).map(cast).collect::<Result<_>>()?;
    Ok(Signature { arguments, result })
}

/// Values keep their types; enums and sets become their names.
pub(super) fn value_type(ty: &SqlType, context: &ResolveContext<'_>) -> SqlType {
    if ty.kind.is_enum_or_set() { Want::Text.of(ty, context) } else { ty.clone() }
}

/// Error 3146.
pub(super) fn no_document(argument: usize, function: &str) -> SqlError {
    let message = format!(
        "Invalid data type for JSON data in argument {argument} to function {function}; a JSON \
         string or JSON type is required."
    );
    SqlError::new(3146, message)
}

/// A document argument; `None` for NULL. Error 3141 for text that is not JSON, 3146 for other
/// types.
pub(super) fn document<'a>(
    arguments: &'a [Datum],
    at: usize,
    function: &str,
) -> Result<Option<Cow<'a, JsonValue>>> {
    match arguments.get(at) {
        None | Some(Datum::Null) => Ok(None),
        Some(Datum::Json(document)) => Ok(Some(Cow::Borrowed(document))),
        Some(other) if other.as_bytes().is_none() => Err(no_document(at + 1, function)),
        Some(other) => document_of_text(other, at + 1, function).map(Cow::Owned).map(Some),
    }
}

/// The document that a text is. Error 3141, with the number of the argument, if it is none.
pub(super) fn document_of_text(
    datum: &Datum,
    argument: usize,
    function: &str,
) -> Result<JsonValue> {
    JsonValue::parse(&text(datum)).map_err(|error| invalid_text(&error, argument, function))
}

/// Whether none of the documents so far is NULL.
pub(super) fn has_documents(before: &[Datum]) -> bool {
    !before.iter().any(Datum::is_null)
}

/// A path argument; `None` for NULL. Error 3143 for an invalid path.
pub(super) fn path(arguments: &[Datum], at: usize) -> Result<Option<Path>> {
    match arguments.get(at) {
        None | Some(Datum::Null) => Ok(None),
        Some(other) => Path::parse(&text(other)).map(Some),
    }
}

/// A path argument without wildcards; error 3149 otherwise.
pub(super) fn single_path(arguments: &[Datum], at: usize) -> Result<Option<Path>> {
    match path(arguments, at)? {
        Some(path) if path.is_multiple() => Err(SqlError::new(
            3149,
            "In this situation, path expressions may not contain the * and ** tokens or an array range.",
        )),
        path => Ok(path),
    }
}

/// A value as JSON: text becomes a string, NULL becomes `null`.
#[must_use]
pub fn json_value(datum: &Datum, ty: &SqlType) -> JsonValue {
    match datum {
        Datum::Null => JsonValue::Null,
        Datum::Json(document) => JsonValue::clone(document),
        Datum::Int(number) => JsonValue::Int(*number),
        Datum::UInt(bits) => match ty.kind {
            TypeKind::Bit { bits: width } => {
                let bytes = bits.to_be_bytes();
                let used = usize::from(width.div_ceil(8)).clamp(1, 8);
                JsonValue::Opaque { type_code: BIT, bytes: bytes[8 - used..].into() }
            }
            _ => JsonValue::UInt(*bits),
        },
        Datum::Double(number) => JsonValue::Double(*number),
        Datum::Decimal(number) => JsonValue::Decimal(*number),
        Datum::Date(packed) => JsonValue::Date(*packed),
        Datum::Time(packed) => JsonValue::Time(*packed),
        Datum::DateTime(packed) => JsonValue::DateTime(*packed),
        Datum::Text(_) => match ty.kind {
            TypeKind::Binary { .. } | TypeKind::Varbinary { .. } | TypeKind::Blob { .. } => {
                opaque(ty.code_in_document(), datum)
            }
            TypeKind::Geometry => opaque(type_code::BLOB, datum),
            _ => JsonValue::string(text(datum)),
        },
    }
}

fn opaque(type_code: u8, datum: &Datum) -> JsonValue {
    JsonValue::Opaque { type_code, bytes: bytes(datum).into() }
}

/// An argument as a JSON value.
pub(super) fn value(arguments: &[Datum], at: usize, call: &Call<'_>) -> JsonValue {
    match (arguments.get(at), call.arguments.get(at)) {
        (Some(datum), Some(ty)) => json_value(datum, ty),
        _ => JsonValue::Null,
    }
}

/// A document as a result; error 3157 if it is nested too deeply.
pub(super) fn result(document: JsonValue) -> Result<Datum> {
    if document.depth() > firn_sql_types::json::MAX_DEPTH {
        return Err(too_deep());
    }
    Ok(Datum::from(document))
}

/// The type of documents.
pub(super) fn json() -> SqlType {
    SqlType::new(TypeKind::Json)
}
