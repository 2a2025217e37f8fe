//! Foreign keys of a draft: names, columns, the indexes that they need, and the tables that they
//! refer to.

use std::sync::Arc;

use firn_sql_grammar::ast;
use firn_sql_types::TypeKind;
use firn_sql_types::error::{Result, SqlError};

use super::super::model::{
    ColumnModel, ForeignKeyModel, IndexModel, IndexPartModel, ReferentialAction, TableModel,
    same_name,
};
use super::table_builder::{NEW_INDEX, TableDraft, unknown_column};
use super::{DdlContext, check_identifier, index};

/// Adds a foreign key to the draft, with an index over its columns if there is none.
///
/// # Errors
/// What MySQL refuses in the key itself; [`check_parents`] checks the parent.
pub(super) fn add(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    definition: &ast::ForeignKey,
) -> Result<()> {
    if draft.temporary {
        return Err(SqlError::new(1215, "Cannot add foreign key constraint"));
    }
    let name = key_name(draft, definition.name.as_deref())?;
    let columns = child_columns(draft, definition, &name)?;
    let references = &definition.references;
    let parent_schema = references.table.schema.as_deref().unwrap_or(&draft.schema);
    let parent_columns = match references.columns.as_slice() {
        [] => primary_columns(context, draft, parent_schema, &references.table.name)?,
        written => written.iter().map(|name| name.as_str().into()).collect(),
    };
    if parent_columns.len() != columns.len() {
        let message = format!(
            "Incorrect foreign key definition for '{name}': Key reference and table reference don't match"
        );
        return Err(SqlError::new(1239, message));
    }
    let key = ForeignKeyModel {
        columns,
        parent_schema: parent_schema.into(),
        parent_table: references.table.name.as_str().into(),
        parent_columns,
        on_delete: action(references.on_delete),
        on_update: action(references.on_update),
        name,
    };
    check_actions(draft, &key)?;
    ensure_index(draft, &key, definition.name.as_deref())?;
    check_schema_name(context, draft, &key.name)?;
    draft.foreign_keys.push(key);
    Ok(())
}

/// Adds the foreign key written in a column's definition.
///
/// # Errors
/// As [`add`].
pub(super) fn add_of_column(
    context: &DdlContext<'_>,
    draft: &mut TableDraft,
    column: &ast::ColumnDefinition,
) -> Result<()> {
    let Some(references) = &column.references else { return Ok(()) };
    let columns = vec![column.name.clone()];
    let key = ast::ForeignKey { name: None, columns, references: references.clone() };
    add(context, draft, &key)
}

/// The primary key of a parent, used if no columns are written.
fn primary_columns(
    context: &DdlContext<'_>,
    draft: &TableDraft,
    schema: &str,
    table: &str,
) -> Result<Vec<Arc<str>>> {
    if *schema == *draft.schema && *table == *draft.name {
        let primary = draft.indexes.iter().find(|index| index.primary);
        let ordinals = primary.into_iter().flat_map(|key| &key.parts).map(|part| part.ordinal);
        let named = |ordinal| draft.columns.iter().find(move |column| column.ordinal == ordinal);
        return Ok(ordinals.filter_map(named).map(|column| Arc::clone(&column.name)).collect());
    }
    let Some(parent) = context.catalog.shared().find_table(schema, table)? else {
        return Err(SqlError::new(1824, format!("Failed to open the referenced table '{table}'")));
    };
    let parts = parent.primary_key().into_iter().flat_map(|key| &key.parts);
    let columns = parts.filter_map(|part| parent.by_ordinal(part.ordinal));
    Ok(columns.map(|column| Arc::clone(&column.name)).collect())
}

fn action(action: Option<ast::ReferenceAction>) -> ReferentialAction {
    match action {
        None | Some(ast::ReferenceAction::NoAction) => ReferentialAction::NoAction,
        Some(ast::ReferenceAction::Restrict) => ReferentialAction::Restrict,
        Some(ast::ReferenceAction::Cascade) => ReferentialAction::Cascade,
        Some(ast::ReferenceAction::SetNull) => ReferentialAction::SetNull,
        Some(ast::ReferenceAction::SetDefault) => ReferentialAction::SetDefault,
    }
}

