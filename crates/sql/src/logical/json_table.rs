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
use crate::functions::JsonPath;
use crate::types::{Datum, SqlType};

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
    pub(crate) path: JsonPath,
    /// The columns that are read from each.
    pub(crate) columns: Vec<JsonColumn>,
    /// `NESTED PATH`.
    pub(crate) nested: Vec<JsonLevel>,
}

/// A column of a `JSON_TABLE`.
#[derive(Debug)]
pub(crate) struct JsonColumn {
    /// Its place in the row.
    pub(crate) number: usize,
    pub(crate) name: Box<str>,
    pub(crate) ty: SqlType,
    pub(crate) source: JsonColumnSource,
}

/// The content of a column of a `JSON_TABLE`.
#[derive(Debug)]
pub(crate) enum JsonColumnSource {
    /// `FOR ORDINALITY`: the number of the value in its level, from 1.
    Ordinality,
    /// `EXISTS PATH`: whether the path selects anything.
    Exists(JsonPath),
    /// `PATH`: the value that it selects.
    Value { path: JsonPath, on_empty: Otherwise, on_error: Otherwise },
}

/// The replacement for a value that is missing, or not of the column's type.
#[derive(Debug, Clone)]
pub(crate) enum Otherwise {
    Null,
    Error,
    /// A value of the column's type.
    Default(Datum),
}
