//! A database node over a temporary directory, for tests of the layers above.

use std::sync::Arc;

use firn_api::rows::DatabaseNode;
use firn_api::{Timestamps, WriterEpoch};
use firn_base::Environment;
use firn_engine::rows::EngineNode;
use firn_engine::{Engine, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_sql_collation::Collations;
use firn_storage::local::{LocalOptions, LocalStorage};

/// A node that lives as long as this does.
pub(crate) struct TestNode {
    pub(crate) node: Arc<dyn DatabaseNode>,
    engine: Engine,
    storage: LocalStorage,
    _directory: tempfile::TempDir,
}

impl TestNode {
    /// An empty node.
    pub(crate) fn new() -> TestNode {
        let environment = Environment::system();
        let directory = tempfile::tempdir().unwrap();
        let storage =
            LocalStorage::open(&environment, directory.path(), LocalOptions::default()).unwrap();
        let seams = Storage {
            log: storage.log.clone(),
            pages: storage.pages.clone(),
            epoch: WriterEpoch::Next,
            timestamps: Timestamps::Local,
            fabric: Arc::new(InProcessFabric::new(Epoch(1))),
        };
        let options = EngineOptions { buffer_pool_bytes: 32 << 20, ..EngineOptions::default() };
        let engine = Engine::open(&environment, seams, &options).unwrap();
        let dictionary = engine.open_dictionary(Arc::new(Collations)).unwrap();
        let node = Arc::new(EngineNode::new(dictionary));
        TestNode { node, engine, storage, _directory: directory }
    }
}

impl TestNode {
    /// How many snapshots are open.
    pub(crate) fn open_snapshots(&self) -> usize {
        self.engine.system().snapshots().open_count()
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        let _ = self.engine.close();
        self.storage.close();
    }
}
