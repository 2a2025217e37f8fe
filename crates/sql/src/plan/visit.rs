//! Walks over expressions and plans: which slots they read, which they fill.
//!
//! ```text
//!   Compare(=, Slot 3, Subquery{outer 1})     reads {1, 3}
//!   NestedLoop(Scan t → 1 2, Scan u → 3)      fills {1, 2, 3}
//! ```

use crate::expression::{AggregateCall, Expression, ExpressionKind, Slot, SortKey};
use crate::types::Datum;

use super::{
    Access, FrameBound, NodeKind, PlanNode, QueryPlan, RangePlan, ScanPlan, Subquery,
    WindowFunction, WindowPlan,
};

/// A set of slots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    /// Adds a slot.
    pub fn insert(&mut self, slot: Slot) {
        let word = slot.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (slot.0 % 64);
    }

    /// Takes a slot out.
    pub fn remove(&mut self, slot: Slot) {
        if let Some(word) = self.words.get_mut(slot.0 as usize / 64) {
            *word &= !(1 << (slot.0 % 64));
        }
    }

    /// Whether a slot is in the set.
    #[must_use]
    pub fn contains(&self, slot: Slot) -> bool {
        self.words.get(slot.0 as usize / 64).is_some_and(|word| word >> (slot.0 % 64) & 1 == 1)
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: &SlotSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// Whether all of this is in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &SlotSet) -> bool {
        let rest = self.words.iter().skip(other.words.len()).all(|word| *word == 0);
        rest && self.words.iter().zip(&other.words).all(|(word, all)| word & !all == 0)
    }

    /// Whether nothing is in both.
    #[must_use]
    pub fn is_disjoint(&self, other: &SlotSet) -> bool {
        self.words.iter().zip(&other.words).all(|(one, two)| one & two == 0)
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &SlotSet) -> SlotSet {
        SlotSet { words: self.words.iter().zip(&other.words).map(|(one, two)| one & two).collect() }
    }

    /// What is in this and not in `other`.
    #[must_use]
    pub fn difference(&self, other: &SlotSet) -> SlotSet {
        let mut words = self.words.clone();
        words.iter_mut().zip(&other.words).for_each(|(word, less)| *word &= !less);
        SlotSet { words }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        self.words.iter().enumerate().flat_map(|(number, word)| {
            (0..64u32)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| Slot(number as u32 * 64 + bit))
        })
    }
}

impl FromIterator<Slot> for SlotSet {
    fn from_iter<T: IntoIterator<Item = Slot>>(slots: T) -> SlotSet {
        let mut set = SlotSet::default();
        slots.into_iter().for_each(|slot| set.insert(slot));
        set
    }
}

/// How many nodes an expression has; counting ends at `most`.
#[must_use]
pub fn count_nodes(expression: &Expression, most: usize) -> usize {
    let mut count = 1;
    for_each_operand(expression, &mut |operand| {
        if count < most {
            count += count_nodes(operand, most - count);
        }
    });
    count
}

/// How many nodes an expression has, and how much memory they and their short texts take; a copy
/// shares the long ones.
#[must_use]
pub fn size_of_expression(expression: &Expression) -> (usize, usize) {
    let text_bytes = match &expression.kind {
        ExpressionKind::Literal(Datum::Text(text)) if text.shared().is_none() => text.len(),
        _ => 0,
    };
    let (mut nodes, mut bytes) = (1, size_of::<Expression>() + text_bytes);
    for_each_operand(expression, &mut |operand| {
        let (more_nodes, more_bytes) = size_of_expression(operand);
        nodes += more_nodes;
        bytes += more_bytes;
    });
    (nodes, bytes)
}

/// Whether an expression nests more than so many levels deep.
#[must_use]
pub fn is_taller(expression: &Expression, levels: usize) -> bool {
    if levels == 0 {
        return true;
    }
    let mut found = false;
    for_each_operand(expression, &mut |operand| found = found || is_taller(operand, levels - 1));
    found
}

