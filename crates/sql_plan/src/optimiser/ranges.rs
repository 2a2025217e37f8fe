//! Ranges of an index, from conditions on its columns.
//!
//! ```text
//!   index (a, b, c)
//!     a = 1 AND b > 5 AND c = 2        [a = 1, b > 5]            c is looked at row by row
//!     a IN (1, 2) AND b = 3            [a = 1, b = 3] [a = 2, b = 3]
//!     a = 1 OR (a = 2 AND b < 9)       [a = 1] [a = 2, b < 9]
//! ```

use firn_sql_catalog::model::IndexModel;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot};

use crate::RangePlan;
use crate::predicates::{ColumnTest, Columns, Predicate};

/// The most ranges made from one index.
const MOST_RANGES: usize = 512;

#[derive(Debug, Clone)]
pub(crate) struct IndexRanges {
    pub ranges: Vec<RangePlan>,
    /// The conditions that need not be checked again.
    pub consumed: Vec<usize>,
    /// How many parts of each range are equal to something, at least.
    pub equal_parts: usize,
    /// The part after those has bounds, in all ranges.
    pub is_bounded: bool,
    /// Every range has a value, not NULL, for every part.
    pub is_point: bool,
    /// Slots that have one value in all rows found.
    pub fixed: Vec<Slot>,
}

/// An index's columns as slots; `None` for columns that are not read, so that no condition is on
/// them.
pub(crate) type PartSlots = Vec<Option<Slot>>;

/// A condition with its number, if it gave a predicate on a column.
#[derive(Debug, Clone)]
struct Numbered {
    number: usize,
    predicate: Predicate,
}

/// Ranges of `index` that hold all rows for which `conditions` are true; `None` if they say nothing
/// about the index's first column.
#[must_use]
pub(crate) fn ranges_of(
    index: &IndexModel,
    parts: &PartSlots,
    columns: &Columns<'_>,
    conditions: &[Expression],
) -> Option<IndexRanges> {
    let predicates: Vec<Numbered> = conditions
        .iter()
        .enumerate()
        .filter_map(|(number, condition)| {
            let predicate = columns.predicate(condition)?;
            Some(Numbered { number, predicate })
        })
        .collect();
    let plain = from_predicates(index, parts, &predicates);
    let is_complete = |ranges: &IndexRanges| ranges.equal_parts == parts.len();
    if plain.as_ref().is_some_and(is_complete) {
        return plain;
    }
    let alternatives = conditions.iter().filter_map(|condition| match &condition.kind {
        ExpressionKind::Or(list) => from_or(index, parts, columns, &predicates, list),
        _ => None,
    });
    let depth = |ranges: &IndexRanges| ranges.equal_parts * 2 + usize::from(ranges.is_bounded);
    plain
        .into_iter()
        .chain(alternatives)
        .reduce(|best, other| if depth(&other) > depth(&best) { other } else { best })
}

/// The ranges of each side of an `OR`, each combined with the conditions beside it.
fn from_or(
    index: &IndexModel,
    parts: &PartSlots,
    columns: &Columns<'_>,
    beside: &[Numbered],
    sides: &[Expression],
) -> Option<IndexRanges> {
    let mut all: Option<IndexRanges> = None;
    for side in sides {
        let conditions = match &side.kind {
            ExpressionKind::And(list) => list.as_slice(),
            _ => std::slice::from_ref(side),
        };
        let mut predicates = beside.to_vec();
        predicates.extend(conditions.iter().filter_map(|condition| {
            Some(Numbered { number: usize::MAX, predicate: columns.predicate(condition)? })
        }));
        let more = from_predicates(index, parts, &predicates)?;
        all = Some(match all {
            None => IndexRanges { consumed: Vec::new(), fixed: Vec::new(), ..more },
            Some(mut all) => {
                all.ranges.extend(more.ranges);
                all.equal_parts = all.equal_parts.min(more.equal_parts);
                all.is_bounded &= more.is_bounded;
                all.is_point &= more.is_point;
                all
            }
        });
    }
    all.filter(|all| all.ranges.len() <= MOST_RANGES)
}

