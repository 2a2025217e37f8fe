//! The tables of `LOCK TABLES`, and what a session may do while it is in force.
//!
//! ```text
//!   LOCK TABLES t READ, u AS x WRITE
//!     SELECT … FROM t      goes      INSERT INTO t   1099
//!     UPDATE u AS x        goes      SELECT … FROM u 1100
//! ```

use firn_sql::error::{Result, SqlError};

use crate::server::Writing;

/// A table that `LOCK TABLES` has locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockedTable {
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) alias: String,
    pub(super) writes: bool,
}

/// Without tables, `LOCK TABLES` is not in force.
#[derive(Default)]
pub(super) struct LockedTables {
    pub(super) tables: Vec<LockedTable>,
    /// The permission to write, if one of them was locked for writing.
    pub(super) writing: Option<Writing>,
}

impl LockedTables {
    /// Whether `LOCK TABLES` is not in force.
    pub(super) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Whether a table may be used by this name and alias. All may if `LOCK TABLES` is not in
    /// force.
    ///
    /// # Errors
    /// 1099, 1100.
    pub(super) fn judge(&self, schema: &str, table: &str, alias: &str, writes: bool) -> Result<()> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let is_it = |locked: &&LockedTable| {
            locked.schema == *schema
                && locked.table == *table
                && locked.alias.eq_ignore_ascii_case(alias)
        };
        match self.tables.iter().find(is_it) {
            None => {
                let message = format!("Table '{alias}' was not locked with LOCK TABLES");
                Err(SqlError::new(1100, message))
            }
            Some(locked) if writes && !locked.writes => {
                let message =
                    format!("Table '{alias}' was locked with a READ lock and can't be updated");
                Err(SqlError::new(1099, message))
            }
            Some(_) => Ok(()),
        }
    }
}
