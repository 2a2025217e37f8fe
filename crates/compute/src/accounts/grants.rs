//! The privileges of an account, level by level.

use std::collections::{BTreeMap, BTreeSet};

use firn_sql::catalog::notation::identifier;

use super::account::{AccountName, matches_pattern};
use super::privilege::{DYNAMIC, Privilege, PrivilegeSet};

/// Dynamic privileges that `SUPER` does not include.
const NOT_OF_SUPER: [&str; 10] = [
    "BACKUP_ADMIN",
    "CLONE_ADMIN",
    "FLUSH_OPTIMIZER_COSTS",
    "FLUSH_PRIVILEGES",
    "FLUSH_STATUS",
    "FLUSH_TABLES",
    "FLUSH_USER_RESOURCES",
    "OPTIMIZE_LOCAL_TABLE",
    "SYSTEM_USER",
    "XA_RECOVER_ADMIN",
];

/// The object of a privilege.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// `*.*`
    Global,
    /// `schema.*`; the name may be a pattern.
    Schema(String),
    /// `schema.table`
    Table(String, String),
}

/// The privileges of an account on a table beyond those on its schema.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableGrants {
    /// On the whole table.
    pub privileges: PrivilegeSet,
    /// On columns.
    pub columns: BTreeMap<String, PrivilegeSet>,
}

/// The privileges of an account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Everywhere.
    pub global: PrivilegeSet,
    /// Dynamic privileges; true with `GRANT OPTION`.
    pub dynamic: BTreeMap<String, bool>,
    /// On schemas, by pattern.
    pub schemas: BTreeMap<String, PrivilegeSet>,
    /// On tables, by schema and name.
    pub tables: BTreeMap<(String, String), TableGrants>,
}

impl Grants {
    /// Everything, with `GRANT OPTION`.
    #[must_use]
    pub fn everything() -> Grants {
        let global = PrivilegeSet::all(|_| true).with(Privilege::GRANT_OPTION);
        let dynamic = DYNAMIC.iter().map(|name| ((*name).to_owned(), true)).collect();
        Grants { global, dynamic, ..Grants::default() }
    }

    /// The meaning of `ALL PRIVILEGES` at a level.
    #[must_use]
    pub fn all_at(level: &Level) -> PrivilegeSet {
        PrivilegeSet::all(|privilege| match level {
            Level::Global => true,
            Level::Schema(_) => privilege.holds_on_schemas(),
            Level::Table(..) => privilege.holds_on_tables(),
        })
    }

    /// Whether all of `wanted` is granted on a table, also through the schema or globally.
    #[must_use]
    pub fn on_table(&self, schema: &str, table: &str) -> PrivilegeSet {
        let on_schema = self.on_schema(schema);
        if self.tables.is_empty() {
            return on_schema;
        }
        let own = self.tables.get(&(schema.to_owned(), table.to_owned()));
        on_schema.union(own.map_or(PrivilegeSet::NONE, |grants| grants.privileges))
    }

    /// The privileges on all of a schema.
    #[must_use]
    pub fn on_schema(&self, schema: &str) -> PrivilegeSet {
        let fitting = self.schemas.iter().filter(|(pattern, _)| matches_pattern(pattern, schema));
        fitting.fold(self.global, |given, (_, privileges)| given.union(*privileges))
    }

    /// The privileges on a column, also through the table.
    #[must_use]
    pub fn on_column(&self, schema: &str, table: &str, column: &str) -> PrivilegeSet {
        let own = self.tables.get(&(schema.to_owned(), table.to_owned()));
        let own = own.and_then(|grants| grants.columns.get(&column.to_lowercase()));
        self.on_table(schema, table).union(own.copied().unwrap_or_default())
    }

    /// Whether a schema is listed: some privilege is granted on it or on something in it.
    #[must_use]
    pub fn sees_schema(&self, schema: &str) -> bool {
        self.global.contains(Privilege::SHOW_DATABASES)
            || self.holds_on_schema(schema)
            || self.schemas.keys().any(|pattern| matches_pattern(pattern, schema))
            || self.tables.keys().any(|(of, _)| of == schema)
    }

