//! Reading and changing rows.

use super::{BinaryOperator, Expr, OrderByExpr, Query, TableWithJoins, With};
use super::{ColumnName, TableName, ValueOrDefault};

/// A query as a statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Select {
    pub query: Query,
    /// `INTO`: where its rows go instead of to the client.
    pub into: Option<Into>,
}

/// `SELECT … INTO`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Into {
    /// User variables, one per column.
    Variables(Vec<String>),
    /// A file of rows on the server.
    Outfile {
        path: String,
        charset: Option<String>,
        /// How columns and lines are written.
        format: FileFormat,
    },
    /// A file with the single value, unformatted.
    Dumpfile(String),
}

/// The layout of columns and lines in a text file, from `LOAD DATA` and `INTO OUTFILE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileFormat {
    /// Between columns; tab unless given.
    pub fields_terminated_by: String,
    /// Around columns; nothing unless given.
    pub enclosed_by: String,
    /// Only strings are enclosed.
    pub optionally_enclosed: bool,
    /// Before special characters; a backslash unless given.
    pub escaped_by: String,
    /// Before each line; nothing unless given.
    pub lines_starting_by: String,
    /// After each line; a newline unless given.
    pub lines_terminated_by: String,
}

impl Default for FileFormat {
    fn default() -> FileFormat {
        FileFormat {
            fields_terminated_by: "\t".into(),
            enclosed_by: String::new(),
            optionally_enclosed: false,
            escaped_by: "\\".into(),
            lines_starting_by: String::new(),
            lines_terminated_by: "\n".into(),
        }
    }
}

/// The priority words, which InnoDB accepts and ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Priority {
    /// None said.
    #[default]
    Normal,
    /// `LOW_PRIORITY`.
    Low,
    /// `HIGH_PRIORITY`.
    High,
    /// `DELAYED`, an ordinary insert since MySQL 5.6.
    Delayed,
    Concurrent,
}

/// `column = value`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assignment {
    pub column: ColumnName,
    /// What it becomes.
    pub value: ValueOrDefault,
}

/// `INSERT` and `REPLACE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Insert {
    /// `REPLACE`: conflicting rows are deleted first.
    pub replace: bool,
    pub priority: Priority,
    /// `IGNORE`: errors of a row become warnings.
    pub ignore: bool,
    pub table: TableName,
    /// The only partitions that may receive rows; empty for all.
    pub partitions: Vec<String>,
    /// The columns that get values; empty for all, in the table's order. `SET a = 1` is represented
    /// as the column `a` and one row.
    pub columns: Vec<String>,
    /// The source of the rows.
    pub source: InsertSource,
    /// `AS new(a, b)` after the values.
    pub row_alias: Option<RowAlias>,
    /// `ON DUPLICATE KEY UPDATE`; empty if absent.
    pub on_duplicate: Vec<Assignment>,
    /// Texts of `/*+ … */`.
    pub hints: Vec<String>,
}

/// The source of inserted rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InsertSource {
    /// Rows in the text; a row may be empty (`VALUES ()`), which means all defaults.
    Values(Vec<Vec<ValueOrDefault>>),
    Query(Box<Query>),
}

/// The name under which `ON DUPLICATE KEY UPDATE` sees the row that conflicted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowAlias {
    /// The row.
    pub name: String,
    /// Its columns; empty for the table's own names.
    pub columns: Vec<String>,
}

/// `UPDATE`. It changes one table if `tables` has one entry without joins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Update {
    /// `WITH` before it.
    pub with: Option<With>,
    pub low_priority: bool,
    /// `IGNORE`: errors of a row become warnings.
    pub ignore: bool,
    /// The tables, as in `FROM`.
    pub tables: Vec<TableWithJoins>,
    /// The assignments, in order.
    pub assignments: Vec<Assignment>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; only with one table.
    pub order_by: Vec<OrderByExpr>,
    /// `LIMIT`; only with one table.
    pub limit: Option<Expr>,
    /// Texts of `/*+ … */`.
    pub hints: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Delete {
    /// `WITH` before it.
    pub with: Option<With>,
    pub low_priority: bool,
    pub quick: bool,
    /// `IGNORE`: errors of a row become warnings.
    pub ignore: bool,
    /// Several tables: those that lose rows, by name or alias in `tables`. Empty: one table, the
    /// only entry of `tables`.
    pub targets: Vec<TableName>,
    /// The tables, as in `FROM`.
    pub tables: Vec<TableWithJoins>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// `ORDER BY`; only with one table.
    pub order_by: Vec<OrderByExpr>,
    /// `LIMIT`; only with one table.
    pub limit: Option<Expr>,
    /// Texts of `/*+ … */`.
    pub hints: Vec<String>,
}

/// What `LOAD DATA` does with a row whose key already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// It is an error (for `LOCAL`: the row is skipped).
    Refuse,
    /// The new row is skipped.
    Ignore,
    /// The old row goes.
    Replace,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoadData {
    /// `LOCAL`: the client sends the file.
    pub local: bool,
    pub priority: Priority,
    pub path: String,
    /// The action for rows whose keys already exist.
    pub on_conflict: OnConflict,
    pub table: TableName,
    /// The only partitions that may receive rows; empty for all.
    pub partitions: Vec<String>,
    pub charset: Option<String>,
    /// The layout of columns and lines.
    pub format: FileFormat,
    /// Lines skipped at the start.
    pub ignore_lines: u64,
    /// The targets of a line's fields; empty for all columns in the table's order.
    pub targets: Vec<LoadTarget>,
    /// `SET`: columns computed for each line.
    pub set: Vec<Assignment>,
}

/// The target of a field of a loaded line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LoadTarget {
    Column(String),
    /// A user variable.
    Variable(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    pub procedure: TableName,
    /// What it is given.
    pub arguments: Vec<Expr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Handler {
    Open {
        table: TableName,
        /// Its name from then on.
        alias: Option<String>,
    },
    Read(Box<HandlerRead>),
    Close(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HandlerRead {
    /// The handler.
    pub table: TableName,
    /// The index; none for the table's own order.
    pub index: Option<String>,
    pub position: HandlerPosition,
    /// `WHERE`.
    pub selection: Option<Expr>,
    /// How many rows; one unless given.
    pub limit: Option<Expr>,
    /// Rows skipped before.
    pub offset: Option<Expr>,
}

/// Where `HANDLER … READ` goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HandlerPosition {
    First,
    Next,
    /// `PREV`.
    Previous,
    Last,
    /// `= (…)`, `>= (…)` and so on.
    Key {
        /// `=`, `<=`, `>=`, `<` or `>`.
        comparison: BinaryOperator,
        /// The values of the index's first columns.
        values: Vec<Expr>,
    },
}
