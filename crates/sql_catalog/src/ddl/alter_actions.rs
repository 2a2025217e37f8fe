//! The actions of `ALTER TABLE`, applied to a draft.

use std::sync::Arc;

use firn_api::rows::Definitions;
use firn_sql_grammar::ast::{self, AlterAction, ColumnPosition};
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{ColumnModel, DefaultValue, IndexModel, TableModel, same_name};
use super::super::type_text;
use super::table_builder::{TableDraft, unknown_column};
use super::{DdlContext, charset, check, column, create, default, foreign_key, index, rename};

/// Applies all actions, in stages.
///
/// # Errors
/// What MySQL refuses.
pub(super) fn apply(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    actions: &[AlterAction],
) -> Result<()> {
    for stage in [drop_stage, column_stage, add_stage, option_stage] {
        for action in actions {
            stage(context, table, draft, action)?;
        }
    }
    check_needed_indexes(context, table, draft)
}

fn cannot_drop(name: &str) -> SqlError {
    SqlError::new(1091, format!("Can't DROP '{name}'; check that column/key exists"))
}

fn drop_stage(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    action: &AlterAction,
) -> Result<()> {
    match action {
        AlterAction::DropColumn(name) => drop_column(context, table, draft, name),
        AlterAction::DropIndex(name) if same_name(name, "PRIMARY") => drop_index(draft, "PRIMARY"),
        AlterAction::DropIndex(name) => drop_index(draft, name),
        AlterAction::DropPrimaryKey => drop_index(draft, "PRIMARY"),
        AlterAction::DropForeignKey(name) => drop_foreign_key(draft, name),
        AlterAction::DropCheck(name) => drop_check(draft, name),
        AlterAction::DropConstraint(name) => drop_constraint(draft, name),
        _ => Ok(()),
    }
}

fn drop_index(draft: &mut TableDraft, name: &str) -> Result<()> {
    let at = draft.indexes.iter().position(|index| same_name(&index.name, name));
    let index = draft.indexes.remove(at.ok_or_else(|| cannot_drop(name))?);
    // The columns of functional parts are dropped with their index.
    draft.columns.retain(|column| {
        !(column.hidden && index.parts.iter().any(|part| part.ordinal == column.ordinal))
    });
    Ok(())
}

fn drop_foreign_key(draft: &mut TableDraft, name: &str) -> Result<()> {
    let at = draft.foreign_keys.iter().position(|key| same_name(&key.name, name));
    draft.foreign_keys.remove(at.ok_or_else(|| cannot_drop(name))?);
    Ok(())
}

fn drop_check(draft: &mut TableDraft, name: &str) -> Result<()> {
    let at = draft.checks.iter().position(|check| same_name(&check.name, name));
    let missing = || {
        let message = format!("Check constraint '{name}' is not found in the table.");
        SqlError::new(3821, message)
    };
    draft.checks.remove(at.ok_or_else(missing)?);
    Ok(())
}

fn drop_constraint(draft: &mut TableDraft, name: &str) -> Result<()> {
    let kinds = [
        draft.checks.iter().any(|check| same_name(&check.name, name)),
        draft.foreign_keys.iter().any(|key| same_name(&key.name, name)),
        draft.indexes.iter().any(|index| index.unique && same_name(&index.name, name)),
    ];
    match kinds {
        [false, false, false] => {
            Err(SqlError::new(3940, format!("Constraint '{name}' does not exist.")))
        }
        [true, false, false] => drop_check(draft, name),
        [false, true, false] => drop_foreign_key(draft, name),
        [false, false, true] => drop_index(draft, name),
        _ => Err(SqlError::new(
            3939,
            format!(
                "Table has multiple constraints with the name '{name}'. Please use constraint specific \
                 'DROP' clause."
            ),
        )),
    }
}

fn drop_column(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    name: &str,
) -> Result<()> {
    let column = draft.column(name).ok_or_else(|| cannot_drop(name))?;
    let (ordinal, name) = (column.ordinal, Arc::clone(&column.name));
    if draft.shown_length() == 1 {
        let message = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
        return Err(SqlError::new(1090, message));
    }
    refuse_column_of_foreign_key(context, table, draft, ordinal, &name)?;
    for reader in readers(context, table, draft, ordinal)? {
        match reader {
            Reader::Generated => {
                let message = format!("Column '{name}' has a generated column dependency.");
                return Err(SqlError::new(3108, message));
            }
            Reader::Check { name: check, alone: true } => drop_check(draft, &check)?,
            Reader::Check { name: check, alone: false } => {
                return Err(used_by_check(&check, &name));
            }
        }
    }
    draft.columns.retain(|column| column.ordinal != ordinal);
    for index in &mut draft.indexes {
        index.parts.retain(|part| part.ordinal != ordinal);
    }
    draft.indexes.retain(|index| !index.parts.is_empty());
    Ok(())
}