    /// Whether a schema can be the current one: some privilege is granted on it or on something in
    /// it, and not only the right to grant to others.
    #[must_use]
    pub fn uses_schema(&self, schema: &str) -> bool {
        let only_hands_on = PrivilegeSet::NONE.with(Privilege::GRANT_OPTION);
        let gives = |grants: &TableGrants| {
            !grants.columns.is_empty() || !grants.privileges.without(only_hands_on).is_empty()
        };
        let mut within = self.tables.iter().filter(|((of, _), _)| of == schema);
        self.holds_on_schema(schema) || within.any(|(_, grants)| gives(grants))
    }

    /// Whether the tables of a schema are listed: some privilege is granted on it or on something
    /// in it.
    #[must_use]
    pub fn lists_schema(&self, schema: &str) -> bool {
        self.holds_on_schema(schema) || self.tables.keys().any(|(of, _)| of == schema)
    }

    fn holds_on_schema(&self, schema: &str) -> bool {
        let all = PrivilegeSet::all(Privilege::holds_on_schemas);
        !self.on_schema(schema).intersection(all).is_empty()
    }

    /// Whether any privilege is granted on a table or its columns, so that it is listed.
    #[must_use]
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        let all = PrivilegeSet::all(Privilege::holds_on_tables);
        !self.on_schema(schema).intersection(all).is_empty() || self.has_own(schema, table)
    }

    /// Whether some privilege is granted on this very table or its columns.
    #[must_use]
    pub fn has_own(&self, schema: &str, table: &str) -> bool {
        self.tables.contains_key(&(schema.to_owned(), table.to_owned()))
    }

    /// Whether a table's definition may be shown: some privilege is granted on the table itself.
    #[must_use]
    pub fn defines_table(&self, schema: &str, table: &str) -> bool {
        let all = PrivilegeSet::all(Privilege::holds_on_tables);
        !self.on_table(schema, table).intersection(all).is_empty()
    }

    /// The privileges on a column that `information_schema` shows, as a list with commas.
    #[must_use]
    pub fn shown_on_column(&self, schema: &str, table: &str, column: &str) -> String {
        let given = self.on_column(schema, table, column);
        let of_columns = Privilege::ALL.iter().filter(|one| one.holds_on_columns());
        let held = of_columns.filter(|one| given.contains(**one));
        held.map(|one| one.name.to_lowercase()).collect::<Vec<_>>().join(",")
    }

    /// Whether a dynamic privilege is granted. `SUPER` includes those that were split off from it.
    #[must_use]
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.dynamic.contains_key(name)
            || self.global.contains(Privilege::SUPER) && !NOT_OF_SUPER.contains(&name)
    }

    /// Whether only accounts with `SYSTEM_USER` may change this account.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.dynamic.contains_key("SYSTEM_USER")
    }

    /// Adds privileges at a level.
    pub fn give(&mut self, level: &Level, privileges: PrivilegeSet) {
        if privileges.is_empty() {
            return;
        }
        let given = self.entry(level);
        *given = given.union(privileges);
    }

    fn entry(&mut self, level: &Level) -> &mut PrivilegeSet {
        match level {
            Level::Global => &mut self.global,
            Level::Schema(schema) => self.schemas.entry(schema.clone()).or_default(),
            Level::Table(schema, table) => {
                let key = (schema.clone(), table.clone());
                &mut self.tables.entry(key).or_default().privileges
            }
        }
    }

    /// Adds privileges on columns of a table.
    pub fn give_on_column(&mut self, table: (String, String), column: &str, given: PrivilegeSet) {
        let columns = &mut self.tables.entry(table).or_default().columns;
        let entry = columns.entry(column.to_lowercase()).or_default();
        *entry = entry.union(given);
    }

    /// Removes privileges at a level. False if there was no grant at that level.
    pub fn take(&mut self, level: &Level, privileges: PrivilegeSet) -> bool {
        let is_there = match level {
            Level::Global => true,
            Level::Schema(schema) => self.schemas.contains_key(schema),
            Level::Table(schema, table) => {
                self.tables.contains_key(&(schema.clone(), table.clone()))
            }
        };
        if is_there {
            let given = self.entry(level);
            *given = given.without(privileges);
            self.forget_empty();
        }
        is_there
    }

    /// Removes privileges on a column. False if there were none.
    pub fn take_on_column(
        &mut self,
        table: &(String, String),
        column: &str,
        privileges: PrivilegeSet,
    ) -> bool {
        let columns = self.tables.get_mut(table).map(|grants| &mut grants.columns);
        let entry = columns.and_then(|columns| columns.get_mut(&column.to_lowercase()));
        let Some(entry) = entry else { return false };
        *entry = entry.without(privileges);
        self.forget_empty();
        true
    }

    fn forget_empty(&mut self) {
        self.schemas.retain(|_, privileges| !privileges.is_empty());
        self.tables.retain(|_, grants| {
            grants.columns.retain(|_, privileges| !privileges.is_empty());
            !grants.privileges.is_empty() || !grants.columns.is_empty()
        });
    }

    /// Adds another account's privileges, as for an account with its roles.
    pub fn add(&mut self, other: &Grants) {
        self.global = self.global.union(other.global);
        for (name, grantable) in &other.dynamic {
            *self.dynamic.entry(name.clone()).or_default() |= *grantable;
        }
        for (schema, privileges) in &other.schemas {
            self.give(&Level::Schema(schema.clone()), *privileges);
        }
        for (table, grants) in &other.tables {
            self.give(&Level::Table(table.0.clone(), table.1.clone()), grants.privileges);
            for (column, privileges) in &grants.columns {
                self.give_on_column(table.clone(), column, *privileges);
            }
        }
    }

    /// The lines of `SHOW GRANTS`, without roles.
    #[must_use]
    pub fn shown(&self, name: &AccountName) -> Vec<String> {
        let to = name.quoted();
        let mut lines = vec![line(self.global, &Level::Global, "*.*", &to)];
        lines.extend(self.dynamic_lines(&to));
        for (schema, privileges) in &self.schemas {
            let on = format!("{}.*", identifier(schema));
            lines.push(line(*privileges, &Level::Schema(schema.clone()), &on, &to));
        }
        for ((schema, table), grants) in &self.tables {
            let on = format!("{}.{}", identifier(schema), identifier(table));
            let level = Level::Table(schema.clone(), table.clone());
            if grants.columns.is_empty() {
                lines.push(line(grants.privileges, &level, &on, &to));
            } else {
                let grantable = grants.privileges.contains(Privilege::GRANT_OPTION);
                let option = if grantable { " WITH GRANT OPTION" } else { "" };
                lines.push(format!("GRANT {} ON {on} TO {to}{option}", with_columns(grants)));
            }
        }
        lines
    }

    fn dynamic_lines(&self, to: &str) -> Vec<String> {
        let lines = [false, true].map(|grantable| {
            let names = self.dynamic.iter().filter(|(_, given)| **given == grantable);
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            let option = if grantable { " WITH GRANT OPTION" } else { "" };
            (!names.is_empty()).then(|| format!("GRANT {} ON *.* TO {to}{option}", names.join(",")))
        });
        lines.into_iter().flatten().collect()
    }
}

