//! Tables whose rows are generated when they are read: `information_schema`, `performance_schema`,
//! some of `mysql`.
//!
//! ```text
//!   SELECT … FROM information_schema.columns WHERE table_schema = 'test' AND table_name = 't'
//!     hints  [(1, 'test'), (2, 't')]   the table then looks at one table and not at all
//! ```
//!
//! Hints are only hints: rows that do not match may be emitted, because the executor filters.

use std::fmt::Debug;
use std::sync::Arc;

use firn_sql_types::error::Result;
use firn_sql_types::{Datum, EvaluationContext, SqlType};

use super::model::TableModel;
use super::session::{SessionCatalog, SessionTables};

/// A column of a virtual table.
#[derive(Debug, Clone)]
pub struct VirtualColumn {
    pub name: &'static str,
    pub ty: SqlType,
}

/// What a virtual table generates its rows from.
#[derive(Clone, Copy)]
pub struct VirtualContext<'a> {
    /// The definitions that the session sees.
    pub catalog: &'a SessionCatalog,
    /// Information of the session layer.
    pub session: &'a dyn SessionTables,
    /// Time zone and modes of the statement.
    pub evaluation: &'a EvaluationContext,
    /// What binding a view reveals about it.
    pub views: &'a dyn BoundViews,
}

/// Views as the binder sees them: the catalog only has their texts.
pub trait BoundViews {
    /// Whether rows of a view are rows of tables, so that they can be changed through it.
    fn is_updatable(&self, view: &Arc<TableModel>, context: &VirtualContext<'_>) -> bool;
}

/// Takes a row; false: no more rows are wanted.
pub type EmitRow<'a> = &'a mut dyn FnMut(&[Datum]) -> Result<bool>;

/// A table whose rows are generated when they are read.
pub trait VirtualTable: Send + Sync + Debug {
    fn schema(&self) -> &'static str;
    fn name(&self) -> &'static str;
    fn columns(&self) -> &[VirtualColumn];
    /// Emits its rows, at least all those whose columns have the values of `hints` (column, value).
    /// May read pages, so it may block.
    ///
    /// # Errors
    /// Errors of the catalog or of `emit`.
    fn rows(
        &self,
        context: &VirtualContext<'_>,
        hints: &[(u16, Datum)],
        emit: EmitRow<'_>,
    ) -> Result<()>;

    /// The columns for which hints save work: the planner passes no others.
    fn hinted_columns(&self) -> &[u16] {
        &[]
    }
}
