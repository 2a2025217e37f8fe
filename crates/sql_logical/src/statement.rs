//! A bound statement: its queries, in the order in which they are planned.
//!
//! ```text
//!   WITH c AS (…) SELECT (SELECT … FROM c) FROM t        parts  [CommonTable 0, Subquery 0]
//!                                                        body   Query over t
//! ```
//!
//! Invariants:
//! * a part refers only to earlier parts: to common tables and subqueries by their numbers;
//! * a subquery is never evaluated while a statement is being bound: folding of constants stops at
//!   it.

use std::sync::Arc;

use crate::expression::{Expression, Slot, SortKey};
use firn_sql_catalog::model::TableModel;
use firn_sql_types::SqlType;

use super::{
    Block, DuplicatePolicy, NamedTable, OutputColumn, PlanNeed, PlannedLock, Premise, Query,
    Relation, RelationId, RowCheck, WriteTarget,
};

/// A statement with resolved names.
#[derive(Debug)]
pub struct BoundStatement {
    pub body: BoundBody,
    /// The parts that are planned before it, in this order.
    pub parts: Vec<Part>,
    /// Table references, by [`RelationId`].
    pub relations: Vec<Relation>,
    pub slots: usize,
    /// The version of the definitions that it was bound to.
    pub definitions_version: u64,
    /// Whether all tables and views that it uses are stored, and none is a temporary table of the
    /// session.
    pub uses_stored_tables_only: bool,
    /// Whether foreign keys refer to a table that is written.
    pub writes_parents: bool,
    /// The privileges that its user needs.
    pub needs: Vec<PlanNeed>,
    /// The tables and views that it names, without those inside views.
    pub tables: Vec<NamedTable>,
    /// The tables and views whose definitions an execution relies on.
    pub locks: Vec<PlannedLock>,
    /// How long a query may run, from its hint.
    pub max_execution_time_ms: Option<u64>,
    /// Whether its plan may be cached for the same text.
    pub is_cacheable: bool,
    /// Conditions on its parameters.
    pub premises: Vec<Premise>,
    /// Whether it may run again after a rollback of its transaction.
    pub is_repeatable: bool,
}

/// A query of a statement that is planned by itself.
#[derive(Debug)]
pub enum Part {
    /// The subquery of the next number.
    Subquery(Query),
    /// A table reference that is evaluated by itself, whatever conditions come from outside.
    Relation(RelationId),
    /// The common table of the next number.
    CommonTable(Query),
    /// The initial query of the recursive common table with the next number.
    Seed(Query),
    /// The part of a recursive common table that is repeated.
    Step {
        number: usize,
        /// The query, which refers to the table itself.
        query: Query,
        /// The number of rows that ends it, and how many of them are skipped.
        limit: Option<(Expression, Option<Expression>)>,
        /// `UNION DISTINCT` between the steps.
        distinct: bool,
        /// The types of the columns.
        types: Vec<SqlType>,
    },
}

/// What a bound statement does.
#[derive(Debug)]
pub enum BoundBody {
    Query(Query),
    /// Works out expressions without tables.
    Expressions(Vec<Expression>),
    Insert(BoundInsert),
    Update(BoundUpdate),
    Delete(BoundDelete),
}

impl BoundBody {
    /// The tables that the statement writes, without cascades.
    pub fn written(&self) -> impl Iterator<Item = &Arc<TableModel>> {
        let (inserted, targets) = match self {
            BoundBody::Query(_) | BoundBody::Expressions(_) => (None, &[][..]),
            BoundBody::Insert(insert) => (Some(&insert.table), &[][..]),
            BoundBody::Update(update) => (None, &update.targets[..]),
            BoundBody::Delete(delete) => (None, &delete.targets[..]),
        };
        inserted.into_iter().chain(targets.iter().map(|target| &target.table))
    }
}

/// `INSERT` and `REPLACE`.
#[derive(Debug)]
pub struct BoundInsert {
    pub table: Arc<TableModel>,
    /// The columns that get values, by ordinal.
    pub columns: Vec<u16>,
    /// The rows, possibly followed by columns that only [`BoundInsert::duplicates`] reads.
    pub source: Query,
    /// The rows are evaluated and kept before the first one is written.
    pub kept: Option<KeptRows>,
    /// The action for a duplicate key.
    pub duplicates: DuplicatePolicy,
    pub ignore: bool,
    /// Slots of the new row's columns, by ordinal.
    pub new_row: Vec<(u16, Slot)>,
    /// Slots of the existing row's columns, by ordinal.
    pub old_row: Vec<(u16, Slot)>,
    /// Generated columns in the order of dependence.
    pub generated: Vec<(u16, Expression)>,
    /// Checks in the order in which they are evaluated.
    pub checks: Vec<RowCheck>,
    pub defaults: Vec<(u16, Expression)>,
}

/// Rows of a query that are kept, and read again from there.
#[derive(Debug)]
pub struct KeptRows {
    /// Columns by number, and their slots.
    pub slots: Vec<(u16, Slot)>,
    /// The columns as they are read again.
    pub columns: Vec<OutputColumn>,
}

/// `UPDATE`.
#[derive(Debug)]
pub struct BoundUpdate {
    pub block: Block,
    /// The order in which they are changed.
    pub order: Vec<SortKey>,
    pub limit: Option<Expression>,
    /// One for each table that is changed.
    pub targets: Vec<WriteTarget>,
    pub ignore: bool,
}

/// `DELETE`.
#[derive(Debug)]
pub struct BoundDelete {
    pub block: Block,
    /// The order in which they are deleted.
    pub order: Vec<SortKey>,
    pub limit: Option<Expression>,
    /// One for each table that is deleted from.
    pub targets: Vec<WriteTarget>,
    pub ignore: bool,
}
