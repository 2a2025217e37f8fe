//! `ALTER TABLE`: the actions, applied to a draft; and the cheapest way from the table to the
//! draft.
//!
//! ```text
//!   table ──► draft ──actions──► draft' ──► [`Difference`] ─┬─► instant    definitions only
//!                                                           ├─► + indexes  built beside writers
//!                                                           └─► copy       new table, filled
//! ```
//!
//! Actions are applied in stages, as in MySQL, whatever their order in the statement: first drops,
//! then columns, then additions. Indexes are built before the rest happens in one change of
//! definitions; if that is refused, they are dropped again.

use std::sync::Arc;

use firn_api::rows::{Definitions, MetadataLock, NewIndex, RowsError};
use firn_format::definition::TableDefinition;
use firn_format::value::Value;
use firn_sql_grammar::ast::{self, AlterAction};
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{ColumnModel, DefaultValue, TableModel};
use super::alter_actions;
use super::copy::Writers;
use super::difference::{CopyReason, Difference};
use super::table_builder::{TableDraft, index_options, stored_column, stored_part};
use super::{
    DdlContext, DdlOutcome, check, copied_rows, copy, create, foreign_key, from_rows,
    is_temporary_table, rename, row_size, validate, values,
};

/// The target of a table: schema and name.
pub(super) type Name = (Arc<str>, Arc<str>);

pub(super) fn alter_table(
    context: &DdlContext<'_>,
    statement: &ast::AlterTable,
) -> Result<DdlOutcome> {
    context.lock_names([&statement.table], MetadataLock::Upgradable)?;
    let table = context.base_table(&statement.table)?;
    create::check_schema_is_writable(context, &table.schema)?;
    let mut after = TableDraft::of(&table);
    alter_actions::apply(context, &table, &mut after, &statement.actions)?;
    foreign_key::drop_superfluous_indexes(&mut after);
    check::whole(context, &after, table.foreign_keys.len().min(kept_keys(&table, &after)))?;
    row_size::check_altered(context, &TableDraft::of(&table), &after)?;
    foreign_key::check_changed_types(context, &table, &after)?;
    let target = target(context, &table, &statement.actions)?;
    follow_own_names(&table, &mut after, &target);
    let mut difference = Difference::new(&table, &after, &statement.actions);
    if statement.algorithm.is_some() || statement.lock.is_some() {
        difference.wear_on();
    }
    let writers = writers(statement, &table, &after, &difference);
    check_algorithm(statement, &table, &difference, writers)?;
    let is_told = copied_rows::are_told(context, statement, &table, &after, &difference);
    let forced = statement.algorithm.as_deref() == Some("COPY") && !difference.is_rename_only();
    if difference.copy.is_some() || forced {
        let rows = copy::copy_table(context, &table, &after, &target, writers)?;
        return Ok(DdlOutcome::altered(context, if is_told { rows } else { 0 }));
    }
    let rows = alter_in_place(context, &table, &after, &difference, &target)?;
    if let Some(start) = after.auto_increment_start {
        super::set_auto_increment(context, &table, start)?;
    }
    let is_silent = |action: &AlterAction| {
        matches!(action, AlterAction::RenameTable(_) | AlterAction::EnableKeys(_))
    };
    Ok(match statement.actions.iter().all(is_silent) {
        true => DdlOutcome::done(),
        false => DdlOutcome::altered(context, rows),
    })
}

/// Where the table names itself or its columns, the new names are used.
fn follow_own_names(table: &TableModel, after: &mut TableDraft, target: &Name) {
    let renamed_column = |name: &Arc<str>| {
        let before = table.column(name)?;
        Some(Arc::clone(&after.numbered(before.ordinal)?.name))
    };
    let mut keys = after.foreign_keys.clone();
    for key in &mut keys {
        let is_kept = table.foreign_keys.iter().any(|own| own.name == key.name);
        if key.parent_schema != table.schema || key.parent_table != table.name {
            continue;
        }
        (key.parent_schema, key.parent_table) = target.clone();
        for name in key.parent_columns.iter_mut().filter(|_| is_kept) {
            *name = renamed_column(name).unwrap_or_else(|| Arc::clone(name));
        }
    }
    after.foreign_keys = keys;
    after.target = target.clone();
    if table.name != target.1 {
        rename::follow_table_name(
            &mut after.checks,
            &mut after.foreign_keys,
            &table.name,
            &target.1,
        );
    }
}

/// How many foreign keys at the beginning of the draft existed before.
fn kept_keys(table: &TableModel, after: &TableDraft) -> usize {
    let was_there = |name: &str| table.foreign_keys.iter().any(|key| *key.name == *name);
    after.foreign_keys.iter().take_while(|key| was_there(&key.name)).count()
}

