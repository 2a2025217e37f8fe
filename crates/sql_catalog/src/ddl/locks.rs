//! The metadata locks that changes of definitions take, and how their waits end.
//!
//! ```text
//!   DROP, TRUNCATE, RENAME          Exclusive
//!   ALTER, in place                 Upgradable ─────────────► Exclusive
//!   ALTER that builds an index      Upgradable ─► Exclusive ─► Upgradable (build) ─► Exclusive
//!   ALTER that copies               Upgradable ─► NoWrite (copy) ──────────────────► Exclusive
//! ```
//!
//! Names are looked up again once their tables are locked: what is found then stays as it is. The
//! session gives the locks back when the statement has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::rows::{
    BuildObserver, BuildProgress, IsolationLevel, LockDuration, LockPatience, MetadataLock,
    RowsError, RowsResult, TableRef, Transaction,
};
use firn_base::TableId;
use firn_sql_grammar::ast;
use firn_sql_types::error::Result;

use super::super::model::{ForeignKeyModel, TableModel};
use super::{DdlContext, from_rows, is_temporary_table};

/// A table with what orders it among others: schema and name.
type NamedId = (Arc<str>, Arc<str>, TableId);

fn named(table: &TableModel) -> NamedId {
    (Arc::clone(&table.schema), Arc::clone(&table.name), table.id)
}

impl DdlContext<'_> {
    fn acquire(&self, table: TableId, lock: MetadataLock) -> RowsResult<()> {
        let patience = LockPatience {
            timeout: self.lock_wait_timeout,
            cancelled: Some(self.cancelled),
            transaction: None,
        };
        self.locks.acquire(table, lock, LockDuration::Transaction, &patience)
    }

    /// Locks a table; a temporary one is the session's own and needs no lock. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock(&self, table: &TableModel, lock: MetadataLock) -> Result<()> {
        match is_temporary_table(table) {
            true => Ok(()),
            false => self.lock_id(table.id, lock),
        }
    }

    /// Locks a stored table. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_id(&self, table: TableId, lock: MetadataLock) -> Result<()> {
        self.acquire(table, lock).map_err(from_rows)
    }

    /// Locks the tables and views that names mean, in one order for all statements. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_names<'n>(
        &self,
        names: impl IntoIterator<Item = &'n ast::TableName>,
        lock: MetadataLock,
    ) -> Result<()> {
        let names: Vec<&ast::TableName> = names.into_iter().collect();
        self.lock_found(lock, || {
            let found = names.iter().filter_map(|name| {
                let schema = self.schema_of(name).ok()?;
                self.catalog.find_table(schema, &name.name).ok()?
            });
            found.filter(|table| !is_temporary_table(table)).map(|table| named(&table)).collect()
        })
    }

    /// Locks all tables of a schema. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_schema(&self, schema: &str, lock: MetadataLock) -> Result<()> {
        let node = self.catalog.shared().node();
        self.lock_found(lock, || {
            let tables = node.tables_of(schema).unwrap_or_default();
            let named = |table: &TableRef| {
                let definition = table.definition();
                let names = (definition.schema_name.as_str(), definition.name.as_str());
                (names.0.into(), names.1.into(), definition.table_id)
            };
            tables.iter().map(named).collect()
        })
    }

    /// Locks the tables that foreign keys refer to: they learn of their children. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_parents(&self, keys: &[ForeignKeyModel]) -> Result<()> {
        let shared = self.catalog.shared();
        self.lock_found(MetadataLock::Exclusive, || {
            let parents = keys
                .iter()
                .filter_map(|key| shared.find_table(&key.parent_schema, &key.parent_table).ok()?);
            parents.map(|parent| named(&parent)).collect()
        })
    }

    /// Locks what `find` finds, until it finds nothing else. In the order of names, as MySQL does.
    fn lock_found(&self, lock: MetadataLock, find: impl Fn() -> Vec<NamedId>) -> Result<()> {
        let sorted = || {
            let mut found = find();
            found.sort();
            found.dedup();
            found
        };
        let mut tables = sorted();
        loop {
            tables.iter().try_for_each(|(_, _, table)| self.lock_id(*table, lock))?;
            let now = sorted();
            if now == tables {
                return Ok(());
            }
            tables = now;
        }
    }

    /// Whether the statement is to go on.
    ///
    /// # Errors
    /// 1317.
    pub(super) fn check_cancelled(&self) -> Result<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(from_rows(RowsError::Cancelled)),
            false => Ok(()),
        }
    }

    /// A transaction whose waits end with the statement.
    ///
    /// # Errors
    /// If as many transactions are open as the node was set up for.
    pub(super) fn begin(&self, isolation: IsolationLevel) -> Result<Box<dyn Transaction>> {
        let mut trx = self.catalog.shared().node().begin(isolation).map_err(from_rows)?;
        trx.set_lock_wait_timeout(self.lock_wait_timeout);
        trx.set_cancelled(Arc::clone(self.cancelled));
        trx.set_metadata_context(Arc::clone(self.locks));
        Ok(trx)
    }
}

/// Keeps others from a table while an index of it comes and goes, and lets them write while it is
/// built.
pub(super) struct IndexBuild<'c> {
    pub(super) context: &'c DdlContext<'c>,
    pub(super) table: &'c TableModel,
}

impl BuildObserver for IndexBuild<'_> {
    fn patience(&self) -> (Option<Arc<AtomicBool>>, Duration) {
        (Some(Arc::clone(self.context.cancelled)), self.context.lock_wait_timeout)
    }

    fn definition_changes(&mut self) -> RowsResult<()> {
        match is_temporary_table(self.table) {
            true => Ok(()),
            false => self.context.acquire(self.table.id, MetadataLock::Exclusive),
        }
    }

    fn definition_changed(&mut self) {
        self.context.locks.downgrade(self.table.id, MetadataLock::Upgradable);
    }

    fn progress(&mut self, progress: BuildProgress) -> bool {
        (self.context.progress)(progress)
    }
}
