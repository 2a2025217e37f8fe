//! The data dictionary: the schemas, tables and indexes of a node.
//!
//! ```text
//!   names ──► table id ──► Table ──► spaces, trees           trees in space 0 (stored), copied in memory
//!
//!   statement              DDL
//!   opens its snapshot     locks the table exclusively       waits for its writers
//!   looks the table up     writes the trees, in a transaction
//!                          marks the table as changing       look-ups wait from here
//!                          commits
//!                          puts the new Table in memory      to here
//! ```
//!
//! All changes go through ordinary transactions over the dictionary's trees, so a crash or a
//! rollback leaves either all of a DDL or nothing.
//!
//! Rules, cited by number:
//!
//! 1. A session locks the tables of a statement in [`crate::metadata_lock`] before any other call
//!    here; a DDL locks exclusively. A writer without a session's lock holds a shared lock of the
//!    lock manager until its transaction ends, and looks the table up after it has the lock. A DDL
//!    also holds the exclusive lock of the lock manager.
//! 2. A reader by a snapshot may have no lock. It opens the snapshot first and looks the table up
//!    afterwards, so the definition is at least as new as the snapshot. Older data stays readable
//!    while a snapshot may need it: dropped spaces wait for purge, dropped trees for
//!    [`Dictionary::reclaim`].
//! 3. A snapshot that is too old for a table or an index gets [`EngineError::TableChanged`].
//! 4. While a DDL commits, its tables are marked as changing, and look-ups of them wait. Otherwise
//!    a snapshot that sees the commit could meet the old definition.
//! 5. Ids of tables and spaces are never reused.
//! 6. The mutexes here are held for a few instructions, never across I/O or a wait.

pub mod ddl;
pub(crate) mod follow;
pub mod index_build;
pub(crate) mod reclaim;
pub mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::rows::expression::NoExpressions;
use firn_api::rows::{
    DetachedLocks, ExpressionEvaluator, LockDuration, LockPatience, MetadataContext, MetadataLock,
};
use firn_base::event::Event;
use firn_base::{Cts, TableId, TrxId};
use firn_format::definition::{IndexState, TableDefinition};
use firn_format::key::CollationKeys;
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::EngineError;
use crate::lock::{LockMode, LockTarget, Outcome};
use crate::metadata_lock::MetadataLockTable;
use crate::sequence::{Sequence, SequenceKind, SequenceStore, TableSequences};
use crate::table::Table;
use crate::transaction::{
    IsolationLevel, ReadTransaction, Transaction, TransactionSystem, Versions,
};

pub use ddl::Ddl;
pub use reclaim::PendingDrop;
pub use stored::SystemTrees;

/// The definitions that a node has in memory. On a node that follows another node's log, [`follow`]
/// keeps them up to date.
pub struct DictionaryReader {
    versions: Arc<Versions>,
    trees: SystemTrees,
    collations: Arc<dyn CollationKeys>,
    /// The meaning of expressions in scans, if the node has been given one.
    evaluator: OnceLock<Arc<dyn ExpressionEvaluator>>,
    sequences: Arc<SequenceStore>,
    memory: RwLock<Memory>,
    /// Increases whenever a definition in memory changes or is about to change.
    version: AtomicU64,
    changed: Event,
    metadata_locks: Arc<MetadataLockTable>,
}

/// The dictionary of a node that writes.
pub struct Dictionary {
    reader: DictionaryReader,
    system: Arc<TransactionSystem>,
    space_ids: Sequence,
    table_ids: Sequence,
    drops: Mutex<Vec<PendingDrop>>,
}

impl Deref for Dictionary {
    type Target = DictionaryReader;

    #[inline]
    fn deref(&self) -> &DictionaryReader {
        &self.reader
    }
}

#[derive(Default)]
struct Memory {
    schemas: BTreeMap<Box<str>, Schema>,
    tables: FxHashMap<TableId, Arc<Table>>,
    /// Tables whose DDL is committing (rule 4).
    changing: FxHashSet<TableId>,
}

#[derive(Default)]
struct Schema {
    options: Arc<[u8]>,
    tables: BTreeMap<Box<str>, TableId>,
}

enum Found {
    Table(Arc<Table>),
    Absent,
    Changing,
}

impl Memory {
    fn table(&self, id: TableId) -> Found {
        if self.changing.contains(&id) {
            return Found::Changing;
        }
        self.tables.get(&id).map_or(Found::Absent, |table| Found::Table(Arc::clone(table)))
    }

    fn table_named(&self, schema: &str, name: &str) -> Found {
        let id = self.schemas.get(schema).and_then(|schema| schema.tables.get(name));
        id.map_or(Found::Absent, |id| self.table(*id))
    }

    fn put(&mut self, table: Arc<Table>) {
        let definition = table.definition();
        let names = &mut self.schemas.entry(definition.schema_name.as_str().into()).or_default();
        names.tables.insert(definition.name.as_str().into(), table.id());
        self.tables.insert(table.id(), table);
    }

