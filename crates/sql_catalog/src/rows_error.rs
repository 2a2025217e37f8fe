//! What a database node answers, as a client is told it.

use firn_api::rows::RowsError;
use firn_sql_types::error::SqlError;

/// What a node answered, as a client is told. Keys are told as names by who knows the table.
pub(crate) fn from_rows(error: RowsError) -> SqlError {
    match error.mysql_code() {
        1118 => SqlError::row_too_large(8126, 0),
        code => SqlError::new(code, error.to_string()),
    }
}
