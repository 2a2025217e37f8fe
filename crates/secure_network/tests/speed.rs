//! What links carry over loopback, as plain text and over TLS. Run by
//! `cargo test --release -p firn-secure-network --test speed -- --ignored --nocapture`.

#![allow(clippy::disallowed_types, reason = "a measurement takes the machine's time")]

use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_link::{
    Body, Caller, CallerSettings, LocalNode, Offer, Payload, Peer, Placement, Request, RequestKind,
    Responder, Server, ServerSettings, Service, ServiceId,
};
use firn_secure_network::{Authority, Credentials, SecureNetwork};

const PATIENCE: Duration = Duration::from_secs(60);
const TIME: Duration = Duration::from_secs(2);
const PAGE_BYTES: usize = 16 << 10;
/// Answers with as many bytes as were sent, on the reader and on workers.
const ECHO: ServiceId = ServiceId(1);
const ECHO_ON_WORKERS: ServiceId = ServiceId(2);
/// Answers with a page.
const PAGES: ServiceId = ServiceId(3);

struct Echo;

impl Service for Echo {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        responder.reply(request.payload);
    }
}

struct Pages(Payload);

impl Service for Pages {
    fn serve(&self, _: &Peer, request: Request, responder: Responder) {
        if request.kind == RequestKind::Call {
            responder.reply(self.0.clone());
        }
    }
}

fn identity(node: u64) -> NodeIdentity {
    let (cluster, roles) = (ClusterId(0xc1), Roles::of(&[Role::Log]));
    NodeIdentity { cluster, node: NodeId(node), name: format!("n{node}"), roles }
}

/// The environments of two nodes with certificates.
fn secure() -> [Environment; 2] {
    let system = Environment::system();
    let now = Duration::from_millis(system.clock.wall_time_ms());
    let made = Authority::create(ClusterId(0xc1), now, 1).unwrap();
    let authority = Authority::read(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
    [1, 2].map(|node| {
        let issued = authority.issue(&identity(node), &[], now, 1).unwrap();
        let credentials = Credentials::read(
            made.certificate.as_bytes(),
            issued.certificate.as_bytes(),
            issued.key.as_bytes(),
            Arc::clone(&system.clock),
        );
        let network = Arc::new(SecureNetwork::new(Arc::new(credentials.unwrap())));
        Environment { network, ..system.clone() }
    })
}

struct Bench {
    name: &'static str,
    caller: Arc<Caller>,
    _server: Server,
}

fn start(name: &'static str, [here, there]: [Environment; 2]) -> Bench {
    let offer = |id, placement, service| Offer { id, placement, service };
    let pages = Arc::new(Pages(vec![7; PAGE_BYTES].into()));
    let offers = vec![
        offer(ECHO, Placement::Reader, Arc::new(Echo) as Arc<dyn Service>),
        offer(ECHO_ON_WORKERS, Placement::Workers, Arc::new(Echo)),
        offer(PAGES, Placement::Reader, pages),
    ];
    let local = |node| Arc::new(LocalNode::new(identity(node), 0));
    let address = "127.0.0.1:0".parse().unwrap();
    let server = Server::start(&there, local(2), &address, ServerSettings::default(), offers);
    let server = server.unwrap();
    let caller = Caller::new(&here, local(1), CallerSettings::new(server.address()));
    assert!(caller.wait_until_up(PATIENCE));
    Bench { name, caller: Arc::new(caller), _server: server }
}

impl Bench {
    /// Runs `work` on threads for a while; it returns how much it did. Returns that per second.
    fn rate(&self, threads: usize, work: impl Fn(&Caller) -> u64 + Sync) -> f64 {
        let clock = Environment::system().clock;
        let began = clock.monotonic();
        let count = || {
            let mut done = 0;
            while clock.monotonic() - began < TIME {
                done += work(&self.caller);
            }
            done
        };
        let done: u64 = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
            running.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        done as f64 / (clock.monotonic() - began).as_secs_f64()
    }

    fn calls(&self, service: ServiceId, threads: usize) -> f64 {
        self.rate(threads, |caller| {
            caller.call(service, &[1; 16][..], PATIENCE).unwrap();
            1
        })
    }

    fn pages(&self, threads: usize, batch: usize) -> f64 {
        self.rate(threads, |caller| {
            let bodies = (0..batch).map(|_| Body::from(&[1; 16][..]));
            let calls = caller.begin_all(PAGES, bodies, PATIENCE);
            let pages = calls.into_iter().map(|call| call.unwrap().wait().unwrap());
            pages.filter(|page| page.len() == PAGE_BYTES).count() as u64
        })
    }

    fn cast_bytes(&self, bytes: usize) -> f64 {
        let body = Body::from(vec![7; bytes]);
        self.rate(1, |caller| {
            caller.cast(PAGES, body.clone(), PATIENCE).unwrap();
            bytes as u64
        })
    }

    fn run(&self) {
        let name = self.name;
        for (what, service) in [("reader", ECHO), ("workers", ECHO_ON_WORKERS)] {
            for threads in [1, 16, 64] {
                let before = self.caller.statistics();
                let rate = self.calls(service, threads);
                let after = self.caller.statistics();
                let items = (after.items_sent - before.items_sent) as f64;
                let per_write = items / (after.writes - before.writes) as f64;
                println!(
                    "{name}: {threads} threads, {what}: {rate:.0} calls/s, {per_write:.1} a write"
                );
            }
        }
        for (threads, batch) in [(1, 1), (1, 64), (4, 64)] {
            let rate = self.pages(threads, batch);
            println!("{name}: {threads} threads, {batch} at once: {rate:.0} pages/s");
        }
        for bytes in [4 << 10, 256 << 10] {
            let rate = self.cast_bytes(bytes) / 1e6;
            println!("{name}: casts of {bytes} bytes: {rate:.0} MB/s");
        }
    }
}

#[test]
#[ignore = "a measurement"]
fn links_over_loopback() {
    start("plain", [Environment::system(), Environment::system()]).run();
    start("TLS", secure()).run();
}
