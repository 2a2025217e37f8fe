//! Traversals of plans: the slots they read and fill. Those of expressions are re-exported here.
//!
//! ```text
//!   NestedLoop(Scan t → 1 2, Scan u → 3)      fills {1, 2, 3}
//! ```

use firn_sql_logical::expression::{Expression, Slot};

use super::{
    Access, FrameBound, NodeKind, PlanNode, QueryPlan, RangePlan, ScanPlan, WindowFunction,
    WindowPlan,
};

pub use firn_sql_logical::expression::visit::*;

/// Slots that the node reads itself (not its inputs).
pub fn add_own_reads(node: &PlanNode, into: &mut SlotSet) {
    let mut all =
        |expressions: &[Expression]| expressions.iter().for_each(|one| add_reads(one, into));
    match &node.kind {
        NodeKind::OneRow
        | NodeKind::Empty
        | NodeKind::CommonTable { .. }
        | NodeKind::Derived { .. }
        | NodeKind::SetOperation { .. } => {}
        NodeKind::Values { rows, .. } => rows.iter().for_each(|row| all(row)),
        NodeKind::Scan(scan) => {
            all(&scan.conditions);
            add_access_reads(&scan.access, into);
        }
        NodeKind::JsonTable { document, .. } => add_reads(document, into),
        NodeKind::Virtual { hints, .. } => {
            hints.iter().for_each(|(_, value)| add_reads(value, into));
        }
        NodeKind::Filter { conditions, .. } | NodeKind::NestedLoop { conditions, .. } => {
            all(conditions);
        }
        NodeKind::Compute { outputs, .. } => {
            outputs.iter().for_each(|(_, value)| add_reads(value, into));
        }
        NodeKind::HashJoin { keys, conditions, .. } => {
            all(conditions);
            for (left, right) in keys {
                add_reads(left, into);
                add_reads(right, into);
            }
        }
        NodeKind::Aggregate { groups, aggregates, .. } => {
            groups.iter().for_each(|(_, value)| add_reads(value, into));
            aggregates.iter().for_each(|call| add_aggregate_reads(call, into));
        }
        NodeKind::Window(window) => add_window_reads(window, into),
        NodeKind::Sort { keys, limit, .. } => {
            add_key_reads(keys, into);
            limit.iter().for_each(|limit| add_reads(limit, into));
        }
        NodeKind::Limit { offset, count, .. } => {
            offset.iter().chain(count).for_each(|value| add_reads(value, into));
        }
        NodeKind::Distinct { slots, .. } => {
            slots.iter().for_each(|(slot, _)| into.insert(*slot));
        }
    }
}

fn add_window_reads(window: &WindowPlan, into: &mut SlotSet) {
    window.partition.iter().for_each(|value| add_reads(value, into));
    add_key_reads(&window.order, into);
    for bound in [&window.frame.start, &window.frame.end] {
        if let FrameBound::Preceding(value) | FrameBound::Following(value) = bound {
            add_reads(value, into);
        }
    }
    for call in &window.calls {
        call.arguments.iter().for_each(|value| add_reads(value, into));
        if let WindowFunction::Aggregate(aggregate) = &call.function {
            add_aggregate_reads(aggregate, into);
        }
    }
}

fn add_access_reads(access: &Access, into: &mut SlotSet) {
    match access {
        Access::Full { .. } => {}
        Access::Point { key, .. } => key.iter().for_each(|value| add_reads(value, into)),
        Access::Ranges { ranges, .. } => {
            ranges.iter().for_each(|range| add_range_reads(range, into))
        }
        Access::Union(parts) => parts.iter().for_each(|part| add_access_reads(part, into)),
    }
}

fn add_range_reads(range: &RangePlan, into: &mut SlotSet) {
    range.equal.iter().for_each(|value| add_reads(value, into));
    for (bound, _) in range.lower.iter().chain(&range.upper) {
        add_reads(bound, into);
    }
}

/// Calls `visit` for each input of a node that is itself a node.
pub fn for_each_input<'a>(node: &'a PlanNode, visit: &mut dyn FnMut(&'a PlanNode)) {
    match &node.kind {
        NodeKind::Filter { input, .. }
        | NodeKind::Compute { input, .. }
        | NodeKind::Aggregate { input, .. }
        | NodeKind::Sort { input, .. }
        | NodeKind::Limit { input, .. }
        | NodeKind::Distinct { input, .. } => visit(input),
        NodeKind::Window(window) => visit(&window.input),
        NodeKind::NestedLoop { left, right, .. } | NodeKind::HashJoin { left, right, .. } => {
            visit(left);
            visit(right);
        }
        NodeKind::Derived { query, .. } => visit(&query.root),
        NodeKind::SetOperation { inputs, .. } => inputs.iter().for_each(|input| visit(&input.root)),
        _ => {}
    }
}

