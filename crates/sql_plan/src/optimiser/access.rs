//! The access paths to a table's rows, and their costs.
//!
//! ```text
//!   t (primary key id; index a; index b, c)   WHERE a = ? AND b > ?   ORDER BY b
//!     full          rows(t)
//!     a = ?         rows / distinct(a), each with a look at the row
//!     b > ?         a third of the rows, in the order wanted
//! ```
//!
//! The unit of cost is one row read in sequence from the clustered index.

use std::sync::Arc;

use firn_api::rows::Direction;

use firn_sql_catalog::model::{IndexModel, TableModel};
use firn_sql_logical::IndexHints;
use firn_sql_logical::expression::{Expression, ExpressionKind, Slot, SortKey};
use firn_sql_types::SqlType;

use super::ranges::{IndexRanges, PartSlots, ranges_of};
use super::selectivity::{Estimator, rows_of};
use crate::Access;
use crate::predicates::Columns;
use crate::visit::SlotSet;

/// Descending a tree.
const SEEK: f64 = 1.5;
/// Fetching a row that an index entry points to.
const LOOKUP: f64 = 2.0;
/// Locking a row that turns out not to be wanted, and making others wait for it.
const LOCK: f64 = 3.0;
/// Reading an entry of a covering index.
const ENTRY: f64 = 0.6;

/// An access path to a table's rows.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub access: Access,
    pub direction: Direction,
    /// Whether rows come from the index alone.
    pub covered: bool,
    /// Rows that are examined.
    pub examined: f64,
    /// Rows for which all conditions hold.
    pub rows: f64,
    /// What it costs once.
    pub cost: f64,
    /// Numbers of conditions that need not be checked again.
    pub consumed: Vec<usize>,
    /// Whether rows come in the requested order.
    pub ordered: bool,
    /// At most one row comes.
    pub single: bool,
}

/// The requirements for a table's access path.
pub(crate) struct Wanted<'a> {
    pub table: &'a Arc<TableModel>,
    /// The slot of each column that is read, by ordinal.
    pub slots: &'a [Option<Slot>],
    /// Conditions that can be checked once a row is there.
    pub conditions: &'a [Expression],
    /// Which indexes may be used.
    pub hints: &'a IndexHints,
    /// Examined rows are locked.
    pub locking: bool,
    pub whole_row: bool,
    /// The order that would save a sort.
    pub order: &'a [SortKey],
    /// Values of parameters, for estimates.
    pub estimator: &'a Estimator<'a>,
}

