//! Changes of the dictionary: schemas, tables, columns.
//!
//! A [`Ddl`] collects any number of changes and commits them as one: `DROP TABLE a, b` and `RENAME
//! TABLE a TO b, b TO a` happen completely or not at all. Building an index over existing rows
//! takes long and is in [`crate::dictionary::index_build`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::rows::SESSION_SCHEMA_PREFIX;
use firn_base::{Cts, IndexId, SpaceId, TableId};
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition,
};
use firn_format::row::RowVersion;
use firn_format::space::SpacePurpose;
use firn_format::undo::UndoOperation;
use firn_format::value::{ColumnType, IntWidth};

use crate::dictionary::stored::{self, name_key, put, put_definition};
use crate::dictionary::{Dictionary, Memory, PendingDrop, Schema};
use crate::error::EngineError;
use crate::lock::LockMode;
use crate::metadata_lock::LockContext;
use crate::sequence::TableSequences;
use crate::table::{ROW_ID_COLUMN, ROW_ID_INDEX, Table};
use crate::transaction::{IsolationLevel, ReadMode, Transaction, WaitPolicy};

/// A DDL that has not committed yet. Dropping it rolls it back.
pub struct Ddl {
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) trx: Transaction,
    changes: Vec<MemoryChange>,
}

/// A change of the definitions in memory, made after the DDL has committed.
enum MemoryChange {
    PutTable(Arc<Table>),
    RemoveTable(TableId),
    PutSchema(Box<str>, Arc<[u8]>),
    RemoveSchema(Box<str>),
    DropTree(IndexId),
}

impl Dictionary {
    /// Begins a DDL. Does not block.
    ///
    /// # Errors
    /// If as many transactions are open as the engine was set up for.
    pub fn ddl(self: &Arc<Dictionary>) -> Result<Ddl, EngineError> {
        let trx = Transaction::begin(&self.system, IsolationLevel::ReadCommitted)?;
        Ok(Ddl { dictionary: Arc::clone(self), trx, changes: Vec::new() })
    }

    pub(super) fn next_space(&self) -> Result<SpaceId, EngineError> {
        let id = self.space_ids.take(1)?;
        let id = u32::try_from(id).map_err(|_| EngineError::SequenceExhausted(TableId(0)))?;
        Ok(SpaceId(id))
    }

    /// Rule 4, before the commit.
    fn mark_changing(&self, tables: &[TableId]) {
        self.memory.write().changing.extend(tables.iter().copied());
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Rule 4, after the commit.
    fn apply(&self, tables: &[TableId], changes: Vec<MemoryChange>, committed_after: Cts) {
        let mut memory = self.memory.write();
        for change in changes {
            match change {
                MemoryChange::PutTable(table) => {
                    memory.remove(table.id());
                    memory.put(table);
                }
                MemoryChange::RemoveTable(table) => memory.remove(table),
                MemoryChange::PutSchema(name, options) => memory.put_schema(name, options),
                MemoryChange::RemoveSchema(name) => drop(memory.schemas.remove(&name)),
                MemoryChange::DropTree(index) => {
                    self.drops.lock().push(PendingDrop { index, from: committed_after });
                }
            }
        }
        memory.changing.retain(|table| !tables.contains(table));
        drop(memory);
        self.version.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }
}

impl Memory {
    pub(super) fn put_schema(&mut self, name: Box<str>, options: Arc<[u8]>) {
        let schema: &mut Schema = self.schemas.entry(name).or_default();
        schema.options = options;
    }
}

impl Ddl {
    /// Creates a schema. `options` belong to the SQL layer. Blocks.
    ///
    /// # Errors
    /// [`EngineError::SchemaExists`], or why the dictionary could not be written.
    pub fn create_schema(&mut self, name: &str, options: &[u8]) -> Result<(), EngineError> {
        check_name(name)?;
        let schemas = self.dictionary.trees.schemas;
        match self.trx.insert(schemas, name.as_bytes(), options) {
            Err(EngineError::DuplicateKey { .. }) => {
                return Err(EngineError::SchemaExists(name.into()));
            }
            other => other?,
        }
        self.changes.push(MemoryChange::PutSchema(name.into(), options.into()));
        Ok(())
    }

