//! What a name in `FROM` refers to: what the session's catalog has, and virtual tables after it.
//!
//! ```text
//!   relation("test", "t")    temporary t? ──► stored t? ──► virtual t? ──► 1146
//! ```

use std::sync::Arc;

use firn_sql_types::error::{Result, SqlError};

use super::information_schema;
use super::lookup::{no_such_table, unknown_schema};
use super::model::TableModel;
use super::session::SessionCatalog;
use super::virtual_schemas::proper_schema;
use super::virtual_table::VirtualTable;

/// What a name in `FROM` refers to.
#[derive(Debug, Clone)]
pub enum Relation {
    /// A table or view.
    Table(Arc<TableModel>),
    /// A table whose rows are generated.
    Virtual(Arc<dyn VirtualTable>),
}

impl SessionCatalog {
    /// What a name in `FROM` refers to. Waits while DDL on it commits.
    ///
    /// # Errors
    /// 1146 if the table does not exist, 1049 if not even the schema does.
    pub fn relation(&self, schema: &str, name: &str) -> Result<Relation> {
        if let Some(table) = self.find_table(schema, name)? {
            return Ok(Relation::Table(table));
        }
        if let Some(table) = information_schema::find(schema, name) {
            return Ok(Relation::Virtual(table));
        }
        if self.has_schema(schema)? {
            return Err(match proper_schema(schema) {
                Some("information_schema") => unknown_information_schema_table(name),
                _ => no_such_table(schema, name),
            });
        }
        Err(unknown_schema(schema))
    }
}

fn unknown_information_schema_table(name: &str) -> SqlError {
    let name = name.to_uppercase();
    SqlError::new(1109, format!("Unknown table '{name}' in information_schema"))
}
