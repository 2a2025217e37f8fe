//! The engine of a process: it runs while the process's member leads the log group.
//!
//! ```text
//!   standby ── the member leads ──► opening ──► serving ── another one leads ──► standby
//! ```
//!
//! Opening is the recovery of any engine: what was acknowledged is in the group's log, and pages
//! come from page nodes, which have applied it or will when they are asked. When another member
//! leads, the log's writer ends with an error. Then connections are closed and the engine is thrown
//! away, with all pages that it had in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use firn_api::WriterEpoch;
use firn_base::Environment;
use firn_consensus::Term;
use firn_node::endpoint::{Endpoint, EndpointError, EndpointOptions};
use firn_node::node::{Node, NodeError, NodeOptions};
use firn_node::replica::as_writer;
use firn_node::storage::NodeStorage;
use firn_storage::group::GroupStore;
use firn_writer_service::WriterService;
use parking_lot::Mutex;

use crate::storage::ClusterStorage;
use crate::task::{Stop, Task};

/// How often the task looks whether something has changed.
const LOOK: Duration = Duration::from_millis(20);
/// The pause before a node that could not be opened is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether the process's engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// Another member leads, or nobody.
    Standby,
    /// This process's member leads, and the engine is being opened.
    Opening,
    /// Clients are answered at this address.
    Serving(SocketAddr),
    /// This process's member leads, but the engine cannot be opened. It is tried again.
    Failing(String),
}

/// Called with each new state.
pub type OnState = Arc<dyn Fn(&DatabaseState) + Send + Sync>;

/// Log and pages of the engine; `None` while the pages cannot be read yet.
pub(crate) type StorageSource = Box<dyn Fn() -> Option<ClusterStorage> + Send + Sync>;

/// How the engine and its endpoint are set up.
#[derive(Clone)]
pub(crate) struct DatabaseOptions {
    /// Answers replicas while the engine runs.
    pub(crate) writer: Arc<WriterService>,
    pub(crate) node: NodeOptions,
    pub(crate) endpoint: EndpointOptions,
    /// How long statements may run on when the process ends.
    pub(crate) patience: Duration,
    pub(crate) on_state: OnState,
    /// Whether the pages of the engine that was opened last are about to leave this process. Then
    /// it is opened again over those of other nodes.
    pub(crate) are_pages_leaving: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// The task that opens and closes the engine.
pub(crate) struct DatabaseRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    group: Arc<GroupStore>,
    source: StorageSource,
    options: DatabaseOptions,
    state: Mutex<DatabaseState>,
}

/// Why an engine is not opened.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl DatabaseRole {
    pub(crate) fn start(
        environment: &Environment,
        group: Arc<GroupStore>,
        source: StorageSource,
        options: DatabaseOptions,
    ) -> DatabaseRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            group,
            source,
            options,
            state: Mutex::new(DatabaseState::Standby),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "database", move |stop| own.run(stop));
        DatabaseRole { shared, task }
    }

    pub(crate) fn state(&self) -> DatabaseState {
        self.shared.state.lock().clone()
    }

    /// Closes the engine in order, if it runs, and ends the task.
    pub(crate) fn close(&self) {
        self.task.close();
    }
}

impl Shared {
    fn set(&self, state: DatabaseState) {
        let before = std::mem::replace(&mut *self.state.lock(), state.clone());
        if before != state {
            (self.options.on_state)(&state);
        }
    }

    fn run(&self, stop: &Stop) {
        while !stop.is_set() {
            if self.group.leads().is_none() {
                self.set(DatabaseState::Standby);
                stop.pause(LOOK);
                continue;
            }
            self.set(DatabaseState::Opening);
            let Some(storage) = (self.source)() else {
                stop.pause(LOOK);
                continue;
            };
            if let Err(error) = self.serve(Arc::new(storage), stop) {
                self.set(DatabaseState::Failing(error.to_string()));
                stop.pause(PAUSE);
            }
        }
        self.set(DatabaseState::Standby);
    }

    /// One life of the engine.
    fn serve(&self, storage: Arc<dyn NodeStorage>, stop: &Stop) -> Result<(), ServeError> {
        let options = &self.options;
        let opened = Node::open_over(&self.environment, storage, WriterEpoch::Next, &options.node)?;
        let node = Arc::new(opened);
        let served = self.answer(&node, stop);
        options.writer.end();
        match Arc::try_unwrap(node) {
            // A writer that was replaced reports that; its log is the newer one's affair.
            Ok(node) => drop(node.close()),
            Err(_) => tracing::warn!("the engine is still in use; its memory is given back later"),
        }
        served
    }

    /// Opens the endpoint, and answers clients and replicas.
    fn answer(&self, node: &Arc<Node>, stop: &Stop) -> Result<(), ServeError> {
        let endpoint = Endpoint::start(&self.environment, node, &self.options.endpoint)?;
        let writer = as_writer(node).map_err(NodeError::from)?;
        let (group, term) = (Arc::clone(&self.group), Term(writer.epoch().0));
        let surely_leads = Arc::new(move || group.surely_leads(term));
        self.options.writer.begin(Arc::new(writer), surely_leads);
        self.attend(node, endpoint, stop);
        Ok(())
    }

    /// Answers clients until the log has another writer or the process ends.
    fn attend(&self, node: &Node, endpoint: Endpoint, stop: &Stop) {
        if let Some(address) = endpoint.address() {
            self.set(DatabaseState::Serving(address));
        }
        let mut patience = self.options.patience;
        while !stop.pause(LOOK) {
            if let Some(failure) = node.engine().failure() {
                tracing::warn!(%failure, "this node does not write any more");
                patience = Duration::ZERO;
                break;
            }
            if (self.options.are_pages_leaving)() {
                tracing::warn!("the pages leave this process; the engine reads elsewhere");
                break;
            }
        }
        if !endpoint.shutdown(patience) {
            tracing::warn!("some connections did not end in time");
        }
    }
}
