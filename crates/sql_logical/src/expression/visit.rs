//! Traversals of expressions: their operands, and the slots they read.
//!
//! ```text
//!   Compare(=, Slot 3, Subquery{outer 1})     reads {1, 3}
//! ```

use firn_sql_types::Datum;

use super::{AggregateCall, Expression, ExpressionKind, Slot, SortKey, Subquery};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    pub fn insert(&mut self, slot: Slot) {
        let word = slot.0 as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (slot.0 % 64);
    }

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

    /// Adds all slots of another set.
    pub fn extend(&mut self, other: &SlotSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }

    /// Whether all slots are in `other`.
    #[must_use]
    pub fn is_subset(&self, other: &SlotSet) -> bool {
        let rest = self.words.iter().skip(other.words.len()).all(|word| *word == 0);
        rest && self.words.iter().zip(&other.words).all(|(word, all)| word & !all == 0)
    }

    /// Whether the sets have no slot in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &SlotSet) -> bool {
        self.words.iter().zip(&other.words).all(|(one, two)| one & two == 0)
    }

    /// The slots in both sets.
    #[must_use]
    pub fn intersection(&self, other: &SlotSet) -> SlotSet {
        SlotSet { words: self.words.iter().zip(&other.words).map(|(one, two)| one & two).collect() }
    }

    /// The slots that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &SlotSet) -> SlotSet {
        let mut words = self.words.clone();
        words.iter_mut().zip(&other.words).for_each(|(word, less)| *word &= !less);
        SlotSet { words }
    }

    /// Whether the set is empty.
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

/// The number of nodes of an expression; counting ends at `most`.
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

/// The number of nodes of an expression, and the memory of the nodes and their short texts; a copy
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

/// Whether an expression nests more than this many levels deep.
#[must_use]
pub fn is_taller(expression: &Expression, levels: usize) -> bool {
    if levels == 0 {
        return true;
    }
    let mut found = false;
    for_each_operand(expression, &mut |operand| found = found || is_taller(operand, levels - 1));
    found
}

/// Calls `visit` for each operand of an expression, in order. The inside of a subquery is not an
/// operand, its left side is.
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

/// Calls `visit` for each operand of an expression, in order, for changes. Left sides of subqueries
/// are shared and left out.
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

/// Whether `test` holds for the expression or any expression in it.
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

/// The slots that any of these expressions reads.
#[must_use]
pub fn reads_of<'a>(expressions: impl IntoIterator<Item = &'a Expression>) -> SlotSet {
    let mut slots = SlotSet::default();
    expressions.into_iter().for_each(|expression| add_reads(expression, &mut slots));
    slots
}

/// Adds the slots that a sort reads.
pub fn add_key_reads(keys: &[SortKey], into: &mut SlotSet) {
    keys.iter().for_each(|key| add_reads(&key.expression, into));
}

/// Adds the slots that an aggregate reads.
pub fn add_aggregate_reads(call: &AggregateCall, into: &mut SlotSet) {
    call.arguments.iter().for_each(|argument| add_reads(argument, into));
    add_key_reads(&call.order, into);
}
