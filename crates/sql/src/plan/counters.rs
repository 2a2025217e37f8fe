//! What the operators of a plan did, for `EXPLAIN ANALYZE`: the executor counts, the plan's text shows it.
//!
//! A node is known by its address, so counters belong to the plan that was run.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::PlanNode;

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

    /// The counters of a node, for the executor to add to.
    pub fn of_mut(&mut self, node: &PlanNode) -> &mut NodeCounters {
        self.nodes.entry(address(node)).or_default()
    }
}

fn address(node: &PlanNode) -> usize {
    std::ptr::from_ref(node) as usize
}
