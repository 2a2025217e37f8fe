//! Tables by their names in statements.

use firn_sql::error::Result;
use firn_sql::grammar::ast::TableName;

use super::SqlSession;
use crate::accounts::Privilege;
use crate::accounts::need::{is_open, table_denied};

impl SqlSession {
    /// The schema of a table's name; empty if it has none and there is no current one.
    pub(super) fn schema_of(&self, table: &TableName) -> String {
        let named = table.schema.as_deref().or(self.state.connection.schema.as_deref());
        named.unwrap_or("").to_owned()
    }

    /// Refuses if the session may not know a table's columns.
    ///
    /// # Errors
    /// 1142
    pub(super) fn refuse_unseen(&self, schema: &str, table: &str) -> Result<()> {
        let is_temporary = || matches!(self.catalog.temporary_table(schema, table), Ok(Some(_)));
        let grants = &self.rights.grants;
        let reads = grants.on_schema(schema).contains(Privilege::SELECT);
        match reads || is_open(schema) || grants.has_own(schema, table) || is_temporary() {
            true => Ok(()),
            false => Err(table_denied("SELECT", table, &self.rights.who())),
        }
    }
}
