//! The slots that the operators of a plan fill: what must be saved of a row that is put aside.

use crate::expression::Slot;
use crate::logical::JoinKind;
use crate::plan::{NodeKind, PlanNode};

/// The slots that hold a plan's rows, each once.
pub(super) fn filled_slots(node: &PlanNode) -> Vec<Slot> {
    let mut slots = Vec::new();
    collect(node, &mut slots);
    slots.sort_unstable();
    slots.dedup();
    slots
}

fn collect(node: &PlanNode, slots: &mut Vec<Slot>) {
    match &node.kind {
        NodeKind::OneRow | NodeKind::Empty => {}
        NodeKind::Values { slots: filled, .. } => slots.extend(filled),
        NodeKind::Scan(plan) => {
            slots.extend(plan.slots.iter().map(|(_, slot)| *slot));
            slots.extend(plan.row_key);
            slots.extend(plan.row_payload);
        }
        NodeKind::JsonTable { slots: filled, .. } => slots.extend(filled),
        NodeKind::Virtual { slots: filled, .. } | NodeKind::CommonTable { slots: filled, .. } => {
            slots.extend(filled.iter().map(|(_, slot)| *slot));
        }
        NodeKind::Derived { slots: filled, .. } => slots.extend(filled.iter().flatten()),
        NodeKind::Filter { input, .. } | NodeKind::Limit { input, .. } => collect(input, slots),
        NodeKind::Compute { input, outputs } => {
            collect(input, slots);
            slots.extend(outputs.iter().map(|(slot, _)| *slot));
        }
        NodeKind::NestedLoop { left, right, join, .. }
        | NodeKind::HashJoin { left, right, join, .. } => {
            collect(left, slots);
            if matches!(join, JoinKind::Inner | JoinKind::Left) {
                collect(right, slots);
            }
        }
        NodeKind::Aggregate { groups, aggregates, rollup, .. } => {
            slots.extend(groups.iter().map(|(slot, _)| *slot));
            slots.extend(aggregates.iter().map(|call| call.output));
            slots.extend(rollup.iter().flatten());
        }
        NodeKind::Window(plan) => {
            slots.extend(&plan.keep);
            slots.extend(plan.calls.iter().map(|call| call.output));
        }
        NodeKind::Sort { keep, .. } => slots.extend(keep),
        NodeKind::Distinct { slots: filled, keep, .. } => {
            slots.extend(filled.iter().map(|(slot, _)| *slot));
            slots.extend(keep);
        }
        NodeKind::SetOperation { slots: filled, .. } => {
            slots.extend(filled.iter().map(|(slot, _)| *slot));
        }
    }
}
