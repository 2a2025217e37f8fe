//! One of the server's own tables: keys and documents, in the schema `mysql`.
//!
//! Data that must survive a restart beside users' tables (accounts, persisted variables) is stored
//! in ordinary tables through the same seam, so it is logged, recovered and replicated like
//! everything else.

use std::sync::Arc;

use firn_api::rows::{
    DatabaseNode, IsolationLevel, ReadMode, RowContent, RowsError, RowsResult, ScanOptions,
    TableRef, Transaction, WaitPolicy, cell_value,
};
use firn_base::{IndexId, PageNo, SpaceId, TableId};
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, IndexState, TableDefinition,
};
use firn_format::row::{RowVersion, RowView};
use firn_format::value::{ColumnType, ValueRef};

/// The schema of the server's own tables.
pub const SYSTEM_SCHEMA: &str = "mysql";

/// See the module documentation.
pub struct SystemTable {
    node: Arc<dyn DatabaseNode>,
    table: TableId,
}

impl SystemTable {
    /// Opens a table, and creates it if it does not exist yet. Blocks.
    ///
    /// # Errors
    /// If it can be neither found nor created.
    pub fn open(node: Arc<dyn DatabaseNode>, name: &str) -> RowsResult<SystemTable> {
        ensure_schema(&*node)?;
        let table = match node.table_named(SYSTEM_SCHEMA, name)? {
            Some(table) => table.definition().table_id,
            None => {
                let mut change = node.change_definitions()?;
                let table = change.create_table(definition(name))?;
                change.commit()?;
                table
            }
        };
        Ok(SystemTable { node, table })
    }

    /// All documents, by key. Blocks.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn load(&self) -> RowsResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut trx = self.node.begin(IsolationLevel::RepeatableRead)?;
        let table = trx.table_for_read(self.table)?;
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

    /// Stores documents by key, and removes keys without one; all or nothing. Blocks until it is
    /// durable.
    ///
    /// # Errors
    /// If it cannot be stored.
    pub fn store(&self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) -> RowsResult<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut trx = self.node.begin(IsolationLevel::ReadCommitted)?;
        let table = trx.table_for_write(self.table)?;
        for (key, document) in changes {
            replace(&mut *trx, &table, key, document.as_deref())?;
        }
        trx.commit()
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
    let primary = IndexDefinition {
        index_id: IndexId(0),
        name: "PRIMARY".to_owned(),
        kind: IndexKind::Clustered,
        state: IndexState::Ready,
        root_page: PageNo::NONE,
        parts: vec![IndexPart::ascending(0)],
        options: Vec::new(),
    };
    TableDefinition {
        table_id: TableId(0),
        space: SpaceId(0),
        schema_name: SYSTEM_SCHEMA.to_owned(),
        name: name.to_owned(),
        schema_version: 0,
        row_version: RowVersion(0),
        columns: vec![key, document],
        indexes: vec![primary],
        options: Vec::new(),
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

fn replace(
    trx: &mut dyn Transaction,
    table: &TableRef,
    name: &[u8],
    document: Option<&[u8]>,
) -> RowsResult<()> {
    let name = ValueRef::Bytes(name);
    let mut key = Vec::new();
    table
        .layout()
        .clustered
        .encode_parts(&[name], table.collations(), &mut key)
        .map_err(damaged)?;
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
