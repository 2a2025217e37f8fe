//! How the rows of a result leave the executor.
//!
//! ```text
//!   begin_row ─► stored | datum, once for each column ─► end_row     and again, row by row
//! ```

use firn_format::value::ValueRef;

use crate::error::Result;
use crate::logical::OutputColumn;
use crate::types::{Datum, SqlType};

/// Receives a result's rows, value by value.
pub trait ResultSink {
    /// The result begins; called before the first row, and again after [`ResultSink::restart`].
    ///
    /// # Errors
    /// If the receiver no longer takes the result; the statement ends with it.
    fn columns(&mut self, columns: &[OutputColumn]) -> Result<()>;
    /// A row begins.
    ///
    /// # Errors
    /// As [`ResultSink::columns`].
    fn begin_row(&mut self) -> Result<()>;
    /// A column's value as its table stores it: a `TIMESTAMP` is in UTC, text is in the column's
    /// character set.
    ///
    /// # Errors
    /// As [`ResultSink::columns`], and bytes that are not a value of the type.
    fn stored(&mut self, value: ValueRef<'_>, ty: &SqlType) -> Result<()>;
    /// A computed value.
    ///
    /// # Errors
    /// As [`ResultSink::columns`].
    fn datum(&mut self, value: &Datum, ty: &SqlType) -> Result<()>;
    /// A whole row of values as their table stores them.
    ///
    /// # Errors
    /// As [`ResultSink::stored`].
    fn stored_row(&mut self, row: &[(ValueRef<'_>, &SqlType)]) -> Result<()> {
        self.begin_row()?;
        for (value, ty) in row {
            self.stored(*value, ty)?;
        }
        self.end_row()
    }
    /// The row is complete.
    ///
    /// # Errors
    /// As [`ResultSink::columns`].
    fn end_row(&mut self) -> Result<()>;
    /// Discards the rows so far, because the statement is about to run again; false if they are
    /// gone.
    fn restart(&mut self) -> bool {
        false
    }
}
