//! Views: their bodies, bound as if they were written in the query.

use std::sync::Arc;

use firn_sql_catalog::SessionCatalog;
use firn_sql_catalog::model::{CheckOption, TableModel, ViewAlgorithm};
use firn_sql_grammar as grammar;
use firn_sql_grammar::ast::{Query as WrittenQuery, Statement};
use firn_sql_logical::{PlanContext, Query};
use firn_sql_types::EvaluationContext;
use firn_sql_types::error::{ErrorKind, Result, SqlError};

use super::from::FromItem;
use super::scope::{ColumnSource, Scope, ScopeColumn, ShownColumn};
use super::{Binder, Frame, Names, from, query, target};

/// A view as a table of the innermost scope.
pub(crate) fn bind_view(
    binder: &mut Binder<'_>,
    table: &Arc<TableModel>,
    alias: Arc<str>,
    null_supplied: bool,
) -> Result<FromItem> {
    let option = table.view().map_or(CheckOption::None, |view| view.check_option);
    let around = binder.views.enter(option);
    let query = view_query(binder, table);
    let within = binder.views.leave(&around);
    let query = query?;
    let names: Vec<Arc<str>> = table.shown_columns().map(|column| column.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let is_apart = table.view().is_some_and(|view| view.algorithm == ViewAlgorithm::TemporaryTable);
    let before = binder.block.hints.no_merge;
    binder.block.hints.no_merge |= is_apart;
    let placed = from::place_query(binder, query, alias, &names, false, null_supplied);
    binder.block.hints.no_merge = before;
    let placed = placed.map_err(|error| match error.kind {
        ErrorKind::ColumnNamesMisfit => invalid(table),
        _ => error,
    })?;
    binder.views.note_conditions(&around, &placed.conditions, &within);
    let checks = binder.views.take_checks();
    if let Some(scope_table) = binder.names.innermost().tables.last_mut() {
        scope_table.checks = checks;
        scope_table.schema = Some(table.schema.clone());
        scope_table.original = table.name.clone();
        scope_table.columns.iter_mut().for_each(|column| tell_of_view(column, table));
    }
    Ok(placed)
}

/// The body of a view, bound where no name of the statement is visible.
pub(crate) fn view_query(binder: &mut Binder<'_>, table: &TableModel) -> Result<Query> {
    binder.nesting.expand("View")?;
    let view = table.view().ok_or_else(|| invalid(table))?;
    let parsed =
        grammar::parse(&view.body, grammar::Mode::default()).map_err(|_| invalid(table))?;
    let Statement::Select(select) = parsed.statement else { return Err(invalid(table)) };
    let hidden = binder.names.hide(view.schema.clone());
    binder.views.push_user(table, view);
    let bound = binder.deeper(|binder| query::query(binder, &select.query));
    binder.views.pop_user();
    binder.names.show(hidden);
    bound.map_err(|error| match error.kind {
        ErrorKind::UnknownColumn | ErrorKind::UnknownName => invalid(table),
        _ => error,
    })
}

/// Whether rows of a view are rows of tables, so that they can be changed through it.
pub fn is_updatable(
    view: &Arc<TableModel>,
    catalog: &SessionCatalog,
    evaluation: &EvaluationContext,
) -> bool {
    let context = PlanContext::new(catalog, Some(&view.schema), evaluation);
    let mut binder = Binder::new(&context);
    binder.names.scopes.push(Scope::default());
    if bind_view(&mut binder, view, view.name.clone(), false).is_err() {
        return false;
    }
    shows_rows_of_tables(&binder.names, &binder.typing.frame)
}

/// As [`is_updatable`], for a view that is being created.
///
/// # Errors
/// Errors of binding the query.
pub fn would_be_updatable(query: &WrittenQuery, context: &PlanContext<'_>) -> Result<bool> {
    let mut binder = Binder::new(context);
    binder.names.scopes.push(Scope::default());
    let query = binder.deeper(|binder| query::query(binder, query))?;
    from::place_query(&mut binder, query, "".into(), &[], false, false)?;
    Ok(shows_rows_of_tables(&binder.names, &binder.typing.frame))
}

/// What clients see of a view's column: merged columns are the view's own; others belong to the
/// tables underneath if they are plain columns of them.
fn tell_of_view(column: &mut ScopeColumn, view: &TableModel) {
    let Some(reported) = &mut column.reported else { return };
    let is_merged = matches!(column.source, ColumnSource::Expression(_));
    let is_of_column = !reported.origin.schema.is_empty();
    if is_merged == is_of_column {
        reported.origin.schema = view.schema.clone();
    }
    if is_merged || !is_of_column {
        reported.origin.original_table = view.name.clone();
        reported.origin.original_name = column.name.clone();
    }
}

fn shows_rows_of_tables(names: &Names, frame: &Frame) -> bool {
    let count = names.scopes[0].tables[0].columns.len();
    let mut places = (0..count).map(|column| ShownColumn { table: 0, column });
    places.any(|place| target::base_column(names, frame, 0, place).is_some())
}

fn invalid(table: &TableModel) -> SqlError {
    let message = format!(
        "View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view \
         lack rights to use them",
        table.schema, table.name
    );
    SqlError::new(1356, message)
}
