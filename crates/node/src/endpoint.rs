//! A node's SQL endpoint: the MySQL port over an engine in this process.
//!
//! ```text
//!   clients ──► wire::Server ──► compute::SqlService ──► EngineNode (engine::rows) ──► Node
//! ```

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

mod client_door;

use firn_base::network::Address;
use std::io;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use firn_api::cluster::ClusterSeam;
use firn_api::rows::{DatabaseNode, HandedSession, WriterLease};
use firn_api::server::ServerState;
use firn_base::disk::SpillDirectory;
use firn_base::{Environment, memory};
use firn_compute::server::LocalServerState;
use firn_compute::session_facts::SERVER_VERSION;
pub use firn_compute::variables::KeptGlobals;
use firn_compute::variables::{GlobalVariables, Setting};
use firn_compute::{
    GlobalHook, Instance, InstanceOptions, OpenError, SqlService, StatisticsKeeper,
};
use firn_engine::EngineError;
use firn_engine::rows::EngineNode;
use firn_sql_collation::Collations;
use firn_sql_evaluation::PureEvaluator;
use firn_wire::{Connections, LimitValues, Limits, Server, ServerOptions, TlsFiles, TlsMode};

pub use client_door::ClientDoor;
use client_door::tcp_address;

use crate::http::{HttpServer, Reply};
use crate::metrics::MetricsPage;
use crate::node::Node;
use crate::reporter::NodeReporter;
use crate::server_uuid;

/// Applies `log_error_verbosity`: 1 errors, 2 warnings as well, 3 notes as well.
pub type SetVerbosity = Arc<dyn Fn(u64) + Send + Sync>;

/// Where and how clients connect.
#[derive(Clone)]
pub struct EndpointOptions {
    /// The TCP address; the system chooses a port for 0.
    pub listen: Option<SocketAddr>,
    /// The Unix socket.
    pub socket: Option<PathBuf>,
    /// How many clients can be connected at once.
    pub max_connections: u64,
    /// Files of certificate and key; `None`: the endpoint makes a self-signed certificate.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Address of metrics and probes; `None`: there are none.
    pub metrics_listen: Option<SocketAddr>,
    /// The initial `log_error_verbosity`, that of the process's log.
    pub log_error_verbosity: u64,
    /// Called when `log_error_verbosity` changes.
    pub set_verbosity: Option<SetVerbosity>,
    /// The node's directory, for `@@datadir`.
    pub data_dir: PathBuf,
    /// The directory below which statements may read and write files; `None`: nowhere.
    pub secure_file_priv: Option<PathBuf>,
    /// The buffer pool's size, for `@@innodb_buffer_pool_size`.
    pub buffer_pool_bytes: u64,
    /// Memory for columns that are kept between analytic statements.
    pub column_cache_bytes: u64,
    /// The clients' port, if it is not the endpoint's own: it outlives the endpoint, which does not
    /// listen.
    pub door: Option<Arc<ClientDoor>>,
    /// What the SQL tables about the cluster show; `None`: they are empty.
    pub cluster: Option<Arc<dyn ClusterSeam>>,
    /// Over a node that other ones may replace as the writer: strong reads are answered only while
    /// this lasts.
    pub lease: Option<Arc<dyn WriterLease>>,
    /// The sessions of the writer before that go on here. See [`Endpoint::take_over`].
    pub coming: Vec<HandedSession>,
    /// Global variables of an endpoint before, with which this one goes on.
    pub globals: Option<KeptGlobals>,
}

impl Default for EndpointOptions {
    /// An endpoint that listens nowhere.
    fn default() -> EndpointOptions {
        EndpointOptions {
            listen: None,
            socket: None,
            max_connections: 1000,
            tls: None,
            metrics_listen: None,
            log_error_verbosity: 2,
            set_verbosity: None,
            data_dir: PathBuf::new(),
            secure_file_priv: None,
            buffer_pool_bytes: 0,
            column_cache_bytes: COLUMN_CACHE_BYTES,
            door: None,
            cluster: None,
            lease: None,
            coming: Vec::new(),
            globals: None,
        }
    }
}

/// Why an endpoint did not start.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The dictionary cannot be opened.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The compute node cannot be opened.
    #[error(transparent)]
    Compute(#[from] OpenError),
    /// An address cannot be used, or a certificate cannot be read.
    #[error(transparent)]
    Listen(#[from] io::Error),
    /// Other machines could connect, and no account has a password.
    #[error(
        "{0} can be reached from other machines, and no account has a password; listen at 127.0.0.1 first, \
         create an account (CREATE USER 'name'@'%' IDENTIFIED BY '…'), then listen at {0}"
    )]
    NobodyHasPassword(SocketAddr),
}

