//! Statistics in the table `mysql.table_statistics`, which is created when it is first needed.
//!
//! ```text
//!   table_id BIGINT UNSIGNED PRIMARY KEY │ statistics LONGBLOB (docs/formats/sql-options.md)
//! ```

use std::sync::Arc;

use firn_api::rows::{
    DatabaseNode, IsolationLevel, ReadMode, RowContent, RowsError, ScanOptions, TableRef,
    WaitPolicy, cell_value,
};
use firn_base::TableId;
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, IndexState, TableDefinition,
};
use firn_format::row::{ColumnValue, RowVersion, RowView};
use firn_format::value::{ColumnType, IntWidth, ValueRef};
use firn_sql_types::error::{Result, from_rows};

use super::super::options::codec::{Body, Reader, Writer, damaged, each_field};
use super::super::options::{read_datum, write_datum};
use super::histogram::Bucket;
use super::{ColumnStatistics, Gathered, Histogram};

const SCHEMA: &str = "mysql";
const TABLE: &str = "table_statistics";

/// The stored statistics of a table. `None` if they cannot be read: the planner can do without.
pub(super) fn read(node: &Arc<dyn DatabaseNode>, table: TableId) -> Option<Gathered> {
    let stored = node.table_named(SCHEMA, TABLE).ok()??;
    let mut trx = node.begin(IsolationLevel::ReadCommitted).ok()?;
    let key = key_of(&stored, table)?;
    let (mut payload, mut buffer) = (Vec::new(), Vec::new());
    if !trx.get(&stored, &key, ReadMode::Consistent, &mut payload).ok()? {
        return None;
    }
    let view = RowView::parse(&stored.layout().row, &payload).ok()?;
    match cell_value(&*trx, &stored, view.column(1).ok()?, &mut buffer).ok()? {
        ValueRef::Bytes(bytes) => decode(bytes).ok(),
        _ => None,
    }
}

fn key_of(stored: &TableRef, table: TableId) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let clustered = &stored.layout().clustered;
    clustered.encode_parts(&[ValueRef::UInt(table.0)], stored.collations(), &mut key).ok()?;
    Some(key)
}

/// Stores statistics of a table, replacing earlier ones.
pub(in super::super) fn write(
    node: &Arc<dyn DatabaseNode>,
    table: TableId,
    gathered: &Gathered,
) -> Result<()> {
    let id = match node.table_named(SCHEMA, TABLE).map_err(from_rows)? {
        Some(stored) => stored.definition().table_id,
        None => create(node)?,
    };
    let mut trx = node.begin(IsolationLevel::ReadCommitted).map_err(from_rows)?;
    let stored = trx.table_for_write(id).map_err(from_rows)?;
    let Some(key) = key_of(&stored, table) else { return Ok(()) };
    let bytes = encode(gathered);
    let value = ValueRef::Bytes(&bytes);
    let mut payload = Vec::new();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    if trx.get(&stored, &key, mode, &mut payload).map_err(from_rows)? {
        trx.update(&stored, &key, &payload, &[(1, value)]).map_err(from_rows)?;
    } else {
        trx.insert(&stored, &[ValueRef::UInt(table.0), value]).map_err(from_rows)?;
    }
    trx.commit().map_err(from_rows)
}

/// Removes the statistics of tables that are gone. Returns their number. Blocks.
///
/// # Errors
/// Errors of the node.
pub fn remove_gone(node: &Arc<dyn DatabaseNode>) -> Result<usize> {
    let Some(stored) = node.table_named(SCHEMA, TABLE).map_err(from_rows)? else { return Ok(0) };
    let mut gone = Vec::new();
    for table in kept_of(node, &stored)? {
        if node.table(table).map_err(from_rows)?.is_none() {
            gone.push(table);
        }
    }
    if gone.is_empty() {
        return Ok(0);
    }
    let mut trx = node.begin(IsolationLevel::ReadCommitted).map_err(from_rows)?;
    let stored = trx.table_for_write(stored.definition().table_id).map_err(from_rows)?;
    let mut payload = Vec::new();
    let mode = ReadMode::Update(WaitPolicy::Wait);
    for table in &gone {
        let Some(key) = key_of(&stored, *table) else { continue };
        if trx.get(&stored, &key, mode, &mut payload).map_err(from_rows)? {
            trx.delete(&stored, &key, &payload).map_err(from_rows)?;
        }
    }
    trx.commit().map_err(from_rows)?;
    Ok(gone.len())
}

