//! An execution as what its expressions are evaluated over.

use std::sync::Arc;

use firn_sql_evaluation::{Frame, KnownPatterns};

use crate::error::Result;
use crate::expression::{Slot, Subquery};
use crate::types::{Datum, EvaluationContext, SqlType};

use super::Execution;

impl Frame for Execution<'_> {
    #[inline]
    fn slot(&self, slot: Slot) -> Option<&Datum> {
        self.frame.slots.get(slot.0 as usize)
    }

    #[inline]
    fn set_slot(&mut self, slot: Slot, value: Datum) {
        self.frame.set(slot, value);
    }

    #[inline]
    fn parameter(&self, number: u32) -> Option<&Datum> {
        self.frame.parameters.get(number as usize)
    }

    #[inline]
    fn context(&self) -> &EvaluationContext {
        self.context
    }

    #[inline]
    fn patterns(&self) -> &KnownPatterns {
        &self.frame.patterns
    }

    #[inline]
    fn patterns_mut(&mut self) -> &mut KnownPatterns {
        &mut self.frame.patterns
    }

    fn subquery(&mut self, subquery: &Subquery) -> Result<Datum> {
        super::subquery::evaluate(subquery, self)
    }

    fn user_variable(&self, name: &str) -> Result<Datum> {
        self.session.user_variable(name)
    }

    fn set_user_variable(&mut self, name: &str, value: Datum, ty: &SqlType) {
        self.session.set_user_variable(name, value, ty);
    }

    fn system_variable(&mut self, name: &Arc<str>, global: bool) -> Result<Datum> {
        Execution::system_variable(self, name, global)
    }
}