fn target(context: &DdlContext<'_>, table: &TableModel, actions: &[AlterAction]) -> Result<Name> {
    let before = (Arc::clone(&table.schema), Arc::clone(&table.name));
    let renamed = actions.iter().rev().find_map(|action| match action {
        AlterAction::RenameTable(name) => Some(name),
        _ => None,
    });
    let Some(name) = renamed else { return Ok(before) };
    let name = ast::TableName {
        schema: name
            .schema
            .clone()
            .or_else(|| Some(context.current_schema.unwrap_or(&table.schema).to_owned())),
        name: name.name.clone(),
    };
    let to = create::new_name(context, &name)?;
    if to != before && create::exists(context, &to.0, &to.1, is_temporary_table(table))? {
        return Err(SqlError::new(1050, format!("Table '{}' already exists", to.1)));
    }
    Ok(to)
}

/// What writers do if the rows are copied.
fn writers(
    statement: &ast::AlterTable,
    table: &TableModel,
    after: &TableDraft,
    difference: &Difference,
) -> Writers {
    let may_go_on = matches!(statement.lock.as_deref(), None | Some("DEFAULT" | "NONE"));
    let is_copy = statement.algorithm.as_deref() == Some("COPY");
    match may_go_on && !is_copy && difference.keeps_rows_apart(table, after) {
        true => Writers::GoOn,
        false => Writers::Wait,
    }
}

/// `ALGORITHM` and `LOCK` promise a client how much a statement disturbs others: a promise that
/// cannot be kept is refused.
fn check_algorithm(
    statement: &ast::AlterTable,
    table: &TableModel,
    difference: &Difference,
    writers: Writers,
) -> Result<()> {
    let algorithm = statement.algorithm.as_deref().unwrap_or("DEFAULT");
    let not_supported = |what: &str, reason: &str, instead: &str| {
        Err(SqlError::new(
            1846,
            format!("{what} is not supported. Reason: {reason}. Try {instead}."),
        ))
    };
    match algorithm {
        "INSTANT" if difference.copy == Some(CopyReason::WornOut) => {
            let message = format!(
                "Maximum row versions reached for table {}/{}. No more columns can be added or dropped \
                 instantly. Please use COPY/INPLACE.",
                table.schema, table.name
            );
            return Err(SqlError::new(4092, message));
        }
        "INSTANT" if difference.copy.is_some() || !difference.added_indexes.is_empty() => {
            let message = "ALGORITHM=INSTANT is not supported for this operation. Try ALGORITHM=COPY/INPLACE.";
            return Err(SqlError::new(1845, message));
        }
        "INPLACE" if difference.copy == Some(CopyReason::ColumnType) => {
            let reason = "Cannot change column type INPLACE";
            return not_supported("ALGORITHM=INPLACE", reason, "ALGORITHM=COPY");
        }
        "DEFAULT" | "INSTANT" | "INPLACE" | "COPY" => {}
        other => {
            return Err(SqlError::new(1800, format!("Unknown ALGORITHM '{other}'")));
        }
    }
    let copies = difference.copy.is_some() && writers == Writers::Wait || algorithm == "COPY";
    match statement.lock.as_deref().unwrap_or("DEFAULT") {
        "NONE" if copies => {
            not_supported("LOCK=NONE", "COPY algorithm requires a lock", "LOCK=SHARED")
        }
        "DEFAULT" | "NONE" | "SHARED" | "EXCLUSIVE" => Ok(()),
        other => Err(SqlError::new(1801, format!("Unknown LOCK type '{other}'"))),
    }
}

/// Returns how many rows new constraints were checked against.
fn alter_in_place(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    difference: &Difference,
    target: &Name,
) -> Result<u64> {
    let mut built = Vec::new();
    let outcome = build_indexes(context, table, after, difference, &mut built)
        .and_then(|()| change_definitions(context, table, after, difference, target));
    if outcome.is_err() && !built.is_empty() {
        // The client gets the statement's own error.
        let _ = drop_built(context, table, &built);
    }
    outcome
}

/// An index that replaces a dropped one is first built under another name.
fn building_name(table: &TableModel, name: &str) -> String {
    match table.index(name) {
        Some(_) => format!("#sql-build-{name}"),
        None => name.to_owned(),
    }
}

fn build_indexes(
    context: &DdlContext<'_>,
    table: &TableModel,
    after: &TableDraft,
    difference: &Difference,
    built: &mut Vec<String>,
) -> Result<()> {
    for index in after.indexes.iter().filter(|index| difference.adds_index(index)) {
        let new = NewIndex {
            name: building_name(table, &index.name),
            unique: index.unique,
            parts: index.parts.iter().map(stored_part).collect(),
            options: index_options(index),
        };
        context.build_index(table, &new).map_err(|error| match error {
            RowsError::DuplicateKey { key, .. } => {
                values::duplicate_key(table, &index.name, &index.parts, &key, context.evaluation)
            }
            other => from_rows(other),
        })?;
        built.push(new.name);
    }
    Ok(())
}