    fn remove(&mut self, id: TableId) {
        let Some(table) = self.tables.remove(&id) else { return };
        let definition = table.definition();
        if let Some(schema) = self.schemas.get_mut(definition.schema_name.as_str()) {
            schema.tables.remove(definition.name.as_str());
        }
    }
}

/// The metadata locks. Their deadlock search also follows waits for row locks.
fn metadata_locks_of(system: &Arc<TransactionSystem>) -> Arc<MetadataLockTable> {
    let (clock, system) = (system.locks().clock(), Arc::clone(system));
    MetadataLockTable::new(clock, move |trx| {
        system.locks().waits_for(TrxId(trx)).into_iter().map(|trx| trx.0).collect()
    })
}

impl Dictionary {
    /// Opens the dictionary of a node, or creates an empty one. Removes indexes whose build a crash
    /// interrupted. Blocks.
    ///
    /// # Errors
    /// If the dictionary cannot be read, or was written by a later version of Firn.
    pub fn open(
        system: &Arc<TransactionSystem>,
        collations: Arc<dyn CollationKeys>,
    ) -> Result<Arc<Dictionary>, EngineError> {
        let trees = SystemTrees::open(system.forest())?;
        if let Some(modifications) = system.pages().modifications() {
            modifications.set_counters(trees.counters);
        }
        let sequences = Arc::new(SequenceStore::of_writer(system, trees.counters));
        let counter =
            |kind, first, length| Sequence::new(&sequences, kind, TableId(0), first, length);
        let dictionary = Arc::new(Dictionary {
            space_ids: counter(SequenceKind::Space, u64::from(stored::FIRST_TABLE_SPACE.0), 64),
            table_ids: counter(SequenceKind::Table, 1, 64),
            system: Arc::clone(system),
            drops: Mutex::default(),
            reader: DictionaryReader {
                versions: Arc::clone(system.versions()),
                trees,
                collations,
                evaluator: OnceLock::new(),
                sequences,
                memory: RwLock::default(),
                version: AtomicU64::new(1),
                changed: Event::new(),
                metadata_locks: metadata_locks_of(system),
            },
        });
        dictionary.load()?;
        dictionary.take_back_builds()?;
        dictionary.lock_tables_of_prepared()?;
        Ok(dictionary)
    }

    /// Reads all definitions from the trees.
    fn load(&self) -> Result<(), EngineError> {
        let mut trx = Transaction::begin(&self.system, IsolationLevel::RepeatableRead)?;
        let memory = self.read_all(&mut trx)?;
        let drops = stored::read_drops(&mut trx, &self.trees)?;
        let drops = drops.into_iter().map(|index| PendingDrop { index, from: Cts(0) });
        self.drops.lock().extend(drops);
        *self.memory.write() = memory;
        self.version.fetch_add(1, Ordering::Release);
        trx.commit()
    }

    /// Drops indexes that were being built when the node stopped.
    fn take_back_builds(self: &Arc<Dictionary>) -> Result<(), EngineError> {
        for table in self.tables() {
            let half_built = table.definition().indexes.iter();
            let half_built = half_built.filter(|index| index.state == IndexState::Building);
            for index in half_built {
                self.take_back_build(table.id(), index.index_id)?;
            }
        }
        Ok(())
    }

    /// Gives prepared transactions that a restart found their locks on the tables that they wrote
    /// (rule 1).
    fn lock_tables_of_prepared(&self) -> Result<(), EngineError> {
        let prepared = self.system.spaces_of_prepared()?;
        let tables = if prepared.is_empty() { Vec::new() } else { self.tables() };
        for (trx, spaces) in prepared {
            let written = tables.iter().filter(|table| spaces.contains(&table.definition().space));
            for table in written {
                let target = LockTarget::Table { table: table.id() };
                let outcome = self.system.locks().request(trx, target, LockMode::Shared);
                assert!(
                    !matches!(outcome, Outcome::Queued(_)),
                    "there are no other transactions yet"
                );
            }
            let written = tables.iter().filter(|table| spaces.contains(&table.definition().space));
            let locks: Vec<_> = written.map(|table| (table.id(), MetadataLock::Write)).collect();
            self.system.keep_with_prepared(trx, self.lock_definitions(&locks)?);
        }
        Ok(())
    }

    /// Locks definitions for a transaction of an earlier run, before there are sessions.
    pub(crate) fn lock_definitions(
        &self,
        locks: &[(TableId, MetadataLock)],
    ) -> Result<DetachedLocks, EngineError> {
        let context = self.metadata_locks.open_context();
        let patience = LockPatience::of(Duration::ZERO);
        for (table, lock) in locks {
            let acquired = context.acquire(*table, *lock, LockDuration::Transaction, &patience);
            acquired.map_err(|error| EngineError::Invalid(error.to_string()))?;
        }
        Ok(context.detach())
    }

    /// Snapshots from here on see all tables as they are defined now.
    pub(crate) fn newest_definition(&self) -> Cts {
        self.tables().iter().map(|table| table.visible_from()).max().unwrap_or(Cts(0))
    }

    #[must_use]
    pub fn system(&self) -> &Arc<TransactionSystem> {
        &self.system
    }

