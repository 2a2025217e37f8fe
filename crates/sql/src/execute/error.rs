//! Errors of a database node, as clients see them.

use firn_format::key::KeyError;
use firn_format::row::RowError;

use crate::error::SqlError;
pub use crate::error::from_rows;

/// Stored bytes that are not a row of their table, or values that do not fit one.
#[must_use]
pub fn from_row(error: RowError) -> SqlError {
    match error {
        RowError::TooLarge { .. } => SqlError::row_too_large(8126, 0),
        error if error.is_corruption() => SqlError::new(1034, format!("Damaged row: {error}")),
        error => SqlError::new(1105, format!("Unknown error: {error}")),
    }
}

/// Values that cannot form a key.
#[must_use]
pub fn from_key(error: KeyError) -> SqlError {
    SqlError::new(1105, format!("Unknown error: {error}"))
}
