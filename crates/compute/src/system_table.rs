//! One of the server's own tables: keys and documents, in the schema `mysql`.
//!
//! What must survive a restart beside users' tables (accounts, persisted variables) is kept in
//! ordinary tables through the same seam, so it is logged, recovered and replicated like everything
//! else.
//!
//! A node that does not write makes no tables: one that is not there yet is empty, and is found
//! once the node that writes has made it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::rows::{
    DatabaseNode, IsolationLevel, ReadMode, RowContent, RowsError, RowsResult, ScanOptions,
    TableRef, Transaction, WaitPolicy, cell_value,
};
use firn_base::{Cts, TableId};
use firn_format::definition::{ColumnDefinition, IndexDefinition, IndexKind, TableDefinition};
use firn_format::row::RowView;
use firn_format::value::{ColumnType, ValueRef};

/// The schema of the server's own tables.
pub const SYSTEM_SCHEMA: &str = "mysql";
/// How often a table that somebody else makes is looked for until that has failed.
const LOOK: Duration = Duration::from_millis(2);
const MOST_LOOKS: usize = 5_000;

pub struct SystemTable {
    node: Arc<dyn DatabaseNode>,
    name: &'static str,
    /// Once it is there.
    table: OnceLock<TableId>,
}

/// A transaction, and the table as it reads it.
type Reading = (Box<dyn Transaction>, TableRef);

impl SystemTable {
    /// Opens a table, which is made if it is not there yet and the node writes. Blocks.
    ///
    /// # Errors
    /// If it can be neither found nor made.
    pub fn open(node: Arc<dyn DatabaseNode>, name: &'static str) -> RowsResult<SystemTable> {
        let table = SystemTable { node, name, table: OnceLock::new() };
        match table.find_or_make() {
            Ok(_) | Err(RowsError::NotLeader { .. }) => Ok(table),
            Err(error) => Err(error),
        }
    }

    /// A table that is made when the first document is put. Does not block.
    pub fn later(node: Arc<dyn DatabaseNode>, name: &'static str) -> SystemTable {
        SystemTable { node, name, table: OnceLock::new() }
    }

    /// Puts a document with a key, as a part of a transaction that others may have begun. Blocks.
    ///
    /// # Errors
    /// If it cannot be written. The transaction is as before.
    pub fn put(&self, trx: &mut dyn Transaction, key: &[u8], document: &[u8]) -> RowsResult<()> {
        let table = trx.table_for_write(self.find_or_make()?)?;
        // First as a new row: a search for one that is not there would lock others out.
        match trx.insert(&table, &[ValueRef::Bytes(key), ValueRef::Bytes(document)]) {
            Err(RowsError::DuplicateKey { .. }) => replace(trx, &table, key, Some(document)),
            done => done,
        }
    }

    /// The document with a key, as the newest snapshot sees it. Blocks.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn get(&self, key: &[u8]) -> RowsResult<Option<Vec<u8>>> {
        let Some((mut trx, table)) = self.begin_since(Cts(0))? else { return Ok(None) };
        let (row, mut payload) = (encoded(&table, key)?, Vec::new());
        let found = trx.get(&table, &row, ReadMode::Consistent, &mut payload)?;
        let found = found.then(|| document(&*trx, &table, &payload)).transpose()?;
        trx.commit()?;
        Ok(found.map(|(_, document)| document))
    }

    fn find(&self) -> RowsResult<Option<TableId>> {
        if let Some(known) = self.table.get() {
            return Ok(Some(*known));
        }
        let found = self.node.table_named(SYSTEM_SCHEMA, self.name)?;
        let found = found.map(|table| table.definition().table_id);
        Ok(found.map(|table| *self.table.get_or_init(|| table)))
    }

    fn find_or_make(&self) -> RowsResult<TableId> {
        for _ in 0..MOST_LOOKS {
            if let Some(found) = self.find()? {
                return Ok(found);
            }
            match self.make() {
                Ok(table) => return Ok(*self.table.get_or_init(|| table)),
                // Somebody else makes it, and has not committed yet, or just has.
                Err(RowsError::TableExists { .. } | RowsError::SchemaExists(_)) => {
                    firn_base::task::sleep(LOOK);
                }
                // Or did so otherwise.
                Err(error) => return self.find()?.ok_or(error),
            }
        }
        self.find()?.map_or_else(|| self.make(), Ok)
    }

    fn make(&self) -> RowsResult<TableId> {
        ensure_schema(&*self.node)?;
        let mut change = self.node.change_definitions()?;
        let table = change.create_table(definition(self.name))?;
        change.commit()?;
        Ok(table)
    }

    /// Begins to read what a snapshot at `since` sees, or a later one; `None` if the table is not
    /// there. A node that follows the log is waited for until it has come so far.
    fn begin_since(&self, since: Cts) -> RowsResult<Option<Reading>> {
        let now = self.begin_reading(self.node.begin(IsolationLevel::RepeatableRead)?)?;
        let is_enough = match &now {
            Some((trx, _)) => trx.snapshot().is_none_or(|snapshot| snapshot >= since),
            None => since == Cts(0),
        };
        if is_enough {
            return Ok(now);
        }
        drop(now);
        self.begin_reading(self.node.begin_at(IsolationLevel::RepeatableRead, since)?)
    }

    fn begin_reading(&self, mut trx: Box<dyn Transaction>) -> RowsResult<Option<Reading>> {
        trx.open_snapshot();
        let Some(table) = self.find()? else { return Ok(None) };
        let table = trx.table_for_read(table)?;
        Ok(Some((trx, table)))
    }

    /// All documents, by key, as a snapshot at `since` sees them, or a later one. Blocks.
    ///
    /// # Errors
    /// If the table cannot be read, or the node has not come to `since` in time.
    pub fn load(&self, since: Cts) -> RowsResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let Some((mut trx, table)) = self.begin_since(since)? else { return Ok(Vec::new()) };
        let options = ScanOptions::all();
        let mut scan = trx.scan(&table, &options)?;
        let mut documents = Vec::new();
        while scan.fetch(&mut *trx)? {
            for number in 0..scan.len() {
                if let RowContent::Payload(payload) = scan.row(number).content {
                    documents.push(document(&*trx, &table, payload)?);
                }
            }
        }
        drop(scan);
        trx.commit()?;
        Ok(documents)
    }

    /// Stores documents by key, and takes out those of keys without one; all or nothing. Blocks
    /// until it is durable. Answers a snapshot that sees it.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn store(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> RowsResult<Cts> {
        if changes.is_empty() {
            return Ok(Cts(0));
        }
        let id = self.find_or_make()?;
        let mut trx = self.node.begin(IsolationLevel::ReadCommitted)?;
        let table = trx.table_for_write(id)?;
        for (key, document) in changes {
            replace(&mut *trx, &table, key, document.as_deref())?;
        }
        trx.commit()?;
        // It is stored, whatever becomes of this look.
        let seen = self.begin_since(Cts(0)).unwrap_or_default();
        Ok(seen.and_then(|(trx, _)| trx.snapshot()).unwrap_or_default())
    }
}