    /// A table for a transaction that writes it or reads it with locks (rule 1). Blocks for the
    /// lock.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`], or why the lock was not granted.
    pub fn table_for_write(
        &self,
        trx: &mut Transaction,
        id: TableId,
    ) -> Result<Arc<Table>, EngineError> {
        trx.lock_table(id, LockMode::Shared)?;
        self.table(id).ok_or(EngineError::NoSuchTable(id))
    }

    /// Records exactly how far the counters of all tables were used, so that an orderly shutdown
    /// leaves no gap in them. Blocks.
    ///
    /// # Errors
    /// If the log has failed.
    pub fn close(&self) -> Result<(), EngineError> {
        self.tables().iter().try_for_each(|table| table.sequences().give_back())
    }
}

impl DictionaryReader {
    /// All definitions that the transaction sees.
    fn read_all(&self, trx: &mut ReadTransaction) -> Result<Memory, EngineError> {
        let mut memory = Memory::default();
        for (name, options) in stored::read_schemas(trx, &self.trees)? {
            memory.put_schema(name, options);
        }
        for definition in stored::read_definitions(trx, &self.trees)? {
            memory.put(Arc::new(self.table_of(definition, Cts(0))?));
        }
        Ok(memory)
    }

    /// A definition with everything that is derived from it.
    fn table_of(
        &self,
        definition: TableDefinition,
        visible_from: Cts,
    ) -> Result<Table, EngineError> {
        let sequences = Arc::new(TableSequences::new(&self.sequences, definition.table_id));
        Table::new(definition, Arc::clone(&self.collations), sequences, visible_from)
    }

    #[must_use]
    pub(crate) fn versions(&self) -> &Arc<Versions> {
        &self.versions
    }

    /// Gives expressions in scans their meaning. Later calls change nothing.
    pub(crate) fn set_evaluator(&self, evaluator: Arc<dyn ExpressionEvaluator>) {
        // The first evaluator holds, as the documentation says.
        let _ = self.evaluator.set(evaluator);
    }

    /// The meaning of expressions in scans.
    pub(crate) fn evaluator(&self) -> &dyn ExpressionEvaluator {
        self.evaluator.get().map_or(&NoExpressions, |evaluator| &**evaluator)
    }

    #[must_use]
    pub fn metadata_locks(&self) -> &Arc<MetadataLockTable> {
        &self.metadata_locks
    }

    #[must_use]
    pub fn trees(&self) -> &SystemTrees {
        &self.trees
    }

    /// Increases whenever a definition changes or is about to change. A definition that was looked
    /// up after reading this number stays valid while the number stays the same, so one load
    /// validates a plan.
    #[must_use]
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// A table by its name. Waits while a DDL on it commits (rule 4).
    #[must_use]
    pub fn table_named(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        self.wait_for(|memory| memory.table_named(schema, name))
    }

    /// A table by its id. Waits while a DDL on it commits (rule 4).
    #[must_use]
    pub fn table(&self, id: TableId) -> Option<Arc<Table>> {
        self.wait_for(|memory| memory.table(id))
    }

    fn wait_for(&self, find: impl Fn(&Memory) -> Found) -> Option<Arc<Table>> {
        loop {
            match find(&self.memory.read()) {
                Found::Table(table) => return Some(table),
                Found::Absent => return None,
                Found::Changing => {}
            }
            let ticket = self.changed.listen();
            if matches!(find(&self.memory.read()), Found::Changing) {
                self.changed.wait(ticket, None);
            }
        }
    }

    /// A table for a transaction that reads it by its snapshot. Opens the snapshot if it is not
    /// open yet (rule 2).
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`]; [`EngineError::TableChanged`] if the snapshot is too old for
    /// the table.
    pub fn table_for_read(
        &self,
        trx: &mut ReadTransaction,
        id: TableId,
    ) -> Result<Arc<Table>, EngineError> {
        trx.ensure_snapshot();
        let table = self.table(id).ok_or(EngineError::NoSuchTable(id))?;
        if trx.snapshot().is_some_and(|snapshot| snapshot < table.visible_from()) {
            return Err(EngineError::TableChanged(id));
        }
        Ok(table)
    }

    /// All tables, unordered.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.memory.read().tables.values().cloned().collect()
    }

    /// The tables of a schema in the order of their names; `None` if the schema does not exist.
    #[must_use]
    pub fn tables_of(&self, schema: &str) -> Option<Vec<Arc<Table>>> {
        let memory = self.memory.read();
        let ids = memory.schemas.get(schema)?.tables.values();
        Some(ids.filter_map(|id| memory.tables.get(id).cloned()).collect())
    }

    /// The names of all schemas, sorted.
    #[must_use]
    pub fn schemas(&self) -> Vec<Box<str>> {
        self.memory.read().schemas.keys().cloned().collect()
    }

    /// The bytes that the SQL layer keeps with a schema; `None` if the schema does not exist.
    #[must_use]
    pub fn schema_options(&self, schema: &str) -> Option<Arc<[u8]>> {
        self.memory.read().schemas.get(schema).map(|schema| Arc::clone(&schema.options))
    }
}
