//! What is refused while writing is not allowed: in a session or transaction that is `READ ONLY`,
//! and on a read-only server (`read_only`, `super_read_only`).
//!
//! ```text
//!   START TRANSACTION READ ONLY      INSERT 1792    CREATE TABLE commits first, and goes
//!   SET SESSION … READ ONLY          INSERT 1792    CREATE TABLE 1792
//!   read_only                        INSERT 1290    except with CONNECTION_ADMIN
//! ```
//!
//! Temporary tables can be written on a read-only server, but not in a read-only transaction.

use firn_sql::catalog::ddl;
use firn_sql::error::{Result, SqlError};
use firn_sql::grammar::ast::{MaintenanceOperation, Statement, TableLockKind};

use super::permission::Permission;
use crate::instance::WritesAllowed;
use crate::plan_cache::CachedPlan;

impl Permission<'_> {
    /// Refuses a statement that writes and is not planned.
    ///
    /// # Errors
    /// 1792, 1290
    pub(super) fn refuse_read_only(&self, statement: &Statement) -> Result<()> {
        if !changes(statement) {
            return Ok(());
        }
        let is_temporary = ddl::is_temporary(statement);
        let of_transaction = is_temporary && self.is_in_read_only_transaction();
        if of_transaction || self.transactions.next.read_only.unwrap_or(self.settings.read_only) {
            return Err(read_only_transaction());
        }
        if is_temporary { Ok(()) } else { self.refuse_on_read_only_server() }
    }

    /// Refuses a plan that writes tables other than temporary ones.
    ///
    /// # Errors
    /// 1290; on a node that follows another one, 1792 in a `READ ONLY` transaction, as there.
    pub(super) fn refuse_read_only_plan(&self, plan: &CachedPlan) -> Result<()> {
        if self.instance.writes_allowed() == WritesAllowed::All {
            return Ok(());
        }
        if self.is_in_read_only_transaction() && self.instance.freshness.is_some() {
            return Err(read_only_transaction());
        }
        let mut written = plan.plan.tables.iter().filter(|table| table.writes);
        match written.all(|table| self.is_temporary(&table.schema, &table.table)) {
            true => Ok(()),
            false => self.refuse_on_read_only_server(),
        }
    }

    fn is_in_read_only_transaction(&self) -> bool {
        self.transactions.open.as_ref().is_some_and(|open| open.lasting && open.read_only)
    }

    fn refuse_on_read_only_server(&self) -> Result<()> {
        let option = match self.instance.writes_allowed() {
            WritesAllowed::All => return Ok(()),
            WritesAllowed::Administrators if self.rights.grants.has_dynamic("CONNECTION_ADMIN") => {
                return Ok(());
            }
            WritesAllowed::Administrators => "--read-only",
            WritesAllowed::Nobody => "--super-read-only",
        };
        let message = format!(
            "The MySQL server is running with the {option} option so it cannot execute this statement"
        );
        Err(SqlError::new(1290, message))
    }
}

/// `Cannot execute statement in a READ ONLY transaction.`
pub(super) fn read_only_transaction() -> SqlError {
    SqlError::new(1792, "Cannot execute statement in a READ ONLY transaction.")
}

/// Whether a statement that is not planned has lasting effects.
fn changes(statement: &Statement) -> bool {
    match statement {
        Statement::CreateUser(_)
        | Statement::AlterUser(_)
        | Statement::SetPassword(_)
        | Statement::DropUser { .. }
        | Statement::RenameUser(_)
        | Statement::CreateRole { .. }
        | Statement::DropRole { .. }
        | Statement::Grant(_)
        | Statement::Revoke(_)
        | Statement::GrantRoles { .. }
        | Statement::RevokeRoles { .. }
        | Statement::LoadData(_) => true,
        Statement::TableMaintenance(work) => {
            matches!(work.operation, MaintenanceOperation::Optimize | MaintenanceOperation::Repair)
        }
        Statement::LockTables(locks) => locks.iter().any(|lock| lock.kind == TableLockKind::Write),
        other => ddl::is_ddl(other),
    }
}
