//! `SELECT`: its clauses in the order in which names become known.
//!
//! ```text
//!   FROM ─► WHERE ─► GROUP BY ─► select list ─► HAVING ─► ORDER BY ─► what grouping asks for
//! ```

use std::sync::Arc;

use firn_api::rows::{ReadMode, WaitPolicy};

use firn_sql_grammar::ast::{
    Expr, LockClause, LockStrength, LockWait, OrderByExpr, SelectBlock, SelectItem, TableName,
};
use firn_sql_grammar::render;
use firn_sql_logical::expression::{
    AggregateCall, Expression, ExpressionKind, Slot, SortKey, fold, volatility,
};
use firn_sql_logical::{
    Block, Body, ColumnOrigin, Grouping, JoinTree, OutputColumn, Query, RelationId,
};
use firn_sql_types::error::{ErrorKind, Result, SqlError};
use firn_sql_types::{Datum, Display};

use super::aggregate::{positional, unknown_position};
use super::from::FromItem;
use super::scope::{Clause, ColumnPath, Scope, ShownColumn};
use super::subquery::SubqueryJoin;
use super::{
    Binder, Frame, Names, display, expression_builders, expressions, from, group, hints, scope,
    subquery,
};
use crate::binder::display::nullable;

/// Binds a `SELECT` with its `ORDER BY`.
pub(crate) fn select(
    binder: &mut Binder<'_>,
    select: &SelectBlock,
    order: &[OrderByExpr],
    locks: &[LockClause],
) -> Result<Query> {
    let hints = match select.hints.is_empty() {
        true => super::hints::BlockHints::default(),
        false => hints::block_hints(binder, &select.hints),
    };
    let before = std::mem::replace(&mut binder.block.hints, hints);
    let is_tested = std::mem::take(&mut binder.block.tests_rows);
    let is_source = std::mem::take(&mut binder.block.keeps_source);
    binder.names.scopes.push(Scope { is_tested, ..Scope::default() });
    let bound = select_in_scope(binder, select, order, locks);
    let scope = binder.names.scopes.pop();
    if is_source {
        binder.block.source_scope = scope;
    }
    binder.block.hints = before;
    bound
}

fn select_in_scope(
    binder: &mut Binder<'_>,
    select: &SelectBlock,
    order: &[OrderByExpr],
    locks: &[LockClause],
) -> Result<Query> {
    let FromItem { tree, shown, mut conditions } = from::from(binder, &select.from)?;
    binder.names.innermost().shown = shown;
    if let Some(tree) = &tree {
        lock(binder, tree, locks)?;
    }
    let mut joins = Vec::new();
    if let Some(selection) = &select.selection {
        binder.in_clause(Clause::Where, |binder| {
            subquery::bind_where(binder, selection, &mut conditions, &mut joins)
        })?;
    }
    let tree = with_joins(&mut binder.typing.frame, tree, joins);
    binder.names.innermost().named_windows.extend(select.named_windows.iter().cloned());
    let (groups, is_rollup) = group_by(binder, select)?;
    let mut columns = select_list(binder, &select.projection)?;
    let having = having(binder, select)?;
    let order = order_by(binder, order, &columns)?;
    let mut block = Block {
        straight: binder.block.hints.straight || select.modifiers.straight_join,
        from: tree,
        conditions,
        having,
        ..Block::default()
    };
    let mut order = order;
    if groups.is_empty() && !binder.names.innermost().aggregates.is_empty() {
        // One row has no order.
        order.clear();
    }
    finish_groups(binder, &mut block, groups, is_rollup, &mut columns, &mut order)?;
    block.windows = std::mem::take(&mut binder.names.innermost().windows);
    share_outputs(&mut binder.typing.frame, &mut block, &mut columns, &mut order);
    if select.distinct {
        make_distinct(binder, &mut block, &mut columns, &order)?;
    }
    let count_all = select.modifiers.sql_calc_found_rows;
    Ok(Query {
        body: Body::Select(Box::new(block)),
        columns,
        order,
        offset: None,
        limit: None,
        count_all,
    })
}

/// Adds the joins of conditions with subqueries.
pub(crate) fn with_joins(
    frame: &mut Frame,
    tree: Option<JoinTree>,
    joins: Vec<SubqueryJoin>,
) -> Option<JoinTree> {
    joins.into_iter().fold(tree, |tree, SubqueryJoin { kind, right, conditions }| {
        let left = tree.unwrap_or_else(|| one_row_relation(frame));
        Some(JoinTree::Join { kind, left: Box::new(left), right: Box::new(right), conditions })
    })
}

