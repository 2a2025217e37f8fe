//! `DROP TABLE`, `TRUNCATE TABLE`, and the end of temporary tables.

use std::sync::Arc;

use firn_api::Incarnation;
use firn_api::rows::{MetadataLock, RowsError};
use firn_base::TableId;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};

use super::super::information_schema;
use super::super::lookup::{Catalog, no_such_table, owner_of};
use super::super::model::TableModel;
use super::super::session::{SessionCatalog, TemporaryNamespace};
use super::{DdlContext, DdlOutcome, foreign_key, from_rows, is_temporary_table};

/// `DROP [TEMPORARY] TABLE`: all of them, or none.
pub(super) fn drop_tables(
    context: &DdlContext<'_>,
    temporary: bool,
    if_exists: bool,
    tables: &[ast::TableName],
) -> Result<DdlOutcome> {
    if !temporary {
        context.lock_names(tables, MetadataLock::Exclusive)?;
    }
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in tables {
        match find(context, name, temporary)? {
            Some(table) => found.push(table),
            None => missing.push(format!("{}.{}", context.schema_of(name)?, name.name)),
        }
    }
    if !missing.is_empty() {
        let message = format!("Unknown table '{}'", missing.join(","));
        if !if_exists {
            return Err(SqlError::new(1051, message));
        }
        for name in missing {
            context.evaluation.note(1051, || format!("Unknown table '{name}'"));
        }
    }
    check_unique(&found)?;
    let going: Vec<(Arc<str>, Arc<str>)> =
        found.iter().map(|table| (Arc::clone(&table.schema), Arc::clone(&table.name))).collect();
    for table in found.iter().filter(|table| !is_temporary_table(table)) {
        foreign_key::check_not_parent(context, table, &going)?;
    }
    drop_all(context, &found)?;
    Ok(DdlOutcome::done())
}

fn find(
    context: &DdlContext<'_>,
    name: &ast::TableName,
    temporary: bool,
) -> Result<Option<Arc<TableModel>>> {
    let schema = context.schema_of(name)?;
    let found = match temporary {
        true => context.catalog.temporary_table(schema, &name.name)?,
        false => context.catalog.find_table(schema, &name.name)?,
    };
    // A view is not a table: use `DROP VIEW`.
    Ok(found.filter(|table| table.view().is_none()))
}

fn check_unique(tables: &[Arc<TableModel>]) -> Result<()> {
    for (at, table) in tables.iter().enumerate() {
        if tables[..at].iter().any(|other| other.id == table.id) {
            let message = format!("Not unique table/alias: '{}'", table.name);
            return Err(SqlError::new(1066, message));
        }
    }
    Ok(())
}

fn drop_all(context: &DdlContext<'_>, tables: &[Arc<TableModel>]) -> Result<()> {
    if tables.is_empty() {
        return Ok(());
    }
    let mut definitions = context.definitions()?;
    for table in tables {
        definitions.drop_table(table.id).map_err(from_rows)?;
    }
    definitions.commit().map_err(from_rows)?;
    for table in tables.iter().filter(|table| is_temporary_table(table)) {
        context.catalog.remove_temporary(&table.schema, &table.name);
    }
    Ok(())
}

/// `TRUNCATE TABLE`.
pub(super) fn truncate(context: &DdlContext<'_>, name: &ast::TableName) -> Result<DdlOutcome> {
    if information_schema::is_empty_monitor(context.schema_of(name)?, &name.name) {
        return Ok(DdlOutcome::done());
    }
    context.lock_names([name], MetadataLock::Exclusive)?;
    let table = context.table(name)?;
    if table.view().is_some() {
        return Err(no_such_table(&table.schema, &table.name));
    }
    if context.foreign_key_checks && !is_temporary_table(&table) {
        let references = context.catalog.shared().referencing(&table.schema, &table.name)?;
        if let Some(other) = references.iter().find(|other| other.child.id != table.id) {
            let key = other.foreign_key();
            let message = format!(
                "Cannot truncate a table referenced in a foreign key constraint (`{}`.`{}`, CONSTRAINT `{}`)",
                other.child.schema, other.child.name, key.name
            );
            return Err(SqlError::new(1701, message));
        }
    }
    let mut definitions = context.definitions()?;
    definitions.truncate_table(table.id).map_err(from_rows)?;
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::done())
}

impl SessionCatalog {
    /// Drops the session's temporary tables. Called when the session ends. Blocks.
    ///
    /// # Errors
    /// Errors of the node. The tables then stay until the compute node has ended, see
    /// [`Catalog::remove_leftovers`].
    pub fn drop_temporary_tables(&self) -> Result<()> {
        if !self.has_temporary_tables() && self.temporary_version() == 0 {
            return Ok(());
        }
        self.clear_temporary();
        self.shared().drop_namespace(&self.namespace())
    }
}

impl Catalog {
    /// Drops the temporary tables that a session has left and none goes on with. Blocks.
    ///
    /// # Errors
    /// As [`SessionCatalog::drop_temporary_tables`].
    pub fn drop_left(&self, left: &TemporaryNamespace) -> Result<()> {
        self.drop_namespace(&left.schema)
    }

    fn drop_namespace(&self, schema: &str) -> Result<()> {
        let node = self.node();
        if node.schema_options(schema).map_err(from_rows)?.is_none() {
            return Ok(());
        }
        let mut definitions = node.change_definitions().map_err(from_rows)?;
        definitions.drop_schema(schema).map_err(from_rows)?;
        definitions.commit().map_err(from_rows)
    }

    /// Drops the temporary tables and half-made copies of compute nodes that have ended, and only
    /// those; not the schemas in `goes_on`, whose sessions go on here. A node that does not write
    /// leaves that to the one that does. Blocks.
    ///
    /// # Errors
    /// Errors of the node.
    pub fn remove_leftovers(
        &self,
        has_ended: &dyn Fn(Incarnation) -> bool,
        goes_on: &[String],
    ) -> Result<()> {
        let mut left = self.leftovers(has_ended)?;
        left.schemas.retain(|schema| !goes_on.iter().any(|one| **one == **schema));
        if left.schemas.is_empty() && left.tables.is_empty() {
            return Ok(());
        }
        let mut definitions = match self.node().change_definitions() {
            Err(RowsError::NotLeader { .. }) => return Ok(()),
            begun => begun.map_err(from_rows)?,
        };
        for schema in &left.schemas {
            definitions.drop_schema(schema).map_err(from_rows)?;
        }
        for table in &left.tables {
            definitions.drop_table(*table).map_err(from_rows)?;
        }
        definitions.commit().map_err(from_rows)
    }

    fn leftovers(&self, has_ended: &dyn Fn(Incarnation) -> bool) -> Result<Leftovers> {
        let is_left = |name: &str| owner_of(name).is_some_and(has_ended);
        let node = self.node();
        let mut left = Leftovers::default();
        for schema in node.schemas().map_err(from_rows)? {
            if is_left(&schema) {
                left.schemas.push(schema);
                continue;
            }
            let tables = node.tables_of(&schema).map_err(from_rows)?.unwrap_or_default();
            let definitions = tables.iter().map(|table| table.definition());
            let left_tables = definitions.filter(|definition| is_left(&definition.name));
            left.tables.extend(left_tables.map(|definition| definition.table_id));
        }
        Ok(left)
    }
}

/// What compute nodes that have ended have left.
#[derive(Default)]
struct Leftovers {
    /// With all their tables.
    schemas: Vec<Box<str>>,
    tables: Vec<TableId>,
}
