//! From a parsed statement to queries with resolved names, known types and explicit coercions.
//!
//! ```text
//!   SELECT n FROM t WHERE id = '5'
//!     scope   t: id INT → slot 0, n VARCHAR → slot 1
//!     block   from t, conditions [slot 0 = 5 as integers], columns [slot 1 "n"]
//! ```
//!
//! Subqueries in expressions are parts of the statement, and an expression has their number.
//! Subqueries in `FROM` become part of the query around them, or stay separate queries. The binder
//! does not decide how anything is evaluated. A column gets its slot when it is first read.

mod aggregate;
mod cast;
mod coerce;
mod columns;
mod cte;
mod definitions;
mod delete;
mod display;
pub(crate) mod expression_builders;
mod expressions;
mod from;
mod function;
mod group;
mod held;
mod hints;
mod insert;
mod join;
mod json_table;
mod literal;
mod mean;
mod merge;
mod null_test;
mod parameter;
mod predicate;
mod query;
mod table_uses;

mod select;
mod statement;
mod subquery;
mod target;
mod union;
mod update;
mod view;
mod window;

pub use definitions::{BoundRowExpression, bind_row_expression, query_columns};
pub use display::kept_type;
pub use statement::bind_statement;
pub use view::{is_updatable, would_be_updatable};

pub(crate) mod scope;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use firn_sql_catalog::model::TableModel;
use firn_sql_grammar::ast::{Expr, LockClause};
use firn_sql_logical::expression::{Expression, Slot, visit};
use firn_sql_logical::{
    NeededPrivilege, Part, PlanContext, Premise, Relation, RelationId, ViewUser,
};
use firn_sql_types::Display;
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::watch::{Recursion, nest};

use cte::CommonTableName;
use scope::{Clause, Scope};

/// How deep queries and views may nest.
const DEEPEST: usize = 63;
/// The most tables of one block, including those of merged views and of semi joins.
const MOST_TABLES: usize = 61;
/// How often a statement may name views and common tables; nested ones count each time.
const MOST_EXPANSIONS: usize = 2_000;
/// A derived table with a larger column stays a separate table, so that naming the column often
/// does not copy it often. Operands of this size that are read twice are evaluated once.
pub(crate) const LARGE_EXPRESSION_NODES: usize = 200;

/// Binds one statement.
pub(crate) struct Binder<'a> {
    /// The context for which the statement is planned.
    pub context: &'a PlanContext<'a>,
    /// The statement's table references.
    pub relations: Vec<Relation>,
    /// By slot: its table reference.
    pub owners: Vec<Option<RelationId>>,
    /// Scopes, the innermost last.
    pub scopes: Vec<Scope>,
    /// Tables and views that were looked up, including those behind views: the statement locks
    /// them.
    used: Vec<Arc<TableModel>>,
    /// Locking clauses after the parentheses of the query that is bound next.
    inherited_locks: Vec<LockClause>,
    /// The clause that is being bound.
    pub clause: Clause,
    /// Queries that are planned before the statement itself, in the order in which they were bound.
    pub(crate) parts: Vec<Part>,
    /// How many common tables are evaluated once.
    pub(crate) common_tables: usize,
    /// By number of a subquery: what clients see of its only column.
    pub(crate) subqueries: Vec<Option<Display>>,
    /// The names defined by `WITH`, the innermost last.
    pub(crate) common_names: Vec<CommonTableName>,
    /// The schema of unqualified names; inside a view, the view's schema.
    pub(crate) schema: Option<Arc<str>>,
    /// How many views and subqueries are being bound.
    pub(crate) depth: usize,
    /// Whether the plan holds for other executions as well.
    pub is_cacheable: bool,
    /// Whether the statement has no effect that survives the rollback of its transaction.
    pub is_repeatable: bool,
    /// Tables that must not be read, because the statement writes them.
    pub(crate) written: Vec<firn_base::TableId>,
    /// `NO_MERGE` and join order hints, for the block that is being bound.
    pub(crate) block_hints: hints::BlockHints,
    /// Tables named by the statement, which its session must be allowed to read.
    pub(crate) named: Vec<table_uses::NamedUse>,
    /// The privilege that the statement needs on the tables that are named next.
    pub(crate) wanted: NeededPrivilege,
    /// Views that are being bound, outermost first, with the user whose rights count in them.
    pub(crate) view_users: Vec<Arc<ViewUser>>,
    /// The tables that are being bound will be written: views `WITH CHECK OPTION` keep their
    /// conditions.
    pub(crate) writes_through_views: bool,
    /// Conditions stay conditions, even if they could be joins.
    pub(crate) keeps_conditions: bool,
    /// For each view that is being bound, outermost first: conditions of the views within it.
    pub(crate) conditions_within: Vec<Vec<Expression>>,
    /// Conditions for rows that are written through the view that is being bound.
    pub(crate) view_conditions: Vec<Expression>,
    /// How long the query may run, from its hint.
    pub(crate) max_execution_time_ms: Option<u64>,
    /// The statement writes rows.
    pub(crate) writes: bool,
    /// The expression being bound is compared with the values of a list.
    pub(crate) in_list: bool,
    /// The statement adjusts values that do not fit.
    pub(crate) ignores: bool,
    /// How many views and common tables were bound.
    expansions: usize,
    /// Conditions on parameters under which the plan holds.
    pub(crate) premises: Vec<Premise>,
    /// Only whether the next block has rows matters.
    pub(crate) tests_rows: bool,
    /// The scope of the next block must be kept.
    pub(crate) keeps_source: bool,
    /// The scope of the query whose rows are inserted.
    pub(crate) source_scope: Option<Scope>,
    /// By slot: what clients see of its values, where the type does not say it.
    pub(crate) displays: FxHashMap<Slot, Display>,
}

