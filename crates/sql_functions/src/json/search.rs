//! `JSON_SEARCH`: the paths to strings that match a pattern.

use firn_format::value::CollationId;
use firn_sql_collation::{self as collation, LikePattern};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, EvaluationContext, JsonValue, SqlType};

use super::contain::is_one;
use super::path::{Seen, write_member};
use super::value::{Role, document, json, path, resolve_roles};
use crate::arguments::{bytes, text};
use crate::{Call, Function, ResolveContext, Signature, lenient};

pub(super) const FUNCTIONS: &[Function] =
    &[lenient!("JSON_SEARCH", 3..=usize::MAX, resolve, json_search)
        .needing(|before| before.first().is_none_or(|document| !document.is_null()))];

fn resolve(types: &[SqlType], context: &ResolveContext<'_>) -> Result<Signature> {
    let roles = &[Role::Document, Role::Text, Role::TextOrBytes, Role::Text];
    resolve_roles(types, context, (roles, 1), json())
}

/// The escape character: `\` unless another is given; none for an empty text.
fn escape_character(a: &[Datum]) -> Result<Option<char>> {
    let Some(escape) = a.get(3).filter(|escape| !escape.is_null()) else { return Ok(Some('\\')) };
    let escape = text(escape);
    let mut characters = escape.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(SqlError::new(1210, "Incorrect arguments to ESCAPE")),
    }
}

fn json_search(a: &[Datum], call: &Call<'_>) -> Result<Datum> {
    let Some(document) = document(a, 0, "json_search")? else { return Ok(Datum::Null) };
    if a[1].is_null() || a[2].is_null() {
        return Ok(Datum::Null);
    }
    let one = is_one(&a[1], "json_search")?;
    let collation = collation::get(call.arguments[2].collation().unwrap_or(CollationId::BINARY));
    let pattern = LikePattern::new(collation, bytes(&a[2]), escape_character(a)?);
    let mut starts = Seen::default();
    for at in 4..a.len() {
        let Some(path) = path(a, at)? else { return Ok(Datum::Null) };
        starts.extend(path.find(&document).into_iter().map(std::ptr::from_ref::<JsonValue>));
    }
    let within = (a.len() > 4).then_some(&starts);
    let context = call.context;
    let mut search = Search { pattern: &pattern, within, one, found: Vec::new(), context };
    search.look(&document, &mut "$".to_owned(), within.is_none())?;
    let mut found = search.found;
    Ok(match found.len() {
        0 => Datum::Null,
        1 => Datum::from(JsonValue::string(found.swap_remove(0))),
        _ => Datum::from(JsonValue::Array(found.into_iter().map(JsonValue::string).collect())),
    })
}

struct Search<'a> {
    pattern: &'a LikePattern,
    /// Only what is below these values is searched.
    within: Option<&'a Seen>,
    one: bool,
    found: Vec<String>,
    context: &'a EvaluationContext,
}

impl Search<'_> {
    fn look(&mut self, value: &JsonValue, path: &mut String, inside: bool) -> Result<()> {
        if self.one && !self.found.is_empty() {
            return Ok(());
        }
        let is_start = |starts: &Seen| starts.contains(&std::ptr::from_ref(value));
        let inside = inside || self.within.is_some_and(is_start);
        let length = path.len();
        match value {
            JsonValue::String(text) if inside => {
                let count = |steps| self.context.count_steps(steps);
                if self.pattern.matches_counted(text.as_bytes(), count)? {
                    self.found.push(path.clone());
                }
            }
            JsonValue::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{at}]"));
                    self.look(item, path, inside)?;
                    path.truncate(length);
                }
            }
            JsonValue::Object(object) => {
                for (key, member) in object.iter() {
                    write_member(key, path);
                    self.look(member, path, inside)?;
                    path.truncate(length);
                }
            }
            _ => (),
        }
        Ok(())
    }
}
