//! What each operator did, for `EXPLAIN ANALYZE`.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::plan::PlanNode;

use super::Execution;
use super::operator::{Input, Operator};

/// What an operator did, with all below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it gave in all.
    pub rows: u64,
    /// Time until the first row of each loop, in all.
    pub first_row: Duration,
    /// Time in all.
    pub total: Duration,
}

/// Counters of a plan's nodes.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    nodes: FxHashMap<usize, NodeCounters>,
}

impl Counters {
    /// What the operator of a node did; nothing if it never ran.
    #[must_use]
    pub fn of(&self, node: &PlanNode) -> NodeCounters {
        self.nodes.get(&address(node)).copied().unwrap_or_default()
    }
}

fn address(node: &PlanNode) -> usize {
    std::ptr::from_ref(node) as usize
}

/// Counts what an operator does.
pub(crate) struct Counted<'p> {
    node: usize,
    input: Input<'p>,
    is_first: bool,
}

impl<'p> Counted<'p> {
    pub(crate) fn new(node: &'p PlanNode, input: Input<'p>) -> Counted<'p> {
        Counted { node: address(node), input, is_first: true }
    }
}

fn now(execution: &Execution<'_>) -> Duration {
    execution.clock.map_or(Duration::ZERO, |clock| clock.monotonic())
}

fn count(execution: &mut Execution<'_>, node: usize, change: impl FnOnce(&mut NodeCounters)) {
    if let Some(counters) = &mut execution.counters {
        change(counters.nodes.entry(node).or_default());
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
