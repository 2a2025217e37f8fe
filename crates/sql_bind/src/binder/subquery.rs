//! Subqueries in expressions, and subqueries that become joins.
//!
//! ```text
//!   WHERE t.a IN (SELECT u.b FROM u WHERE u.c = t.c)
//!     t ⋉ u ON t.a = u.b AND u.c = t.c
//!   WHERE NOT EXISTS (SELECT * FROM u WHERE u.c = t.c)
//!     t ▷ u ON u.c = t.c
//! ```

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use firn_sql_grammar::ast::{
    BinaryOperator, Expr, Query as WrittenQuery, SelectBlock, SetExpr, UnaryOperator,
};
use firn_sql_logical::expression::{
    CompareOperator, ComparedRow, Expression, ExpressionKind, Subquery, SubqueryKind,
};
use firn_sql_logical::{Block, Body, JoinKind, JoinTree, Part, Query, RelationSource, outer_slots};
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Display, SqlType, TypeKind};

use super::expressions::comparison_operator;
use super::predicate::wrong_columns;
use super::scope::{Clause, Scope};
use super::{
    Binder, Names, Typing, coerce, display, expression_builders, expressions, from, null_test,
    query,
};

/// A semi or anti join made from a condition of `WHERE`.
pub(crate) struct SubqueryJoin {
    pub(crate) kind: JoinKind,
    pub(crate) right: JoinTree,
    pub(crate) conditions: Vec<Expression>,
}

