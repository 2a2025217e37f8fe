//! The part of a scan's conditions that a node can evaluate by itself ([`Filter`]).
//!
//! ```text
//!   a > 3 AND b = ? AND LENGTH(c) = 9     All [ a in (key(3), …),  b in [key(?)],  LENGTH(c) = 9 ]
//!   a = 1 OR b = 2                        Any [ a in [key(1)],  b in [key(2)] ]
//!   a = 1 OR LENGTH(c) = 9                the whole as an expression
//!   a = 1 OR RAND() < 0.5                 nothing: the second side may hold for any row
//! ```
//!
//! The filter is true for every row that satisfies the conditions; they are checked again for the
//! rows that arrive. Ranges have values that are free to compute; other conditions are expressions,
//! if their values depend on the row alone. Behind a condition that is not sent and may raise
//! something, nothing is sent: a row that a later condition leaves out would raise it too.

use firn_api::rows::{Filter, ReadMode, TableRef};

use crate::error::Result;
use crate::expression::{Expression, ExpressionKind, IsTest, Slot};
use crate::plan::predicates::{ColumnTest, Columns, Predicate};
use crate::plan::visit::SlotSet;
use crate::plan::{RangePlan, ScanPlan};
use crate::types::SqlType;

use super::super::Execution;
use super::sent::sent;
use super::{Index, key_range};

/// More ranges than this are not sent.
const MOST_RANGES: usize = 512;

/// The filter for a node.
pub(crate) struct NodeFilter {
    /// `None` if the conditions have no part that a node understands.
    pub(crate) filter: Option<Box<Filter>>,
    /// The filter says all that the conditions say.
    pub(crate) says_all: bool,
}

/// The filter of a scan that begins.
///
/// # Errors
/// If a value cannot be computed.
pub(crate) fn node_filter(
    plan: &ScanPlan,
    table: &TableRef,
    execution: &mut Execution<'_>,
) -> Result<NodeFilter> {
    if plan.conditions.is_empty() || plan.mode != ReadMode::Consistent {
        let says_all = plan.conditions.is_empty();
        return Ok(NodeFilter { filter: None, says_all });
    }
    let slots: Vec<(Slot, &SqlType)> = plan
        .slots
        .iter()
        .filter_map(|(ordinal, slot)| Some((*slot, &plan.table.by_ordinal(*ordinal)?.ty)))
        .collect();
    let own: SlotSet = slots.iter().map(|(slot, _)| *slot).collect();
    let columns = Columns { slots: &slots, own: &own };
    let maker = Maker { plan, table, columns: &columns };
    let (mut filters, mut says_all) = (Vec::new(), true);
    for condition in &plan.conditions {
        let (filter, is_all) = maker.filter(condition, execution)?;
        filters.extend(filter);
        says_all &= is_all;
        if !is_all && !is_quiet(condition) {
            break;
        }
    }
    let filter = match filters.len() {
        0 | 1 => filters.pop(),
        _ => Some(Filter::All(filters)),
    };
    Ok(NodeFilter { filter: filter.map(Box::new), says_all })
}

/// Whether the evaluation of a condition raises neither errors nor warnings: it reads values and
/// compares them.
fn is_quiet(condition: &Expression) -> bool {
    match &condition.kind {
        ExpressionKind::Compare { sides, .. } => sides.iter().all(is_at_hand),
        ExpressionKind::InList { operand, list, .. } => {
            is_at_hand(operand) && list.iter().all(is_at_hand)
        }
        ExpressionKind::Is { operand, test: IsTest::Null, .. } => is_at_hand(operand),
        ExpressionKind::Like { text, pattern, .. } => is_at_hand(text) && is_at_hand(pattern),
        ExpressionKind::And(list) | ExpressionKind::Or(list) => list.iter().all(is_quiet),
        ExpressionKind::Not(operand) => is_quiet(operand),
        _ => false,
    }
}

/// Makes filters of conditions on a table.
struct Maker<'a> {
    plan: &'a ScanPlan,
    table: &'a TableRef,
    columns: &'a Columns<'a>,
}