    /// Replaces the bytes that the SQL layer keeps with a schema. Blocks.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSchema`], or why the dictionary could not be written.
    pub fn alter_schema(&mut self, name: &str, options: &[u8]) -> Result<(), EngineError> {
        if !self.trx.update(self.dictionary.trees.schemas, name.as_bytes(), options)? {
            return Err(EngineError::NoSuchSchema(name.into()));
        }
        self.changes.push(MemoryChange::PutSchema(name.into(), options.into()));
        Ok(())
    }

    /// Drops a schema with all its tables. Blocks until no transaction writes them.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSchema`], locks that were not granted, or why the dictionary could not
    /// be written.
    pub fn drop_schema(&mut self, name: &str) -> Result<(), EngineError> {
        // From here on no transaction can create a table in the schema: that takes a lock on the
        // schema's record.
        if !self.trx.delete(self.dictionary.trees.schemas, name.as_bytes())? {
            return Err(EngineError::NoSuchSchema(name.into()));
        }
        let mut tables = Vec::new();
        let names = stored::names_of(name);
        let (tree, mode) = (self.dictionary.trees.names, ReadMode::Update(WaitPolicy::Wait));
        stored::for_each(&mut self.trx, tree, names, mode, |_, id| {
            tables.extend(id.try_into().ok().map(|id| TableId(u64::from_le_bytes(id))));
        })?;
        for table in tables {
            self.drop_table(table)?;
        }
        self.changes.push(MemoryChange::RemoveSchema(name.into()));
        Ok(())
    }

    /// Creates a table. Takes the names, columns and indexes of `definition`; fills in ids, roots
    /// and versions. A table without a clustered index gets a hidden row id. Blocks.
    ///
    /// # Errors
    /// [`EngineError::NoSuchSchema`], [`EngineError::TableExists`], [`EngineError::Definition`] for
    /// an invalid definition, or an error of the page store or the log.
    pub fn create_table(&mut self, definition: TableDefinition) -> Result<TableId, EngineError> {
        check_name(&definition.schema_name)?;
        check_name(&definition.name)?;
        self.share_schema(&definition.schema_name)?;
        let mut definition = with_row_id(definition);
        definition.table_id = TableId(self.dictionary.table_ids.take(1)?);
        definition.schema_version = 0;
        definition.row_version = RowVersion(0);
        for column in &mut definition.columns {
            (column.added_in, column.dropped_in) = (RowVersion(0), None);
        }
        self.insert_name(&definition)?;
        for index in &mut definition.indexes {
            index.state = IndexState::Ready;
        }
        definition.check()?;
        self.create_space(&mut definition)?;
        self.put_table(definition, None)
    }

    /// Drops a table. Its pages are freed when no snapshot can need them. Blocks until no
    /// transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`], locks that were not granted, or why the dictionary could not
    /// be written.
    pub fn drop_table(&mut self, id: TableId) -> Result<(), EngineError> {
        self.trx.free_space();
        let table = self.lock(id)?;
        let (definition, trees) = (table.definition(), self.dictionary.trees);
        stored::delete_parts(&mut self.trx, &trees, id, 0)?;
        self.trx.delete(trees.names, &name_key(&definition.schema_name, &definition.name))?;
        table.sequences().delete(&mut self.trx)?;
        self.trx.note_undo(UndoOperation::SpaceAbandoned { space: definition.space })?;
        self.changes.push(MemoryChange::RemoveTable(id));
        Ok(())
    }

