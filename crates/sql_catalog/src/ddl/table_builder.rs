//! A table that is being defined: a statement's content, made into a whole that is then checked and
//! stored.
//!
//! ```text
//!   CREATE TABLE ──► draft ─────────────────────────────► definition ──► Definitions::create_table
//!   table ──[`TableDraft::of`]──► draft ──actions──► draft'   ALTER: draft against draft'
//! ```
//!
//! A draft's columns have numbers ([`ColumnModel::ordinal`]): existing columns have their ordinals,
//! and new ones have numbers after all ordinals of the table. Indexes and foreign keys refer to
//! columns by these numbers. [`IndexModel::number`] is the number in the table's definition, or
//! [`NEW_INDEX`].

use std::sync::Arc;

use firn_base::{IndexId, PageNo};
use firn_format::definition::{
    ColumnDefinition, IndexDefinition, IndexKind, IndexPart, IndexState, TableDefinition,
};
use firn_format::key::Direction;
use firn_format::value::CollationId;
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{
    CheckModel, ColumnModel, ForeignKeyModel, IndexModel, IndexPartModel, TableModel, same_name,
};
use super::super::options::{IndexOptions, TableOptions, encode_default};
use super::column;

/// [`IndexModel::number`] of an index that does not exist yet.
pub(super) const NEW_INDEX: usize = usize::MAX;

#[derive(Debug, Clone)]
pub(super) struct TableDraft {
    pub(super) schema: Arc<str>,
    pub(super) name: Arc<str>,
    /// In the order that users see, hidden ones last.
    pub(super) columns: Vec<ColumnModel>,
    /// Unused column numbers start here.
    pub(super) next_number: u16,
    pub(super) indexes: Vec<IndexModel>,
    pub(super) checks: Vec<CheckModel>,
    /// New checks written in a column's definition: their names and the column's.
    pub(super) column_checks: Vec<(Arc<str>, Arc<str>)>,
    pub(super) foreign_keys: Vec<ForeignKeyModel>,
    pub(super) collation: CollationId,
    pub(super) comment: Arc<str>,
    pub(super) row_format: Arc<str>,
    pub(super) other_options: Vec<(Arc<str>, Arc<str>)>,
    pub(super) created_us: u64,
    /// `AUTO_INCREMENT = n`
    pub(super) auto_increment_start: Option<u64>,
    pub(super) temporary: bool,
    /// The new schema and name of the table.
    pub(super) target: (Arc<str>, Arc<str>),
}

impl TableDraft {
    /// An empty draft.
    pub(super) fn new(schema: &str, name: &str, collation: CollationId) -> TableDraft {
        TableDraft {
            schema: schema.into(),
            name: name.into(),
            columns: Vec::new(),
            next_number: 0,
            indexes: Vec::new(),
            checks: Vec::new(),
            column_checks: Vec::new(),
            foreign_keys: Vec::new(),
            collation,
            comment: Arc::default(),
            row_format: Arc::default(),
            other_options: Vec::new(),
            created_us: 0,
            auto_increment_start: None,
            temporary: false,
            target: (schema.into(), name.into()),
        }
    }

    /// A table as it is.
    pub(super) fn of(table: &TableModel) -> TableDraft {
        TableDraft {
            columns: table.columns.clone(),
            next_number: table.ordinals() as u16,
            indexes: table.indexes.clone(),
            checks: table.checks.clone(),
            column_checks: Vec::new(),
            foreign_keys: table.foreign_keys.clone(),
            comment: Arc::clone(&table.comment),
            row_format: Arc::clone(&table.row_format),
            other_options: table.other_options.clone(),
            created_us: table.created_us,
            temporary: table.kind == super::super::model::TableKind::Temporary,
            ..TableDraft::new(&table.schema, &table.name, table.collation)
        }
    }

    /// A number for a new column.
    pub(super) fn take_number(&mut self) -> u16 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// A column by its name.
    pub(super) fn column(&self, name: &str) -> Option<&ColumnModel> {
        self.columns.iter().find(|column| !column.hidden && same_name(&column.name, name))
    }

    pub(super) fn column_mut(&mut self, name: &str) -> Option<&mut ColumnModel> {
        self.columns.iter_mut().find(|column| !column.hidden && same_name(&column.name, name))
    }

    /// A column by its number.
    pub(super) fn numbered(&self, number: u16) -> Option<&ColumnModel> {
        self.columns.iter().find(|column| column.ordinal == number)
    }

    pub(super) fn primary_key(&self) -> Option<&IndexModel> {
        self.indexes.iter().find(|index| index.primary)
    }

    pub(super) fn is_nullable(&self, number: u16) -> bool {
        self.numbered(number).is_some_and(|column| column.ty.nullable)
    }

