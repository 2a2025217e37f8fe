//! `RENAME TABLE`, and the effect of a new name on foreign keys.

use std::sync::Arc;

use firn_api::rows::{Definitions, MetadataLock};
use firn_base::TableId;
use firn_sql_grammar::ast;
use firn_sql_types::error::{Result, SqlError};
use rustc_hash::FxHashMap;

use super::super::lookup::no_such_table;
use super::super::model::{CheckModel, ForeignKeyModel, TableModel};
use super::super::options::TableOptions;
use super::{DdlContext, DdlOutcome, create, from_rows, is_temporary_table};

type Name = (Arc<str>, Arc<str>);

/// `RENAME TABLE a TO b, c TO d`: one after the other, all of them or none.
pub(super) fn rename_tables(
    context: &DdlContext<'_>,
    pairs: &[(ast::TableName, ast::TableName)],
) -> Result<DdlOutcome> {
    context.lock_names(pairs.iter().flat_map(|(from, to)| [from, to]), MetadataLock::Exclusive)?;
    // The meaning of each name after the renames so far.
    let mut names: FxHashMap<Name, Option<Arc<TableModel>>> = FxHashMap::default();
    let mut definitions = context.definitions()?;
    for (from, to) in pairs {
        let from: Name = (context.schema_of(from)?.into(), from.name.as_str().into());
        let to = create::new_name(context, to)?;
        let table = now(context, &names, &from)?.ok_or_else(|| no_such_table(&from.0, &from.1))?;
        if from != to && now(context, &names, &to)?.is_some() {
            return Err(SqlError::new(1050, format!("Table '{}' already exists", to.1)));
        }
        if table.view().is_some() && from.0 != to.0 {
            let message =
                format!("Changing schema from '{}' to '{}' is not allowed.", from.0, to.0);
            return Err(SqlError::new(1450, message));
        }
        rename(context, &mut *definitions, &table, &from, &to)?;
        names.insert(from, None);
        names.insert(to, Some(table));
    }
    definitions.commit().map_err(from_rows)?;
    Ok(DdlOutcome::done())
}

fn now(
    context: &DdlContext<'_>,
    names: &FxHashMap<Name, Option<Arc<TableModel>>>,
    name: &Name,
) -> Result<Option<Arc<TableModel>>> {
    match names.get(name) {
        Some(known) => Ok(known.clone()),
        // Only ALTER TABLE renames temporary tables.
        None => context.catalog.shared().find_table(&name.0, &name.1),
    }
}

/// Renames a table as a part of `definitions`, and updates foreign keys.
///
/// # Errors
/// Errors of the node.
pub(super) fn rename(
    context: &DdlContext<'_>,
    definitions: &mut dyn Definitions,
    table: &TableModel,
    from: &Name,
    to: &Name,
) -> Result<()> {
    if is_temporary_table(table) {
        let to = to.clone();
        return change_options(definitions, table.id, &mut |options| {
            options.temporary = Some(to.clone())
        });
    }
    definitions.rename_table(table.id, &to.0, &to.1).map_err(from_rows)?;
    tell_children(context, definitions, from, to)?;
    rename_own_constraints(definitions, table, from, to)
}

/// Foreign keys name their parents: they get the new name.
pub(super) fn tell_children(
    context: &DdlContext<'_>,
    definitions: &mut dyn Definitions,
    from: &Name,
    to: &Name,
) -> Result<()> {
    let references = context.catalog.shared().referencing(&from.0, &from.1)?;
    let mut told: Vec<TableId> = Vec::new();
    for reference in references.iter() {
        let child = (&reference.child.schema, &reference.child.name);
        if told.contains(&reference.child.id) || child == (&from.0, &from.1) {
            continue;
        }
        told.push(reference.child.id);
        context.lock(&reference.child, MetadataLock::Exclusive)?;
        change_options(definitions, reference.child.id, &mut |options| {
            for key in &mut options.foreign_keys {
                if (&key.parent_schema, &key.parent_table) == (&from.0, &from.1) {
                    (key.parent_schema, key.parent_table) = to.clone();
                }
            }
        })?;
    }
    Ok(())
}

/// Generated names that contain the table's name follow it, and so do keys to the table itself.
fn rename_own_constraints(
    definitions: &mut dyn Definitions,
    table: &TableModel,
    from: &Name,
    to: &Name,
) -> Result<()> {
    if table.checks.is_empty() && table.foreign_keys.is_empty() {
        return Ok(());
    }
    change_options(definitions, table.id, &mut |options| {
        follow_table_name(&mut options.checks, &mut options.foreign_keys, &from.1, &to.1);
        for key in &mut options.foreign_keys {
            if (&key.parent_schema, &key.parent_table) == (&from.0, &from.1) {
                (key.parent_schema, key.parent_table) = to.clone();
            }
        }
    })
}

/// `t_chk_1` and `t_ibfk_1` become `u_chk_1` and `u_ibfk_1`; names given by the user stay.
pub(super) fn follow_table_name(
    checks: &mut [CheckModel],
    keys: &mut [ForeignKeyModel],
    from: &str,
    to: &str,
) {
    let follow = |name: &mut Arc<str>, infix: &str| {
        let number = name.strip_prefix(from).and_then(|rest| rest.strip_prefix(infix));
        if let Some(number) = number.filter(|number| number.parse::<u32>().is_ok()) {
            *name = format!("{to}{infix}{number}").into();
        }
    };
    checks.iter_mut().for_each(|check| follow(&mut check.name, "_chk_"));
    keys.iter_mut().for_each(|key| follow(&mut key.name, "_ibfk_"));
}

/// Changes a table's options in place.
///
/// # Errors
/// Errors of the node; 1712 if the stored options are damaged.
pub(super) fn change_options(
    definitions: &mut dyn Definitions,
    table: TableId,
    change: &mut dyn FnMut(&mut TableOptions),
) -> Result<()> {
    let mut definition = definitions.lock_definition(table).map_err(from_rows)?;
    let mut options = TableOptions::decode(&definition.options)?;
    change(&mut options);
    definition.options = options.encode();
    definitions.alter_options(definition).map_err(from_rows)
}
