//! Rows that are inserted as given, without an expression for each value.
//!
//! ```text
//!   literals of a long text ─┐
//!   lines of a file ─────────┴─► GivenRows ─► INSERT … VALUES (?, ?)  one plan, once for each row
//! ```

use crate::error::Result;
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
    /// Whether the row ends before this value. Its column has NULL then, or a zero.
    fn is_missing(&self, _column: usize) -> bool {
        false
    }
    /// Whether the rows are those of a file: NULL stands for the default of a column that cannot be
    /// NULL, and a column that is not given needs no default.
    fn are_of_file(&self) -> bool {
        false
    }
    /// The values of the row were converted for their columns.
    ///
    /// # Errors
    /// Why the row is refused.
    fn converted(&self, _context: &EvaluationContext) -> Result<()> {
        Ok(())
    }
    /// The number of rows; 0 if it is unknown.
    fn count(&self) -> u64;
    /// Goes back before the first row; false if the rows are gone.
    fn rewind(&mut self) -> bool {
        false
    }
}
