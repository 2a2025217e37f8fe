//! A server for tests: a node over a temporary directory that listens at a free port.
//!
//! `FIRN_SQL_NODE=messages` puts the codec of the row messages between SQL and the node: every call
//! is encoded, decoded and then made, as with a remote node.
//!
//! `FIRN_SQL_SESSIONS=messages` has clients connect to a front, whose sessions run in the server:
//! each command and each answer travels over a link. With `replica` statements that only read run
//! at a replica of the same process, with `far_replica` at one that the front reaches over a link.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::DatabaseNode;
use firn_base::Environment;
use firn_compute::server::LocalServerState;
use firn_node::endpoint::{ComputeSeams, Endpoint, EndpointOptions, open_rows};
use firn_node::node::{Node, NodeOptions};
use firn_row_service::{Link, Loopback, RemoteNode};
use firn_sql_collation::Collations;

use crate::fronted::Fronted;

/// A node's tables and transactions.
type Rows = Arc<dyn DatabaseNode>;

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    fronted: Option<Fronted>,
    endpoint: Endpoint,
    state: Arc<LocalServerState>,
    node: Arc<Node>,
    directory: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(as_wanted)
    }

    /// A server that answers its clients itself, whatever the environment variable says.
    pub(crate) fn start_alone() -> Server {
        let mut server = Server::start();
        server.fronted = None;
        server
    }

    /// A server on another machine than this one.
    pub(crate) fn start_over(environment: &Environment, options: &NodeOptions) -> Server {
        Server::start_in(environment, options, LocalServerState::of_one_node(), as_wanted)
    }

    /// A server that reaches its node through `reach`.
    pub(crate) fn start_with(reach: impl FnOnce(Rows) -> Rows) -> Server {
        let (environment, options) = (Environment::system(), NodeOptions::default());
        Server::start_in(&environment, &options, LocalServerState::of_one_node(), reach)
    }

    /// Starts a server that more compute nodes may join.
    pub(crate) fn start_of_several() -> Server {
        let (environment, options) = (Environment::system(), NodeOptions::default());
        Server::start_in(&environment, &options, LocalServerState::of_nodes(), as_wanted)
    }

    fn start_in(
        environment: &Environment,
        options: &NodeOptions,
        state: LocalServerState,
        reach: impl FnOnce(Rows) -> Rows,
    ) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let node = Node::open(environment, directory.path(), options);
        let node = Arc::new(node.expect("an empty directory opens"));
        let files = directory.path().join("files");
        std::fs::create_dir(&files).expect("a directory for files of statements");
        let state = Arc::new(state);
        let rows = reach(open_rows(&node).expect("a dictionary"));
        let endpoint = start_endpoint(environment, &node, &state, rows, directory.path(), &files);
        let fronted = Fronted::if_wanted(environment, &endpoint, &node, directory.path());
        Server { fronted, endpoint, state, node, directory }
    }

    /// Starts another compute node of the server, over these rows.
    pub(crate) fn start_another(&self, name: &str, rows: Arc<dyn DatabaseNode>) -> Endpoint {
        let data_dir = self.directory.path().join(name);
        std::fs::create_dir(&data_dir).expect("a directory for the compute node");
        let files = self.directory.path().join("files");
        let environment = Environment::system();
        start_endpoint(&environment, &self.node, &self.state, as_wanted(rows), &data_dir, &files)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The database node that writes.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// The state that the sessions share.
    pub(crate) fn instance(&self) -> &firn_compute::Instance {
        self.endpoint.instance()
    }

    /// Files with spilled rows that still exist.
    pub(crate) fn spilled_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.directory.path().join("spill"));
        let entries = entries.expect("a folder for what is put on disk");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    pub(crate) fn port(&self) -> u16 {
        let of_front = self.fronted.as_ref().map(Fronted::port);
        of_front.unwrap_or_else(|| self.endpoint.address().expect("it listens at TCP").port())
    }
}

/// The node at the other end of a link.
pub(crate) fn remote(link: Arc<dyn Link>) -> Rows {
    Arc::new(RemoteNode::over(link, Arc::new(Collations)).expect("a node that answers"))
}

fn start_endpoint(
    environment: &Environment,
    node: &Arc<Node>,
    state: &Arc<LocalServerState>,
    rows: Arc<dyn DatabaseNode>,
    data_dir: &Path,
    files: &Path,
) -> Endpoint {
    let options = EndpointOptions {
        listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
        data_dir: data_dir.to_owned(),
        secure_file_priv: Some(files.to_owned()),
        ..EndpointOptions::default()
    };
    let seams = ComputeSeams { rows, server: Arc::clone(state) as _ };
    let endpoint = Endpoint::start_over(environment, node, seams, &options);
    endpoint.expect("an endpoint")
}

/// The rows, reached as the environment variable says.
fn as_wanted(rows: Rows) -> Rows {
    match std::env::var("FIRN_SQL_NODE").as_deref() {
        Ok("messages") => remote(Arc::new(Loopback::to(rows))),
        Ok(other) => panic!("FIRN_SQL_NODE is 'messages' or not set, not {other:?}"),
        Err(_) => rows,
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.fronted.take());
        self.endpoint.shutdown(Duration::from_secs(1));
    }
}