impl Maker<'_> {
    /// A filter that is true for every row that satisfies the condition, and whether it says all
    /// that the condition says.
    fn filter(
        &self,
        condition: &Expression,
        execution: &mut Execution<'_>,
    ) -> Result<(Option<Filter>, bool)> {
        let ranges = self.ranges(condition, execution)?;
        if let Some((filter, true)) = ranges {
            return Ok((Some(filter), true));
        }
        if let Some(expression) = sent(self.plan, condition, execution) {
            return Ok((Some(Filter::Expression(expression)), true));
        }
        Ok((ranges.map(|(filter, _)| filter), false))
    }

    /// The ranges of a condition, and whether they say all of it.
    fn ranges(
        &self,
        condition: &Expression,
        execution: &mut Execution<'_>,
    ) -> Result<Option<(Filter, bool)>> {
        let (list, is_and) = match &condition.kind {
            ExpressionKind::And(list) => (list, true),
            ExpressionKind::Or(list) => (list, false),
            _ => {
                let Some(predicate) = self.columns.predicate(condition) else { return Ok(None) };
                let filter = self.column(&predicate, execution)?;
                return Ok(filter.map(|filter| (filter, predicate.is_exact)));
            }
        };
        let (mut filters, mut are_exact) = (Vec::with_capacity(list.len()), true);
        for part in list {
            match self.ranges(part, execution)? {
                Some((filter, is_exact)) => {
                    filters.push(filter);
                    are_exact &= is_exact;
                }
                None if is_and => are_exact = false,
                None => return Ok(None),
            }
        }
        let filter = if is_and { Filter::All } else { Filter::Any };
        Ok((!filters.is_empty()).then(|| (filter(filters), are_exact)))
    }

    fn column(
        &self,
        predicate: &Predicate,
        execution: &mut Execution<'_>,
    ) -> Result<Option<Filter>> {
        let of_slot = |(_, slot): &&(u16, Slot)| *slot == predicate.slot;
        let Some((ordinal, _)) = self.plan.slots.iter().find(of_slot) else { return Ok(None) };
        let Some(layout) = self.table.definition().column_key(*ordinal) else { return Ok(None) };
        let Some(planned) = ranges_of(&predicate.test) else { return Ok(None) };
        let index = Index { number: None, layout: &layout, unique: false };
        let mut ranges = Vec::with_capacity(planned.len());
        for range in &planned {
            let found = key_range(self.plan, range, self.table, &index, execution)?;
            ranges.extend(found.map(|(keys, _)| keys).filter(|keys| !keys.is_empty()));
        }
        Ok(Some(Filter::Column { ordinal: *ordinal, ranges }))
    }
}

/// The ranges of a test; `None` if it has values that are not known yet.
fn ranges_of(test: &ColumnTest) -> Option<Vec<RangePlan>> {
    let nothing =
        || RangePlan { equal: Vec::new(), null_safe: Vec::new(), lower: None, upper: None };
    let equal = |value: &Expression, null_safe| {
        let equal = vec![value.clone()];
        is_at_hand(value).then(|| RangePlan { equal, null_safe: vec![null_safe], ..nothing() })
    };
    match test {
        ColumnTest::Equal { value, null_safe } => Some(vec![equal(value, *null_safe)?]),
        ColumnTest::In(list) if list.len() <= MOST_RANGES => {
            list.iter().map(|value| equal(value, false)).collect()
        }
        ColumnTest::In(_) => None,
        ColumnTest::Range { lower, upper } => {
            let bounds = [lower, upper].into_iter().flatten();
            let range = RangePlan { lower: lower.clone(), upper: upper.clone(), ..nothing() };
            bounds.into_iter().all(|(value, _)| is_at_hand(value)).then(|| vec![range])
        }
    }
}

fn is_at_hand(value: &Expression) -> bool {
    matches!(
        value.kind,
        ExpressionKind::Literal(_) | ExpressionKind::Parameter(_) | ExpressionKind::Slot(_)
    )
}
