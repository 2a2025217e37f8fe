//! Creating, quoting and printing documents: `JSON_ARRAY`, `JSON_OBJECT`, `JSON_QUOTE`,
//! `JSON_UNQUOTE`, `JSON_PRETTY`.

use firn_format::value::CollationId;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::json::JsonObject;
use firn_sql_types::{Datum, JsonValue, SqlType, TypeKind};

use super::value::{Role, binary_text, document, json, resolve_roles, result, value};
use crate::arguments::{fits_packet, text};
use crate::signature::{MAX_CHARS, text_chars};
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("JSON_ARRAY", 0..=usize::MAX, resolve_array, |a: &[Datum], call: &Call<'_>| {
        result(JsonValue::Array((0..a.len()).map(|at| value(a, at, call)).collect()))
    }),
    // What follows a name that is NULL is not evaluated.
    lenient!("JSON_OBJECT", 0..=usize::MAX, resolve_object, object)
        .needing(|before| !before.iter().step_by(2).any(Datum::is_null)),
    lenient!("JSON_QUOTE", 1..=1, resolve_quote, |a: &[Datum], call: &Call<'_>| Ok(match &a[0] {
        Datum::Null => Datum::Null,
        other => {
            check_text(call.arguments[0], "json_quote")?;
            Datum::text(JsonValue::string(text(other)).to_text())
        }
    })),
    lenient!("JSON_UNQUOTE", 1..=1, resolve_unquote, |a: &[Datum], call: &Call<'_>| {
        if !a[0].is_null() && call.arguments[0].kind != TypeKind::Json {
            check_text(call.arguments[0], "json_unquote")?;
        }
        unquote(a)
    }),
    lenient!("JSON_PRETTY", 1..=1, resolve_pretty, |a: &[Datum], call: &Call<'_>| {
        let Some(document) = document(a, 0, "json_pretty")? else { return Ok(Datum::Null) };
        let mut out = String::new();
        write_pretty(&document, 0, &mut out);
        let fits = fits_packet(out.len() as u128, "json_pretty", call)?;
        Ok(if fits.is_some() { Datum::text(out) } else { Datum::Null })
    }),
];

const UTF8MB4_BIN: CollationId = CollationId(46);

fn resolve_array(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_roles(types, context, (&[Role::Value], 1), json().not_null())
}

fn resolve_object(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    if types.len() % 2 == 1 {
        let message = "Incorrect parameter count in the call to native function 'json_object'";
        return Err(SqlError::new(1582, message));
    }
    let roles = (&[Role::Text, Role::Value][..], 2);
    let mut signature = resolve_roles(types, context, roles, json().not_null())?;
    // A name of bytes is refused row by row, but after one that is NULL.
    for at in (0..types.len()).step_by(2).filter(|at| is_bytes(&types[*at])) {
        signature.arguments[at] = types[at].clone();
    }
    Ok(signature)
}

fn is_bytes(ty: &SqlType) -> bool {
    ty.kind.is_binary() || matches!(ty.kind, TypeKind::Bit { .. })
}

fn object(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let mut members: Vec<(Box<str>, JsonValue)> = Vec::with_capacity(a.len() / 2);
    for at in (0..a.len()).step_by(2) {
        if a[at].is_null() {
            let message = "JSON documents may not contain NULL member names.";
            return Err(SqlError::new(3158, message));
        }
        if is_bytes(call.arguments[at]) {
            return Err(binary_text());
        }
        members.push((text(&a[at]).into(), value(a, at + 1, call)));
    }
    result(JsonValue::Object(members.into_iter().collect::<JsonObject>()))
}

/// Error 3064 for a value that is not text, 3144 for bytes.
fn check_text(ty: &SqlType, function: &str) -> Result<()> {
    match &ty.kind {
        kind if kind.is_text() || kind.is_enum_or_set() || *kind == TypeKind::Null => Ok(()),
        kind if kind.is_string() => Err(binary_text()),
        _ => {
            let message = format!("Incorrect type for argument 1 in function {function}.");
            Err(SqlError::new(3064, message))
        }
    }
}

fn resolve_quote(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let ty = &types[0];
    let chars = text_chars(ty).min(MAX_CHARS / 8) * 6 + 2;
    let result = SqlType::varchar(chars, UTF8MB4_BIN);
    let role = if check_text(ty, "json_quote").is_ok() { Role::Text } else { Role::Value };
    resolve_roles(types, context, (&[role], 1), result)
}

fn resolve_unquote(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let is_text = check_text(&types[0], "json_unquote").is_ok();
    // A value of another type is refused unless it is NULL.
    let role = if is_text { Role::Text } else { Role::Value };
    let result = SqlType::varchar(text_chars(&types[0]), UTF8MB4_BIN);
    resolve_roles(types, context, (&[role], 1), result)
}

/// Text without quotes at both ends is returned unchanged.
fn unquote(a: &[Datum]) -> Result<Datum> {
    match &a[0] {
        Datum::Null => Ok(Datum::Null),
        Datum::Json(document) => Ok(Datum::text(document.unquoted())),
        Datum::Text(octets)
            if octets.len() >= 2 && octets.starts_with(b"\"") && octets.ends_with(b"\"") =>
        {
            let document = document(a, 0, "json_unquote")?;
            Ok(document.map_or(Datum::Null, |document| Datum::text(document.unquoted())))
        }
        other => Ok(other.clone()),
    }
}

fn resolve_pretty(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let result = SqlType::varchar(MAX_CHARS, UTF8MB4_BIN);
    resolve_roles(types, context, (&[Role::Document], 1), result)
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
}

fn write_pretty(value: &JsonValue, depth: usize, out: &mut String) {
    match value {
        JsonValue::Array(items) if !items.is_empty() => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                new_line(depth + 1, out);
                write_pretty(item, depth + 1, out);
            }
            new_line(depth, out);
            out.push(']');
        }
        JsonValue::Object(object) if !object.is_empty() => {
            out.push('{');
            for (at, (key, member)) in object.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                new_line(depth + 1, out);
                out.push_str(&JsonValue::string(key).to_text());
                out.push_str(": ");
                write_pretty(member, depth + 1, out);
            }
            new_line(depth, out);
            out.push('}');
        }
        other => other.write_text(out),
    }
}
