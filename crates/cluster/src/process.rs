//! A running process of a cluster.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore};
use firn_base::Environment;
use firn_base::disk::Disk;
use firn_base::network::{Address, NetworkError, NodeId, Role};
use firn_engine::replica::ReplicaOptions;
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_node::endpoint::EndpointOptions;
use firn_node::node::NodeOptions;
use firn_page_service::{PAGE_SERVICE, PageNodeLink, Placement, RemotePages, RemotePagesOptions};
use firn_storage::local::OpenError;
use firn_writer_service::WriterService;

use crate::database::{DatabaseOptions, DatabaseRole, DatabaseState, OnState};
use crate::group_peers::Door;
use crate::late::LateService;
use crate::layout::{Layout, NodeEntry};
use crate::log_keeper::LogKeeper;
use crate::log_member::{self, LogMember, database_of};
use crate::message::{LogStatus, NodeStatus};
use crate::page_role::{self, LogSource, PageRole, PageRoleOptions};
use crate::replica::{self, ReplicaLinks, ReplicaRole, ReplicaRoleOptions};
use crate::status::StatusService;
use crate::storage::ClusterStorage;

/// Whether a directory has the files of a node of a cluster. Blocks for I/O.
#[must_use]
pub fn is_node_directory(disk: &dyn Disk, path: &Path) -> bool {
    let names = disk.list(path).unwrap_or_default();
    let parts = [log_member::DIRECTORY, page_role::DIRECTORY, replica::DIRECTORY];
    names.iter().any(|name| parts.iter().any(|part| name.ends_with(part)))
}

/// How a process is set up.
#[derive(Clone)]
pub struct ProcessOptions {
    /// The process's files.
    pub directory: PathBuf,
    /// What the engine has in memory, and how log and pages are kept.
    pub node: NodeOptions,
    /// How long a snapshot of a replica may be open; `None`: without a limit.
    pub replica_snapshot_limit: Option<Duration>,
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
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// The files of the process's page node.
    #[error(transparent)]
    Pages(Arc<OpenError>),
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
    pages: Option<Arc<PageRole>>,
    database: Option<DatabaseRole>,
    replica: Option<ReplicaRole>,
    /// Answers replicas while this process writes.
    writer: Arc<WriterService>,
    /// The page nodes elsewhere, if the engine reads there.
    remote_pages: Option<Arc<RemotePages>>,
}

impl RunningProcess {
    /// Starts the parts of a node of the layout. Blocks for I/O, and not for other processes.
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
        let maker = Maker { environment, layout, local: &local, own: node, options };
        let (door, page_door) = (Arc::<Door>::default(), Arc::<LateService>::default());
        let log = maker.log_member(&door)?;
        let pages = maker.page_role(log.as_ref(), &page_door);
        let keeper = log.as_ref().map(|log| maker.log_keeper(log, pages.as_ref()));
        let writer = WriterService::new(environment);
        let (database, remote_pages) = maker.database(log.as_ref(), pages.as_ref(), &writer);
        let replica = maker.replica();
        let parts = Parts { node: number, log, pages, database, replica, writer, remote_pages };
        let parts = Arc::new(parts);
        let told = Arc::clone(&parts);
        let status = StatusService(Arc::new(move || told.status()));
        let mut offers = vec![door.offer(), status.offer(), page_door.offer(PAGE_SERVICE)];
        offers.push(parts.writer.offer());
        offers.extend(parts.log.as_ref().map(|log| log.service.offer()));
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

    /// Why the process should end: its disk does not take log any more, or its pages cannot be
    /// used.
    #[must_use]
    pub fn failure(&self) -> Option<ProcessError> {
        let log = self.parts.log.as_ref().and_then(|log| log.store.failure());
        let pages = || self.parts.pages.as_ref()?.failure().map(ProcessError::Pages);
        log.map(ProcessError::Log).or_else(pages)
    }

    /// Closes everything in order. Blocks.
    pub fn close(&self) {
        let parts = &self.parts;
        if let Some(database) = &parts.database {
            database.close();
        }
        if let Some(replica) = &parts.replica {
            replica.close();
        }
        parts.writer.close();
        if let Some(remote) = &parts.remote_pages {
            remote.close();
        }
        if let Some(keeper) = &self.keeper {
            keeper.close();
        }
        if let Some(pages) = &parts.pages {
            pages.close();
        }
        if let Some(log) = &parts.log {
            log.service.close();
            log.store.close();
        }
        self.server.close();
    }
}

