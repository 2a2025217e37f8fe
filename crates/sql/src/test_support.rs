//! A node's catalog and a session's variables, for the tests of plans and of their execution.

use std::sync::Arc;

use firn_api::Incarnation;
use firn_api::rows::DatabaseNode;
use firn_base::Environment;
use firn_base::disk::SpillDirectory;
use firn_test_node::{NodeSupport, add_schema};
use rustc_hash::FxHashMap;

use crate::catalog::session::NoSessionTables;
use crate::catalog::{Catalog, SessionCatalog, SessionTables};
use crate::error::{Result, SqlError};
use crate::execute::SessionState;
use crate::types::{Datum, SqlType};

/// A place for temporary files in a node's directory.
pub(crate) fn spill_directory(support: &NodeSupport) -> SpillDirectory {
    let disk = Environment::system().disk;
    SpillDirectory::open(disk, &support.folder().join("spill"), 1 << 40).unwrap()
}

/// The catalog of an empty node, with a new schema `test`.
pub(crate) fn catalog_with_schema(node: &Arc<dyn DatabaseNode>) -> SessionCatalog {
    add_schema(&**node, "test");
    SessionCatalog::new(Arc::new(Catalog::new(Arc::clone(node), Incarnation::default())), 1)
}

/// A session that has user variables and nothing else.
#[derive(Default)]
pub(crate) struct UserVariables {
    values: FxHashMap<String, Datum>,
}

impl SessionState for UserVariables {
    fn user_variable(&self, name: &str) -> Result<Datum> {
        Ok(self.values.get(name).cloned().unwrap_or_default())
    }

    fn set_user_variable(&mut self, name: &str, value: Datum, _ty: &SqlType) {
        self.values.insert(name.to_owned(), value);
    }

    fn system_variable(&self, name: &str, _global: bool) -> Result<Datum> {
        Err(SqlError::new(1193, format!("Unknown system variable '{name}'")))
    }

    fn tables(&self) -> &dyn SessionTables {
        &NoSessionTables
    }
}
