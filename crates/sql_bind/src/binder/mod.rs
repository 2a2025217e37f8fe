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
mod block;
mod cast;
mod coerce;
mod columns;
mod cte;
mod definitions;
mod delete;
mod display;
mod documents;
pub(crate) mod expression_builders;
mod expressions;
mod facts;
mod frame;
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
mod names;
mod nesting;
mod null_test;
mod parameter;
mod parts;
mod patterns;
mod predicate;
mod query;
pub(crate) mod scope;
mod select;
mod statement;
mod subquery;
mod table_uses;
mod target;
mod typing;
mod union;
mod update;
mod view;
mod view_stack;
mod window;

pub use definitions::{BoundRowExpression, bind_check, bind_row_expression, query_columns};
pub use display::kept_type;
pub use statement::bind_statement;
pub use view::{is_updatable, would_be_updatable};

use std::sync::Arc;

use firn_sql_catalog::model::TableModel;
use firn_sql_grammar::ast::Expr;
use firn_sql_logical::expression::Expression;
use firn_sql_logical::{NamedTable, PlanContext};
use firn_sql_types::error::Result;

use block::BlockContext;
use display::Displays;
use facts::PlanFacts;
use frame::Frame;
use names::Names;
use nesting::Nesting;
use parts::Parts;
use scope::{Clause, Scope};
use table_uses::TableUses;
use typing::Typing;
use view_stack::ViewStack;

/// The most tables of one block, including those of merged views and of semi joins.
const MOST_TABLES: usize = 61;
/// A derived table with a larger column stays a separate table, so that naming the column often
/// does not copy it often. Operands of this size that are read twice are evaluated once.
pub(crate) const LARGE_EXPRESSION_NODES: usize = 200;

/// Binds one statement: its parts, each with a subject. A function takes the parts that it uses;
/// only what binds expressions or queries with names takes the whole.
pub(crate) struct Binder<'a> {
    /// What the rules of types ask: session, slots, displays, facts about the plan.
    pub(crate) typing: Typing<'a>,
    /// What names mean here.
    pub(crate) names: Names,
    /// What the statement does with tables, by name.
    pub(crate) uses: TableUses,
    /// Queries that are planned before the statement itself.
    pub(crate) parts: Parts,
    /// The views that are being bound.
    pub(crate) views: ViewStack,
    /// How deep the place is that is being bound.
    pub(crate) nesting: Nesting,
    /// What the block that is being bound gets from around it.
    pub(crate) block: BlockContext,
}

impl<'a> Binder<'a> {
    /// A binder of a statement.
    #[must_use]
    pub(crate) fn new(context: &'a PlanContext<'a>) -> Binder<'a> {
        Binder {
            typing: Typing::new(context),
            names: Names::new(context.schema),
            uses: TableUses::default(),
            parts: Parts::default(),
            views: ViewStack::default(),
            nesting: Nesting::default(),
            block: BlockContext::default(),
        }
    }

    /// Runs `bind` in a clause.
    pub(crate) fn in_clause<T>(&mut self, clause: Clause, bind: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.names.clause, clause);
        let answer = bind(self);
        self.names.clause = before;
        answer
    }

    /// Binds an expression of a statement without tables.
    ///
    /// # Errors
    /// As [`expressions::bind`].
    pub(crate) fn bind_alone(&mut self, expr: &Expr) -> Result<Expression> {
        self.names.scopes.push(Scope::default());
        let bound = expressions::bind_single(self, expr);
        self.names.scopes.pop();
        bound
    }

    /// Runs `bind` one level deeper.
    ///
    /// # Errors
    /// 1473 if queries nest too deep, and the errors of `bind`.
    pub(crate) fn deeper<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.nesting.check_depth()?;
        self.inside(bind)
    }

    /// Runs `bind` inside parentheses or a set operation, which may nest as deep as the stack
    /// allows.
    ///
    /// # Errors
    /// 1436 if the stack is used up, and the errors of `bind`.
    pub(crate) fn inside<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.nesting.enter()?;
        let answer = bind(self);
        self.nesting.leave();
        answer
    }

    /// Notes a table that the statement names here; returns its number among the named tables.
    pub(crate) fn name_table(
        &mut self,
        schema: &Arc<str>,
        table: &str,
        alias: &Arc<str>,
        model: Option<&TableModel>,
    ) -> usize {
        let (schema, alias) = (Arc::clone(schema), Arc::clone(alias));
        let table = NamedTable { schema, table: table.into(), alias, writes: false };
        self.uses.name_table(table, model, &self.views, !self.nesting.is_outermost())
    }
}
