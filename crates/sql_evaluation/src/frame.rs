//! What an expression reads and changes while it is evaluated.

use std::sync::Arc;

use firn_sql_logical::expression::{Slot, Subquery};
use firn_sql_types::error::Result;
use firn_sql_types::{Datum, EvaluationContext, SqlType};

use crate::known_patterns::KnownPatterns;

/// The surroundings of an evaluation: a statement's execution, or a row at a database node.
pub trait Frame {
    /// The value of a slot; `None` if there is no such slot.
    fn slot(&self, slot: Slot) -> Option<&Datum>;
    /// Puts a value in a slot.
    fn set_slot(&mut self, slot: Slot, value: Datum);
    /// The value of a placeholder, or of a literal that was lifted out of the text.
    fn parameter(&self, number: u32) -> Option<&Datum>;
    /// Modes, time zone, warnings.
    fn context(&self) -> &EvaluationContext;
    fn patterns(&self) -> &KnownPatterns;
    fn patterns_mut(&mut self) -> &mut KnownPatterns;
    /// The value of a subquery in the place of a single value.
    ///
    /// # Errors
    /// Errors of the subquery.
    fn subquery(&mut self, subquery: &Subquery) -> Result<Datum>;
    /// `@name`
    ///
    /// # Errors
    /// If there are no user variables here.
    fn user_variable(&self, name: &str) -> Result<Datum>;
    /// `@name := value`
    fn set_user_variable(&mut self, name: &str, value: Datum, ty: &SqlType);
    /// `@@name`
    ///
    /// # Errors
    /// 1193 if there is no such variable.
    fn system_variable(&mut self, name: &Arc<str>, global: bool) -> Result<Datum>;
}
