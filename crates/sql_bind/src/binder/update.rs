//! `UPDATE`.

use firn_sql_catalog::model::{IndexPartModel, TableModel};
use firn_sql_grammar::ast::{self, Expr, OrderByExpr, TableFactor, TableWithJoins, ValueOrDefault};
use firn_sql_logical::expression::{Expression, ExpressionKind};
use firn_sql_logical::{Assignment, Block, BoundUpdate, NeededPrivilege, RelationId, WriteTarget};
use firn_sql_types::error::{Result, SqlError};

use super::scope::{Clause, Scope};
use super::target::AssignedColumn;
use super::{
    Binder, Frame, Names, cte, expressions, from, hints, literal, query, select, subquery, target,
};

/// Binds an `UPDATE`.
///
/// # Errors
/// The errors of its parts.
pub(super) fn update(binder: &mut Binder<'_>, update: &ast::Update) -> Result<BoundUpdate> {
    if let Some(with) = &update.with {
        cte::name_common_tables(&mut binder.names, with)?;
    }
    binder.block.hints = hints::block_hints(binder, &update.hints);
    binder.names.scopes.push(Scope::default());
    let bound = update_in_scope(binder, update);
    binder.names.scopes.pop();
    bound
}

fn update_in_scope(binder: &mut Binder<'_>, update: &ast::Update) -> Result<BoundUpdate> {
    if is_single(&update.tables) {
        binder.uses.wanted = NeededPrivilege::Update;
    }
    binder.views.writes_through = true;
    let from = from::from(binder, &update.tables);
    binder.uses.wanted = NeededPrivilege::Select;
    binder.views.writes_through = false;
    let from = from?;
    binder.names.innermost().shown = from.shown;
    binder.names.innermost().allows_aggregates = false;
    let columns = update
        .assignments
        .iter()
        .map(|assignment| target::assigned_column(binder, &assignment.column, "UPDATE"))
        .collect::<Result<Vec<_>>>()?;
    check_roles(&binder.names, &binder.typing.frame, &columns)?;
    for column in &columns {
        let table = binder.typing.frame.table_of(column.relation)?.id;
        binder.uses.written.push(table);
    }
    let mut targets: Vec<(RelationId, Vec<Assignment>)> = Vec::new();
    for (assignment, column) in update.assignments.iter().zip(columns) {
        let AssignedColumn { relation, ordinal, .. } = column;
        refuse_generated(&binder.typing.frame, relation, ordinal, &assignment.value)?;
        let value = assigned_value(binder, relation, ordinal, &assignment.value)?;
        let assignment = Assignment { ordinal, value };
        match targets.iter_mut().find(|(other, _)| *other == relation) {
            Some((_, assignments)) => assignments.push(assignment),
            None => targets.push((relation, vec![assignment])),
        }
    }
    // The order in which tables are changed is visible if one role's change is the basis of the
    // next.
    targets.sort_by_key(|(relation, _)| relation.0);
    let block = written_block(binder, from.tree, from.conditions, update.selection.as_ref())?;
    let (order, limit) =
        written_order(binder, &update.order_by, update.limit.as_ref(), targets.len())?;
    let targets = targets
        .into_iter()
        .map(|(relation, assignments)| {
            let may_be_absent =
                block.from.as_ref().is_some_and(|tree| tree.may_leave_out(relation));
            let target = write_target(binder, relation, assignments)?;
            Ok(WriteTarget { may_be_absent, ..target })
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(BoundUpdate { block, order, limit, targets, ignore: update.ignore })
}

/// Refuses assignments that no order of changes makes meaningful.
fn check_roles(names: &Names, frame: &Frame, columns: &[AssignedColumn]) -> Result<()> {
    let Some(scope) = names.scopes.last() else { return Ok(()) };
    for (number, one) in columns.iter().enumerate() {
        let table = &scope.tables[one.table];
        for other in columns[..number].iter().filter(|other| other.relation != one.relation) {
            if other.table == one.table {
                let schema = table.schema.as_deref().unwrap_or("");
                let view = format!("{schema}.{}", table.original);
                return Err(SqlError::new(
                    1393,
                    format!("Can not modify more than one base table through a join view '{view}'"),
                ));
            }
            let model = frame.table_of(one.relation)?;
            let moves = |column: &AssignedColumn| is_clustered(&model, column.ordinal);
            let is_role =
                |column: &AssignedColumn| [one.relation, other.relation].contains(&column.relation);
            if frame.table_of(other.relation)?.id == model.id
                && columns.iter().any(|column| is_role(column) && moves(column))
            {
                let mut roles = [one, other];
                roles.sort_by_key(|role| role.relation.0);
                let [first, second] = roles.map(|role| &scope.tables[role.table].alias);
                return Err(SqlError::new(
                    1706,
                    format!(
                        "Primary key/partition key update is not allowed since the table is \
                         updated both as '{first}' and '{second}'."
                    ),
                ));
            }
        }
    }
    Ok(())
}

/// Generated columns may only be set to their default.
fn refuse_generated(
    frame: &Frame,
    relation: RelationId,
    ordinal: u16,
    value: &ValueOrDefault,
) -> Result<()> {
    let table = frame.table_of(relation)?;
    let column = table.by_ordinal(ordinal).filter(|column| column.generated.is_some());
    match (column, value) {
        (Some(column), ValueOrDefault::Value(_)) => Err(SqlError::new(
            3105,
            format!(
                "The value specified for generated column '{}' in table '{}' is not allowed.",
                column.name, table.name
            ),
        )),
        _ => Ok(()),
    }
}

/// The value of an assignment; `None` is the default.
pub(crate) fn assigned_value(
    binder: &mut Binder<'_>,
    relation: RelationId,
    ordinal: u16,
    value: &ValueOrDefault,
) -> Result<Option<Expression>> {
    match value {
        ValueOrDefault::Value(expr) => {
            let bound = expressions::bind_single(binder, expr)?;
            let table = binder.typing.frame.table_of(relation)?;
            Ok(Some(match table.by_ordinal(ordinal) {
                Some(column) => {
                    literal::number_for_column(binder.typing.context, bound, &column.ty)
                }
                None => bound,
            }))
        }
        ValueOrDefault::Default => {
            let rules = target::row_rules(binder, relation)?;
            let default = rules.defaults.into_iter().find(|(of, _)| *of == ordinal);
            Ok(default.map(|(_, value)| value))
        }
    }
}

/// The rows to which a statement writes.
pub(crate) fn written_block(
    binder: &mut Binder<'_>,
    tree: Option<firn_sql_logical::JoinTree>,
    mut conditions: Vec<Expression>,
    selection: Option<&Expr>,
) -> Result<Block> {
    let mut joins = Vec::new();
    if let Some(selection) = selection {
        binder.in_clause(Clause::Where, |binder| {
            subquery::bind_where(binder, selection, &mut conditions, &mut joins)
        })?;
    }
    let from = select::with_joins(&mut binder.typing.frame, tree, joins);
    Ok(Block { from, conditions, straight: binder.block.hints.straight, ..Block::default() })
}

/// `ORDER BY` and `LIMIT` of a statement that writes.
#[allow(clippy::type_complexity)]
pub(crate) fn written_order(
    binder: &mut Binder<'_>,
    order: &[OrderByExpr],
    limit: Option<&Expr>,
    targets: usize,
) -> Result<(Vec<firn_sql_logical::expression::SortKey>, Option<Expression>)> {
    let is_single = targets <= 1 && binder.names.innermost().tables.len() == 1;
    if !is_single && !order.is_empty() {
        return Err(SqlError::new(1221, "Incorrect usage of UPDATE and ORDER BY"));
    }
    if !is_single && limit.is_some() {
        return Err(SqlError::new(1221, "Incorrect usage of UPDATE and LIMIT"));
    }
    let order = select::order_by(binder, order, &[])?;
    let limit = limit.map(|limit| query::limit(binder, limit)).transpose()?;
    Ok((order, limit))
}

/// A written table, with the expressions evaluated over its rows.
pub(crate) fn write_target(
    binder: &mut Binder<'_>,
    relation: RelationId,
    assignments: Vec<Assignment>,
) -> Result<WriteTarget> {
    let table = binder.typing.frame.table_of(relation)?;
    let (row_key, row_payload) = binder.typing.frame.make_target(relation);
    let rules = match assignments.is_empty() {
        true => super::target::RowRules {
            generated: Vec::new(),
            checks: Vec::new(),
            defaults: Vec::new(),
        },
        false => target::row_rules(binder, relation)?,
    };
    let mut checks = rules.checks;
    if !assignments.is_empty() {
        checks.extend(target::view_checks(&binder.names, &binder.typing.frame, relation));
    }
    Ok(WriteTarget {
        table,
        row_key,
        row_payload,
        assignments,
        in_turn: true,
        may_be_absent: false,
        row: binder.typing.frame.row_slots(relation),
        generated: rules.generated,
        checks,
    })
}

/// Whether a column is part of InnoDB's clustering key: the primary key, or the first unique key
/// without NULL.
fn is_clustered(table: &TableModel, ordinal: u16) -> bool {
    let nullable = |part: &IndexPartModel| {
        table.by_ordinal(part.ordinal).is_none_or(|column| column.ty.nullable)
    };
    let first_unique = || {
        let mut indexes = table.indexes.iter().filter(|index| index.unique);
        indexes.find(|index| !index.parts.iter().any(nullable))
    };
    let key = table.primary_key().or_else(first_unique);
    key.is_some_and(|key| key.parts.iter().any(|part| part.ordinal == ordinal))
}

/// Whether an expression is the word `DEFAULT`.
#[must_use]
pub(crate) fn is_default(expression: &Expression) -> bool {
    matches!(&expression.kind, ExpressionKind::Unresolved(name) if &**name == "DEFAULT")
}

/// Whether the statement names one table and nothing else.
fn is_single(tables: &[TableWithJoins]) -> bool {
    matches!(tables, [only] if only.joins.is_empty() && matches!(only.relation, TableFactor::Table { .. }))
}
