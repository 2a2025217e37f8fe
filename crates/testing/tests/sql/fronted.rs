//! A front before a server: clients connect to it, and their sessions run in the server. With a
//! replica, what only reads runs there, in the front's process or at the other end of a link.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use firn_base::Environment;
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Roles};
use firn_compute::statement_effect::{StatementEffect, effect_of};
use firn_compute::statement_route::{StatementRoute, StatementRoutes};
use firn_engine::replica::{Replica, ReplicaOptions};
use firn_engine::rows::replica::ReplicaNode;
use firn_link::{Caller, CallerSettings, LocalNode, Server as LinkServer, ServerSettings};
use firn_node::endpoint::{Endpoint, EndpointOptions};
use firn_node::node::Node;
use firn_node::replica::open_beside;
use firn_session_service::{
    BackendLinks, Backends, Front, FrontOptions, READING_SERVICE, Route, SESSION_SERVICE,
    SessionService, StatementClass,
};
use firn_sql_evaluation::PureEvaluator;
use firn_wire::{LimitValues, Limits, Server as WireServer, ServerOptions};

/// A front, and the service of the server that it leads to.
pub(crate) struct Fronted {
    clients: WireServer,
    front: Arc<Front>,
    /// Whether its sessions run in its own process.
    is_here: bool,
    service: Arc<SessionService>,
    readings: Arc<SessionService>,
    links: LinkServer,
    reader: Option<Reader>,
}

/// Where a front's sessions run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In its own process.
    Here,
    /// At the other end of a link.
    Elsewhere,
}

/// A replica in this process.
struct Reader {
    endpoint: Endpoint,
    replica: Arc<Replica>,
    /// Whether the front reaches it as one of another process.
    place: Place,
}

impl Reader {
    fn of(environment: &Environment, node: &Node, directory: &Path, place: Place) -> Reader {
        let replica = open_beside(environment, node, ReplicaOptions::default());
        let replica = replica.expect("a replica");
        let rows = ReplicaNode::new(Arc::clone(&replica), Duration::from_secs(60))
            .with_evaluator(Arc::new(PureEvaluator));
        let data_dir = directory.join("reader");
        std::fs::create_dir(&data_dir).expect("a directory for the replica");
        let options = EndpointOptions { data_dir, ..EndpointOptions::default() };
        let endpoint = Endpoint::start_replica(environment, Arc::new(rows), &options);
        Reader { endpoint: endpoint.expect("an endpoint"), replica, place }
    }
}

/// The server, which has what reads for others too.
struct One(BackendLinks);

impl Backends for One {
    fn links(&self) -> Vec<BackendLinks> {
        vec![self.0.clone()]
    }

    fn readers(&self) -> Vec<BackendLinks> {
        vec![self.0.clone()]
    }
}

fn node(number: u64) -> Arc<LocalNode> {
    let identity = NodeIdentity {
        cluster: ClusterId(1),
        node: NodeId(number),
        name: format!("node-{number}"),
        roles: Roles::of(&[]),
    };
    Arc::new(LocalNode::new(identity, 0))
}

/// What a statement does.
pub(crate) fn class_of(text: &[u8]) -> StatementClass {
    match effect_of(text) {
        StatementEffect::Reads => StatementClass::Reads,
        StatementEffect::Writes => StatementClass::Writes,
        StatementEffect::Commits => StatementClass::Commits,
        StatementEffect::StaysInTransaction => StatementClass::StaysInTransaction,
        StatementEffect::Begins => StatementClass::Begins,
        StatementEffect::Other => StatementClass::Other,
    }
}

/// Where a statement may run.
fn router() -> firn_session_service::Router {
    let routes = StatementRoutes::default();
    Arc::new(move |text| match routes.of(text) {
        StatementRoute::Reads => Route::Reads,
        StatementRoute::Follows => Route::Follows,
        StatementRoute::Begins => Route::Begins,
        StatementRoute::Ends => Route::Ends,
        StatementRoute::Writer => Route::Writer,
    })
}

impl Fronted {
    /// A front, if the environment variable wants one.
    pub(crate) fn if_wanted(
        environment: &Environment,
        endpoint: &Endpoint,
        node: &Node,
        directory: &Path,
    ) -> Option<Fronted> {
        let reader = match std::env::var("FIRN_SQL_SESSIONS").as_deref() {
            Ok("messages") => None,
            Ok("replica") => Some(Place::Here),
            Ok("far_replica") => Some(Place::Elsewhere),
            Ok(other) => panic!(
                "FIRN_SQL_SESSIONS is 'messages', 'replica', 'far_replica' or not set, not {other:?}"
            ),
            Err(_) => return None,
        };
        let reader = reader.map(|place| Reader::of(environment, node, directory, place));
        Some(Fronted::of(environment, endpoint, reader))
    }

