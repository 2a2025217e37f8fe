//! What an execution counts: its requests to the node, and for `EXPLAIN ANALYZE` the work of each
//! operator.

use std::time::Duration;

use firn_base::clock::Clock;

use crate::error::Result;
use crate::plan::{Counters, NodeCounters, PlanNode};

use super::Execution;
use super::operator::{Input, Operator};

/// An execution's requests to the node, for status counters and the slow-query log. Always counted:
/// the cost of an addition per row is not measurable beside reading the row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Look-ups by a full key.
    pub points: u64,
    /// Rows found by look-ups.
    pub found: u64,
    /// Scans that were begun.
    pub scans: u64,
    /// Rows from scans of an index.
    pub by_index: u64,
    /// Rows from scans of whole tables.
    pub by_full_scan: u64,
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    pub sorted: u64,
    /// Sorted runs that were written to disk for lack of memory.
    pub sort_runs: u64,
}

impl RowCounts {
    /// Adds the counts of another execution.
    pub fn add(&mut self, other: &RowCounts) {
        self.points += other.points;
        self.found += other.found;
        self.scans += other.scans;
        self.by_index += other.by_index;
        self.by_full_scan += other.by_full_scan;
        self.inserted += other.inserted;
        self.updated += other.updated;
        self.deleted += other.deleted;
        self.sorted += other.sorted;
        self.sort_runs += other.sort_runs;
    }

    #[must_use]
    pub fn examined(&self) -> u64 {
        self.found + self.by_index + self.by_full_scan
    }
}

#[derive(Default)]
pub struct Measures<'a> {
    /// The clock of operator counts.
    pub clock: Option<&'a dyn Clock>,
    /// Operator counts for `EXPLAIN ANALYZE`; `None` otherwise.
    pub operators: Option<Counters>,
    /// The requests to the node so far.
    pub rows: RowCounts,
}

/// Counts the work of an operator.
pub(crate) struct Counted<'p> {
    node: &'p PlanNode,
    input: Input<'p>,
    is_first: bool,
}

impl<'p> Counted<'p> {
    pub(crate) fn new(node: &'p PlanNode, input: Input<'p>) -> Counted<'p> {
        Counted { node, input, is_first: true }
    }
}

fn now(execution: &Execution<'_>) -> Duration {
    execution.measures.clock.map_or(Duration::ZERO, |clock| clock.monotonic())
}

fn count(execution: &mut Execution<'_>, node: &PlanNode, change: impl FnOnce(&mut NodeCounters)) {
    if let Some(counters) = &mut execution.measures.operators {
        change(counters.of_mut(node));
    }
}

impl Operator for Counted<'_> {
    fn open(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        self.is_first = true;
        let start = now(execution);
        let opened = self.input.open(execution);
        let spent = now(execution).saturating_sub(start);
        count(execution, self.node, |node| {
            node.loops += 1;
            node.total += spent;
            node.first_row += spent;
        });
        opened
    }

    fn next(&mut self, execution: &mut Execution<'_>) -> Result<bool> {
        let start = now(execution);
        let given = self.input.next(execution);
        let spent = now(execution).saturating_sub(start);
        let is_first = std::mem::replace(&mut self.is_first, false);
        count(execution, self.node, |node| {
            node.total += spent;
            node.rows += u64::from(matches!(given, Ok(true)));
            if is_first {
                node.first_row += spent;
            }
        });
        given
    }
}
