//! Rows of a table in the frame.

use firn_api::rows::{FoundRow, RowContent, TableRef, Transaction, cell_value};
use firn_base::memory::UNASKED_BYTES;
use firn_format::row::{ColumnValue, RowView};
use firn_format::value::ValueRef;

use crate::error::Result;
use crate::expression::Slot;
use crate::plan::ScanPlan;
use crate::types::{Datum, EvaluationContext, SqlType, TypeKind};

use super::Execution;
use super::cursor::Cursor;
use super::error::{from_row, from_rows};
use super::operator::{Operator, all_true};
use super::values;

pub(crate) struct TableScan<'p> {
    plan: &'p ScanPlan,
    cursor: Cursor<'p>,
    columns: Vec<(u16, Slot, &'p SqlType)>,
    overflow: Vec<u8>,
}

impl<'p> TableScan<'p> {
    pub(crate) fn new(plan: &'p ScanPlan) -> TableScan<'p> {
        let column = |(ordinal, slot): &(u16, Slot)| {
            Some((*ordinal, *slot, &plan.table.by_ordinal(*ordinal)?.ty))
        };
        let columns = plan.slots.iter().filter_map(column).collect();
        TableScan { plan, cursor: Cursor::new(plan), columns, overflow: Vec::new() }
    }

    /// See [`Cursor::wanting`].
    pub(crate) fn wanting(mut self, rows: u64) -> TableScan<'p> {
        self.cursor = self.cursor.wanting(rows);
        self
    }

    /// See [`Cursor::ending_after`].
    pub(crate) fn ending_after(mut self, rows: Option<u64>) -> TableScan<'p> {
        self.cursor = self.cursor.ending_after(rows);
        self
    }

    /// The cursor over the rows.
    pub(crate) fn cursor(&mut self) -> &mut Cursor<'p> {
        &mut self.cursor
    }

    /// Goes to a row that was looked up. Returns whether it meets the conditions.
    pub(crate) fn show(&mut self, row: FoundRow, execution: &mut Execution<'_>) -> Result<bool> {
        self.cursor.go_to(row, execution);
        self.fill(execution)?;
        all_true(&self.plan.conditions, execution)
    }

    /// Fills the slots with the values of the cursor's row.
    fn fill(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let row = self.cursor.row();
        let Some(table) = self.cursor.table() else { return Ok(()) };
        let (frame, context) = (&mut execution.frame.slots, execution.context);
        match row.content {
            RowContent::Payload(payload) => {
                let transaction = &*execution.data.transaction;
                let overflow = &mut self.overflow;
                fill_from_payload(
                    &self.columns,
                    payload,
                    table,
                    transaction,
                    context,
                    frame,
                    overflow,
                )?;
                if let Some(slot) = self.plan.row_payload {
                    put_bytes(&mut frame[slot.0 as usize], payload)?;
                }
            }
            RowContent::Columns(values) => {
                for ((_, slot, ty), value) in self.columns.iter().zip(values) {
                    frame[slot.0 as usize] = values::datum(value.as_ref(), ty, context)?;
                }
            }
        }
        if let Some(slot) = self.plan.row_key {
            put_bytes(&mut frame[slot.0 as usize], row.key)?;
        }
        Ok(())
    }

    /// Releases the lock on a row that does not match.
    fn unlock(&self, execution: &mut Execution<'_>) {
        if let Some(table) = self.cursor.table()
            && self.plan.mode != firn_api::rows::ReadMode::Consistent
        {
            execution.data.transaction.unlock(table, self.cursor.row().key);
        }
    }
}

impl Operator for TableScan<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.cursor.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        while self.cursor.advance(execution)? {
            self.fill(execution)?;
            if all_true(&self.plan.conditions, execution)? {
                return Ok(true);
            }
            self.unlock(execution);
        }
        Ok(false)
    }
}

fn fill_from_payload(
    columns: &[(u16, Slot, &SqlType)],
    payload: &[u8],
    table: &TableRef,
    transaction: &dyn Transaction,
    context: &EvaluationContext,
    frame: &mut [Datum],
    overflow: &mut Vec<u8>,
) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
    for (ordinal, slot, ty) in columns {
        let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
        let slot = &mut frame[slot.0 as usize];
        let is_long_text = matches!(cell, ColumnValue::Overflow(_)) && ty.kind != TypeKind::Json;
        if is_long_text {
            // The old value is freed before more memory is requested.
            *slot = Datum::Null;
        }
        let value = cell_value(transaction, table, cell, overflow).map_err(from_rows)?;
        match is_long_text {
            true => *slot = Datum::text(std::mem::take(overflow)),
            false => fill_slot(slot, value, ty, context)?,
        }
    }
    Ok(())
}

/// Puts a stored value in a slot.
#[inline]
fn fill_slot(
    slot: &mut Datum,
    value: ValueRef<'_>,
    ty: &SqlType,
    context: &EvaluationContext,
) -> Result<()> {
    match value {
        ValueRef::Null => *slot = Datum::Null,
        ValueRef::Int(number) => *slot = Datum::Int(number),
        ValueRef::Bytes(bytes) if ty.kind != TypeKind::Json => put_bytes(slot, bytes)?,
        value => *slot = values::datum(value, ty, context)?,
    }
    Ok(())
}

/// Puts bytes in a slot, replacing its old ones.
fn put_bytes(slot: &mut Datum, bytes: &[u8]) -> Result<()> {
    if bytes.len() >= UNASKED_BYTES {
        // The old value is freed before more memory is requested.
        *slot = Datum::Null;
        *slot = Datum::try_text(bytes)?;
    } else if let Datum::Text(octets) = slot {
        octets.truncate(0);
        octets.extend_from_slice(bytes);
    } else {
        *slot = Datum::text(bytes);
    }
    Ok(())
}
