//! Merging documents: `JSON_MERGE_PRESERVE` keeps everything, `JSON_MERGE_PATCH` follows RFC 7396.

use firn_sql_types::error::Result;
use firn_sql_types::{Datum, JsonValue, SqlType};

use super::value::{Role, document, has_documents, json, resolve_roles, result};
use crate::{Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("JSON_MERGE_PRESERVE", 2..=usize::MAX, resolve, |a: &[Datum], _| merge_preserve(a))
        .needing(has_documents),
    lenient!("JSON_MERGE_PATCH", 2..=usize::MAX, resolve_patch, |a: &[Datum], _| merge_patch(a)),
];

fn resolve(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_roles(types, context, (&[Role::Document], 1), json())
}

fn resolve_patch(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_roles(types, context, (&[Role::Document], 1), json())
}

fn merge_preserve(a: &[Datum]) -> Result<Datum> {
    let mut merged: Option<JsonValue> = None;
    for at in 0..a.len() {
        let Some(next) = document(a, at, "json_merge_preserve")? else { return Ok(Datum::Null) };
        let next = next.into_owned();
        merged = Some(match merged {
            None => next,
            Some(so_far) => preserve(so_far, next),
        });
    }
    merged.map_or(Ok(Datum::Null), result)
}

/// Objects become one object, anything else one array.
fn preserve(a: JsonValue, b: JsonValue) -> JsonValue {
    match (a, b) {
        (JsonValue::Object(mut a), JsonValue::Object(b)) => {
            for (key, value) in b {
                let value = match a.remove(&key) {
                    None => value,
                    Some(old) => preserve(old, value),
                };
                a.insert(key, value);
            }
            JsonValue::Object(a)
        }
        (a, b) => {
            let mut items = as_items(a);
            items.extend(as_items(b));
            JsonValue::Array(items)
        }
    }
}

fn as_items(value: JsonValue) -> Vec<JsonValue> {
    match value {
        JsonValue::Array(items) => items,
        other => vec![other],
    }
}

/// NULL makes the result NULL, until an argument that is not an object starts a new result.
fn merge_patch(a: &[Datum]) -> Result<Datum> {
    let mut merged = document(a, 0, "json_merge_patch")?.map(std::borrow::Cow::into_owned);
    for at in 1..a.len() {
        let next = document(a, at, "json_merge_patch")?.map(std::borrow::Cow::into_owned);
        merged = match (merged, next) {
            (_, None) => None,
            (None, Some(JsonValue::Object(_))) => None,
            (None, Some(next)) => Some(next),
            (Some(target), Some(next)) => Some(target.patched_with(next)),
        };
    }
    merged.map_or(Ok(Datum::Null), result)
}
