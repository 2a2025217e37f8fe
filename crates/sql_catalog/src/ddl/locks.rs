//! The metadata locks that changes of definitions take, and how their waits end.
//!
//! ```text
//!   DROP, TRUNCATE, RENAME          Exclusive
//!   ALTER, in place                 Upgradable ─────────────► Exclusive
//!   ALTER that builds an index      Upgradable ─► Exclusive ─► Upgradable (build) ─► Exclusive
//!   ALTER that copies               Upgradable ─► NoWrite (copy) ──────────────────► Exclusive
//! ```
//!
//! Names are looked up again once their tables are locked: the result then stays valid. The session
//! releases the locks when the statement has ended.

use std::sync::Arc;

use firn_api::rows::{
    IsolationLevel, LockDuration, LockPatience, MetadataLock, NewIndex, RowsError, RowsResult,
    TableRef, Transaction,
};
use firn_base::TableId;
use firn_sql_grammar::ast;
use firn_sql_types::error::Result;

use super::super::model::{ForeignKeyModel, TableModel};
use super::{DdlContext, from_rows, is_temporary_table};

/// A table with its sort key among others: schema and name.
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
            is_waiting: Some(self.is_waiting),
        };
        self.locks.acquire(table, lock, LockDuration::Transaction, &patience)
    }

    /// Locks a table; a temporary one belongs to the session and needs no lock. Blocks.
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

    /// Locks the tables and views with these names, in one order for all statements. Blocks.
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
            let stored = found.filter(|table| !is_temporary_table(table));
            Ok(stored.map(|table| named(&table)).collect())
        })
    }

    /// Locks all tables of a schema. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_schema(&self, schema: &str, lock: MetadataLock) -> Result<()> {
        let node = self.catalog.shared().node();
        self.lock_found(lock, || {
            let tables = node.tables_of(schema).map_err(from_rows)?.unwrap_or_default();
            let named = |table: &TableRef| {
                let definition = table.definition();
                let names = (definition.schema_name.as_str(), definition.name.as_str());
                (names.0.into(), names.1.into(), definition.table_id)
            };
            Ok(tables.iter().map(named).collect())
        })
    }

    /// Locks the tables that foreign keys refer to: their lists of children change. Blocks.
    ///
    /// # Errors
    /// 1205, 1213, 1317.
    pub(super) fn lock_parents(&self, keys: &[ForeignKeyModel]) -> Result<()> {
        let shared = self.catalog.shared();
        self.lock_found(MetadataLock::Exclusive, || {
            let parents = keys
                .iter()
                .filter_map(|key| shared.find_table(&key.parent_schema, &key.parent_table).ok()?);
            Ok(parents.map(|parent| named(&parent)).collect())
        })
    }

    /// Locks what `find` finds, until it finds nothing new. In the order of names, as MySQL does.
    fn lock_found(
        &self,
        lock: MetadataLock,
        find: impl Fn() -> Result<Vec<NamedId>>,
    ) -> Result<()> {
        let sorted = || -> Result<Vec<NamedId>> {
            let mut found = find()?;
            found.sort();
            found.dedup();
            Ok(found)
        };
        let mut tables = sorted()?;
        loop {
            tables.iter().try_for_each(|(_, _, table)| self.lock_id(*table, lock))?;
            let now = sorted()?;
            if now == tables {
                return Ok(());
            }
            tables = now;
        }
    }

    /// Whether the statement must end.
    ///
    /// # Errors
    /// 1317.
    pub(super) fn check_cancelled(&self) -> Result<()> {
        match self.cancelled.is_cancelled() {
            true => Err(from_rows(RowsError::Cancelled)),
            false => Ok(()),
        }
    }

    /// A transaction whose waits end with the statement.
    ///
    /// # Errors
    /// If the node has as many open transactions as it was set up for.
    pub(super) fn begin(&self, isolation: IsolationLevel) -> Result<Box<dyn Transaction>> {
        let mut trx = self.catalog.shared().node().begin(isolation).map_err(from_rows)?;
        trx.set_lock_wait_timeout(self.lock_wait_timeout);
        trx.set_cancelled(self.cancelled);
        trx.set_metadata_context(Arc::clone(self.locks));
        Ok(trx)
    }

    /// Builds an index while others read and write the table; they are shut out while the index is
    /// added and when it is ready. Blocks until the index is complete.
    ///
    /// # Errors
    /// Rows that violate it, locks that were not granted, a cancelled statement. The index is then
    /// gone.
    pub(super) fn build_index(&self, table: &TableModel, new: &NewIndex) -> RowsResult<()> {
        let keep_others_out = || match is_temporary_table(table) {
            true => Ok(()),
            false => self.acquire(table.id, MetadataLock::Exclusive),
        };
        keep_others_out()?;
        (self.changes)().map_err(|_| RowsError::Cancelled)?;
        let (node, cancelled) = (self.catalog.shared().node(), Some(self.cancelled));
        let mut build = node.begin_index(table.id, new, self.lock_wait_timeout, cancelled)?;
        self.locks.downgrade(table.id, MetadataLock::Upgradable);
        while !build.is_filled() {
            if !(self.progress)(build.step()?) {
                return Err(RowsError::Cancelled);
            }
        }
        keep_others_out()?;
        build.finish()
    }
}
