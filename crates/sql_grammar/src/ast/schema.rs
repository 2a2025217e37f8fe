//! Databases and views.

use super::Query;
use super::{Account, TableName};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateDatabase {
    /// No error if it already exists.
    pub if_not_exists: bool,
    pub name: String,
    /// What is said of it.
    pub options: DatabaseOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AlterDatabase {
    /// The database; none for the current one.
    pub name: Option<String>,
    pub options: DatabaseOptions,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DatabaseOptions {
    /// Default character set.
    pub charset: Option<String>,
    /// Default collation.
    pub collation: Option<String>,
    /// Whether new tables are encrypted.
    pub encryption: Option<bool>,
    /// `READ ONLY`; `DEFAULT` is false.
    pub read_only: Option<bool>,
}

/// `CREATE VIEW` and `ALTER VIEW`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CreateView {
    pub or_replace: bool,
    /// `ALTER VIEW`: it must exist.
    pub alter: bool,
    /// How it is executed.
    pub algorithm: ViewAlgorithm,
    /// `DEFINER`; none for the current account.
    pub definer: Option<Account>,
    /// `SQL SECURITY INVOKER`; `DEFINER` is the default.
    pub invoker_security: bool,
    pub view: TableName,
    /// Names of its columns; empty for the query's.
    pub columns: Vec<String>,
    pub query: Query,
    /// The query as written, for `SHOW CREATE VIEW` and the catalog.
    pub query_text: String,
    /// `WITH CHECK OPTION`.
    pub check_option: Option<CheckOption>,
}

/// How a view is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ViewAlgorithm {
    /// As the server sees fit.
    #[default]
    Undefined,
    /// Merged into the query that names it.
    Merge,
    /// Into a temporary table.
    TempTable,
}

/// What `WITH CHECK OPTION` extends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckOption {
    /// Views below are checked too.
    Cascaded,
    /// Only this view.
    Local,
}
