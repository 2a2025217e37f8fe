//! Tables as statements see them: a node's definition together with the properties that only SQL
//! knows.
//!
//! ```text
//!   TableDefinition + options ──[`TableModel::from_table`]──► TableModel
//!        ordinals 0 1 2̶ 3                       columns  b(3) a(0) c(1)  in the users' order
//! ```
//!
//! A model never changes; DDL replaces it by another one. Invariants:
//! * every column that is neither dropped nor the engine's own is in [`TableModel::columns`] once;
//! * columns with [`ColumnModel::hidden`] (those of functional index parts) come last, and no name
//!   that a user writes refers to one;
//! * [`IndexModel::number`] is the index's place in the node's definition.

use std::sync::Arc;

use firn_api::rows::TableRef;
use firn_base::TableId;
use firn_format::value::CollationId;
use firn_sql_types::SqlType;
use firn_sql_types::cast::FloatLimits;

pub use super::properties::{
    CheckModel, CheckOption, DefaultValue, ForeignKeyModel, Generated, ReferentialAction,
    SpecialIndex, ViewAlgorithm, ViewModel,
};
use super::statistics::TableStatistics;

/// A table, temporary table or view.
pub struct TableModel {
    /// The node's definition, with the codecs of rows and keys.
    pub table: TableRef,
    /// Its identity, which renames keep.
    pub id: TableId,
    pub schema: Arc<str>,
    /// Its name, as users see it.
    pub name: Arc<str>,
    pub kind: TableKind,
    /// In the order that users see; hidden ones last.
    pub columns: Vec<ColumnModel>,
    /// Ready ones, the primary key first.
    pub indexes: Vec<IndexModel>,
    /// `CHECK`s.
    pub checks: Vec<CheckModel>,
    /// Foreign keys whose child is this table.
    pub foreign_keys: Vec<ForeignKeyModel>,
    /// The ordinal of the `AUTO_INCREMENT` column.
    pub auto_increment: Option<u16>,
    pub comment: Arc<str>,
    /// The collation of columns that name none.
    pub collation: CollationId,
    /// `ROW_FORMAT` as written; empty if it was not.
    pub row_format: Arc<str>,
    /// Other table options, stored only to be shown again, in order.
    pub other_options: Vec<(Arc<str>, Arc<str>)>,
    /// When it was created: microseconds since 1970-01-01 UTC.
    pub created_us: u64,
    /// Statistics of its content.
    pub statistics: Arc<TableStatistics>,
    pub(super) positions: Vec<Option<u16>>,
}

/// The kind of a [`TableModel`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table.
    Base,
    /// A view; it has columns, but no rows of its own.
    View(ViewModel),
    /// A table that only its session sees.
    Temporary,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ColumnModel {
    /// Its place in rows.
    pub ordinal: u16,
    pub name: Arc<str>,
    /// The type of its values.
    pub ty: SqlType,
    /// The value that an `INSERT` without it stores.
    pub default: DefaultValue,
    /// `ON UPDATE CURRENT_TIMESTAMP(fsp)`: the digits of the fraction.
    pub on_update_now: Option<u8>,
    /// `GENERATED ALWAYS AS`.
    pub generated: Option<Generated>,
    pub auto_increment: bool,
    /// `INVISIBLE`: not part of `*`.
    pub invisible: bool,
    /// The column of a functional index part: no name refers to it, and `*` does not include it.
    pub hidden: bool,
    pub comment: Arc<str>,
    pub zerofill: bool,
    /// `UNSIGNED` of a number, also where the type does not record it (floats).
    pub unsigned: bool,
    /// `TINYINT(1)`, `INT(5) ZEROFILL`, `FLOAT(7,4)`: the first number.
    pub display_width: Option<u16>,
    /// `FLOAT(7,4)`: the second number.
    pub display_decimals: Option<u8>,
    /// The subtype of a geometry, in lower case; empty for others.
    pub geometry: Arc<str>,
}