fn ensure_schema(node: &dyn DatabaseNode) -> RowsResult<()> {
    if node.schema_options(SYSTEM_SCHEMA)?.is_some() {
        return Ok(());
    }
    let mut change = node.change_definitions()?;
    change.create_schema(SYSTEM_SCHEMA, b"")?;
    change.commit()
}

fn definition(name: &str) -> TableDefinition {
    let key = ColumnDefinition::new("name", ColumnType::Varbinary { max_bytes: 1024 }, false);
    let document =
        ColumnDefinition::new("document", ColumnType::Blob { max_bytes: u32::MAX }, false);
    TableDefinition {
        columns: vec![key, document],
        indexes: vec![IndexDefinition::new("PRIMARY", IndexKind::Clustered, &[0])],
        ..TableDefinition::new(SYSTEM_SCHEMA, name)
    }
}

fn document(
    trx: &dyn Transaction,
    table: &TableRef,
    payload: &[u8],
) -> RowsResult<(Vec<u8>, Vec<u8>)> {
    let view = RowView::parse(&table.layout().row, payload).map_err(damaged)?;
    let column = |ordinal| {
        let mut buffer = Vec::new();
        let cell = view.column(ordinal).map_err(damaged)?;
        match cell_value(trx, table, cell, &mut buffer)? {
            ValueRef::Bytes(bytes) => Ok(bytes.to_vec()),
            _ => Err(damaged("a column is not of bytes")),
        }
    };
    Ok((column(0)?, column(1)?))
}

/// The key of the row of a name.
fn encoded(table: &TableRef, name: &[u8]) -> RowsResult<Vec<u8>> {
    let mut key = Vec::new();
    let parts = [ValueRef::Bytes(name)];
    table.layout().clustered.encode_parts(&parts, table.collations(), &mut key).map_err(damaged)?;
    Ok(key)
}

fn replace(
    trx: &mut dyn Transaction,
    table: &TableRef,
    name: &[u8],
    document: Option<&[u8]>,
) -> RowsResult<()> {
    let key = encoded(table, name)?;
    let name = ValueRef::Bytes(name);
    let mut payload = Vec::new();
    let is_there = trx.get(table, &key, ReadMode::Update(WaitPolicy::Wait), &mut payload)?;
    match (is_there, document) {
        (true, Some(document)) => {
            trx.update(table, &key, &payload, &[(1, ValueRef::Bytes(document))])
        }
        (true, None) => trx.delete(table, &key, &payload),
        (false, Some(document)) => trx.insert(table, &[name, ValueRef::Bytes(document)]),
        (false, None) => Ok(()),
    }
}

fn damaged(what: impl std::fmt::Display) -> RowsError {
    RowsError::Other { code: 1030, message: format!("a system table cannot be read: {what}") }
}
