//! Plans: what the planner decides and the executor does.
//!
//! ```text
//!   SELECT t.b FROM t JOIN u ON u.id = t.u WHERE t.a = ?  ORDER BY u.n LIMIT 5
//!
//!   Project [slot 1]
//!     Sort slot 3, limit 5
//!       NestedLoop inner
//!         Scan t  index a, a = parameter 0        fills slots 1 (b), 2 (u)
//!         Scan u  primary key, id = slot 2        fills slot 3 (n)
//! ```
//!
//! A plan is valid for every execution of the same statement with parameters of the same types,
//! while the definitions that it was made from are valid. Sessions share it, and it has no state.

mod access_summary;
mod comparisons;
mod counters;
mod explain;
mod optimiser;
pub mod predicates;
mod premise;
mod validity;
pub mod visit;
mod write;

use std::sync::Arc;

use firn_api::rows::{Direction, ReadMode};

use firn_sql_catalog::model::TableModel;
use firn_sql_catalog::virtual_table::VirtualTable;
use firn_sql_logical::expression::{AggregateCall, Expression, Slot, SortKey};
use firn_sql_logical::json_table::JsonLevel;
use firn_sql_types::SqlType;
use firn_sql_types::error::Condition;

pub use access_summary::PlanShape;
pub use counters::{Counters, NodeCounters};
pub use explain::{ExplainRow, TABLE_COLUMNS, explain_json, explain_table, explain_tree};
pub use firn_sql_logical::expression::{ComparedRow, Subquery, SubqueryKind};
pub use firn_sql_logical::{
    Assignment, CheckedBy, ColumnOrigin, DuplicatePolicy, Executor, FrameBound, JoinKind,
    NamedTable, NeedOf, NeededPrivilege, OutputColumn, PlanContext, PlanNeed, PlannedLock, Premise,
    RowCheck, SetOperation, UntypedVariables, VariableTypes, ViewUser, WindowCall, WindowFrame,
    WindowFunction, WriteTarget,
};
pub use optimiser::plan_bound;
pub use validity::Validity;
pub use write::{DeletePlan, InsertPlan, UpdatePlan};

#[derive(Debug)]
pub struct PreparedPlan {
    pub statement: StatementPlan,
    /// How many slots the frame has.
    pub frame_slots: u32,
    /// The types that parameters were planned with.
    pub parameters: Vec<SqlType>,
    /// Materialised common table expressions, by [`PlanNode::CommonTable`]'s number.
    pub common_tables: Vec<CommonTable>,
    /// Subqueries in expressions, by their numbers.
    pub subqueries: Vec<SubqueryPlan>,
    /// The definitions for which the plan is valid.
    pub validity: Validity,
    /// Whether foreign keys referred to a written table when the plan was made.
    pub writes_parents: bool,
    /// Estimated cost, in rows touched; it classifies a statement as transactional or analytic.
    pub cost: f64,
    /// The executor, if a hint names one.
    pub executor: Option<Executor>,
    /// The privileges that a user needs to run it.
    pub needs: Vec<PlanNeed>,
    /// The tables and views that the statement names, without those inside views; `LOCK TABLES`
    /// checks them.
    pub tables: Vec<NamedTable>,
    /// The tables and views whose definitions an execution relies on, ordered by their ids.
    pub locks: Vec<PlannedLock>,
    /// How long a query may run, from its hint.
    pub max_execution_time_ms: Option<u64>,
    /// Whether the plan may be cached for the same text (it contains nothing of the session, and
    /// expresses everything that the text says).
    pub is_cacheable: bool,
    /// Conditions on its parameters under which it is valid.
    pub premises: Vec<Premise>,
    /// Whether it may run again after a rollback of its transaction: it sets no user variable,
    /// takes no named lock and does not sleep.
    pub is_repeatable: bool,
    /// Warnings that the client gets when the statement is parsed, whatever its rows.
    pub conditions: Vec<Condition>,
}

#[derive(Debug)]
pub enum StatementPlan {
    Query(QueryPlan),
    Insert(InsertPlan),
    Update(UpdatePlan),
    Delete(DeletePlan),
}

/// A query with its result's columns.
#[derive(Debug)]
pub struct QueryPlan {
    /// The source of the rows.
    pub root: PlanNode,
    /// The result's columns, in order.
    pub columns: Vec<OutputColumn>,
}

