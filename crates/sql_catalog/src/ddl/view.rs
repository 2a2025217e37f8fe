//! `CREATE VIEW`, `ALTER VIEW`, `DROP VIEW`.
//!
//! A view is stored as a table without rows: it shares the namespace of tables, its columns are
//! stored for display, and creating it is as atomic as any other DDL. Its query is in the options.

use std::sync::Arc;

use firn_api::rows::MetadataLock;
use firn_sql_grammar::{self as grammar, ast, render_query};
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{CheckOption, TableModel, ViewAlgorithm, ViewModel, same_name};
use super::super::options::TableOptions;
use super::table_builder::{TableDraft, duplicate_column};
use super::{DdlContext, DdlOutcome, QueryColumn, column, create, from_rows, full_name};

pub(super) fn create(context: &DdlContext<'_>, statement: &ast::CreateView) -> Result<DdlOutcome> {
    let (schema, name) = create::new_name(context, &statement.view)?;
    context.lock_names([&statement.view], MetadataLock::Exclusive)?;
    let before = context.catalog.shared().find_table(&schema, &name)?;
    check_replaced(statement, before.as_deref(), &schema, &name)?;
    let current = context.current_schema.unwrap_or(&schema);
    let columns = context.expressions.query_columns(&statement.query, current)?;
    refuse_idle_check(context, statement, current, &schema, &name)?;
    if statement.columns.is_empty() {
        check_aliases(&statement.query.body)?;
    }
    let mut draft = draft(context, &schema, &name, named(columns, &statement.columns)?)?;
    draft.created_us = create::now_us(context);
    let mut definition = draft.definition()?;
    let kept = before.as_deref().filter(|_| statement.alter).and_then(TableModel::view);
    let view = view_of(context, statement, current, kept)?;
    let options = TableOptions { view: Some(view), ..draft.table_options() };
    definition.options = options.encode();
    let mut definitions = context.definitions()?;
    if let Some(before) = before {
        definitions.drop_table(before.id).map_err(from_rows)?;
    }
    definitions.create_table(definition).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::done())
}

fn check_replaced(
    statement: &ast::CreateView,
    before: Option<&TableModel>,
    schema: &str,
    name: &str,
) -> Result<()> {
    match before {
        None if statement.alter => Err(super::super::lookup::no_such_table(schema, name)),
        None => Ok(()),
        Some(before) if before.view().is_none() && (statement.alter || statement.or_replace) => {
            Err(SqlError::new(1347, format!("'{}' is not VIEW", full_name(before))))
        }
        Some(_) if statement.alter || statement.or_replace => Ok(()),
        Some(_) => Err(SqlError::new(1050, format!("Table '{name}' already exists"))),
    }
}

/// A check option for rows that can never be written is an error.
fn refuse_idle_check(
    context: &DdlContext<'_>,
    statement: &ast::CreateView,
    current: &str,
    schema: &str,
    name: &str,
) -> Result<()> {
    let is_apart = matches!(statement.algorithm, ast::ViewAlgorithm::TempTable);
    if statement.check_option.is_some()
        && (is_apart || !context.expressions.is_updatable(&statement.query, current)?)
    {
        let message = format!("CHECK OPTION on non-updatable view '{schema}.{name}'");
        return Err(SqlError::new(1368, message));
    }
    Ok(())
}

/// The columns with the names that the statement gives them.
fn named(mut columns: Vec<QueryColumn>, names: &[String]) -> Result<Vec<QueryColumn>> {
    if !names.is_empty() {
        if names.len() != columns.len() {
            let message = "In definition of view, derived table or common table expression, SELECT list and column \
                 names list have different column counts";
            return Err(SqlError::new(1353, message));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column::check_result_name(name)?;
            column.name.clone_from(name);
        }
    }
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|other| same_name(&other.name, &column.name)) {
            return Err(duplicate_column(&column.name));
        }
    }
    Ok(columns)
}

/// Refuses aliases that cannot be column names.
fn check_aliases(body: &ast::SetExpr) -> Result<()> {
    match body {
        ast::SetExpr::Select(select) => select.projection.iter().try_for_each(|item| match item {
            ast::SelectItem::Aliased { alias, .. } => column::check_result_name(alias),
            _ => Ok(()),
        }),
        ast::SetExpr::Query(query) => check_aliases(&query.body),
        ast::SetExpr::SetOperation { left, .. } => check_aliases(left),
        _ => Ok(()),
    }
}

fn draft(
    context: &DdlContext<'_>,
    schema: &str,
    name: &str,
    columns: Vec<QueryColumn>,
) -> Result<TableDraft> {
    let collation = context.catalog.shared().schema(schema)?.collation;
    let mut draft = TableDraft::new(schema, name, collation);
    for column in columns {
        let number = draft.take_number();
        let mut column = create::model_of_query_column(context, column, number, collation);
        // Expressions without an alias whose text cannot be a column name.
        if !column::is_result_name(&column.name) {
            column.name = format!("Name_exp_{}", number + 1).into();
        }
        column.comment = Arc::default();
        draft.add_column(column, None)?;
    }
    Ok(draft)
}

fn view_of(
    context: &DdlContext<'_>,
    statement: &ast::CreateView,
    schema: &str,
    kept: Option<&ViewModel>,
) -> Result<ViewModel> {
    // Independent of `sql_mode`: the text is parsed in the default mode again. Parentheses around
    // every operator can exceed the nesting limit, and then the view is refused.
    let body = render_query(&statement.query);
    grammar::parse(&body, grammar::Mode::default())?;
    let definer = match &statement.definer {
        Some(ast::Account::Named { user, host }) => format!("{user}@{host}"),
        // An altered view keeps its definer.
        None if kept.is_some() => kept.map(|kept| kept.definer.to_string()).unwrap_or_default(),
        Some(ast::Account::Current) | None => context.account.to_owned(),
    };
    Ok(ViewModel {
        body: body.into(),
        schema: schema.into(),
        definer: definer.into(),
        security_definer: !statement.invoker_security,
        algorithm: match statement.algorithm {
            ast::ViewAlgorithm::Undefined => ViewAlgorithm::Undefined,
            ast::ViewAlgorithm::Merge => ViewAlgorithm::Merge,
            ast::ViewAlgorithm::TempTable => ViewAlgorithm::TemporaryTable,
        },
        check_option: match statement.check_option {
            None => CheckOption::None,
            Some(ast::CheckOption::Local) => CheckOption::Local,
            Some(ast::CheckOption::Cascaded) => CheckOption::Cascaded,
        },
    })
}

pub(super) fn drop(
    context: &DdlContext<'_>,
    if_exists: bool,
    views: &[ast::TableName],
) -> Result<DdlOutcome> {
    context.lock_names(views, MetadataLock::Exclusive)?;
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for name in views {
        let schema = context.schema_of(name)?;
        match context.catalog.shared().find_table(schema, &name.name)? {
            Some(view) if view.view().is_some() => found.push(view),
            Some(table) => {
                return Err(SqlError::new(1347, format!("'{}' is not VIEW", full_name(&table))));
            }
            None => missing.push(format!("{schema}.{}", name.name)),
        }
    }
    if !missing.is_empty() {
        if !if_exists {
            let message = format!("Unknown table '{}'", missing.join(","));
            return Err(SqlError::new(1051, message));
        }
        for name in missing {
            context.evaluation.note(1051, || format!("Unknown table '{name}'"));
        }
    }
    let mut definitions = context.definitions()?;
    for view in &found {
        definitions.drop_table(view.id).map_err(from_rows)?;
    }
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::done())
}
