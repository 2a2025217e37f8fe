//! A running process of a cluster.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::Environment;
use firn_base::disk::Disk;
use firn_base::network::{Address, ClusterId, NetworkError, NodeId, Role};
use firn_engine::replica::ReplicaOptions;
use firn_link::{Caller, CallerSettings, LocalNode, Offer, Server, ServerSettings, Service};
use firn_log_service::LOG_SERVICE;
use firn_node::endpoint::EndpointOptions;
use firn_node::node::NodeOptions;
use firn_page_service::{PAGE_SERVICE, PageNodeLink};
use firn_storage::local::OpenError;
use firn_writer_service::WriterService;
use parking_lot::Mutex;

use crate::control_role::{ControlError, ControlPart, ControlRole, Done, Governed};
use crate::database::{DatabaseOptions, DatabaseRole, DatabaseState, OnState};
use crate::engine_pages::EnginePages;
use crate::group_peers::Door;
use crate::late::LateService;
use crate::layout::catalog::FOUNDED_CHUNK;
use crate::layout::{Layout, NodeEntry};
use crate::links::Links;
use crate::log_keeper::{Keeping, LogKeeper};
use crate::log_member::{self, LogMember, database_of};
use crate::message::{LogStatus, NodeStatus};
use crate::page_list;
use crate::page_role::{self, LogSource, PageDoors, PageRole, PageRoleOptions, PageRoleParts};
use crate::record::{self, Record, RecordError, RecordFile};
use crate::replica::{self, ReplicaLinks, ReplicaRole, ReplicaRoleOptions};
use crate::status::StatusService;
use crate::storage::ClusterStorage;
use crate::task::{Stop, Task};
use crate::view::View;

/// How often a new process looks whether control has taken it.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a directory has the files of a node of a cluster. Blocks for I/O.
#[must_use]
pub fn is_node_directory(disk: &dyn Disk, path: &Path) -> bool {
    let names = disk.list(path).unwrap_or_default();
    let parts =
        [log_member::DIRECTORY, page_role::DIRECTORY, replica::DIRECTORY, record::FILE_NAME];
    names.iter().any(|name| parts.iter().any(|part| name.ends_with(part)))
}

/// Whether a directory is that of a node which can start without a layout. Blocks for I/O.
#[must_use]
pub fn has_record(disk: &dyn Disk, path: &Path) -> bool {
    let names = disk.list(path).unwrap_or_default();
    names.iter().any(|name| name.ends_with(record::FILE_NAME))
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
    #[error("{} has no node of a cluster; start it with a layout", .0.display())]
    NoRecord(PathBuf),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The control node of the process takes no part any more.
    #[error("{0}; start the node again")]
    ControlFailed(String),
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
    node: NodeEntry,
    cluster: ClusterId,
    shared: Arc<Shared>,
    writer: Arc<WriterService>,
    /// Opens the parts of a process that starts for the first time.
    opening: Option<Task>,
    server: Server,
}

/// The parts of the process, and what they belong to.
struct Shared {
    node: NodeId,
    control: ControlRole,
    parts: OnceLock<Parts>,
    /// Why the parts of a process that starts for the first time could not be made.
    failure: Mutex<Option<ProcessError>>,
}

/// What the process consists of, by its roles.
struct Parts {
    log: Option<LogMember>,
    pages: Option<Arc<PageRole>>,
    keeper: Option<LogKeeper>,
    database: Option<DatabaseRole>,
    replica: Option<ReplicaRole>,
    /// Where the engine or the replica reads.
    engine_pages: Option<Arc<EnginePages>>,
}

impl RunningProcess {
    /// Starts the node of a directory, which is one of `seed` if it starts for the first time.
    /// Blocks for I/O, and not for other processes: a new node opens its parts once control has
    /// taken it.
    ///
    /// # Errors
    /// If the node's files cannot be opened, or nobody can reach it at its address.
    pub fn start(
        environment: &Environment,
        seed: Option<(&Layout, NodeId)>,
        options: &ProcessOptions,
    ) -> Result<RunningProcess, ProcessError> {
        let (record, layout) = begin_life(environment, seed, &options.directory)?;
        let (record, view) = (Arc::new(record), Arc::new(View::new(layout)));
        let own = record.get();
        let local = Arc::new(LocalNode::new(own.identity(), 0));
        let doors = Doors::new(environment);
        let control = ControlPart::open(environment, &local, &options.directory, &record, &view)?;
        let maker = Maker {
            environment: environment.clone(),
            view,
            local: Arc::clone(&local),
            own: own.entry(),
            record,
            options: options.clone(),
            doors: doors.clone(),
        };
        let writer = Arc::clone(&doors.writer);
        let told = Arc::<OnceLock<Weak<Shared>>>::default();
        let mut offers = doors.offers();
        offers.extend(control.offers());
        offers.push(status_service(own.entry().number, Arc::clone(&told)).offer());
        let (address, settings) = (Address::Tcp(own.address), ServerSettings::default());
        let server = Server::start(environment, Arc::clone(&local), &address, settings, offers)?;
        let shared = Arc::new(Shared {
            node: own.entry().number,
            control: control.start(environment, &local),
            parts: OnceLock::new(),
            failure: Mutex::new(None),
        });
        let _ = told.set(Arc::downgrade(&shared));
        let opening = match shared.control.has_taken() {
            true => {
                shared.open(&maker)?;
                None
            }
            false => {
                let shared = Arc::clone(&shared);
                let body = move |stop: &Stop| shared.open_when_taken(&maker, stop);
                Some(Task::start(environment, "process-open", body))
            }
        };
        let (node, cluster) = (own.entry(), own.cluster);
        Ok(RunningProcess { node, cluster, shared, writer, opening, server })
    }

