//! Whether MySQL copies a table's rows for a change: it then says how many there were. A change
//! that MySQL makes in place says 0, though Firn may write the rows again for it.

use firn_sql_grammar::ast::AlterTable;
use firn_sql_types::TypeKind;

use super::super::model::{CheckModel, ColumnModel, DefaultValue, ForeignKeyModel, TableModel};
use super::DdlContext;
use super::difference::{Difference, is_kind_stored_alike};
use super::table_builder::TableDraft;

/// The longest text whose length fits into one byte.
const SHORT_BYTES: u32 = 255;

/// Whether MySQL copies the rows.
pub(super) fn are_told(
    context: &DdlContext<'_>,
    statement: &AlterTable,
    table: &TableModel,
    after: &TableDraft,
    difference: &Difference,
) -> bool {
    let is_copy = statement.algorithm.as_deref() == Some("COPY");
    let loses_key = table.primary_key().is_some() && after.primary_key().is_none();
    let kept = table
        .columns
        .iter()
        .filter_map(|before| after.numbered(before.ordinal).map(|after| (before, after)));
    let mut added = after.columns.iter().filter(|one| table.by_ordinal(one.ordinal).is_none());
    is_copy
        || loses_key
        || difference.is_ordered()
        || kept.into_iter().any(|(before, after)| is_rewritten(before, after))
        || added.any(needs_values)
        || has_new_check(table, after)
        || context.foreign_key_checks && has_new_foreign_key(table, after)
}

fn is_rewritten(before: &ColumnModel, after: &ColumnModel) -> bool {
    !is_kind_stored_alike(&before.ty.kind, &after.ty.kind)
        || is_longer(&before.ty.kind, &after.ty.kind)
        || before.unsigned != after.unsigned
        || before.display_decimals != after.display_decimals
        || before.geometry != after.geometry
        || before.generated != after.generated
        || before.auto_increment != after.auto_increment
}

/// Whether a text's length needs more bytes than before.
fn is_longer(before: &TypeKind, after: &TypeKind) -> bool {
    let bytes = |kind: &TypeKind| firn_sql_types::SqlType::new(kind.clone()).max_text_bytes();
    match before {
        TypeKind::Varchar { .. } | TypeKind::Varbinary { .. } => {
            bytes(before) <= SHORT_BYTES && bytes(after) > SHORT_BYTES
        }
        TypeKind::Text { .. } | TypeKind::Blob { .. } => bytes(before) != bytes(after),
        _ => false,
    }
}

fn needs_values(column: &ColumnModel) -> bool {
    column.generated.as_ref().is_some_and(|generated| generated.stored)
        || matches!(column.default, DefaultValue::Expression(_))
}

fn has_new_check(table: &TableModel, after: &TableDraft) -> bool {
    let was_enforced =
        |check: &CheckModel| table.checks.iter().any(|old| old.name == check.name && old.enforced);
    after.checks.iter().any(|check| check.enforced && !was_enforced(check))
}

fn has_new_foreign_key(table: &TableModel, after: &TableDraft) -> bool {
    let was_there =
        |key: &ForeignKeyModel| table.foreign_keys.iter().any(|old| old.name == key.name);
    after.foreign_keys.iter().any(|key| !was_there(key))
}
