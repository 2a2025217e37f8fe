//! SQL on a replica that follows a writer's log in the same process.
//!
//! ```text
//!   Server ──► Node ──► log ──► Replica ──► ReplicaNode ──► second compute node
//! ```

mod compute_node;
mod load;
mod mirrored;
mod session;
mod statement;
mod total;

use std::sync::Arc;
use std::time::Duration;

use firn_engine::replica::{Replica, ReplicaOptions};
use firn_engine::rows::replica::ReplicaNode;
use firn_node::endpoint::Endpoint;
use firn_node::node::Node;
use firn_node::replica;
use firn_sql_evaluation::PureEvaluator;
use parking_lot::Mutex;

use crate::client::Client;
use crate::server::Server;

/// The longest wait for the replica to see a commit.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The executors of the replica. They may return rows in different orders.
const EXECUTORS: [&str; 2] = ["ROW", "VECTORISED"];

/// A replica of a server's database node, with a compute node over it.
pub(crate) struct Follower {
    writer: Arc<Node>,
    writer_port: u16,
    replica: Arc<Replica>,
    port: u16,
    /// Held while the load changes definitions, and while both nodes answer about the definitions
    /// of all schemas.
    definitions: Mutex<()>,
}

/// The running replica and compute node, which end when this is dropped.
pub(crate) struct Running {
    endpoint: Endpoint,
    replica: Arc<Replica>,
}

impl Follower {
    pub(crate) fn of(server: &Server) -> (Follower, Running) {
        // A pool that is so small that pages are evicted and read again at the applied position.
        let options = ReplicaOptions { buffer_pool_bytes: 8 << 20, ..ReplicaOptions::default() };
        let environment = firn_base::Environment::system();
        let replica = replica::open_beside(&environment, server.node(), options);
        let replica = replica.expect("a replica");
        let rows =
            ReplicaNode::new(Arc::clone(&replica), TIMEOUT).with_evaluator(Arc::new(PureEvaluator));
        let endpoint = server.start_another("replica", Arc::new(rows));
        let follower = Follower {
            writer: Arc::clone(server.node()),
            writer_port: server.port(),
            replica: Arc::clone(&replica),
            port: endpoint.address().expect("it listens at TCP").port(),
            definitions: Mutex::default(),
        };
        (follower, Running { endpoint, replica })
    }

    pub(crate) fn connect(&self, schema: Option<&str>) -> Client {
        Client::connect(self.port, schema)
    }

    /// Blocks until the replica sees everything that was committed before.
    pub(crate) fn catch_up(&self) {
        let newest = self.writer.engine().system().order().max_committed();
        let has_come = self.replica.wait_until_visible(newest, TIMEOUT);
        let (visible, failure) = (self.replica.visible(), self.replica.failure());
        assert!(has_come, "at {visible} instead of {newest}: {failure:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.endpoint.shutdown(Duration::from_secs(1));
        self.replica.close();
    }
}
