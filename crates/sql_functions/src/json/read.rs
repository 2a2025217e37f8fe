//! Reading a document: `JSON_EXTRACT`, `JSON_VALUE`, `JSON_KEYS`, `JSON_LENGTH`, `JSON_TYPE`, …

use firn_sql_types::error::{ErrorKind, Result};
use firn_sql_types::{Datum, JsonValue, SqlType, TypeKind, cast};

use super::value::{
    Role, binary_text, document, document_of_text, json, no_document, path, resolve_roles,
    single_path,
};
use crate::arguments::{int, text};
use crate::signature::{self, MAX_CHARS};
use crate::{Call, Function, ResolveContext, Signature, Volatility, lenient, strict};
use firn_format::value::CollationId;

pub(super) const FUNCTIONS: &[Function] = &[
    // An argument that has to be a document and has another type, by its number and its function;
    // the binder puts this call in its place, so that it is not worked out.
    lenient!("NO DOCUMENT", 2..=2, [Int, Text] => a_document, |a: &[Datum], _| {
        Err(no_document(usize::try_from(int(&a[0])).unwrap_or(0), &text(&a[1])))
    })
    .volatile(Volatility::Row),
    // The same for bytes, which are refused unless they are NULL.
    strict!("BYTES NO DOCUMENT", 1..=1, [Any] => a_document, |_: &[Datum], _: &Call<'_>| {
        Err(binary_text())
    })
    .volatile(Volatility::Row),
    // A text that is read before an argument that one of those stands for.
    strict!("DOCUMENT OF TEXT", 3..=3, [Text, Int, Text] => a_document, read_text),
    lenient!("JSON_EXTRACT", 2..=usize::MAX, resolve_extract, |a: &[Datum], _| extract(a)),
    lenient!("->", 2..=2, resolve_extract, |a: &[Datum], _| extract(a)),
    lenient!("->>", 2..=2, resolve_extract_text, |a: &[Datum], _| Ok(match extract(a)? {
        Datum::Json(document) => Datum::text(document.unquoted()),
        other => other,
    })),
    lenient!("JSON_VALUE", 2..=2, resolve_value, json_value),
    lenient!("JSON_KEYS", 1..=2, resolve_keys, |a: &[Datum], _| {
        Ok(match part(a, "json_keys")? {
            Some(JsonValue::Object(object)) => {
                let keys = object.keys().map(JsonValue::string).collect();
                Datum::from(JsonValue::Array(keys))
            }
            _ => Datum::Null,
        })
    }),
    lenient!("JSON_LENGTH", 1..=2, resolve_length, |a: &[Datum], _| {
        Ok(part(a, "json_length")?.map_or(Datum::Null, |value| Datum::Int(length(&value))))
    }),
    lenient!("JSON_DEPTH", 1..=1, resolve_depth, |a: &[Datum], _| {
        Ok(document(a, 0, "json_depth")?.map_or(Datum::Null, |d| Datum::Int(d.depth() as i64)))
    }),
    lenient!("JSON_TYPE", 1..=1, resolve_type, |a: &[Datum], _| {
        Ok(document(a, 0, "json_type")?.map_or(Datum::Null, |d| Datum::text(d.type_name())))
    }),
    lenient!("JSON_VALID", 1..=1, [Any] => signature::int, |a: &[Datum], call: &Call<'_>| {
        // A value that is neither a string nor a document is never valid, not even NULL.
        Ok(match (&a[0], &call.arguments[0].kind) {
            (Datum::Null, kind)
                if kind.is_string() || matches!(kind, TypeKind::Json | TypeKind::Null) =>
            {
                Datum::Null
            }
            (Datum::Json(_), _) => Datum::TRUE,
            (Datum::Text(octets), kind) if kind.is_text() => {
                Datum::from_bool(JsonValue::parse(&octets.to_str_lossy()).is_ok())
            }
            _ => Datum::FALSE,
        })
    }),
    lenient!("JSON_STORAGE_SIZE", 1..=1, resolve_storage, |a: &[Datum], _| {
        let document = document(a, 0, "json_storage_size")?;
        Ok(document.map_or(Datum::Null, |d| Datum::Int(d.storage_size_bytes() as i64)))
    }),
    lenient!("JSON_STORAGE_FREE", 1..=1, resolve_storage, |a: &[Datum], _| {
        let document = document(a, 0, "json_storage_free")?;
        Ok(document.map_or(Datum::Null, |_| Datum::Int(0)))
    }),
];