/// What the endpoints over one node share.
#[derive(Clone)]
pub struct ComputeSeams {
    /// The node's tables and transactions.
    pub rows: Arc<dyn DatabaseNode>,
    /// State that belongs to the server.
    pub server: Arc<dyn ServerState>,
}

/// A running endpoint. Dropping it ends it without waiting for statements.
pub struct Endpoint {
    _statistics: StatisticsKeeper,
    /// Dropped before the instance whose figures it shows.
    http: Option<HttpServer>,
    metrics: Arc<MetricsPage>,
    /// The clients' port, if it is not the server's.
    door: Option<Arc<ClientDoor>>,
    server: Server,
    instance: Arc<Instance>,
    service: Arc<SqlService>,
}

impl Endpoint {
    /// Opens the dictionary of a node, of which this is the only endpoint, and listens. Blocks.
    ///
    /// # Errors
    /// [`EndpointError`]: the accounts cannot be read, the endpoint cannot listen at an address, or
    /// other machines could connect without a password.
    pub fn start(
        environment: &Environment,
        node: &Arc<Node>,
        options: &EndpointOptions,
    ) -> Result<Endpoint, EndpointError> {
        let seams = ComputeSeams {
            rows: open_rows(node)?,
            server: Arc::new(LocalServerState::of_one_node()),
        };
        Endpoint::start_over(environment, node, seams, options)
    }

    /// Like [`Endpoint::start`], over seams that several endpoints share. Each endpoint has its own
    /// directory in `options`. Blocks.
    ///
    /// # Errors
    /// As [`Endpoint::start`].
    pub fn start_over(
        environment: &Environment,
        node: &Arc<Node>,
        seams: ComputeSeams,
        options: &EndpointOptions,
    ) -> Result<Endpoint, EndpointError> {
        let count = |bytes: ColumnCacheBytes| node.count_column_cache(bytes);
        Endpoint::start_on(environment, seams, options, &count)
    }

    /// Like [`Endpoint::start`], over a node that only reads: sessions that want to write are
    /// refused as with `super_read_only`. Blocks.
    ///
    /// # Errors
    /// As [`Endpoint::start`].
    pub fn start_replica(
        environment: &Environment,
        rows: Arc<dyn DatabaseNode>,
        options: &EndpointOptions,
    ) -> Result<Endpoint, EndpointError> {
        let seams = ComputeSeams { rows, server: Arc::new(LocalServerState::of_one_node()) };
        let endpoint = Endpoint::start_on(environment, seams, options, &|_| {})?;
        endpoint.instance.refuse_writes();
        Ok(endpoint)
    }

    fn start_on(
        environment: &Environment,
        seams: ComputeSeams,
        options: &EndpointOptions,
        count_column_cache: &dyn Fn(ColumnCacheBytes),
    ) -> Result<Endpoint, EndpointError> {
        let limits = match &options.door {
            Some(door) => Arc::clone(door.limits()),
            None => Arc::new(Limits::new(&limit_values(options))),
        };
        let instance = open_instance(environment, seams, &limits, options, count_column_cache)?;
        memory::register_cache(&(Arc::clone(&instance) as Arc<dyn memory::Cache>));
        // Behind a door nobody without a password gets in from another machine.
        let listens = options.listen.iter().filter(|_| options.door.is_none());
        for listen in listens.chain(&options.metrics_listen) {
            if !listen.ip().is_loopback() && !instance.accounts.has_remote_account() {
                return Err(EndpointError::NobodyHasPassword(*listen));
            }
        }
        if let Some(globals) = &options.globals {
            instance.go_on_with(globals.clone());
        }
        let service = Arc::new(SqlService::new(Arc::clone(&instance)));
        obey_variables(&instance, &limits, options);
        let mut listening = server_options(options, limits, instance.connection_ids());
        if options.door.is_some() {
            listening.listen.clear();
        }
        let server = Server::start(environment.clone(), listening, Arc::clone(&service) as _)?;
        let statistics = StatisticsKeeper::start(environment, Arc::clone(&instance));
        let door = options.door.clone();
        let connections = door.as_ref().map_or(server.connections(), |door| door.connections());
        let page = MetricsPage::new(Arc::clone(&instance), Arc::clone(connections));
        let metrics = Arc::new(page);
        let http = options.metrics_listen.map(|at| serve_http(environment, at, &metrics));
        let http = http.transpose()?;
        let endpoint =
            Endpoint { _statistics: statistics, http, metrics, door, server, instance, service };
        if let Some(address) = endpoint.address() {
            let port = Setting::Number(i64::from(address.port()));
            endpoint.instance.variables.install("port", port);
        }
        Ok(endpoint)
    }