/// A table reference with one row and no columns, for `SELECT 1 WHERE EXISTS (…)`.
fn one_row_relation(frame: &mut Frame) -> JoinTree {
    let query = Query {
        body: Body::Select(Box::default()),
        columns: Vec::new(),
        order: Vec::new(),
        offset: None,
        limit: None,
        count_all: false,
    };
    let source =
        firn_sql_logical::RelationSource::Derived { query: Some(Box::new(query)), lateral: false };
    JoinTree::Relation(frame.add_relation(source, "".into()))
}

fn group_by(
    binder: &mut Binder<'_>,
    select: &SelectBlock,
) -> Result<(Vec<(Slot, Expression)>, bool)> {
    let groups = binder.in_clause(Clause::GroupBy, |binder| {
        let bound = select.group_by.iter().map(|expr| group(binder, expr, &select.projection));
        bound.collect::<Result<Vec<_>>>()
    })?;
    let is_rollup = select.rollup;
    let groups: Vec<(Slot, Expression)> = groups
        .into_iter()
        .map(|value| match value.kind {
            ExpressionKind::Slot(slot) => (slot, value),
            _ => (binder.typing.frame.new_slot(None), value),
        })
        .collect();
    if is_rollup {
        let slots = groups.iter().map(|_| binder.typing.frame.new_slot(None)).collect();
        binder.names.innermost().grouping_slots = Some(slots);
    }
    binder.names.innermost().groups.clone_from(&groups);
    Ok((groups, is_rollup))
}

/// A grouping expression: a position, a column, an alias, or any expression.
fn group(binder: &mut Binder<'_>, expr: &Expr, list: &[SelectItem]) -> Result<Expression> {
    let item = match (positional(expr), expr) {
        (Some(place), _) => {
            let item = list.get(place.wrapping_sub(1)).and_then(SelectItem::expr);
            Some(item.ok_or_else(|| unknown_position(place, "group statement"))?)
        }
        (None, Expr::Identifier(name)) => {
            let path = ColumnPath { schema: None, table: None, column: name };
            match binder.names.innermost().find(&path, Clause::GroupBy) {
                Ok(Some(_)) => None,
                Ok(None) => aliased(list, name),
                // If several tables have the column, the selected one is meant.
                Err(ambiguous) => Some(selected(list, name).ok_or(ambiguous)?),
            }
        }
        _ => None,
    };
    match item {
        Some(item) => {
            let bound = expressions::bind_single(binder, item);
            bound.map_err(|error| group_error(error, expr))
        }
        None => expressions::bind_single(binder, expr),
    }
}

fn select_list(binder: &mut Binder<'_>, list: &[SelectItem]) -> Result<Vec<OutputColumn>> {
    binder.names.innermost().allows_aggregates = true;
    binder.names.innermost().allows_windows = true;
    let mut columns = Vec::with_capacity(list.len());
    binder.in_clause(Clause::FieldList, |binder| {
        for item in list {
            let before = columns.len();
            select_item(binder, item, &mut columns)?;
            // Subqueries of later items see the names of earlier ones.
            let new = columns[before..].iter();
            let new: Vec<_> =
                new.map(|column| (column.name.clone(), column.value.clone())).collect();
            binder.names.innermost().aliases.extend(new);
        }
        Ok::<(), SqlError>(())
    })?;
    Ok(columns)
}

fn select_item(
    binder: &mut Binder<'_>,
    item: &SelectItem,
    into: &mut Vec<OutputColumn>,
) -> Result<()> {
    match item {
        SelectItem::Unnamed(expr) => output(binder, expr, None, into),
        SelectItem::Aliased { expr, alias: name } | SelectItem::NamedAfterText { expr, name } => {
            output(binder, expr, Some(name), into)
        }
        SelectItem::Wildcard => wildcard(binder, None, into),
        SelectItem::QualifiedWildcard(table) => wildcard(binder, Some(table), into),
    }
}

fn output(
    binder: &mut Binder<'_>,
    expr: &Expr,
    alias: Option<&str>,
    into: &mut Vec<OutputColumn>,
) -> Result<()> {
    let value = expressions::bind_single(binder, expr)?;
    let is_slot = matches!(value.kind, ExpressionKind::Slot(_));
    let is_named = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    let origin = origin(&binder.names, expr).filter(|_| is_named || is_slot);
    let name = match (alias, &origin) {
        (Some(alias), _) => alias.into(),
        // Its tables are views in MySQL, which name their columns themselves.
        (None, Some(origin))
            if origin.reported.is_some() || &*origin.schema == "information_schema" =>
        {
            origin.original_name.clone()
        }
        (None, _) => written_name(expr),
    };
    let display = display::display_of_item(&binder.typing, expr, &value);
    let display = match (&value.kind, &origin) {
        (ExpressionKind::Slot(_), None) => display::from_temporary_table(display, &value.ty),
        _ => display,
    };
    let stored = display.stored || is_stored(&value, origin.as_ref());
    let nullable = Some(nullable::shown_nullable(&binder.typing, &value));
    let display = Display { stored, nullable, ..display };
    into.push(OutputColumn { value, name, origin, display: Some(display) });
    Ok(())
}