impl Wanted<'_> {
    /// All reasonable access paths, the full scan first.
    #[must_use]
    pub(crate) fn candidates(&self) -> Vec<Candidate> {
        let columns: Vec<(Slot, &SqlType)> = self.read_columns();
        let own: SlotSet = self.slots.iter().flatten().copied().collect();
        let columns = Columns { slots: &columns, own: &own };
        let mut found = vec![self.full(None)];
        for index in self.table.indexes.iter().filter(|index| self.may_use(index)) {
            let parts: PartSlots = index.parts.iter().map(|part| self.slot(part.ordinal)).collect();
            match ranges_of(index, &parts, &columns, self.conditions) {
                Some(ranges) => found.push(self.by_ranges(index, ranges)),
                None if !index.primary => {
                    let full = self.full(Some(index));
                    if full.ordered || full.covered {
                        found.push(full);
                    }
                }
                None => {}
            }
            if found.last().is_some_and(|last| last.single) {
                break;
            }
        }
        if found.len() == 1 {
            found.extend(self.union(&columns));
        }
        self.apply_force(&mut found);
        found
    }

    fn apply_force(&self, found: &mut Vec<Candidate>) {
        let is_full = |one: &Candidate| matches!(one.access, Access::Full { index: None });
        if self.hints.force && found.iter().any(|one| !is_full(one)) {
            found.retain(|one| !is_full(one));
        }
    }

    fn may_use(&self, index: &IndexModel) -> bool {
        index.visible && index.special.is_none() && self.hints.allows(index.number)
    }

    fn slot(&self, ordinal: u16) -> Option<Slot> {
        self.slots.get(usize::from(ordinal)).copied().flatten()
    }

    fn read_columns(&self) -> Vec<(Slot, &SqlType)> {
        let numbered = self.slots.iter().zip(0_u16..);
        numbered
            .filter_map(|(slot, ordinal)| Some(((*slot)?, &self.table.by_ordinal(ordinal)?.ty)))
            .collect()
    }

    fn is_covered_by(&self, index: &IndexModel) -> bool {
        if self.whole_row || index.primary {
            return false;
        }
        let primary = self.table.primary_key();
        let has = |ordinal: u16| {
            let parts = index.parts.iter().chain(primary.iter().flat_map(|primary| &primary.parts));
            parts.into_iter().any(|part| part.ordinal == ordinal && part.prefix.is_none())
        };
        self.slots.iter().zip(0_u16..).all(|(slot, ordinal)| slot.is_none() || has(ordinal))
    }

    fn full(&self, index: Option<&IndexModel>) -> Candidate {
        let examined = rows_of(self.table);
        let covered = index.is_some_and(|index| self.is_covered_by(index));
        let rows = examined * self.estimator.share(self.table, self.slots, self.conditions);
        let each = match (index, covered) {
            (None, _) => 1.0,
            (Some(_), true) => ENTRY,
            (Some(_), false) => 1.0 + LOOKUP,
        };
        let order = match index {
            Some(index) => self.order_of(index, &[]),
            None => self.table.primary_key().and_then(|primary| self.order_of(primary, &[])),
        };
        Candidate {
            access: Access::Full { index: index.map(|index| index.number) },
            direction: order.unwrap_or_default(),
            covered,
            examined,
            rows,
            cost: SEEK + examined * (each + self.lock_cost()),
            consumed: Vec::new(),
            ordered: order.is_some(),
            single: false,
        }
    }

    fn by_ranges(&self, index: &IndexModel, found: IndexRanges) -> Candidate {
        let covered = self.is_covered_by(index);
        let is_key = found.is_point && index.unique;
        let single = is_key && found.ranges.len() == 1;
        let examined = match is_key {
            true => found.ranges.len() as f64,
            false => self.estimator.examined(self.table, index, &found),
        };
        let rest: Vec<Expression> = self.rest(&found.consumed);
        let share = self.estimator.rest_share(self.table, self.slots, &rest, index, &found);
        let each = match (index.primary, covered) {
            (true, _) => 1.0,
            (false, true) => ENTRY,
            (false, false) => 1.0 + LOOKUP,
        };
        let order = self.order_of(index, &found.fixed);
        let cost = found.ranges.len() as f64 * SEEK + examined * (each + self.lock_cost());
        Candidate {
            direction: order.unwrap_or_default(),
            covered,
            examined,
            rows: examined * share,
            cost,
            ordered: order.is_some() || single,
            single,
            consumed: found.consumed.clone(),
            access: access_by(index, found, single),
        }
    }

    fn lock_cost(&self) -> f64 {
        if self.locking { LOCK } else { 0.0 }
    }

    fn rest(&self, consumed: &[usize]) -> Vec<Expression> {
        let numbered = self.conditions.iter().enumerate();
        let rest = numbered.filter(|(number, _)| !consumed.contains(number));
        rest.map(|(_, condition)| condition.clone()).collect()
    }

    /// Whether an index returns the requested order, and in which direction it is then read; slots
    /// in `fixed` have one value.
    fn order_of(&self, index: &IndexModel, fixed: &[Slot]) -> Option<Direction> {
        if self.order.is_empty() {
            return None;
        }
        let mut parts = index.parts.iter();
        let mut direction = None;
        for key in self.order {
            let ExpressionKind::Slot(slot) = key.expression.kind else { return None };
            if fixed.contains(&slot) {
                continue;
            }
            let is_fixed = |ordinal| self.slot(ordinal).is_some_and(|slot| fixed.contains(&slot));
            let Some(part) = parts.find(|part| !is_fixed(part.ordinal)) else {
                // After all columns of a unique key, every order holds.
                return is_never_null(self.table, index).then(|| direction.unwrap_or_default());
            };
            if self.slot(part.ordinal) != Some(slot) || part.prefix.is_some() {
                return None;
            }
            let this = match key.descending == part.descending {
                true => Direction::Forward,
                false => Direction::Backward,
            };
            if direction.is_some_and(|direction| direction != this) {
                return None;
            }
            direction = Some(this);
        }
        Some(direction.unwrap_or_default())
    }

    /// Rows that each side of an `OR` finds by its own index.
    fn union(&self, columns: &Columns<'_>) -> Option<Candidate> {
        let sides = self.conditions.iter().find_map(|condition| match &condition.kind {
            ExpressionKind::Or(sides) => Some(sides),
            _ => None,
        })?;
        let (mut parts, mut examined, mut cost) = (Vec::new(), 0.0, 0.0);
        for side in sides {
            let conditions = match &side.kind {
                ExpressionKind::And(list) => list.clone(),
                _ => vec![side.clone()],
            };
            let best = self.best_side(columns, &conditions)?;
            examined += best.examined;
            cost += best.cost;
            parts.push(best.access);
        }
        let rows = rows_of(self.table);
        let share = self.estimator.share(self.table, self.slots, self.conditions);
        Some(Candidate {
            access: Access::Union(parts),
            direction: Direction::Forward,
            covered: false,
            examined,
            rows: (rows * share).min(examined),
            cost: cost * 1.1,
            consumed: Vec::new(),
            ordered: false,
            single: false,
        })
    }

    fn best_side(&self, columns: &Columns<'_>, conditions: &[Expression]) -> Option<Candidate> {
        let side = Wanted { conditions, order: &[], ..*self };
        let usable = self.table.indexes.iter().filter(|index| self.may_use(index));
        let found = usable.filter_map(|index| {
            let parts: PartSlots = index.parts.iter().map(|part| self.slot(part.ordinal)).collect();
            let ranges = ranges_of(index, &parts, columns, conditions)?;
            Some(side.by_ranges(index, ranges))
        });
        found.min_by(|one, other| one.cost.total_cmp(&other.cost))
    }
}

fn access_by(index: &IndexModel, found: IndexRanges, single: bool) -> Access {
    let number = (!index.primary).then_some(index.number);
    let mut ranges = found.ranges;
    match single {
        true => Access::Point { index: number, key: ranges.swap_remove(0).equal },
        false => Access::Ranges { index: number, ranges },
    }
}

/// Whether an index is unique and no column of it can be NULL.
fn is_never_null(table: &TableModel, index: &IndexModel) -> bool {
    let is_null = |ordinal| table.by_ordinal(ordinal).is_none_or(|column| column.ty.nullable);
    index.unique && index.parts.iter().all(|part| part.prefix.is_none() && !is_null(part.ordinal))
}