fn drop_built(context: &DdlContext<'_>, table: &TableModel, built: &[String]) -> Result<()> {
    let mut definitions = context.clean_up()?;
    for name in built {
        definitions.drop_index(table.id, name).map_err(from_rows)?;
    }
    definitions.commit().map_err(from_rows)
}

fn change_definitions(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    after: &TableDraft,
    difference: &Difference,
    target: &Name,
) -> Result<u64> {
    context.lock(table, MetadataLock::Exclusive)?;
    let mut definitions = context.definitions()?;
    for name in &difference.dropped_indexes {
        definitions.drop_index(table.id, name).map_err(from_rows)?;
    }
    for ordinal in &difference.dropped_columns {
        definitions.drop_column(table.id, *ordinal).map_err(from_rows)?;
    }
    add_columns(context, &mut *definitions, table, after, difference)?;
    change_in_place(&mut *definitions, table, after)?;
    alter_actions::tell_renamed_columns(context, &mut *definitions, table, after)?;
    // The table is locked now, so the checked rows stay as they are.
    let rows = validate::new_constraints(context, table, after)?;
    let before = (Arc::clone(&table.schema), Arc::clone(&table.name));
    if before != *target {
        rename::rename(context, &mut *definitions, table, &before, target)?;
    }
    definitions.commit().map_err(from_rows)?;
    if before != *target && is_temporary_table(table) {
        context.catalog.remove_temporary(&before.0, &before.1);
        context.catalog.put_temporary(&target.0, &target.1, table.id);
    }
    Ok(rows)
}

fn add_columns(
    context: &DdlContext<'_>,
    definitions: &mut dyn Definitions,
    table: &TableModel,
    after: &TableDraft,
    difference: &Difference,
) -> Result<()> {
    let mut added: Vec<&ColumnModel> = after
        .columns
        .iter()
        .filter(|column| difference.added_columns.contains(&column.ordinal))
        .collect();
    added.sort_by_key(|column| column.ordinal);
    for column in added {
        let mut stored = stored_column(column)?;
        stored.instant_default = instant_default(context, column)?;
        let ordinal = definitions.add_column(table.id, stored).map_err(from_rows)?;
        if ordinal != column.ordinal {
            return Err(table_changed());
        }
    }
    Ok(())
}

/// `Table definition has changed, please retry transaction`
pub(super) fn table_changed() -> SqlError {
    SqlError::new(1412, "Table definition has changed, please retry transaction")
}

/// The value of existing rows in a new column.
fn instant_default(context: &DdlContext<'_>, column: &ColumnModel) -> Result<Value> {
    let datum = match &column.default {
        DefaultValue::Null => return Ok(Value::Null),
        DefaultValue::None if column.ty.nullable => return Ok(Value::Null),
        DefaultValue::None | DefaultValue::Expression(_) => {
            values::implicit_default(&column.ty.kind)
        }
        DefaultValue::Literal(datum) => Some(datum.clone()),
        DefaultValue::CurrentTimestamp { fsp } => {
            Some(values::statement_time(context.evaluation, *fsp))
        }
    };
    match datum {
        Some(datum) => values::to_value(&datum, column, context.evaluation),
        None => Ok(Value::Null),
    }
}

/// Names, defaults, options, growing lengths: whatever stored bytes do not depend on.
fn change_in_place(
    definitions: &mut dyn Definitions,
    table: &TableModel,
    after: &TableDraft,
) -> Result<()> {
    let mut definition = definitions.lock_definition(table.id).map_err(from_rows)?;
    rewrite(&mut definition, table, after)?;
    definitions.alter_options(definition).map_err(from_rows)
}

fn rewrite(definition: &mut TableDefinition, table: &TableModel, after: &TableDraft) -> Result<()> {
    for column in &after.columns {
        let place = definition.columns.get_mut(usize::from(column.ordinal));
        let place = place.ok_or_else(table_changed)?;
        let stored = stored_column(column)?;
        (place.name, place.column_type) = (stored.name, stored.column_type);
        (place.default, place.options) = (stored.default, stored.options);
    }
    for index in &after.indexes {
        // Numbers shift when indexes are dropped: they are found by their previous names.
        let before = table.index_numbered(index.number).map(|before| before.name.to_string());
        let name = before.unwrap_or_else(|| building_name(table, &index.name));
        let place = definition.indexes.iter_mut().find(|place| place.name == name);
        let place = place.ok_or_else(table_changed)?;
        place.options = index_options(index);
        // Marked, so that two indexes can exchange their names.
        place.name = format!("\0{}", index.name);
    }
    for place in &mut definition.indexes {
        if let Some(name) = place.name.strip_prefix('\0') {
            place.name = name.to_owned();
        }
    }
    definition.options = after.table_options().encode();
    Ok(())
}