impl ColumnModel {
    /// What a column of floats or doubles has besides its type.
    #[must_use]
    pub fn float_limits(&self) -> FloatLimits {
        FloatLimits {
            unsigned: self.unsigned,
            digits: self.display_width.zip(self.display_decimals),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexModel {
    /// Its number in the node's definition.
    pub number: usize,
    /// Its name; `PRIMARY` for a primary key.
    pub name: Arc<str>,
    /// Refuses equal values.
    pub unique: bool,
    pub primary: bool,
    /// Whether the planner may use it.
    pub visible: bool,
    pub parts: Vec<IndexPartModel>,
    pub comment: Arc<str>,
    /// `USING HASH` or `BTREE`, if written. All indexes are trees.
    pub using: Option<Arc<str>>,
    /// Made for a foreign key; dropped when another index can replace it.
    pub implicit: bool,
    /// `FULLTEXT` or `SPATIAL` was written.
    pub special: Option<SpecialIndex>,
}

/// A column of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPartModel {
    pub ordinal: u16,
    /// Characters of text, bytes of other strings, if not all of the column is indexed.
    pub prefix: Option<u32>,
    /// `DESC`
    pub descending: bool,
}

/// A foreign key as its parent table sees it.
#[derive(Debug, Clone)]
pub struct ReferencingKey {
    pub child: Arc<TableModel>,
    /// The foreign key's place in the child's [`TableModel::foreign_keys`].
    pub key: usize,
}

impl ReferencingKey {
    #[must_use]
    pub fn foreign_key(&self) -> &ForeignKeyModel {
        &self.child.foreign_keys[self.key]
    }
}

impl TableModel {
    /// A column by its ordinal; `None` for dropped ones and the engine's own.
    #[must_use]
    pub fn by_ordinal(&self, ordinal: u16) -> Option<&ColumnModel> {
        let position = *self.positions.get(usize::from(ordinal))?;
        self.columns.get(usize::from(position?))
    }

    /// A column by its name, in any case; never a hidden one.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnModel> {
        self.shown_columns().find(|column| same_name(&column.name, name))
    }

    /// The columns that users see, including invisible ones.
    pub fn shown_columns(&self) -> impl Iterator<Item = &ColumnModel> {
        self.columns.iter().filter(|column| !column.hidden)
    }

    /// The columns that `*` stands for.
    pub fn visible_columns(&self) -> impl Iterator<Item = &ColumnModel> {
        self.columns.iter().filter(|column| !column.hidden && !column.invisible)
    }

    /// An index by its name, in any case.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<&IndexModel> {
        self.indexes.iter().find(|index| same_name(&index.name, name))
    }

    #[must_use]
    pub fn primary_key(&self) -> Option<&IndexModel> {
        self.indexes.iter().find(|index| index.primary)
    }

    /// An index by its number in the node's definition.
    #[must_use]
    pub fn index_numbered(&self, number: usize) -> Option<&IndexModel> {
        self.indexes.iter().find(|index| index.number == number)
    }

    /// How many ordinals rows have, including dropped columns and the engine's own.
    #[must_use]
    pub fn ordinals(&self) -> usize {
        self.table.definition().columns.len()
    }

    /// What it is as a view.
    #[must_use]
    pub fn view(&self) -> Option<&ViewModel> {
        match &self.kind {
            TableKind::View(view) => Some(view),
            _ => None,
        }
    }

    /// Whether it has rows of its own.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        self.view().is_none()
    }
}

impl std::fmt::Debug for TableModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableModel")
            .field("id", &self.id)
            .field("schema", &self.schema)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Whether two names of columns, indexes or aliases are the same.
#[must_use]
pub fn same_name(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.eq_ignore_ascii_case(other)
        || !(one.is_ascii() && other.is_ascii()) && one.to_lowercase() == other.to_lowercase()
}
