//! The part of a scan's conditions that a node can evaluate by itself ([`Filter`]).
//!
//! ```text
//!   a > 3 AND b = ? AND LENGTH(c) = 9     All [ a in (key(3), …),  b in [key(?)] ]  LENGTH(c) stays
//!   a = 1 OR b = 2                        Any [ a in [key(1)],  b in [key(2)] ]
//!   a = 1 OR LENGTH(c) = 9                nothing: the second side may hold for any row
//! ```
//!
//! The filter is true for every row that satisfies the conditions; they are checked again for the
//! rows that arrive. Only values that are free to compute are sent: an expression might warn or
//! fail, once for the scan here and row by row there.

use firn_api::rows::{Filter, ReadMode, TableRef};
use firn_format::key::KeyPart;

use crate::error::Result;
use crate::expression::{Expression, ExpressionKind, Slot};
use crate::plan::predicates::{ColumnTest, Columns, Predicate};
use crate::plan::visit::SlotSet;
use crate::plan::{RangePlan, ScanPlan};
use crate::types::SqlType;

use super::super::Execution;
use super::{Index, key_range};

/// More ranges than this are not sent.
const MOST_RANGES: usize = 512;

/// The filter for a node.
pub(crate) struct NodeFilter {
    /// `None` if the conditions have no part that a node understands.
    pub(crate) filter: Option<Box<Filter>>,
    /// The filter says all that the conditions say.
    pub(crate) says_all: bool,
    /// The node knows for every row whether the filter is true.
    pub(crate) is_certain: bool,
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
        return Ok(NodeFilter { filter: None, says_all, is_certain: true });
    }
    let slots: Vec<(Slot, &SqlType)> = plan
        .slots
        .iter()
        .filter_map(|(ordinal, slot)| Some((*slot, &plan.table.by_ordinal(*ordinal)?.ty)))
        .collect();
    let own: SlotSet = slots.iter().map(|(slot, _)| *slot).collect();
    let columns = Columns { slots: &slots, own: &own };
    let mut filters = Maker { plan, table, columns: &columns, says_all: true, is_certain: true };
    let filter = filters.all(&plan.conditions, execution)?.map(Box::new);
    Ok(NodeFilter { filter, says_all: filters.says_all, is_certain: filters.is_certain })
}

/// Makes filters of conditions on a table.
struct Maker<'a> {
    plan: &'a ScanPlan,
    table: &'a TableRef,
    columns: &'a Columns<'a>,
    /// The filters so far express all of the conditions.
    says_all: bool,
    /// They read only values that are never stored out of line.
    is_certain: bool,
}

impl Maker<'_> {
    /// The understood part of conditions that must all be true.
    fn all(
        &mut self,
        conditions: &[Expression],
        execution: &mut Execution<'_>,
    ) -> Result<Option<Filter>> {
        let mut filters = Vec::new();
        for condition in conditions {
            filters.extend(self.one(condition, execution)?);
        }
        Ok(match filters.len() {
            0 | 1 => filters.pop(),
            _ => Some(Filter::All(filters)),
        })
    }

    fn one(
        &mut self,
        condition: &Expression,
        execution: &mut Execution<'_>,
    ) -> Result<Option<Filter>> {
        match &condition.kind {
            ExpressionKind::And(list) => self.all(list, execution),
            ExpressionKind::Or(list) => {
                let mut filters = Vec::with_capacity(list.len());
                for side in list {
                    let Some(filter) = self.one(side, execution)? else {
                        self.says_all = false;
                        return Ok(None);
                    };
                    filters.push(filter);
                }
                Ok(Some(Filter::Any(filters)))
            }
            _ => match self.columns.predicate(condition) {
                Some(predicate) => {
                    let filter = self.column(&predicate, execution)?;
                    self.says_all &= predicate.is_exact && filter.is_some();
                    Ok(filter)
                }
                None => {
                    self.says_all = false;
                    Ok(None)
                }
            },
        }
    }

    fn column(
        &mut self,
        predicate: &Predicate,
        execution: &mut Execution<'_>,
    ) -> Result<Option<Filter>> {
        let of_slot = |(_, slot): &&(u16, Slot)| *slot == predicate.slot;
        let Some((ordinal, _)) = self.plan.slots.iter().find(of_slot) else { return Ok(None) };
        let Some(layout) = self.table.definition().column_key(*ordinal) else { return Ok(None) };
        let Some(planned) = ranges_of(&predicate.test) else { return Ok(None) };
        // A value stored out of line is unknown to the node, and its row stays.
        let has_fixed_length = |part: &KeyPart| part.column_type.fixed_length().is_some();
        self.is_certain &= layout.parts().iter().all(has_fixed_length);
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