impl Parts {
    fn status(&self) -> NodeStatus {
        let state = self.database.as_ref().map(DatabaseRole::state);
        let state = state.or_else(|| self.replica.as_ref().map(ReplicaRole::state));
        NodeStatus {
            node: self.node,
            log: self.log.as_ref().map(|log| LogStatus {
                leads: log.store.leads().map(|term| term.0),
                leader: log.store.leader().map(|member| member.0),
                truncated: log.store.truncated_lsn(),
                durable: log.store.durable_lsn(),
                failure: log.store.failure().map(|error| error.to_string()),
            }),
            pages: self.pages.as_ref().map(|pages| pages.status()),
            replica: self.replica.as_ref().map(ReplicaRole::status),
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

/// Makes the parts of a process, with links to other processes where a part needs them.
struct Maker<'a> {
    environment: &'a Environment,
    layout: &'a Layout,
    local: &'a Arc<LocalNode>,
    own: &'a NodeEntry,
    options: &'a ProcessOptions,
}

impl Maker<'_> {
    fn link(&self, node: &NodeEntry) -> Caller {
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

    fn log_member(&self, door: &Arc<Door>) -> Result<Option<LogMember>, ProcessError> {
        if !self.own.has(Role::Log) {
            return Ok(None);
        }
        let others = self.others(Role::Log).map(|node| (node.member(), self.link(node)));
        let (place, links) = ((self.layout, self.own), (others.collect(), door));
        let (directory, settings) = (&self.options.directory, self.options.node.storage.log);
        Ok(Some(LogMember::open(self.environment, directory, place, settings, links)?))
    }

    fn page_role(&self, log: Option<&LogMember>, door: &Arc<LateService>) -> Option<Arc<PageRole>> {
        if !self.own.has(Role::Pages) {
            return None;
        }
        let source = match log {
            Some(log) => LogSource::Own(Arc::clone(&log.store) as Arc<dyn LogStore>),
            None => {
                let members = self.others(Role::Log).map(|node| Arc::new(self.link(node)));
                LogSource::Remote(members.collect())
            }
        };
        let options = PageRoleOptions {
            name: self.own.name.clone(),
            path: self.options.directory.join(page_role::DIRECTORY),
            database: database_of(self.layout),
            pages: self.options.node.storage.pages.clone(),
        };
        let role = PageRole::start(self.environment, options, source, Arc::clone(door));
        Some(Arc::new(role))
    }

    fn log_keeper(&self, log: &LogMember, pages: Option<&Arc<PageRole>>) -> LogKeeper {
        let others = self.others(Role::Pages).map(|node| Arc::new(self.link(node))).collect();
        LogKeeper::start(self.environment, Arc::clone(&log.store), pages.cloned(), others)
    }

    /// The engine, and the page nodes that it reads from unless this process has one.
    fn database(
        &self,
        log: Option<&LogMember>,
        pages: Option<&Arc<PageRole>>,
        writer: &Arc<WriterService>,
    ) -> (Option<DatabaseRole>, Option<Arc<RemotePages>>) {
        let Some(log) = log.filter(|_| self.own.has(Role::Database)) else { return (None, None) };
        let remote = pages.is_none().then(|| self.remote_pages());
        let (group, member_log) = (Arc::clone(&log.store), Arc::clone(&log.log));
        let (own, elsewhere) = (pages.cloned(), remote.clone());
        let source = move || {
            let (pages, page_node) = match (&own, &elsewhere) {
                (Some(own), _) => {
                    let node = Arc::clone(own.node()?);
                    (Arc::clone(&node) as Arc<dyn PageStore>, Some(node))
                }
                (None, remote) => (Arc::clone(remote.as_ref()?) as Arc<dyn PageStore>, None),
            };
            let (group, log) = (Arc::clone(&group), Arc::clone(&member_log));
            Some(ClusterStorage { group, log, pages, page_node })
        };
        let options = self.database_options(writer);
        let (group, source) = (Arc::clone(&log.store), Box::new(source));
        (Some(DatabaseRole::start(self.environment, group, source, options)), remote)
    }

    fn remote_pages(&self) -> Arc<RemotePages> {
        let link = |node: &NodeEntry| PageNodeLink {
            node: node.number,
            caller: Arc::new(self.link(node)),
        };
        let links = self.others(Role::Pages).map(link).collect();
        let placement = Placement::everywhere(links).expect("a layout has page nodes, each once");
        RemotePages::open(self.environment, placement, RemotePagesOptions::default())
    }

    /// The replica, with links to everything that it needs.
    fn replica(&self) -> Option<ReplicaRole> {
        if !self.own.has(Role::Replica) {
            return None;
        }
        let callers = |role| self.others(role).map(|node| Arc::new(self.link(node))).collect();
        let links = ReplicaLinks {
            log: callers(Role::Log),
            pages: self.remote_pages(),
            writers: callers(Role::Database),
        };
        let engine = &self.options.node.engine;
        let replica = ReplicaOptions {
            name: self.own.name.clone(),
            buffer_pool_bytes: engine.buffer_pool_bytes,
            transactions: engine.transactions,
            snapshot_limit: self.options.replica_snapshot_limit,
            ..ReplicaOptions::default()
        };
        let options = ReplicaRoleOptions {
            replica,
            endpoint: EndpointOptions {
                data_dir: self.options.directory.join(replica::DIRECTORY),
                ..self.endpoint_options()
            },
            patience: self.options.patience,
            on_state: Arc::clone(&self.options.on_state),
        };
        Some(ReplicaRole::start(self.environment, links, options))
    }

    fn endpoint_options(&self) -> EndpointOptions {
        EndpointOptions {
            listen: self.own.client_address,
            data_dir: self.options.directory.clone(),
            ..self.options.endpoint.clone()
        }
    }

    fn database_options(&self, writer: &Arc<WriterService>) -> DatabaseOptions {
        let endpoint = self.endpoint_options();
        DatabaseOptions {
            writer: Arc::clone(writer),
            node: self.options.node.clone(),
            endpoint,
            patience: self.options.patience,
            on_state: Arc::clone(&self.options.on_state),
        }
    }
}
