//! The schemas and tables that a user sees.

use std::sync::Arc;

use firn_sql_types::error::Result;

use super::super::model::TableModel;
use super::super::virtual_schemas::proper_schema;
use super::super::virtual_table::{VirtualContext, VirtualTable};
use super::{Hints, tables_of};

/// A table that is listed.
pub(super) enum Listed {
    /// A stored table or view.
    Stored(Arc<TableModel>),
    /// A made-up one.
    Virtual(Arc<dyn VirtualTable>),
}

impl Listed {
    pub(super) fn schema(&self) -> &str {
        match self {
            Listed::Stored(table) => &table.schema,
            Listed::Virtual(table) => table.schema(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Listed::Stored(table) => &table.name,
            Listed::Virtual(table) => table.name(),
        }
    }
}

/// The schemas that the user sees and that match, in order.
///
/// # Errors
/// Errors of the node.
pub(super) fn schemas(context: &VirtualContext<'_>, wanted: Option<&str>) -> Result<Vec<Box<str>>> {
    let catalog = context.catalog;
    let mut names = match wanted {
        Some(wanted) => match proper_schema(wanted) {
            Some(proper) => vec![Box::from(proper)],
            None if catalog.shared().has_schema(wanted)? => vec![Box::from(wanted)],
            None => Vec::new(),
        },
        None => catalog.schemas()?,
    };
    names.retain(|name| context.session.sees_schema(name));
    Ok(names)
}

/// Calls `each` with the tables that the user sees and that match, by schema and name, until it
/// returns false. A requested name means a temporary table of the session first.
pub(super) fn each_table(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    (schema_column, table_column): (&str, &str),
    each: &mut dyn FnMut(&Listed) -> Result<bool>,
) -> Result<()> {
    let wanted = hints.text(table_column);
    for schema in schemas(context, hints.text(schema_column))? {
        for table in tables(context, &schema, wanted)? {
            if context.session.sees_table(&schema, table.name()) && !each(&table)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn tables(context: &VirtualContext<'_>, schema: &str, wanted: Option<&str>) -> Result<Vec<Listed>> {
    let catalog = context.catalog;
    let mut tables: Vec<Listed> = match wanted {
        Some(name) => catalog.find_table(schema, name)?.map(Listed::Stored).into_iter().collect(),
        // A schema that is dropped meanwhile has no tables.
        None => {
            let stored = catalog.shared().find_tables_of(schema)?.unwrap_or_default();
            stored.into_iter().map(Listed::Stored).collect()
        }
    };
    let made_up = tables_of(schema);
    let made_up =
        made_up.filter(|table| wanted.is_none_or(|name| name.eq_ignore_ascii_case(table.name())));
    let made_up: Vec<Listed> = made_up
        .filter(|table| !tables.iter().any(|stored| stored.name() == table.name()))
        .map(Listed::Virtual)
        .collect();
    if !made_up.is_empty() {
        tables.extend(made_up);
        tables.sort_by(|one, other| one.name().cmp(other.name()));
    }
    Ok(tables)
}

/// Calls `each` with the stored tables that match, for information that only these have.
pub(super) fn each_stored(
    context: &VirtualContext<'_>,
    hints: &Hints<'_>,
    columns: (&str, &str),
    each: &mut dyn FnMut(&Arc<TableModel>) -> Result<bool>,
) -> Result<()> {
    each_table(context, hints, columns, &mut |table| match table {
        Listed::Stored(table) => each(table),
        Listed::Virtual(_) => Ok(true),
    })
}
