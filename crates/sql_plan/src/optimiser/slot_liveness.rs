//! The last pass over a plan: what operators that keep rows must save, and what scans need not
//! fill.
//!
//! ```text
//!   Project [1]        needs {1}
//!     Sort by 3        keeps {1}, needs {1, 3} below
//!       Scan → 1 3 4   4 is not read: not filled
//! ```

use firn_sql_logical::expression::Slot;

use crate::visit::{
    SlotSet, add_aggregate_reads, add_all_reads, add_fills, add_own_reads, reads_of,
};
use crate::{NodeKind, PlanNode, QueryPlan, ScanPlan};

pub(crate) fn finish_query(query: &mut QueryPlan) {
    let needed = reads_of(query.columns.iter().map(|column| &column.value));
    finish(&mut query.root, &needed);
}

/// Finishes a node; `needed` has its slots that are read above it.
pub(crate) fn finish(node: &mut PlanNode, needed: &SlotSet) {
    let mut below = needed.clone();
    add_own_reads(node, &mut below);
    match &mut node.kind {
        NodeKind::Scan(scan) => finish_scan(scan, needed),
        NodeKind::Virtual { slots, .. } | NodeKind::CommonTable { slots, .. } => {
            slots.retain(|(_, slot)| needed.contains(*slot));
        }
        NodeKind::Derived { query, slots, .. } => {
            for slot in slots.iter_mut() {
                *slot = slot.filter(|slot| needed.contains(*slot));
            }
            finish_query(query);
        }
        NodeKind::SetOperation { inputs, .. } => inputs.iter_mut().for_each(finish_query),
        NodeKind::Filter { input, .. } | NodeKind::Compute { input, .. } => finish(input, &below),
        NodeKind::Limit { input, .. } => finish(input, &below),
        NodeKind::NestedLoop { left, right, right_slots, .. } => {
            *right_slots = filled_of(right, &below);
            finish(right, &below);
            add_all_reads(right, &mut below);
            finish(left, &below);
        }
        NodeKind::HashJoin { left, right, right_slots, conditions, .. } => {
            let mut kept = needed.clone();
            kept.extend(&reads_of(conditions.iter()));
            *right_slots = filled_of(right, &kept);
            finish(left, &below);
            finish(right, &below);
        }
        NodeKind::Aggregate { input, groups, aggregates, .. } => {
            let mut inside = reads_of(groups.iter().map(|(_, value)| value));
            aggregates.iter().for_each(|call| add_aggregate_reads(call, &mut inside));
            finish(input, &inside);
        }
        NodeKind::Window(window) => {
            window.keep = filled_of(&window.input, &below);
            finish(&mut window.input, &below);
        }
        NodeKind::Sort { input, keep, .. } => {
            *keep = filled_of(input, needed);
            finish(input, &below);
        }
        NodeKind::Distinct { input, slots, keep } => {
            *keep = filled_of(input, needed);
            keep.retain(|slot| !slots.iter().any(|(other, _)| other == slot));
            finish(input, &below);
        }
        NodeKind::OneRow
        | NodeKind::Empty
        | NodeKind::JsonTable { .. }
        | NodeKind::Values { .. } => {}
    }
}

fn finish_scan(scan: &mut ScanPlan, needed: &SlotSet) {
    let mut read = needed.clone();
    read.extend(&reads_of(&scan.conditions));
    scan.slots.retain(|(_, slot)| read.contains(*slot));
}

/// The slots in `needed` that a node fills.
fn filled_of(node: &PlanNode, needed: &SlotSet) -> Vec<Slot> {
    let mut filled = SlotSet::default();
    add_fills(node, &mut filled);
    filled.intersection(needed).iter().collect()
}
