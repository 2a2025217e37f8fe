//! How many rows conditions leave: from statistics if there are any, otherwise by rules of thumb.

use firn_sql_catalog::model::{IndexModel, TableModel};
use firn_sql_catalog::statistics::ValueRange;
use firn_sql_logical::expression::{CompareOperator, Expression, ExpressionKind, IsTest, Slot};
use firn_sql_types::Datum;

use super::ranges::IndexRanges;
use crate::predicates::{ColumnTest, Columns};
use crate::visit::{SlotSet, reads};

const EQUAL: f64 = 0.1;
const ONE_BOUND: f64 = 1.0 / 3.0;
const TWO_BOUNDS: f64 = 1.0 / 9.0;
const UNKNOWN: f64 = 0.5;

/// The least number of rows that plans assume for a table. Plans are cached while tables grow, and
/// the best plan for an empty table soon becomes a bad one.
const FEWEST_ROWS: f64 = 100.0;

/// The number of rows that plans assume for a table.
pub(crate) fn rows_of(table: &TableModel) -> f64 {
    table.statistics.rows().max(FEWEST_ROWS)
}

/// The number of distinct values that plans assume for the first columns of an index.
fn distinct_of(table: &TableModel, index: &IndexModel, parts: usize) -> f64 {
    if table.statistics.rows() >= FEWEST_ROWS {
        return table.statistics.distinct(index.number, parts).max(1.0);
    }
    let is_key = index.unique && parts >= index.parts.len();
    if is_key { FEWEST_ROWS } else { FEWEST_ROWS / 10.0 }
}

/// Estimates for one statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimator<'a> {
    /// The values of parameters, if the statement is planned for an execution; shorter if not.
    pub parameters: &'a [Datum],
}

impl Estimator<'_> {
    fn value<'e>(&'e self, expression: &'e Expression) -> Option<&'e Datum> {
        match &expression.kind {
            ExpressionKind::Literal(datum) => Some(datum),
            ExpressionKind::Parameter(number) => self.parameters.get(*number as usize),
            _ => None,
        }
    }

    /// The share of a table's rows for which all conditions hold.
    #[must_use]
    pub(crate) fn share(
        &self,
        table: &TableModel,
        slots: &[Option<Slot>],
        conditions: &[Expression],
    ) -> f64 {
        conditions.iter().map(|condition| self.share_of(table, slots, condition)).product()
    }

    fn share_of(&self, table: &TableModel, slots: &[Option<Slot>], condition: &Expression) -> f64 {
        match &condition.kind {
            ExpressionKind::And(list) => self.share(table, slots, list),
            ExpressionKind::Or(list) => {
                let none: f64 =
                    list.iter().map(|side| 1.0 - self.share_of(table, slots, side)).product();
                1.0 - none
            }
            ExpressionKind::Not(inner) => 1.0 - self.share_of(table, slots, inner),
            _ => self
                .share_by_column(table, slots, condition)
                .unwrap_or_else(|| share_of_all(condition)),
        }
    }

    fn share_by_column(
        &self,
        table: &TableModel,
        slots: &[Option<Slot>],
        condition: &Expression,
    ) -> Option<f64> {
        let own: SlotSet = slots.iter().flatten().copied().collect();
        let typed: Vec<(Slot, &firn_sql_types::SqlType)> = slots
            .iter()
            .zip(0_u16..)
            .filter_map(|(slot, ordinal)| Some(((*slot)?, &table.by_ordinal(ordinal)?.ty)))
            .collect();
        let predicate = Columns { slots: &typed, own: &own }.predicate(condition)?;
        let ordinal = ordinal_of(slots, predicate.slot)?;
        match &predicate.test {
            ColumnTest::Equal { value, null_safe } => {
                Some(self.equal(table, ordinal, value, *null_safe))
            }
            ColumnTest::In(list) => {
                let each = list.iter().map(|value| self.equal(table, ordinal, value, false));
                Some(each.sum::<f64>().min(1.0))
            }
            ColumnTest::Range { lower, upper } => Some(self.between(table, ordinal, lower, upper)),
        }
    }

    fn equal(&self, table: &TableModel, ordinal: u16, value: &Expression, null_safe: bool) -> f64 {
        let datum = self.value(value);
        if null_safe && datum.is_some_and(Datum::is_null) {
            return table.statistics.null_fraction(ordinal).unwrap_or(EQUAL);
        }
        let known =
            datum.and_then(|datum| table.statistics.selectivity(ordinal, ValueRange::Equal(datum)));
        known.unwrap_or_else(|| 1.0 / distinct_of_column(table, ordinal))
    }

    fn between(
        &self,
        table: &TableModel,
        ordinal: u16,
        lower: &Option<(Expression, bool)>,
        upper: &Option<(Expression, bool)>,
    ) -> f64 {
        let bound = |bound: &'_ Option<(Expression, bool)>| {
            let bound = bound.as_ref()?;
            let value = self.value(&bound.0).filter(|value| !value.is_null())?;
            Some((value.clone(), bound.1))
        };
        let (low, high) = (bound(lower), bound(upper));
        let is_null = |bound: &Option<(Expression, bool)>| {
            bound.as_ref().is_none_or(|bound| self.value(&bound.0).is_some_and(Datum::is_null))
        };
        let asked = ValueRange::Between {
            lower: low.as_ref().map(|(value, inclusive)| (value, *inclusive)),
            upper: high.as_ref().map(|(value, inclusive)| (value, *inclusive)),
        };
        let is_known = low.is_some() || is_null(lower);
        let is_known =
            is_known && (high.is_some() || is_null(upper)) && (low.is_some() || high.is_some());
        let known = is_known.then(|| table.statistics.selectivity(ordinal, asked)).flatten();
        known.unwrap_or(match (is_null(lower), is_null(upper)) {
            (true, true) => 0.9,
            (false, false) => TWO_BOUNDS,
            _ => ONE_BOUND,
        })
    }

    /// Rows that ranges of an index hold.
    #[must_use]
    pub(crate) fn examined(
        &self,
        table: &TableModel,
        index: &IndexModel,
        found: &IndexRanges,
    ) -> f64 {
        let rows = rows_of(table);
        let each = found.ranges.iter().map(|range| {
            let count = range.equal.len();
            let known = match (count, range.equal.first()) {
                (1, Some(value)) => {
                    Some(self.equal(table, index.parts[0].ordinal, value, range.null_safe[0]))
                }
                _ => None,
            };
            let equal = match count {
                0 => 1.0,
                _ => 1.0 / distinct_of(table, index, count),
            };
            let bounded = range.lower.is_some() || range.upper.is_some();
            let part = index.parts.get(count).filter(|_| bounded);
            let between = part
                .map_or(1.0, |part| self.between(table, part.ordinal, &range.lower, &range.upper));
            rows * known.map_or(equal, |known| known.min(equal * 10.0)) * between
        });
        each.sum::<f64>().clamp(1.0_f64.min(rows), rows)
    }

    /// The share of the rows in an index's ranges for which the remaining conditions hold.
    #[must_use]
    pub(crate) fn rest_share(
        &self,
        table: &TableModel,
        slots: &[Option<Slot>],
        rest: &[Expression],
        index: &IndexModel,
        found: &IndexRanges,
    ) -> f64 {
        let used = found.equal_parts + usize::from(found.is_bounded);
        let parts = index.parts.iter().take(used);
        let covered: SlotSet = parts
            .filter_map(|part| slots.get(usize::from(part.ordinal)).copied().flatten())
            .collect();
        let own: SlotSet = slots.iter().flatten().copied().collect();
        let is_used = |condition: &&Expression| {
            let mine = reads(condition).intersection(&own);
            mine.is_empty() || !mine.is_subset(&covered)
        };
        rest.iter()
            .filter(is_used)
            .map(|condition| self.share_of(table, slots, condition))
            .product()
    }
}

