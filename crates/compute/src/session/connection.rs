//! The settings of a connection: the part of a session that can be written down and resumed by
//! another session, see [`super::handover`].
//!
//! ```text
//!   ConnectionState      variables, schema        moves
//!   PreparedStatements   texts                    move; plans are made again
//!   StatementRunner      rights, caches           made again
//!   Transactions         the open transaction     stays: it is the database node's
//! ```

use std::sync::Arc;

use firn_sql::grammar::ast::TableName;
use firn_sql::types::{Datum, SqlType};
use rustc_hash::FxHashMap;

use crate::variables::SessionVariables;

pub(crate) struct ConnectionState {
    pub(crate) variables: SessionVariables,
    /// By name, in lower case.
    pub(crate) user_variables: FxHashMap<Arc<str>, (Datum, SqlType)>,
    /// The current schema.
    pub(crate) schema: Option<Arc<str>>,
    /// Counts changes of user variables and of roles.
    pub(crate) changes: u64,
}

impl ConnectionState {
    /// A connection without any settings.
    pub(crate) fn new(variables: SessionVariables) -> ConnectionState {
        ConnectionState {
            variables,
            user_variables: FxHashMap::default(),
            schema: None,
            changes: 0,
        }
    }

    /// The schema of a table's name; empty if it has none and there is no current one.
    pub(crate) fn schema_of(&self, table: &TableName) -> String {
        let named = table.schema.as_deref().or(self.schema.as_deref());
        named.unwrap_or("").to_owned()
    }

    /// Forgets everything but the current schema.
    pub(crate) fn reset(&mut self, variables: SessionVariables) {
        let (schema, changes) = (self.schema.take(), self.changes + 1);
        *self = ConnectionState { schema, changes, ..ConnectionState::new(variables) };
    }
}
