//! Plans of statements that write.

use std::sync::Arc;

use firn_sql_catalog::model::TableModel;
use firn_sql_logical::OutputColumn;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot};

use super::visit::reads_of;
use super::{DuplicatePolicy, NodeKind, PlanNode, QueryPlan, RowCheck, StatementPlan, WriteTarget};

impl StatementPlan {
    /// The tables that the statement writes, without cascades.
    pub fn written(&self) -> impl Iterator<Item = &Arc<TableModel>> {
        let (inserted, targets) = match self {
            StatementPlan::Query(_) => (None, &[][..]),
            StatementPlan::Insert(insert) => (Some(&insert.table), &[][..]),
            StatementPlan::Update(update) => (None, &update.targets[..]),
            StatementPlan::Delete(delete) => (None, &delete.targets[..]),
        };
        inserted.into_iter().chain(targets.iter().map(|target| &target.table))
    }
}

/// `INSERT` and `REPLACE`.
#[derive(Debug)]
pub struct InsertPlan {
    pub table: Arc<TableModel>,
    /// The columns that get values, by ordinal.
    pub columns: Vec<u16>,
    /// The rows; each output column goes to the column of the same place. A `DEFAULT` in a row is
    /// [`firn_sql_logical::expression::ExpressionKind::Unresolved`] with the name `DEFAULT`.
    pub source: QueryPlan,
    /// The action for a duplicate key.
    pub duplicates: DuplicatePolicy,
    /// `IGNORE`: errors of rows become warnings.
    pub ignore: bool,
    /// Slots of the new row's columns, by ordinal; `VALUES(c)` and the row alias read them.
    pub new_row: Vec<(u16, Slot)>,
    /// Slots of the existing row, for `ON DUPLICATE KEY UPDATE`, and for generated columns and
    /// checks, which are evaluated over a row in these slots.
    pub old_row: Vec<(u16, Slot)>,
    /// Generated columns in the order of dependence, over the slots of `old_row`.
    pub generated: Vec<(u16, Expression)>,
    /// Over the slots of `old_row`, in the order in which they are evaluated.
    pub checks: Vec<RowCheck>,
    /// Defaults that are expressions, over the slots of `old_row`.
    pub defaults: Vec<(u16, Expression)>,
}

impl InsertPlan {
    /// Whether the plan inserts exactly one row of parameters, in their order: it can then run with
    /// rows that are given literally.
    #[must_use]
    pub fn takes_rows(&self) -> bool {
        let NodeKind::Values { rows, slots } = &self.source.root.kind else { return false };
        let [row] = &rows[..] else { return false };
        let is_parameter = |(number, value): (usize, &Expression)| matches!(value.kind, ExpressionKind::Parameter(of) if of as usize == number);
        let is_slot = |(number, column): (usize, &OutputColumn)| matches!(column.value.kind, ExpressionKind::Slot(of) if Some(&of) == slots.get(number));
        !row.is_empty()
            && row.len() == self.columns.len()
            && row.iter().enumerate().all(is_parameter)
            && self.source.columns.iter().enumerate().all(is_slot)
    }

    /// Whether the action for duplicates reads slots of the query whose rows are inserted.
    #[must_use]
    pub fn reads_source(&self) -> bool {
        let DuplicatePolicy::Update(assignments) = &self.duplicates else { return false };
        let read = reads_of(assignments.iter().filter_map(|one| one.value.as_ref()));
        let of_row = self.old_row.iter().chain(&self.new_row).map(|(_, slot)| *slot).collect();
        !read.is_subset(&of_row)
    }
}

/// `UPDATE`.
#[derive(Debug)]
pub struct UpdatePlan {
    pub source: PlanNode,
    /// One for each table that is changed.
    pub targets: Vec<WriteTarget>,
    pub ignore: bool,
    /// Whether rows must be collected before the first is changed: the change moves them in the
    /// index that is read, or several tables are joined.
    pub gather_first: bool,
}

/// `DELETE`.
#[derive(Debug)]
pub struct DeletePlan {
    pub source: PlanNode,
    /// One for each table that is deleted from.
    pub targets: Vec<WriteTarget>,
    pub ignore: bool,
    /// Whether rows must be collected before the first is deleted.
    pub gather_first: bool,
}
