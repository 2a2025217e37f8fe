//! Aggregates over all rows of a scan, computed by a node for which each call is a message.
//!
//! ```text
//!   SELECT COUNT(*), SUM(k) FROM t WHERE v < 9   one call ──► 1,204 rows, k: sum 7,331
//! ```
//!
//! Used for `COUNT`, `SUM`, `AVG`, `MIN` and `MAX` of integers in bare columns of one table,
//! without groups and `DISTINCT`, if the node understands all of the conditions. If the node cannot
//! do it, the rows are read.

use firn_api::rows::Summary;
use smallvec::SmallVec;

use crate::error::Result;
use crate::expression::AggregateCall;
use crate::plan::{NodeKind, PlanNode};
use crate::types::{Datum, SqlType};

use super::super::Execution;
use super::super::cursor::Cursor;
use super::super::operator::{Input, Operator};
use super::Accumulator;
use super::over_scan::column;

/// One group, computed by the node.
pub(crate) struct AggregateAtNode<'p> {
    cursor: Cursor<'p>,
    /// The calls, and the place of each one's column among `columns`; `None` for `COUNT(*)`.
    calls: SmallVec<[(&'p AggregateCall, Option<usize>); 4]>,
    columns: Vec<u16>,
    types: Vec<&'p SqlType>,
    is_given: bool,
}

impl<'p> AggregateAtNode<'p> {
    /// The aggregate of a node, if a database node may be able to compute it.
    pub(crate) fn of(node: &'p PlanNode) -> Option<AggregateAtNode<'p>> {
        let NodeKind::Aggregate { input, groups, aggregates, rollup: None, .. } = &node.kind else {
            return None;
        };
        let NodeKind::Scan(scan) = &input.kind else { return None };
        if !groups.is_empty() || scan.row_key.is_some() || scan.row_payload.is_some() {
            return None;
        }
        let (mut columns, mut types) = (Vec::new(), Vec::new());
        let mut calls = SmallVec::new();
        for call in aggregates {
            let place = match column(call, scan)? {
                Some(column) if column.ty.kind.is_integer() => {
                    columns.push(column.ordinal);
                    types.push(column.ty);
                    Some(columns.len() - 1)
                }
                Some(_) => return None,
                None => None,
            };
            calls.push((call, place));
        }
        let cursor = Cursor::new(scan);
        Some(AggregateAtNode { cursor, calls, columns, types, is_given: false })
    }

    /// The same, with a fallback over the rows in case the node cannot do it.
    pub(crate) fn or(self, by_rows: Input<'p>) -> AtNodeOrByRows<'p> {
        AtNodeOrByRows { at_node: self, by_rows, is_by_rows: false }
    }

    fn set_outputs(&self, summary: &Summary, execution: &mut Execution<'_>) -> Result<()> {
        for (call, place) in &self.calls {
            let mut accumulator = Accumulator::new(call);
            match place {
                None => accumulator.add_rows(summary.rows),
                Some(place) => {
                    let column = &summary.columns[*place];
                    let ty = self.types[*place];
                    let extremes = column
                        .extremes
                        .map(|(least, greatest)| (integer(least, ty), integer(greatest, ty)));
                    accumulator.add_integers(column.values, column.sum, extremes);
                }
            }
            let value = accumulator.finish(call, execution.context)?;
            execution.frame.set(call.output, value);
        }
        Ok(())
    }
}

/// A number as a value of an integer's type.
fn integer(number: i128, ty: &SqlType) -> Datum {
    // The node read it from a column of this type.
    match ty.kind.is_unsigned() {
        true => Datum::UInt(number as u64),
        false => Datum::Int(number as i64),
    }
}

/// An aggregate computed by the node, or over the rows if the node cannot do it.
pub(crate) struct AtNodeOrByRows<'p> {
    at_node: AggregateAtNode<'p>,
    by_rows: Input<'p>,
    is_by_rows: bool,
}

impl Operator for AtNodeOrByRows<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.at_node.is_given = false;
        self.at_node.cursor.open(execution)?;
        let summary = self.at_node.cursor.summarise(&self.at_node.columns, execution)?;
        self.is_by_rows = summary.is_none();
        match summary {
            Some(summary) => self.at_node.set_outputs(&summary, execution),
            None => self.by_rows.open(execution),
        }
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        match self.is_by_rows {
            true => self.by_rows.next(execution),
            false => Ok(!std::mem::replace(&mut self.at_node.is_given, true)),
        }
    }
}
