//! Definitions on a node that follows the log. When a transaction that changed definitions commits,
//! they are read from the dictionary's trees.
//!
//! ```text
//!   log      … undo: table 12 ‖ part 0 …   committed @ 44
//!   replica    table 12 is touched          reads table 12 as of 44 ─► memory ─► 44 is visible
//! ```
//!
//! The new definitions are in memory before the commit is visible, so a snapshot that sees the
//! commit never meets the old ones (rule 4 of [`super`]). An older snapshot may meet the new ones,
//! as on the node that writes (rules 2 and 3).

use std::sync::{Arc, OnceLock};

use firn_api::rows::{IsolationLevel, SESSION_SCHEMA_PREFIX};
use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::{Cts, IndexId, TableId};
use firn_format::key::CollationKeys;
use parking_lot::RwLock;
use rustc_hash::FxHashSet;

use crate::dictionary::{DictionaryReader, SystemTrees, stored};
use crate::error::EngineError;
use crate::metadata_lock::MetadataLockTable;
use crate::sequence::SequenceStore;
use crate::table::Table;
use crate::transaction::{ReadTransaction, Versions};

/// The definitions that a transaction has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touched {
    /// Unknown: any definition may have changed.
    All,
    These {
        tables: FxHashSet<TableId>,
        /// Whether schemas have changed too.
        schemas: bool,
    },
}

impl Default for Touched {
    fn default() -> Touched {
        Touched::These { tables: FxHashSet::default(), schemas: false }
    }
}

impl Touched {
    /// Whether no definition has changed.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Touched::default()
    }

    /// Notes a change of one record of a tree.
    #[inline]
    pub(crate) fn note(&mut self, trees: &SystemTrees, index: IndexId, key: &[u8]) {
        let Touched::These { tables, schemas } = self else { return };
        if index == trees.tables {
            match key.first_chunk() {
                Some(id) => drop(tables.insert(TableId(u64::from_be_bytes(*id)))),
                None => *self = Touched::All,
            }
        } else if index == trees.schemas {
            *schemas = true;
        }
    }

    /// Notes changes of records whose keys are not known.
    #[inline]
    pub(crate) fn note_run(&mut self, trees: &SystemTrees, index: IndexId) {
        if index == trees.tables || index == trees.schemas {
            *self = Touched::All;
        }
    }
}

impl DictionaryReader {
    /// The dictionary of a node that follows the log. It knows no definitions before the first
    /// [`DictionaryReader::follow`]. Blocks for I/O.
    ///
    /// # Errors
    /// If the dictionary's trees do not exist yet, or were written by a later version of Firn.
    pub(crate) fn open_following(
        versions: &Arc<Versions>,
        clock: Arc<dyn Clock>,
        collations: Arc<dyn CollationKeys>,
    ) -> Result<Arc<DictionaryReader>, EngineError> {
        let trees = SystemTrees::find(versions.pages())?.ok_or_else(|| {
            EngineError::Invalid(
                "the node that writes has not created the dictionary yet".to_owned(),
            )
        })?;
        Ok(Arc::new(DictionaryReader {
            versions: Arc::clone(versions),
            trees,
            collations,
            evaluator: OnceLock::new(),
            sequences: Arc::new(SequenceStore::of_reader(versions, trees.counters)),
            memory: RwLock::default(),
            version: 1.into(),
            changed: Event::new(),
            // This node locks no rows, so no deadlock passes through row locks.
            metadata_locks: MetadataLockTable::new(clock, |_| Vec::new()),
        }))
    }

    /// Reads the definitions that the commit at `committed` changed. The caller makes the commit
    /// visible afterwards. Blocks for I/O.
    ///
    /// # Errors
    /// If the dictionary cannot be read.
    pub(crate) fn follow(&self, touched: &Touched, committed: Cts) -> Result<(), EngineError> {
        if touched.is_nothing() {
            return Ok(());
        }
        let mut trx = ReadTransaction::begin(&self.versions, IsolationLevel::RepeatableRead)?;
        trx.open_at(committed)?;
        match touched {
            Touched::All => self.follow_all(&mut trx, committed),
            Touched::These { tables, schemas } => {
                self.follow_tables(&mut trx, tables, *schemas, committed)
            }
        }
    }

    fn follow_all(&self, trx: &mut ReadTransaction, committed: Cts) -> Result<(), EngineError> {
        let definitions = stored::read_definitions(trx, &self.trees)?;
        let mut tables: FxHashSet<TableId> =
            definitions.iter().map(|table| table.table_id).collect();
        tables.extend(self.memory.read().tables.keys());
        self.follow_tables(trx, &tables, true, committed)
    }

    fn follow_tables(
        &self,
        trx: &mut ReadTransaction,
        tables: &FxHashSet<TableId>,
        schemas: bool,
        committed: Cts,
    ) -> Result<(), EngineError> {
        let mut read = Vec::with_capacity(tables.len());
        for id in tables {
            read.extend(stored::read_definition(trx, &self.trees, *id)?);
        }
        let schemas = if schemas { Some(stored::read_schemas(trx, &self.trees)?) } else { None };
        let (gone, before): (Vec<Arc<Table>>, Vec<Arc<Table>>) = {
            let memory = self.memory.read();
            let known = tables.iter().filter_map(|id| memory.tables.get(id).cloned());
            known.partition(|table| read.iter().all(|new| new.table_id != table.id()))
        };
        let mut put = Vec::with_capacity(read.len());
        for definition in read {
            let before = before.iter().find(|table| table.id() == definition.table_id);
            let replaces = gone.iter().any(|gone| is_named_alike(gone, &definition));
            put.push(self.table_after(definition, before, replaces, committed)?);
        }
        self.version.fetch_add(1, std::sync::atomic::Ordering::Release);
        let mut memory = self.memory.write();
        if let Some(schemas) = schemas {
            memory.schemas.retain(|name, _| schemas.iter().any(|(other, _)| other == name));
            schemas.into_iter().for_each(|(name, options)| memory.put_schema(name, options));
        }
        // All old names are removed before the first new one is added: two tables may have swapped
        // names.
        gone.iter().chain(&before).for_each(|table| memory.remove(table.id()));
        put.into_iter().for_each(|table| memory.put(Arc::new(table)));
        drop(memory);
        self.version.fetch_add(1, std::sync::atomic::Ordering::Release);
        self.changed.notify_all();
        Ok(())
    }

    /// A definition as of a commit, with the first snapshot that may use it.
    fn table_after(
        &self,
        definition: firn_format::definition::TableDefinition,
        before: Option<&Arc<Table>>,
        replaces: bool,
        committed: Cts,
    ) -> Result<Table, EngineError> {
        // In another space all rows are new. Under the name of a dropped table, most rows are newer
        // than older snapshots.
        let before = before.filter(|table| table.space() == definition.space);
        let visible_from = match before {
            Some(table) if !replaces => table.visible_from(),
            None if definition.schema_name.starts_with(SESSION_SCHEMA_PREFIX) => Cts(0),
            _ => Cts::MAX,
        };
        let mut table = self.table_of(definition, visible_from)?;
        if let Some(before) = before {
            table.take_ready_from(before);
        }
        table.set_first_snapshot(committed);
        Ok(table)
    }
}

fn is_named_alike(table: &Table, definition: &firn_format::definition::TableDefinition) -> bool {
    let other = table.definition();
    other.name == definition.name && other.schema_name == definition.schema_name
}