    /// Takes over what goes on of these sessions, which are those of [`EndpointOptions::coming`],
    /// with the transactions that go on in the node's engine. Call it before there are sessions.
    /// Blocks.
    ///
    /// # Errors
    /// If a lock on a definition is not free.
    pub fn take_over(&self, node: &Node, sessions: Vec<HandedSession>) -> Result<(), EngineError> {
        let dictionary = node.engine().open_dictionary(Arc::new(Collations))?;
        self.instance.take_over(sessions, node.engine().taken_over(&dictionary)?);
        Ok(())
    }

    /// The TCP address at which clients connect.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.door {
            Some(door) => door.address(),
            None => tcp_address(&self.server),
        }
    }

    /// The address at which metrics are scraped.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpServer::address)
    }

    /// The metrics, for a process that serves them itself.
    #[must_use]
    pub fn metrics(&self) -> &Arc<MetricsPage> {
        &self.metrics
    }

    /// What opens sessions, for clients that other processes have.
    #[must_use]
    pub fn service(&self) -> &Arc<SqlService> {
        &self.service
    }

    /// The connections of the clients.
    #[must_use]
    pub fn connections(&self) -> &Arc<Connections> {
        self.door.as_ref().map_or(self.server.connections(), |door| door.connections())
    }

    /// The state that the sessions share.
    #[must_use]
    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Accepts no more statements, waits up to `patience` for running ones, then interrupts them.
    pub fn shutdown(&self, patience: Duration) -> bool {
        self.server.shutdown(patience)
    }
}

/// Serves the metrics of an endpoint that answers clients, and tells probes that it does.
fn serve_http(
    environment: &Environment,
    address: SocketAddr,
    metrics: &Arc<MetricsPage>,
) -> io::Result<HttpServer> {
    let metrics = Arc::clone(metrics);
    let pages = move |path: &str| match path {
        "/metrics" => Some(metrics.reply()),
        "/live" => Some(Reply::text("live\n")),
        "/ready" => Some(Reply::text("ready\n")),
        _ => None,
    };
    HttpServer::start(environment, address, Box::new(pages))
}

/// The tables, transactions and figures of a node, for compute nodes. Reads the dictionary; blocks.
///
/// # Errors
/// If it cannot be read.
pub fn open_rows(node: &Arc<Node>) -> Result<Arc<dyn DatabaseNode>, EngineError> {
    let dictionary = node.engine().open_dictionary(Arc::new(Collations))?;
    let reporter = Arc::new(NodeReporter::of(node));
    Ok(Arc::new(
        EngineNode::new(dictionary).with_evaluator(Arc::new(PureEvaluator)).with_reporter(reporter),
    ))
}

/// Tells the size of the column cache in bytes.
type ColumnCacheBytes = Box<dyn Fn() -> u64 + Send + Sync>;

/// The compute node behind an endpoint.
fn open_instance(
    environment: &Environment,
    seams: ComputeSeams,
    limits: &Arc<Limits>,
    options: &EndpointOptions,
    count_column_cache: &dyn Fn(ColumnCacheBytes),
) -> Result<Arc<Instance>, EndpointError> {
    let variables = variables(options);
    let uuid = server_uuid::of_directory(environment, &options.data_dir)?;
    variables.install("server_uuid", Setting::text(&uuid.to_string()));
    let vectorised = Arc::new(vectorised(options));
    let columns = Arc::downgrade(&vectorised);
    count_column_cache(Box::new(move || {
        columns.upgrade().map_or(0, |engine| engine.column_cache_bytes())
    }));
    Ok(Instance::open(InstanceOptions {
        environment: environment.clone(),
        node: seams.rows,
        server: seams.server,
        incarnation: server_uuid::incarnation(environment, uuid),
        variables,
        global_hook: Some(global_hook(limits, options)),
        spill: spill_directory(environment, options),
        vectorised: Some(vectorised),
        cluster: options.cluster.clone(),
        lease: options.lease.clone(),
        coming: options.coming.clone(),
    })?)
}

/// The directory for spilled rows; `None` if it cannot be opened, so that large statements fail.
fn spill_directory(environment: &Environment, options: &EndpointOptions) -> Option<SpillDirectory> {
    let (disk, path) = (environment.disk.clone(), options.data_dir.join("spill"));
    match SpillDirectory::open(disk, &path, MOST_SPILLED_BYTES) {
        Ok(spill) => Some(spill),
        Err(error) => {
            let path = path.display();
            tracing::warn!(%error, %path, "large statements cannot spill rows to the disk");
            None
        }
    }
}

