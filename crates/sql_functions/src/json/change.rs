//! Changing documents at paths: `JSON_SET`, `JSON_INSERT`, `JSON_REPLACE`, `JSON_REMOVE`,
//! `JSON_ARRAY_APPEND`, `JSON_ARRAY_INSERT`.

use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, JsonValue, SqlType};

use super::path::{Leg, Path};
use super::value::{Role, document, json, resolve_roles, result, single_path, value};
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] = &[
    lenient!("JSON_SET", 3..=usize::MAX, resolve_set, |a: &[Datum], call: &Call<'_>| {
        change(a, call, "json_set", |document, path, value| put(document, path, value, true, true))
    })
    .needing(|before| uses_value(before, |_, _| Some(true))),
    lenient!("JSON_INSERT", 3..=usize::MAX, resolve_insert, |a: &[Datum], call: &Call<'_>| {
        change(a, call, "json_insert", |document, path, value| {
            put(document, path, value, true, false)
        })
    })
    .needing(|before| {
        uses_value(before, |path, document| {
            let (last, parents) = path.0.split_last()?;
            let is_new = Path::find_mut(&path.0, &mut document.clone()).is_none();
            Some(
                is_new
                    && match (last, found(parents, document)?) {
                        (Leg::Member(_), parent) => matches!(parent, JsonValue::Object(_)),
                        (Leg::Cell(_), _) => true,
                        _ => false,
                    },
            )
        })
    }),
    lenient!("JSON_REPLACE", 3..=usize::MAX, resolve_replace, |a: &[Datum], call: &Call<'_>| {
        change(a, call, "json_replace", |document, path, value| {
            put(document, path, value, false, true)
        })
    })
    .needing(|before| uses_value(before, |_, _| Some(true))),
    lenient!(
        "JSON_ARRAY_APPEND",
        3..=usize::MAX,
        resolve_append,
        |a: &[Datum], call: &Call<'_>| { change(a, call, "json_array_append", append) }
    )
    .needing(|before| {
        uses_value(before, |path, document| Some(path.find_first(document).is_some()))
    }),
    lenient!(
        "JSON_ARRAY_INSERT",
        3..=usize::MAX,
        resolve_array_insert,
        |a: &[Datum], call: &Call<'_>| { change(a, call, "json_array_insert", insert_cell) }
    )
    .needing(|before| {
        uses_value(before, |path, document| {
            let (_, parents) = path.0.split_last()?;
            Some(matches!(found(parents, document)?, JsonValue::Array(_)))
        })
    }),
    lenient!("JSON_REMOVE", 2..=usize::MAX, resolve_remove, |a: &[Datum], _| remove(a)),
];

const PATHS_AND_VALUES: (&[Role], usize) = (&[Role::Document, Role::Text, Role::Value], 2);

/// Paths and values come in pairs.
fn resolve_pairs(
    types: &[SqlType],
    context: &ResolveContext<'_>,
    function: &str,
) -> Result<Signature> {
    if types.len().is_multiple_of(2) {
        let message =
            format!("Incorrect parameter count in the call to native function '{function}'");
        return Err(SqlError::new(1582, message));
    }
    resolve_roles(types, context, PATHS_AND_VALUES, json())
}

fn resolve_set(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_pairs(types, context, "json_set")
}

fn resolve_insert(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_pairs(types, context, "json_insert")
}

fn resolve_replace(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_pairs(types, context, "json_replace")
}

fn resolve_append(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_pairs(types, context, "json_array_append")
}

fn resolve_array_insert(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_pairs(types, context, "json_array_insert")
}

fn resolve_remove(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    resolve_roles(types, context, (&[Role::Document, Role::Text], 1), json())
}

