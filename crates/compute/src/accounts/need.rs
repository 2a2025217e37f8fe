//! The privileges that a statement needs, and the errors without them.

use std::sync::Arc;

use firn_sql::error::{Result, SqlError};
use firn_sql::plan::{NeedOf, ViewUser};

use super::{AccountName, Grants, Privilege};

/// A privilege that a statement needs on something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub privilege: Privilege,
    /// The schema; `None`: everywhere.
    pub schema: Option<String>,
    /// The table; `None`: the whole schema.
    pub table: Option<String>,
    /// The part of the table.
    pub of: NeedOf,
    /// The columns, if it is needed on columns.
    pub columns: Vec<Arc<str>>,
    /// The view through which the table is used.
    pub through: Option<Arc<ViewUser>>,
}

impl Need {
    /// A privilege on a table, or on some column of it.
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

    #[must_use]
    pub fn everywhere(privilege: Privilege) -> Need {
        let (of, columns) = (NeedOf::Table, Vec::new());
        Need { privilege, schema: None, table: None, of, columns, through: None }
    }

    /// Whether the grants include it. Every user may read virtual tables (`information_schema`):
    /// they show only what the reader may see.
    #[must_use]
    #[inline]
    pub fn is_met(&self, grants: &Grants) -> bool {
        grants.global.contains(self.privilege) || self.is_met_below(grants)
    }

    fn is_met_below(&self, grants: &Grants) -> bool {
        match (&self.schema, &self.table) {
            (None, _) => false,
            (Some(schema), _) if is_open(schema) && self.privilege == Privilege::SELECT => true,
            (Some(schema), None) => grants.on_schema(schema).contains(self.privilege),
            (Some(schema), Some(table)) => {
                let given = grants.on_table(schema, table);
                given.contains(self.privilege) || self.is_met_otherwise(grants, schema, table)
            }
        }
    }

    /// Whether a table's privilege is given in another way than by a grant on the table itself.
    fn is_met_otherwise(&self, grants: &Grants, schema: &str, table: &str) -> bool {
        match self.of {
            NeedOf::Table => self.has_some_column(grants, schema, table),
            NeedOf::LockedTable => {
                let given = grants.on_table(schema, table);
                given.contains(Privilege::DELETE) || given.contains(Privilege::LOCK_TABLES)
            }
            NeedOf::Columns | NeedOf::AllColumns => {
                self.missing_column(grants, schema, table).is_none()
            }
        }
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

    fn is_of_same_table(&self, other: &Need) -> bool {
        self.of == other.of && self.schema == other.schema && self.table == other.table
    }

    /// The error for a session that lacks it; `all` are the statement's needs.
    fn refusal(&self, all: &[Need], who: &Who<'_>) -> SqlError {
        let AccountName { user, host: account_host } = who.account;
        let (Some(schema), table) = (&self.schema, &self.table) else {
            return denied(self.privilege.name);
        };
        let Some(table) = table else {
            let message =
                format!("Access denied for user '{user}'@'{account_host}' to database '{schema}'");
            return SqlError::new(1044, message);
        };
        match self.of {
            NeedOf::Table => {
                let lacks = |privilege: &&Privilege| {
                    let is_it =
                        |need: &&Need| need.privilege == **privilege && need.is_of_same_table(self);
                    all.iter().filter(is_it).any(|need| !need.is_met(who.grants))
                };
                if self.privilege == Privilege::REFERENCES {
                    return table_denied("REFERENCES", &format!("{schema}.{table}"), who);
                }
                let names = Privilege::ALL.iter().filter(lacks).map(|privilege| privilege.name);
                table_denied(&names.collect::<Vec<_>>().join(", "), table, who)
            }
            NeedOf::LockedTable => table_denied("SELECT with locking clause", table, who),
            NeedOf::Columns | NeedOf::AllColumns => {
                let column = self.missing_column(who.grants, schema, table);
                // As in MySQL, who may read the first column of `*` is not told which one is
                // missing.
                if self.of == NeedOf::AllColumns && column != self.columns.first() {
                    return table_denied(self.privilege.name, table, who);
                }
                let column = column.map_or("", |column| &**column);
                column_denied(self.privilege.name, column, table, who)
            }
        }
    }
}

/// The session whose privileges are checked.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// The session's privileges.
    pub grants: &'a Grants,
    pub account: &'a AccountName,
    /// Where its client comes from.
    pub host: &'a str,
}