    /// Empties a table: it gets a new space, and its counters start again. Blocks until no
    /// transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`], locks that were not granted, [`EngineError::Invalid`] while an
    /// index of the table is being built, or an error of the page store or the log.
    pub fn truncate_table(&mut self, id: TableId) -> Result<(), EngineError> {
        let table = self.lock(id)?;
        let mut definition = table.definition().clone();
        if definition.indexes.iter().any(|index| index.state == IndexState::Building) {
            return Err(EngineError::Invalid(format!(
                "table {} cannot be truncated while an index of it is being built",
                definition.name
            )));
        }
        self.trx.free_space();
        let old = definition.space;
        self.create_space(&mut definition)?;
        self.trx.note_undo(UndoOperation::SpaceAbandoned { space: old })?;
        table.sequences().delete(&mut self.trx)?;
        self.put_table(definition, None)?;
        Ok(())
    }

    /// Renames a table, perhaps into another schema. Blocks until no transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::NoSuchTable`], [`EngineError::NoSuchSchema`], [`EngineError::TableExists`],
    /// locks that were not granted, or why the dictionary could not be written.
    pub fn rename_table(
        &mut self,
        id: TableId,
        schema: &str,
        name: &str,
    ) -> Result<(), EngineError> {
        check_name(name)?;
        self.share_schema(schema)?;
        let table = self.lock(id)?;
        let mut definition = table.definition().clone();
        let old = name_key(&definition.schema_name, &definition.name);
        self.trx.delete(self.dictionary.trees.names, &old)?;
        schema.clone_into(&mut definition.schema_name);
        name.clone_into(&mut definition.name);
        self.insert_name(&definition)?;
        self.put_table(definition, Some(&table))?;
        Ok(())
    }

    /// Gives a table the name of one that this DDL drops. An older snapshot that asks for the table
    /// gets [`EngineError::TableChanged`], because it would see only some of the rows. Blocks like
    /// [`Ddl::rename_table`].
    ///
    /// # Errors
    /// As [`Ddl::rename_table`].
    pub fn replace_table(
        &mut self,
        id: TableId,
        schema: &str,
        name: &str,
    ) -> Result<(), EngineError> {
        self.rename_table(id, schema, name)?;
        if let Some(MemoryChange::PutTable(table)) = self.changes.last_mut()
            && let Some(table) = Arc::get_mut(table)
        {
            table.refuse_older_snapshots();
        }
        Ok(())
    }

    /// Adds a column at the end and returns its ordinal. Rows stay as they are and return the
    /// column's instant default. Fills in the version that added the column. Blocks until no
    /// transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::Definition`] if the column is invalid, locks that were not granted, or why
    /// the dictionary could not be written.
    pub fn add_column(
        &mut self,
        id: TableId,
        column: ColumnDefinition,
    ) -> Result<u16, EngineError> {
        let mut ordinal = 0;
        self.alter_table(id, |definition| {
            let version = next_row_version(definition)?;
            let column = ColumnDefinition { added_in: version, dropped_in: None, ..column };
            ordinal = definition.columns.len() as u16;
            definition.columns.push(column);
            definition.row_version = version;
            Ok(())
        })?;
        Ok(ordinal)
    }

    /// Drops a column that is in no index. Rows stay as they are until they are written. Blocks
    /// until no transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::Definition`] if an index has the column, locks that were not granted, or why
    /// the dictionary could not be written.
    pub fn drop_column(&mut self, id: TableId, ordinal: u16) -> Result<(), EngineError> {
        self.alter_table(id, |definition| {
            let version = next_row_version(definition)?;
            let column = definition.columns.get_mut(usize::from(ordinal));
            let column = column.filter(|column| column.dropped_in.is_none());
            let no_column = firn_format::row::RowError::NoSuchColumn(usize::from(ordinal));
            column.ok_or(no_column)?.dropped_in = Some(version);
            definition.row_version = version;
            Ok(())
        })
    }

