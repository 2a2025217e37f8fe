//! The single row that an `UPDATE` or `DELETE` finds by its full primary key.
//!
//! ```text
//!   WHERE id = ?  key ──get──► bytes ──► the slots it reads ──► conditions ──► changed in place
//! ```
//!
//! No operator is built, and the row is not put into the frame and read again from there: key and
//! bytes are in the session's buffers.

use firn_api::rows::TableRef;

use crate::error::Result;
use crate::expression::Expression;
use crate::plan::{Access, NodeKind, PlanNode, ScanPlan};

use super::super::Execution;
use super::super::access::clustered_point;
use super::super::error::from_rows;
use super::super::operator::all_true;
use super::change::fill_from_payload;

/// A source of at most one row.
#[derive(Clone, Copy)]
pub(super) struct Point<'p> {
    scan: &'p ScanPlan,
    key: &'p [Expression],
}

/// A row's key and bytes, in the session's buffers.
#[derive(Default)]
pub(super) struct PointRow {
    pub(super) key: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl<'p> Point<'p> {
    /// The source, if it is one row of one table and operators are not counted.
    pub(super) fn of(source: &'p PlanNode, execution: &Execution<'_>) -> Option<Point<'p>> {
        let NodeKind::Scan(scan) = &source.kind else { return None };
        match &scan.access {
            Access::Point { index: None, key } if execution.measures.operators.is_none() => {
                Some(Point { scan, key })
            }
            _ => None,
        }
    }

    /// Reads the row and calls for its change, if it exists and meets the conditions.
    pub(super) fn visit(
        self,
        table: &TableRef,
        execution: &mut Execution<'_>,
        change: impl FnOnce(&PointRow, &mut Execution<'_>) -> Result<()>,
    ) -> Result<()> {
        let scratch = &mut execution.workspace.scratch;
        let mut row = PointRow {
            key: std::mem::take(&mut scratch.key),
            payload: std::mem::take(&mut scratch.payload),
        };
        let done = match self.find(table, &mut row, execution) {
            Ok(true) => change(&row, execution),
            other => other.map(|_| ()),
        };
        execution.workspace.scratch.key = row.key;
        execution.workspace.scratch.payload = row.payload;
        done
    }

    fn find(
        self,
        table: &TableRef,
        row: &mut PointRow,
        execution: &mut Execution<'_>,
    ) -> Result<bool> {
        let scan = self.scan;
        execution.check_cancelled()?;
        if !clustered_point(scan, table, self.key, execution, &mut row.key)? {
            return Ok(false);
        }
        row.payload.clear();
        let found = execution.data.transaction.get(table, &row.key, scan.mode, &mut row.payload);
        execution.measures.rows.points += 1;
        if !found.map_err(from_rows)? {
            return Ok(false);
        }
        execution.measures.rows.found += 1;
        fill_from_payload(&scan.slots, &scan.table, table, &row.payload, execution)?;
        let matches = all_true(&scan.conditions, execution)?;
        if !matches {
            execution.data.transaction.unlock(table, &row.key);
        }
        Ok(matches)
    }
}
