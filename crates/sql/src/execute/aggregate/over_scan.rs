//! Aggregates over all rows of a scan, computed from the rows' bytes.
//!
//! ```text
//!   SELECT SUM(k), COUNT(*) FROM t WHERE id BETWEEN ? AND ?      batch ──RowView──► accumulators
//! ```
//!
//! Used for numbers in bare columns of one table, without groups, `DISTINCT` or remaining
//! conditions: no slot is filled, and there is no operator between the rows and the accumulators.

use firn_api::rows::{RowBatch, RowContent, TableRef};
use firn_format::row::RowView;
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::error::Result;
use crate::expression::{AggregateCall, Expression, ExpressionKind, Slot};
use crate::functions::AggregateFunction;
use crate::plan::{NodeKind, PlanNode, ScanPlan};
use crate::types::{Datum, SqlType};

use super::super::Execution;
use super::super::cursor::Cursor;
use super::super::error::from_row;
use super::super::memory::Reservation;
use super::super::operator::Operator;
use super::super::values;
use super::Accumulator;

/// One group, computed from a scan's rows.
pub(crate) struct AggregateOverScan<'p> {
    cursor: Cursor<'p>,
    calls: SmallVec<[(&'p AggregateCall, Option<Column<'p>>); 4]>,
    is_given: bool,
}

/// The column of a call.
#[derive(Clone, Copy)]
pub(super) struct Column<'p> {
    pub(super) ordinal: u16,
    /// Its place in the scan's list.
    place: usize,
    pub(super) ty: &'p SqlType,
}

impl<'p> AggregateOverScan<'p> {
    /// The aggregate of a node, if it can be computed this way.
    pub(crate) fn of(node: &'p PlanNode) -> Option<AggregateOverScan<'p>> {
        let NodeKind::Aggregate { input, groups, aggregates, rollup: None, .. } = &node.kind else {
            return None;
        };
        let NodeKind::Scan(scan) = &input.kind else { return None };
        let is_bare = scan.conditions.is_empty() && scan.row_key.is_none();
        if !groups.is_empty() || !is_bare || scan.row_payload.is_some() {
            return None;
        }
        let calls = aggregates.iter().map(|call| Some((call, column(call, scan)?)));
        let calls = calls.collect::<Option<_>>()?;
        Some(AggregateOverScan { cursor: Cursor::new(scan), calls, is_given: false })
    }

    /// Counts all rows.
    fn gather(
        &mut self,
        accumulators: &mut [Accumulator],
        execution: &mut Execution<'_>,
    ) -> Result<()> {
        let mut held = execution.memory().reservation();
        while self.cursor.advance(execution)? {
            if let Some((batch, table)) = self.cursor.take_batch(&mut execution.measures.rows) {
                add_batch(&self.calls, batch, table, accumulators, &mut held, execution)?;
                continue;
            }
            let Some(table) = self.cursor.table() else { break };
            match self.cursor.row().content {
                RowContent::Payload(row) => {
                    let value = |column: &Column<'_>| read_view(row, column, table);
                    add(&self.calls, value, accumulators, &mut held, execution)?;
                }
                RowContent::Columns(values) => {
                    let value = |column: &Column<'_>| Ok(values[column.place].as_ref());
                    add(&self.calls, value, accumulators, &mut held, execution)?;
                }
            }
        }
        Ok(())
    }
}

/// The column of a call, `None` for `COUNT(*)`. The outer `None`: its argument is something else.
pub(super) fn column<'p>(
    call: &'p AggregateCall,
    scan: &'p ScanPlan,
) -> Option<Option<Column<'p>>> {
    use AggregateFunction as F;
    if call.distinct {
        return None;
    }
    match (call.function, &call.arguments[..]) {
        (F::CountRows, []) => Some(None),
        (F::Count | F::Sum | F::Average | F::Min | F::Max, [argument]) => {
            let slot = slot_of(argument)?;
            let place = scan.slots.iter().position(|(_, filled)| *filled == slot)?;
            let ordinal = scan.slots[place].0;
            let ty = &scan.table.by_ordinal(ordinal)?.ty;
            ty.kind.is_numeric().then_some(Some(Column { ordinal, place, ty }))
        }
        _ => None,
    }
}

fn slot_of(expression: &Expression) -> Option<Slot> {
    match expression.kind {
        ExpressionKind::Slot(slot) => Some(slot),
        _ => None,
    }
}

type Calls<'p> = [(&'p AggregateCall, Option<Column<'p>>)];

/// Counts the rows of a batch.
fn add_batch(
    calls: &Calls<'_>,
    batch: RowBatch<'_>,
    table: &TableRef,
    accumulators: &mut [Accumulator],
    held: &mut Reservation,
    execution: &Execution<'_>,
) -> Result<()> {
    let layout = &table.layout().row;
    for ((call, column), accumulator) in calls.iter().zip(accumulators) {
        let Some(column) = column else {
            accumulator.add_rows(batch.spans.len() as u64);
            continue;
        };
        let reader = layout.column_reader(usize::from(column.ordinal));
        for span in batch.spans {
            let row = batch.row(*span);
            let value = match reader.as_ref().and_then(|reader| reader.read(row)) {
                Some(ValueRef::Int(number)) if accumulator.add_integer(number) => continue,
                Some(value) => value,
                None => read_view(row, column, table)?,
            };
            let argument = values::datum(value, column.ty, execution.context)?;
            accumulator.add(call, std::slice::from_ref(&argument), &[], held, execution)?;
        }
    }
    Ok(())
}

/// A column of a row that differs from the table's current version.
#[cold]
fn read_view<'a>(row: &'a [u8], column: &Column<'_>, table: &'a TableRef) -> Result<ValueRef<'a>> {
    let view = RowView::parse(&table.layout().row, row).map_err(from_row)?;
    let cell = view.column(usize::from(column.ordinal)).map_err(from_row)?;
    // Numbers are never out of line.
    Ok(cell.inline().unwrap_or(ValueRef::Null))
}

/// Counts a row whose columns are read one by one.
fn add<'a>(
    calls: &Calls<'_>,
    value: impl Fn(&Column<'_>) -> Result<ValueRef<'a>>,
    accumulators: &mut [Accumulator],
    held: &mut Reservation,
    execution: &Execution<'_>,
) -> Result<()> {
    for ((call, column), accumulator) in calls.iter().zip(accumulators) {
        let argument = match column {
            None => Datum::TRUE,
            Some(column) => values::datum(value(column)?, column.ty, execution.context)?,
        };
        accumulator.add(call, std::slice::from_ref(&argument), &[], held, execution)?;
    }
    Ok(())
}

impl Operator for AggregateOverScan<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.is_given = false;
        self.cursor.open(execution)
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        if std::mem::replace(&mut self.is_given, true) {
            return Ok(false);
        }
        let new = self.calls.iter().map(|(call, _)| Accumulator::new(call));
        let mut accumulators: SmallVec<[Accumulator; 4]> = new.collect();
        self.gather(&mut accumulators, execution)?;
        for ((call, _), accumulator) in self.calls.iter().zip(accumulators) {
            let value = accumulator.finish(call, execution.context)?;
            execution.frame.set(call.output, value);
        }
        Ok(true)
    }
}
