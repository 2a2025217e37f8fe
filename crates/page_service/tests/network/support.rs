//! Page nodes in processes of the simulator, and a client of them.

use std::sync::Arc;
use std::time::Duration;

use firn_api::PageStore;
use firn_base::Lsn;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_page_service::{
    PageNodeLink, PageService, PageServiceOptions, Placement, RemotePages, RemotePagesOptions,
};
use firn_testing::simulation::{Process, World};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
const PORT: u16 = 7000;

fn local(node: u64, name: &str, role: Role) -> Arc<LocalNode> {
    let (cluster, node) = (ClusterId(1), NodeId(node));
    let identity = NodeIdentity { cluster, node, name: name.to_owned(), roles: Roles::of(&[role]) };
    Arc::new(LocalNode::new(identity, 0))
}

/// A page node's process while it runs.
pub(crate) struct Serving {
    pub(crate) process: Process,
    pub(crate) service: Arc<PageService>,
    _server: Server,
}

/// The name of the process of page node `number`.
pub(crate) fn host(number: u64) -> String {
    format!("pages-{number}")
}

/// Starts the process of a page node, whose store may outlive it.
pub(crate) fn serve(world: &World, number: u64, store: Arc<dyn PageStore>) -> Serving {
    let process = world.start(&host(number), &world.new_disk());
    serve_in(process, number, store)
}

/// Serves a store in a process.
pub(crate) fn serve_in(process: Process, number: u64, store: Arc<dyn PageStore>) -> Serving {
    let environment = process.environment();
    let options = PageServiceOptions { message_bytes: 64 << 10, ..PageServiceOptions::default() };
    let service = PageService::new(&environment, store, options);
    let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
    let local = local(number, &host(number), Role::Pages);
    let address = process.address(PORT);
    let server =
        Server::start(&environment, local, &address, settings, vec![service.offer()]).unwrap();
    Serving { process, service, _server: server }
}

/// A link of `process` to a page node.
pub(crate) fn link(world: &World, process: &Process, number: u64) -> PageNodeLink {
    let mut settings = CallerSettings::new(world.network().address(&host(number), PORT));
    (settings.connect_timeout, settings.most_delay) = (SECOND, 100 * MS);
    let local = local(1000, "database", Role::Database);
    let caller = Arc::new(Caller::new(&process.environment(), local, settings));
    PageNodeLink { node: NodeId(number), caller, is_far: false }
}

pub(crate) fn links(world: &World, process: &Process, numbers: &[u64]) -> Vec<PageNodeLink> {
    numbers.iter().map(|number| link(world, process, *number)).collect()
}

pub(crate) fn client_options() -> RemotePagesOptions {
    RemotePagesOptions { refresh: 50 * MS, ..RemotePagesOptions::default() }
}

/// A log in memory.
#[derive(Default)]
pub(crate) struct Log {
    /// Bytes that were removed from the front.
    removed: u64,
    bytes: Vec<u8>,
}

impl Log {
    fn start(&self) -> Lsn {
        Lsn::FIRST.advance(self.removed)
    }

    pub(crate) fn append(&mut self, group: &[u8]) -> Lsn {
        self.bytes.extend_from_slice(group);
        self.start().advance(self.bytes.len() as u64)
    }

    pub(crate) fn read(&self, from: Lsn) -> Option<Vec<u8>> {
        let start = self.start();
        (from >= start).then(|| self.bytes[from.since(start) as usize..].to_vec())
    }

    pub(crate) fn truncate(&mut self, position: Lsn) {
        let start = self.start();
        if position > start {
            self.bytes.drain(..position.since(start) as usize);
            self.removed += position.since(start);
        }
    }
}
/// A client whose page nodes all have all pages.
pub(crate) fn open(
    world: &World,
    process: &Process,
    numbers: &[u64],
    options: RemotePagesOptions,
) -> Arc<RemotePages> {
    let placement = Placement::everywhere(links(world, process, numbers)).unwrap();
    RemotePages::open(&process.environment(), placement, options)
}