fn ordinal_of(slots: &[Option<Slot>], slot: Slot) -> Option<u16> {
    slots.iter().position(|other| *other == Some(slot)).and_then(|place| u16::try_from(place).ok())
}

/// How many values a column has, if an index knows; ten otherwise.
fn distinct_of_column(table: &TableModel, ordinal: u16) -> f64 {
    let first =
        |index: &&IndexModel| index.parts.first().is_some_and(|part| part.ordinal == ordinal);
    let known = table.indexes.iter().filter(first);
    let most = known.map(|index| distinct_of(table, index, 1)).fold(0.0, f64::max);
    if most > 0.0 { most.max(1.0) } else { 1.0 / EQUAL }
}

/// The share of rows for which a condition holds if nothing is known about it.
#[must_use]
pub(crate) fn share_of_all(condition: &Expression) -> f64 {
    match &condition.kind {
        ExpressionKind::Literal(Datum::Int(0) | Datum::Null) => 0.0,
        ExpressionKind::Literal(_) => 1.0,
        ExpressionKind::Compare { operator, .. } => match operator {
            CompareOperator::Equal | CompareOperator::NullSafeEqual => EQUAL,
            CompareOperator::NotEqual => 1.0 - EQUAL,
            _ => ONE_BOUND,
        },
        ExpressionKind::InList { list, negated, .. } => {
            let share = (list.len() as f64 * EQUAL).min(UNKNOWN);
            if *negated { 1.0 - share } else { share }
        }
        ExpressionKind::Like { negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        ExpressionKind::Is { test: IsTest::Null, negated, .. } => {
            if *negated {
                0.9
            } else {
                0.1
            }
        }
        ExpressionKind::And(list) => list.iter().map(share_of_all).product(),
        ExpressionKind::Or(list) => {
            1.0 - list.iter().map(|side| 1.0 - share_of_all(side)).product::<f64>()
        }
        ExpressionKind::Not(inner) => 1.0 - share_of_all(inner),
        _ => UNKNOWN,
    }
}