fn line(privileges: PrivilegeSet, level: &Level, on: &str, to: &str) -> String {
    let all = Grants::all_at(level);
    let plain = privileges.without(PrivilegeSet::NONE.with(Privilege::GRANT_OPTION));
    let names = match plain {
        plain if plain.is_empty() => "USAGE".to_owned(),
        plain if plain == all && *level != Level::Global => "ALL PRIVILEGES".to_owned(),
        plain => plain.iter().map(|privilege| privilege.name).collect::<Vec<_>>().join(", "),
    };
    let option = match privileges.contains(Privilege::GRANT_OPTION) {
        true => " WITH GRANT OPTION",
        false => "",
    };
    format!("GRANT {names} ON {on} TO {to}{option}")
}

/// Privileges of a table with those of its columns: `INSERT (`a`, `b`), SELECT`.
fn with_columns(grants: &TableGrants) -> String {
    let mut parts = Vec::new();
    let named = Privilege::ALL.iter().copied();
    for privilege in named.filter(|privilege| *privilege != Privilege::GRANT_OPTION) {
        let columns = grants.columns.iter().filter(|(_, given)| given.contains(privilege));
        let columns: BTreeSet<String> = columns.map(|(column, _)| identifier(column)).collect();
        if grants.privileges.contains(privilege) {
            parts.push(privilege.name.to_owned());
        } else if !columns.is_empty() {
            let columns: Vec<String> = columns.into_iter().collect();
            parts.push(format!("{} ({})", privilege.name, columns.join(", ")));
        }
    }
    parts.join(", ")
}