    /// Which node the process is.
    #[must_use]
    pub fn node(&self) -> &NodeEntry {
        &self.node
    }

    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The state of the process. Does not block.
    #[must_use]
    pub fn status(&self) -> NodeStatus {
        self.shared.status()
    }

    /// Why the process should end: its disk does not take log any more, or its files cannot be
    /// used.
    #[must_use]
    pub fn failure(&self) -> Option<ProcessError> {
        self.shared.failure()
    }

    /// Closes everything in order. Blocks.
    pub fn close(&self) {
        if let Some(opening) = &self.opening {
            opening.close();
        }
        match self.shared.parts.get() {
            Some(parts) => parts.close(&self.writer),
            None => self.writer.close(),
        }
        self.shared.control.close();
        self.server.close();
    }
}

/// The record of a directory for a new life of its node, and the cluster as far as it is known.
fn begin_life(
    environment: &Environment,
    seed: Option<(&Layout, NodeId)>,
    directory: &Path,
) -> Result<(RecordFile, Layout), ProcessError> {
    let found = RecordFile::read(&*environment.disk, directory)?;
    let mut record = match (found, seed) {
        (Some(found), None) => found,
        (None, None) => return Err(ProcessError::NoRecord(directory.to_owned())),
        (found, Some((layout, number))) => {
            let node = layout.node(number).ok_or(ProcessError::NoNode(number))?;
            let mut record = found.unwrap_or_else(|| Record {
                // Founders make the pages from the beginning of the log.
                held: layout.has_pages(number).then_some(FOUNDED_CHUNK),
                ..Record::new(environment, layout.cluster, node)
            });
            let wanted = layout.identity(node);
            let found = record.identity();
            if (found.cluster, found.node) != (wanted.cluster, wanted.node) {
                let (found, wanted) = (Box::new(found), Box::new(wanted));
                return Err(RecordError::OtherNode { found, wanted }.into());
            }
            record.name.clone_from(&node.name);
            record.roles = node.roles;
            (record.address, record.client_address) = (node.address, node.client_address);
            record
        }
    };
    record.incarnation += 1;
    let seed = seed.map(|(layout, _)| layout.clone());
    let layout = record.layout.clone().or(seed);
    let layout = layout.ok_or_else(|| ProcessError::NoRecord(directory.to_owned()))?;
    Ok((RecordFile::write(&environment.disk, directory, record)?, layout))
}

fn status_service(node: NodeId, told: Arc<OnceLock<Weak<Shared>>>) -> StatusService {
    let status = move || {
        let shared = told.get().and_then(Weak::upgrade);
        shared.map_or_else(|| NodeStatus::of(node), |shared| shared.status())
    };
    StatusService(Arc::new(status))
}

impl Shared {
    fn open(&self, maker: &Maker) -> Result<(), ProcessError> {
        let parts = maker.parts(self.control.acknowledgements())?;
        let log = parts.log.as_ref().map(|log| (log.member, Arc::clone(&log.store)));
        let (pages, engine_pages) = (parts.pages.clone(), parts.engine_pages.clone());
        self.control.set_parts(Governed { log, pages, engine_pages });
        let is_first = self.parts.set(parts).is_ok();
        assert!(is_first, "a process opens its parts once");
        Ok(())
    }

    fn open_when_taken(&self, maker: &Maker, stop: &Stop) {
        while !self.control.has_taken() {
            if stop.pause(LOOK) {
                return;
            }
        }
        if let Err(error) = self.open(maker) {
            *self.failure.lock() = Some(error);
        }
    }