/// Calls `visit` for each operand of an expression, in order; subqueries' insides are no operands, their
/// left sides are.
pub fn for_each_operand<'a>(expression: &'a Expression, visit: &mut dyn FnMut(&'a Expression)) {
    match &expression.kind {
        ExpressionKind::Call { arguments: list, .. }
        | ExpressionKind::And(list)
        | ExpressionKind::Or(list)
        | ExpressionKind::Coalesce(list)
        | ExpressionKind::Row(list) => list.iter().for_each(visit),
        ExpressionKind::Cast(one) | ExpressionKind::Not(one) => visit(one),
        ExpressionKind::Is { operand, .. } => visit(operand),
        ExpressionKind::AssignVariable { value, .. } | ExpressionKind::Keep { value, .. } => {
            visit(value);
        }
        ExpressionKind::Compare { sides, .. } | ExpressionKind::Xor(sides) => {
            sides.iter().for_each(visit);
        }
        ExpressionKind::InList { operand, list, .. } => {
            visit(operand);
            list.iter().for_each(visit);
        }
        ExpressionKind::Like { text, pattern, .. } => {
            visit(text);
            visit(pattern);
        }
        ExpressionKind::Case { branches, otherwise } => {
            for (condition, value) in branches {
                visit(condition);
                visit(value);
            }
            otherwise.iter().for_each(|value| visit(value));
        }
        ExpressionKind::Subquery(subquery) => {
            if let Some(compared) = subquery.kind.compared() {
                compared.operands.iter().for_each(visit);
            }
        }
        ExpressionKind::Literal(_)
        | ExpressionKind::Parameter(_)
        | ExpressionKind::Slot(_)
        | ExpressionKind::Kept(_)
        | ExpressionKind::UserVariable(_)
        | ExpressionKind::SystemVariable { .. }
        | ExpressionKind::Unresolved(_) => {}
    }
}

/// Calls `visit` for each operand of an expression, in order, to be changed. Left sides of subqueries are
/// shared and left out.
pub fn for_each_operand_mut(expression: &mut Expression, visit: &mut dyn FnMut(&mut Expression)) {
    match &mut expression.kind {
        ExpressionKind::Call { arguments: list, .. }
        | ExpressionKind::And(list)
        | ExpressionKind::Or(list)
        | ExpressionKind::Coalesce(list)
        | ExpressionKind::Row(list) => list.iter_mut().for_each(visit),
        ExpressionKind::Cast(one) | ExpressionKind::Not(one) => visit(one),
        ExpressionKind::Is { operand, .. } => visit(operand),
        ExpressionKind::AssignVariable { value, .. } | ExpressionKind::Keep { value, .. } => {
            visit(value);
        }
        ExpressionKind::Compare { sides, .. } | ExpressionKind::Xor(sides) => {
            sides.iter_mut().for_each(visit);
        }
        ExpressionKind::InList { operand, list, .. } => {
            visit(operand);
            list.iter_mut().for_each(visit);
        }
        ExpressionKind::Like { text, pattern, .. } => {
            visit(text);
            visit(pattern);
        }
        ExpressionKind::Case { branches, otherwise } => {
            for (condition, value) in branches {
                visit(condition);
                visit(value);
            }
            otherwise.iter_mut().for_each(|value| visit(value));
        }
        ExpressionKind::Literal(_)
        | ExpressionKind::Parameter(_)
        | ExpressionKind::Slot(_)
        | ExpressionKind::Kept(_)
        | ExpressionKind::Subquery(_)
        | ExpressionKind::UserVariable(_)
        | ExpressionKind::SystemVariable { .. }
        | ExpressionKind::Unresolved(_) => {}
    }
}

/// Whether `test` holds for the expression or anything in it.
pub fn any(expression: &Expression, test: &dyn Fn(&Expression) -> bool) -> bool {
    let mut found = test(expression);
    for_each_operand(expression, &mut |operand| found = found || any(operand, test));
    found
}

/// Adds the slots that an expression reads.
pub fn add_reads(expression: &Expression, into: &mut SlotSet) {
    match &expression.kind {
        ExpressionKind::Slot(slot) => into.insert(*slot),
        ExpressionKind::Subquery(subquery) => add_subquery_reads(subquery, into),
        _ => for_each_operand(expression, &mut |operand| add_reads(operand, into)),
    }
}

fn add_subquery_reads(subquery: &Subquery, into: &mut SlotSet) {
    subquery.outer_slots.iter().for_each(|slot| into.insert(*slot));
    if let Some(compared) = subquery.kind.compared() {
        compared.operands.iter().for_each(|operand| add_reads(operand, into));
    }
}

/// The slots that an expression reads.
#[must_use]
pub fn reads(expression: &Expression) -> SlotSet {
    let mut slots = SlotSet::default();
    add_reads(expression, &mut slots);
    slots
}

/// The slots that any of these reads.
#[must_use]
pub fn reads_of<'a>(expressions: impl IntoIterator<Item = &'a Expression>) -> SlotSet {
    let mut slots = SlotSet::default();
    expressions.into_iter().for_each(|expression| add_reads(expression, &mut slots));
    slots
}

/// Adds what a sort reads.
pub fn add_key_reads(keys: &[SortKey], into: &mut SlotSet) {
    keys.iter().for_each(|key| add_reads(&key.expression, into));
}

/// Adds what an aggregate reads.
pub fn add_aggregate_reads(call: &AggregateCall, into: &mut SlotSet) {
    call.arguments.iter().for_each(|argument| add_reads(argument, into));
    add_key_reads(&call.order, into);
}

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

/// Calls `visit` for each input of a node that is a node.
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