/// The given name, or `t_ibfk_1` with the next number.
fn key_name(draft: &TableDraft, name: Option<&str>) -> Result<Arc<str>> {
    if let Some(name) = name {
        check_identifier(name)?;
        if draft.foreign_keys.iter().any(|key| same_name(&key.name, name)) {
            return Err(duplicate_name(name));
        }
        return Ok(name.into());
    }
    let prefix = format!("{}_ibfk_", draft.name);
    let numbers = draft.foreign_keys.iter().filter_map(|key| {
        key.name.strip_prefix(prefix.as_str()).and_then(|number| number.parse::<u32>().ok())
    });
    let next = numbers.max().unwrap_or(0) + 1;
    Ok(format!("{prefix}{next}").into())
}

fn duplicate_name(name: &str) -> SqlError {
    SqlError::new(1826, format!("Duplicate foreign key constraint name '{name}'"))
}

/// Names of foreign keys are unique in a schema.
fn check_schema_name(context: &DdlContext<'_>, draft: &TableDraft, name: &str) -> Result<()> {
    let Ok(tables) = context.catalog.shared().tables_of(&draft.schema) else { return Ok(()) };
    let others = tables.iter().filter(|table| table.name != draft.name);
    let taken = others.flat_map(|table| &table.foreign_keys).any(|key| same_name(&key.name, name));
    if taken { Err(duplicate_name(name)) } else { Ok(()) }
}

fn child_columns(draft: &TableDraft, definition: &ast::ForeignKey, key: &str) -> Result<Vec<u16>> {
    let mut columns = Vec::with_capacity(definition.columns.len());
    for name in &definition.columns {
        let column = draft.column(name).ok_or_else(|| {
            SqlError::new(1072, format!("Key column '{name}' doesn't exist in table"))
        })?;
        if columns.contains(&column.ordinal) {
            return Err(super::table_builder::duplicate_column(name));
        }
        if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
            let message =
                format!("Foreign key '{key}' uses virtual column '{name}' which is not supported.");
            return Err(SqlError::new(3733, message));
        }
        columns.push(column.ordinal);
    }
    Ok(columns)
}

fn check_actions(draft: &TableDraft, key: &ForeignKeyModel) -> Result<()> {
    let actions = [key.on_delete, key.on_update];
    if actions.contains(&ReferentialAction::SetDefault) {
        return Err(SqlError::new(1215, "Cannot add foreign key constraint"));
    }
    let mut columns = key.columns.iter().filter_map(|number| draft.numbered(*number));
    if columns.any(|column| column.generated.is_some()) {
        let clause = match (key.on_delete, key.on_update) {
            (ReferentialAction::SetNull, _) => Some("ON DELETE SET NULL"),
            (_, ReferentialAction::SetNull) => Some("ON UPDATE SET NULL"),
            (_, ReferentialAction::Cascade) => Some("ON UPDATE CASCADE"),
            _ => None,
        };
        if let Some(clause) = clause {
            let message =
                format!("Cannot define foreign key with {clause} clause on a generated column.");
            return Err(SqlError::new(3104, message));
        }
    }
    if actions.contains(&ReferentialAction::SetNull) {
        let not_null = key.columns.iter().find(|number| !draft.is_nullable(**number));
        if let Some(column) = not_null.and_then(|number| draft.numbered(*number)) {
            let message = format!(
                "Column '{}' cannot be NOT NULL: needed in a foreign key constraint '{}' SET NULL",
                column.name, key.name
            );
            return Err(SqlError::new(1830, message));
        }
    }
    Ok(())
}

/// Whether an index begins with these columns, in this order.
pub(super) fn begins_with(index: &IndexModel, columns: &[u16]) -> bool {
    index.special.is_none()
        && index.parts.len() >= columns.len()
        && index.parts.iter().zip(columns).all(|(part, column)| {
            part.ordinal == *column && part.prefix.is_none() && !part.descending
        })
}