    /// Changes parts of the definition that rows and trees do not depend on: names of columns and
    /// indexes, defaults, the SQL layer's bytes. `definition` was made from the version that its
    /// `schema_version` names. Blocks until no transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::TableChanged`] if the table has another version by now,
    /// [`EngineError::Invalid`] if any other part differs, locks that were not granted, or why the
    /// dictionary could not be written.
    pub fn alter_options(&mut self, definition: TableDefinition) -> Result<(), EngineError> {
        let table = self.lock(definition.table_id)?;
        if table.definition().schema_version != definition.schema_version {
            return Err(EngineError::TableChanged(definition.table_id));
        }
        if !is_stored_alike(table.definition(), &definition) {
            let what = "the change needs the table's rows to be rewritten";
            return Err(EngineError::Invalid(what.to_owned()));
        }
        self.put_table(definition, Some(&table))?;
        Ok(())
    }

    /// Drops a secondary index. Its pages are freed when no snapshot can need them. Blocks until no
    /// transaction writes the table.
    ///
    /// # Errors
    /// [`EngineError::NoSuchIndex`], locks that were not granted, or why the dictionary could not
    /// be written.
    pub fn drop_index(&mut self, id: TableId, name: &str) -> Result<(), EngineError> {
        let mut dropped = None;
        self.alter_table(id, |definition| {
            let found = definition
                .indexes
                .iter()
                .position(|index| index.name == name && index.kind != IndexKind::Clustered);
            let found = found.ok_or_else(|| EngineError::NoSuchIndex(name.into()))?;
            dropped = Some(definition.indexes.remove(found).index_id);
            Ok(())
        })?;
        dropped.map_or(Ok(()), |index| self.drop_tree(index))
    }

    /// Records that the pages of a tree can be freed after the commit.
    pub(super) fn drop_tree(&mut self, index: IndexId) -> Result<(), EngineError> {
        put(&mut self.trx, self.dictionary.trees.drops, &stored::drop_key(index), &[])?;
        self.changes.push(MemoryChange::DropTree(index));
        Ok(())
    }

    /// Locks a table exclusively and changes its definition.
    pub(super) fn alter_table(
        &mut self,
        id: TableId,
        change: impl FnOnce(&mut TableDefinition) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let table = self.lock(id)?;
        let mut definition = table.definition().clone();
        change(&mut definition)?;
        self.put_table(definition, Some(&table))?;
        Ok(())
    }

    /// Locks a table for a change, and returns its definition with this DDL's changes so far.
    pub(crate) fn lock(&mut self, id: TableId) -> Result<Arc<Table>, EngineError> {
        if !self.is_temporary(id) {
            self.trx.lock_table(id, LockMode::Exclusive)?;
        }
        for change in self.changes.iter().rev() {
            match change {
                MemoryChange::PutTable(table) if table.id() == id => return Ok(Arc::clone(table)),
                MemoryChange::RemoveTable(table) if *table == id => {
                    return Err(EngineError::NoSuchTable(id));
                }
                _ => {}
            }
        }
        self.dictionary.table(id).ok_or(EngineError::NoSuchTable(id))
    }

    /// Whether the table belongs to one session, whose open transaction may have written to it.
    fn is_temporary(&self, id: TableId) -> bool {
        let table = self.dictionary.table(id);
        table.is_some_and(|table| table.definition().schema_name.starts_with(SESSION_SCHEMA_PREFIX))
    }

    /// Prevents the schema from being dropped.
    fn share_schema(&mut self, name: &str) -> Result<(), EngineError> {
        let mut options = Vec::new();
        let mode = ReadMode::Share(WaitPolicy::Wait);
        let schemas = self.dictionary.trees.schemas;
        if !self.trx.get(schemas, name.as_bytes(), mode, &mut options)? {
            return Err(EngineError::NoSuchSchema(name.into()));
        }
        Ok(())
    }

