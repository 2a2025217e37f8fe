//! Queries with resolved names, before any decision about how they are evaluated.
//!
//! ```text
//!   Query ─► Body::Select(Block)      joins, conditions, groups, windows, outputs
//!         ├► Body::SetOperation       sides that are queries
//!         └► Body::Values             literal rows
//!   then ORDER BY and LIMIT; the result's columns read slots
//! ```

mod context;
pub mod expression;
pub mod json_table;
mod needs;
mod output;
mod premise;
mod reads;
mod statement;
mod window;
mod write;

use std::sync::Arc;

use firn_api::rows::ReadMode;

use crate::expression::{AggregateCall, Expression, Slot, SortKey};
use firn_sql_catalog::model::TableModel;
use firn_sql_catalog::virtual_table::VirtualTable;
use firn_sql_types::SqlType;

pub use context::{Executor, PlanContext, UntypedVariables, VariableTypes};
pub use needs::{NamedTable, NeedOf, NeededPrivilege, PlanNeed, PlannedLock, ViewUser};
pub use output::{ColumnOrigin, OutputColumn};
pub use premise::Premise;
pub use reads::outer_slots;
pub use statement::{
    BoundBody, BoundDelete, BoundInsert, BoundStatement, BoundUpdate, KeptRows, Part,
};
pub use window::{FrameBound, WindowCall, WindowFrame, WindowFunction};
pub use write::{Assignment, CheckedBy, DuplicatePolicy, RowCheck, WriteTarget};

/// A table reference of the statement, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationId(pub usize);

#[derive(Debug)]
pub struct Query {
    /// Where rows come from.
    pub body: Body,
    pub columns: Vec<OutputColumn>,
    /// `ORDER BY`.
    pub order: Vec<SortKey>,
    pub offset: Option<Expression>,
    pub limit: Option<Expression>,
    /// `SQL_CALC_FOUND_ROWS`.
    pub count_all: bool,
}

/// Where a query's rows come from.
#[derive(Debug)]
pub enum Body {
    Select(Box<Block>),
    Values {
        rows: Vec<Vec<Expression>>,
        /// Where the values go.
        slots: Vec<Slot>,
    },
    /// `UNION` and its kin.
    SetOperation {
        operation: SetOperation,
        /// Whether duplicates are kept.
        all: bool,
        /// The sides, cast to the types of `slots`.
        inputs: Vec<Query>,
        /// Where the columns go.
        slots: Vec<(Slot, SqlType)>,
    },
}

/// A `SELECT`.
#[derive(Debug, Default)]
pub struct Block {
    /// `FROM`; `None` without tables.
    pub from: Option<JoinTree>,
    /// `WHERE`: all must be true.
    pub conditions: Vec<Expression>,
    /// `GROUP BY` and aggregates.
    pub grouping: Option<Grouping>,
    /// `HAVING`: all must be true.
    pub having: Vec<Expression>,
    /// Windows, in the order in which they are evaluated.
    pub windows: Vec<Window>,
    /// Values that the result or the order reads as slots.
    pub computed: Vec<(Slot, Expression)>,
    /// `DISTINCT` over these slots.
    pub distinct: Option<Vec<(Slot, SqlType)>>,
    /// `STRAIGHT_JOIN`, or a hint that fixes the order of joins.
    pub straight: bool,
}

/// `GROUP BY` and aggregates.
#[derive(Debug, Default)]
pub struct Grouping {
    /// The group expressions, and the slots of their values.
    pub groups: Vec<(Slot, Expression)>,
    /// The aggregates of each group.
    pub aggregates: Vec<AggregateCall>,
    /// `WITH ROLLUP`: slots that say for each group whether it is rolled up.
    pub rollup: Option<Vec<Slot>>,
}

/// Window functions of one window.
#[derive(Debug)]
pub struct Window {
    /// `PARTITION BY`.
    pub partition: Vec<Expression>,
    /// `ORDER BY`.
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
    pub calls: Vec<WindowCall>,
}

