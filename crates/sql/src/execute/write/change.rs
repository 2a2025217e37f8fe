//! What an update makes of a row: its assignments, `ON UPDATE`, generated columns and checks.
//!
//! ```text
//!   values assigned, over the source row ─► the current row with them ─► the differing bytes
//! ```
//!
//! Both steps directly follow each other if nothing comes between them. If the row may change
//! between them, because the statement has it in several roles or because a cascade reaches it, the
//! assigned values are kept, and the change is computed when it is made, over the row as it is
//! then.

use crate::execute::Evaluate;
use firn_api::rows::TableRef;
use firn_format::row::RowView;
use smallvec::SmallVec;

use crate::catalog::model::{ColumnModel, TableModel};
use crate::error::{Result, SqlError};
use crate::expression::{Expression, Slot};
use crate::logical::{Assignment, RowCheck};
use crate::types::Datum;

use super::super::error::{from_row, from_rows};
use super::super::{Execution, values};
use super::assign::{Assigned, Nulls, assign_expression, assign_owned, default_of, now};
use super::insert::look_at_checks;
use super::row::{holds, store};

/// Columns and their new values.
pub(super) type Changes = SmallVec<[(u16, Datum); 4]>;

/// The effect of an update on a row.
pub(super) enum Change {
    /// The row already has these values.
    None,
    Columns(Changes),
}

/// How a row of a table is changed.
pub(super) struct RowChange<'p> {
    pub(super) model: &'p TableModel,
    pub(super) assignments: &'p [Assignment],
    /// Whether an assignment reads what earlier ones have set.
    pub(super) in_turn: bool,
    /// Slots that hold the row as it is; they are left unchanged.
    pub(super) row: &'p [(u16, Slot)],
    pub(super) generated: &'p [(u16, Expression)],
    pub(super) checks: &'p [RowCheck],
    pub(super) row_number: u64,
    /// What happens to NULL in columns that cannot be NULL.
    pub(super) nulls: Nulls<'p>,
}

