//! Queries: the parts of a `SELECT`.

use super::{Expr, OrderByExpr, TableName, Value, WindowSpec};

/// A query with all its clauses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Query {
    pub with: Option<With>,
    /// The query without order and limit.
    pub body: Box<SetExpr>,
    pub order_by: Vec<OrderByExpr>,
    pub limit: Option<Limit>,
    /// `FOR UPDATE` and the like, one for each table of `OF`.
    pub locks: Vec<LockClause>,
}

/// `LIMIT count OFFSET offset`; `LIMIT offset, count` is the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limit {
    pub count: Expr,
    /// How many rows are skipped before them.
    pub offset: Option<Expr>,
}

/// `WITH [RECURSIVE]`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct With {
    pub recursive: bool,
    /// At least one.
    pub tables: Vec<CommonTable>,
}

/// `name (columns) AS (query)`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommonTable {
    /// Its name and those of its columns.
    pub alias: TableAlias,
    /// What it stands for.
    pub query: Box<Query>,
}

/// A name of a table in a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableAlias {
    pub name: String,
    /// Names of its columns, if they are written.
    pub columns: Vec<String>,
}

/// A query without order and limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetExpr {
    Select(Box<SelectBlock>),
    /// `(query)`
    Query(Box<Query>),
    /// `UNION`, `EXCEPT`, `INTERSECT`
    SetOperation {
        left: Box<SetExpr>,
        op: SetOperator,
        all: bool,
        right: Box<SetExpr>,
    },
    /// `VALUES ROW(…), ROW(…)`
    Values(Vec<Vec<Expr>>),
    /// `TABLE name`
    Table(TableName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

/// `SELECT` up to `HAVING` and `WINDOW`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SelectBlock {
    /// The texts of `/*+ … */`.
    pub hints: Vec<String>,
    /// Words before the list.
    pub modifiers: SelectModifiers,
    pub distinct: bool,
    pub projection: Vec<SelectItem>,
    /// `FROM`; empty for `FROM DUAL`.
    pub from: Vec<TableWithJoins>,
    /// `WHERE`.
    pub selection: Option<Expr>,
    pub group_by: Vec<Expr>,
    /// `WITH ROLLUP`.
    pub rollup: bool,
    pub having: Option<Expr>,
    /// `WINDOW`.
    pub named_windows: Vec<(String, WindowSpec)>,
}

/// Words between `SELECT` and its list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SelectModifiers {
    pub high_priority: bool,
    pub straight_join: bool,
    pub sql_small_result: bool,
    pub sql_big_result: bool,
    pub sql_buffer_result: bool,
    pub sql_no_cache: bool,
    pub sql_calc_found_rows: bool,
}

/// An item of a `SELECT`'s list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SelectItem {
    /// A column, which names the item, or an expression that no name refers to.
    Unnamed(Expr),
    /// `x AS alias`
    Aliased { expr: Expr, alias: String },
    /// An expression that is named by its text, or by a string.
    NamedAfterText { expr: Expr, name: String },
    /// `*`
    Wildcard,
    /// `t.*`, `db.t.*`
    QualifiedWildcard(TableName),
}

impl SelectItem {
    /// The value, if the item is one.
    #[must_use]
    pub fn expr(&self) -> Option<&Expr> {
        match self {
            SelectItem::Unnamed(expr)
            | SelectItem::Aliased { expr, .. }
            | SelectItem::NamedAfterText { expr, .. } => Some(expr),
            SelectItem::Wildcard | SelectItem::QualifiedWildcard(_) => None,
        }
    }
}

/// A table and its joins, from the left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableWithJoins {
    /// The first table.
    pub relation: TableFactor,
    /// What is joined to it.
    pub joins: Vec<Join>,
}

/// A join after its left side.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Join {
    /// The right side.
    pub relation: TableFactor,
    /// Which rows come out.
    pub kind: JoinKind,
    pub constraint: JoinConstraint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// `JOIN`, `INNER JOIN`, `CROSS JOIN`, a comma in parentheses
    Inner,
    /// `STRAIGHT_JOIN`
    Straight,
    /// `LEFT JOIN`
    Left,
    /// `RIGHT JOIN`
    Right,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JoinConstraint {
    /// No condition: every pair.
    None,
    On(Expr),
    Using(Vec<String>),
    Natural,
}

/// What may be joined.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TableFactor {
    /// A table or view.
    Table {
        name: TableName,
        /// Its name in the query.
        alias: Option<TableAlias>,
        /// `PARTITION (…)`.
        partitions: Vec<String>,
        /// `USE INDEX` and the like.
        index_hints: Vec<IndexHint>,
    },
    /// `[LATERAL] (query) AS alias`
    Derived { lateral: bool, subquery: Box<Query>, alias: TableAlias },
    /// `(a JOIN b …)`
    Nested(Box<TableWithJoins>),
    /// `JSON_TABLE(document, path COLUMNS (…)) AS alias`
    JsonTable(Box<JsonTable>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonTable {
    pub document: Expr,
    /// Where its rows are.
    pub path: Value,
    /// The columns that are read from each.
    pub columns: Vec<JsonTableColumn>,
    pub alias: TableAlias,
}

/// A column of `JSON_TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JsonTableColumn {
    /// `name FOR ORDINALITY`
    ForOrdinality(String),
    /// `name type [EXISTS] PATH '…' …`
    Named(JsonTableNamedColumn),
    /// `NESTED PATH '…' COLUMNS (…)`
    Nested {
        /// Where its rows are.
        path: String,
        /// The columns that are read from each.
        columns: Vec<JsonTableColumn>,
    },
}

/// A column of `JSON_TABLE` with a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonTableNamedColumn {
    pub name: String,
    /// Its type as written: [`parse_column_type`](crate::parse_column_type).
    pub type_text: String,
    /// Where its value is.
    pub path: String,
    /// Asks whether there is a value, not which.
    pub exists: bool,
    pub on_empty: Option<JsonTableHandling>,
    pub on_error: Option<JsonTableHandling>,
}

/// What `JSON_TABLE` does for a missing or wrong value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JsonTableHandling {
    Null,
    Error,
    Default(Value),
}

/// `USE INDEX (…)` and the like.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexHint {
    /// What it wants of the indexes.
    pub kind: IndexHintKind,
    /// `FOR`: for what only.
    pub scope: Option<IndexHintScope>,
    /// Only `USE INDEX` may list none.
    pub indexes: Vec<String>,
}

/// What an index hint wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexHintKind {
    Use,
    Ignore,
    Force,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexHintScope {
    /// `FOR JOIN`
    Join,
    /// `FOR ORDER BY`
    OrderBy,
    /// `FOR GROUP BY`
    GroupBy,
}

/// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LockClause {
    pub strength: LockStrength,
    /// `OF`: the table whose rows are locked; all tables if none is written.
    pub of: Option<TableName>,
    /// What happens if others hold locks.
    pub wait: LockWait,
}

/// Which lock a query takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockStrength {
    /// `FOR SHARE`, `LOCK IN SHARE MODE`
    Share,
    /// `FOR UPDATE`
    Update,
}

/// What a locking query does if others hold locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockWait {
    Wait,
    Nowait,
    SkipLocked,
}