    /// A front whose sessions run there.
    pub(crate) fn before(endpoint: &Endpoint, place: Place) -> Fronted {
        let mut fronted = Fronted::of(&Environment::system(), endpoint, None);
        fronted.is_here = place == Place::Here;
        fronted.begin_here(endpoint);
        fronted
    }

    fn begin_here(&self, endpoint: &Endpoint) {
        if self.is_here {
            self.front.begin_local(Arc::clone(endpoint.service()) as _);
        }
    }

    /// The server hands its sessions over to itself, as a node does whose successor does not lead.
    pub(crate) fn switch(&self, endpoint: &Endpoint, patience: Duration) {
        self.service.begin_leaving();
        self.front.begin_leaving();
        self.service.begin_handing_over();
        self.front.begin_handing_over();
        let until = Instant::now() + patience;
        let wait = Duration::from_millis(5);
        // It takes the next one only once it knows that this one has ended.
        while self.front.is_attached() {
            assert!(Instant::now() < until, "the front stays");
            std::thread::sleep(wait);
        }
        while !(self.service.wait_until_idle(wait) && self.front.wait_until_idle(wait)) {
            assert!(Instant::now() < until, "a statement holds the switch up");
            self.service.cut();
            self.front.cut();
        }
        assert!(self.service.end(Duration::ZERO) && self.front.end_local(Duration::ZERO));
        let connections = Arc::clone(endpoint.connections());
        self.service.begin(Arc::clone(endpoint.service()) as _, connections);
        self.begin_here(endpoint);
    }

    fn of(environment: &Environment, endpoint: &Endpoint, reader: Option<Reader>) -> Fronted {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let service = SessionService::new(environment, SESSION_SERVICE);
        service.begin(Arc::clone(endpoint.service()) as _, Arc::clone(endpoint.connections()));
        let (address, settings) = (Address::Tcp(any_port), ServerSettings::default());
        let readings = SessionService::new(environment, READING_SERVICE);
        let offers = vec![service.offer(), readings.offer()];
        let links = LinkServer::start(environment, node(1), &address, settings, offers);
        let links = links.expect("a server of links");
        let local = node(2);
        let link = || {
            let settings = CallerSettings::new(links.address());
            Arc::new(Caller::new(environment, Arc::clone(&local), settings))
        };
        let backend = BackendLinks { commands: link(), control: link(), is_far: false };
        let backends = Arc::new(One(backend));
        let options = FrontOptions {
            patience: Duration::from_secs(60),
            judge: Arc::new(class_of),
            router: router(),
        };
        let front = Front::new(environment, backends, options);
        if let Some(Reader { endpoint, place, .. }) = &reader {
            let (service, connections) = (endpoint.service(), endpoint.connections());
            match place {
                Place::Here => front.begin_reading(Arc::clone(service) as _),
                Place::Elsewhere => {
                    readings.begin(Arc::clone(service) as _, Arc::clone(connections));
                    let until = Instant::now() + Duration::from_secs(60);
                    while !front.can_read() {
                        assert!(Instant::now() < until, "the front does not find the replica");
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
            }
        }
        let limits = LimitValues { max_connections: 1000, ..LimitValues::default() };
        let options = ServerOptions {
            listen: vec![Address::Tcp(any_port)],
            server_version: firn_compute::session_facts::SERVER_VERSION.to_owned(),
            connection_ids: endpoint.instance().connection_ids(),
            limits: Arc::new(Limits::new(&limits)),
            ..ServerOptions::default()
        };
        let clients = WireServer::start(environment.clone(), options, Arc::clone(&front) as _);
        let clients = clients.expect("a server of clients");
        Fronted { clients, front, is_here: false, service, readings, links, reader }
    }

    pub(crate) fn port(&self) -> u16 {
        match &self.clients.addresses()[0] {
            Address::Tcp(address) => address.port(),
            other => panic!("it listens at {other}"),
        }
    }
}

impl Drop for Fronted {
    fn drop(&mut self) {
        self.clients.shutdown(Duration::from_secs(1));
        self.front.end_reading(Duration::ZERO);
        self.readings.end(Duration::ZERO);
        self.front.close();
        if let Some(Reader { endpoint, replica, .. }) = self.reader.take() {
            endpoint.shutdown(Duration::ZERO);
            drop(endpoint);
            replica.close();
        }
        self.service.close();
        self.readings.close();
        self.links.close();
    }
}
