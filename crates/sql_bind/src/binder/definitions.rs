//! What DDL asks the binder: the meaning of an expression over a table's columns, and the columns
//! of a query.

use std::sync::Arc;

use firn_sql_catalog::model::{CheckModel, TableModel};
use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::Query;
use firn_sql_logical::expression::{Expression, Slot};
use firn_sql_logical::{OutputColumn, PlanContext, RelationSource};
use firn_sql_types::error::Result;

use super::scope::{Scope, ShownColumn};
use super::{Binder, expressions, query, target};

/// An expression over the columns of one table.
#[derive(Debug, Clone)]
pub struct BoundRowExpression {
    pub expression: Expression,
    /// The columns that it reads, by ordinal, and their slots.
    pub columns: Vec<(u16, Slot)>,
    /// How many slots its frame has.
    pub frame_slots: u32,
}

/// Binds an expression's text over the columns of a table.
///
/// # Errors
/// 1064, and errors of names and types.
pub fn bind_row_expression(
    table: &Arc<TableModel>,
    text: &str,
    context: &PlanContext<'_>,
) -> Result<BoundRowExpression> {
    bind_over_row(Binder::new(context), table, text)
}

/// As [`bind_row_expression`], for the condition of a check constraint, which errors name.
///
/// # Errors
/// 3820 for unknown columns, as [`bind_row_expression`] otherwise.
pub fn bind_check(
    table: &Arc<TableModel>,
    check: &CheckModel,
    context: &PlanContext<'_>,
) -> Result<BoundRowExpression> {
    let mut binder = Binder::new(context);
    binder.names.check = Some(Arc::clone(&check.name));
    bind_over_row(binder, table, &check.text)
}

fn bind_over_row(
    mut binder: Binder<'_>,
    table: &Arc<TableModel>,
    text: &str,
) -> Result<BoundRowExpression> {
    let parsed = grammar::parse_expression(text, grammar::Mode::default())?;
    let source = RelationSource::Table(Arc::clone(table));
    let relation = binder.typing.frame.add_relation(source, table.name.clone());
    let row = target::row_table(table, relation, table.name.clone());
    let shown = (0..row.columns.len()).map(|column| ShownColumn { table: 0, column }).collect();
    binder.names.scopes.push(Scope { tables: vec![row], shown, ..Scope::default() });
    let expression = expressions::bind_single(&mut binder, &parsed)?;
    let columns = binder.typing.frame.row_slots(relation);
    let frame_slots = u32::try_from(binder.typing.frame.width()).unwrap_or(u32::MAX);
    Ok(BoundRowExpression { expression, columns, frame_slots })
}

/// The columns of a query.
///
/// # Errors
/// Errors of names and types.
pub fn query_columns(query: &Query, context: &PlanContext<'_>) -> Result<Vec<OutputColumn>> {
    Ok(query::query(&mut Binder::new(context), query)?.columns)
}
