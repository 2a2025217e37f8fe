//! Models from a node's definitions.

use std::sync::Arc;

use firn_api::rows::{DatabaseNode, Table, TableRef};
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexState, TableDefinition, TableLayout,
};
use firn_format::key::{BinaryCollation, CollationKeys, Direction};
use firn_format::value::ColumnType;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{IntWidth, SqlType};

use super::model::{ColumnModel, IndexModel, IndexPartModel, TableKind, TableModel};
use super::options::{ColumnOptions, IndexOptions, TableOptions, decode_default};
use super::statistics::TableStatistics;

impl TableModel {
    /// The model of a table, from a node's definition.
    ///
    /// # Errors
    /// 1712 if the stored options are damaged.
    pub fn from_table(node: &Arc<dyn DatabaseNode>, table: TableRef) -> Result<TableModel> {
        let definition = table.definition();
        let options = TableOptions::decode(&definition.options)?;
        let columns = columns_of(&definition.columns, &options)?;
        let mut positions = vec![None; definition.columns.len()];
        for (position, column) in columns.iter().enumerate() {
            positions[usize::from(column.ordinal)] = Some(position as u16);
        }
        let (schema, name) = options.temporary.clone().unwrap_or_else(|| {
            (definition.schema_name.as_str().into(), definition.name.as_str().into())
        });
        let kind = match (options.view, &options.temporary) {
            (Some(view), _) => TableKind::View(view),
            (None, Some(_)) => TableKind::Temporary,
            (None, None) => TableKind::Base,
        };
        let auto_increment = columns.iter().find(|column| column.auto_increment);
        Ok(TableModel {
            id: definition.table_id,
            schema,
            name,
            kind,
            auto_increment: auto_increment.map(|column| column.ordinal),
            indexes: indexes_of(&definition.indexes, &columns)?,
            columns,
            checks: options.checks,
            foreign_keys: options.foreign_keys,
            comment: options.comment,
            collation: options.collation,
            row_format: options.row_format,
            other_options: options.other,
            created_us: options.created_us,
            statistics: Arc::new(TableStatistics::new(Arc::clone(node), Arc::clone(&table))),
            positions,
            table,
        })
    }
}

/// The columns in the order that users see, hidden ones last.
fn columns_of(columns: &[ColumnDefinition], options: &TableOptions) -> Result<Vec<ColumnModel>> {
    let rank = |ordinal: u16| {
        let place = options.order.iter().position(|other| *other == ordinal);
        place.map_or(options.order.len() + usize::from(ordinal), |place| place)
    };
    let there = columns.iter().zip(0_u16..);
    let there = there.filter(|(column, _)| column.dropped_in.is_none() && !column.hidden);
    let mut models: Vec<ColumnModel> =
        there.map(|(column, ordinal)| column_of(column, ordinal)).collect::<Result<_>>()?;
    models.sort_by_cached_key(|column| (column.hidden, rank(column.ordinal)));
    Ok(models)
}

fn column_of(column: &ColumnDefinition, ordinal: u16) -> Result<ColumnModel> {
    let options = ColumnOptions::decode(&column.options)?;
    let ty = SqlType::of_column(options.type_kind(column.column_type), column.nullable);
    Ok(ColumnModel {
        ordinal,
        name: column.name.as_str().into(),
        unsigned: options.unsigned || ty.kind.is_unsigned() && ty.kind.is_numeric(),
        ty,
        default: decode_default(column.default.as_deref())?,
        on_update_now: options.on_update_now,
        generated: options.generated,
        auto_increment: options.auto_increment,
        invisible: options.invisible || options.hidden,
        hidden: options.hidden,
        comment: options.comment,
        zerofill: options.zerofill,
        display_width: options.display_width,
        display_decimals: options.display_decimals,
        geometry: options.geometry,
    })
}

/// The readable indexes, in MySQL's display order: the primary key first, then unique ones without
/// NULL, other unique ones, and the rest, each kind in the order of the definition.
fn indexes_of(indexes: &[IndexDefinition], columns: &[ColumnModel]) -> Result<Vec<IndexModel>> {
    let is_shown = |column: u16| columns.iter().any(|other| other.ordinal == column);
    let ready = indexes.iter().enumerate().filter(|(_, index)| {
        index.state == IndexState::Ready && index.parts.iter().all(|part| is_shown(part.column))
    });
    let mut models: Vec<IndexModel> =
        ready.map(|(number, index)| index_of(number, index)).collect::<Result<_>>()?;
    let is_nullable = |index: &IndexModel| {
        let of = |ordinal| columns.iter().find(|column| column.ordinal == ordinal);
        index.parts.iter().any(|part| of(part.ordinal).is_some_and(|column| column.ty.nullable))
    };
    models.sort_by_cached_key(|index| {
        (!index.primary, !index.unique, index.unique && is_nullable(index))
    });
    Ok(models)
}

fn index_of(number: usize, index: &IndexDefinition) -> Result<IndexModel> {
    let options = IndexOptions::decode(&index.options)?;
    let parts = index.parts.iter().map(|part| IndexPartModel {
        ordinal: part.column,
        prefix: part.prefix_length,
        descending: part.direction == Direction::Descending,
    });
    Ok(IndexModel {
        number,
        name: index.name.as_str().into(),
        unique: index.kind != IndexKind::Secondary,
        primary: index.kind == IndexKind::Clustered,
        visible: !options.invisible,
        parts: parts.collect(),
        comment: options.comment,
        using: options.using,
        implicit: options.implicit,
        special: options.special,
    })
}

/// A definition that no node has yet, with its codecs: enough to bind expressions over it.
struct DraftTable {
    definition: TableDefinition,
    layout: TableLayout,
}

impl Table for DraftTable {
    fn definition(&self) -> &TableDefinition {
        &self.definition
    }

    fn layout(&self) -> &TableLayout {
        &self.layout
    }

    fn collations(&self) -> &dyn CollationKeys {
        &BinaryCollation
    }
}

/// The model of a table that does not exist yet. It has no rows, and no statistics.
///
/// # Errors
/// Types that cannot be stored.
pub(super) fn model_of_definition(
    node: &Arc<dyn DatabaseNode>,
    mut definition: TableDefinition,
) -> Result<TableModel> {
    if definition.clustered_index().is_none() {
        cluster_by_row_id(&mut definition);
    }
    let layout = definition.layout();
    let layout = layout.map_err(|error| SqlError::new(1105, format!("Unknown error: {error}")))?;
    TableModel::from_table(node, Arc::new(DraftTable { definition, layout }))
}

fn cluster_by_row_id(definition: &mut TableDefinition) {
    let column = definition.columns.len() as u16;
    definition.columns.push(ColumnDefinition {
        hidden: true,
        ..ColumnDefinition::new("#row", ColumnType::UInt(IntWidth::Eight), false)
    });
    definition.indexes.push(IndexDefinition::new("#row", IndexKind::Clustered, &[column]));
}
