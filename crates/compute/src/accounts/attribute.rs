//! What `ATTRIBUTE` and `COMMENT` keep of an account: a JSON object.
//!
//! ```text
//!   kept {"team": "a"}   ALTER USER … ATTRIBUTE '{"team": null, "cost": 3}'   {"cost": 3}
//! ```
//!
//! Its members are the users' own, except [`READ_CONSISTENCY`]: sessions of the account begin with
//! that value of the variable.

use firn_sql::error::{Result, SqlError};
use firn_sql::types::json::{JsonObject, JsonValue};

use crate::read_consistency;

/// The member that sessions begin with, named as the variable.
const READ_CONSISTENCY: &str = read_consistency::VARIABLE;

fn not_an_object() -> SqlError {
    SqlError::new(3982, "The user attribute must be a valid JSON object")
}

fn object(text: &str) -> Result<JsonObject> {
    match JsonValue::parse(text) {
        Ok(JsonValue::Object(object)) => Ok(object),
        _ => Err(not_an_object()),
    }
}

/// The kept object with the members of `change`; those that are null are removed.
///
/// # Errors
/// 3982 if `change` is no JSON object; 1231 for a consistency that does not exist.
pub(super) fn merged(kept: Option<&str>, change: &str) -> Result<String> {
    let change = object(change)?;
    match change.get(READ_CONSISTENCY) {
        None | Some(JsonValue::Null) => {}
        Some(JsonValue::String(name)) => read_consistency::check(name)?,
        Some(other) => read_consistency::check(&other.to_text())?,
    }
    let kept = kept.map_or_else(|| Ok(JsonObject::new()), object)?;
    Ok(JsonValue::Object(kept).patched_with(JsonValue::Object(change)).to_text())
}

/// An object with the member that `COMMENT` sets.
pub(super) fn of_comment(comment: &str) -> String {
    let mut object = JsonObject::new();
    object.insert("comment", JsonValue::string(comment));
    JsonValue::Object(object).to_text()
}

/// With which `firn_read_consistency` sessions of the account begin, if it says so.
pub(crate) fn initial_consistency(kept: Option<&str>) -> Option<Box<str>> {
    match object(kept?).ok()?.remove(READ_CONSISTENCY)? {
        JsonValue::String(name) => Some(name),
        _ => None,
    }
}
