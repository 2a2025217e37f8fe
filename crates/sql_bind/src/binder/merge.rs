//! Queries in `FROM` that become part of the query around them.

use firn_sql_logical::expression::visit::{self, count_nodes};
use firn_sql_logical::expression::volatility::{has_subquery, is_row_dependent};
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_logical::{Block, Body, JoinTree, Query};

use super::{Binder, LARGE_EXPRESSION_NODES, from};

/// A query's block with its columns, if it can be merged: it has only joins and conditions, and
/// columns that may be evaluated anywhere. Where an outer join may make the columns NULL, only
/// bare columns qualify: any other expression might not be NULL then.
pub(crate) fn merge(
    binder: &mut Binder<'_>,
    query: Query,
    null_supplied: bool,
) -> Result<(Box<Block>, Vec<Expression>), Box<Query>> {
    let is_kept = binder.block.hints.no_merge
        || !is_mergeable(&query, null_supplied)
        || !from::may_join(&mut binder.names, tables_of(&query).saturating_sub(1))
        || !binder.views.writes_through && has_large_column(&query);
    if is_kept {
        return Err(Box::new(query));
    }
    let columns = query.columns.iter().map(|column| column.value.clone()).collect();
    match query.body {
        Body::Select(block) => Ok((block, columns)),
        body => Err(Box::new(Query { body, ..query })),
    }
}

/// Whether a query has only joins and conditions.
fn is_plain(query: &Query) -> bool {
    let Body::Select(block) = &query.body else { return false };
    let is_plain = block.from.is_some()
        && block.grouping.is_none()
        && block.having.is_empty()
        && block.windows.is_empty()
        && block.distinct.is_none()
        && block.computed.is_empty()
        && !block.straight;
    is_plain && query.limit.is_none() && query.offset.is_none() && !query.count_all
}

/// Whether MySQL keeps a query's rows in a temporary table, as clients see by its columns: it
/// merges some queries that Firn does not.
pub(crate) fn is_shown_kept(query: &Query) -> bool {
    let reads_outside = |one: &Expression| match &one.kind {
        ExpressionKind::Subquery(subquery) => !subquery.outer_slots.is_empty(),
        _ => false,
    };
    !is_plain(query) || query.columns.iter().any(|column| visit::any(&column.value, &reads_outside))
}

fn is_mergeable(query: &Query, null_supplied: bool) -> bool {
    let fits = |value: &Expression| {
        let is_bare = matches!(value.kind, ExpressionKind::Slot(_));
        is_bare || !null_supplied && !is_row_dependent(value) && !has_subquery(value)
    };
    is_plain(query) && query.columns.iter().all(|column| fits(&column.value))
}

fn tables_of(query: &Query) -> usize {
    match &query.body {
        Body::Select(block) => block.from.as_ref().map_or(0, JoinTree::count),
        _ => 0,
    }
}

/// Whether a column is so large that evaluating it once is better than copying it to every use.
fn has_large_column(query: &Query) -> bool {
    query.columns.iter().any(|column| is_large(&column.value))
}

/// Whether an expression is better evaluated once than copied.
pub(crate) fn is_large(expression: &Expression) -> bool {
    count_nodes(expression, LARGE_EXPRESSION_NODES) >= LARGE_EXPRESSION_NODES
}
