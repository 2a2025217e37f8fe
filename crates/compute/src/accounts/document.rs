//! Accounts as they are stored: a JSON document each.
//!
//! ```json
//! {"version": 1, "user": "app", "host": "%", "plugin": "caching_sha2_password", "authentication": "…",
//!  "locked": false, "grants": {"global": ["SELECT"], "dynamic": {}, "schemas": {"shop": ["INSERT"]},
//!  "tables": [{"schema": "shop", "table": "t", "privileges": [], "columns": {"a": ["UPDATE"]}}]},
//!  "roles": [["reader", "%"]], "admin": [], "default_roles": []}
//! ```
//!
//! Invariant: what [`encode`] gives, [`decode`] takes back unchanged; anything else is refused, since an
//! account that is half understood would be one with other rights.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::account::{Account, AccountName};
use super::grants::{Grants, TableGrants};
use super::privilege::{Privilege, PrivilegeSet};

const VERSION: u64 = 1;

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
    });
    document.to_string().into_bytes()
}

/// The account of a document.
///
/// # Errors
/// If the document was written by a later version or is damaged.
pub(super) fn decode(document: &[u8]) -> Result<Account, DocumentError> {
    let document: Value =
        serde_json::from_slice(document).map_err(|error| DocumentError(error.to_string()))?;
    let fields = Fields(document.as_object().ok_or_else(|| missing("an object"))?);
    if fields.value("version")?.as_u64() != Some(VERSION) {
        return Err(DocumentError(format!("its version is not {VERSION}")));
    }
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

/// An object whose fields must be there.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn value(&self, name: &str) -> Result<&'a Value, DocumentError> {
        self.0.get(name).ok_or_else(|| missing(name))
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
