//! The properties of tables, columns and indexes that only SQL knows: parts of a
//! [model](super::model) that a node stores as bytes ([`options`](super::options)).
//!
//! ```text
//!   CREATE TABLE … ──► properties ──encode──► bytes in a TableDefinition ──decode──► properties
//! ```

use std::sync::Arc;

use firn_sql_types::Datum;

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

/// Kinds of indexes that are stored as ordinary ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialIndex {
    FullText,
    Spatial,
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