/// The column that is selected directly.
fn origin(names: &Names, expr: &Expr) -> Option<ColumnOrigin> {
    let path = match subquery::replaced(expr) {
        Expr::Identifier(column) => ColumnPath { schema: None, table: None, column },
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, column] => ColumnPath { schema: None, table: Some(table), column },
            [schema, table, column] => {
                ColumnPath { schema: Some(schema), table: Some(table), column }
            }
            _ => return None,
        },
        _ => return None,
    };
    let level = names.scopes.len() - 1;
    let place = names.scopes[level].find(&path, Clause::FieldList).ok()??;
    names.scopes[level].origin_of(place)
}

fn wildcard(
    binder: &mut Binder<'_>,
    of: Option<&TableName>,
    into: &mut Vec<OutputColumn>,
) -> Result<()> {
    let level = binder.names.scopes.len() - 1;
    let scope = &binder.names.scopes[level];
    let places: Vec<ShownColumn> = match of {
        None if scope.tables.is_empty() && scope.is_tested => {
            let name = "1".into();
            into.push(OutputColumn {
                value: expression_builders::integer(1),
                name,
                origin: None,
                display: None,
            });
            return Ok(());
        }
        None if scope.tables.is_empty() => {
            return Err(SqlError::new(1096, "No tables used"));
        }
        None => scope.shown.clone(),
        Some(name) => {
            let table = scope.table_named(name.schema.as_deref(), &name.name);
            let table = table.ok_or_else(|| unknown_table(&name.name))?;
            (0..scope.tables[table].columns.len())
                .map(|column| ShownColumn { table, column })
                .collect()
        }
    };
    for place in places {
        let column = binder.names.scopes[level].column(place);
        if column.invisible {
            continue;
        }
        let name = column.name.clone();
        let origin = binder.names.scopes[level].origin_of(place);
        binder.uses.is_star = true;
        let value = scope::column_value(binder, level, place);
        binder.uses.is_star = false;
        let value = value?;
        let display = display::display(&binder.typing, &value);
        let stored = display.stored || is_stored(&value, origin.as_ref());
        let display = Display { stored, ..display };
        into.push(OutputColumn { value, name, origin, display: Some(display) });
    }
    Ok(())
}

fn having(binder: &mut Binder<'_>, select: &SelectBlock) -> Result<Vec<Expression>> {
    let Some(having) = &select.having else { return Ok(Vec::new()) };
    binder.names.innermost().allows_windows = false;
    let bound =
        binder.in_clause(Clause::Having, |binder| expressions::bind_condition(binder, having));
    binder.names.innermost().allows_windows = true;
    bound
}

/// Binds `ORDER BY` of a block: positions, aliases, expressions.
pub(crate) fn order_by(
    binder: &mut Binder<'_>,
    order: &[OrderByExpr],
    columns: &[OutputColumn],
) -> Result<Vec<SortKey>> {
    binder.in_clause(Clause::OrderBy, |binder| {
        let mut keys = Vec::with_capacity(order.len());
        for key in order {
            let expression = order_key(binder, &key.expr, columns)?;
            // A constant orders nothing, and is not evaluated for it.
            if !volatility::is_constant(&expression) {
                keys.push(SortKey { expression, descending: key.ascending == Some(false) });
            }
        }
        Ok(keys)
    })
}

fn order_key(binder: &mut Binder<'_>, expr: &Expr, columns: &[OutputColumn]) -> Result<Expression> {
    if let Some(place) = positional(expr) {
        let column = columns.get(place.wrapping_sub(1));
        return Ok(column.ok_or_else(|| unknown_position(place, "order clause"))?.value.clone());
    }
    if let Expr::Identifier(name) = expr {
        let level = binder.names.scopes.len() - 1;
        if let Some(value) = scope::alias_value(&mut binder.names, level, name, Clause::OrderBy)? {
            return Ok(value);
        }
    }
    expressions::bind_single(binder, expr)
}

