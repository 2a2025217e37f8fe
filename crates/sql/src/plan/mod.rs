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
//! A plan holds for every execution of the same statement with parameters of the same types, as long as
//! the definitions that it was made from hold; it is shared between sessions and has no state.

mod access;
mod changes;
mod comparisons;
mod counters;
mod derived;
mod disjunctions;
mod explain;
pub(crate) mod finish;
mod grouping;
mod items;
mod join_order;
mod late;
mod nulls;
pub(crate) mod optimiser;
mod pool;
pub(crate) mod predicates;
mod premise;
mod ranges;
mod selectivity;
mod semijoin;
mod shape;
mod statement;
#[cfg(test)]
mod tests;
mod validity;
mod virtual_hints;
pub mod visit;
mod write;

use std::sync::Arc;

use firn_api::rows::{Direction, ReadMode};

use crate::catalog::model::TableModel;
use crate::catalog::virtual_table::VirtualTable;
use crate::error::Condition;
use crate::expression::{AggregateCall, Expression, Slot, SortKey};
use crate::logical::json_table::JsonLevel;
use crate::types::SqlType;

pub use crate::expression::{ComparedRow, Subquery, SubqueryKind};
pub use crate::logical::{
    Assignment, CheckedBy, ColumnOrigin, DuplicatePolicy, Executor, FrameBound, JoinKind,
    NamedTable, NeedOf, NeededPrivilege, OutputColumn, PlanContext, PlanNeed, PlannedLock, Premise,
    RowCheck, SetOperation, UntypedVariables, VariableTypes, ViewUser, WindowCall, WindowFrame,
    WindowFunction, WriteTarget,
};
pub use counters::{Counters, NodeCounters};
pub use explain::{ExplainRow, TABLE_COLUMNS, explain_json, explain_table, explain_tree};
pub use shape::PlanShape;
pub use statement::plan_bound;
pub use validity::Validity;
pub use write::{DeletePlan, InsertPlan, UpdatePlan};

/// A planned statement.
#[derive(Debug)]
pub struct PreparedPlan {
    /// What is done.
    pub statement: StatementPlan,
    /// How many slots the frame has.
    pub frame_slots: u32,
    /// The types that parameters were planned with.
    pub parameters: Vec<SqlType>,
    /// Materialised common table expressions, by [`PlanNode::CommonTable`]'s number.
    pub common_tables: Vec<CommonTable>,
    /// Subqueries in expressions, by their numbers.
    pub subqueries: Vec<SubqueryPlan>,
    /// For which definitions the plan holds.
    pub validity: Validity,
    /// Whether foreign keys referred to a table that is written when the plan was made.
    pub writes_parents: bool,
    /// Estimated cost, in rows touched; what classifies a statement as transactional or analytic.
    pub cost: f64,
    /// Who is to run it, if a hint says so.
    pub executor: Option<Executor>,
    /// What whoever runs it must be allowed to do.
    pub needs: Vec<PlanNeed>,
    /// The tables and views that the statement names, those of views aside: what `LOCK TABLES` judges.
    pub tables: Vec<NamedTable>,
    /// The tables and views whose definitions an execution relies on, ordered by their ids.
    pub locks: Vec<PlannedLock>,
    /// How long a query may run, from its hint.
    pub max_execution_time_ms: Option<u64>,
    /// Whether the plan may be kept for the same text (nothing of a session is in it, and it says all that
    /// the text does).
    pub is_cacheable: bool,
    /// What its parameters have to be, so that it holds for them.
    pub premises: Vec<Premise>,
    /// Whether it may be run again after its transaction took it back: it sets no user variable, takes no
    /// named lock and does not sleep.
    pub is_repeatable: bool,
    /// What a client is warned of when the statement is taken apart, whatever its rows are.
    pub conditions: Vec<Condition>,
}

/// What a statement does.
#[derive(Debug)]
pub enum StatementPlan {
    /// Answers rows.
    Query(QueryPlan),
    /// Writes rows.
    Insert(InsertPlan),
    /// Changes rows.
    Update(UpdatePlan),
    /// Deletes rows.
    Delete(DeletePlan),
}

/// A query with its result's columns.
#[derive(Debug)]
pub struct QueryPlan {
    /// Where the rows come from.
    pub root: PlanNode,
    /// The result's columns, in order.
    pub columns: Vec<OutputColumn>,
}

/// A part of a query's plan.
#[derive(Debug)]
pub struct PlanNode {
    /// What it does.
    pub kind: NodeKind,
    /// How many rows are expected.
    pub rows: f64,
    /// What it costs in all, its inputs included, in rows touched.
    pub cost: f64,
}

