//! Rows that are inserted as given, without an expression for each value.
//!
//! ```text
//!   literals of a long text ─┐
//!   lines of a file ─────────┴─► GivenRows ─► INSERT … VALUES (?, ?)  one plan, once for each row
//! ```

use crate::error::Result;
use crate::expression::ExpressionKind;
use crate::plan::{InsertPlan, NodeKind};
use crate::types::{Datum, EvaluationContext, SqlType};

/// Rows for an `INSERT`; each has as many values as the plan has columns.
pub trait GivenRows {
    /// Goes to the next row; false at the end. May block for input.
    ///
    /// # Errors
    /// Why the row cannot be read, or is invalid.
    fn advance(&mut self, context: &EvaluationContext) -> Result<bool>;
    /// A value of the row; take it only once.
    fn take(&mut self, column: usize) -> Datum;
    /// What type a value of the row has.
    fn ty(&self, column: usize) -> &SqlType;
    /// The number of rows; 0 if it is unknown.
    fn count(&self) -> u64;
    /// Goes back before the first row; false if the rows are gone.
    fn rewind(&mut self) -> bool {
        false
    }
}

impl InsertPlan {
    /// Whether the plan inserts exactly one row of parameters, in their order: it can then run with
    /// [`super::Execution::given`].
    #[must_use]
    pub fn takes_rows(&self) -> bool {
        let NodeKind::Values { rows, slots } = &self.source.root.kind else { return false };
        let [row] = &rows[..] else { return false };
        let is_parameter = |(number, value): (usize, &crate::expression::Expression)| matches!(value.kind, ExpressionKind::Parameter(of) if of as usize == number);
        let is_slot = |(number, column): (usize, &crate::logical::OutputColumn)| matches!(column.value.kind, ExpressionKind::Slot(of) if Some(&of) == slots.get(number));
        !row.is_empty()
            && row.len() == self.columns.len()
            && row.iter().enumerate().all(is_parameter)
            && self.source.columns.iter().enumerate().all(is_slot)
    }
}
