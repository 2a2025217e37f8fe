//! A running process of a cluster.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore};
use firn_base::Environment;
use firn_base::network::{Address, NetworkError, NodeId, Role};
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_node::endpoint::EndpointOptions;
use firn_node::node::NodeOptions;
use firn_storage::local::OpenError;
use firn_storage::page_node::PageNode;

use crate::database::{DatabaseOptions, DatabaseRole, DatabaseState, OnState};
use crate::group_peers::Door;
use crate::layout::{Layout, NodeEntry};
use crate::log_keeper::LogKeeper;
use crate::log_member::LogMember;
use crate::message::{LogStatus, NodeStatus, PagesStatus};
use crate::page_role;
use crate::status::StatusService;
use crate::storage::ClusterStorage;

/// How a process is set up.
#[derive(Clone)]
pub struct ProcessOptions {
    /// The process's files.
    pub directory: PathBuf,
    /// What the engine has in memory, and how log and pages are kept.
    pub node: NodeOptions,
    /// How clients are answered; the layout says where.
    pub endpoint: EndpointOptions,
    /// How long statements may run on when the process is closed.
    pub patience: Duration,
    /// Called with each new state of the engine.
    pub on_state: OnState,
}

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("the layout has no node {0}")]
    NoNode(NodeId),
    #[error("{0} has a role that needs pages, and neither it nor any other node has them")]
    NoPages(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// The other nodes cannot reach this one.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// A process that runs. Dropping it without [`RunningProcess::close`] is like a crash, except that
/// its threads go on for a while.
pub struct RunningProcess {
    parts: Arc<Parts>,
    keeper: Option<LogKeeper>,
    server: Server,
}

/// What the process consists of, by its roles.
struct Parts {
    node: NodeId,
    log: Option<LogMember>,
    pages: Option<Arc<PageNode>>,
    database: Option<DatabaseRole>,
}

impl RunningProcess {
    /// Starts the parts of a node of the layout. Blocks for I/O, and until a page node has heard
    /// from its log.
    ///
    /// # Errors
    /// If the node's files cannot be opened, or nobody can reach it at its address.
    pub fn start(
        environment: &Environment,
        layout: &Layout,
        number: NodeId,
        options: &ProcessOptions,
    ) -> Result<RunningProcess, ProcessError> {
        let node = layout.node(number).ok_or(ProcessError::NoNode(number))?;
        let local = Arc::new(LocalNode::new(layout.identity(node), 0));
        let links = Links { environment, layout, local: &local, own: node };
        let door = Arc::<Door>::default();
        let log = links.log_member(options, &door)?;
        let pages = links.page_node(options, log.as_ref())?;
        let keeper = log.as_ref().map(|log| links.log_keeper(log, pages.as_ref()));
        let database = links.database(options, log.as_ref(), pages.as_ref())?;
        let parts = Arc::new(Parts { node: number, log, pages, database });
        let told = Arc::clone(&parts);
        let status = StatusService(Arc::new(move || told.status()));
        let offers = vec![door.offer(), status.offer()];
        let address = Address::Tcp(node.address);
        let server =
            Server::start(environment, local, &address, ServerSettings::default(), offers)?;
        Ok(RunningProcess { parts, keeper, server })
    }

    /// The state of the process. Does not block.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.parts.status()
    }

    /// Why the process should end: its disk does not take log any more.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.parts.log.as_ref()?.store.failure()
    }

    /// Closes everything in order. Blocks.
    pub fn close(&self) {
        if let Some(database) = &self.parts.database {
            database.close();
        }
        if let Some(keeper) = &self.keeper {
            keeper.close();
        }
        if let Some(pages) = &self.parts.pages {
            pages.close();
        }
        if let Some(log) = &self.parts.log {
            log.store.close();
        }
        self.server.close();
    }
}

