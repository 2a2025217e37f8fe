//! The stored form of accounts: a JSON document each.
//!
//! ```json
//! {"version": 2, "user": "app", "host": "%", "plugin": "caching_sha2_password", "authentication": "…",
//!  "locked": false, "grants": {"global": ["SELECT"], "dynamic": {}, "schemas": {"shop": ["INSERT"]},
//!  "tables": [{"schema": "shop", "table": "t", "privileges": [], "columns": {"a": ["UPDATE"]}}]},
//!  "roles": [["reader", "%"]], "admin": [], "default_roles": [],
//!  "policy": {"lifetime_days": null, "history": 5, "reuse_days": null, "requires_current": null,
//!   "failed_attempts": 3, "block_days": 1, "limits": [0, 0, 0, 10], "changed_s": 1795285539,
//!   "former": [["caching_sha2_password", "…", 1795199139]]}}
//! ```
//!
//! Version 1 has no policy. `block_days` is null if failed logins block until the account is
//! unlocked. The limits are statements, changes and logins per hour, and simultaneous connections.
//!
//! Invariant: [`decode`] returns what [`encode`] was given, unchanged. It refuses anything else,
//! because an account that is understood only in part would have other rights.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::account::{Account, AccountName};
use super::grants::{Grants, TableGrants};
use super::policy::{Block, FormerPassword, Limits, Policy};
use super::privilege::{Privilege, PrivilegeSet};

const VERSION: u64 = 2;

/// Why a stored account cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a stored account cannot be read: {0}")]
pub struct DocumentError(String);

/// The document of an account.
#[must_use]
pub(super) fn encode(account: &Account) -> Vec<u8> {
    let document = json!({
        "version": VERSION,
        "user": account.name.user,
        "host": account.name.host,
        "plugin": account.plugin,
        "authentication": account.authentication,
        "locked": account.locked,
        "expired": account.expired,
        "requires_tls": account.requires_tls,
        "attribute": account.attribute,
        "grants": encode_grants(&account.grants),
        "roles": encode_names(&account.roles),
        "admin": encode_names(&account.admin),
        "default_roles": encode_names(&account.default_roles),
        "policy": encode_policy(&account.policy),
    });
    document.to_string().into_bytes()
}

/// The account of a document.
///
/// # Errors
/// If a later version wrote the document, or it is damaged.
pub(super) fn decode(document: &[u8]) -> Result<Account, DocumentError> {
    let document: Value =
        serde_json::from_slice(document).map_err(|error| DocumentError(error.to_string()))?;
    let fields = Fields(document.as_object().ok_or_else(|| missing("an object"))?);
    let version = fields.value("version")?.as_u64();
    let policy = match version {
        Some(1) => Policy::default(),
        Some(VERSION) => decode_policy(&Fields(fields.object("policy")?))?,
        _ => return Err(DocumentError(format!("its version is not {VERSION}"))),
    };
    Ok(Account {
        name: AccountName::new(fields.text("user")?, fields.text("host")?),
        plugin: fields.text("plugin")?.to_owned(),
        authentication: fields.text("authentication")?.to_owned(),
        locked: fields.switch("locked")?,
        expired: fields.switch("expired")?,
        requires_tls: fields.switch("requires_tls")?,
        attribute: fields.value("attribute")?.as_str().map(str::to_owned),
        grants: decode_grants(&Fields(fields.object("grants")?))?,
        roles: decode_names(fields.value("roles")?)?,
        admin: decode_names(fields.value("admin")?)?,
        default_roles: decode_names(fields.value("default_roles")?)?,
        policy,
    })
}

fn encode_policy(policy: &Policy) -> Value {
    let Limits { questions, updates, connections, user_connections } = policy.limits;
    let former = policy.former.iter();
    let former = former.map(|one| json!([one.plugin, one.authentication, one.changed_s]));
    json!({
        "lifetime_days": policy.lifetime_days,
        "history": policy.history,
        "reuse_days": policy.reuse_days,
        "requires_current": policy.requires_current,
        "failed_attempts": policy.failed_attempts,
        "block_days": match policy.block {
            Block::Days(days) => Some(days),
            Block::Unbounded => None,
        },
        "limits": [questions, updates, connections, user_connections],
        "changed_s": policy.changed_s,
        "former": former.collect::<Value>(),
    })
}

fn decode_policy(fields: &Fields<'_>) -> Result<Policy, DocumentError> {
    let limits = fields.value("limits")?.as_array().ok_or_else(|| missing("limits"))?;
    let limit =
        |at: usize| limits.get(at).and_then(Value::as_u64).ok_or_else(|| missing("a limit"));
    let former = fields.value("former")?.as_array().ok_or_else(|| missing("former"))?;
    let former_password = |one: &Value| {
        Some(FormerPassword {
            plugin: one.get(0)?.as_str()?.to_owned(),
            authentication: one.get(1)?.as_str()?.to_owned(),
            changed_s: one.get(2)?.as_u64()?,
        })
    };
    let former: Option<Vec<FormerPassword>> = former.iter().map(former_password).collect();
    Ok(Policy {
        lifetime_days: fields.maybe_number("lifetime_days")?,
        history: fields.maybe_number("history")?,
        reuse_days: fields.maybe_number("reuse_days")?,
        requires_current: match fields.value("requires_current")? {
            Value::Null => None,
            value => Some(value.as_bool().ok_or_else(|| missing("requires_current"))?),
        },
        failed_attempts: fields
            .maybe_number("failed_attempts")?
            .ok_or_else(|| missing("failed_attempts"))?,
        block: fields.maybe_number("block_days")?.map_or(Block::Unbounded, Block::Days),
        limits: Limits {
            questions: limit(0)?,
            updates: limit(1)?,
            connections: limit(2)?,
            user_connections: limit(3)?,
        },
        changed_s: fields.maybe_number("changed_s")?,
        former: former.ok_or_else(|| missing("a former password"))?,
    })
}

