//! What a statement needs to be allowed to do, and how it is refused.

use std::sync::Arc;

use firn_sql::error::{Result, SqlError};

use crate::accounts::{AccountName, Grants, Privilege};

/// A privilege that a statement needs on something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The privilege.
    pub privilege: Privilege,
    /// On which schema; `None`: everywhere.
    pub schema: Option<String>,
    /// On which table; `None`: on the whole schema.
    pub table: Option<String>,
    /// On which columns; none: on anything of the table.
    pub columns: Vec<Arc<str>>,
    /// The columns are all of the table, and were not named one by one.
    pub whole: bool,
}

/// What sort of statement a plan is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// `SELECT` and its like.
    Select,
    /// `SELECT … FOR UPDATE` and `FOR SHARE`: reads that lock.
    LockingSelect,
    /// `INSERT`
    Insert,
    /// `REPLACE`
    Replace,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
}

impl StatementKind {
    /// Whether rows are written.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, StatementKind::Select | StatementKind::LockingSelect)
    }

    fn word(self) -> &'static str {
        match self {
            StatementKind::Select | StatementKind::LockingSelect => "SELECT",
            StatementKind::Insert => "INSERT",
            StatementKind::Replace => "REPLACE",
            StatementKind::Update => "UPDATE",
            StatementKind::Delete => "DELETE",
        }
    }
}

impl Need {
    /// A privilege on a table.
    #[must_use]
    pub fn on_table(privilege: Privilege, schema: &str, table: &str) -> Need {
        let table = Some(table.to_owned());
        Need { table, ..Need::on_schema(privilege, schema) }
    }

    /// A privilege on a schema.
    #[must_use]
    pub fn on_schema(privilege: Privilege, schema: &str) -> Need {
        Need { schema: Some(schema.to_owned()), ..Need::everywhere(privilege) }
    }

    /// A privilege everywhere.
    #[must_use]
    pub fn everywhere(privilege: Privilege) -> Need {
        Need { privilege, schema: None, table: None, columns: Vec::new(), whole: false }
    }

    /// Whether the grants give it. What is made up (`information_schema`) everybody may read: it shows only
    /// what its reader may know of.
    #[must_use]
    pub fn is_met(&self, grants: &Grants) -> bool {
        match (&self.schema, &self.table) {
            (None, _) => grants.global.contains(self.privilege),
            (Some(schema), _) if is_open(schema) && self.privilege == Privilege::SELECT => true,
            (Some(schema), None) => grants.on_schema(schema).contains(self.privilege),
            (Some(schema), Some(_)) if grants.on_schema(schema).contains(self.privilege) => true,
            (Some(schema), Some(table)) => {
                let given = grants.on_table(schema, table);
                given.contains(self.privilege) || self.is_met_by_columns(grants, schema, table)
            }
        }
    }

    /// Whether grants on columns give it on all columns that are asked for; where none are, any will do.
    fn is_met_by_columns(&self, grants: &Grants, schema: &str, table: &str) -> bool {
        self.has_some_column(grants, schema, table)
            && self.missing_column(grants, schema, table).is_none()
    }

    fn has_some_column(&self, grants: &Grants, schema: &str, table: &str) -> bool {
        let own = grants.tables.get(&(schema.to_owned(), table.to_owned()));
        own.is_some_and(|own| own.columns.values().any(|given| given.contains(self.privilege)))
    }

    fn missing_column(&self, grants: &Grants, schema: &str, table: &str) -> Option<&Arc<str>> {
        let is_missing =
            |column: &&Arc<str>| !grants.on_column(schema, table, column).contains(self.privilege);
        self.columns.iter().find(is_missing)
    }

    /// The error for a session that lacks it.
    #[must_use]
    pub fn refusal(&self, grants: &Grants, account: &AccountName, host: &str) -> SqlError {
        let user = &account.user;
        match (&self.schema, &self.table) {
            (None, _) => SqlError::new(
                1227,
                format!(
                    "Access denied; you need (at least one of) the {} privilege(s) for this operation",
                    self.privilege.name
                ),
            ),
            (Some(schema), None) => SqlError::new(
                1044,
                format!(
                    "Access denied for user '{user}'@'{}' to database '{schema}'",
                    account.host
                ),
            ),
            (Some(schema), Some(table))
                if !self.whole && self.has_some_column(grants, schema, table) =>
            {
                let column = self.missing_column(grants, schema, table);
                let column = column.map_or("", |column| &**column);
                SqlError::new(
                    1143,
                    format!(
                        "{} command denied to user '{user}'@'{host}' for column '{column}' in table \
                         '{table}'",
                        self.privilege.name
                    ),
                )
            }
            (Some(_), Some(table)) => SqlError::new(
                1142,
                format!(
                    "{} command denied to user '{user}'@'{host}' for table '{table}'",
                    self.privilege.name
                ),
            ),
        }
    }
}

/// Schemas that show their readers only what they may know of.
fn is_open(schema: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|open| open.eq_ignore_ascii_case(schema))
}

/// Refuses unless all needs are met.
///
/// # Errors
/// 1142, 1143, 1044 or 1227 for the first that is not.
pub fn check(needs: &[Need], grants: &Grants, account: &AccountName, host: &str) -> Result<()> {
    match needs.iter().find(|need| !need.is_met(grants)) {
        Some(need) => Err(need.refusal(grants, account, host)),
        None => Ok(()),
    }
}

impl std::fmt::Display for StatementKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{Level, PrivilegeSet};

    fn select(columns: &[&str], whole: bool) -> Need {
        let columns = columns.iter().map(|column| Arc::from(*column)).collect();
        Need { columns, whole, ..Need::on_table(Privilege::SELECT, "s", "t") }
    }

    fn code(need: Need, grants: &Grants) -> u16 {
        let account = AccountName::new("u", "%");
        check(&[need], grants, &account, "here").map_or_else(|error| error.code, |()| 0)
    }

    #[test]
    fn grants_on_columns_let_statements_at_those_columns_only() {
        let mut grants = Grants::default();
        assert_eq!(code(select(&["a"], false), &grants), 1142);
        let given = PrivilegeSet::NONE.with(Privilege::SELECT);
        grants.give_on_column(("s".to_owned(), "t".to_owned()), "A", given);
        assert_eq!(code(select(&["a"], false), &grants), 0);
        assert_eq!(code(select(&[], false), &grants), 0, "COUNT(*) reads no column");
        assert_eq!(code(select(&["a", "b"], false), &grants), 1143);
        assert_eq!(code(select(&["a", "b"], true), &grants), 1142, "of * no column is named");
        assert_eq!(code(Need::on_table(Privilege::UPDATE, "s", "t"), &grants), 1142);
        grants.give(&Level::Table("s".to_owned(), "t".to_owned()), given);
        assert_eq!(code(select(&["a", "b"], false), &grants), 0);
    }
}