/// A part of a query's plan.
#[derive(Debug)]
pub struct PlanNode {
    pub kind: NodeKind,
    /// The expected number of rows.
    pub rows: f64,
    /// The total cost including the inputs, in rows touched.
    pub cost: f64,
}

/// The operation of a part of a plan.
#[derive(Debug)]
pub enum NodeKind {
    /// One row without columns: `SELECT 1`.
    OneRow,
    /// No rows.
    Empty,
    /// Literal rows.
    Values {
        /// Each as long as `slots`.
        rows: Vec<Vec<Expression>>,
        /// Where the values go.
        slots: Vec<Slot>,
    },
    /// Rows of a table.
    Scan(Box<ScanPlan>),
    /// Rows that are generated when they are read, such as those of `information_schema`.
    Virtual {
        table: Arc<dyn VirtualTable>,
        /// Columns by number, and their slots.
        slots: Vec<(u16, Slot)>,
        /// Conditions `column = expression` that the table may use to do less.
        hints: Vec<(u16, Expression)>,
    },
    /// Rows of a common table expression or derived table that is evaluated once per execution.
    CommonTable {
        /// Its number in [`PreparedPlan::common_tables`].
        number: usize,
        /// Columns by number, and their slots.
        slots: Vec<(u16, Slot)>,
    },
    /// Rows made from a document.
    JsonTable {
        document: Expression,
        /// The columns that are read from it.
        level: Box<JsonLevel>,
        /// Where the columns go.
        slots: Vec<Slot>,
    },
    /// A subquery in `FROM` that runs as part of this one: its output goes to slots.
    Derived {
        query: Box<QueryPlan>,
        /// The slots of its columns; `None` for columns that are not read.
        slots: Vec<Option<Slot>>,
        /// Whether it reads slots of tables to its left (`LATERAL`).
        lateral: bool,
    },
    /// Rows for which all conditions are true.
    Filter {
        input: Box<PlanNode>,
        /// In the order in which they are evaluated.
        conditions: Vec<Expression>,
    },
    /// Computes expressions into slots.
    Compute {
        input: Box<PlanNode>,
        /// What goes where.
        outputs: Vec<(Slot, Expression)>,
    },
    /// For each row on the left, the rows on the right, which may read slots of the left.
    NestedLoop {
        /// The outer side.
        left: Box<PlanNode>,
        /// The inner side, opened again for each row.
        right: Box<PlanNode>,
        /// Which rows come out.
        join: JoinKind,
        /// Conditions over both sides that the inner side does not check itself.
        conditions: Vec<Expression>,
        /// Slots of the right side, which are NULL where nothing matches.
        right_slots: Vec<Slot>,
    },
    /// The right side is put in a hash table, and rows of the left side are looked up in it.
    HashJoin {
        /// The side that is looked up.
        left: Box<PlanNode>,
        /// The side that is put in memory.
        right: Box<PlanNode>,
        /// Which rows come out.
        join: JoinKind,
        /// Pairs that must be equal, each of one type (the binder has added casts).
        keys: Vec<(Expression, Expression)>,
        /// Whether NULL keys match each other (`<=>`), pair by pair.
        null_safe: Vec<bool>,
        /// Other conditions.
        conditions: Vec<Expression>,
        /// Slots of the right side that are read above.
        right_slots: Vec<Slot>,
    },
    Aggregate {
        input: Box<PlanNode>,
        /// The group expressions, and the slots of their values.
        groups: Vec<(Slot, Expression)>,
        aggregates: Vec<AggregateCall>,
        /// Whether the input comes ordered by the groups.
        sorted: bool,
        /// `WITH ROLLUP`; the slots say for each group whether it is rolled up (`GROUPING`).
        rollup: Option<Vec<Slot>>,
    },
    /// Window functions of one window.
    Window(Box<WindowPlan>),
    Sort {
        input: Box<PlanNode>,
        keys: Vec<SortKey>,
        /// Slots that are read above.
        keep: Vec<Slot>,
        /// Only this many rows from the beginning are wanted: `LIMIT` plus `OFFSET`.
        limit: Option<Expression>,
    },
    /// Some of the rows.
    Limit {
        input: Box<PlanNode>,
        /// How many rows are skipped.
        offset: Option<Expression>,
        /// How many rows come out at most.
        count: Option<Expression>,
        /// Continue counting to the end for `FOUND_ROWS()`.
        count_all: bool,
    },
    /// Each combination of these slots once.
    Distinct {
        input: Box<PlanNode>,
        slots: Vec<(Slot, SqlType)>,
        /// Other slots that are read above.
        keep: Vec<Slot>,
    },
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    SetOperation {
        operation: SetOperation,
        /// Whether duplicates are kept.
        all: bool,
        /// The sides; their columns have been cast to the types of `slots`.
        inputs: Vec<QueryPlan>,
        /// Where the columns go.
        slots: Vec<(Slot, SqlType)>,
    },
}