fn encode_names(names: &BTreeSet<AccountName>) -> Value {
    names.iter().map(|name| json!([name.user, name.host])).collect()
}

fn encode_set(privileges: PrivilegeSet) -> Value {
    privileges.iter().map(|privilege| Value::from(privilege.name)).collect()
}

fn encode_sets(sets: &BTreeMap<String, PrivilegeSet>) -> Value {
    let sets = sets.iter().map(|(name, set)| (name.clone(), encode_set(*set)));
    Value::Object(sets.collect())
}

fn encode_grants(grants: &Grants) -> Value {
    let tables = grants.tables.iter().map(|((schema, table), grants)| {
        json!({
            "schema": schema,
            "table": table,
            "privileges": encode_set(grants.privileges),
            "columns": encode_sets(&grants.columns),
        })
    });
    json!({
        "global": encode_set(grants.global),
        "dynamic": grants.dynamic,
        "schemas": encode_sets(&grants.schemas),
        "tables": tables.collect::<Value>(),
    })
}

/// An object with required fields.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn value(&self, name: &str) -> Result<&'a Value, DocumentError> {
        self.0.get(name).ok_or_else(|| missing(name))
    }

    fn maybe_number(&self, name: &str) -> Result<Option<u64>, DocumentError> {
        match self.value(name)? {
            Value::Null => Ok(None),
            value => value.as_u64().map(Some).ok_or_else(|| missing(name)),
        }
    }

    fn text(&self, name: &str) -> Result<&'a str, DocumentError> {
        self.value(name)?.as_str().ok_or_else(|| missing(name))
    }

    fn switch(&self, name: &str) -> Result<bool, DocumentError> {
        self.value(name)?.as_bool().ok_or_else(|| missing(name))
    }

    fn object(&self, name: &str) -> Result<&'a Map<String, Value>, DocumentError> {
        self.value(name)?.as_object().ok_or_else(|| missing(name))
    }

    fn list(&self, name: &str) -> Result<&'a Vec<Value>, DocumentError> {
        self.value(name)?.as_array().ok_or_else(|| missing(name))
    }
}

fn missing(what: &str) -> DocumentError {
    DocumentError(format!("{what} is missing or of another kind"))
}

fn decode_names(names: &Value) -> Result<BTreeSet<AccountName>, DocumentError> {
    let names = names.as_array().ok_or_else(|| missing("a list of names"))?;
    let name = |pair: &Value| match (pair[0].as_str(), pair[1].as_str()) {
        (Some(user), Some(host)) => Ok(AccountName::new(user, host)),
        _ => Err(missing("a name")),
    };
    names.iter().map(name).collect()
}

fn decode_set(set: &Value) -> Result<PrivilegeSet, DocumentError> {
    let names = set.as_array().ok_or_else(|| missing("a list of privileges"))?;
    names.iter().try_fold(PrivilegeSet::NONE, |set, name| {
        let known = name.as_str().and_then(Privilege::named);
        known.map(|privilege| set.with(privilege)).ok_or_else(|| missing("a known privilege"))
    })
}

fn decode_sets(sets: &Map<String, Value>) -> Result<BTreeMap<String, PrivilegeSet>, DocumentError> {
    sets.iter().map(|(name, set)| Ok((name.clone(), decode_set(set)?))).collect()
}

fn decode_grants(fields: &Fields<'_>) -> Result<Grants, DocumentError> {
    let dynamic = fields.object("dynamic")?.iter();
    let dynamic = dynamic.map(|(name, grantable)| match grantable.as_bool() {
        Some(grantable) => Ok((name.clone(), grantable)),
        None => Err(missing("a switch")),
    });
    let tables = fields.list("tables")?.iter().map(|table| {
        let fields = Fields(table.as_object().ok_or_else(|| missing("a table"))?);
        let key = (fields.text("schema")?.to_owned(), fields.text("table")?.to_owned());
        let privileges = decode_set(fields.value("privileges")?)?;
        Ok((key, TableGrants { privileges, columns: decode_sets(fields.object("columns")?)? }))
    });
    Ok(Grants {
        global: decode_set(fields.value("global")?)?,
        dynamic: dynamic.collect::<Result<_, _>>()?,
        schemas: decode_sets(fields.object("schemas")?)?,
        tables: tables.collect::<Result<_, DocumentError>>()?,
    })
}
