//! The stored form of a session's state: a JSON document.
//!
//! `docs/formats/session-state.md` shows one with the meaning of each field; the golden test in
//! `document/tests.rs` prints the same.
//!
//! Invariant: [`decode`] returns what [`encode`] was given, unchanged. It refuses anything else,
//! because a session that is understood only in part would answer as if it were complete.

#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use firn_format::value::CollationId;
use firn_sql::grammar::Mode;
use firn_sql::types::{Datum, SqlType};
use serde_json::{Map, Value, json};

use crate::accounts::AccountName;
use crate::variables::{Setting, decode_setting, encode_setting};

use value::decode_value;
pub(super) use value::encode_value;

/// The version that is written, and the only one that is read.
const VERSION: u64 = 2;

/// A document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a session's state cannot be read: {0}")]
pub struct DocumentError(String);

pub(super) type Read<T> = Result<T, DocumentError>;

/// The stored form of a prepared statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenStatement {
    pub(super) text: String,
    /// The mode in which the text was parsed when it was prepared.
    pub(super) mode: Mode,
}

/// The stored parts of a session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenSession {
    pub(super) account: AccountName,
    pub(super) roles: BTreeSet<AccountName>,
    pub(super) schema: Option<String>,
    /// The session's variables whose values differ from the built-in ones.
    pub(super) variables: BTreeMap<String, Setting>,
    pub(super) results_collation: Option<CollationId>,
    pub(super) user_variables: BTreeMap<String, (Datum, SqlType)>,
    pub(super) numbered: BTreeMap<u32, WrittenStatement>,
    pub(super) named: BTreeMap<String, WrittenStatement>,
    pub(super) next_isolation: Option<String>,
    pub(super) next_read_only: Option<bool>,
    pub(super) last_insert_id: u64,
    pub(super) insert_id: u64,
    pub(super) row_count: i64,
    pub(super) found_rows: u64,
}

/// The document of a session.
pub(super) fn encode(session: &WrittenSession) -> Vec<u8> {
    let name = |name: &AccountName| json!([name.user, name.host]);
    let statement = |one: &WrittenStatement| json!({"text": one.text, "mode": mode_bits(one.mode)});
    let setting = |value: &Setting| String::from_utf8_lossy(&encode_setting(value)).into_owned();
    let members = |list: Vec<(String, Value)>| Value::Object(list.into_iter().collect());
    let numbered = session.numbered.iter().map(|(id, one)| (id.to_string(), statement(one)));
    let named = session.named.iter().map(|(name, one)| (name.clone(), statement(one)));
    let variables = session.variables.iter().map(|(name, one)| (name.clone(), setting(one).into()));
    let user_variables = session.user_variables.iter();
    let user_variables =
        user_variables.map(|(name, (value, ty))| (name.clone(), encode_value(value, ty)));
    let document = json!({
        "version": VERSION,
        "account": name(&session.account),
        "roles": session.roles.iter().map(name).collect::<Vec<_>>(),
        "schema": session.schema,
        "variables": members(variables.collect()),
        "results_collation": session.results_collation.map(|id| id.0),
        "user_variables": members(user_variables.collect()),
        "numbered": members(numbered.collect()),
        "named": members(named.collect()),
        "next_transaction": [session.next_isolation, session.next_read_only],
        "last_insert_id": session.last_insert_id,
        "insert_id": session.insert_id,
        "row_count": session.row_count,
        "found_rows": session.found_rows,
    });
    document.to_string().into_bytes()
}

/// The session of a document.
///
/// # Errors
/// If another version wrote it, or it is damaged.
pub(super) fn decode(document: &[u8]) -> Read<WrittenSession> {
    let document: Value =
        serde_json::from_slice(document).map_err(|error| DocumentError(error.to_string()))?;
    let fields = Fields(document.as_object().ok_or_else(|| missing("the document"))?);
    let version = fields.unsigned("version")?;
    if version != VERSION {
        let why = format!("it has version {version}, and this server reads version {VERSION}");
        return Err(DocumentError(why));
    }
    let [isolation, read_only] = fields.list("next_transaction")? else {
        return Err(missing("next_transaction"));
    };
    Ok(WrittenSession {
        account: account(fields.value("account")?)?,
        roles: fields.list("roles")?.iter().map(account).collect::<Read<_>>()?,
        schema: optional(fields.value("schema")?, "schema", Value::as_str)?.map(str::to_owned),
        variables: fields.members("variables", |value| {
            let text = value.as_str().ok_or_else(|| missing("a variable"))?;
            decode_setting(text.as_bytes()).ok_or_else(|| missing("a variable"))
        })?,
        results_collation: optional(fields.value("results_collation")?, "a collation", |value| {
            u16::try_from(value.as_u64()?).ok().map(CollationId)
        })?,
        user_variables: fields.members("user_variables", decode_value)?,
        numbered: numbered(&fields)?,
        named: fields.members("named", statement)?,
        next_isolation: optional(isolation, "an isolation level", Value::as_str)?
            .map(str::to_owned),
        next_read_only: optional(read_only, "an access mode", Value::as_bool)?,
        last_insert_id: fields.unsigned("last_insert_id")?,
        insert_id: fields.unsigned("insert_id")?,
        row_count: fields.value("row_count")?.as_i64().ok_or_else(|| missing("row_count"))?,
        found_rows: fields.unsigned("found_rows")?,
    })
}

