//! The values that expressions read: slots, parameters, and what is worked out once.

use std::sync::Arc;

use firn_sql_evaluation::KnownPatterns;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::expression::Slot;
use crate::types::Datum;

use super::execution::SessionState;

/// The values of one execution.
pub struct Frame<'a> {
    /// The values of the statement's slots.
    pub(crate) slots: Vec<Datum>,
    /// The values of placeholders and of lifted literals.
    pub parameters: &'a [Datum],
    /// Parsed patterns of `LIKE`.
    pub(crate) patterns: KnownPatterns,
    /// By name and whether the global value is meant.
    system_variables: FxHashMap<(Arc<str>, bool), Datum>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(slots: Vec<Datum>, parameters: &'a [Datum]) -> Frame<'a> {
        Frame {
            slots,
            parameters,
            patterns: KnownPatterns::default(),
            system_variables: FxHashMap::default(),
        }
    }

    /// Puts a value in a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, value: Datum) {
        self.slots[slot.0 as usize] = value;
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Datum {
        &self.slots[slot.0 as usize]
    }

    /// Copies of slots' values.
    pub(crate) fn save(&self, slots: &[Slot]) -> Box<[Datum]> {
        slots.iter().map(|slot| self.get(*slot).clone()).collect()
    }

    /// Puts values back in slots.
    pub(crate) fn restore(&mut self, slots: &[Slot], values: impl IntoIterator<Item = Datum>) {
        for (slot, value) in slots.iter().zip(values) {
            self.set(*slot, value);
        }
    }

    /// The value of a system variable, as it was when the statement first read it.
    ///
    /// # Errors
    /// As [`SessionState::system_variable`].
    pub(crate) fn system_variable(
        &mut self,
        session: &dyn SessionState,
        name: &Arc<str>,
        global: bool,
    ) -> Result<Datum> {
        let key = (name.clone(), global);
        if let Some(value) = self.system_variables.get(&key) {
            return Ok(value.clone());
        }
        let value = session.system_variable(name, global)?;
        self.system_variables.insert(key, value.clone());
        Ok(value)
    }
}
