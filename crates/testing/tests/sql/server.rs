//! A server for tests: a node over a temporary directory that listens at a free port.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use firn::endpoint::{Endpoint, EndpointOptions};
use firn::node::{LocalNode, NodeOptions};
use firn_base::Environment;

/// A running server; it ends when this is dropped.
pub(crate) struct Server {
    endpoint: Endpoint,
    _node: Arc<LocalNode>,
    _directory: tempfile::TempDir,
}

impl Server {
    pub(crate) fn start() -> Server {
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
        let endpoint = Endpoint::start(&environment, &node, &options).expect("an endpoint");
        Server { endpoint, _node: node, _directory: directory }
    }

    /// What the sessions share.
    pub(crate) fn instance(&self) -> &firn_compute::Instance {
        self.endpoint.instance()
    }

    pub(crate) fn port(&self) -> u16 {
        self.endpoint.address().expect("it listens at TCP").port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.endpoint.shutdown(Duration::from_secs(1));
    }
}