/// The error if one of some global privileges is needed, which are listed.
#[must_use]
pub fn denied(privileges: &str) -> SqlError {
    let message = format!(
        "Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
    );
    SqlError::new(1227, message)
}

/// The error for a command on a table.
#[must_use]
pub fn table_denied(command: &str, table: &str, who: &Who<'_>) -> SqlError {
    let (user, host) = (&who.account.user, who.host);
    let message = format!("{command} command denied to user '{user}'@'{host}' for table '{table}'");
    SqlError::new(1142, message)
}

/// The error for a command on a column.
#[must_use]
pub fn column_denied(command: &str, column: &str, table: &str, who: &Who<'_>) -> SqlError {
    let (user, host) = (&who.account.user, who.host);
    let message = format!(
        "{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'"
    );
    SqlError::new(1143, message)
}

/// Whether a schema shows its readers only what they may see.
#[must_use]
pub fn is_open(schema: &str) -> bool {
    ["information_schema", "performance_schema"]
        .iter()
        .any(|open| open.eq_ignore_ascii_case(schema))
}

/// Refuses unless all needs for the names in the statement itself are met: first those on tables,
/// then those on columns.
///
/// # Errors
/// 1142, 1143, 1044 or 1227 for the first unmet one.
pub fn check(needs: &[Need], who: &Who<'_>) -> Result<()> {
    check_tables(needs, who)?;
    refuse_first(needs, who, |need| need.of.is_of_columns())
}

/// As [`check`], without the needs on columns.
///
/// # Errors
/// As [`check`].
pub fn check_tables(needs: &[Need], who: &Who<'_>) -> Result<()> {
    refuse_first(needs, who, |need| !need.of.is_of_columns())
}

fn refuse_first(needs: &[Need], who: &Who<'_>, wanted: impl Fn(&Need) -> bool) -> Result<()> {
    let is_unmet =
        |need: &&Need| wanted(need) && need.through.is_none() && !need.is_met(who.grants);
    match needs.iter().find(is_unmet) {
        Some(need) => Err(need.refusal(needs, who)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{Level, PrivilegeSet};

    fn select(columns: &[&str]) -> Vec<Need> {
        let columns: Vec<Arc<str>> = columns.iter().map(|column| Arc::from(*column)).collect();
        let table = Need::on_table(Privilege::SELECT, "s", "t");
        let of_columns = Need { columns, of: NeedOf::Columns, ..table.clone() };
        vec![table, of_columns]
    }

    fn said(needs: &[Need], grants: &Grants) -> String {
        let account = AccountName::new("u", "%");
        let who = Who { grants, account: &account, host: "here" };
        check(needs, &who).map_or_else(|error| error.message, |()| String::new())
    }

    #[test]
    fn grants_on_columns_let_statements_at_those_columns_only() {
        let mut grants = Grants::default();
        let denied = "SELECT command denied to user 'u'@'here' for table 't'";
        assert_eq!(said(&select(&["a"]), &grants), denied);
        let given = PrivilegeSet::NONE.with(Privilege::SELECT);
        grants.give_on_column(("s".to_owned(), "t".to_owned()), "A", given);
        assert_eq!(said(&select(&["a"]), &grants), "");
        assert_eq!(said(&select(&[]), &grants), "", "COUNT(*) reads no column");
        let of_column = "SELECT command denied to user 'u'@'here' for column 'b' in table 't'";
        assert_eq!(said(&select(&["a", "b"]), &grants), of_column);
        grants.give(&Level::Table("s".to_owned(), "t".to_owned()), given);
        assert_eq!(said(&select(&["a", "b"]), &grants), "");
    }

    #[test]
    fn all_that_lacks_on_a_table_is_told_at_once() {
        let need = |privilege| Need::on_table(privilege, "s", "t");
        let needs = [need(Privilege::DELETE), need(Privilege::SELECT), need(Privilege::INSERT)];
        let mut grants = Grants::default();
        grants.give(&Level::Schema("s".to_owned()), PrivilegeSet::NONE.with(Privilege::INSERT));
        let denied = "SELECT, DELETE command denied to user 'u'@'here' for table 't'";
        assert_eq!(said(&needs, &grants), denied);
    }
}
