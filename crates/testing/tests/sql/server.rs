//! A server for tests: a node over a temporary directory that listens at a free port.
//!
//! `FIRN_SQL_NODE=messages` puts the codec of the row messages between SQL and the node: every call
//! is encoded, decoded and done, as if the node were elsewhere.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::DatabaseNode;
use firn_base::Environment;
use firn_compute::server::LocalServerState;
use firn_node::endpoint::{ComputeSeams, Endpoint, EndpointOptions, open_rows};
use firn_node::node::{LocalNode, NodeOptions};
use firn_row_service::{Link, Loopback, RemoteNode};
use firn_sql_collation::Collations;

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    endpoint: Endpoint,
    _node: Arc<LocalNode>,
    directory: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(|rows| match std::env::var("FIRN_SQL_NODE").as_deref() {
            Ok("messages") => remote(Arc::new(Loopback::to(rows))),
            Ok(other) => panic!("FIRN_SQL_NODE is 'messages' or not set, not {other:?}"),
            Err(_) => rows,
        })
    }

    /// A server that reaches its node as `reach` says.
    pub(crate) fn start_with(
        reach: impl FnOnce(Arc<dyn DatabaseNode>) -> Arc<dyn DatabaseNode>,
    ) -> Server {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let environment = Environment::system();
        let node = LocalNode::open(&environment, directory.path(), &NodeOptions::default());
        let node = Arc::new(node.expect("an empty directory opens"));
        let files = directory.path().join("files");
        std::fs::create_dir(&files).expect("a directory for files of statements");
        let options = EndpointOptions {
            listen: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            data_dir: directory.path().to_owned(),
            secure_file_priv: Some(files),
            ..EndpointOptions::default()
        };
        let seams = ComputeSeams {
            rows: reach(open_rows(&node).expect("a dictionary")),
            server: Arc::new(LocalServerState::of_one_node()),
        };
        let endpoint = Endpoint::start_over(&environment, &node, seams, &options);
        let endpoint = endpoint.expect("an endpoint");
        Server { endpoint, _node: node, directory }
    }

    /// The state that the sessions share.
    pub(crate) fn instance(&self) -> &firn_compute::Instance {
        self.endpoint.instance()
    }

    /// Files that statements have put rows in and that are still there.
    pub(crate) fn spilled_files(&self) -> Vec<PathBuf> {
        let entries = |folder: &str| {
            let entries = std::fs::read_dir(self.directory.path().join(folder));
            entries.expect("a folder for what is put on disk")
        };
        let found = entries("spill").chain(entries("spill-columns"));
        found.map(|entry| entry.expect("an entry").path()).collect()
    }

    pub(crate) fn port(&self) -> u16 {
        self.endpoint.address().expect("it listens at TCP").port()
    }
}

/// The node at the other end of a link.
pub(crate) fn remote(link: Arc<dyn Link>) -> Arc<dyn DatabaseNode> {
    Arc::new(RemoteNode::over(link, Arc::new(Collations)).expect("a node that answers"))
}

impl Drop for Server {
    fn drop(&mut self) {
        self.endpoint.shutdown(Duration::from_secs(1));
    }
}
