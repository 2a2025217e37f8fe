//! Writes of an `UPDATE` or `DELETE` that go to a remote node in batches.
//!
//! ```text
//!   change computed ─► batch ──full, or at the end──► write_rows ─┬─► all are made
//!                                                                 └─► one was refused: none is
//!                                                                     made, then each one alone
//! ```
//!
//! The result is the same as with one call for each write:
//! * Writes are batched only if no foreign key follows them and no row may change before its turn.
//! * After a refusal, each row gets its own error or its own warning.
//! * An error that a later row causes comes after the errors of writes in the batch. Conditions of
//!   rows behind one that fails are forgotten.
//! * Where rows are otherwise written as soon as they are found, the statement has no `IGNORE`,
//!   whose warnings come in the order of rows, and no expression with effects.

use firn_api::rows::{RowWrite, TableRef};

use crate::error::Result;
use crate::expression::Expression;
use crate::expression::volatility::{has_subquery, is_row_dependent};
use crate::logical::WriteTarget;
use crate::plan::PlanNode;
use crate::plan::visit::any_expression;
use crate::types::Datum;

use super::super::Execution;
use super::super::access::Fitted;
use super::super::error::from_rows;
use super::super::memory::size_of_values;
use super::change::Changes;
use super::pending::{MOST_BYTES, MOST_ROWS};
use super::row::store;

pub(super) struct BatchedWrite {
    pub(super) key: Box<[u8]>,
    pub(super) payload: Box<[u8]>,
    /// `None`: the row is deleted.
    pub(super) changes: Option<Changes>,
    /// How many conditions the statement had left when the row was added.
    conditions: u64,
}

impl BatchedWrite {
    pub(super) fn new(
        key: &[u8],
        payload: &[u8],
        changes: Option<Changes>,
        execution: &Execution<'_>,
    ) -> BatchedWrite {
        let conditions = execution.context.warning_count();
        BatchedWrite { key: key.into(), payload: payload.into(), changes, conditions }
    }

    /// Forgets conditions of rows behind this one, which has ended the statement.
    pub(super) fn forget_later_conditions(&self, execution: &Execution<'_>) {
        execution.context.forget_conditions_after(self.conditions);
    }

    fn size_bytes(&self) -> usize {
        let values = |changes: &Changes| -> usize {
            changes.iter().map(|(_, value)| size_of_values(std::slice::from_ref(value))).sum()
        };
        self.key.len() + self.payload.len() + self.changes.as_ref().map_or(0, values)
    }
}

/// Writes of one table, in the order in which they are made.
#[derive(Default)]
pub(super) struct WriteBatch {
    rows: Vec<BatchedWrite>,
    size_bytes: usize,
}

/// The outcome of a batch.
pub(super) enum Written {
    All,
    /// A row was refused, so none is written.
    None,
}

impl WriteBatch {
    /// Adds a write; true if the batch is full.
    pub(super) fn add(&mut self, row: BatchedWrite) -> bool {
        self.size_bytes += row.size_bytes();
        self.rows.push(row);
        self.rows.len() >= MOST_ROWS || self.size_bytes >= MOST_BYTES
    }

    /// Removes and returns all writes.
    pub(super) fn take(&mut self) -> Vec<BatchedWrite> {
        self.size_bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

/// Makes all writes, or none if a row is refused.
///
/// # Errors
/// Errors that have nothing to do with a row, such as a lock that was not granted.
pub(super) fn write_all(
    rows: &[BatchedWrite],
    table: &TableRef,
    execution: &mut Execution<'_>,
) -> Result<Written> {
    // A value that cannot be stored is reported when its row is written alone.
    let stored = rows.iter().map(|row| stored_changes(row, table, execution));
    let Ok(stored) = stored.collect::<Result<Vec<_>>>() else { return Ok(Written::None) };
    let writes: Vec<RowWrite<'_>> = rows
        .iter()
        .zip(&stored)
        .map(|(row, stored)| RowWrite {
            key: &row.key,
            payload: &row.payload,
            changes: stored.as_ref().map(|changes| {
                changes.iter().map(|(ordinal, value)| (*ordinal, value.as_ref())).collect()
            }),
        })
        .collect();
    match execution.data.transaction.write_rows(table, &writes) {
        Ok(()) => Ok(Written::All),
        Err(error) if error.may_concern_one_row() => Ok(Written::None),
        Err(error) => Err(from_rows(error)),
    }
}

type StoredChanges<'v> = Vec<(usize, Fitted<'v>)>;

fn stored_changes<'v>(
    row: &'v BatchedWrite,
    table: &TableRef,
    execution: &Execution<'_>,
) -> Result<Option<StoredChanges<'v>>> {
    let columns = &table.definition().columns;
    let store_one = |(ordinal, value): &'v (u16, Datum)| {
        let ordinal = usize::from(*ordinal);
        Ok((ordinal, store(value, columns[ordinal].column_type, execution.context)?))
    };
    row.changes.as_ref().map(|changes| changes.iter().map(store_one).collect()).transpose()
}

/// Whether rows may be found and their changes computed ahead of earlier writes, because nothing
/// that is evaluated has effects.
pub(super) fn may_run_ahead(source: &PlanNode, target: &WriteTarget) -> bool {
    let has_effects = |one: &Expression| is_row_dependent(one) || has_subquery(one);
    let assigned = target.assignments.iter().filter_map(|assignment| assignment.value.as_ref());
    let generated = target.generated.iter().map(|(_, value)| value);
    let checks = target.checks.iter().map(|check| &check.condition);
    let mut values = assigned.chain(generated).chain(checks);
    !any_expression(source, &has_effects) && !values.any(has_effects)
}