/// Tables and how they are joined.
#[derive(Debug)]
pub enum JoinTree {
    /// A single relation.
    Relation(RelationId),
    Join {
        /// The kind of join; the left side is the outer one.
        kind: JoinKind,
        left: Box<JoinTree>,
        right: Box<JoinTree>,
        /// `ON`: all must be true.
        conditions: Vec<Expression>,
    },
}

impl JoinTree {
    /// Calls `visit` for each relation, from the left.
    pub fn for_each_relation(&self, visit: &mut dyn FnMut(RelationId)) {
        match self {
            JoinTree::Relation(relation) => visit(*relation),
            JoinTree::Join { left, right, .. } => {
                left.for_each_relation(visit);
                right.for_each_relation(visit);
            }
        }
    }

    /// How many relations there are.
    #[must_use]
    pub fn count(&self) -> usize {
        let mut count = 0;
        self.for_each_relation(&mut |_| count += 1);
        count
    }

    /// Whether rows may come out without a row of a relation, because it is on the inner side of an
    /// outer join.
    #[must_use]
    pub fn may_leave_out(&self, relation: RelationId) -> bool {
        match self {
            JoinTree::Relation(_) => false,
            JoinTree::Join { kind, left, right, .. } => {
                let is_inner_side =
                    *kind == JoinKind::Left && right.relations().contains(&relation);
                is_inner_side || left.may_leave_out(relation) || right.may_leave_out(relation)
            }
        }
    }

    /// The relations, from the left.
    #[must_use]
    pub fn relations(&self) -> Vec<RelationId> {
        let mut relations = Vec::new();
        self.for_each_relation(&mut |relation| relations.push(relation));
        relations
    }
}

/// A table reference.
#[derive(Debug)]
pub struct Relation {
    pub source: RelationSource,
    /// Its alias, or its name.
    pub alias: Arc<str>,
    /// By column (a table's ordinal, otherwise its number): its slot, if it is read.
    pub slots: Vec<Option<Slot>>,
    /// Which versions and locks.
    pub mode: ReadMode,
    /// `USE INDEX` and the like.
    pub hints: IndexHints,
    /// Slots for the row's key and bytes, if the statement changes it.
    pub row_slots: Option<(Slot, Slot)>,
}

/// What a table reference refers to.
#[derive(Debug)]
pub enum RelationSource {
    Table(Arc<TableModel>),
    /// A table whose rows are generated.
    Virtual(Arc<dyn VirtualTable>),
    /// A common table expression that is evaluated once, by its number.
    CommonTable(usize),
    /// A subquery in `FROM`.
    Derived {
        /// The query; the optimiser takes it out.
        query: Option<Box<Query>>,
        /// Whether it reads tables to its left.
        lateral: bool,
    },
    /// Rows made from a document, which may be a column of tables to its left; the optimiser takes
    /// it out.
    JsonTable(Option<Box<json_table::JsonTable>>),
}

/// `USE`, `FORCE` and `IGNORE INDEX`, and the hints of the same meaning.
#[derive(Debug, Clone, Default)]
pub struct IndexHints {
    /// Only these may be used, by number; `None`: all.
    pub only: Option<Vec<usize>>,
    /// A full scan only if no index can be used.
    pub force: bool,
    /// These may not be used.
    pub ignored: Vec<usize>,
}

impl IndexHints {
    /// Whether an index may be used.
    #[must_use]
    pub fn allows(&self, number: usize) -> bool {
        let listed = self.only.as_ref().is_none_or(|only| only.contains(&number));
        listed && !self.ignored.contains(&number)
    }
}

/// The rows that a join returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// Pairs that match.
    Inner,
    /// The same, and rows on the left that match nothing.
    Left,
    /// Rows on the left that match something, once.
    Semi,
    /// Rows on the left that match nothing.
    Anti,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperation {
    Union,
    Intersect,
    Except,
}
