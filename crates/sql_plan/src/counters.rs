//! Counts for the operators of a plan, for `EXPLAIN ANALYZE`: the executor counts, and the plan's
//! text shows them.
//!
//! A node is identified by its address, so counters belong to the plan that was run.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::PlanNode;

/// Counts of an operator, including all below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it returned in total.
    pub rows: u64,
    /// Time until the first row of each loop, in total.
    pub first_row: Duration,
    pub total: Duration,
}

/// Counters of a plan's nodes.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    nodes: FxHashMap<usize, NodeCounters>,
}

impl Counters {
    /// The counts of a node; zero if it never ran.
    #[must_use]
    pub fn of(&self, node: &PlanNode) -> NodeCounters {
        self.nodes.get(&address(node)).copied().unwrap_or_default()
    }

    /// The counters of a node, for the executor to add to.
    pub fn of_mut(&mut self, node: &PlanNode) -> &mut NodeCounters {
        self.nodes.entry(address(node)).or_default()
    }
}

fn address(node: &PlanNode) -> usize {
    std::ptr::from_ref(node) as usize
}