/// A value and its type, from the text of [`encode_value`].
///
/// # Errors
/// If another version wrote it, or it is damaged.
pub(super) fn decode_text(text: &str) -> Read<(Datum, SqlType)> {
    let value = serde_json::from_str(text).map_err(|error| DocumentError(error.to_string()))?;
    decode_value(&value)
}

fn numbered(fields: &Fields<'_>) -> Read<BTreeMap<u32, WrittenStatement>> {
    let by_text = fields.members("numbered", statement)?;
    let number = |text: &str| text.parse().map_err(|_| missing("a statement's number"));
    by_text.into_iter().map(|(text, one)| Ok((number(&text)?, one))).collect()
}

fn statement(value: &Value) -> Read<WrittenStatement> {
    let fields = Fields(value.as_object().ok_or_else(|| missing("a statement"))?);
    let mode = mode_of(fields.unsigned("mode")?).ok_or_else(|| missing("a statement's mode"))?;
    Ok(WrittenStatement { text: fields.text("text")?.to_owned(), mode })
}

fn account(value: &Value) -> Read<AccountName> {
    match value.as_array().map_or(&[][..], Vec::as_slice) {
        [Value::String(user), Value::String(host)] => Ok(AccountName::new(user, host)),
        _ => Err(missing("an account")),
    }
}

/// The parsing mode, one bit for each switch.
fn mode_bits(mode: Mode) -> u8 {
    let switches = [
        mode.ansi_quotes,
        mode.pipes_as_concat,
        mode.no_backslash_escapes,
        mode.high_not_precedence,
        mode.ignore_space,
    ];
    switches.iter().zip(0..).fold(0, |bits, (is_on, bit)| bits | u8::from(*is_on) << bit)
}

fn mode_of(bits: u64) -> Option<Mode> {
    let is_on = |bit: u32| bits >> bit & 1 == 1;
    (bits < 1 << 5).then(|| Mode {
        ansi_quotes: is_on(0),
        pipes_as_concat: is_on(1),
        no_backslash_escapes: is_on(2),
        high_not_precedence: is_on(3),
        ignore_space: is_on(4),
    })
}

/// The members of an object, all of which are required.
struct Fields<'d>(&'d Map<String, Value>);

impl<'d> Fields<'d> {
    fn value(&self, name: &str) -> Read<&'d Value> {
        self.0.get(name).ok_or_else(|| missing(name))
    }

    fn unsigned(&self, name: &str) -> Read<u64> {
        self.value(name)?.as_u64().ok_or_else(|| missing(name))
    }

    fn text(&self, name: &str) -> Read<&'d str> {
        self.value(name)?.as_str().ok_or_else(|| missing(name))
    }

    fn list(&self, name: &str) -> Read<&'d [Value]> {
        Ok(self.value(name)?.as_array().ok_or_else(|| missing(name))?)
    }

    fn members<T>(
        &self,
        name: &str,
        decode: impl Fn(&Value) -> Read<T>,
    ) -> Read<BTreeMap<String, T>> {
        let object = self.value(name)?.as_object().ok_or_else(|| missing(name))?;
        object.iter().map(|(name, value)| Ok((name.clone(), decode(value)?))).collect()
    }
}

/// Null, or the result of `decode`.
fn optional<'v, T>(
    value: &'v Value,
    what: &str,
    decode: impl Fn(&'v Value) -> Option<T>,
) -> Read<Option<T>> {
    match value {
        Value::Null => Ok(None),
        value => decode(value).map(Some).ok_or_else(|| missing(what)),
    }
}

fn missing(what: &str) -> DocumentError {
    DocumentError(format!("{what} is missing or has the wrong form"))
}
