//! Whether documents contain each other: `JSON_CONTAINS`, `JSON_CONTAINS_PATH`, `JSON_OVERLAPS`,
//! `MEMBER OF`. And truth values as documents.

use std::borrow::Cow;

use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, JsonValue, SqlType, TypeKind};

use super::value::{Role, document, has_documents, path, resolve_roles, single_path, value};
use crate::arguments::text;
use crate::{Call, Function, ResolveContext, Signature, lenient, strict};

/// What it costs to compare two short values, in comparisons of characters.
const STEPS_OF_A_COMPARISON: usize = 10;

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("JSON_CONTAINS", 2..=3, resolve_contains, json_contains).needing(has_documents),
    lenient!("JSON_CONTAINS_PATH", 3..=usize::MAX, resolve_contains_path, |a: &[Datum], _| {
        contains_path(a)
    }),
    lenient!("JSON_OVERLAPS", 2..=2, resolve_overlaps, |a: &[Datum], call: &Call<'_>| {
        let both = both_documents(a, "json_overlaps")?;
        let Some((a, b)) = both else { return Ok(Datum::Null) };
        Ok(Datum::from_bool(overlaps(&a, &b, call.context)?))
    })
    .needing(has_documents),
    lenient!("MEMBER OF", 2..=2, resolve_member_of, |a: &[Datum], call: &Call<'_>| {
        if a[0].is_null() {
            return Ok(Datum::Null);
        }
        let Some(array) = document(a, 1, "member of")? else { return Ok(Datum::Null) };
        let wanted = value(a, 0, call);
        Ok(Datum::from_bool(match &*array {
            JsonValue::Array(items) => items.iter().any(|item| item.compare(&wanted).is_eq()),
            other => other.compare(&wanted).is_eq(),
        }))
    })
    .needing(has_documents),
    // No client can write this name.
    strict!("DOCUMENT OF TRUTH", 1..=1, resolve_document_of_truth, |a: &[Datum], _: &Call<'_>| {
        Ok(Datum::from(JsonValue::Bool(!matches!(a[0], Datum::Int(0) | Datum::UInt(0)))))
    }),
];

fn resolve_document_of_truth(types: &[SqlType], _: &ResolveContext<'_>) -> Result<Signature> {
    let result = SqlType::new(TypeKind::Json).with_nullable(true);
    Ok(Signature { arguments: types.to_vec(), result })
}

fn resolve_contains(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let roles = (&[Role::Document, Role::Document, Role::Text][..], 1);
    resolve_roles(types, context, roles, SqlType::boolean())
}

fn resolve_contains_path(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let roles = (&[Role::Document, Role::Text][..], 1);
    resolve_roles(types, context, roles, SqlType::boolean())
}

fn resolve_overlaps(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_roles(types, context, (&[Role::Document], 1), SqlType::boolean())
}

fn resolve_member_of(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let roles = (&[Role::Value, Role::Document][..], 1);
    resolve_roles(types, context, roles, SqlType::boolean())
}

/// The first two arguments as documents; `None` if one is NULL. Beside a first one that is NULL,
/// the second need not be a document.
fn both_documents<'a>(
    a: &'a [Datum],
    function: &str,
) -> Result<Option<(Cow<'a, JsonValue>, Cow<'a, JsonValue>)>> {
    let Some(first) = document(a, 0, function)? else { return Ok(None) };
    Ok(document(a, 1, function)?.map(|second| (first, second)))
}

fn json_contains(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let both = both_documents(a, "json_contains")?;
    let Some((target, candidate)) = both else { return Ok(Datum::Null) };
    if a.len() == 2 {
        return Ok(Datum::from_bool(contains(&target, &candidate, call.context)?));
    }
    let Some(path) = single_path(a, 2)? else { return Ok(Datum::Null) };
    let Some(part) = path.find_first(&target) else { return Ok(Datum::Null) };
    Ok(Datum::from_bool(contains(part, &candidate, call.context)?))
}

/// An array contains each of the candidate's items, or the candidate as an item; an object contains
/// each of the candidate's members; a scalar contains its equal.
fn contains(
    target: &JsonValue,
    candidate: &JsonValue,
    context: &EvaluationContext,
) -> Result<bool> {
    context.count_steps(STEPS_OF_A_COMPARISON)?;
    match (target, candidate) {
        (JsonValue::Array(items), JsonValue::Array(wanted)) => {
            all(wanted, |wanted| any(items, |item| contains(item, wanted, context)))
        }
        (JsonValue::Array(items), wanted) => any(items, |item| contains(item, wanted, context)),
        (JsonValue::Object(object), JsonValue::Object(wanted)) => {
            all(wanted.iter(), |(key, wanted)| match object.get(key) {
                Some(member) => contains(member, wanted, context),
                None => Ok(false),
            })
        }
        (target, candidate) => Ok(target.compare(candidate).is_eq()),
    }
}

/// As [`Iterator::any`], for questions that may fail.
fn any<T>(
    items: impl IntoIterator<Item = T>,
    mut is_one: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    for item in items {
        if is_one(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// As [`Iterator::all`], for questions that may fail.
fn all<T>(
    items: impl IntoIterator<Item = T>,
    mut is_one: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    any(items, |item| is_one(item).map(|is_one| !is_one)).map(|has_another| !has_another)
}

fn contains_path(a: &[Datum]) -> Result<Datum> {
    let document = document(a, 0, "json_contains_path")?;
    let Some(document) = document.filter(|_| !a[1].is_null()) else { return Ok(Datum::Null) };
    let all = !is_one(&a[1], "json_contains_path")?;
    let mut found_any = false;
    for at in 2..a.len() {
        let Some(path) = path(a, at)? else { return Ok(Datum::Null) };
        let found = path.find_first(&document).is_some();
        if found != all {
            return Ok(Datum::from_bool(found));
        }
        found_any |= found;
    }
    Ok(Datum::from_bool(found_any))
}

/// Whether the argument is `'one'` or `'all'`; error 3154 for anything else.
pub(super) fn is_one(datum: &Datum, function: &str) -> Result<bool> {
    match text(datum).to_ascii_lowercase().as_str() {
        "one" => Ok(true),
        "all" => Ok(false),
        _ => Err(SqlError::new(
            3154,
            format!("The oneOrAll argument to {function} may take these values: 'one' or 'all'."),
        )),
    }
}

/// Arrays have an item in common, objects a member; beside an array, a scalar is an array of
/// itself.
fn overlaps(a: &JsonValue, b: &JsonValue, context: &EvaluationContext) -> Result<bool> {
    let is_same = |a: &JsonValue, b: &JsonValue| {
        context.count_steps(STEPS_OF_A_COMPARISON)?;
        Ok(a.compare(b).is_eq())
    };
    match (a, b) {
        (JsonValue::Array(a), JsonValue::Array(b)) => any(a, |a| any(b, |b| is_same(a, b))),
        (JsonValue::Array(items), other) | (other, JsonValue::Array(items)) => {
            any(items, |item| is_same(item, other))
        }
        (JsonValue::Object(a), JsonValue::Object(b)) => {
            any(a.iter(), |(key, a)| match b.get(key) {
                Some(b) => is_same(a, b),
                None => Ok(false),
            })
        }
        (a, b) => is_same(a, b),
    }
}