impl RowChange<'_> {
    /// Computes the change of the row with these bytes, whose values are in the slots.
    pub(super) fn work_out(
        &self,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Change> {
        self.leaving_slots(execution, |execution| {
            let changes = self.assign_all(execution)?;
            if !self.in_turn {
                self.show(&changes, execution);
            }
            self.complete(changes, table, payload, execution)
        })
    }

    /// The values assigned to the columns, over the row in the slots.
    pub(super) fn assigned_values(&self, execution: &mut Execution<'_>) -> Result<Changes> {
        self.leaving_slots(execution, |execution| self.assign_all(execution))
    }

    /// The effect of values that were assigned earlier on the row with these bytes.
    pub(super) fn apply(
        &self,
        assigned: Changes,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Change> {
        fill_from_payload(self.row, self.model, table, payload, execution)?;
        self.show(&assigned, execution);
        self.complete(assigned, table, payload, execution)
    }

    fn leaving_slots<R>(
        &self,
        execution: &mut Execution<'_>,
        work: impl FnOnce(&mut Execution<'_>) -> Result<R>,
    ) -> Result<R> {
        let saved: SmallVec<[Datum; 8]> =
            self.row.iter().map(|(_, slot)| execution.frame.get(*slot).clone()).collect();
        let done = work(execution);
        for ((_, slot), value) in self.row.iter().zip(saved) {
            execution.frame.set(*slot, value);
        }
        done
    }

    fn assign_all(&self, execution: &mut Execution<'_>) -> Result<Changes> {
        let mut changes = Changes::new();
        for assignment in self.assignments.iter().filter(|one| !self.is_generated(one.ordinal)) {
            let value = self.assigned(assignment, execution)?;
            if self.in_turn {
                self.set_slot(assignment.ordinal, &value, execution);
            }
            put(assignment.ordinal, value, &mut changes);
        }
        Ok(changes)
    }

    /// Puts changed values in the row's slots.
    pub(super) fn show(&self, changes: &Changes, execution: &mut Execution<'_>) {
        for (ordinal, value) in changes {
            self.set_slot(*ordinal, value, execution);
        }
    }

    /// Computes the rest of the change. The slots hold the row with the assigned values.
    fn complete(
        &self,
        mut changes: Changes,
        table: &TableRef,
        payload: &[u8],
        execution: &mut Execution<'_>,
    ) -> Result<Change> {
        drop_unchanged(&mut changes, table, payload, execution)?;
        if changes.is_empty() {
            return Ok(Change::None);
        }
        let given = changes.len();
        for column in self.model.columns.iter().filter(|column| self.is_set_to_now(column)) {
            let fsp = column.on_update_now.unwrap_or(0);
            let value = now(fsp, &column.ty, execution.context)?;
            self.set_slot(column.ordinal, &value, execution);
            put(column.ordinal, value, &mut changes);
        }
        for (ordinal, expression) in self.generated {
            let Some(column) = self.model.by_ordinal(*ordinal) else { continue };
            let value = assign_expression(expression, column, self.row_number, execution)?;
            self.set_slot(*ordinal, &value, execution);
            put(*ordinal, value, &mut changes);
        }
        if changes.len() > given {
            drop_unchanged(&mut changes, table, payload, execution)?;
        }
        look_at_checks(self.checks, execution)?;
        Ok(Change::Columns(changes))
    }

    fn assigned(&self, assignment: &Assignment, execution: &mut Execution<'_>) -> Result<Datum> {
        let column = self.model.by_ordinal(assignment.ordinal);
        let column = column.ok_or_else(|| SqlError::new(1105, "Unknown error: no such column"))?;
        match &assignment.value {
            None => default_of(column, execution),
            Some(expression) => {
                let value = expression.evaluate(execution)?;
                if value.is_null() && !column.ty.nullable {
                    return self.nulls.value(column, self.row_number, execution);
                }
                assign_owned(
                    value,
                    Assigned::expression(expression),
                    column,
                    self.row_number,
                    execution,
                )
            }
        }
    }

    /// Generated columns may be set to their default, which is their generated value.
    fn is_generated(&self, ordinal: u16) -> bool {
        self.model.by_ordinal(ordinal).is_some_and(|column| column.generated.is_some())
    }

    fn is_set_to_now(&self, column: &ColumnModel) -> bool {
        let mut assigned = self.assignments.iter();
        column.on_update_now.is_some() && !assigned.any(|one| one.ordinal == column.ordinal)
    }

    /// Makes a column's new value visible to the following evaluations.
    fn set_slot(&self, ordinal: u16, value: &Datum, execution: &mut Execution<'_>) {
        if let Some((_, slot)) = self.row.iter().find(|(of, _)| *of == ordinal) {
            execution.frame.set(*slot, value.clone());
        }
    }
}

fn put(ordinal: u16, value: Datum, changes: &mut Changes) {
    match changes.iter_mut().find(|(of, _)| *of == ordinal) {
        Some((_, present)) => *present = value,
        None => changes.push((ordinal, value)),
    }
}

/// Leaves out columns that already hold their new values.
fn drop_unchanged(
    changes: &mut Changes,
    table: &TableRef,
    payload: &[u8],
    execution: &mut Execution<'_>,
) -> Result<()> {
    let mut failed = None;
    let columns = &table.definition().columns;
    let overflow = &mut execution.workspace.scratch.overflow;
    let (context, transaction) = (execution.context, &*execution.data.transaction);
    changes.retain(|(ordinal, value)| {
        let column_type = columns[usize::from(*ordinal)].column_type;
        let same = store(value, column_type, context).and_then(|value| {
            holds(payload, *ordinal, value.as_ref(), table, transaction, overflow)
        });
        match same {
            Ok(same) => !same,
            Err(error) => {
                failed = Some(error);
                true
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Puts the values of a row's bytes in slots.
pub(super) fn fill_from_payload(
    slots: &[(u16, Slot)],
    model: &TableModel,
    table: &TableRef,
    payload: &[u8],
    execution: &mut Execution<'_>,
) -> Result<()> {
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    for (ordinal, slot) in slots {
        let Some(column) = model.by_ordinal(*ordinal) else { continue };
        let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
        let overflow = &mut execution.workspace.scratch.overflow;
        let value = firn_api::rows::cell_value(&*execution.data.transaction, table, cell, overflow);
        let value = values::datum(value.map_err(from_rows)?, &column.ty, execution.context)?;
        execution.frame.slots[slot.0 as usize] = value;
    }
    Ok(())
}
