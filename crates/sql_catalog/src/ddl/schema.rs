//! `CREATE`, `ALTER` and `DROP DATABASE`.

use std::sync::Arc;

use firn_api::rows::MetadataLock;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};

use super::super::lookup::{TEMPORARY_SCHEMA_PREFIX, unknown_schema};
use super::super::options::SchemaOptions;
use super::{DdlContext, DdlOutcome, charset, check_identifier, foreign_key, from_rows};

pub(super) fn create(
    context: &DdlContext<'_>,
    statement: &ast::CreateDatabase,
) -> Result<DdlOutcome> {
    let name = statement.name.as_str();
    if name.is_empty() || name.ends_with(' ') || name.starts_with(TEMPORARY_SCHEMA_PREFIX) {
        return Err(SqlError::new(1102, format!("Incorrect database name '{name}'")));
    }
    check_identifier(name)?;
    refuse_made_up(context, name)?;
    let message = format!("Can't create database '{name}'; database exists");
    if context.catalog.shared().has_schema(name)? {
        if !statement.if_not_exists {
            return Err(SqlError::new(1007, message));
        }
        context.evaluation.note(1007, || message);
        return Ok(DdlOutcome::Done { affected: 1, info: String::new() });
    }
    let options = changed(SchemaOptions::default(), &statement.options)?;
    let mut definitions = context.definitions()?;
    definitions.create_schema(name, &options.encode()).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::Done { affected: 1, info: String::new() })
}

pub(super) fn alter(
    context: &DdlContext<'_>,
    statement: &ast::AlterDatabase,
) -> Result<DdlOutcome> {
    let name = statement.name.as_deref().or(context.current_schema);
    let name = name.ok_or_else(|| SqlError::new(1046, "No database selected"))?;
    refuse_made_up(context, name)?;
    let options = changed(context.catalog.shared().schema(name)?, &statement.options)?;
    let mut definitions = context.definitions()?;
    definitions.alter_schema(name, &options.encode()).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::Done { affected: 1, info: String::new() })
}

pub(super) fn drop(context: &DdlContext<'_>, if_exists: bool, name: &str) -> Result<DdlOutcome> {
    refuse_made_up(context, name)?;
    if ["mysql", "sys"].contains(&name) {
        let message = format!("Access to system schema '{name}' is rejected.");
        return Err(SqlError::new(3552, message));
    }
    let catalog = context.catalog.shared();
    if !catalog.has_schema(name)? {
        let message = format!("Can't drop database '{name}'; database doesn't exist");
        if !if_exists {
            return Err(SqlError::new(1008, message));
        }
        context.evaluation.note(1008, || message);
        return Ok(DdlOutcome::done());
    }
    context.lock_schema(name, MetadataLock::Exclusive)?;
    let tables = catalog.tables_of(name)?;
    let going: Vec<(Arc<str>, Arc<str>)> =
        tables.iter().map(|table| (Arc::clone(&table.schema), Arc::clone(&table.name))).collect();
    tables.iter().try_for_each(|table| foreign_key::check_not_parent(context, table, &going))?;
    let mut definitions = context.definitions()?;
    definitions.drop_schema(name).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::Done { affected: tables.len() as u64, info: String::new() })
}

fn changed(mut options: SchemaOptions, said: &ast::DatabaseOptions) -> Result<SchemaOptions> {
    if let Some(collation) = charset::resolve(said.charset.as_deref(), said.collation.as_deref())? {
        options.collation = collation;
    }
    options.read_only = said.read_only.unwrap_or(options.read_only);
    Ok(options)
}

fn refuse_made_up(context: &DdlContext<'_>, name: &str) -> Result<()> {
    let is_made_up = |made_up: &&str| made_up.eq_ignore_ascii_case(name);
    if ["information_schema", "performance_schema"].iter().any(is_made_up) {
        let message = format!("Access denied for user '{}' to database '{name}'", context.account);
        return Err(SqlError::new(1044, message));
    }
    if name.starts_with(TEMPORARY_SCHEMA_PREFIX) {
        return Err(unknown_schema(name));
    }
    Ok(())
}