fn from_predicates(
    index: &IndexModel,
    parts: &PartSlots,
    predicates: &[Numbered],
) -> Option<IndexRanges> {
    let mut found = IndexRanges {
        ranges: vec![RangePlan {
            equal: Vec::new(),
            null_safe: Vec::new(),
            lower: None,
            upper: None,
        }],
        consumed: Vec::new(),
        equal_parts: 0,
        is_bounded: false,
        is_point: false,
        fixed: Vec::new(),
    };
    for (part, slot) in index.parts.iter().zip(parts) {
        let Some(slot) = slot else { break };
        let is_whole = part.prefix.is_none();
        let of_slot = || predicates.iter().filter(|numbered| numbered.predicate.slot == *slot);
        let is_equal =
            of_slot().find(|numbered| matches!(numbered.predicate.test, ColumnTest::Equal { .. }));
        let equal = is_equal.or_else(|| of_slot().find(|numbered| fits_list(numbered, &found)));
        if let Some(equal) = equal {
            extend_equal(&mut found, equal, *slot, is_whole);
            continue;
        }
        of_slot().for_each(|numbered| narrow(&mut found, numbered, is_whole));
        break;
    }
    found.is_point = found.equal_parts == index.parts.len()
        && index.parts.iter().all(|part| part.prefix.is_none())
        && found.ranges.iter().all(|range| range.null_safe.iter().all(|null_safe| !null_safe));
    (found.equal_parts > 0 || found.is_bounded).then_some(found)
}

fn fits_list(numbered: &Numbered, found: &IndexRanges) -> bool {
    match &numbered.predicate.test {
        ColumnTest::In(list) => list.len() * found.ranges.len() <= MOST_RANGES,
        _ => false,
    }
}

fn extend_equal(found: &mut IndexRanges, numbered: &Numbered, slot: Slot, is_whole: bool) {
    let predicate = &numbered.predicate;
    match &predicate.test {
        ColumnTest::Equal { value, null_safe } => {
            for range in &mut found.ranges {
                range.equal.push(value.clone());
                range.null_safe.push(*null_safe);
            }
            if is_whole {
                found.fixed.push(slot);
            }
        }
        ColumnTest::In(list) => {
            let with = |range: &RangePlan, value: &Expression| {
                let mut range = range.clone();
                range.equal.push(value.clone());
                range.null_safe.push(false);
                range
            };
            found.ranges = found
                .ranges
                .iter()
                .flat_map(|range| list.iter().map(move |value| with(range, value)))
                .collect();
        }
        ColumnTest::Range { .. } => return,
    }
    found.equal_parts += 1;
    if predicate.is_exact && is_whole {
        found.consumed.push(numbered.number);
    }
}

/// Adds the bounds of a predicate where there are none yet.
fn narrow(found: &mut IndexRanges, numbered: &Numbered, is_whole: bool) {
    let ColumnTest::Range { lower, upper } = &numbered.predicate.test else { return };
    let is_null = |bound: &(Expression, bool)| {
        matches!(bound.0.kind, ExpressionKind::Literal(firn_sql_types::Datum::Null))
    };
    let range = &found.ranges[0];
    let is_free = |present: &Option<(Expression, bool)>, new: &Option<(Expression, bool)>| {
        new.is_none() || present.as_ref().is_none_or(is_null) || new.as_ref().is_some_and(is_null)
    };
    let takes_all = is_free(&range.lower, lower) && is_free(&range.upper, upper);
    for range in &mut found.ranges {
        if range.lower.as_ref().is_none_or(is_null) && lower.is_some() {
            range.lower.clone_from(lower);
        }
        if range.upper.is_none() {
            range.upper.clone_from(upper);
        }
    }
    found.is_bounded = true;
    if takes_all && numbered.predicate.is_exact && is_whole {
        found.consumed.push(numbered.number);
    }
}