fn ensure_index(
    draft: &mut TableDraft,
    key: &ForeignKeyModel,
    written: Option<&str>,
) -> Result<()> {
    if draft.indexes.iter().any(|index| begins_with(index, &key.columns)) {
        return Ok(());
    }
    let first = key.columns.first().and_then(|number| draft.numbered(*number));
    let first = first.map_or(String::new(), |column| column.name.to_string());
    let part =
        |ordinal: &u16| IndexPartModel { ordinal: *ordinal, prefix: None, descending: false };
    let index = IndexModel {
        number: NEW_INDEX,
        name: index::free_index_name(draft, written.unwrap_or(&first)),
        unique: false,
        primary: false,
        visible: true,
        parts: key.columns.iter().map(part).collect(),
        comment: Arc::default(),
        using: None,
        implicit: true,
        special: None,
    };
    index::push(draft, index)
}

/// An index made for a foreign key is dropped once another one begins with its columns.
pub(super) fn drop_superfluous_indexes(draft: &mut TableDraft) {
    let superfluous = |draft: &TableDraft, at: usize| {
        let index = &draft.indexes[at];
        let columns: Vec<u16> = index.parts.iter().map(|part| part.ordinal).collect();
        index.implicit
            && draft.indexes.iter().enumerate().any(|(other_at, other)| {
                other_at != at && begins_with(other, &columns) && (!other.implicit || other_at < at)
            })
    };
    let mut at = 0;
    while at < draft.indexes.len() {
        if superfluous(draft, at) {
            draft.indexes.remove(at);
        } else {
            at += 1;
        }
    }
}

/// Checks the parents of the draft's foreign keys from number `first` on.
///
/// # Errors
/// 1824 if a parent is missing, 3734 if one of its columns is, 1822 without an index over the
/// columns, 6125 without a unique one over exactly them, 3780 for types that differ.
pub(super) fn check_parents(
    context: &DdlContext<'_>,
    draft: &TableDraft,
    first: usize,
) -> Result<()> {
    for key in draft.foreign_keys.iter().skip(first) {
        let is_self = key.parent_schema == draft.schema && key.parent_table == draft.name;
        if is_self {
            check_parent_columns(context, draft, key, &draft.columns, &draft.indexes)?;
            continue;
        }
        let parent = context.catalog.shared().find_table(&key.parent_schema, &key.parent_table)?;
        match parent {
            Some(parent) if parent.has_rows() => {
                check_parent_columns(context, draft, key, &parent.columns, &parent.indexes)?;
            }
            _ if !context.foreign_key_checks => {}
            _ => {
                let message = format!("Failed to open the referenced table '{}'", key.parent_table);
                return Err(SqlError::new(1824, message));
            }
        }
    }
    Ok(())
}

fn check_parent_columns(
    context: &DdlContext<'_>,
    draft: &TableDraft,
    key: &ForeignKeyModel,
    columns: &[ColumnModel],
    indexes: &[IndexModel],
) -> Result<()> {
    let mut parents = Vec::with_capacity(key.columns.len());
    for (name, child) in key.parent_columns.iter().zip(&key.columns) {
        let found = columns.iter().find(|column| !column.hidden && same_name(&column.name, name));
        let parent = found.ok_or_else(|| {
            let message = format!(
                "Failed to add the foreign key constraint. Missing column '{name}' for constraint '{}' in \
                 the referenced table '{}'",
                key.name, key.parent_table
            );
            SqlError::new(3734, message)
        })?;
        let child = draft.numbered(*child).ok_or_else(|| unknown_column(name, &draft.name))?;
        check_types(key, child, parent)?;
        parents.push(parent.ordinal);
    }
    let mut found = indexes.iter().filter(|index| begins_with(index, &parents)).peekable();
    if found.peek().is_some() {
        let is_whole = |index: &IndexModel| {
            (index.unique || index.primary) && index.parts.len() == parents.len()
        };
        return if found.any(is_whole) { Ok(()) } else { non_standard(context, key) };
    }
    let message = format!(
        "Failed to add the foreign key constraint. Missing index for constraint '{}' in the referenced \
         table '{}'",
        key.name, key.parent_table
    );
    Err(SqlError::new(1822, message))
}

/// A foreign key to columns whose values several rows of the parent may share.
///
/// # Errors
/// 6125 with `restrict_fk_on_non_standard_key`; otherwise a warning.
fn non_standard(context: &DdlContext<'_>, key: &ForeignKeyModel) -> Result<()> {
    if context.restrict_fk_on_non_standard_key {
        let message = format!(
            "Failed to add the foreign key constraint. Missing unique key for constraint '{}' in the \
             referenced table '{}'",
            key.name, key.parent_table
        );
        return Err(SqlError::new(6125, message));
    }
    context.evaluation.warn(6124, || {
        format!(
            "Foreign key '{}' refers to non-unique key or partial key. This is deprecated and will be \
             removed in a future release.",
            key.name
        )
    });
    Ok(())
}