/// Calls `visit` for each expression of a node itself.
pub fn for_each_expression<'a>(node: &'a PlanNode, visit: &mut dyn FnMut(&'a Expression)) {
    match &node.kind {
        NodeKind::Scan(scan) => scan.conditions.iter().for_each(visit),
        NodeKind::Filter { conditions, .. } | NodeKind::NestedLoop { conditions, .. } => {
            conditions.iter().for_each(visit);
        }
        NodeKind::HashJoin { keys, conditions, .. } => {
            conditions.iter().for_each(&mut *visit);
            for (left, right) in keys {
                visit(left);
                visit(right);
            }
        }
        NodeKind::Compute { outputs, .. } => outputs.iter().for_each(|(_, value)| visit(value)),
        NodeKind::Values { rows, .. } => rows.iter().flatten().for_each(visit),
        NodeKind::Aggregate { groups, aggregates, .. } => {
            groups.iter().for_each(|(_, value)| visit(value));
            aggregates.iter().flat_map(|call| &call.arguments).for_each(visit);
        }
        NodeKind::Sort { keys, .. } => keys.iter().for_each(|key| visit(&key.expression)),
        _ => {}
    }
}

/// Whether `test` holds for an expression that a node or its inputs evaluate for their rows; it
/// looks at operands itself.
pub fn any_expression(node: &PlanNode, test: &dyn Fn(&Expression) -> bool) -> bool {
    let mut found = false;
    let mut look = |expression: &Expression| found = found || test(expression);
    for_each_expression(node, &mut look);
    match &node.kind {
        NodeKind::JsonTable { document, .. } => look(document),
        NodeKind::Window(window) => {
            window.calls.iter().flat_map(|call| &call.arguments).for_each(look);
        }
        NodeKind::Derived { query, .. } => {
            query.columns.iter().for_each(|column| look(&column.value));
        }
        NodeKind::SetOperation { inputs, .. } => {
            inputs.iter().flat_map(|query| &query.columns).for_each(|column| look(&column.value));
        }
        _ => {}
    }
    for_each_input(node, &mut |input| found = found || any_expression(input, test));
    found
}

/// Adds the slots that a node and its inputs fill.
pub fn add_fills(node: &PlanNode, into: &mut SlotSet) {
    match &node.kind {
        NodeKind::Values { slots, .. } => slots.iter().for_each(|slot| into.insert(*slot)),
        NodeKind::Scan(scan) => add_scan_fills(scan, into),
        NodeKind::JsonTable { slots, .. } => slots.iter().for_each(|slot| into.insert(*slot)),
        NodeKind::Virtual { slots, .. } | NodeKind::CommonTable { slots, .. } => {
            slots.iter().for_each(|(_, slot)| into.insert(*slot));
        }
        NodeKind::Derived { slots, .. } => {
            slots.iter().flatten().for_each(|slot| into.insert(*slot))
        }
        NodeKind::Compute { outputs, .. } => {
            outputs.iter().for_each(|(slot, _)| into.insert(*slot))
        }
        NodeKind::Aggregate { groups, aggregates, rollup, .. } => {
            groups.iter().for_each(|(slot, _)| into.insert(*slot));
            aggregates.iter().for_each(|call| into.insert(call.output));
            rollup.iter().flatten().for_each(|slot| into.insert(*slot));
        }
        NodeKind::Window(window) => window.calls.iter().for_each(|call| into.insert(call.output)),
        NodeKind::SetOperation { slots, .. } => {
            slots.iter().for_each(|(slot, _)| into.insert(*slot));
        }
        _ => {}
    }
    for_each_input(node, &mut |input| add_fills(input, into));
}

fn add_scan_fills(scan: &ScanPlan, into: &mut SlotSet) {
    let row = scan.row_key.iter().chain(&scan.row_payload);
    scan.slots.iter().map(|(_, slot)| slot).chain(row).for_each(|slot| into.insert(*slot));
}

/// Adds all slots that a node and its inputs read.
pub fn add_all_reads(node: &PlanNode, into: &mut SlotSet) {
    add_own_reads(node, into);
    let columns = |query: &QueryPlan, into: &mut SlotSet| {
        query.columns.iter().for_each(|column| add_reads(&column.value, into));
    };
    match &node.kind {
        NodeKind::Derived { query, .. } => columns(query, into),
        NodeKind::SetOperation { inputs, .. } => {
            inputs.iter().for_each(|query| columns(query, into))
        }
        _ => {}
    }
    for_each_input(node, &mut |input| add_all_reads(input, into));
}

/// The slots of outer queries that a query reads.
#[must_use]
pub fn outer_slots(query: &QueryPlan) -> Vec<Slot> {
    let (mut read, mut filled) = (SlotSet::default(), SlotSet::default());
    add_all_reads(&query.root, &mut read);
    query.columns.iter().for_each(|column| add_reads(&column.value, &mut read));
    add_fills(&query.root, &mut filled);
    read.difference(&filled).iter().collect()
}