/// How a table's rows are found.
#[derive(Debug)]
pub struct ScanPlan {
    pub table: Arc<TableModel>,
    pub alias: Arc<str>,
    /// The way to the rows.
    pub access: Access,
    pub direction: Direction,
    /// Which versions and locks.
    pub mode: ReadMode,
    /// The columns by ordinal, and their slots.
    pub slots: Vec<(u16, Slot)>,
    /// Conditions on this table's slots and on those filled earlier.
    pub conditions: Vec<Expression>,
    /// The slot for the primary key's bytes (as [`firn_sql_types::Datum::Text`]), if the statement
    /// changes the row.
    pub row_key: Option<Slot>,
    /// The slot for the row's bytes, if the statement changes the row.
    pub row_payload: Option<Slot>,
    /// The rows come from the index alone.
    pub covered: bool,
}

/// The access path to a table's rows.
#[derive(Debug, Clone)]
pub enum Access {
    /// All, in the order of an index (`None`: the clustered one).
    Full {
        /// Its number in the definition.
        index: Option<usize>,
    },
    /// One row: the values of all columns of a unique key are known, and none is NULL.
    Point {
        /// Its number in the definition; `None`: the clustered one.
        index: Option<usize>,
        /// Values, cast exactly to the columns' types, in the order of the index's parts.
        key: Vec<Expression>,
    },
    /// Ranges of an index, in its order. At run time they do not overlap: the executor sorts and
    /// merges them.
    Ranges {
        /// Its number in the definition; `None`: the clustered one.
        index: Option<usize>,
        /// At least one.
        ranges: Vec<RangePlan>,
    },
    /// Rows found by any of these, each once (index merge).
    Union(Vec<Access>),
}

/// A range of an index: equal parts first, then at most one part with bounds.
#[derive(Debug, Clone)]
pub struct RangePlan {
    /// Values of the first parts; a NULL here means IS NULL only if `null_safe` says so.
    pub equal: Vec<Expression>,
    /// Whether NULL values in `equal` match (`<=>`, `IS NULL`), part by part.
    pub null_safe: Vec<bool>,
    /// The lower bound of the next part, and whether it is part of the range.
    pub lower: Option<(Expression, bool)>,
    /// The upper bound of the next part, and whether it is part of the range.
    pub upper: Option<(Expression, bool)>,
}

/// The plan of a subquery in an expression.
#[derive(Debug)]
pub struct SubqueryPlan {
    pub query: QueryPlan,
    /// Slots of outer queries that it reads. The result is kept while they do not change, and for
    /// the whole execution if there are none.
    pub outer_slots: Vec<Slot>,
}

#[derive(Debug)]
pub struct CommonTable {
    /// The query, or the initial part of a recursive one.
    pub query: QueryPlan,
    /// The part that is repeated with the rows of its last run; it reads them as a `CommonTable`
    /// node of this number.
    pub recursive: Option<QueryPlan>,
    /// Of a recursive one: the number of rows that ends it, and how many of them are skipped.
    pub limit: Option<(Expression, Option<Expression>)>,
    /// `UNION DISTINCT` between the steps of a recursive one.
    pub distinct: bool,
    /// The types of its columns.
    pub types: Vec<SqlType>,
    /// Slots of outer queries that it reads: it is evaluated again when they change.
    pub outer_slots: Vec<Slot>,
}

/// Window functions that share a window.
#[derive(Debug)]
pub struct WindowPlan {
    pub input: PlanNode,
    /// `PARTITION BY`.
    pub partition: Vec<Expression>,
    /// `ORDER BY`.
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
    pub calls: Vec<WindowCall>,
    /// Slots that are read above.
    pub keep: Vec<Slot>,
}
