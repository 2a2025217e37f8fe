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
use firn_sql_types::cast::FloatLimits;
use firn_sql_types::{Datum, SqlType};

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
    /// What it is.
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
    /// `COMMENT`.
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

/// The definition of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewModel {
    /// The query, with the names of tables and columns fully written out.
    pub body: Arc<str>,
    /// The schema of unqualified names in the body.
    pub schema: Arc<str>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// `SQL SECURITY DEFINER`, otherwise `INVOKER`.
    pub security_definer: bool,
    /// `ALGORITHM`.
    pub algorithm: ViewAlgorithm,
    /// `WITH … CHECK OPTION`.
    pub check_option: CheckOption,
}

/// How a view is executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    /// As the planner likes.
    #[default]
    Undefined,
    /// As part of the query.
    Merge,
    /// By itself first.
    TemporaryTable,
}

/// Whether rows written through a view must satisfy it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckOption {
    /// They need not.
    #[default]
    None,
    /// Satisfy it, but not the views below it.
    Local,
    /// In all views.
    Cascaded,
}

/// A column.
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
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// `INVISIBLE`: not part of `*`.
    pub invisible: bool,
    /// The column of a functional index part: no name refers to it, and `*` does not include it.
    pub hidden: bool,
    /// `COMMENT`.
    pub comment: Arc<str>,
    /// `ZEROFILL`.
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

/// The value that an `INSERT` without the column stores.
#[derive(Debug, Clone, PartialEq)]
pub enum DefaultValue {
    /// There is none: the statement must set the column.
    None,
    /// `NULL`, explicit or because the column may be NULL.
    Null,
    /// A value of the column's type. A timestamp is in the time zone of the session that uses it.
    Literal(Datum),
    /// `(expression)`: its text.
    Expression(Arc<str>),
    /// `CURRENT_TIMESTAMP(fsp)`
    CurrentTimestamp {
        /// Digits of the fraction of a second.
        fsp: u8,
    },
}

/// `GENERATED ALWAYS AS (text)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The expression.
    pub text: Arc<str>,
    /// `STORED`. Values of `VIRTUAL` columns are stored in rows as well: they are computed when a
    /// row is written.
    pub stored: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexModel {
    /// Its number in the node's definition.
    pub number: usize,
    /// Its name; `PRIMARY` for a primary key.
    pub name: Arc<str>,
    /// Refuses equal values.
    pub unique: bool,
    /// The primary key.
    pub primary: bool,
    /// Whether the planner may use it.
    pub visible: bool,
    /// Its columns.
    pub parts: Vec<IndexPartModel>,
    /// `COMMENT`.
    pub comment: Arc<str>,
    /// `USING HASH` or `BTREE`, if written. All indexes are trees.
    pub using: Option<Arc<str>>,
    /// Made for a foreign key; dropped when another index can replace it.
    pub implicit: bool,
    /// `FULLTEXT` or `SPATIAL` was written.
    pub special: Option<SpecialIndex>,
}

/// Kinds of indexes that are stored as ordinary ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialIndex {
    /// `FULLTEXT`
    FullText,
    /// `SPATIAL`
    Spatial,
}

/// A column of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexPartModel {
    /// The column's ordinal.
    pub ordinal: u16,
    /// Characters of text, bytes of other strings, if not all of the column is indexed.
    pub prefix: Option<u32>,
    /// `DESC`
    pub descending: bool,
}

/// `CHECK (text)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckModel {
    /// Its name, unique in the schema.
    pub name: Arc<str>,
    /// The expression.
    pub text: Arc<str>,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

/// A foreign key, as its child table has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyModel {
    /// Its name, unique in the schema.
    pub name: Arc<str>,
    /// The child's columns, by ordinal.
    pub columns: Vec<u16>,
    pub parent_schema: Arc<str>,
    /// The parent's name.
    pub parent_table: Arc<str>,
    /// The parent's columns, by name, in the order of `columns`.
    pub parent_columns: Vec<Arc<str>>,
    /// What happens to children when a parent is deleted.
    pub on_delete: ReferentialAction,
    /// What happens to children when a parent's key changes.
    pub on_update: ReferentialAction,
}

impl ForeignKeyModel {
    /// Whether an action on a parent can give the columns other values.
    #[must_use]
    pub fn sets_columns(&self) -> bool {
        use ReferentialAction::{Cascade, SetNull};
        matches!(self.on_update, Cascade | SetNull) || self.on_delete == SetNull
    }

    /// Whether an action on a parent changes or deletes rows through any of these columns.
    #[must_use]
    pub fn changes(&self, columns: &[u16]) -> bool {
        let acts = self.sets_columns() || self.on_delete == ReferentialAction::Cascade;
        acts && self.columns.iter().any(|column| columns.contains(column))
    }
}

/// What happens to children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// The change is refused; not shown.
    #[default]
    NoAction,
    /// The change is refused.
    Restrict,
    /// Children are changed, or deleted, with it.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns become their defaults; always refused.
    SetDefault,
}

impl ReferentialAction {
    /// Whether children are changed or deleted.
    #[must_use]
    pub fn cascades(self) -> bool {
        matches!(self, ReferentialAction::Cascade | ReferentialAction::SetNull)
    }
}

/// A foreign key as its parent table sees it.
#[derive(Debug, Clone)]
pub struct ReferencingKey {
    /// The child table.
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
