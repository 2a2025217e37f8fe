//! Rows that go from the node to the client as they are stored.
//!
//! ```text
//!   SELECT c, d FROM t WHERE id = ?      payload ──RowView──► ValueRef ──► ResultSink
//! ```
//!
//! Taken when a query is bare columns of one table without conditions to look at, with or without `LIMIT`:
//! no operator is built, no slot is filled, and with the session's buffers a point query allocates nothing.

use firn_api::rows::{ReadMode, RowContent, ScanRow, TableRef, Transaction, cell_value};
use firn_format::row::RowView;
use smallvec::SmallVec;

use crate::error::Result;
use crate::expression::{Expression, ExpressionKind};
use crate::plan::{Access, NodeKind, PlanNode, QueryPlan, ScanPlan};
use crate::types::SqlType;

use super::Execution;
use super::access::clustered_point;
use super::cursor::Cursor;
use super::error::{from_row, from_rows};
use super::limit::row_count;
use super::sink::ResultSink;

/// A query that can go the direct way.
pub(crate) struct Direct<'p> {
    scan: &'p ScanPlan,
    offset: Option<&'p Expression>,
    count: Option<&'p Expression>,
    /// The result's columns: which ordinal, at which place in the scan's list, and its type.
    columns: SmallVec<[(u16, usize, &'p SqlType); 8]>,
}

/// The direct way of a query, if it has one.
pub(crate) fn direct(query: &QueryPlan) -> Option<Direct<'_>> {
    let (scan, offset, count) = match &query.root.kind {
        NodeKind::Scan(scan) => (&**scan, None, None),
        NodeKind::Limit { input, offset, count, count_all: false } => {
            (scan_of(input)?, offset.as_ref(), count.as_ref())
        }
        _ => return None,
    };
    if !scan.conditions.is_empty() {
        return None;
    }
    let column = |value: &'_ Expression| {
        let ExpressionKind::Slot(slot) = value.kind else { return None };
        let place = scan.slots.iter().position(|(_, filled)| *filled == slot)?;
        let ordinal = scan.slots[place].0;
        Some((ordinal, place, &scan.table.by_ordinal(ordinal)?.ty))
    };
    let columns = query.columns.iter().map(|output| column(&output.value));
    Some(Direct { scan, offset, count, columns: columns.collect::<Option<_>>()? })
}

fn scan_of(node: &PlanNode) -> Option<&ScanPlan> {
    match &node.kind {
        NodeKind::Scan(scan) => Some(scan),
        _ => None,
    }
}

impl Direct<'_> {
    /// Hands the rows to the sink; answers how many.
    pub(crate) fn run(
        &self,
        execution: &mut Execution<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<u64> {
        let skip = self.offset.map_or(Ok(0), |offset| row_count(offset, execution))?;
        let limit = execution.limits.select_rows;
        let count = self.count.map_or(Ok(limit), |count| row_count(count, execution))?;
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
        let mut key = std::mem::take(&mut execution.scratch.key);
        let mut payload = std::mem::take(&mut execution.scratch.payload);
        let found = self.point_into(values, &mut key, &mut payload, execution, sink);
        execution.scratch.key = key;
        execution.scratch.payload = payload;
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
        let write = self.scan.mode != ReadMode::Consistent;
        let table = execution.table(&self.scan.table, write)?;
        if !clustered_point(self.scan, &table, values, execution, key)? {
            return Ok(false);
        }
        payload.clear();
        let found = execution.transaction.get(&table, key, self.scan.mode, payload);
        execution.rows.points += 1;
        if !found.map_err(from_rows)? {
            return Ok(false);
        }
        execution.rows.found += 1;
        let row = ScanRow { key, content: RowContent::Payload(payload) };
        let overflow = &mut execution.scratch.overflow;
        self.emit(row, &table, &*execution.transaction, overflow, sink)?;
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
        let mut cursor = Cursor::new(self.scan);
        cursor.open(execution)?;
        while cursor.advance(execution)? {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            let Some(table) = cursor.table() else { break };
            let overflow = &mut execution.scratch.overflow;
            self.emit(cursor.row(), table, &*execution.transaction, overflow, sink)?;
            given += 1;
            if given == count {
                break;
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
        sink.begin_row()?;
        match row.content {
            RowContent::Payload(payload) => {
                let view = RowView::parse(&table.layout().row, payload).map_err(from_row)?;
                for (ordinal, _, ty) in &self.columns {
                    let cell = view.column(usize::from(*ordinal)).map_err(from_row)?;
                    let value = cell_value(transaction, table, cell, overflow);
                    sink.stored(value.map_err(from_rows)?, ty)?;
                }
            }
            RowContent::Columns(values) => {
                for (_, place, ty) in &self.columns {
                    sink.stored(values[*place].as_ref(), ty)?;
                }
            }
        }
        sink.end_row()
    }
}