/// Values of the select list that the order also reads get slots, so that they are evaluated
/// once.
fn share_outputs(
    frame: &mut Frame,
    block: &mut Block,
    columns: &mut [OutputColumn],
    order: &mut [SortKey],
) {
    for column in columns {
        if is_ready(&column.value) {
            continue;
        }
        let matching = |key: &SortKey| {
            firn_sql_logical::expression::equivalence::same_expression(
                &key.expression,
                &column.value,
            )
        };
        if !order.iter().any(matching) {
            continue;
        }
        let slot = frame.new_slot(None);
        let shared = expression_builders::slot(slot, column.value.ty.clone());
        for key in order.iter_mut() {
            if firn_sql_logical::expression::equivalence::same_expression(
                &key.expression,
                &column.value,
            ) {
                key.expression = shared.clone();
            }
        }
        block.computed.push((slot, std::mem::replace(&mut column.value, shared)));
    }
}

fn make_distinct(
    binder: &mut Binder<'_>,
    block: &mut Block,
    columns: &mut [OutputColumn],
    order: &[SortKey],
) -> Result<()> {
    let mut slots = Vec::with_capacity(columns.len());
    let is_constant = |one: &OutputColumn| volatility::is_constant(&one.value);
    let evaluation = binder.typing.context.evaluation;
    let is_null = |condition| fold::constant_value(condition, evaluation) == Some(Datum::Null);
    let is_empty = block.conditions.iter().any(|one| fold::is_never_true(one) || is_null(one));
    if columns.iter().all(is_constant) && !is_empty {
        // One row is left, and nothing of the query that the constants are from.
        for column in columns.iter_mut() {
            column.origin = None;
            column.display = column.display.map(Display::as_expression);
        }
    }
    for column in columns {
        let ty = column.value.ty.clone();
        if let ExpressionKind::Slot(slot) = column.value.kind {
            slots.push((slot, ty));
            continue;
        }
        let slot = binder.typing.frame.new_slot(None);
        let value =
            std::mem::replace(&mut column.value, expression_builders::slot(slot, ty.clone()));
        block.computed.push((slot, value));
        slots.push((slot, ty));
    }
    check_distinct_order(binder, &slots, order)?;
    block.distinct = Some(slots);
    Ok(())
}

fn check_distinct_order(
    binder: &Binder<'_>,
    slots: &[(Slot, firn_sql_types::SqlType)],
    order: &[SortKey],
) -> Result<()> {
    use firn_sql_types::SqlMode;
    if !binder.typing.context.evaluation.sql_mode.contains(SqlMode::ONLY_FULL_GROUP_BY) {
        return Ok(());
    }
    let selected = slots.iter().map(|(slot, _)| *slot).collect();
    for (number, key) in order.iter().enumerate() {
        let read = firn_sql_logical::expression::visit::reads(&key.expression);
        let outside = read
            .difference(&selected)
            .iter()
            .find(|slot| binder.typing.frame.owner(*slot).is_some());
        if let Some(slot) = outside {
            let column = group::slot_name(&binder.names, &binder.typing.frame, slot);
            let message = format!(
                "Expression #{} of ORDER BY clause is not in SELECT list, references column '{column}' \
                 which is not in SELECT list; this is incompatible with DISTINCT",
                number + 1
            );
            return Err(SqlError::new(3065, message));
        }
    }
    Ok(())
}

/// Sets the locks of `FOR UPDATE` and `FOR SHARE`.
fn lock(binder: &mut Binder<'_>, tree: &JoinTree, locks: &[LockClause]) -> Result<()> {
    let mut locked: Vec<RelationId> = Vec::new();
    for lock in locks {
        let policy = match lock.wait {
            LockWait::Wait => WaitPolicy::Wait,
            LockWait::Nowait => WaitPolicy::NoWait,
            LockWait::SkipLocked => WaitPolicy::SkipLocked,
        };
        let mode = match lock.strength {
            LockStrength::Share => ReadMode::Share(policy),
            LockStrength::Update => ReadMode::Update(policy),
        };
        let mut relations = tree.relations();
        if let Some(name) = &lock.of {
            relations.retain(|relation| {
                binder.typing.frame.relation(*relation).alias.eq_ignore_ascii_case(&name.name)
            });
            if relations.is_empty() {
                let message = format!("Unresolved table name `{}` in locking clause.", name.name);
                return Err(SqlError::new(3568, message));
            }
        }
        for relation in relations {
            if locked.contains(&relation) {
                let alias = &binder.typing.frame.relation(relation).alias;
                let message = format!("Table {alias} appears in multiple locking clauses.");
                return Err(SqlError::new(3569, message));
            }
            locked.push(relation);
            binder.typing.frame.relation_mut(relation).mode = mode;
        }
        if lock.strength == LockStrength::Update {
            note_locked_tables(binder, lock.of.as_ref());
        }
    }
    Ok(())
}

