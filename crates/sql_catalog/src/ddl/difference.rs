//! The difference between a table and a draft of it, and whether its rows have to be rewritten.

use firn_sql_grammar::ast::AlterAction;
use firn_sql_types::TypeKind;

use super::super::model::{ColumnModel, DefaultValue, IndexModel, TableModel};
use super::is_temporary_table;
use super::table_builder::{NEW_INDEX, TableDraft};

/// Why rows have to be rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyReason {
    /// A column's values are stored differently, or may not fit any more.
    ColumnType,
    /// The clustering key changes, values have to be computed, or the statement asks for it.
    Rebuild,
    /// Too many columns were added and dropped since the rows were written.
    WornOut,
    /// Many were, and there are few rows: it can wait.
    Wearing,
}

#[derive(Debug)]
pub(super) struct Difference {
    pub(super) dropped_columns: Vec<u16>,
    pub(super) added_columns: Vec<u16>,
    /// By name.
    pub(super) dropped_indexes: Vec<String>,
    /// By name.
    pub(super) added_indexes: Vec<String>,
    pub(super) copy: Option<CopyReason>,
    rename_only: bool,
    ordered: bool,
}

/// This many changes of the row's content are tracked, as in MySQL, before a change that adds or
/// drops a column has to rewrite the table.
const MAX_ROW_VERSION: u16 = 255;
/// From this version on, a table with few rows is rewritten: every dropped column makes each later
/// change of the definition slower.
const EARLY_ROW_VERSION: u16 = 32;
/// Rows of such a table.
const FEW_ROWS: f64 = 1_000.0;

impl Difference {
    pub(super) fn new(
        table: &TableModel,
        after: &TableDraft,
        actions: &[AlterAction],
    ) -> Difference {
        let is_new = |column: &ColumnModel| table.by_ordinal(column.ordinal).is_none();
        let added: Vec<&ColumnModel> =
            after.columns.iter().filter(|column| is_new(column)).collect();
        let dropped =
            table.columns.iter().filter(|column| after.numbered(column.ordinal).is_none());
        let is_kept = |index: &IndexModel| {
            after.indexes.iter().any(|other| {
                other.number == index.number
                    && other.parts == index.parts
                    && other.unique == index.unique
            })
        };
        let mut difference = Difference {
            dropped_columns: dropped.map(|column| column.ordinal).collect(),
            added_columns: added.iter().map(|column| column.ordinal).collect(),
            dropped_indexes: table
                .indexes
                .iter()
                .filter(|index| !is_kept(index))
                .map(|index| index.name.to_string())
                .collect(),
            added_indexes: after
                .indexes
                .iter()
                .filter(|index| index.number == NEW_INDEX)
                .map(|index| index.name.to_string())
                .collect(),
            copy: None,
            rename_only: actions.iter().all(|action| matches!(action, AlterAction::RenameTable(_))),
            ordered: actions.iter().any(|action| matches!(action, AlterAction::OrderBy(_))),
        };
        difference.copy = difference.copy_reason(table, after, &added, actions);
        difference
    }

    /// Drops a rebuild that can wait.
    pub(super) fn wear_on(&mut self) {
        self.copy = self.copy.filter(|reason| *reason != CopyReason::Wearing);
    }

    /// Whether the statement only renames the table.
    pub(super) fn is_rename_only(&self) -> bool {
        self.rename_only
    }

    /// Whether the statement orders the rows.
    pub(super) fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Whether a copy's rows correspond to the table's one by one, with the same primary keys or,
    /// without any, with the same hidden numbers, so that rows can be written to the table while it
    /// is copied. As in MySQL, stored generated values are computed with writers shut out.
    pub(super) fn keeps_rows_apart(&self, table: &TableModel, after: &TableDraft) -> bool {
        let primary = |index: Option<&IndexModel>| index.map(|index| index.parts.clone());
        let is_virtual =
            |column: &ColumnModel| column.generated.as_ref().is_some_and(|one| !one.stored);
        let is_worked_out = |column: &&ColumnModel| needs_values(column) && !is_virtual(column);
        let is_new = |column: &&ColumnModel| self.added_columns.contains(&column.ordinal);
        self.copy.is_some_and(|reason| reason != CopyReason::ColumnType)
            && !self.ordered
            && !is_temporary_table(table)
            && primary(table.primary_key()) == primary(after.primary_key())
            && !after.columns.iter().filter(is_new).any(|column| is_worked_out(&column))
            && !table.columns.iter().any(|before| {
                after.numbered(before.ordinal).is_some_and(|now| {
                    before.generated != now.generated && !(is_virtual(before) && is_virtual(now))
                        || now.auto_increment != before.auto_increment
                })
            })
    }