/// The tables with stored statistics.
fn kept_of(node: &Arc<dyn DatabaseNode>, stored: &TableRef) -> Result<Vec<TableId>> {
    let mut trx = node.begin(IsolationLevel::ReadCommitted).map_err(from_rows)?;
    let from = trx.table_for_read(stored.definition().table_id).map_err(from_rows)?;
    let mut scan = trx.scan(&from, &ScanOptions::all()).map_err(from_rows)?;
    let mut tables = Vec::new();
    while scan.fetch(&mut *trx).map_err(from_rows)? {
        for number in 0..scan.len() {
            let RowContent::Payload(payload) = scan.row(number).content else { continue };
            let view = RowView::parse(&from.layout().row, payload);
            // A row that cannot be read is ignored; ANALYZE of its table writes it again.
            let cell = view.ok().and_then(|view| view.column(0).ok());
            if let Some(ColumnValue::Inline(ValueRef::UInt(id))) = cell {
                tables.push(TableId(id));
            }
        }
    }
    Ok(tables)
}

fn create(node: &Arc<dyn DatabaseNode>) -> Result<TableId> {
    let mut definitions = node.change_definitions().map_err(from_rows)?;
    match node.schema_options(SCHEMA).map_err(from_rows)? {
        Some(_) => {}
        None => definitions.create_schema(SCHEMA, &[]).map_err(from_rows)?,
    }
    let created = definitions.create_table(definition());
    match created {
        Ok(id) => definitions.commit().map_err(from_rows).map(|()| id),
        // Another session was faster.
        Err(error @ RowsError::TableExists { .. }) => {
            let stored = node.table_named(SCHEMA, TABLE).map_err(from_rows)?;
            let id = stored.map(|table| table.definition().table_id);
            id.ok_or_else(|| from_rows(error))
        }
        Err(error) => Err(from_rows(error)),
    }
}

fn definition() -> TableDefinition {
    let blob = ColumnType::Blob { max_bytes: u32::MAX };
    TableDefinition {
        table_id: TableId(0),
        space: firn_base::SpaceId(0),
        schema_name: SCHEMA.to_owned(),
        name: TABLE.to_owned(),
        schema_version: 0,
        row_version: RowVersion(0),
        columns: vec![
            ColumnDefinition::new("table_id", ColumnType::UInt(IntWidth::Eight), false),
            ColumnDefinition::new("statistics", blob, false),
        ],
        indexes: vec![IndexDefinition {
            index_id: firn_base::IndexId(0),
            name: "PRIMARY".to_owned(),
            kind: IndexKind::Clustered,
            state: IndexState::Ready,
            root_page: firn_base::PageNo::NONE,
            parts: vec![IndexPart::ascending(0)],
            options: Vec::new(),
        }],
        options: Vec::new(),
    }
}

pub(super) fn encode(gathered: &Gathered) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.field(1, |body| body.u64(gathered.rows.to_bits()));
    let mut indexes: Vec<_> = gathered.indexes.iter().collect();
    indexes.sort_by_key(|(name, _)| *name);
    writer.list(2, &indexes, |body, (name, distinct)| {
        body.text(name);
        body.list(distinct, |body, distinct| body.u64(distinct.to_bits()));
    });
    let mut columns: Vec<_> = gathered.columns.iter().collect();
    columns.sort_by_key(|(name, _)| *name);
    writer.list(3, &columns, |body, (name, column)| {
        body.text(name);
        body.u64(column.null_fraction.to_bits());
        body.u64(column.distinct.to_bits());
        let buckets = column.histogram.as_ref().map_or(&[][..], |histogram| &histogram.buckets);
        body.list(buckets, write_bucket);
    });
    writer.finish()
}

fn write_bucket(body: &mut Body, bucket: &Bucket) {
    write_datum(body, &bucket.lower);
    write_datum(body, &bucket.upper);
    body.u64(bucket.cumulative.to_bits());
    body.u64(bucket.distinct.to_bits());
}

/// Reads what [`encode`] wrote. The bytes are untrusted.
pub(super) fn decode(bytes: &[u8]) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    each_field(bytes, |tag, body| {
        match tag {
            1 => gathered.rows = f64::from_bits(body.u64()?),
            2 => {
                let indexes = body.list(|body| {
                    Ok((body.text()?.into(), body.list(|body| Ok(f64::from_bits(body.u64()?)))?))
                })?;
                gathered.indexes = indexes.into_iter().collect();
            }
            3 => gathered.columns = body.list(read_column)?.into_iter().collect(),
            _ => return Err(damaged("unknown field")),
        }
        Ok(())
    })?;
    Ok(gathered)
}

fn read_column(body: &mut Reader<'_>) -> Result<(Box<str>, ColumnStatistics)> {
    let name = body.text()?.into();
    let (null_fraction, distinct) = (f64::from_bits(body.u64()?), f64::from_bits(body.u64()?));
    let buckets = body.list(|body| {
        Ok(Bucket {
            lower: read_datum(body)?,
            upper: read_datum(body)?,
            cumulative: f64::from_bits(body.u64()?),
            distinct: f64::from_bits(body.u64()?),
        })
    })?;
    let histogram = (!buckets.is_empty()).then_some(Histogram { buckets });
    Ok((name, ColumnStatistics { null_fraction, distinct, histogram }))
}
