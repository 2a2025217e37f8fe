//! What a statement requires of the tables it names: privileges and metadata locks.

use std::sync::Arc;

use firn_sql_catalog::Catalog;
use firn_sql_catalog::model::TableModel;

/// A privilege that a statement needs on a table or view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanNeed {
    /// The part of the table on which it is needed.
    pub of: NeedOf,
    pub privilege: NeededPrivilege,
    pub schema: Arc<str>,
    /// The table or view.
    pub table: Arc<str>,
    /// The columns, if it is needed on columns.
    pub columns: Vec<Arc<str>>,
    /// The view through which the table is used; `None` if the statement names the table.
    pub through: Option<Arc<ViewUser>>,
}

/// The part of a table on which a privilege is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedOf {
    /// The table, or any column of it.
    Table,
    /// The table, or one of the privileges that imply locking its rows.
    LockedTable,
    Columns,
    /// Columns that a `*` stands for.
    AllColumns,
}

impl NeedOf {
    /// Whether it is a need on columns.
    #[must_use]
    pub fn is_of_columns(self) -> bool {
        matches!(self, NeedOf::Columns | NeedOf::AllColumns)
    }
}

/// Privileges that plans need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeededPrivilege {
    Select,
    Insert,
    Update,
    Delete,
}

/// The user of a table behind a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewUser {
    /// The schema of the view that the statement names.
    pub schema: Arc<str>,
    /// The name of that view.
    pub view: Arc<str>,
    /// `user@host` of the definer whose rights count; `None`: those of the session.
    pub definer: Option<Arc<str>>,
}

/// A table or view that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTable {
    pub schema: Arc<str>,
    /// The table or view.
    pub table: Arc<str>,
    /// The statement's name for it.
    pub alias: Arc<str>,
    /// Whether rows of it are written.
    pub writes: bool,
}

/// A metadata lock that an execution of a plan holds.
#[derive(Debug, Clone)]
pub struct PlannedLock {
    /// The table or view, as it was when the plan was made.
    pub model: Arc<TableModel>,
    /// Whether rows of it are written or locked.
    pub writes: bool,
}

impl PlannedLock {
    /// Whether the table still has the definition that the plan was made from. Waits while a change
    /// of the table commits.
    #[must_use]
    pub fn is_unchanged(&self, catalog: &Catalog) -> bool {
        let planned = self.model.table.definition().schema_version;
        let now = catalog.node().table(self.model.id);
        matches!(now, Ok(Some(now)) if now.definition().schema_version == planned)
    }
}
