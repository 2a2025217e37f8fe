//! Queries: `WITH`, the body, `LIMIT`.

use sqlparser::ast::{self, Expr, LimitClause, OrderByExpr, OrderByKind, SetExpr};

use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind};
use crate::plan::OutputColumn;

use crate::types::{Datum, SqlType};

use super::display::common_display;
use super::logical::{Body, Query};
use super::{Binder, make};

impl Binder<'_> {
    /// Binds a query in a scope of its own.
    ///
    /// # Errors
    /// What its parts answer.
    pub fn query(&mut self, query: &ast::Query) -> Result<Query> {
        let names = self.common_names.len();
        let clause = std::mem::replace(&mut self.clause, super::scope::Clause::FieldList);
        let bound = self.query_with(query);
        self.clause = clause;
        self.common_names.truncate(names);
        bound
    }

    fn query_with(&mut self, query: &ast::Query) -> Result<Query> {
        let mut locks = std::mem::take(&mut self.inherited_locks);
        locks.extend(query.locks.iter().cloned());
        if let Some(with) = &query.with {
            self.name_common_tables(with)?;
        }
        let order = order_of(query)?;
        let mut bound = self.body(&query.body, order, &locks)?;
        if let Some(clause) = &query.limit_clause {
            bound = self.limited(bound, clause)?;
        }
        Ok(bound)
    }

    pub(crate) fn body(
        &mut self,
        body: &SetExpr,
        order: &[OrderByExpr],
        locks: &[ast::LockClause],
    ) -> Result<Query> {
        match body {
            SetExpr::Select(select) => self.select(select, order, locks),
            SetExpr::Query(inner) => {
                self.inherited_locks = locks.to_vec();
                let inner = self.inside(|binder| binder.query(inner))?;
                if order.is_empty() {
                    return Ok(inner);
                }
                let outer = self.set_of(vec![inner])?;
                self.order_set(outer, order)
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let outer = self.inside(|binder| {
                    binder.set_operation(left, *op, *set_quantifier, right, locks)
                })?;
                self.order_set(outer, order)
            }
            SetExpr::Values(values) => {
                let rows = values.rows.iter().map(|row| row.content.as_slice()).collect::<Vec<_>>();
                let query = self.values(&rows)?;
                self.order_set(query, order)
            }
            SetExpr::Table(table) => {
                let select = table_as_select(table);
                self.select(&select, order, locks)
            }
            _ => Err(SqlError::not_supported("this query")),
        }
    }

    /// A side of a set operation.
    pub(crate) fn side(&mut self, body: &SetExpr) -> Result<Query> {
        self.body(body, &[], &[])
    }

    fn limited(&mut self, query: Query, clause: &LimitClause) -> Result<Query> {
        let (limit, offset) = match clause {
            LimitClause::LimitOffset { limit, offset, .. } => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            LimitClause::OffsetCommaLimit { offset, limit } => (Some(limit), Some(offset)),
        };
        let query = match query.limit.is_some() || query.offset.is_some() {
            true => self.set_of(vec![query])?,
            false => query,
        };
        Ok(Query {
            limit: limit.map(|limit| self.limit(limit)).transpose()?,
            offset: offset.map(|offset| self.limit(offset)).transpose()?,
            ..query
        })
    }

    /// The value of a limit: a whole number or a parameter.
    pub(crate) fn limit(&mut self, expr: &Expr) -> Result<Expression> {
        let bound = self.bind_single(expr)?;
        let bound = self.inferred(bound, &SqlType::bigint_unsigned());
        match &bound.kind {
            ExpressionKind::Parameter(_) => Ok(bound),
            ExpressionKind::Literal(Datum::Int(number)) if *number >= 0 => {
                let number = Datum::UInt(number.unsigned_abs());
                Ok(make::literal(number, SqlType::bigint_unsigned()))
            }
            ExpressionKind::Literal(Datum::UInt(_)) => Ok(bound),
            _ => Err(SqlError::new(1210, "Incorrect arguments to LIMIT")),
        }
    }

    /// `VALUES ROW(…), …`
    fn values(&mut self, rows: &[&[Expr]]) -> Result<Query> {
        let width = rows.first().map_or(0, |row| row.len());
        let mut columns: Vec<Vec<Expression>> = vec![Vec::new(); width];
        for (number, row) in rows.iter().enumerate() {
            if row.len() != width {
                let message =
                    format!("Column count doesn't match value count at row {}", number + 1);
                return Err(SqlError::new(1136, message));
            }
            for (column, expr) in columns.iter_mut().zip(row.iter()) {
                column.push(self.bind_single(expr)?);
            }
        }
        let mut outputs = Vec::with_capacity(width);
        let mut slots = Vec::with_capacity(width);
        let mut unified = Vec::with_capacity(width);
        for (number, column) in columns.into_iter().enumerate() {
            let (column, ty) = self.unified(column, "VALUES")?;
            let slot = self.new_slot(None);
            let name = format!("column_{number}").into();
            let shown: Vec<_> = column.iter().map(|one| (&one.ty, self.display(one))).collect();
            let display = Some(common_display(&shown, &ty));
            outputs.push(OutputColumn { value: make::slot(slot, ty), name, origin: None, display });
            slots.push(slot);
            unified.push(column.into_iter());
        }
        let rows = (0..rows.len()).map(|_| unified.iter_mut().filter_map(Iterator::next).collect());
        let body = Body::Values { rows: rows.collect(), slots };
        Ok(Query {
            body,
            columns: outputs,
            order: Vec::new(),
            offset: None,
            limit: None,
            count_all: false,
        })
    }
}

/// The keys of `ORDER BY`.
pub(crate) fn order_of(query: &ast::Query) -> Result<&[OrderByExpr]> {
    match query.order_by.as_ref().map(|order| &order.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(keys)) => Ok(keys),
        Some(OrderByKind::All(_)) => Err(SqlError::not_supported("ORDER BY ALL")),
    }
}

/// `TABLE t` is `SELECT * FROM t`.
fn table_as_select(table: &ast::Table) -> ast::Select {
    use sqlparser::ast::helpers::attached_token::AttachedToken;
    let names = table.schema_name.iter().chain(&table.table_name);
    let parts: Vec<ast::Ident> = names.map(|name| ast::Ident::new(name.clone())).collect();
    let relation = ast::TableFactor::Table {
        name: ast::ObjectName::from(parts),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    ast::Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: vec![ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())],
        exclude: None,
        into: None,
        from: vec![ast::TableWithJoins { relation, joins: Vec::new() }],
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: ast::GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    }
}