    /// Adds a column, before hidden ones.
    ///
    /// # Errors
    /// 1060 if its name already exists.
    pub(super) fn add_column(&mut self, column: ColumnModel, at: Option<usize>) -> Result<()> {
        if !column.hidden && self.column(&column.name).is_some() {
            return Err(duplicate_column(&column.name));
        }
        let end = if column.hidden { self.columns.len() } else { self.shown_length() };
        self.columns.insert(at.unwrap_or(end).min(end), column);
        Ok(())
    }

    /// How many columns users see.
    pub(super) fn shown_length(&self) -> usize {
        self.columns.iter().filter(|column| !column.hidden).count()
    }

    /// Numbers the columns as in a new table: in the order that users see.
    pub(super) fn renumbered(&self) -> TableDraft {
        let mut draft = self.clone();
        let place = |number: u16| {
            let place = self.columns.iter().position(|column| column.ordinal == number);
            place.map_or(u16::MAX, |place| place as u16)
        };
        for (column, number) in draft.columns.iter_mut().zip(0..) {
            column.ordinal = number;
        }
        draft.next_number = draft.columns.len() as u16;
        for index in &mut draft.indexes {
            index.number = NEW_INDEX;
            for part in &mut index.parts {
                part.ordinal = place(part.ordinal);
            }
        }
        for key in &mut draft.foreign_keys {
            key.columns.iter_mut().for_each(|number| *number = place(*number));
        }
        draft
    }

    /// The table's properties that only SQL knows.
    pub(super) fn table_options(&self) -> TableOptions {
        let shown = self.columns.iter().filter(|column| !column.hidden);
        let order: Vec<u16> = shown.map(|column| column.ordinal).collect();
        let is_sorted = order.is_sorted();
        TableOptions {
            collation: self.collation,
            comment: Arc::clone(&self.comment),
            row_format: Arc::clone(&self.row_format),
            order: if is_sorted { Vec::new() } else { order },
            checks: self.checks.clone(),
            foreign_keys: self.foreign_keys.clone(),
            view: None,
            temporary: self.temporary.then(|| (Arc::clone(&self.schema), Arc::clone(&self.name))),
            created_us: self.created_us,
            other: self.other_options.clone(),
        }
    }

    /// The definition of a new table. The draft's numbers are those of [`TableDraft::renumbered`].
    ///
    /// # Errors
    /// Types that cannot be stored.
    pub(super) fn definition(&self) -> Result<TableDefinition> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            columns.push(stored_column(column)?);
        }
        let indexes = self.indexes.iter().map(stored_index).collect();
        Ok(TableDefinition {
            columns,
            indexes,
            options: self.table_options().encode(),
            ..TableDefinition::new(&*self.schema, &*self.name)
        })
    }
}

/// A column as a node stores it.
///
/// # Errors
/// Types that cannot be stored.
pub(super) fn stored_column(column: &ColumnModel) -> Result<ColumnDefinition> {
    let (column_type, options) = column::stored(column)?;
    Ok(ColumnDefinition {
        default: encode_default(&column.default),
        options: options.encode(),
        ..ColumnDefinition::new(&*column.name, column_type, column.ty.nullable)
    })
}

/// An index as a node stores it, before it has a tree.
pub(super) fn stored_index(index: &IndexModel) -> IndexDefinition {
    IndexDefinition {
        index_id: IndexId(0),
        name: index.name.to_string(),
        kind: match index {
            _ if index.primary => IndexKind::Clustered,
            _ if index.unique => IndexKind::Unique,
            _ => IndexKind::Secondary,
        },
        state: IndexState::Ready,
        root_page: PageNo::NONE,
        parts: index.parts.iter().map(stored_part).collect(),
        options: index_options(index),
    }
}

pub(super) fn index_options(index: &IndexModel) -> Vec<u8> {
    let options = IndexOptions {
        invisible: !index.visible,
        implicit: index.implicit,
        comment: Arc::clone(&index.comment),
        using: index.using.clone(),
        special: index.special,
    };
    options.encode()
}

pub(super) fn stored_part(part: &IndexPartModel) -> IndexPart {
    IndexPart {
        column: part.ordinal,
        direction: if part.descending { Direction::Descending } else { Direction::Ascending },
        prefix_length: part.prefix,
    }
}

/// `Duplicate column name 'c'`
pub(super) fn duplicate_column(name: &str) -> SqlError {
    SqlError::duplicate_column(name)
}

/// `Unknown column 'c' in 't'`
pub(super) fn unknown_column(name: &str, table: &str) -> SqlError {
    SqlError::unknown_column(name, table)
}