fn read_text(a: &[Datum], _: &Call<'_>) -> Result<Datum> {
    let number = usize::try_from(int(&a[1])).unwrap_or(0);
    Ok(Datum::from(document_of_text(&a[0], number, &text(&a[2]))?))
}

fn a_document(_: &[SqlType], _: &ResolveContext<'_>) -> SqlType {
    SqlType::new(TypeKind::Json)
}

const DOCUMENT_AND_PATHS: (&[Role], usize) = (&[Role::Document, Role::Text], 1);
/// JSON text has a binary collation.
const UTF8MB4_BIN: CollationId = CollationId(46);
/// That of the text of `JSON_VALUE`.
const UTF8MB4_0900_BIN: CollationId = CollationId(309);

macro_rules! resolve {
    ($name:ident, $result:expr) => {
        fn $name(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
            resolve_roles(types, context, DOCUMENT_AND_PATHS, $result)
        }
    };
}

resolve!(resolve_extract, json());
resolve!(resolve_extract_text, SqlType::varchar(MAX_CHARS, UTF8MB4_BIN));
resolve!(resolve_value, SqlType::varchar(512, UTF8MB4_0900_BIN));
resolve!(resolve_keys, json());
resolve!(resolve_length, SqlType::bigint());
resolve!(resolve_depth, SqlType::bigint());
resolve!(resolve_type, SqlType::varchar(17, CollationId(46)));
resolve!(resolve_storage, SqlType::bigint());

/// One value for one path without wildcards, otherwise an array of everything found.
fn extract(a: &[Datum]) -> Result<Datum> {
    let Some(document) = document(a, 0, "json_extract")? else { return Ok(Datum::Null) };
    let mut found = Vec::new();
    let mut several = a.len() > 2;
    for at in 1..a.len() {
        let Some(path) = path(a, at)? else { return Ok(Datum::Null) };
        several |= path.is_multiple();
        found.extend(path.find(&document).into_iter().cloned());
    }
    Ok(match found.len() {
        0 => Datum::Null,
        _ if several => Datum::from(JsonValue::Array(found)),
        _ => Datum::from(found.swap_remove(0)),
    })
}

/// The value at a path, as the type named by `RETURNING`; the binder sets it as the call's type.
/// NULL for a missing value, for `null`, and for a value that the type cannot hold.
fn json_value(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let document = match document(a, 0, "json_value") {
        Ok(document) => document,
        Err(error) if error.kind == ErrorKind::InvalidJson => {
            call.context.warn(error.code, || error.message);
            None
        }
        Err(error) => return Err(error),
    };
    let Some(document) = document else { return Ok(Datum::Null) };
    let Some(path) = path(a, 1)? else { return Ok(Datum::Null) };
    let found = path.find(&document);
    let [value] = found.as_slice() else { return Ok(Datum::Null) };
    Ok(match (value, &call.result.kind) {
        (JsonValue::Null, _) => Datum::Null,
        (value, TypeKind::Json) => Datum::from((*value).clone()),
        (JsonValue::Array(_) | JsonValue::Object(_), kind) if !kind.is_string() => Datum::Null,
        (value, kind) if kind.is_string() => {
            let text = value.unquoted();
            let fits = text.chars().count() <= call.result.max_text_chars() as usize;
            if fits { Datum::text(text) } else { Datum::Null }
        }
        (value, _) => held_quietly(&Datum::from((*value).clone()), call)?,
    })
}

/// A scalar as a value of the call's type; NULL, without a warning, if it does not fit.
fn held_quietly(scalar: &Datum, call: &Call<'_>) -> Result<Datum> {
    let warnings = call.context.warning_count();
    let value = cast::cast(scalar, &json(), call.result, call.context)?;
    if call.context.warning_count() == warnings {
        return Ok(value);
    }
    call.context.forget_conditions_after(warnings);
    Ok(Datum::Null)
}

/// The document, or the part of it that the second argument selects.
fn part(a: &[Datum], function: &str) -> Result<Option<JsonValue>> {
    let document = document(a, 0, function)?;
    if a.len() == 1 {
        return Ok(document.map(std::borrow::Cow::into_owned));
    }
    let path = single_path(a, 1)?;
    let Some((document, path)) = document.zip(path) else { return Ok(None) };
    Ok(path.find_first(&document).cloned())
}

fn length(value: &JsonValue) -> i64 {
    match value {
        JsonValue::Array(items) => items.len() as i64,
        JsonValue::Object(object) => object.len() as i64,
        _ => 1,
    }
}