fn used_by_check(check: &str, column: &str) -> SqlError {
    let message = format!(
        "Check constraint '{check}' uses column '{column}', hence column cannot be dropped or renamed."
    );
    SqlError::new(3959, message)
}

fn refuse_column_of_foreign_key(
    context: &DdlContext<'_>,
    table: &TableModel,
    draft: &TableDraft,
    ordinal: u16,
    name: &str,
) -> Result<()> {
    let own = draft.foreign_keys.iter().find(|key| key.columns.contains(&ordinal));
    if let Some(key) = own {
        let message = format!(
            "Cannot drop column '{name}': needed in a foreign key constraint '{}'",
            key.name
        );
        return Err(SqlError::new(1828, message));
    }
    for reference in context.catalog.shared().referencing(&table.schema, &table.name)?.iter() {
        let key = reference.foreign_key();
        if key.parent_columns.iter().any(|parent| same_name(parent, name)) {
            let message = format!(
                "Cannot drop column '{name}': needed in a foreign key constraint '{}' of table '{}'",
                key.name, reference.child.name
            );
            return Err(SqlError::new(1829, message));
        }
    }
    Ok(())
}

/// A part of the draft that reads a column.
enum Reader {
    /// A generated column, including functional index parts.
    Generated,
    /// A check; `alone` if it reads nothing else.
    Check { name: Arc<str>, alone: bool },
}

fn readers(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &TableDraft,
    ordinal: u16,
) -> Result<Vec<Reader>> {
    let mut readers = Vec::new();
    // Only old expressions can read an old column.
    for column in table.columns.iter().filter(|column| draft.numbered(column.ordinal).is_some()) {
        let Some(generated) = &column.generated else { continue };
        if column.ordinal != ordinal
            && context.expressions.bind(table, &generated.text)?.columns().contains(&ordinal)
        {
            readers.push(Reader::Generated);
        }
    }
    for check in draft.checks.iter().filter(|check| table.checks.contains(check)) {
        let bound = context.expressions.bind(table, &check.text)?;
        if bound.columns().contains(&ordinal) {
            let alone = bound.columns().iter().all(|other| *other == ordinal);
            readers.push(Reader::Check { name: Arc::clone(&check.name), alone });
        }
    }
    Ok(readers)
}

