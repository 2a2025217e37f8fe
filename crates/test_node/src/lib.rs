//! A database node over a temporary directory, for the tests of the layers above.
//!
//! ```text
//!   let (support, node) = NodeSupport::open();      node: an EngineNode, empty
//!   add_schema(&node, "test");
//! ```
//!
//! Tests of a crate that the engine needs cannot use it: that crate would be compiled twice.

use std::path::Path;
use std::sync::Arc;

use firn_api::rows::DatabaseNode;
use firn_api::{Timestamps, WriterEpoch};
use firn_base::Environment;
use firn_engine::rows::EngineNode;
use firn_engine::{Engine, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_sql_collation::Collations;
use firn_storage::local::{LocalOptions, LocalStorage};

/// What a node stands on. The node works as long as this lives.
pub struct NodeSupport {
    engine: Engine,
    storage: LocalStorage,
    folder: tempfile::TempDir,
}

impl NodeSupport {
    /// Opens an empty node with a buffer pool of 32 MiB.
    #[must_use]
    pub fn open() -> (NodeSupport, EngineNode) {
        let environment = Environment::system();
        let folder = tempfile::tempdir().unwrap();
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
        (NodeSupport { engine, storage, folder }, node)
    }

    /// The directory of the node, which is removed with this.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many snapshots are open.
    #[must_use]
    pub fn open_snapshots(&self) -> usize {
        self.engine.system().snapshots().open_count()
    }
}

impl Drop for NodeSupport {
    fn drop(&mut self) {
        let _ = self.engine.close();
        self.storage.close();
    }
}

/// Adds a schema without options.
pub fn add_schema(node: &dyn DatabaseNode, name: &str) {
    let mut change = node.change_definitions().unwrap();
    change.create_schema(name, &[]).unwrap();
    change.commit().unwrap();
}