/// Whether the value behind the first path is used, given the document and the path: what is not
/// used does not warn, nor does the value behind a path that is none. `is_used` finds that out; for
/// `None` it is not.
fn uses_value(before: &[Datum], is_used: fn(&Path, &JsonValue) -> Option<bool>) -> bool {
    const VALUE: usize = 2;
    if before.len() != VALUE {
        return true;
    }
    let document = document(before, 0, "");
    match (document, single_path(before, 1)) {
        (Ok(Some(document)), Ok(Some(path))) => is_used(&path, &document).unwrap_or(false),
        _ => false,
    }
}

/// The value at the legs of a path.
fn found<'d>(legs: &[Leg], document: &'d JsonValue) -> Option<&'d JsonValue> {
    Path(legs.to_vec()).find_first(document)
}

type Change = fn(&mut JsonValue, &Path, JsonValue) -> Result<()>;

fn change(a: &[Datum], call: &Call<'_>, function: &str, change: Change) -> Result<Datum> {
    let Some(document) = document(a, 0, function)? else { return Ok(Datum::Null) };
    let mut changed = document.into_owned();
    for at in (1..a.len()).step_by(2) {
        let Some(path) = single_path(a, at)? else { return Ok(Datum::Null) };
        change(&mut changed, &path, value(a, at + 1, call))?;
    }
    result(changed)
}

fn put(
    document: &mut JsonValue,
    path: &Path,
    value: JsonValue,
    add: bool,
    replace: bool,
) -> Result<()> {
    if let Some(existing) = Path::find_mut(&path.0, document) {
        if replace {
            *existing = value;
        }
        return Ok(());
    }
    let Some((last, parents)) = path.0.split_last().filter(|_| add) else { return Ok(()) };
    match (last, Path::find_mut(parents, document)) {
        (Leg::Member(name), Some(JsonValue::Object(object))) => {
            object.insert(name.clone(), value);
        }
        (Leg::Cell(cell), Some(JsonValue::Array(items))) => {
            let at = cell.position(items.len()).map_or(0, |at| at.min(items.len()));
            items.insert(at, value);
        }
        (Leg::Cell(cell), Some(other)) => {
            let old = std::mem::replace(other, JsonValue::Null);
            let items = if cell.from_last { vec![value, old] } else { vec![old, value] };
            *other = JsonValue::Array(items);
        }
        _ => (),
    }
    Ok(())
}

fn append(document: &mut JsonValue, path: &Path, value: JsonValue) -> Result<()> {
    match Path::find_mut(&path.0, document) {
        None => (),
        Some(JsonValue::Array(items)) => items.push(value),
        Some(other) => {
            let old = std::mem::replace(other, JsonValue::Null);
            *other = JsonValue::Array(vec![old, value]);
        }
    }
    Ok(())
}

fn insert_cell(document: &mut JsonValue, path: &Path, value: JsonValue) -> Result<()> {
    let Some((Leg::Cell(cell), parents)) = path.0.split_last() else {
        let message = "A path expression is not a path to a cell in an array.";
        return Err(SqlError::new(3165, message));
    };
    if let Some(JsonValue::Array(items)) = Path::find_mut(parents, document) {
        let at = cell.position(items.len()).map_or(0, |at| at.min(items.len()));
        items.insert(at, value);
    }
    Ok(())
}

fn remove(a: &[Datum]) -> Result<Datum> {
    let Some(document) = document(a, 0, "json_remove")? else { return Ok(Datum::Null) };
    let mut changed = document.into_owned();
    for at in 1..a.len() {
        let Some(path) = single_path(a, at)? else { return Ok(Datum::Null) };
        let Some((last, parents)) = path.0.split_last() else {
            let message = "The path expression '$' is not allowed in this context.";
            return Err(SqlError::new(3153, message));
        };
        match (last, Path::find_mut(parents, &mut changed)) {
            (Leg::Member(name), Some(JsonValue::Object(object))) => {
                object.remove(name);
            }
            (Leg::Cell(cell), Some(JsonValue::Array(items))) => {
                let at = cell.position(items.len()).filter(|&at| at < items.len());
                if let Some(at) = at {
                    items.remove(at);
                }
            }
            _ => (),
        }
    }
    result(changed)
}