/// What a part of a plan does.
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
    /// Rows that are made up when they are read, such as those of `information_schema`.
    Virtual {
        /// Which table.
        table: Arc<dyn VirtualTable>,
        /// Columns by number, and where they go.
        slots: Vec<(u16, Slot)>,
        /// Conditions `column = expression` that the table may use to do less.
        hints: Vec<(u16, Expression)>,
    },
    /// Rows of a common table expression or derived table that is worked out once an execution.
    CommonTable {
        /// Its number in [`PreparedPlan::common_tables`].
        number: usize,
        /// Columns by number, and where they go.
        slots: Vec<(u16, Slot)>,
    },
    /// Rows made of a document.
    JsonTable {
        /// The document.
        document: Expression,
        /// What is read of it.
        level: Box<JsonLevel>,
        /// Where the columns go.
        slots: Vec<Slot>,
    },
    /// A subquery in `FROM` that is run as part of this one: its output goes to slots.
    Derived {
        /// The query.
        query: Box<QueryPlan>,
        /// Where its columns go; `None` for those that nobody reads.
        slots: Vec<Option<Slot>>,
        /// Whether it reads slots of tables to its left (`LATERAL`).
        lateral: bool,
    },
    /// Rows for which all conditions are true.
    Filter {
        /// Of these.
        input: Box<PlanNode>,
        /// In the order in which they are to be looked at.
        conditions: Vec<Expression>,
    },
    /// Computes expressions into slots.
    Compute {
        /// Of these rows.
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
    /// The right side is put in a hash table, the left side is looked up in it.
    HashJoin {
        /// The side that is looked up.
        left: Box<PlanNode>,
        /// The side that is put in memory.
        right: Box<PlanNode>,
        /// Which rows come out.
        join: JoinKind,
        /// Pairs that must be equal, of one type each (the binder has added casts).
        keys: Vec<(Expression, Expression)>,
        /// Whether NULL keys match each other (`<=>`), pair by pair.
        null_safe: Vec<bool>,
        /// Other conditions.
        conditions: Vec<Expression>,
        /// Slots of the right side that are read above.
        right_slots: Vec<Slot>,
    },
    /// Groups.
    Aggregate {
        /// Of these rows.
        input: Box<PlanNode>,
        /// By these, with the slots that their values go to.
        groups: Vec<(Slot, Expression)>,
        /// Computing these.
        aggregates: Vec<AggregateCall>,
        /// Whether the input comes ordered by the groups.
        sorted: bool,
        /// `WITH ROLLUP`; the slots say per group whether it is rolled up (`GROUPING`).
        rollup: Option<Vec<Slot>>,
    },
    /// Window functions of one window.
    Window(Box<WindowPlan>),
    /// Sorted rows.
    Sort {
        /// Of these rows.
        input: Box<PlanNode>,
        /// By these.
        keys: Vec<SortKey>,
        /// Slots that are read above.
        keep: Vec<Slot>,
        /// Only so many from the beginning are wanted: `LIMIT` plus `OFFSET`.
        limit: Option<Expression>,
    },
    /// Some of the rows.
    Limit {
        /// Of these rows.
        input: Box<PlanNode>,
        /// How many are left out.
        offset: Option<Expression>,
        /// How many come out at most.
        count: Option<Expression>,
        /// Count on to the end for `FOUND_ROWS()`.
        count_all: bool,
    },
    /// Each combination of these slots once.
    Distinct {
        /// Of these rows.
        input: Box<PlanNode>,
        /// The slots.
        slots: Vec<(Slot, SqlType)>,
        /// Other slots that are read above.
        keep: Vec<Slot>,
    },
    /// `UNION`, `INTERSECT`, `EXCEPT`.
    SetOperation {
        /// Which.
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
    /// The table.
    pub table: Arc<TableModel>,
    /// Its alias.
    pub alias: Arc<str>,
    /// The way to the rows.
    pub access: Access,
    /// Which way.
    pub direction: Direction,
    /// Which versions and locks.
    pub mode: ReadMode,
    /// The columns by ordinal, and where they go.
    pub slots: Vec<(u16, Slot)>,
    /// Conditions on this table's slots and those filled before.
    pub conditions: Vec<Expression>,
    /// Where the primary key's bytes go (as [`crate::types::Datum::Text`]), if the statement changes the
    /// row.
    pub row_key: Option<Slot>,
    /// Where the row's bytes go, if the statement changes the row.
    pub row_payload: Option<Slot>,
    /// The rows come from the index alone.
    pub covered: bool,
}

/// The way to a table's rows.
#[derive(Debug, Clone)]
pub enum Access {
    /// All, in the order of an index (`None`: the clustered one).
    Full {
        /// Its number in the definition.
        index: Option<usize>,
    },
    /// One row: all columns of a unique key are given, none of them NULL.
    Point {
        /// Its number in the definition; `None`: the clustered one.
        index: Option<usize>,
        /// Values, cast to the columns' types exactly, in the order of the index's parts.
        key: Vec<Expression>,
    },
    /// Ranges of an index, in its order; they do not overlap if the keys are as they are at run time
    /// (the executor sorts and merges them).
    Ranges {
        /// Its number in the definition; `None`: the clustered one.
        index: Option<usize>,
        /// At least one.
        ranges: Vec<RangePlan>,
    },
    /// Rows that any of these finds, each once (index merge).
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
    /// The query.
    pub query: QueryPlan,
    /// Slots of outer queries that it reads; the answer is kept while they do not change, and once for all
    /// if there are none.
    pub outer_slots: Vec<Slot>,
}

/// A common table expression.
#[derive(Debug)]
pub struct CommonTable {
    /// The query, or the part of a recursive one that begins.
    pub query: QueryPlan,
    /// The part that is repeated with the rows that it gave last; reads them as a `CommonTable` node of
    /// this number.
    pub recursive: Option<QueryPlan>,
    /// Of a recursive one: how many rows end it, and how many of them are left out.
    pub limit: Option<(Expression, Option<Expression>)>,
    /// `UNION DISTINCT` between the steps of a recursive one.
    pub distinct: bool,
    /// The types of its columns.
    pub types: Vec<SqlType>,
    /// Slots of outer queries that it reads: it is worked out anew when they change.
    pub outer_slots: Vec<Slot>,
}

/// Window functions that share a window.
#[derive(Debug)]
pub struct WindowPlan {
    /// Of these rows.
    pub input: PlanNode,
    /// `PARTITION BY`.
    pub partition: Vec<Expression>,
    /// `ORDER BY`.
    pub order: Vec<SortKey>,
    /// The frame.
    pub frame: WindowFrame,
    /// The functions.
    pub calls: Vec<WindowCall>,
    /// Slots that are read above.
    pub keep: Vec<Slot>,
}