    fn insert_name(&mut self, definition: &TableDefinition) -> Result<(), EngineError> {
        let (schema, name) = (&definition.schema_name, &definition.name);
        let id = definition.table_id.0.to_le_bytes();
        match self.trx.insert(self.dictionary.trees.names, &name_key(schema, name), &id) {
            Err(EngineError::DuplicateKey { .. }) => Err(EngineError::TableExists {
                schema: schema.as_str().into(),
                name: name.as_str().into(),
            }),
            other => other,
        }
    }

    /// Creates a space for the table and a root for each index. Rollback drops the space.
    fn create_space(&mut self, definition: &mut TableDefinition) -> Result<(), EngineError> {
        let dictionary = Arc::clone(&self.dictionary);
        let space = dictionary.next_space()?;
        self.trx.note_undo(UndoOperation::SpaceCreated { space })?;
        let spaces = dictionary.system.forest().spaces();
        let purpose = self.trx.purpose(false);
        spaces.create_for(space, SpacePurpose::Table, definition.table_id, purpose)?;
        definition.space = space;
        for index in &mut definition.indexes {
            index.index_id = stored::create_tree(&dictionary.system, space, purpose)?;
            index.root_page = index.index_id.root().page_no;
        }
        Ok(())
    }

    /// Writes a definition, and puts it in memory after the commit. With `before`, the table's
    /// former definition, the table keeps its counters; without it, the rows are in a new space.
    fn put_table(
        &mut self,
        mut definition: TableDefinition,
        before: Option<&Table>,
    ) -> Result<TableId, EngineError> {
        let dictionary = Arc::clone(&self.dictionary);
        let id = definition.table_id;
        definition.schema_version += 1;
        let sequences = match before {
            Some(table) => Arc::clone(table.sequences()),
            None => Arc::new(TableSequences::new(&dictionary.sequences, id)),
        };
        let visible_from = match before {
            Some(table) => table.visible_from(),
            None if definition.schema_name.starts_with(SESSION_SCHEMA_PREFIX) => Cts(0),
            None => Cts::MAX,
        };
        let collations = Arc::clone(&dictionary.collations);
        let mut table = Table::new(definition, collations, sequences, visible_from)?;
        if let Some(before) = before {
            table.take_ready_from(before);
        }
        put_definition(&mut self.trx, &dictionary.trees, table.definition())?;
        self.changes.push(MemoryChange::PutTable(Arc::new(table)));
        Ok(id)
    }

    /// Sets the flag that cancels the waits of this DDL, see
    /// [`crate::transaction::ReadTransaction::set_cancelled`].
    pub fn set_cancelled(&mut self, flag: Arc<AtomicBool>) {
        self.trx.set_cancelled(flag);
    }

    /// See [`Transaction::set_metadata_context`].
    pub fn set_metadata_context(&mut self, context: Arc<LockContext>) {
        self.trx.set_metadata_context(context);
    }

    /// Sets the longest wait for a lock.
    pub fn set_lock_wait_timeout(&mut self, timeout: std::time::Duration) {
        self.trx.set_lock_wait_timeout(timeout);
    }

    /// Commits. Blocks until the commit is durable and visible to all sessions.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit(self) -> Result<(), EngineError> {
        let Ddl { dictionary, trx, mut changes } = self;
        let tables: Vec<TableId> = changes.iter().filter_map(MemoryChange::table).collect();
        dictionary.mark_changing(&tables);
        let order = dictionary.system.order();
        changes.iter_mut().for_each(|change| change.set_first_snapshot(Cts(order.last().0 + 1)));
        let committed = trx.commit();
        let changes = match &committed {
            // Sessions of this node see the commit, whether or not it survives a restart.
            Ok(()) | Err(EngineError::OutcomeUnknown(_)) => changes,
            Err(_) => Vec::new(),
        };
        dictionary.apply(&tables, changes, order.max_committed());
        committed
    }

    /// Rolls everything back. Blocks.
    ///
    /// # Errors
    /// Errors of the page store and the log; the next start undoes the rest.
    pub fn rollback(self) -> Result<(), EngineError> {
        self.trx.rollback()
    }
}

