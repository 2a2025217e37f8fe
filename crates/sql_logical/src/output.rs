//! The columns of a result.

use std::sync::Arc;

use crate::expression::Expression;
use firn_sql_catalog::virtual_table_metadata::ReportedType;
use firn_sql_types::Display;

/// A column of a result.
#[derive(Debug, Clone)]
pub struct OutputColumn {
    pub value: Expression,
    /// Its name or alias.
    pub name: Arc<str>,
    /// The column, table and schema of origin, if it is a plain column.
    pub origin: Option<ColumnOrigin>,
    /// The length of its values for clients; `None`: as its type says.
    pub display: Option<Display>,
}

/// Where a result's column comes from, for the metadata that clients get.
#[derive(Debug, Clone)]
pub struct ColumnOrigin {
    pub schema: Arc<str>,
    /// The table's alias.
    pub table: Arc<str>,
    /// The table's own name.
    pub original_table: Arc<str>,
    /// The column's own name.
    pub original_name: Arc<str>,
    /// `PRI_KEY`, `UNIQUE_KEY`, `MULTIPLE_KEY`, `AUTO_INCREMENT` and others, as in the protocol.
    pub flags: u16,
    /// What clients see of its values instead of what the type says.
    pub reported: Option<ReportedType>,
}
