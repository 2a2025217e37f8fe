//! A running process of a cluster.

mod maker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use firn_api::{LogError, LogStore};
use firn_base::Environment;
use firn_base::disk::Disk;
use firn_base::network::{Address, ClusterId, NetworkError, NodeId, sockets};
use firn_control_service::OpenError as ControlOpenError;
use firn_link::{LocalNode, Server, ServerSettings};
use firn_node::archived::ArchivePlace;
use firn_node::endpoint::EndpointOptions;
use firn_node::http::HttpServer;
use firn_node::node::NodeOptions;
use firn_storage::local::OpenError;
use firn_writer_service::WriterService;
use parking_lot::Mutex;

use crate::archive_role::ArchiveRole;
use crate::clients::Clients;
use crate::control_role::{ControlPart, ControlRole, Governed};
use crate::database::{DatabaseRole, DatabaseState, OnState};
use crate::engine_pages::EnginePages;
use crate::health::{self, MetricsDoor};
use crate::layout::catalog::FOUNDED_EPOCH;
use crate::layout::{Layout, NodeEntry, Origin};
use crate::left_behind::LeftBehind;
use crate::log_member::{self};
use crate::log_role::LogRole;
use crate::message::{LogStatus, NodeStatus};
use crate::page_archive::OpenArchive;
use crate::page_role::{self, PageRole};
use crate::record::{self, MemberPlace, Record, RecordError, RecordFile};
use crate::replica::{self, ReplicaRole};
use crate::report::ClusterSurveys;
use crate::status::StatusService;
use crate::take_over::{self, ApplyError, TakeOverService};
use crate::task::{Stop, Task};
use crate::view::View;