/// Most bytes that a statement may spill.
const MOST_SPILLED_BYTES: u64 = 64 << 30;
/// Default of [`EndpointOptions::column_cache_bytes`].
const COLUMN_CACHE_BYTES: u64 = 64 << 20;

fn vectorised(options: &EndpointOptions) -> firn_columnar::Engine {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    firn_columnar::Engine::new(processors).with_column_cache(options.column_cache_bytes)
}

/// At least this many clients may be logging in, however few can be connected.
const PENDING_LOGINS: u64 = 1000;

fn limit_values(options: &EndpointOptions) -> LimitValues {
    LimitValues {
        max_connections: options.max_connections,
        // All of them may connect at once.
        max_pending_logins: options.max_connections.max(PENDING_LOGINS),
        ..LimitValues::default()
    }
}

fn server_options(
    options: &EndpointOptions,
    limits: Arc<Limits>,
    connection_ids: RangeInclusive<u32>,
) -> ServerOptions {
    let tcp = options.listen.map(Address::Tcp);
    let unix = options.socket.clone().map(Address::Unix);
    ServerOptions {
        listen: tcp.into_iter().chain(unix).collect(),
        server_version: SERVER_VERSION.to_owned(),
        tls: match &options.tls {
            Some((certificate, key)) => {
                TlsMode::Files(TlsFiles { certificate: certificate.clone(), key: key.clone() })
            }
            None => TlsMode::SelfSigned,
        },
        limits,
        connection_ids,
        ..ServerOptions::default()
    }
}

/// Variables that the wire applies.
const OBEYED: [&str; 6] = [
    "max_connections",
    "connect_timeout",
    "max_allowed_packet",
    "net_read_timeout",
    "net_write_timeout",
    "max_prepared_stmt_count",
];

/// Applies the values that global variables have at the start to the wire and the process's log.
fn obey_variables(instance: &Instance, limits: &Limits, options: &EndpointOptions) {
    for name in OBEYED {
        let value = instance.variables.get(name);
        value.iter().for_each(|value| obey_limit(limits, name, value.number()));
    }
    // A persisted value outweighs the configuration's.
    if let (Some(set_verbosity), Some(value)) =
        (&options.set_verbosity, instance.variables.get("log_error_verbosity"))
        && value.number() != options.log_error_verbosity
    {
        set_verbosity(value.number());
    }
}

/// Applies global variables to the wire and the process's log when they are set.
fn global_hook(limits: &Arc<Limits>, options: &EndpointOptions) -> GlobalHook {
    let (limits, verbosity) = (Arc::clone(limits), options.set_verbosity.clone());
    Box::new(move |name: &str, value: &Setting| match (name, &verbosity) {
        ("log_error_verbosity", Some(set_verbosity)) => set_verbosity(value.number()),
        _ => obey_limit(&limits, name, value.number()),
    })
}

fn obey_limit(limits: &Limits, name: &str, value: u64) {
    match name {
        "max_connections" => limits.set_max_connections(value),
        "connect_timeout" => limits.set_connect_timeout(Duration::from_secs(value)),
        "max_allowed_packet" => limits.set_max_allowed_packet(value),
        "net_read_timeout" => limits.set_net_read_timeout(Duration::from_secs(value)),
        "net_write_timeout" => limits.set_net_write_timeout(Duration::from_secs(value)),
        "max_prepared_stmt_count" => limits.set_max_prepared_stmt_count(value),
        _ => {}
    }
}

/// The machine's name, for `@@hostname`.
fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// System variables that show how this server was set up.
fn variables(options: &EndpointOptions) -> GlobalVariables {
    let variables = GlobalVariables::default();
    let data_dir = format!("{}/", options.data_dir.display());
    variables.install("datadir", Setting::text(&data_dir));
    if let Some(socket) = &options.socket {
        variables.install("socket", Setting::text(&socket.display().to_string()));
    }
    if let Some(listen) = options.listen {
        variables.install("bind_address", Setting::text(&listen.ip().to_string()));
    }
    if let Some(name) = machine_name() {
        variables.install("hostname", Setting::text(&name));
    }
    if let Some(files) = &options.secure_file_priv {
        variables.install("secure_file_priv", Setting::text(&files.display().to_string()));
    }
    let pool = Setting::Number(options.buffer_pool_bytes as i64);
    variables.install("innodb_buffer_pool_size", pool);
    let verbosity = Setting::Number(options.log_error_verbosity as i64);
    variables.install("log_error_verbosity", verbosity);
    let connections = Setting::Number(options.max_connections as i64);
    variables.install("max_connections", connections);
    variables
}
