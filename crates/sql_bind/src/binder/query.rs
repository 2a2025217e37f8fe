//! Queries: `WITH`, the body, `LIMIT`.

use firn_sql_grammar::ast::{
    Expr, Limit, LockClause, OrderByExpr, Query as WrittenQuery, SelectBlock, SelectItem, SetExpr,
    TableFactor, TableName, TableWithJoins,
};
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_logical::{Body, OutputColumn, Query};
use firn_sql_types::error::{Result, SqlError};

use firn_sql_types::{Datum, SqlType};

use super::display::common_display;
use super::{
    Binder, coerce, cte, display, expression_builders, expressions, parameter, select, union,
};

/// Binds a query in its own scope.
///
/// # Errors
/// The errors of its parts.
pub(super) fn query(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Query> {
    let names = binder.names.common.len();
    let clause = std::mem::replace(&mut binder.names.clause, super::scope::Clause::FieldList);
    let bound = query_with(binder, query);
    binder.names.clause = clause;
    binder.names.common.truncate(names);
    bound
}

fn query_with(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Query> {
    let mut locks = std::mem::take(&mut binder.block.inherited_locks);
    locks.extend(query.locks.iter().cloned());
    if let Some(with) = &query.with {
        cte::name_common_tables(&mut binder.names, with)?;
    }
    let mut bound = bind_body(binder, &query.body, &query.order_by, &locks)?;
    if let Some(limit) = &query.limit {
        bound = limited(binder, bound, limit)?;
    }
    Ok(bound)
}

pub(crate) fn bind_body(
    binder: &mut Binder<'_>,
    body: &SetExpr,
    order: &[OrderByExpr],
    locks: &[LockClause],
) -> Result<Query> {
    match body {
        SetExpr::Select(select) => select::select(binder, select, order, locks),
        SetExpr::Query(inner) => {
            binder.block.inherited_locks = locks.to_vec();
            let inner = binder.inside(|binder| query(binder, inner))?;
            if order.is_empty() {
                return Ok(inner);
            }
            let outer = union::set_of(&mut binder.typing, vec![inner])?;
            union::order_set(binder, outer, order)
        }
        SetExpr::SetOperation { left, op, all, right } => {
            let outer = binder
                .inside(|binder| union::set_operation(binder, left, *op, *all, right, locks))?;
            union::order_set(binder, outer, order)
        }
        SetExpr::Values(rows) => {
            let query = values(binder, rows)?;
            union::order_set(binder, query, order)
        }
        SetExpr::Table(table) => {
            let select = table_as_select(table);
            select::select(binder, &select, order, locks)
        }
    }
}

/// A side of a set operation.
pub(crate) fn side(binder: &mut Binder<'_>, body: &SetExpr) -> Result<Query> {
    bind_body(binder, body, &[], &[])
}

fn limited(binder: &mut Binder<'_>, query: Query, written: &Limit) -> Result<Query> {
    let query = match query.limit.is_some() || query.offset.is_some() {
        true => union::set_of(&mut binder.typing, vec![query])?,
        false => query,
    };
    Ok(Query {
        limit: Some(limit(binder, &written.count)?),
        offset: written.offset.as_ref().map(|offset| limit(binder, offset)).transpose()?,
        ..query
    })
}

/// The value of a limit: a whole number or a parameter.
pub(crate) fn limit(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    let bound = expressions::bind_single(binder, expr)?;
    let bound = parameter::inferred(binder.typing.context, bound, &SqlType::bigint_unsigned());
    match &bound.kind {
        ExpressionKind::Parameter(_) => Ok(bound),
        ExpressionKind::Literal(Datum::Int(number)) if *number >= 0 => {
            let number = Datum::UInt(number.unsigned_abs());
            Ok(expression_builders::literal(number, SqlType::bigint_unsigned()))
        }
        ExpressionKind::Literal(Datum::UInt(_)) => Ok(bound),
        _ => Err(SqlError::new(1210, "Incorrect arguments to LIMIT")),
    }
}

/// `VALUES ROW(…), …`
fn values(binder: &mut Binder<'_>, rows: &[Vec<Expr>]) -> Result<Query> {
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<Vec<Expression>> = vec![Vec::new(); width];
    for (number, row) in rows.iter().enumerate() {
        if row.len() != width {
            let message = format!("Column count doesn't match value count at row {}", number + 1);
            return Err(SqlError::new(1136, message));
        }
        for (column, expr) in columns.iter_mut().zip(row.iter()) {
            column.push(expressions::bind_single(binder, expr)?);
        }
    }
    let mut outputs = Vec::with_capacity(width);
    let mut slots = Vec::with_capacity(width);
    let mut unified = Vec::with_capacity(width);
    for (number, column) in columns.into_iter().enumerate() {
        let (column, ty) = coerce::unified(&mut binder.typing, column, "VALUES")?;
        let slot = binder.typing.frame.new_slot(None);
        let name = format!("column_{number}").into();
        let shown: Vec<_> =
            column.iter().map(|one| (&one.ty, display::display(&binder.typing, one))).collect();
        let display = Some(common_display(&shown, &ty));
        outputs.push(OutputColumn {
            value: expression_builders::slot(slot, ty),
            name,
            origin: None,
            display,
        });
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
