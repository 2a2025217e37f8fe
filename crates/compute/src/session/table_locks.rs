//! `LOCK TABLES` and `UNLOCK TABLES`.

use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{self, TableLockKind};

use super::definition_locks::DefinitionLocks;
use super::locked_tables::{LockedTable, LockedTables};
use super::permission::Permission;
use super::runner::StatementRunner;
use crate::accounts::Privilege;
use crate::accounts::need::Need;

/// Runs statements that lock tables in a session.
pub(super) struct TableLockStatements<'s> {
    pub(super) runner: &'s mut StatementRunner,
}

impl TableLockStatements<'_> {
    /// `LOCK TABLES`
    ///
    /// # Errors
    /// Unknown tables, locks that were not granted, 1142 without the privilege.
    pub(super) fn run_lock_tables(&mut self, locks: &[ast::TableLock]) -> Result<()> {
        self.runner.locked = LockedTables::default();
        self.runner.transactions.unlock_tables()?;
        let mut locked = Vec::new();
        for lock in locks {
            let schema = self.runner.state.connection.schema_of(&lock.table);
            let needs = [
                Need::on_schema(Privilege::LOCK_TABLES, &schema),
                Need::on_table(Privilege::SELECT, &schema, &lock.table.name),
            ];
            self.runner.rights.require(&needs)?;
            self.runner.catalog.table(&schema, &lock.table.name)?;
            let alias = lock.alias.as_deref().unwrap_or(&lock.table.name).to_owned();
            if locked.iter().any(|other: &LockedTable| other.alias.eq_ignore_ascii_case(&alias)) {
                return Err(SqlError::new(1066, format!("Not unique table/alias: '{alias}'")));
            }
            let table = lock.table.name.clone();
            let writes = lock.kind == TableLockKind::Write;
            locked.push(LockedTable { schema, table, alias, writes });
        }
        let writes = locked.iter().any(|one| one.writes);
        let writing = if writes { Permission::of(self.runner).begin_writing()? } else { None };
        DefinitionLocks::of(self.runner).lock_tables(LockedTables { tables: locked, writing })
    }

    /// `UNLOCK TABLES`
    ///
    /// # Errors
    /// If the log has failed.
    pub(super) fn run_unlock_tables(&mut self) -> Result<()> {
        self.runner.instance.server.release_read_lock(self.runner.facts.id);
        if !self.runner.locked.is_empty() {
            self.runner.locked = LockedTables::default();
            self.runner.transactions.unlock_tables()?;
        }
        Ok(())
    }
}
