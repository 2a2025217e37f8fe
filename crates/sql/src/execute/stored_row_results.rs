//! Rows that go from the node to the client as they are stored.
//!
//! ```text
//!   SELECT c, d FROM t WHERE id = ?      payload ──RowView──► ValueRef ──► ResultSink
//! ```
//!
//! Used when a query consists of bare columns of one table without remaining conditions, with or
//! without `LIMIT`. No operator is built and no slot is filled; with the session's buffers, a point
//! query allocates nothing.

use firn_api::rows::{ReadMode, RowContent, ScanRow, TableRef, Transaction, cell_value};
use firn_format::row::{ColumnReader, ColumnValue, RowView};
use firn_format::value::ValueRef;
use smallvec::SmallVec;

use crate::error::Result;
use crate::expression::{Expression, ExpressionKind};
use crate::plan::{Access, NodeKind, PlanNode, QueryPlan, ScanPlan};
use crate::types::{Datum, SqlType, TypeKind};

use super::Execution;
use super::access::clustered_point;
use super::cursor::Cursor;
use super::error::{from_row, from_rows};
use super::limit::row_count;
use super::sink::ResultSink;

/// Readers of a query's columns; `None` for a column that must be located in each row.
pub(crate) type Readers = SmallVec<[Option<ColumnReader>; 8]>;

/// A query that can be executed directly.
pub(crate) struct Direct<'p> {
    pub(crate) scan: &'p ScanPlan,
    offset: Option<&'p Expression>,
    count: Option<&'p Expression>,
    /// The result's columns: ordinal, place in the scan's list, and type.
    columns: SmallVec<[(u16, usize, &'p SqlType); 8]>,
}

/// The direct execution of a query, if it is possible.
pub(crate) fn direct(query: &QueryPlan) -> Option<Direct<'_>> {
    let (scan, offset, count) = match &query.root.kind {
        NodeKind::Scan(scan) => (&**scan, None, None),
        NodeKind::Limit { input, offset, count, count_all: false } => {
            (scan_of(input)?, offset.as_ref(), count.as_ref())
        }
        _ => return None,
    };
    Direct::new(query, scan, offset, count)
}

fn scan_of(node: &PlanNode) -> Option<&ScanPlan> {
    match &node.kind {
        NodeKind::Scan(scan) => Some(scan),
        _ => None,
    }
}

