//! A database node over a temporary directory and a session's variables, for the tests of plans and
//! of their execution.

use std::sync::Arc;

use firn_api::rows::DatabaseNode;
use firn_api::{Incarnation, Timestamps, WriterEpoch};
use firn_base::Environment;
use firn_engine::rows::EngineNode;
use firn_engine::{Engine, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_storage::local::{LocalOptions, LocalStorage};
use rustc_hash::FxHashMap;

use crate::catalog::session::NoSessionTables;
use crate::catalog::{Catalog, SessionCatalog, SessionTables};
use crate::collation::Collations;
use crate::error::{Result, SqlError};
use crate::execute::{SessionState, SpillDirectory};
use crate::types::{Datum, SqlType};

/// What a node stands on. The node works as long as this lives.
pub(crate) struct NodeSupport {
    pub(crate) spill: SpillDirectory,
    _engine: Engine,
    _storage: LocalStorage,
    _folder: tempfile::TempDir,
}

impl NodeSupport {
    /// An empty node.
    pub(crate) fn open() -> (NodeSupport, EngineNode) {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::system();
        let storage =
            LocalStorage::open(&environment, folder.path(), LocalOptions::default()).unwrap();
        let seams = Storage {
            log: storage.log.clone(),
            pages: storage.pages.clone(),
            epoch: WriterEpoch::Next,
            timestamps: Timestamps::Local,
            fabric: Arc::new(InProcessFabric::new(Epoch(1))),
        };
        let options = EngineOptions { buffer_pool_bytes: 32 << 20, ..EngineOptions::default() };
        let engine = Engine::open(&environment, seams, &options).unwrap();
        let node = EngineNode::new(engine.open_dictionary(Arc::new(Collations)).unwrap());
        let spill =
            SpillDirectory::open(Arc::clone(&environment.disk), &folder.path().join("spill"))
                .unwrap();
        let support = NodeSupport { spill, _engine: engine, _storage: storage, _folder: folder };
        (support, node)
    }
}

/// The catalog of an empty node, with a new schema `test`.
pub(crate) fn catalog_with_schema(node: &Arc<dyn DatabaseNode>) -> SessionCatalog {
    let mut change = node.change_definitions().unwrap();
    change.create_schema("test", &[]).unwrap();
    change.commit().unwrap();
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
