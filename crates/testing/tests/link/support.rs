//! A server, its services and its clients.

use std::sync::Arc;
use std::time::Duration;

use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::sleep;
use firn_link::{
    Caller, CallerSettings, FIRST_SERVICE_CODE, LocalNode, Offer, Peer, Placement, Request,
    RequestKind, Responder, Server, ServerSettings, Service, ServiceId,
};
use firn_testing::simulation::{Process, World};
use parking_lot::Mutex;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const PORT: u16 = 7000;
/// Executed by workers.
pub(crate) const WORK: ServiceId = ServiceId(1);
/// Executed by readers.
pub(crate) const SHORT: ServiceId = ServiceId(2);
/// Executed by workers; answers a follower as it answers a call.
pub(crate) const ONCE: ServiceId = ServiceId(3);
pub(crate) const WINDOW: u32 = 4096;

pub(crate) fn node(cluster: u128, node: u64, name: &str, epoch: u64) -> Arc<LocalNode> {
    let roles = Roles::of(&[Role::Log]);
    let (cluster, node) = (ClusterId(cluster), NodeId(node));
    let identity = NodeIdentity { cluster, node, name: name.to_owned(), roles };
    Arc::new(LocalNode::new(identity, epoch))
}

/// What the services of a test have executed, over all lives of the server.
#[derive(Default)]
pub(crate) struct Executed {
    pub(crate) calls: Vec<u64>,
    pub(crate) casts: Vec<u64>,
    /// Bytes of requests that have arrived and are not finished, at most.
    pub(crate) cancelled: u64,
    /// Requests that had a connection of their own.
    pub(crate) alone: u64,
}

pub(crate) type Record = Arc<Mutex<Executed>>;

/// The payload of a request: its number, and how long it takes.
pub(crate) fn request(number: u64, takes: Duration) -> Vec<u8> {
    [number.to_le_bytes(), (takes.as_micros() as u64).to_le_bytes()].concat()
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap())
}

/// Writes down what it executes, takes the time that the request says, and answers with the number.
/// Refuses number 13. Answers a follower with that many numbers.
pub(crate) struct Recorder {
    pub(crate) record: Record,
    pub(crate) answers_once: bool,
}

impl Service for Recorder {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        let (number, takes) = (word(&request.payload, 0), word(&request.payload, 1));
        self.record.lock().alone += u64::from(request.is_alone);
        match request.kind {
            RequestKind::Follow if self.answers_once => self.record.lock().calls.push(number),
            RequestKind::Call => self.record.lock().calls.push(number),
            RequestKind::Cast => self.record.lock().casts.push(number),
            RequestKind::Follow => return push_numbers(number, takes, responder),
        }
        if takes > 0 {
            sleep(Duration::from_micros(takes));
        }
        if responder.is_cancelled() {
            self.record.lock().cancelled += 1;
        }
        match number {
            13 => responder.refuse(FIRST_SERVICE_CODE, "13 is refused"),
            number => responder.reply(number.to_le_bytes().to_vec()),
        }
    }
}

/// Pushes `count` numbers, each with `bytes` further bytes.
fn push_numbers(count: u64, bytes: u64, responder: Responder) {
    for number in 0..count {
        let mut message = number.to_le_bytes().to_vec();
        message.resize(8 + bytes as usize, 0);
        if responder.push(message, 3600 * SECOND).is_err() {
            return;
        }
    }
    responder.reply(count.to_le_bytes().to_vec());
}

pub(crate) fn settings() -> ServerSettings {
    ServerSettings { workers: 2, window_bytes: WINDOW, queue_bytes: 4096, ..Default::default() }
}

/// Starts a server in a process; it ends with the process.
pub(crate) fn serve(process: &Process, local: Arc<LocalNode>, record: &Record) -> Arc<Server> {
    let service = |answers_once| Arc::new(Recorder { record: Arc::clone(record), answers_once });
    let offers = vec![
        Offer { id: WORK, placement: Placement::Workers, service: service(false) },
        Offer { id: SHORT, placement: Placement::Reader, service: service(false) },
        Offer { id: ONCE, placement: Placement::Workers, service: service(true) },
    ];
    let environment = process.environment();
    let address = process.address(PORT);
    let started = Server::start(&environment, local, &address, settings(), offers);
    Arc::new(started.unwrap())
}

/// Starts process `b` with a server.
pub(crate) fn start_server(world: &World, record: &Record) -> (Process, Arc<Server>) {
    let process = world.start("b", &world.new_disk());
    let server = serve(&process, node(1, 2, "b", 0), record);
    (process, server)
}

pub(crate) fn caller_settings(world: &World) -> CallerSettings {
    let mut settings = CallerSettings::new(world.network().address("b", PORT));
    settings.connect_timeout = SECOND;
    settings
}

/// A link of a process to `b`.
pub(crate) fn link(world: &World, process: &Process, local: Arc<LocalNode>) -> Arc<Caller> {
    Arc::new(Caller::new(&process.environment(), local, caller_settings(world)))
}

/// Process `a` with a link to `b`.
pub(crate) fn start_client(world: &World) -> (Process, Arc<Caller>) {
    let process = world.start("a", &world.new_disk());
    let caller = link(world, &process, node(1, 1, "a", 0));
    (process, caller)
}