impl<'p> Direct<'p> {
    /// The query's columns, read from the bytes of a scan's rows; `None` if they are more than
    /// columns, or if rows have conditions.
    pub(crate) fn new(
        query: &'p QueryPlan,
        scan: &'p ScanPlan,
        offset: Option<&'p Expression>,
        count: Option<&'p Expression>,
    ) -> Option<Direct<'p>> {
        if !scan.conditions.is_empty() {
            return None;
        }
        let column = |value: &'_ Expression| {
            let ExpressionKind::Slot(slot) = value.kind else { return None };
            let place = scan.slots.iter().position(|(_, filled)| *filled == slot)?;
            let ordinal = scan.slots[place].0;
            Some((ordinal, place, &scan.table.by_ordinal(ordinal)?.ty))
        };
        // Pushed one by one: collecting a few costs as much as all the rest of the statement here.
        let mut columns = SmallVec::new();
        for output in &query.columns {
            columns.push(column(&output.value)?);
        }
        Some(Direct { scan, offset, count, columns })
    }

    /// How many rows are skipped, and how many are wanted after that.
    pub(crate) fn bounds(&self, execution: &mut Execution<'_>) -> Result<(u64, u64)> {
        let skip = self.offset.map_or(Ok(0), |offset| row_count(offset, execution))?;
        let limit = execution.limits.select_rows;
        let count = self.count.map_or(Ok(limit), |count| row_count(count, execution))?;
        Ok((skip, count))
    }

    /// Passes the rows to the sink; returns their number.
    pub(crate) fn run(
        &self,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let (skip, count) = self.bounds(execution)?;
        if let Access::Point { index: None, key } = &self.scan.access {
            if skip > 0 || count == 0 {
                return Ok(0);
            }
            return self.point(key, execution, sink);
        }
        self.scan(skip, count, execution, sink)
    }

    fn point(
        &self,
        values: &[Expression],
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let mut key = std::mem::take(&mut execution.workspace.scratch.key);
        let mut payload = std::mem::take(&mut execution.workspace.scratch.payload);
        let found = self.point_into(values, &mut key, &mut payload, execution, sink);
        execution.workspace.scratch.key = key;
        execution.workspace.scratch.payload = payload;
        found.map(u64::from)
    }

    fn point_into(
        &self,
        values: &[Expression],
        key: &mut Vec<u8>,
        payload: &mut Vec<u8>,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        execution.check_cancelled()?;
        let (model, write) = (&*self.scan.table, self.scan.mode != ReadMode::Consistent);
        let looked_up;
        let table = match if write { None } else { execution.planned_table(model) } {
            Some(table) => table,
            None => {
                looked_up = execution.table(model, write)?;
                &looked_up
            }
        };
        if !clustered_point(self.scan, table, values, execution, key)? {
            return Ok(false);
        }
        payload.clear();
        let found = execution.data.transaction.get(table, key, self.scan.mode, payload);
        execution.measures.rows.points += 1;
        if !found.map_err(from_rows)? {
            return Ok(false);
        }
        execution.measures.rows.found += 1;
        let overflow = &mut execution.workspace.scratch.overflow;
        let transaction = &*execution.data.transaction;
        self.emit_row(&self.readers(table), payload, table, transaction, overflow, sink)?;
        Ok(true)
    }

    fn scan(
        &self,
        mut skip: u64,
        count: u64,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let mut given = 0;
        if count == 0 {
            return Ok(0);
        }
        let most = skip.saturating_add(count);
        let mut cursor = Cursor::new(self.scan).wanting(most).ending_after(Some(most));
        cursor.open(execution)?;
        while given < count && cursor.advance(execution)? {
            let overflow = &mut execution.workspace.scratch.overflow;
            let transaction = &*execution.data.transaction;
            if let Some((batch, table)) = cursor.take_batch(&mut execution.measures.rows) {
                let skipped = skip.min(batch.spans.len() as u64);
                skip -= skipped;
                let spans = &batch.spans[skipped as usize..];
                let wanted = usize::try_from(count - given).unwrap_or(usize::MAX);
                let readers = self.readers(table);
                for span in spans.iter().take(wanted) {
                    let row = batch.row(*span);
                    self.emit_row(&readers, row, table, transaction, overflow, sink)?;
                    given += 1;
                }
            } else if skip > 0 {
                skip -= 1;
            } else if let Some(table) = cursor.table() {
                self.emit(cursor.row(), table, transaction, overflow, sink)?;
                given += 1;
            }
        }
        Ok(given)
    }

    #[inline]
    fn emit(
        &self,
        row: ScanRow<'_>,
        table: &TableRef,
        transaction: &dyn Transaction,
        overflow: &mut Vec<u8>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match row.content {
            RowContent::Payload(payload) => {
                self.emit_row(&self.readers(table), payload, table, transaction, overflow, sink)
            }
            RowContent::Columns(values) => {
                sink.begin_row()?;
                for (_, place, ty) in &self.columns {
                    sink.stored(values[*place].as_ref(), ty)?;
                }
                sink.end_row()
            }
        }
    }

    /// Readers of the columns in the rows of a table.
    #[inline]
    pub(crate) fn readers(&self, table: &TableRef) -> Readers {
        let layout = &table.layout().row;
        let mut readers = Readers::new();
        for (ordinal, ..) in &self.columns {
            readers.push(layout.column_reader(usize::from(*ordinal)));
        }
        readers
    }

    /// Passes a row's columns to the sink, from its bytes.
    #[inline]
    pub(crate) fn emit_row(
        &self,
        readers: &Readers,
        payload: &[u8],
        table: &TableRef,
        transaction: &dyn Transaction,
        overflow: &mut Vec<u8>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut row: SmallVec<[(ValueRef<'_>, &SqlType); 8]> = SmallVec::new();
        for ((_, _, ty), reader) in self.columns.iter().zip(readers) {
            match reader.as_ref().and_then(|reader| reader.read(payload)) {
                Some(value) => row.push((value, ty)),
                None => return self.emit_view(payload, table, transaction, overflow, sink),
            }
        }
        sink.stored_row(&row)
    }

    /// The same for a row whose bytes do not hold every column as in the table's current version.
    #[cold]
    fn emit_view(
        &self,
        payload: &[u8],
        table: &TableRef,
        transaction: &dyn Transaction,
        overflow: &mut Vec<u8>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
        sink.begin_row()?;
        for (ordinal, _, ty) in &self.columns {
            let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
            let is_long_text =
                matches!(cell, ColumnValue::Overflow(_)) && ty.kind != TypeKind::Json;
            let value = cell_value(transaction, table, cell, overflow).map_err(from_rows)?;
            match is_long_text {
                // It goes to the client without another copy.
                true => sink.datum(&Datum::text(std::mem::take(overflow)), ty)?,
                false => sink.stored(value, ty)?,
            }
        }
        sink.end_row()
    }
}