fn column_stage(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    action: &AlterAction,
) -> Result<()> {
    match action {
        AlterAction::ConvertCharset { charset, collation } => {
            convert_charset(context, draft, charset.as_deref(), collation.as_deref())
        }
        AlterAction::AddColumn { column: definition, position } => {
            let number = draft.take_number();
            let column = column::column(context, definition, number, draft.collation)?;
            let at = place(draft, position.as_ref())?;
            draft.add_column(column, at)
        }
        AlterAction::ModifyColumn { column, position } => {
            redefine(context, table, draft, &column.name, column, position.as_ref())
        }
        AlterAction::ChangeColumn { name, column, position } => {
            redefine(context, table, draft, name, column, position.as_ref())
        }
        AlterAction::RenameColumn { from, to } => rename_column(context, table, draft, from, to),
        AlterAction::SetDefault { column, default } => set_default(context, draft, column, default),
        AlterAction::DropDefault(name) => {
            existing(draft, name)?.default = DefaultValue::None;
            Ok(())
        }
        AlterAction::SetColumnVisible { column, visible } => {
            existing(draft, column)?.invisible = !visible;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn existing<'d>(draft: &'d mut TableDraft, name: &str) -> Result<&'d mut ColumnModel> {
    let table = Arc::clone(&draft.name);
    draft.column_mut(name).ok_or_else(|| unknown_column(name, &table))
}

/// The position of a new column.
fn place(draft: &TableDraft, position: Option<&ColumnPosition>) -> Result<Option<usize>> {
    match position {
        None => Ok(None),
        Some(ColumnPosition::First) => Ok(Some(0)),
        Some(ColumnPosition::After(name)) => {
            let found = draft
                .columns
                .iter()
                .position(|column| !column.hidden && same_name(&column.name, name));
            found.map(|at| Some(at + 1)).ok_or_else(|| unknown_column(name, &draft.name))
        }
    }
}

fn redefine(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    name: &str,
    definition: &ast::ColumnDefinition,
    position: Option<&ColumnPosition>,
) -> Result<()> {
    let before = existing(draft, name)?.clone();
    let mut column = column::column(context, definition, before.ordinal, draft.collation)?;
    if !same_name(&column.name, &before.name) {
        check_rename(context, table, draft, &before, &column.name)?;
    }
    let is_primary = draft
        .primary_key()
        .is_some_and(|index| index.parts.iter().any(|part| part.ordinal == before.ordinal));
    if is_primary {
        if definition.nullable == Some(true) {
            return Err(column::null_in_primary_key());
        }
        column.ty.nullable = false;
        if column.default == DefaultValue::Null {
            column.default = DefaultValue::None;
        }
    }
    check_set_null(draft, &column)?;
    fit_prefixes(draft, &column);
    let at = draft.columns.iter().position(|other| other.ordinal == before.ordinal).unwrap_or(0);
    draft.columns.remove(at);
    let at = match position {
        None => at,
        some => place(draft, some)?.unwrap_or(at),
    };
    draft.columns.insert(at, column);
    Ok(())
}

/// A prefix that is longer than the column now covers the whole column; a column that is no longer
/// a string has none.
fn fit_prefixes(draft: &mut TableDraft, column: &ColumnModel) {
    let longest = type_text::character_lengths(&column.ty.kind).map(|(characters, _)| characters);
    for index in &mut draft.indexes {
        for part in index.parts.iter_mut().filter(|part| part.ordinal == column.ordinal) {
            let fits = |prefix: &u32| {
                column.ty.kind.is_string()
                    && longest.is_none_or(|longest| u64::from(*prefix) < longest)
            };
            part.prefix = part.prefix.filter(fits);
        }
    }
}

fn check_set_null(draft: &TableDraft, column: &ColumnModel) -> Result<()> {
    use super::super::model::ReferentialAction::SetNull;
    let sets_null = |key: &&super::super::model::ForeignKeyModel| {
        key.columns.contains(&column.ordinal) && [key.on_delete, key.on_update].contains(&SetNull)
    };
    match draft.foreign_keys.iter().find(sets_null) {
        Some(key) if !column.ty.nullable => Err(SqlError::new(
            1830,
            format!(
                "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
                column.name, key.name
            ),
        )),
        _ => Ok(()),
    }
}

fn check_rename(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &TableDraft,
    before: &ColumnModel,
    to: &str,
) -> Result<()> {
    if draft.column(to).is_some_and(|other| other.ordinal != before.ordinal) {
        return Err(super::table_builder::duplicate_column(to));
    }
    match readers(context, table, draft, before.ordinal)?.into_iter().next() {
        None => Ok(()),
        Some(Reader::Generated) => Err(SqlError::new(
            3108,
            format!("Column '{}' has a generated column dependency.", before.name),
        )),
        Some(Reader::Check { name, .. }) => Err(used_by_check(&name, &before.name)),
    }
}

fn rename_column(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    from: &str,
    to: &str,
) -> Result<()> {
    // Columns that are exchanged in one statement are looked up by their old names.
    let before = match table.column(from) {
        Some(column) if draft.numbered(column.ordinal).is_some() => column.clone(),
        _ => existing(draft, from)?.clone(),
    };
    let is_swapped = table.column(to).is_some_and(|other| {
        draft.numbered(other.ordinal).is_some_and(|now| !same_name(&now.name, to))
    });
    if !is_swapped {
        check_rename(context, table, draft, &before, to)?;
    }
    super::check_identifier(to)?;
    if let Some(column) = draft.columns.iter_mut().find(|column| column.ordinal == before.ordinal) {
        column.name = to.into();
    }
    Ok(())
}

fn set_default(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    name: &str,
    value: &ast::ColumnDefault,
) -> Result<()> {
    let column = existing(draft, name)?.clone();
    let default = default::of_column(context, &column, Some(value))?;
    existing(draft, name)?.default = default;
    Ok(())
}

fn convert_charset(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    charset: Option<&str>,
    collation: Option<&str>,
) -> Result<()> {
    let resolved = charset::resolve(charset, collation)?;
    let collation = match resolved {
        Some(collation) => collation,
        None => context.catalog.shared().schema(&draft.schema)?.collation,
    };
    draft.collation = collation;
    for column in draft.columns.iter_mut().filter(|column| !column.hidden) {
        set_collation(&mut column.ty.kind, collation);
    }
    Ok(())
}

fn set_collation(kind: &mut firn_sql_types::TypeKind, to: firn_format::value::CollationId) {
    use firn_sql_types::TypeKind;
    match kind {
        TypeKind::Char { collation, .. }
        | TypeKind::Varchar { collation, .. }
        | TypeKind::Text { collation, .. }
        | TypeKind::Enum { collation, .. }
        | TypeKind::Set { collation, .. } => *collation = to,
        _ => {}
    }
}

fn add_stage(
    context: &DdlContext<'_>,
    table: &Arc<TableModel>,
    draft: &mut TableDraft,
    action: &AlterAction,
) -> Result<()> {
    match action {
        AlterAction::AddColumn { column, .. }
        | AlterAction::ModifyColumn { column, .. }
        | AlterAction::ChangeColumn { column, .. } => {
            create::add_column_keys(context, draft, column)?;
            let name = Some(column.name.as_str());
            column.checks.iter().try_for_each(|check| check::add(context, draft, check, name))?;
            foreign_key::add_of_column(context, draft, column)
        }
        AlterAction::AddIndex(definition) => add_index(context, draft, definition),
        AlterAction::AddForeignKey(key) => foreign_key::add(context, draft, key),
        AlterAction::AddCheck(definition) => check::add(context, draft, definition, None),
        AlterAction::RenameIndex { from, to } => rename_index(table, draft, from, to),
        AlterAction::SetIndexVisible { index, visible } => {
            let found = draft.indexes.iter_mut().find(|other| same_name(&other.name, index));
            let found = found.ok_or_else(|| no_such_key(index, &table.name))?;
            if found.primary && !visible {
                return Err(SqlError::new(3522, "A primary key index cannot be invisible"));
            }
            found.visible = *visible;
            Ok(())
        }
        AlterAction::SetCheckEnforced { name, enforced } => {
            let found = draft.checks.iter_mut().find(|check| same_name(&check.name, name));
            let missing = || {
                let message = format!("Check constraint '{name}' is not found in the table.");
                SqlError::new(3821, message)
            };
            found.ok_or_else(missing)?.enforced = *enforced;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn add_index(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    definition: &ast::IndexDefinition,
) -> Result<()> {
    let is_there = |name: &String| index::has_index(draft, name);
    if definition.if_not_exists && definition.name.as_ref().is_some_and(is_there) {
        let name = definition.name.clone().unwrap_or_default();
        context.evaluation.note(1061, || format!("Duplicate key name '{name}'"));
        return Ok(());
    }
    let parts_before = index_columns(draft);
    index::add(context, draft, definition)?;
    let has_twin = |index: &IndexModel| parts_before.contains(&index.parts) && !index.primary;
    let is_added = definition.kind != ast::IndexKind::Primary;
    if is_added && draft.indexes.last().is_some_and(has_twin) {
        let name = definition.name.clone().unwrap_or_default();
        context.evaluation.warn(1831, || {
            format!(
                "Duplicate index '{name}' defined on the table '{}.{}'. This is deprecated and will be \
                 disallowed in a future release.",
                draft.schema, draft.name
            )
        });
    }
    Ok(())
}

/// The columns of each index that was not made for a foreign key: such a one is dropped for
/// another.
fn index_columns(draft: &TableDraft) -> Vec<Vec<super::super::model::IndexPartModel>> {
    let written = draft.indexes.iter().filter(|index| !index.implicit);
    written.map(|index| index.parts.clone()).collect()
}

fn no_such_key(index: &str, table: &str) -> SqlError {
    SqlError::new(1176, format!("Key '{index}' doesn't exist in table '{table}'"))
}

fn rename_index(table: &TableModel, draft: &mut TableDraft, from: &str, to: &str) -> Result<()> {
    if same_name(from, "PRIMARY") || same_name(to, "PRIMARY") {
        let wrong = if same_name(from, "PRIMARY") { from } else { to };
        return Err(SqlError::new(1280, format!("Incorrect index name '{wrong}'")));
    }
    super::check_identifier(to)?;
    let at = draft.indexes.iter().position(|index| same_name(&index.name, from));
    let at = at.ok_or_else(|| no_such_key(from, &table.name))?;
    let taken = |(other, index): (usize, &super::super::model::IndexModel)| {
        other != at && same_name(&index.name, to)
    };
    if draft.indexes.iter().enumerate().any(taken) {
        return Err(index::duplicate_index(to));
    }
    draft.indexes[at].name = to.into();
    Ok(())
}

fn option_stage(
    context: &DdlContext<'_>,
    _table: &Arc<TableModel>,
    draft: &mut TableDraft,
    action: &AlterAction,
) -> Result<()> {
    match action {
        AlterAction::Options(options) => create::apply_options(context, draft, options),
        AlterAction::Tablespace { .. } => Err(SqlError::not_supported("tablespaces of tables")),
        AlterAction::Partition(_) | AlterAction::Partitions(_) => {
            Err(SqlError::not_supported("partitions"))
        }
        AlterAction::OrderBy(_) if draft.primary_key().is_some() => {
            context.evaluation.warn(1105, || {
                format!(
                    "ORDER BY ignored as there is a user-defined clustered index in the table '{}'",
                    draft.name
                )
            });
            Ok(())
        }
        AlterAction::EnableKeys(_) => {
            context.evaluation.note(1031, || {
                format!("Table storage engine for '{}' doesn't have this option", draft.name)
            });
            Ok(())
        }
        _ => Ok(()),
    }
}

/// An index that a foreign key needs, on either side, stays.
fn check_needed_indexes(
    context: &DdlContext<'_>,
    table: &TableModel,
    draft: &TableDraft,
) -> Result<()> {
    let has = |columns: &[u16]| {
        draft.indexes.iter().any(|index| foreign_key::begins_with(index, columns))
    };
    let gone = |columns: &[u16]| {
        let before = table.indexes.iter().find(|index| foreign_key::begins_with(index, columns));
        let name = before.map_or("", |index| &index.name);
        let message = format!("Cannot drop index '{name}': needed in a foreign key constraint");
        SqlError::new(1553, message)
    };
    if let Some(key) = draft.foreign_keys.iter().find(|key| !has(&key.columns)) {
        return Err(gone(&key.columns));
    }
    for reference in context.catalog.shared().referencing(&table.schema, &table.name)?.iter() {
        let parents = reference.foreign_key().parent_columns.iter();
        let columns: Option<Vec<u16>> =
            parents.map(|name| table.column(name).map(|column| column.ordinal)).collect();
        // Without the columns, the foreign key was made without looking at this table.
        let Some(columns) = columns else { continue };
        let had = table.indexes.iter().any(|index| foreign_key::begins_with(index, &columns));
        if had && !has(&columns) {
            return Err(gone(&columns));
        }
    }
    Ok(())
}

/// Foreign keys of other tables name this table's columns: they get the new names.
///
/// # Errors
/// Errors of the node.
pub(super) fn tell_renamed_columns(
    context: &DdlContext<'_>,
    definitions: &mut dyn Definitions,
    table: &TableModel,
    draft: &TableDraft,
) -> Result<()> {
    let renamed: Vec<(Arc<str>, Arc<str>)> = table
        .columns
        .iter()
        .filter_map(|before| {
            let after = draft.numbered(before.ordinal)?;
            (after.name != before.name).then(|| (Arc::clone(&before.name), Arc::clone(&after.name)))
        })
        .collect();
    if renamed.is_empty() {
        return Ok(());
    }
    let references = context.catalog.shared().referencing(&table.schema, &table.name)?;
    let mut told = Vec::new();
    for reference in references.iter() {
        if told.contains(&reference.child.id) || reference.child.id == table.id {
            continue;
        }
        told.push(reference.child.id);
        rename::change_options(definitions, reference.child.id, &mut |options| {
            for key in &mut options.foreign_keys {
                let is_ours = key.parent_schema == table.schema && key.parent_table == table.name;
                for name in key.parent_columns.iter_mut().filter(|_| is_ours) {
                    let new = renamed.iter().find(|(before, _)| same_name(before, name));
                    if let Some((_, new)) = new {
                        *name = Arc::clone(new);
                    }
                }
            }
        })?;
    }
    Ok(())
}
