//! What clients see of slots and subqueries, where the type does not say it.

use firn_sql_logical::expression::Slot;
use firn_sql_types::Display;
use rustc_hash::FxHashMap;

/// The displays that were noted while names were resolved.
#[derive(Debug, Default)]
pub(crate) struct Displays {
    slots: FxHashMap<Slot, Display>,
    /// By number of a subquery: that of its only column.
    subqueries: Vec<Option<Display>>,
}

impl Displays {
    /// What clients see of a slot's values; `None` if they follow its type.
    pub(crate) fn of_slot(&self, slot: Slot) -> Option<Display> {
        self.slots.get(&slot).copied()
    }

    pub(crate) fn set_slot(&mut self, slot: Slot, display: Display) {
        self.slots.insert(slot, display);
    }

    /// What clients see of the only column of a subquery.
    pub(crate) fn of_subquery(&self, number: usize) -> Option<Display> {
        self.subqueries.get(number).copied().flatten()
    }

    /// Adds a subquery; returns its number.
    pub(crate) fn add_subquery(&mut self, column: Option<Display>) -> usize {
        self.subqueries.push(column);
        self.subqueries.len() - 1
    }
}