    fn failure(&self) -> Option<ProcessError> {
        if let Some(failure) = self.failure.lock().take() {
            return Some(failure);
        }
        let control = self.control.failure().map(ProcessError::ControlFailed);
        control.or_else(|| self.parts.get()?.failure())
    }

    fn status(&self) -> NodeStatus {
        let waits = || NodeStatus {
            failure: Some("it waits until control takes it".to_owned()),
            ..NodeStatus::of(self.node)
        };
        let status = self.parts.get().map_or_else(waits, |parts| parts.status(self.node));
        NodeStatus { failure: self.control.refusal().or(status.failure), ..status }
    }
}

impl Parts {
    fn failure(&self) -> Option<ProcessError> {
        let log = self.log.as_ref().and_then(|log| log.store.failure());
        let pages = || self.pages.as_ref()?.failure().map(ProcessError::Pages);
        log.map(ProcessError::Log).or_else(pages)
    }

    fn close(&self, writer: &WriterService) {
        if let Some(database) = &self.database {
            database.close();
        }
        if let Some(replica) = &self.replica {
            replica.close();
        }
        writer.close();
        if let Some(pages) = &self.engine_pages {
            pages.close();
        }
        if let Some(keeper) = &self.keeper {
            keeper.close();
        }
        if let Some(pages) = &self.pages {
            pages.close();
        }
        if let Some(log) = &self.log {
            log.service.close();
            log.store.close();
        }
    }