use maker::{Doors, Maker};

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
    /// How long clients wait while no node writes.
    pub writer_wait: Duration,
    /// Where the cluster is archived, if it is. All nodes should have the same.
    pub archive: Option<ArchivePlace>,
    /// Opens the archive that the cluster begins with, if it begins with one.
    pub open_archive: OpenArchive,
    /// How clients are answered. Without an address to listen at, the node listens where its
    /// directory says, or where the layout says that clients reach it. At the address of metrics
    /// the process answers probes too.
    pub endpoint: EndpointOptions,
    /// Where the node listens for the other nodes. `None`: where its directory says, or where they
    /// reach it.
    pub listen: Option<SocketAddr>,
    /// How long statements may run on when the process is closed.
    pub patience: Duration,
    /// For how long nobody uses the cluster before its compute pauses; `None`: it never does.
    pub pause_after: Option<Duration>,
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
    /// The file that says what the cluster begins with.
    #[error("{}: {source}", path.display())]
    Origin { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Control(#[from] ControlOpenError),
    /// The control node of the process takes no part any more.
    #[error("{0}; start the node again")]
    ControlFailed(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Log(#[from] LogError),
    /// What the process was told before it ended is not done yet.
    #[error(transparent)]
    TakeOver(#[from] ApplyError),
    /// The process has got an order that it carries out when it starts.
    #[error("the cluster goes on without other zones; the node starts again")]
    StartsAgain,
    /// The cluster has gone on without this node.
    #[error(
        "another zone has taken the cluster over without this node (generation {heard}, and this node is of {own}); what it has may lack from there, and have what is lost there. Keep {}, or let the node join again with an empty directory and another name",
        directory.display()
    )]
    LeftBehind { heard: u64, own: u64, directory: PathBuf },
    /// The files of the process's page node.
    #[error(transparent)]
    Pages(Arc<OpenError>),
    /// The other nodes cannot reach this one.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Nobody can probe it.
    #[error(transparent)]
    Probes(std::io::Error),
    /// Clients cannot reach this node.
    #[error(transparent)]
    Clients(std::io::Error),
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
    /// Looks whether the cluster has gone on without this process.
    watching: Task,
    server: Server,
    /// Answers probes and scrapes until it is dropped.
    _http: Option<HttpServer>,
}

/// The parts of the process, and what they belong to.
struct Shared {
    node: NodeId,
    control: ControlRole,
    parts: OnceLock<Parts>,
    /// Why the parts of a process that starts for the first time could not be made.
    failure: Mutex<Option<ProcessError>>,
    fate: Fate,
}

/// Whether the process goes on with the cluster as it is.
struct Fate {
    taking_over: Arc<TakeOverService>,
    left_behind: Arc<LeftBehind>,
    directory: PathBuf,
}

impl Fate {
    fn failure(&self) -> Option<ProcessError> {
        if self.taking_over.is_ordered() {
            return Some(ProcessError::StartsAgain);
        }
        let heard = self.left_behind.heard()?;
        let (own, directory) = (self.left_behind.generation(), self.directory.clone());
        Some(ProcessError::LeftBehind { heard, own, directory })
    }
}

/// What the process consists of, by its roles.
struct Parts {
    /// The member of the log group, with the engine over it.
    log: Arc<LogRole>,
    pages: Option<Arc<PageRole>>,
    archive: Option<Arc<ArchiveRole>>,
    /// Of a process with the role `database`, `replica` or `proxy`.
    door: Option<Arc<Clients>>,
    /// How long their statements may run on when the process ends.
    patience: Duration,
    replica: Option<ReplicaRole>,
    /// Where the engine or the replica reads.
    engine_pages: Option<Arc<EnginePages>>,
    /// Where the process listens for clients, and where they reach it.
    clients: (Option<SocketAddr>, Option<Address>),
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
        take_over::apply(environment, &options.directory, options.node.storage.log)?;
        let origin = origin(environment, seed, options)?;
        let (record, layout) = begin_life(environment, seed, options)?;
        let (record, view) = (Arc::new(record), Arc::new(View::new(layout)));
        let own = record.get();
        let local = Arc::new(LocalNode::new(own.identity(), 0));
        let identity = (own.identity().node, own.generation);
        let left_behind = Arc::new(LeftBehind::new(environment, &local, identity, &view));
        left_behind.look();
        let fate = Fate {
            taking_over: Arc::new(TakeOverService::new(
                &environment.disk,
                &options.directory,
                identity,
                &view,
            )),
            left_behind,
            directory: options.directory.clone(),
        };
        if let Some(left) = fate.failure() {
            return Err(left);
        }
        let doors = Doors::new(environment, options.pause_after);
        let control = ControlPart::open(environment, &local, &options.directory, &record, &view)?;
        let surveys = Arc::new(ClusterSurveys::new(environment, &local, &view));
        let maker = Maker {
            environment: environment.clone(),
            view,
            local: Arc::clone(&local),
            own: own.entry(),
            client_listen: client_listen(&own)?,
            metrics: Arc::default(),
            surveys,
            origin: origin.map(Arc::new),
            record,
            options: options.clone(),
            doors: doors.clone(),
        };
        let writer = Arc::clone(&doors.writer);
        let told = Arc::<OnceLock<Weak<Shared>>>::default();
        let mut offers = doors.offers();
        offers.extend(control.offers());
        offers.push(status_service(own.entry().number, Arc::clone(&told)).offer());
        offers.push(fate.taking_over.offer());
        let watching = fate.left_behind.watch(environment);
        let metrics = Arc::clone(&maker.metrics);
        let listen = own.listen.map_or_else(|| own.address.clone(), Address::Tcp);
        let settings = ServerSettings::default();
        let server = Server::start(environment, Arc::clone(&local), &listen, settings, offers)?;
        let shared = Arc::new(Shared {
            node: own.entry().number,
            control: control.start(environment, &local),
            parts: OnceLock::new(),
            failure: Mutex::new(None),
            fate,
        });
        let _ = told.set(Arc::downgrade(&shared));
        let http = serve_http(environment, options, &metrics, own.entry(), &shared)?;
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
        Ok(RunningProcess { node, cluster, shared, writer, opening, watching, server, _http: http })
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

    /// If this process writes and another one can, has that one write, with a planned switch: for a
    /// process that ends while its cluster goes on. Blocks, for a few seconds at most.
    pub fn give_office_up(&self) {
        if let Some(parts) = self.shared.parts.get() {
            parts.log.give_office_up();
        }
    }

    /// Closes everything in order. Blocks.
    pub fn close(&self) {
        if let Some(opening) = &self.opening {
            opening.close();
        }
        self.watching.close();
        match self.shared.parts.get() {
            Some(parts) => parts.close(&self.writer),
            None => self.writer.close(),
        }
        self.shared.control.close();
        self.server.close();
    }
}

/// What the node's cluster begins with, according to the layout of its first start.
fn origin(
    environment: &Environment,
    seed: Option<(&Layout, NodeId)>,
    options: &ProcessOptions,
) -> Result<Option<Origin>, ProcessError> {
    let (disk, directory) = (&*environment.disk, &*options.directory);
    let at = |source| ProcessError::Origin { path: directory.to_owned(), source };
    let told = seed.and_then(|(layout, _)| layout.origin());
    if let Some(origin) = told.filter(|_| !has_record(disk, directory)) {
        origin.write(disk, directory).map_err(at)?;
    }
    Origin::read(disk, directory).map_err(at)
}

/// The record of a directory for a new life of its node, and the cluster as far as it is known.
fn begin_life(
    environment: &Environment,
    seed: Option<(&Layout, NodeId)>,
    options: &ProcessOptions,
) -> Result<(RecordFile, Layout), ProcessError> {
    let directory = &*options.directory;
    let found = RecordFile::read(&*environment.disk, directory)?;
    let mut record = match (found, seed) {
        (Some(found), None) => found,
        (None, None) => return Err(ProcessError::NoRecord(directory.to_owned())),
        (found, Some((layout, number))) => {
            let node = layout.node(number).ok_or(ProcessError::NoNode(number))?;
            let mut record = found.unwrap_or_else(|| Record {
                // Founders make the pages from the beginning of the log.
                held: layout.chunks_on(number).map(|chunk| (chunk, FOUNDED_EPOCH)).collect(),
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
            record.address.clone_from(&node.address);
            record.client_address.clone_from(&node.client_address);
            (record.listen, record.client_listen) = (None, None);
            if !record.is_member {
                record.log_member = layout.log_member_on(number).map(|member| MemberPlace {
                    member,
                    is_founder: true,
                    is_made: false,
                });
            }
            record
        }
    };
    record.listen = options.listen.or(record.listen);
    record.client_listen = options.endpoint.listen.or(record.client_listen);
    record.incarnation += 1;
    let seed = seed.map(|(layout, _)| layout.clone());
    let layout = record.layout.clone().or(seed);
    let layout = layout.ok_or_else(|| ProcessError::NoRecord(directory.to_owned()))?;
    record.note_parts(&layout);
    Ok((RecordFile::write(&environment.disk, directory, record)?, layout))
}

/// Answers probes and scrapes, if the process is told where.
fn serve_http(
    environment: &Environment,
    options: &ProcessOptions,
    metrics: &Arc<MetricsDoor>,
    node: NodeEntry,
    shared: &Arc<Shared>,
) -> Result<Option<HttpServer>, ProcessError> {
    let Some(address) = options.endpoint.metrics_listen else { return Ok(None) };
    let shared = Arc::downgrade(shared);
    let obstacle = move || match shared.upgrade() {
        Some(shared) => health::obstacle(&shared.status(), node.roles),
        None => Some("it closes".to_owned()),
    };
    let served = health::serve(environment, address, metrics, obstacle);
    served.map(Some).map_err(ProcessError::Probes)
}

/// Where a node listens for clients. If that is the host of a name, blocks until it is resolved.
fn client_listen(own: &Record) -> Result<Option<SocketAddr>, NetworkError> {
    let (None, Some(address)) = (own.client_listen, &own.client_address) else {
        return Ok(own.client_listen);
    };
    let found = sockets::resolve(address, sockets::LISTENING_NAME_TIMEOUT)?;
    Ok(found.into_iter().find_map(|found| match found {
        Address::Tcp(found) => Some(found),
        Address::Named(..) | Address::Unix(_) => None,
    }))
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
        let (log, pages) = (Arc::clone(&parts.log), parts.pages.clone());
        let engine_pages = parts.engine_pages.clone();
        self.control.set_parts(Governed { log, pages, engine_pages });
        // The layout may have changed since the member was opened.
        parts.log.layout_changed();
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
        if let Some(failure) = self.failure.lock().take().or_else(|| self.fate.failure()) {
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
        let generation = self.fate.left_behind.generation();
        NodeStatus { failure: self.control.refusal().or(status.failure), generation, ..status }
    }
}

impl Parts {
    fn failure(&self) -> Option<ProcessError> {
        let log = self.log.member().and_then(|log| log.store.failure());
        let pages = || self.pages.as_ref()?.failure().map(ProcessError::Pages);
        log.map(ProcessError::Log).or_else(pages)
    }

    fn close(&self, writer: &WriterService) {
        // Before the door: it tells clients of this process that the server ends, and those of
        // other nodes read on elsewhere.
        if let Some(replica) = &self.replica {
            replica.close();
        }
        if let Some(door) = &self.door {
            door.shut_down(self.patience);
        }
        self.log.close_database();
        if let Some(door) = &self.door {
            door.close();
        }
        writer.close();
        if let Some(archive) = &self.archive {
            archive.close();
        }
        if let Some(pages) = &self.engine_pages {
            pages.close();
        }
        if let Some(pages) = &self.pages {
            pages.close();
        }
        self.log.close();
    }

    /// Where clients reach an endpoint that listens here.
    fn reached_at(&self, listens: SocketAddr) -> String {
        match &self.clients {
            (Some(expected), Some(address)) if *expected == listens => address.to_string(),
            _ => listens.to_string(),
        }
    }

    /// Where clients are answered, and how.
    fn serves(&self, state: Option<&DatabaseState>) -> Option<String> {
        if let Some(DatabaseState::Serving(Some(address))) = state {
            return Some(self.reached_at(*address));
        }
        if matches!(state, Some(DatabaseState::Paused)) {
            let address = self.door.as_ref().and_then(|door| door.address())?;
            return Some(format!("{}, paused", self.reached_at(address)));
        }
        // A node that leads opens its engine now.
        let leads = self.log.member().is_some_and(|log| log.store.leads().is_some());
        let door = self.door.as_ref().filter(|_| !leads)?;
        let how = match (door.has_writer(), door.are_paused()) {
            (true, _) => "forwards",
            (false, true) => "paused",
            (false, false) => "finds no writer",
        };
        Some(format!("{}, {how}", self.reached_at(door.address()?)))
    }

    fn status(&self, node: NodeId) -> NodeStatus {
        let state = self.log.with_database(DatabaseRole::state);
        let state = state.or_else(|| self.replica.as_ref().map(ReplicaRole::state));
        NodeStatus {
            node,
            log: self.log.member().map(|log| LogStatus {
                leads: log.store.leads().map(|term| term.0),
                leader: log.store.leader().map(|member| member.0),
                truncated: log.store.truncated_lsn(),
                durable: log.store.durable_lsn(),
                end: log.store.end(),
                history: self.log.durable_history(),
                failure: log.store.failure().map(|error| error.to_string()),
            }),
            pages: self.pages.as_ref().and_then(|pages| pages.status()),
            replica: self.replica.as_ref().map(ReplicaRole::status),
            archive: self.archive.as_ref().map(|archive| archive.status()),
            serves: self.serves(state.as_ref()),
            is_paused: matches!(state, Some(DatabaseState::Paused)),
            failure: match state {
                Some(DatabaseState::Failing(reason)) => Some(reason),
                _ => None,
            },
            generation: 0,
        }
    }
}