/// Refuses a type for a foreign key column that is incompatible with the column on the other side.
///
/// # Errors
/// 3780
pub(super) fn check_changed_types(
    context: &DdlContext<'_>,
    table: &TableModel,
    after: &TableDraft,
) -> Result<()> {
    if !context.foreign_key_checks {
        return Ok(());
    }
    let changed = |ordinal: u16| {
        let (before, now) = (table.by_ordinal(ordinal)?, after.numbered(ordinal)?);
        (before.ty.kind != now.ty.kind).then_some(now)
    };
    let catalog = context.catalog.shared();
    for key in &table.foreign_keys {
        let is_kept = after.foreign_keys.iter().any(|kept| kept.name == key.name);
        let is_self = key.parent_schema == table.schema && key.parent_table == table.name;
        if !is_kept || is_self || !key.columns.iter().any(|column| changed(*column).is_some()) {
            continue;
        }
        let Some(parent) = catalog.find_table(&key.parent_schema, &key.parent_table)? else {
            continue;
        };
        for (name, child) in key.parent_columns.iter().zip(&key.columns) {
            if let Some((child, parent)) = changed(*child).zip(parent.column(name)) {
                check_types(key, child, parent)?;
            }
        }
    }
    let references = catalog.referencing(&table.schema, &table.name)?;
    for reference in references.iter().filter(|reference| reference.child.id != table.id) {
        let key = reference.foreign_key();
        for (name, child) in key.parent_columns.iter().zip(&key.columns) {
            let parent = table.column(name).and_then(|parent| changed(parent.ordinal));
            if let Some((child, parent)) = reference.child.by_ordinal(*child).zip(parent) {
                check_types(key, child, parent)?;
            }
        }
    }
    Ok(())
}

fn check_types(key: &ForeignKeyModel, child: &ColumnModel, parent: &ColumnModel) -> Result<()> {
    if is_compatible(&child.ty.kind, &parent.ty.kind) {
        return Ok(());
    }
    let message = format!(
        "Referencing column '{}' and referenced column '{}' in foreign key constraint '{}' are \
         incompatible.",
        child.name, parent.name, key.name
    );
    Err(SqlError::new(3780, message))
}

/// Whether values of the two are stored and compared in the same way. Texts may differ in length.
pub(super) fn is_compatible(child: &TypeKind, parent: &TypeKind) -> bool {
    match (child, parent) {
        _ if child.is_text() && parent.is_text() => child.collation() == parent.collation(),
        _ if child.is_binary() && parent.is_binary() => true,
        (
            TypeKind::Decimal { precision: a, scale: b, .. },
            TypeKind::Decimal { precision: c, scale: d, .. },
        ) => (a, b) == (c, d),
        (TypeKind::Enum { .. }, TypeKind::Enum { .. })
        | (TypeKind::Set { .. }, TypeKind::Set { .. }) => true,
        _ => child == parent,
    }
}

/// Refuses to drop or rename a table to which others have foreign keys; `going` are the tables
/// dropped with it.
///
/// # Errors
/// 3730.
pub(super) fn check_not_parent(
    context: &DdlContext<'_>,
    table: &TableModel,
    going: &[(Arc<str>, Arc<str>)],
) -> Result<()> {
    if !context.foreign_key_checks {
        return Ok(());
    }
    let references = context.catalog.shared().referencing(&table.schema, &table.name)?;
    let other = references.iter().find(|reference| {
        let child = (&reference.child.schema, &reference.child.name);
        reference.child.id != table.id
            && !going.iter().any(|(schema, name)| (schema, name) == child)
    });
    match other {
        None => Ok(()),
        Some(other) => Err(SqlError::new(
            3730,
            format!(
                "Cannot drop table '{}' referenced by a foreign key constraint '{}' on table '{}'.",
                table.name,
                other.foreign_key().name,
                other.child.name
            ),
        )),
    }
}