    fn status(&self, node: NodeId) -> NodeStatus {
        let state = self.database.as_ref().map(DatabaseRole::state);
        let state = state.or_else(|| self.replica.as_ref().map(ReplicaRole::state));
        NodeStatus {
            node,
            log: self.log.as_ref().map(|log| LogStatus {
                leads: log.store.leads().map(|term| term.0),
                leader: log.store.leader().map(|member| member.0),
                truncated: log.store.truncated_lsn(),
                durable: log.store.durable_lsn(),
                failure: log.store.failure().map(|error| error.to_string()),
            }),
            pages: self.pages.as_ref().and_then(|pages| pages.status()),
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

/// The services of parts that open after the server listens.
#[derive(Clone)]
struct Doors {
    group: Arc<Door>,
    log: Arc<LateService>,
    pages: PageDoors,
    /// Answers replicas while this process writes.
    writer: Arc<WriterService>,
}

impl Doors {
    fn new(environment: &Environment) -> Doors {
        let (group, log, pages) = (Arc::default(), Arc::default(), PageDoors::default());
        Doors { group, log, pages, writer: WriterService::new(environment) }
    }

    fn offers(&self) -> Vec<Offer> {
        let (pages, list) = (&self.pages.pages, &self.pages.list);
        let log = self.log.offer(LOG_SERVICE);
        let (pages, list) = (pages.offer(PAGE_SERVICE), list.offer(page_list::SERVICE));
        vec![self.group.offer(), log, pages, list, self.writer.offer()]
    }
}

/// Makes the parts of a process, with links to other processes where a part needs them.
struct Maker {
    environment: Environment,
    view: Arc<View>,
    local: Arc<LocalNode>,
    own: NodeEntry,
    record: Arc<RecordFile>,
    options: ProcessOptions,
    doors: Doors,
}

impl Maker {
    /// `done` tells control that an order is carried out.
    fn parts(&self, done: Done) -> Result<Parts, ProcessError> {
        let log = self.log_member()?;
        let pages = self.page_role(log.as_ref(), done);
        let keeper = log.as_ref().map(|log| self.log_keeper(log, pages.as_ref()));
        let engine_pages = self.engine_pages(pages.as_ref());
        let database = log.as_ref().zip(engine_pages.as_ref());
        let database = database.and_then(|(log, pages)| self.database(log, pages));
        let replica = engine_pages.as_ref().and_then(|pages| self.replica(pages));
        Ok(Parts { log, pages, keeper, database, replica, engine_pages })
    }

    fn link(&self, node: &NodeEntry) -> Caller {
        let settings = CallerSettings {
            wanted: Some(node.number),
            ..CallerSettings::new(Address::Tcp(node.address))
        };
        Caller::new(&self.environment, Arc::clone(&self.local), settings)
    }

    /// Links of a part of the process.
    fn links(&self) -> Links {
        Links::new(&self.environment, &self.local)
    }

    fn log_member(&self) -> Result<Option<LogMember>, ProcessError> {
        let layout = self.view.layout();
        let Some(member) = layout.log_member_on(self.own.number) else { return Ok(None) };
        let others = layout.log_members().filter(|(_, node)| node.number != self.own.number);
        let others = others.map(|(member, node)| (member, self.link(node))).collect();
        let (directory, settings) = (&self.options.directory, self.options.node.storage.log);
        let (place, links) = ((&*layout, member), (others, &self.doors.group));
        let log = LogMember::open(&self.environment, directory, place, settings, links)?;
        self.doors.log.begin(Arc::clone(&log.service) as Arc<dyn Service>);
        Ok(Some(log))
    }

    fn page_role(&self, log: Option<&LogMember>, done: Done) -> Option<Arc<PageRole>> {
        if !self.own.has(Role::Pages) {
            return None;
        }
        let log = match log {
            Some(log) => LogSource::Own(Arc::clone(&log.store) as Arc<dyn LogStore>),
            None => {
                let (links, view) = (self.links(), Arc::clone(&self.view));
                LogSource::Remote(Box::new(move || {
                    let layout = view.layout();
                    layout.log_members().map(|(_, node)| links.to(node)).collect()
                }))
            }
        };
        let (links, view, own) = (self.links(), Arc::clone(&self.view), self.own.number);
        let links = move |nodes: &[NodeId]| {
            let layout = view.layout();
            let nodes = nodes.iter().filter(|node| **node != own);
            let nodes = nodes.filter_map(|node| layout.node(*node));
            let link =
                |node: &NodeEntry| PageNodeLink { node: node.number, caller: links.to(node) };
            nodes.map(link).collect()
        };
        let options = PageRoleOptions {
            name: self.own.name.clone(),
            path: self.options.directory.join(page_role::DIRECTORY),
            database: database_of(&self.view.layout()),
            pages: self.options.node.storage.pages.clone(),
        };
        let record = Arc::clone(&self.record);
        let (links, doors) = (Box::new(links), self.doors.pages.clone());
        let (view, own) = (Arc::clone(&self.view), self.own.number);
        let others_have_pages =
            Box::new(move || view.layout().page_nodes().any(|node| node.number != own));
        let parts = PageRoleParts { record, log, links, others_have_pages, done, doors };
        Some(Arc::new(PageRole::start(&self.environment, options, parts)))
    }

    fn log_keeper(&self, log: &LogMember, pages: Option<&Arc<PageRole>>) -> LogKeeper {
        let keeping = Keeping {
            store: Arc::clone(&log.store),
            own_number: self.own.number,
            own: pages.cloned(),
            view: Arc::clone(&self.view),
            links: self.links(),
        };
        LogKeeper::start(&self.environment, keeping)
    }

    /// Where the engine or the replica reads, if the process may have one.
    fn engine_pages(&self, pages: Option<&Arc<PageRole>>) -> Option<Arc<EnginePages>> {
        if !self.own.has(Role::Database) && !self.own.has(Role::Replica) {
            return None;
        }
        let own = (self.own.number, pages.cloned());
        Some(Arc::new(EnginePages::new(&self.environment, own, &self.view, self.links())))
    }

    fn database(&self, log: &LogMember, pages: &Arc<EnginePages>) -> Option<DatabaseRole> {
        if !self.own.has(Role::Database) {
            return None;
        }
        let (group, member_log) = (Arc::clone(&log.store), Arc::clone(&log.log));
        let read_from = Arc::clone(pages);
        let source = move || {
            let (pages, page_node) = read_from.source()?;
            let (group, log) = (Arc::clone(&group), Arc::clone(&member_log));
            Some(ClusterStorage { group, log, pages, page_node })
        };
        let options = self.database_options(pages);
        let (group, source) = (Arc::clone(&log.store), Box::new(source));
        Some(DatabaseRole::start(&self.environment, group, source, options))
    }

    /// The replica, with links to everything that it needs.
    fn replica(&self, pages: &EnginePages) -> Option<ReplicaRole> {
        if !self.own.has(Role::Replica) {
            return None;
        }
        let layout = self.view.layout();
        let link = |node: &NodeEntry| Arc::new(self.link(node));
        let links = ReplicaLinks {
            log: layout.log_members().map(|(_, node)| link(node)).collect(),
            pages: pages.remote()?,
            writers: layout.with_role(Role::Database).map(link).collect(),
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
        Some(ReplicaRole::start(&self.environment, links, options))
    }

    fn endpoint_options(&self) -> EndpointOptions {
        EndpointOptions {
            listen: self.own.client_address,
            data_dir: self.options.directory.clone(),
            ..self.options.endpoint.clone()
        }
    }

    fn database_options(&self, pages: &Arc<EnginePages>) -> DatabaseOptions {
        let endpoint = self.endpoint_options();
        DatabaseOptions {
            writer: Arc::clone(&self.doors.writer),
            node: self.options.node.clone(),
            endpoint,
            patience: self.options.patience,
            on_state: Arc::clone(&self.options.on_state),
            are_pages_leaving: {
                let pages = Arc::clone(pages);
                Arc::new(move || pages.are_leaving())
            },
        }
    }
}