impl Parts {
    fn status(&self) -> NodeStatus {
        let state = self.database.as_ref().map(DatabaseRole::state);
        NodeStatus {
            node: self.node,
            log: self.log.as_ref().map(|log| LogStatus {
                leads: log.store.leads().map(|term| term.0),
                leader: log.store.leader().map(|member| member.0),
                truncated: log.store.truncated_lsn(),
                durable: log.store.durable_lsn(),
                failure: log.store.failure().map(|error| error.to_string()),
            }),
            pages: self.pages.as_deref().map(pages_status),
            serves: match &state {
                Some(DatabaseState::Serving(address)) => Some(address.to_string()),
                _ => None,
            },
            failure: match state {
                Some(DatabaseState::Failing(reason)) => Some(reason),
                _ => None,
            },
        }
    }
}

fn pages_status(pages: &PageNode) -> PagesStatus {
    let status = pages.status();
    PagesStatus {
        kept_from: status.log.kept_from,
        received: status.log.indexed,
        applied: status.pages.applied_lsn,
        images_per_second: status.pages.images_per_second,
        failure: status.log.failure.map(|error| error.to_string()),
    }
}

/// Makes the parts of a process, with links to other processes where a part needs them.
struct Links<'a> {
    environment: &'a Environment,
    layout: &'a Layout,
    local: &'a Arc<LocalNode>,
    own: &'a NodeEntry,
}

impl Links<'_> {
    fn to(&self, node: &NodeEntry) -> Caller {
        let settings = CallerSettings {
            wanted: Some(node.number),
            ..CallerSettings::new(Address::Tcp(node.address))
        };
        Caller::new(self.environment, Arc::clone(self.local), settings)
    }

    /// The other nodes with a role.
    fn others(&self, role: Role) -> impl Iterator<Item = &NodeEntry> {
        self.layout.with_role(role).filter(|node| node.number != self.own.number)
    }

    fn log_member(
        &self,
        options: &ProcessOptions,
        door: &Arc<Door>,
    ) -> Result<Option<LogMember>, ProcessError> {
        if !self.own.has(Role::Log) {
            return Ok(None);
        }
        let others = self.others(Role::Log).map(|node| (node.member(), self.to(node))).collect();
        let directory = &options.directory;
        let settings = options.node.storage.log;
        let place = (self.layout, self.own);
        LogMember::open(self.environment, directory, place, settings, (others, door)).map(Some)
    }

    fn page_node(
        &self,
        options: &ProcessOptions,
        log: Option<&LogMember>,
    ) -> Result<Option<Arc<PageNode>>, ProcessError> {
        let Some(log) = log.filter(|_| self.own.has(Role::Pages)) else { return Ok(None) };
        let store = Arc::clone(&log.store) as Arc<dyn LogStore>;
        let (directory, settings) = (&options.directory, options.node.storage.pages.clone());
        let place = (self.layout, self.own);
        page_role::open(self.environment, directory, place, store, settings).map(Some)
    }

    fn log_keeper(&self, log: &LogMember, pages: Option<&Arc<PageNode>>) -> LogKeeper {
        let others = self.others(Role::Pages).map(|node| self.to(node)).collect();
        LogKeeper::start(self.environment, Arc::clone(&log.store), pages.cloned(), others)
    }

    fn database(
        &self,
        options: &ProcessOptions,
        log: Option<&LogMember>,
        pages: Option<&Arc<PageNode>>,
    ) -> Result<Option<DatabaseRole>, ProcessError> {
        let Some(log) = log.filter(|_| self.own.has(Role::Database)) else { return Ok(None) };
        let Some(pages) = pages else { return Err(ProcessError::NoPages(self.own.name.clone())) };
        let storage = ClusterStorage {
            group: Arc::clone(&log.store),
            log: Arc::clone(&log.log),
            pages: Arc::clone(pages) as Arc<dyn PageStore>,
            page_node: Some(Arc::clone(pages)),
        };
        let endpoint = EndpointOptions {
            listen: self.own.client_address,
            data_dir: options.directory.clone(),
            ..options.endpoint.clone()
        };
        let options = DatabaseOptions {
            node: options.node.clone(),
            endpoint,
            patience: options.patience,
            on_state: Arc::clone(&options.on_state),
        };
        Ok(Some(DatabaseRole::start(self.environment, storage, options)))
    }
}