/// Notes the tables of the innermost scope that `FOR UPDATE` locks.
fn note_locked_tables(binder: &mut Binder<'_>, of: Option<&TableName>) {
    let is_meant = |alias: &str| of.is_none_or(|of| of.name.eq_ignore_ascii_case(alias));
    let tables = binder.names.innermost().tables.iter().filter(|table| is_meant(&table.alias));
    let named: Vec<Option<usize>> = tables.map(|table| table.named).collect();
    named.into_iter().for_each(|named| binder.uses.note_locked(named));
}

/// Groups, aggregates, and their requirements for the expressions above them.
fn finish_groups(
    binder: &mut Binder<'_>,
    block: &mut Block,
    groups: Vec<(Slot, Expression)>,
    is_rollup: bool,
    columns: &mut [OutputColumn],
    order: &mut [SortKey],
) -> Result<()> {
    let aggregates = std::mem::take(&mut binder.names.innermost().aggregates);
    if groups.is_empty() && aggregates.is_empty() {
        return Ok(());
    }
    let rollup = if is_rollup { binder.names.innermost().grouping_slots.clone() } else { None };
    let mut grouping = Grouping { groups, aggregates, rollup };
    group::regroup(binder, block, &mut grouping, columns, order)?;
    if is_rollup {
        // A total's row has NULL there: it is no longer the value of a column.
        for column in columns.iter_mut() {
            column.origin = None;
            let display = column.display.map(Display::as_expression);
            let nullable = Some(!is_total(&column.value, &grouping.aggregates));
            column.display = display.map(|display| Display { nullable, ..display });
        }
    }
    block.grouping = Some(grouping);
    Ok(())
}

/// Whether a value is a constant or an aggregate that is never NULL, not even in a total's row.
fn is_total(value: &Expression, aggregates: &[AggregateCall]) -> bool {
    match &value.kind {
        ExpressionKind::Slot(slot) => {
            aggregates.iter().any(|call| call.output == *slot && !call.ty.nullable)
        }
        ExpressionKind::Literal(datum) => !datum.is_null() && !value.ty.nullable,
        _ => false,
    }
}

/// Whether a value needs no evaluation.
fn is_ready(value: &Expression) -> bool {
    matches!(
        value.kind,
        ExpressionKind::Slot(_) | ExpressionKind::Literal(_) | ExpressionKind::Parameter(_)
    )
}

fn aliased<'l>(list: &'l [SelectItem], name: &str) -> Option<&'l Expr> {
    list.iter().find_map(|item| match item {
        SelectItem::Aliased { expr, alias } if alias.eq_ignore_ascii_case(name) => Some(expr),
        _ => None,
    })
}

/// The only item of the select list with a name, as its alias or as the name of its column.
fn selected<'l>(list: &'l [SelectItem], name: &str) -> Option<&'l Expr> {
    let column_name = |expr: &Expr| match expr {
        Expr::Identifier(name) => Some(name.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().cloned(),
        _ => None,
    };
    let mut items = list.iter().filter_map(|item| match item {
        SelectItem::Aliased { expr, alias: shown }
        | SelectItem::NamedAfterText { expr, name: shown } => Some((shown.clone(), expr)),
        SelectItem::Unnamed(expr) => Some((column_name(expr)?, expr)),
        _ => None,
    });
    let (_, first) = items.find(|(shown, _)| shown.eq_ignore_ascii_case(name))?;
    let is_other =
        |(shown, expr): (String, &Expr)| shown.eq_ignore_ascii_case(name) && expr != first;
    if items.any(is_other) { None } else { Some(first) }
}

/// An aggregate in a grouping expression: error 1056.
fn group_error(error: SqlError, expr: &Expr) -> SqlError {
    match error.kind {
        ErrorKind::MisplacedAggregate => {
            SqlError::new(1056, format!("Can't group on '{}'", shown(expr)))
        }
        _ => error,
    }
}

/// Error 1051.
pub(crate) fn unknown_table(name: &str) -> SqlError {
    SqlError::new(1051, format!("Unknown table '{name}'"))
}

/// Whether clients see a value as a column: of a table or of a temporary table.
fn is_stored(value: &Expression, origin: Option<&ColumnOrigin>) -> bool {
    origin.is_some() && matches!(value.kind, ExpressionKind::Slot(_))
}

/// The name of a column that has no alias.
fn written_name(expr: &Expr) -> Arc<str> {
    shown(expr).into()
}

/// A name without its table, and anything else as text.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(parts) => parts.last().cloned().unwrap_or_default(),
        other => render(other),
    }
}
