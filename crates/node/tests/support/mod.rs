//! A database node in this process, over which tests start compute nodes.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod hanging_disk;
pub(crate) mod sessions;

use std::path::Path;
use std::sync::Arc;

use std::time::Duration;

use firn_api::rows::HandedSession;
use firn_base::Environment;
use firn_compute::server::LocalServerState;
use firn_engine::replica::{Replica, ReplicaOptions};
use firn_engine::rows::replica::ReplicaNode;
use firn_node::endpoint::{ComputeSeams, Endpoint, EndpointOptions, open_rows};
use firn_node::node::{Node, NodeOptions};
use firn_node::replica::open_beside;
use firn_sql_evaluation::PureEvaluator;

/// A database node with what its compute nodes share. Fields are dropped in this order.
pub(crate) struct Database {
    pub(crate) seams: ComputeSeams,
    node: Arc<Node>,
    environment: Environment,
    directory: tempfile::TempDir,
}

/// A replica of a database node, and an endpoint over it. Fields are dropped in this order, before
/// the database.
pub(crate) struct Follower {
    pub(crate) endpoint: Endpoint,
    pub(crate) replica: Arc<Replica>,
}

impl Database {
    pub(crate) fn open() -> Database {
        Database::open_in(Environment::system())
    }

    /// Opens a node of this environment.
    pub(crate) fn open_in(environment: Environment) -> Database {
        Database::open_with(environment, None)
    }

    /// As [`Database::open_in`]; sessions leave commits to the log from this size of rounds on.
    pub(crate) fn open_with(environment: Environment, leave_from: Option<u64>) -> Database {
        Database::open_at(environment, leave_from, tempfile::tempdir().unwrap())
    }

    fn open_at(
        environment: Environment,
        leave_from: Option<u64>,
        directory: tempfile::TempDir,
    ) -> Database {
        let mut options = NodeOptions::default();
        options.engine.buffer_pool_bytes = 32 << 20;
        options.engine.log.leave_from = leave_from;
        options.storage.log.segment_size_bytes = 8 << 20;
        let data = directory.path().join("data");
        let node = Arc::new(Node::open(&environment, &data, &options).unwrap());
        let seams = ComputeSeams {
            rows: open_rows(&node).unwrap(),
            server: Arc::new(LocalServerState::of_nodes()),
        };
        Database { seams, node, environment, directory }
    }

    /// Closes the node and opens it again; no compute node may be there any more.
    pub(crate) fn restart(self) -> Database {
        let Database { seams, node, environment, directory } = self;
        drop(seams);
        Arc::into_inner(node).expect("nobody uses the node").close().unwrap();
        Database::open_at(environment, None, directory)
    }

    /// Starts the compute node with this name, again if it has ended.
    pub(crate) fn start(&self, name: &str) -> Endpoint {
        self.start_after(name, Vec::new())
    }

    /// As [`Database::start`], after a writer that has handed sessions over.
    pub(crate) fn start_after(&self, name: &str, coming: Vec<HandedSession>) -> Endpoint {
        let data_dir = self.directory.path().join(name);
        create(&data_dir);
        let options = EndpointOptions {
            listen: Some("127.0.0.1:0".parse().unwrap()),
            data_dir,
            coming: coming.clone(),
            ..EndpointOptions::default()
        };
        let seams = self.seams.clone();
        let endpoint = Endpoint::start_over(&self.environment, &self.node, seams, &options);
        let endpoint = endpoint.unwrap();
        endpoint.take_over(&self.node, coming).unwrap();
        endpoint
    }
}

impl Database {
    /// Starts a replica with this name.
    pub(crate) fn follow(&self, name: &str) -> Follower {
        let replica = open_beside(&self.environment, &self.node, ReplicaOptions::default());
        let replica = replica.unwrap();
        let rows = ReplicaNode::new(Arc::clone(&replica), Duration::from_secs(60))
            .with_evaluator(Arc::new(PureEvaluator));
        let data_dir = self.directory.path().join(name);
        create(&data_dir);
        let options = EndpointOptions { data_dir, ..EndpointOptions::default() };
        let endpoint = Endpoint::start_replica(&self.environment, Arc::new(rows), &options);
        Follower { endpoint: endpoint.unwrap(), replica }
    }
}

#[allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]
fn create(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
}