impl<'a> Binder<'a> {
    /// A binder of a statement.
    #[must_use]
    pub(crate) fn new(context: &'a PlanContext<'a>) -> Binder<'a> {
        Binder {
            context,
            relations: Vec::new(),
            owners: Vec::new(),
            scopes: Vec::new(),
            clause: Clause::FieldList,
            parts: Vec::new(),
            common_tables: 0,
            subqueries: Vec::new(),
            common_names: Vec::new(),
            schema: context.schema.map(Arc::from),
            depth: 0,
            is_cacheable: true,
            is_repeatable: true,
            written: Vec::new(),
            block_hints: hints::BlockHints::default(),
            named: Vec::new(),
            wanted: NeededPrivilege::Select,
            view_users: Vec::new(),
            used: Vec::new(),
            inherited_locks: Vec::new(),
            writes_through_views: false,
            keeps_conditions: false,
            conditions_within: Vec::new(),
            view_conditions: Vec::new(),
            max_execution_time_ms: None,
            writes: false,
            ignores: false,
            in_list: false,
            expansions: 0,
            premises: Vec::new(),
            tests_rows: false,
            keeps_source: false,
            source_scope: None,
            displays: FxHashMap::default(),
        }
    }

    /// Runs `bind` in a clause.
    pub(crate) fn in_clause<T>(&mut self, clause: Clause, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.clause, clause);
        let answer = bind(self);
        self.clause = before;
        answer
    }

    /// Binds an expression of a statement without tables.
    ///
    /// # Errors
    /// As [`expressions::bind`].
    pub(crate) fn bind_alone(&mut self, expr: &Expr) -> Result<Expression> {
        self.scopes.push(Scope::default());
        let bound = expressions::bind_single(self, expr);
        self.scopes.pop();
        bound
    }

    /// Runs `bind` one level deeper.
    pub(crate) fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= DEEPEST {
            return Err(SqlError::new(1473, "Too high level of nesting for select"));
        }
        self.inside(bind)
    }

    /// Runs `bind` inside parentheses or a set operation, which may nest as deep as the stack
    /// allows.
    pub(crate) fn inside<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        nest(Recursion::Bind)?;
        self.depth += 1;
        let answer = bind(self);
        self.depth -= 1;
        answer
    }

    /// Counts a view or common table that is bound at each use.
    pub(crate) fn expand(&mut self, what: &str) -> Result<()> {
        self.expansions += 1;
        if self.expansions <= MOST_EXPANSIONS {
            return Ok(());
        }
        let message =
            format!("{what} expansion exceeded an implementation limit. Simplify the query.");
        Err(SqlError::of_kind(ErrorKind::TooComplex, 4169, message))
    }

    /// Counts the memory of an expression that is copied.
    pub(crate) fn hold(&self, expression: &Expression) -> Result<()> {
        let (nodes, size_bytes) = visit::size_of_expression(expression);
        self.context.watch.steps(nodes)?;
        self.context.watch.hold(size_bytes)
    }
}
