//! A walk over the tree of a query, for what in it belongs to the node that writes.

use firn_sql::catalog::virtual_schemas;
use firn_sql::grammar::ast::{
    Arguments, BinaryOperator, Expr, Function, Join, JoinConstraint, OrderByExpr, Query,
    SelectBlock, SetExpr, TableFactor, TableName, TableWithJoins, Window, WindowFrameBound,
    WindowSpec,
};

use super::StatementRoute;
use crate::variables::{self, Scope};

/// Functions that use what one server has: user locks, files, positions of its replication.
const OF_ONE_SERVER: [&str; 11] = [
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
    "load_file",
    "master_pos_wait",
    "source_pos_wait",
    "wait_for_executed_gtid_set",
    "wait_until_sql_thread_after_gtids",
    "ps_thread_id",
];

/// Variables that say what the statement before has left.
const OF_LAST_STATEMENT: [&str; 2] = ["warning_count", "error_count"];

/// What was found so far.
pub(super) struct Walk {
    route: StatementRoute,
}

impl Walk {
    pub(super) fn of_query(query: &Query) -> StatementRoute {
        let mut walk = Walk { route: StatementRoute::Reads };
        walk.query(query);
        walk.route
    }

    fn needs_writer(&mut self) {
        self.route = StatementRoute::Writer;
    }

    fn query(&mut self, query: &Query) {
        if !query.locks.is_empty() {
            return self.needs_writer();
        }
        let tables = query.with.iter().flat_map(|with| &with.tables);
        tables.for_each(|table| self.query(&table.query));
        self.body(&query.body);
        self.order(&query.order_by);
        if let Some(limit) = &query.limit {
            self.expression(&limit.count);
            self.optional(limit.offset.as_ref());
        }
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(block) => self.block(block),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            SetExpr::Values(rows) => rows.iter().for_each(|row| self.expressions(row)),
            SetExpr::Table(name) => self.table(name),
        }
    }

    fn block(&mut self, block: &SelectBlock) {
        block.projection.iter().for_each(|item| self.optional(item.expr()));
        block.from.iter().for_each(|tables| self.tables(tables));
        self.optional(block.selection.as_ref());
        self.expressions(&block.group_by);
        self.optional(block.having.as_ref());
        block.named_windows.iter().for_each(|(_, window)| self.window(window));
    }

    fn tables(&mut self, tables: &TableWithJoins) {
        self.factor(&tables.relation);
        for Join { relation, constraint, .. } in &tables.joins {
            self.factor(relation);
            if let JoinConstraint::On(condition) = constraint {
                self.expression(condition);
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, .. } => self.table(name),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::Nested(tables) => self.tables(tables),
            TableFactor::JsonTable(table) => self.expression(&table.document),
        }
    }

    /// Tables of the server itself show what that server does.
    fn table(&mut self, name: &TableName) {
        let schema = name.schema.as_deref();
        if schema.is_some_and(|schema| virtual_schemas::proper_schema(schema).is_some()) {
            self.needs_writer();
        }
    }

    fn order(&mut self, order: &[OrderByExpr]) {
        order.iter().for_each(|key| self.expression(&key.expr));
    }

    fn expressions(&mut self, expressions: &[Expr]) {
        expressions.iter().for_each(|expression| self.expression(expression));
    }

    fn optional(&mut self, expression: Option<&Expr>) {
        if let Some(expression) = expression {
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match expression {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::UserVariable(_)
            | Expr::Value(_)
            | Expr::Introduced { .. }
            | Expr::TypedString { .. }
            | Expr::Unit(_)
            | Expr::MatchAgainst { .. } => {}
            Expr::SystemVariable { scope, name } => self.variable(scope, name),
            Expr::Interval(interval) => self.expression(&interval.value),
            Expr::BinaryOp { op: BinaryOperator::Assignment, .. } => self.needs_writer(),
            Expr::BinaryOp { left, right, .. } => {
                self.expression(left);
                self.expression(right);
            }
            Expr::Like { expr, pattern, .. } | Expr::Regexp { expr, pattern, .. } => {
                self.expression(expr);
                self.expression(pattern);
            }
            Expr::Between { expr, low, high, .. } => {
                [expr, low, high].into_iter().for_each(|one| self.expression(one));
            }
            Expr::InList { expr, list, .. } => {
                self.expression(expr);
                self.expressions(list);
            }
            Expr::InSubquery { expr: left, subquery, .. }
            | Expr::Quantified { left, subquery, .. } => {
                self.expression(left);
                self.query(subquery);
            }
            Expr::MemberOf { value, array } => {
                self.expression(value);
                self.expression(array);
            }
            Expr::Exists(query) | Expr::Subquery(query) => self.query(query),
            Expr::Tuple(list) => self.expressions(list),
            Expr::Case { operand, branches, otherwise } => {
                self.optional(operand.as_deref());
                for branch in branches {
                    self.expression(&branch.condition);
                    self.expression(&branch.result);
                }
                self.optional(otherwise.as_deref());
            }
            Expr::Function(function) => self.function(function),
            Expr::Trim { what, expr, .. } => {
                self.optional(what.as_deref());
                self.expression(expr);
            }
            Expr::UnaryOp { expr, .. }
            | Expr::Is { expr, .. }
            | Expr::Cast { expr, .. }
            | Expr::Convert { expr, .. }
            | Expr::AtTimeZone { expr, .. }
            | Expr::Collate { expr, .. }
            | Expr::Extract { expr, .. } => self.expression(expr),
        }
    }

    /// A session's values go with it; global ones are those of the node that writes.
    fn variable(&mut self, scope: &str, name: &str) {
        let is_of_session = matches!(scope, "" | "session" | "local");
        let scope = variables::find(name).map(|definition| definition.scope);
        match scope {
            Some(Scope::Session | Scope::Both) if is_of_session => {
                let follows = OF_LAST_STATEMENT.contains(&name);
                if follows && self.route == StatementRoute::Reads {
                    self.route = StatementRoute::Follows;
                }
            }
            _ => self.needs_writer(),
        }
    }

    fn function(&mut self, function: &Function) {
        let is_called = |known: &&str| known.eq_ignore_ascii_case(&function.name);
        // A function of a schema may do anything.
        if function.schema.is_some() || OF_ONE_SERVER.iter().any(is_called) {
            return self.needs_writer();
        }
        if let Arguments::List(arguments) = &function.arguments {
            self.expressions(arguments);
        }
        self.order(&function.order_by);
        if let Some(Window::Spec(window)) = function.over.as_deref() {
            self.window(window);
        }
    }

    fn window(&mut self, window: &WindowSpec) {
        self.expressions(&window.partition_by);
        self.order(&window.order_by);
        let Some(frame) = &window.frame else { return };
        for bound in [Some(&frame.start), frame.end.as_ref()].into_iter().flatten() {
            if let WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) = bound {
                self.optional(rows.as_deref());
            }
        }
    }
}
