//! `JSON_TABLE`: rows made from a document.
//!
//! ```text
//!   JSON_TABLE(doc, '$[*]' COLUMNS (n FOR ORDINALITY, a INT PATH '$.a',
//!                                   NESTED PATH '$.b[*]' COLUMNS (…)))
//!     level '$[*]'   n, a        one row for each value that the path leads to
//!       level '$.b[*]'  …        and one for each below; one with NULLs if there is none
//!   levels side by side do not multiply: the rows of one have NULLs in the columns of the others
//! ```

use crate::expression::{Expression, Slot};
use firn_sql_functions::JsonPath;
use firn_sql_types::error::{Result, SqlError};
use firn_sql_types::{Datum, SqlType};

use super::OutputColumn;

/// `JSON_TABLE` in `FROM`.
#[derive(Debug)]
pub struct JsonTable {
    pub document: Expression,
    /// The columns that are read from it.
    pub level: JsonLevel,
    /// Where the columns go.
    pub slots: Vec<Slot>,
    /// The columns as those of a query.
    pub columns: Vec<OutputColumn>,
}

/// A path with the columns that are read below each value that it selects.
#[derive(Debug)]
pub struct JsonLevel {
    /// The path to the values, from the value around them.
    pub path: JsonPath,
    /// The columns that are read from each.
    pub columns: Vec<JsonColumn>,
    /// `NESTED PATH`.
    pub nested: Vec<JsonLevel>,
}

/// A column of a `JSON_TABLE`.
#[derive(Debug)]
pub struct JsonColumn {
    /// Its place in the row.
    pub number: usize,
    pub name: Box<str>,
    pub ty: SqlType,
    pub source: JsonColumnSource,
}

/// The content of a column of a `JSON_TABLE`.
#[derive(Debug)]
pub enum JsonColumnSource {
    /// `FOR ORDINALITY`: the number of the value in its level, from 1.
    Ordinality,
    /// `EXISTS PATH`: whether the path selects anything.
    Exists(JsonPath),
    /// `PATH`: the value that it selects.
    Value { path: JsonPath, on_empty: Otherwise, on_error: Otherwise },
}

/// The replacement for a value that is missing, or not of the column's type.
#[derive(Debug, Clone)]
pub enum Otherwise {
    Null,
    Error,
    /// A value of the column's type.
    Default(Datum),
}

impl Otherwise {
    /// The value for one that cannot be made.
    ///
    /// # Errors
    /// `error`, if it says so.
    pub fn instead_of(&self, error: SqlError) -> Result<Datum> {
        match self {
            Otherwise::Null => Ok(Datum::Null),
            Otherwise::Default(value) => Ok(value.clone()),
            Otherwise::Error => Err(error),
        }
    }
}