pub(crate) fn subquery(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Query> {
    binder.deeper(|binder| query::query(binder, query))
}

fn subquery_expression(
    binder: &mut Binder<'_>,
    query: Query,
    kind: SubqueryKind,
    ty: SqlType,
) -> Expression {
    let outer_slots = outer_slots(&query, &binder.typing.frame.relations);
    let display = match kind {
        SubqueryKind::Scalar => query.columns.first().and_then(|column| column.display),
        _ => {
            let nullable = Some(ty.nullable || is_shown_nullable(&query, &kind));
            Some(Display { nullable, ..Display::of_expression(&ty) })
        }
    };
    let number = binder.typing.displays.add_subquery(display);
    binder.parts.push(Part::Subquery(query));
    let subquery = Subquery { number, kind, outer_slots };
    Expression { kind: ExpressionKind::Subquery(Arc::new(subquery)), ty }
}

/// Whether clients see a test of a subquery's rows as nullable, though it never is NULL: `EXISTS`
/// if one of the columns is, `IN` and `= ANY` of tables' rows always.
fn is_shown_nullable(query: &Query, kind: &SubqueryKind) -> bool {
    match kind {
        SubqueryKind::Exists { .. } => query
            .columns
            .iter()
            .any(|column| column.display.and_then(|display| display.nullable) == Some(true)),
        SubqueryKind::Quantified { compared, .. } => {
            matches!(compared.operator, CompareOperator::Equal | CompareOperator::NotEqual)
                && !matches!(&query.body, Body::Select(block) if block.from.is_none())
        }
        _ => false,
    }
}

/// The bound form of a subquery together with the operation on it; reused if the same text is
/// repeated in the select list or in `GROUP BY`.
pub(crate) fn shared(
    binder: &mut Binder<'_>,
    written: &Expr,
    bind: impl FnOnce(&mut Binder<'_>) -> Result<Expression>,
) -> Result<Expression> {
    if !matches!(binder.names.clause, Clause::FieldList | Clause::GroupBy) {
        return bind(binder);
    }
    let mut hasher = FxHasher::default();
    written.hash(&mut hasher);
    let hash = hasher.finish();
    let repeated = |scope: &Scope| {
        let mut known = scope.subqueries.iter().filter(|(other, _, _)| *other == hash);
        known.find(|(_, other, _)| other == written).map(|(_, _, value)| value.clone())
    };
    if let Some(value) = binder.names.scopes.last().and_then(repeated) {
        return Ok(value);
    }
    let value = bind(binder)?;
    if let Some(scope) = binder.names.scopes.last_mut() {
        scope.subqueries.push((hash, written.clone(), value.clone()));
    }
    Ok(value)
}

/// `(SELECT …)` as a value.
pub(crate) fn scalar_subquery(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Expression> {
    let bound = subquery(binder, query)?;
    match bound.columns.len() {
        1 => Ok(one_column(binder, query, bound, 0)),
        _ => Err(wrong_columns(1)),
    }
}

/// What an expression is replaced by before it is bound: `+x` and `(SELECT x)` by `x`.
pub(crate) fn replaced(expr: &Expr) -> &Expr {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => replaced(expr),
        Expr::Subquery(query) => match &*query.body {
            SetExpr::Select(select) if is_bare(query, select) => {
                let [only] = select.projection.as_slice() else { return expr };
                only.expr().map_or(expr, replaced)
            }
            _ => expr,
        },
        _ => expr,
    }
}

fn is_bare(query: &WrittenQuery, select: &SelectBlock) -> bool {
    select.from.is_empty() && select.having.is_none() && query.limit.is_none()
}

/// Whether a query is one expression and nothing else, which MySQL puts in its place.
fn is_expression(written: &WrittenQuery, query: &Query) -> bool {
    let (SetExpr::Select(select), Body::Select(block)) = (&*written.body, &query.body) else {
        return false;
    };
    is_bare(written, select)
        && block.from.is_none()
        && block.conditions.is_empty()
        && block.computed.is_empty()
        && block.windows.is_empty()
        && block.grouping.is_none()
}

/// An operand of a comparison: a subquery of several columns is a row there.
pub(crate) fn bind_operand(binder: &mut Binder<'_>, expr: &Expr) -> Result<Expression> {
    match expr {
        Expr::Subquery(query) => {
            shared(binder, expr, |binder| scalar_or_row_subquery(binder, query))
        }
        _ => expressions::bind(binder, expr),
    }
}

/// `(SELECT …)` as a value, or `(SELECT …, …)` as a row whose values are subqueries.
fn scalar_or_row_subquery(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Expression> {
    let first = subquery(binder, query)?;
    let width = first.columns.len();
    let mut values = vec![one_column(binder, query, first, 0)];
    for number in 1..width {
        binder.nesting.expand("Row subquery")?;
        let bound = subquery(binder, query)?;
        values.push(one_column(binder, query, bound, number));
    }
    Ok(match values.pop() {
        Some(only) if values.is_empty() => only,
        last => {
            values.extend(last);
            Expression { kind: ExpressionKind::Row(values), ty: SqlType::null() }
        }
    })
}

/// One column of a subquery as a value.
fn one_column(
    binder: &mut Binder<'_>,
    written: &WrittenQuery,
    mut bound: Query,
    number: usize,
) -> Expression {
    let mut column = bound.columns.swap_remove(number);
    if bound.columns.is_empty() && is_expression(written, &bound) {
        return column.value;
    }
    let ty = column.value.ty.clone().with_nullable(true);
    let operand = display::shown_operand(&binder.typing, &column.value).1;
    column.display = column.display.map(|shown| match ty.kind {
        // The width of the type matters, not that of the column's definition.
        TypeKind::Integer { .. } if shown.stored => Display { length: operand.length, ..shown },
        _ => shown,
    });
    bound.columns = vec![column];
    subquery_expression(binder, bound, SubqueryKind::Scalar, ty)
}

/// `[NOT] EXISTS (SELECT …)`
pub(crate) fn exists(binder: &mut Binder<'_>, query: &WrittenQuery) -> Result<Expression> {
    binder.block.tests_rows = true;
    let bound = subquery(binder, query)?;
    binder.block.tests_rows = false;
    let ty = SqlType::boolean().not_null();
    Ok(subquery_expression(binder, bound, SubqueryKind::Exists { negated: false }, ty))
}

/// `x [NOT] IN (SELECT …)`
pub(crate) fn in_subquery(
    binder: &mut Binder<'_>,
    operand: &Expr,
    query: &WrittenQuery,
    negated: bool,
) -> Result<Expression> {
    let operand = bind_operand(binder, operand)?;
    let bound = subquery(binder, query)?;
    let operator = if negated { CompareOperator::NotEqual } else { CompareOperator::Equal };
    quantified_by(binder, operand, operator, bound, negated)
}

/// `x = ANY (SELECT …)`
pub(crate) fn quantified(
    binder: &mut Binder<'_>,
    operand: &Expr,
    operator: BinaryOperator,
    query: &WrittenQuery,
    all: bool,
) -> Result<Expression> {
    let operator = comparison_operator(operator);
    let operator =
        operator.ok_or_else(|| SqlError::not_supported("this operator with ANY or ALL"))?;
    let operand = bind_operand(binder, operand)?;
    let is_equality = matches!(
        (operator, all),
        (CompareOperator::Equal, false) | (CompareOperator::NotEqual, true)
    );
    if matches!(operand.kind, ExpressionKind::Row(_)) && !is_equality {
        return Err(wrong_columns(1));
    }
    let bound = subquery(binder, query)?;
    quantified_by(binder, operand, operator, bound, all)
}

fn quantified_by(
    binder: &mut Binder<'_>,
    operand: Expression,
    operator: CompareOperator,
    bound: Query,
    all: bool,
) -> Result<Expression> {
    let (bound, compared, nullable) = beside_columns(&mut binder.typing, operand, operator, bound)?;
    let kind = SubqueryKind::Quantified { compared, all };
    let ty = SqlType::boolean().with_nullable(nullable);
    Ok(subquery_expression(binder, bound, kind, ty))
}

/// A value or row and the columns of a query, converted for comparison; and whether one of them
/// may be NULL.
fn beside_columns(
    typing: &mut Typing<'_>,
    operand: Expression,
    operator: CompareOperator,
    mut bound: Query,
) -> Result<(Query, ComparedRow, bool)> {
    let written = match operand.kind {
        ExpressionKind::Row(list) => list,
        kind => vec![Expression { kind, ty: operand.ty }],
    };
    if written.len() != bound.columns.len() {
        return Err(wrong_columns(written.len()));
    }
    let mut kinds = Vec::with_capacity(written.len());
    let mut operands = Vec::with_capacity(written.len());
    let mut nullable = false;
    for (operand, column) in written.into_iter().zip(&mut bound.columns) {
        nullable |= operand.ty.nullable || column.value.ty.nullable;
        let (kind, left, right) =
            coerce::comparable(typing, operator, operand, column.value.clone())?;
        kinds.push(kind);
        operands.push(left);
        column.value = right;
    }
    Ok((bound, ComparedRow { operands, operator, kinds }, nullable))
}

/// `(a, b) = (SELECT x, y …)`
pub(crate) fn row_subquery_comparison(
    binder: &mut Binder<'_>,
    left: &Expr,
    operator: CompareOperator,
    right: &Expr,
) -> Result<Option<Expression>> {
    let (row, operator, query) = match (left, right) {
        (Expr::Tuple(_), Expr::Subquery(query)) => (left, operator, query),
        (Expr::Subquery(query), Expr::Tuple(_)) => (right, operator.mirrored(), query),
        _ => return Ok(None),
    };
    let row = expressions::bind(binder, row)?;
    let bound = subquery(binder, query)?;
    let (bound, compared, nullable) = beside_columns(&mut binder.typing, row, operator, bound)?;
    let nullable = nullable || operator != CompareOperator::NullSafeEqual;
    let ty = SqlType::boolean().with_nullable(nullable);
    Ok(Some(subquery_expression(binder, bound, SubqueryKind::Row(compared), ty)))
}

/// Binds `WHERE`: its conditions, and the joins that some of them become.
pub(crate) fn bind_where(
    binder: &mut Binder<'_>,
    expr: &Expr,
    conditions: &mut Vec<Expression>,
    joins: &mut Vec<SubqueryJoin>,
) -> Result<()> {
    match null_test::last_insert_test(binder, expr)? {
        Some(condition) => conditions.push(condition),
        None => bind_conjuncts(binder, expr, conditions, joins)?,
    }
    Ok(())
}

fn bind_conjuncts(
    binder: &mut Binder<'_>,
    expr: &Expr,
    conditions: &mut Vec<Expression>,
    joins: &mut Vec<SubqueryJoin>,
) -> Result<()> {
    if let Some(condition) = null_test::zero_date_test(binder, expr)? {
        conditions.push(condition);
        return Ok(());
    }
    match expr {
        _ if binder.views.keeps_conditions => {
            conditions.extend(expressions::bind_condition(binder, expr)?);
            Ok(())
        }
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            bind_conjuncts(binder, left, conditions, joins)?;
            bind_conjuncts(binder, right, conditions, joins)
        }
        Expr::InSubquery { expr, subquery, negated } => {
            let condition = in_join(binder, expr, subquery, *negated, joins)?;
            conditions.extend(condition);
            Ok(())
        }
        Expr::Exists(subquery) => {
            let condition = exists_join(binder, subquery, false, joins)?;
            conditions.extend(condition);
            Ok(())
        }
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr: inner } => {
            match &**inner {
                Expr::Exists(subquery) => {
                    let condition = exists_join(binder, subquery, true, joins)?;
                    conditions.extend(condition);
                    Ok(())
                }
                Expr::InSubquery { expr, subquery, negated } => {
                    let condition = in_join(binder, expr, subquery, !negated, joins)?;
                    conditions.extend(condition);
                    Ok(())
                }
                _ => {
                    conditions.extend(expressions::bind_condition(binder, expr)?);
                    Ok(())
                }
            }
        }
        _ => {
            conditions.extend(expressions::bind_condition(binder, expr)?);
            Ok(())
        }
    }
}

fn exists_join(
    binder: &mut Binder<'_>,
    query: &WrittenQuery,
    negated: bool,
    joins: &mut Vec<SubqueryJoin>,
) -> Result<Option<Expression>> {
    binder.block.tests_rows = true;
    let bound = binder.deeper(|binder| query::query(binder, query))?;
    binder.block.tests_rows = false;
    let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
    match joinable(&mut binder.names, bound) {
        Ok((block, _)) => {
            let Block { from, conditions, .. } = *block;
            if let Some(right) = from {
                joins.push(SubqueryJoin { kind, right, conditions });
            }
            Ok(None)
        }
        Err(query) => {
            let ty = SqlType::boolean().not_null();
            Ok(Some(subquery_expression(binder, *query, SubqueryKind::Exists { negated }, ty)))
        }
    }
}

fn in_join(
    binder: &mut Binder<'_>,
    operand: &Expr,
    query: &WrittenQuery,
    negated: bool,
    joins: &mut Vec<SubqueryJoin>,
) -> Result<Option<Expression>> {
    let operand = bind_operand(binder, operand)?;
    let bound = binder.deeper(|binder| query::query(binder, query))?;
    let operator = if negated { CompareOperator::NotEqual } else { CompareOperator::Equal };
    let operands = match &operand.kind {
        ExpressionKind::Row(list) => list.clone(),
        _ => vec![operand.clone()],
    };
    if operands.len() != bound.columns.len() {
        return Err(wrong_columns(operands.len()));
    }
    let has_null = operands.iter().any(|one| one.ty.nullable)
        || bound.columns.iter().any(|column| column.value.ty.nullable);
    if negated && has_null {
        return quantified_by(binder, operand, operator, bound, negated).map(Some);
    }
    let kind = if negated { JoinKind::Anti } else { JoinKind::Semi };
    let (right, columns, mut conditions) = match joinable(&mut binder.names, bound) {
        Ok((block, columns)) => {
            let Block { from, conditions, .. } = *block;
            let Some(right) = from else { return Err(wrong_columns(operands.len())) };
            (right, columns, conditions)
        }
        Err(query) => match as_relation(binder, query) {
            Ok((right, columns)) => (right, columns, Vec::new()),
            Err(query) => {
                return quantified_by(binder, operand, operator, *query, negated).map(Some);
            }
        },
    };
    for (operand, column) in operands.into_iter().zip(columns) {
        conditions.push(coerce::compare(
            &mut binder.typing,
            CompareOperator::Equal,
            operand,
            column,
        )?);
    }
    joins.push(SubqueryJoin { kind, right, conditions });
    Ok(None)
}

/// A query as a table reference; the query itself if it reads outer queries.
#[allow(clippy::type_complexity)]
fn as_relation(
    binder: &mut Binder<'_>,
    query: Box<Query>,
) -> std::result::Result<(JoinTree, Vec<Expression>), Box<Query>> {
    if !outer_slots(&query, &binder.typing.frame.relations).is_empty()
        || from::join_tables(&mut binder.names, 1).is_err()
    {
        return Err(query);
    }
    let types: Vec<SqlType> = query.columns.iter().map(|column| column.value.ty.clone()).collect();
    let source = RelationSource::Derived { query: Some(query), lateral: false };
    let relation = binder.typing.frame.add_relation(source, Arc::from("<subquery>"));
    binder.parts.push(Part::Relation(relation));
    let columns = types.into_iter().zip(0_u16..).map(|(ty, number)| {
        let slot = binder.typing.frame.relation_slot(relation, number);
        expression_builders::slot(slot, ty)
    });
    let columns = columns.collect();
    Ok((JoinTree::Relation(relation), columns))
}

/// The block of a query that can be the right side of a semi join, with its columns. Its tables
/// count as tables of the block around it.
#[allow(clippy::type_complexity)]
fn joinable(
    names: &mut Names,
    query: Query,
) -> std::result::Result<(Box<Block>, Vec<Expression>), Box<Query>> {
    let is_plain = query.limit.is_none() && query.offset.is_none() && !query.count_all;
    let fits = match &query.body {
        Body::Select(block) => {
            block.from.is_some()
                && block.grouping.is_none()
                && block.having.is_empty()
                && block.windows.is_empty()
                && block.computed.is_empty()
        }
        _ => false,
    };
    let columns: Vec<Expression> =
        query.columns.iter().map(|column| column.value.clone()).collect();
    let is_stable = !columns.iter().any(firn_sql_logical::expression::volatility::is_row_dependent);
    let tables = match &query.body {
        Body::Select(block) => block.from.as_ref().map_or(0, JoinTree::count),
        _ => 0,
    };
    let joins = is_plain && fits && is_stable && from::join_tables(names, tables).is_ok();
    match query.body {
        Body::Select(block) if joins => Ok((block, columns)),
        body => Err(Box::new(Query { body, ..query })),
    }
}
