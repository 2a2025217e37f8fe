//! The table definitions that a client has from a node (M4).

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use firn_api::rows::{RowsError, RowsResult, Table, TableRef};
use firn_base::TableId;
use firn_format::definition::{TableDefinition, TableLayout};
use firn_format::key::CollationKeys;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::codec::damaged_definition;
use crate::message::{HandedTable, Message, TableVersion};

use super::connection::Connection;

/// One version of a table's definition. Dropping the last reference returns it to the node.
pub(super) struct RemoteTable {
    connection: Arc<Connection>,
    version: TableVersion,
    /// The number of replies that had it.
    received: AtomicU64,
    definition: TableDefinition,
    layout: TableLayout,
}

impl RemoteTable {
    pub(super) fn version(&self) -> TableVersion {
        self.version
    }
}

impl Table for RemoteTable {
    fn definition(&self) -> &TableDefinition {
        &self.definition
    }

    fn layout(&self) -> &TableLayout {
        &self.layout
    }

    fn collations(&self) -> &dyn CollationKeys {
        &*self.connection.collations
    }
}

impl Drop for RemoteTable {
    fn drop(&mut self) {
        let received = *self.received.get_mut();
        self.connection.cast(&Message::GiveBack { table: self.version, received });
    }
}

/// The version of a table of this crate.
///
/// # Errors
/// The table belongs to another node.
pub(super) fn version_of(table: &TableRef) -> RowsResult<TableVersion> {
    let any: &dyn Any = &**table;
    let table = any.downcast_ref::<RemoteTable>();
    let table = table.ok_or_else(|| RowsError::of_another_node("table"))?;
    Ok(table.version)
}

/// The tables in use in this process.
#[derive(Default)]
pub(super) struct Tables(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// For each table, the version that arrived last.
    tables: FxHashMap<TableId, Weak<RemoteTable>>,
    /// Every version that is in use.
    versions: FxHashMap<TableVersion, Weak<RemoteTable>>,
    names: FxHashMap<(Box<str>, Box<str>), TableId>,
    /// Once there are this many entries, those of unused tables are removed.
    next_tidy: usize,
}

/// How many entries are kept before the first clean-up.
const FEW: usize = 64;

impl Tables {
    /// The version of a table that arrived last, if it is in use.
    pub(super) fn newest(&self, table: TableId) -> Option<Arc<RemoteTable>> {
        self.0.lock().tables.get(&table)?.upgrade()
    }

    /// Like [`Tables::newest`], for the table that last had this name.
    pub(super) fn named(&self, schema: &str, name: &str) -> Option<Arc<RemoteTable>> {
        let known = self.0.lock();
        let table = known.names.get(&(schema.into(), name.into()))?;
        known.tables.get(table)?.upgrade()
    }

    /// The table of a reply: the one already in use, or a new one.
    ///
    /// # Errors
    /// The definition is damaged, or it is left out although this client does not have it.
    pub(super) fn receive(
        &self,
        connection: &Arc<Connection>,
        handed: HandedTable,
    ) -> RowsResult<Arc<RemoteTable>> {
        let HandedTable { table: version, definition } = handed;
        let mut known = self.0.lock();
        let in_use = known.versions.get(&version).and_then(Weak::upgrade);
        if let Some(table) = in_use {
            table.received.fetch_add(1, Ordering::Relaxed);
            known.note(&table);
            return Ok(table);
        }
        let bytes = definition.ok_or_else(|| RowsError::Unavailable {
            reason: "it left out the definition of a table".into(),
        })?;
        let definition = TableDefinition::decode(&bytes).map_err(damaged_definition)?;
        let layout = definition.layout().map_err(damaged_definition)?;
        let table = Arc::new(RemoteTable {
            connection: Arc::clone(connection),
            version,
            received: AtomicU64::new(1),
            definition,
            layout,
        });
        known.note(&table);
        Ok(table)
    }
}

impl Known {
    fn note(&mut self, table: &Arc<RemoteTable>) {
        if self.versions.len() >= self.next_tidy.max(FEW) {
            self.tidy();
        }
        let id = table.version.table;
        self.versions.insert(table.version, Arc::downgrade(table));
        self.tables.insert(id, Arc::downgrade(table));
        let name = (table.definition.schema_name.as_str(), table.definition.name.as_str());
        self.names.insert((name.0.into(), name.1.into()), id);
    }

    /// Removes unused entries.
    fn tidy(&mut self) {
        self.versions.retain(|_, table| table.strong_count() > 0);
        self.tables.retain(|_, table| table.strong_count() > 0);
        let tables = &self.tables;
        self.names.retain(|_, table| tables.contains_key(table));
        self.next_tidy = 2 * self.versions.len();
    }
}
