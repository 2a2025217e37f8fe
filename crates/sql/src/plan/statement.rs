//! The face of the planner.

use crate::bind::Binder;
use crate::error::{Result, SqlError};
use crate::expression::Expression;
use crate::grammar::ast::Statement;

use super::{
    CommonTable, NodeKind, OutputColumn, PlanContext, PlanNode, PreparedPlan, QueryPlan,
    StatementPlan,
};

/// Plans a statement that reads or writes rows.
///
/// # Errors
/// What MySQL says of names, types and forms that do not go together; 1235 for other statements and for
/// what cannot be done yet.
pub fn plan_statement(statement: &Statement, context: &PlanContext<'_>) -> Result<PreparedPlan> {
    let definitions_version = context.catalog.definitions_version();
    let mut binder = Binder::new(context);
    binder.writes = !matches!(statement, Statement::Select(_) | Statement::Do(_));
    binder.ignores = match statement {
        Statement::Insert(insert) => insert.ignore,
        Statement::Update(update) => update.ignore,
        Statement::Delete(delete) => delete.ignore,
        _ => false,
    };
    let planned = plan_kind(statement, &mut binder).inspect_err(|_| {
        // Who may not use the tables that were named so far is told that, and not what is wrong.
        context.needs_of_refused.replace(binder.needs());
    })?;
    let (needs, tables) = (binder.needs(), binder.named_tables());
    let locks = binder.table_locks(&planned)?;
    let max_execution_time_ms = binder.max_execution_time_ms;
    let common_tables: Vec<CommonTable> = binder.common_tables.into_iter().flatten().collect();
    let cost = cost_of(&planned, &common_tables);
    let writes_parents = writes_parents(&planned, context)?;
    Ok(PreparedPlan {
        statement: planned,
        frame_slots: u32::try_from(binder.owners.len()).unwrap_or(u32::MAX),
        parameters: context.parameters.to_vec(),
        common_tables,
        definitions_version,
        writes_parents,
        executor: context.executor.get(),
        cost,
        is_cacheable: binder.is_cacheable && !is_into(statement),
        premises: binder.premises,
        is_repeatable: binder.is_repeatable,
        needs,
        tables,
        locks,
        max_execution_time_ms,
        conditions: context.conditions.take(),
    })
}

fn plan_kind(statement: &Statement, binder: &mut Binder<'_>) -> Result<StatementPlan> {
    Ok(match statement {
        Statement::Select(select) => {
            let query = binder.query(&select.query)?;
            StatementPlan::Query(binder.plan_bound(query)?)
        }
        Statement::Insert(insert) => StatementPlan::Insert(binder.insert(insert)?),
        Statement::Update(update) => StatementPlan::Update(binder.update(update)?),
        Statement::Delete(delete) => StatementPlan::Delete(binder.delete(delete)?),
        Statement::Do(expressions) => {
            let values = expressions.iter().map(|expr| binder.bind_alone(expr));
            StatementPlan::Query(one_row_of(values.collect::<Result<Vec<_>>>()?))
        }
        _ => return Err(SqlError::not_supported("a plan of this statement")),
    })
}

fn writes_parents(statement: &StatementPlan, context: &PlanContext<'_>) -> Result<bool> {
    for table in statement.written() {
        let references = context.catalog.shared().referencing(&table.schema, &table.name)?;
        if !references.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the rows go into variables: the plan says nothing of it, so it is no plan for the same text.
fn is_into(statement: &Statement) -> bool {
    matches!(statement, Statement::Select(select) if select.into.is_some())
}

/// Plans expressions without tables, such as those of `SET` and `DO`, as the columns of a query.
///
/// # Errors
/// As [`plan_statement`].
pub fn plan_expressions(
    expressions: &[sqlparser::ast::Expr],
    context: &PlanContext<'_>,
) -> Result<PreparedPlan> {
    plan_statement(&Statement::Do(expressions.to_vec()), context)
}

fn one_row_of(values: Vec<Expression>) -> QueryPlan {
    let columns = values.into_iter().map(|value| OutputColumn {
        value,
        name: "".into(),
        origin: None,
        display: None,
    });
    let root = PlanNode { kind: NodeKind::OneRow, rows: 1.0, cost: 0.0 };
    QueryPlan { root, columns: columns.collect() }
}

fn cost_of(statement: &StatementPlan, common_tables: &[CommonTable]) -> f64 {
    let own = match statement {
        StatementPlan::Query(query) => query.root.cost,
        StatementPlan::Insert(insert) => insert.source.root.cost,
        StatementPlan::Update(update) => update.source.cost,
        StatementPlan::Delete(delete) => delete.source.cost,
    };
    own + common_tables.iter().map(|table| table.query.root.cost).sum::<f64>()
}
