//! The face of the planner.

use std::sync::Arc;

use crate::bind::Binder;
use crate::catalog::model::TableModel;
use crate::error::{Result, SqlError};
use crate::expression::Expression;
use crate::grammar::ast::Statement;

use super::{
    CommonTable, DuplicatePolicy, NeededPrivilege, NodeKind, OutputColumn, PlanContext, PlanNeed,
    PlanNode, PreparedPlan, QueryPlan, StatementPlan,
};

/// Plans a statement that reads or writes rows.
///
/// # Errors
/// What MySQL says of names, types and forms that do not go together; 1235 for other statements and for
/// what cannot be done yet.
pub fn plan_statement(statement: &Statement, context: &PlanContext<'_>) -> Result<PreparedPlan> {
    let definitions_version = context.catalog.definitions_version();
    let mut binder = Binder::new(context);
    let planned = match statement {
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
    };
    let needs = needs_of(statement, &planned, &binder.named);
    let common_tables: Vec<CommonTable> = binder.common_tables.into_iter().flatten().collect();
    let cost = cost_of(&planned, &common_tables);
    Ok(PreparedPlan {
        statement: planned,
        frame_slots: u32::try_from(binder.owners.len()).unwrap_or(u32::MAX),
        parameters: context.parameters.to_vec(),
        common_tables,
        definitions_version,
        cost,
        is_cacheable: binder.is_cacheable && !is_into(statement),
        needs,
    })
}

/// Whether the rows go into variables: the plan says nothing of it, so it is no plan for the same text.
fn is_into(statement: &Statement) -> bool {
    matches!(statement, Statement::Select(select) if select.into.is_some())
}

/// What a statement reads and writes, as privileges know it.
fn needs_of(
    statement: &Statement,
    planned: &StatementPlan,
    named: &[(Arc<str>, Arc<str>)],
) -> Vec<PlanNeed> {
    let mut needs: Vec<PlanNeed> = named
        .iter()
        .map(|(schema, table)| PlanNeed {
            privilege: NeededPrivilege::Select,
            schema: Arc::clone(schema),
            table: Arc::clone(table),
        })
        .collect();
    let mut write = |privilege, table: &TableModel| {
        let (schema, table) = (Arc::clone(&table.schema), Arc::clone(&table.name));
        needs.push(PlanNeed { privilege, schema, table });
    };
    match planned {
        StatementPlan::Query(_) => {}
        StatementPlan::Insert(insert) => {
            write(NeededPrivilege::Insert, &insert.table);
            match &insert.duplicates {
                DuplicatePolicy::Refuse => {}
                DuplicatePolicy::Replace => write(NeededPrivilege::Delete, &insert.table),
                DuplicatePolicy::Update(_) => write(NeededPrivilege::Update, &insert.table),
            }
        }
        StatementPlan::Update(update) => {
            update.targets.iter().for_each(|one| write(NeededPrivilege::Update, &one.table));
        }
        StatementPlan::Delete(delete) => {
            delete.targets.iter().for_each(|one| write(NeededPrivilege::Delete, &one.table));
        }
    }
    // What is changed without a look at it need not be readable.
    let is_blind = match statement {
        Statement::Update(update) => update.selection.is_none(),
        Statement::Delete(delete) => delete.selection.is_none(),
        _ => false,
    };
    if is_blind {
        needs.retain(|need| need.privilege != NeededPrivilege::Select);
    }
    needs.sort();
    needs.dedup();
    needs
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
    let columns =
        values.into_iter().map(|value| OutputColumn { value, name: "".into(), origin: None });
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
