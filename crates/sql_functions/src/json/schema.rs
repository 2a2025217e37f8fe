//! `JSON_SCHEMA_VALID`: the rules of JSON Schema, draft 4, without references and formats.

use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::json::JsonObject;
use firn_sql_types::{Datum, JsonValue, SqlType};
use regex::Regex;

use super::value::{Role, document, resolve_roles};
use crate::{Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] =
    &[lenient!("JSON_SCHEMA_VALID", 2..=2, resolve, |a: &[Datum], _| json_schema_valid(a))];

fn resolve(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let roles = (&[Role::Document][..], 1);
    resolve_roles(types, context, roles, SqlType::boolean())
}

fn json_schema_valid(a: &[Datum]) -> Result<Datum> {
    let schema = document(a, 0, "json_schema_valid")?;
    let value = document(a, 1, "json_schema_valid")?;
    let Some((schema, value)) = schema.zip(value) else { return Ok(Datum::Null) };
    let JsonValue::Object(schema) = &*schema else {
        let message =
            "Invalid JSON type in argument 1 to function json_schema_valid; an object is required.";
        return Err(SqlError::new(3853, message));
    };
    Ok(Datum::from_bool(is_valid(schema, &value)?))
}

fn is_valid(schema: &JsonObject, value: &JsonValue) -> Result<bool> {
    if schema.get("$ref").is_some() {
        return Err(SqlError::not_supported("references in JSON Schema"));
    }
    let plain = of_type(schema, value)
        && of_values(schema, value)
        && number_fits(schema, value)
        && text_fits(schema, value)?;
    Ok(plain
        && items_fit(schema, value)?
        && members_fit(schema, value)?
        && combined(schema, value)?)
}

fn limit(schema: &JsonObject, keyword: &str) -> Option<f64> {
    schema.get(keyword).and_then(number)
}

fn number(value: &JsonValue) -> Option<f64> {
    Some(match value {
        JsonValue::Int(number) => *number as f64,
        JsonValue::UInt(number) => *number as f64,
        JsonValue::Double(number) => *number,
        JsonValue::Decimal(number) => number.to_double(),
        _ => return None,
    })
}

fn of_type(schema: &JsonObject, value: &JsonValue) -> bool {
    let is = |name: &JsonValue| match name {
        JsonValue::String(name) => match &**name {
            "null" => *value == JsonValue::Null,
            "boolean" => matches!(value, JsonValue::Bool(_)),
            "string" => matches!(value, JsonValue::String(_)),
            "array" => matches!(value, JsonValue::Array(_)),
            "object" => matches!(value, JsonValue::Object(_)),
            "number" => number(value).is_some(),
            "integer" => matches!(value, JsonValue::Int(_) | JsonValue::UInt(_)),
            _ => false,
        },
        _ => false,
    };
    match schema.get("type") {
        None => true,
        Some(JsonValue::Array(names)) => names.iter().any(is),
        Some(name) => is(name),
    }
}

fn of_values(schema: &JsonObject, value: &JsonValue) -> bool {
    match schema.get("enum") {
        Some(JsonValue::Array(values)) => values.iter().any(|one| one.compare(value).is_eq()),
        _ => true,
    }
}

fn number_fits(schema: &JsonObject, value: &JsonValue) -> bool {
    let Some(number) = number(value) else { return true };
    let exclusive = |keyword| schema.get(keyword) == Some(&JsonValue::Bool(true));
    let above = limit(schema, "minimum")
        .is_none_or(|least| number > least || number == least && !exclusive("exclusiveMinimum"));
    let below = limit(schema, "maximum")
        .is_none_or(|most| number < most || number == most && !exclusive("exclusiveMaximum"));
    let multiple = limit(schema, "multipleOf").is_none_or(|unit| number % unit == 0.0);
    above && below && multiple
}

fn count_fits(schema: &JsonObject, count: usize, least: &str, most: &str) -> bool {
    let count = count as f64;
    limit(schema, least).is_none_or(|least| count >= least)
        && limit(schema, most).is_none_or(|most| count <= most)
}