impl MemoryChange {
    /// The table whose look-ups wait during the commit.
    fn table(&self) -> Option<TableId> {
        match self {
            MemoryChange::PutTable(table) => Some(table.id()),
            MemoryChange::RemoveTable(table) => Some(*table),
            _ => None,
        }
    }

    /// Sets the first snapshot that sees all new parts of a table. Called right before the commit,
    /// which gets this timestamp or a later one.
    fn set_first_snapshot(&mut self, first: Cts) {
        if let MemoryChange::PutTable(table) = self
            && let Some(table) = Arc::get_mut(table)
        {
            table.set_first_snapshot(first);
        }
    }
}

fn check_name(name: &str) -> Result<(), EngineError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
        return Err(EngineError::Invalid(format!("'{name}' is not a valid name")));
    }
    Ok(())
}

/// 64 characters of at most four bytes.
const MAX_NAME_BYTES: usize = 256;

/// Adds the hidden row id, which clusters a table without a primary key.
fn with_row_id(mut definition: TableDefinition) -> TableDefinition {
    if definition.clustered_index().is_some() {
        return definition;
    }
    let column = definition.columns.len() as u16;
    definition.columns.push(ColumnDefinition {
        hidden: true,
        ..ColumnDefinition::new(ROW_ID_COLUMN, ColumnType::UInt(IntWidth::Eight), false)
    });
    let clustered = IndexDefinition::new(ROW_ID_INDEX, IndexKind::Clustered, &[column]);
    definition.indexes.insert(0, clustered);
    definition
}

fn next_row_version(definition: &TableDefinition) -> Result<RowVersion, EngineError> {
    let next = definition.row_version.0.checked_add(1).map(RowVersion);
    next.ok_or_else(|| {
        EngineError::Invalid(format!(
            "too many columns of table {} have been added and dropped; rebuild the table",
            definition.name
        ))
    })
}

/// Whether rows and entries under one definition are valid under the other.
fn is_stored_alike(one: &TableDefinition, other: &TableDefinition) -> bool {
    let identity = |table: &TableDefinition| {
        let names = (table.schema_name.clone(), table.name.clone());
        (table.table_id, table.space, table.row_version, names)
    };
    let columns = one.columns.iter().zip(&other.columns);
    let indexes = one.indexes.iter().zip(&other.indexes);
    identity(one) == identity(other)
        && one.columns.len() == other.columns.len()
        && columns.clone().all(|(one, other)| is_column_stored_alike(one, other))
        && one.indexes.len() == other.indexes.len()
        && indexes.clone().all(|(one, other)| is_index_stored_alike(one, other))
}

fn is_column_stored_alike(one: &ColumnDefinition, other: &ColumnDefinition) -> bool {
    let versions = |column: &ColumnDefinition| (column.added_in, column.dropped_in);
    one.nullable == other.nullable
        && one.hidden == other.hidden
        && versions(one) == versions(other)
        && one.instant_default == other.instant_default
        && is_type_stored_alike(one.column_type, other.column_type)
}

/// Strings and enumerations may get longer: stored rows and keys do not depend on the maximum.
fn is_type_stored_alike(one: ColumnType, other: ColumnType) -> bool {
    let is_bounded = matches!(
        one,
        ColumnType::Varchar { .. }
            | ColumnType::Char { .. }
            | ColumnType::Text { .. }
            | ColumnType::Varbinary { .. }
            | ColumnType::Blob { .. }
            | ColumnType::Enum { .. }
            | ColumnType::Set { .. }
    );
    one == other
        || is_bounded
            && std::mem::discriminant(&one) == std::mem::discriminant(&other)
            && one.fixed_length() == other.fixed_length()
            && one.collation() == other.collation()
}

fn is_index_stored_alike(one: &IndexDefinition, other: &IndexDefinition) -> bool {
    let tree = |index: &IndexDefinition| (index.index_id, index.kind, index.state, index.root_page);
    tree(one) == tree(other) && one.parts == other.parts
}