    pub(super) fn adds_index(&self, index: &IndexModel) -> bool {
        index.number == NEW_INDEX
    }

    fn copy_reason(
        &self,
        table: &TableModel,
        after: &TableDraft,
        added: &[&ColumnModel],
        actions: &[AlterAction],
    ) -> Option<CopyReason> {
        let kept = table
            .columns
            .iter()
            .filter_map(|before| after.numbered(before.ordinal).map(|after| (before, after)));
        if kept.clone().any(|(before, after)| !is_stored_alike(before, after)) {
            return Some(CopyReason::ColumnType);
        }
        let is_forced = actions
            .iter()
            .any(|action| matches!(action, AlterAction::Force | AlterAction::OrderBy(_)));
        let primary = |parts: Option<&IndexModel>| parts.map(|index| index.parts.clone());
        let clusters_differently = primary(table.primary_key()) != primary(after.primary_key());
        let needs_values = added.iter().any(|column| needs_values(column))
            || kept.clone().any(|(before, after)| {
                before.generated != after.generated
                    || (after.auto_increment && !before.auto_increment)
            });
        let indexes_new_column = after
            .indexes
            .iter()
            .filter(|index| self.adds_index(index))
            .flat_map(|index| &index.parts)
            .any(|part| self.added_columns.contains(&part.ordinal));
        let loses_part = after.indexes.iter().any(|index| {
            index.number != NEW_INDEX
                && self.dropped_indexes.iter().any(|name| *name == *index.name)
        });
        let rebuild =
            is_forced || clusters_differently || needs_values || indexes_new_column || loses_part;
        if rebuild {
            return Some(CopyReason::Rebuild);
        }
        let versions = table.table.definition().row_version.0;
        let changes_columns = !self.added_columns.is_empty() || !self.dropped_columns.is_empty();
        let is_worn = versions >= MAX_ROW_VERSION;
        let is_wearing = || {
            versions >= EARLY_ROW_VERSION
                && table.foreign_keys.is_empty()
                && table.statistics.rows() <= FEW_ROWS
        };
        match changes_columns {
            true if is_worn => Some(CopyReason::WornOut),
            true if is_wearing() => Some(CopyReason::Wearing),
            _ => None,
        }
    }
}

/// Whether the values of rows in a new column are not one constant.
fn needs_values(column: &ColumnModel) -> bool {
    column.generated.is_some()
        || column.auto_increment
        || matches!(column.default, DefaultValue::Expression(_))
}

/// Whether every stored value of one column is a stored value of the other.
fn is_stored_alike(before: &ColumnModel, after: &ColumnModel) -> bool {
    before.ty.nullable == after.ty.nullable
        && is_kind_stored_alike(&before.ty.kind, &after.ty.kind)
        && (before.unsigned == after.unsigned || before.unsigned && !after.unsigned)
        && before.display_decimals == after.display_decimals
        && before.geometry == after.geometry
}

/// Whether every stored value of one kind is a stored value of the other.
pub(super) fn is_kind_stored_alike(before: &TypeKind, after: &TypeKind) -> bool {
    match (before, after) {
        (
            TypeKind::Char { max_chars: a, collation: c },
            TypeKind::Char { max_chars: b, collation: d },
        )
        | (
            TypeKind::Varchar { max_chars: a, collation: c },
            TypeKind::Varchar { max_chars: b, collation: d },
        )
        | (
            TypeKind::Text { max_bytes: a, collation: c },
            TypeKind::Text { max_bytes: b, collation: d },
        ) => a <= b && c == d,
        (TypeKind::Varbinary { max_bytes: a }, TypeKind::Varbinary { max_bytes: b })
        | (TypeKind::Blob { max_bytes: a }, TypeKind::Blob { max_bytes: b }) => a <= b,
        (TypeKind::Enum { members: a, .. }, TypeKind::Enum { members: b, .. }) => {
            b.names().starts_with(a.names())
        }
        // A set's bytes in a row depend on the number of its members.
        (TypeKind::Set { members: a, .. }, TypeKind::Set { members: b, .. }) => {
            b.names().starts_with(a.names())
                && a.names().len().div_ceil(8) == b.names().len().div_ceil(8)
        }
        (
            TypeKind::Decimal { precision: a, scale: b, .. },
            TypeKind::Decimal { precision: c, scale: d, .. },
        ) => (a, b) == (c, d),
        _ => before == after,
    }
}