fn text_fits(schema: &JsonObject, value: &JsonValue) -> Result<bool> {
    let JsonValue::String(text) = value else { return Ok(true) };
    let matches = match schema.get("pattern") {
        Some(JsonValue::String(pattern)) => compile(pattern)?.is_match(text),
        _ => true,
    };
    Ok(matches && count_fits(schema, text.chars().count(), "minLength", "maxLength"))
}

fn compile(pattern: &str) -> Result<Regex> {
    let too_large = |_| SqlError::not_supported("this pattern in JSON Schema");
    Regex::new(pattern).map_err(too_large)
}

/// A schema under a keyword, if it is one.
fn valid_under(schema: Option<&JsonValue>, value: &JsonValue) -> Result<bool> {
    match schema {
        Some(JsonValue::Object(schema)) => is_valid(schema, value),
        Some(JsonValue::Bool(allowed)) => Ok(*allowed),
        _ => Ok(true),
    }
}

fn items_fit(schema: &JsonObject, value: &JsonValue) -> Result<bool> {
    let JsonValue::Array(items) = value else { return Ok(true) };
    let unique = schema.get("uniqueItems") == Some(&JsonValue::Bool(true));
    let repeated = |(at, item): (usize, &JsonValue)| {
        items[..at].iter().any(|earlier| earlier.compare(item).is_eq())
    };
    if !count_fits(schema, items.len(), "minItems", "maxItems")
        || unique && items.iter().enumerate().any(repeated)
    {
        return Ok(false);
    }
    for (at, item) in items.iter().enumerate() {
        let of_item = match schema.get("items") {
            Some(JsonValue::Array(schemas)) => schemas.get(at).or(schema.get("additionalItems")),
            other => other,
        };
        if !valid_under(of_item, item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn members_fit(schema: &JsonObject, value: &JsonValue) -> Result<bool> {
    let JsonValue::Object(object) = value else { return Ok(true) };
    if !count_fits(schema, object.len(), "minProperties", "maxProperties")
        || !has_required(schema, object)
    {
        return Ok(false);
    }
    for (key, member) in object.iter() {
        if !member_fits(schema, key, member)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_required(schema: &JsonObject, object: &JsonObject) -> bool {
    let has = |name: &JsonValue| match name {
        JsonValue::String(name) => object.get(name).is_some(),
        _ => true,
    };
    match schema.get("required") {
        Some(JsonValue::Array(names)) => names.iter().all(has),
        _ => true,
    }
}

fn member_fits(schema: &JsonObject, key: &str, member: &JsonValue) -> Result<bool> {
    let mut known = false;
    if let Some(JsonValue::Object(properties)) = schema.get("properties")
        && let Some(of_member) = properties.get(key)
    {
        known = true;
        if !valid_under(Some(of_member), member)? {
            return Ok(false);
        }
    }
    if let Some(JsonValue::Object(patterns)) = schema.get("patternProperties") {
        for (pattern, of_member) in patterns.iter() {
            if compile(pattern)?.is_match(key) {
                known = true;
                if !valid_under(Some(of_member), member)? {
                    return Ok(false);
                }
            }
        }
    }
    if known { Ok(true) } else { valid_under(schema.get("additionalProperties"), member) }
}

fn combined(schema: &JsonObject, value: &JsonValue) -> Result<bool> {
    let count_valid = |keyword: &str| -> Result<Option<(usize, usize)>> {
        let Some(JsonValue::Array(schemas)) = schema.get(keyword) else { return Ok(None) };
        let mut valid = 0;
        for schema in schemas {
            valid += usize::from(valid_under(Some(schema), value)?);
        }
        Ok(Some((valid, schemas.len())))
    };
    let all = count_valid("allOf")?.is_none_or(|(valid, count)| valid == count);
    let any = count_valid("anyOf")?.is_none_or(|(valid, _)| valid > 0);
    let one = count_valid("oneOf")?.is_none_or(|(valid, _)| valid == 1);
    let not = schema.get("not").is_none() || !valid_under(schema.get("not"), value)?;
    Ok(all && any && one && not)
}
