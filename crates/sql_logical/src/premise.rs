//! Conditions on parameters under which the bound statement is valid.

use firn_sql_types::SqlType;

/// A parameter that is compared with a column of dates, times, years or texts, as the column stores
/// it.
#[derive(Debug, Clone)]
pub struct Premise {
    /// The parameter's number, from 0.
    pub parameter: u32,
    pub ty: SqlType,
    /// The type of the column.
    pub column: SqlType,
}
