//! Queries: `WITH`, the body, `LIMIT`.

use crate::error::{Result, SqlError};
use crate::expression::{Expression, ExpressionKind};
use crate::grammar::ast::{
    Expr, Limit, LockClause, OrderByExpr, Query as WrittenQuery, SelectBlock, SelectItem, SetExpr,
    TableFactor, TableName, TableWithJoins,
};
use crate::logical::{Body, OutputColumn, Query};

use crate::types::{Datum, SqlType};

use super::display::common_display;
use super::{Binder, make};

impl Binder<'_> {
    /// Binds a query in its own scope.
    ///
    /// # Errors
    /// The errors of its parts.
    pub fn query(&mut self, query: &WrittenQuery) -> Result<Query> {
        let names = self.common_names.len();
        let clause = std::mem::replace(&mut self.clause, super::scope::Clause::FieldList);
        let bound = self.query_with(query);
        self.clause = clause;
        self.common_names.truncate(names);
        bound
    }

    fn query_with(&mut self, query: &WrittenQuery) -> Result<Query> {
        let mut locks = std::mem::take(&mut self.inherited_locks);
        locks.extend(query.locks.iter().cloned());
        if let Some(with) = &query.with {
            self.name_common_tables(with)?;
        }
        let mut bound = self.body(&query.body, &query.order_by, &locks)?;
        if let Some(limit) = &query.limit {
            bound = self.limited(bound, limit)?;
        }
        Ok(bound)
    }

    pub(crate) fn body(
        &mut self,
        body: &SetExpr,
        order: &[OrderByExpr],
        locks: &[LockClause],
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
            SetExpr::SetOperation { left, op, all, right } => {
                let outer =
                    self.inside(|binder| binder.set_operation(left, *op, *all, right, locks))?;
                self.order_set(outer, order)
            }
            SetExpr::Values(rows) => {
                let query = self.values(rows)?;
                self.order_set(query, order)
            }
            SetExpr::Table(table) => {
                let select = table_as_select(table);
                self.select(&select, order, locks)
            }
        }
    }

    /// A side of a set operation.
    pub(crate) fn side(&mut self, body: &SetExpr) -> Result<Query> {
        self.body(body, &[], &[])
    }

    fn limited(&mut self, query: Query, written: &Limit) -> Result<Query> {
        let query = match query.limit.is_some() || query.offset.is_some() {
            true => self.set_of(vec![query])?,
            false => query,
        };
        Ok(Query {
            limit: Some(self.limit(&written.count)?),
            offset: written.offset.as_ref().map(|offset| self.limit(offset)).transpose()?,
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
    fn values(&mut self, rows: &[Vec<Expr>]) -> Result<Query> {
        let width = rows.first().map_or(0, Vec::len);
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

/// `TABLE t` is `SELECT * FROM t`.
fn table_as_select(table: &TableName) -> SelectBlock {
    let relation = TableFactor::Table {
        name: table.clone(),
        alias: None,
        partitions: Vec::new(),
        index_hints: Vec::new(),
    };
    SelectBlock {
        projection: vec![SelectItem::Wildcard],
        from: vec![TableWithJoins { relation, joins: Vec::new() }],
        ..SelectBlock::default()
    }
}
