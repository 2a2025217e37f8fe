//! An engine whose log is in copies elsewhere and whose pages are on two page nodes at the other
//! end of links, under the simulator: the nodes follow the log, die and come back, links are cut
//! and slow, engines crash and are replaced. The pool holds a part of the pages only, so the engine
//! drops pages that it has changed and reads them again. What was acknowledged is there afterwards,
//! and both nodes have the same pages.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogStore, PageRead, PageStore, PageStoreError, Timestamps, WriterEpoch};
use firn_base::network::{Address, ClusterId, NodeId, NodeIdentity, Role, Roles};
use firn_base::task::sleep;
use firn_base::{Environment, PageId, PageNo};
use firn_engine::{Engine, EngineError, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_format::page::PageBuf;
use firn_link::{Caller, CallerSettings, LocalNode, Server, ServerSettings};
use firn_page_service::{
    PageNodeLink, PageService, PageServiceOptions, Placement, RemotePages, RemotePagesOptions,
};
use firn_storage::local::{DatabaseId, OpenError, PageStoreOptions};
use firn_storage::page_node::{PageNode, PageNodeOptions, ReceivedLogOptions};
use firn_testing::quorum_log::{QuorumMembers, QuorumOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, Process, SimulatedDisk, World, for_each_seed};
use parking_lot::Mutex;

use crate::mirror::Trees;
use crate::plan::{Model, Shape};
use crate::verify::Witness;
use crate::worker::{Report, Worker, end_prepared};

const DATABASE: DatabaseId = DatabaseId(*b"database of test");
const PORT: u16 = 7000;
const NODES: [u64; 2] = [1, 2];
const MS: Duration = Duration::from_millis(1);
/// More pages than a space has here.
const MOST_PAGES: u32 = 1500;

fn host(number: u64) -> String {
    format!("pages-{number}")
}

fn local(node: u64, name: &str, role: Role) -> Arc<LocalNode> {
    let (cluster, node) = (ClusterId(1), NodeId(node));
    let identity = NodeIdentity { cluster, node, name: name.to_owned(), roles: Roles::of(&[role]) };
    Arc::new(LocalNode::new(identity, 0))
}

/// A page node: its disk, and its process while it runs.
struct Machine {
    number: u64,
    disk: SimulatedDisk,
    process: Process,
}

/// Log and pages, which outlive the engines.
struct Elsewhere {
    world: World,
    members: QuorumMembers,
    machines: Vec<Machine>,
    random: Random,
}

fn page_node_options(random: &Random, number: u64) -> PageNodeOptions {
    let log = ReceivedLogOptions {
        name: host(number),
        memory_bytes: *random.pick(&[4 << 10, 256 << 10]),
        ..ReceivedLogOptions::default()
    };
    let pages = PageStoreOptions {
        behind_limit_bytes: *random.pick(&[64 << 10, 512 << 10]),
        batch_pages: *random.pick(&[2, 16]),
        grow_bytes: 256 << 10,
        reserve_bytes: 0,
        retry_delay_ms: 2,
        ..PageStoreOptions::default()
    };
    PageNodeOptions { log, pages }
}

/// The body of a page node's process: serves until it is killed.
fn serve(
    environment: &Environment,
    members: &QuorumMembers,
    options: &PageNodeOptions,
    at: (u64, Address),
) {
    let (number, address) = at;
    let node = loop {
        let log = Arc::new(members.log(environment, &host(number)));
        let options = options.clone();
        match PageNode::open(environment, Path::new("/pages"), DATABASE, log, options) {
            Ok(node) => break node,
            Err(OpenError::Log(_)) => sleep(5 * MS),
            Err(error) => panic!("{error}"),
        }
    };
    let service = PageService::new(environment, node, PageServiceOptions::default());
    let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
    let local = local(number, &host(number), Role::Pages);
    let server = Server::start(environment, local, &address, settings, vec![service.offer()]);
    let _server = server.expect("the port is free");
    loop {
        sleep(Duration::from_secs(3600));
    }
}

fn start(world: &World, members: &QuorumMembers, number: u64, disk: &SimulatedDisk) -> Process {
    let process = world.start(&host(number), disk);
    let (members, address) = (members.clone(), process.address(PORT));
    let options = page_node_options(&world.random(), number);
    drop(process.spawn("serve", move |environment| {
        serve(environment, &members, &options, (number, address));
    }));
    process
}

/// How a process reaches log and pages.
#[derive(Clone)]
struct Access {
    members: QuorumMembers,
    addresses: Vec<(u64, Address)>,
}

impl Access {
    /// The pages of these nodes, for a process.
    fn pages(&self, environment: &Environment, numbers: &[u64]) -> Arc<RemotePages> {
        let database = local(1000, "database", Role::Database);
        let wanted = self.addresses.iter().filter(|(number, _)| numbers.contains(number));
        let links = wanted.map(|(number, address)| {
            let mut settings = CallerSettings::new(address.clone());
            (settings.connect_timeout, settings.most_delay) = (200 * MS, 50 * MS);
            let caller = Caller::new(environment, Arc::clone(&database), settings);
            PageNodeLink { node: NodeId(*number), caller: Arc::new(caller), is_far: false }
        });
        let placement = Placement::everywhere(links.collect()).expect("there are nodes");
        RemotePages::open(environment, placement, RemotePagesOptions::default())
    }

    /// An engine of the node `name`, which fences all others.
    fn open(&self, environment: &Environment, name: &str) -> Result<Engine, EngineError> {
        let fabric = InProcessFabric::new(Epoch(environment.clock.wall_time_ms()));
        let storage = Storage {
            log: Arc::new(self.members.log(environment, name)),
            epoch: WriterEpoch::Next,
            pages: self.pages(environment, &NODES),
            timestamps: Timestamps::Local,
            fabric: Arc::new(fabric),
        };
        let mut options = EngineOptions { buffer_pool_bytes: 0, ..EngineOptions::default() };
        options.log.buffer_bytes = 512 << 10;
        options.transactions.transactions = 64;
        options.transactions.table_slots = 16;
        Engine::open(environment, storage, &options)
    }
}

impl Elsewhere {
    fn new(world: &World) -> Elsewhere {
        let random = world.random();
        let members = QuorumMembers::new(QuorumOptions {
            max_delay: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
            ..QuorumOptions::new(random.word())
        });
        let machine = |number| {
            let disk = world.new_disk();
            let process = start(world, &members, number, &disk);
            Machine { number, disk, process }
        };
        let machines = NODES.map(machine).into_iter().collect();
        Elsewhere { world: world.clone(), members, machines, random }
    }

    fn access(&self) -> Access {
        let network = self.world.network();
        let address = |number: u64| (number, network.address(&host(number), PORT));
        Access { members: self.members.clone(), addresses: NODES.map(address).to_vec() }
    }

    /// A page node dies and is started again.
    fn restart(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        match self.random.chance(0.5) {
            true => machine.process.crash(),
            false => machine.process.kill(),
        }
        self.world.sleep(Duration::from_micros(self.random.between(0, 20_000)));
        machine.process = start(&self.world, &self.members, machine.number, &machine.disk);
    }

    /// What may happen while an engine works.
    fn disturb(&mut self) {
        let network = self.world.network();
        for _ in 0..self.random.below(6) {
            self.world.sleep(Duration::from_micros(self.random.between(1, 20_000)));
            let index = self.random.below(2) as usize;
            let node = host(NODES[index]);
            match self.random.below(8) {
                0..3 => self.restart(index),
                3 => network.cut("node", &node),
                4 => {
                    let slow = LinkFaults { delay: MS..=30 * MS, ..LinkFaults::default() };
                    network.set_link(&node, "node", slow);
                }
                5 => self.members.lose_minority(),
                6 => network.set_faults(LinkFaults {
                    loss: 0.03,
                    reset: 0.005,
                    ..LinkFaults::default()
                }),
                _ => {
                    network.heal();
                    self.members.heal();
                }
            }
        }
        self.world.sleep(Duration::from_micros(self.random.between(1, 20_000)));
    }

    /// The engine's process has lost power; perhaps page nodes did too.
    fn settle(&mut self) {
        self.world.network().heal();
        self.members.heal();
        self.members.lose_senders();
        for index in 0..2 {
            if self.random.chance(0.4) {
                self.restart(index);
            }
        }
    }

    /// Every page is the same on both nodes.
    fn compare(&self) {
        let access = self.access();
        let observer = self.world.start("observer", &self.world.new_disk());
        let compared = observer.run(move |environment| {
            let at_least = access.members.log(environment, "observer").durable_lsn();
            let [one, other] = NODES.map(|number| access.pages(environment, &[number]));
            let (mut of_one, mut of_other) = (PageBuf::boxed(), PageBuf::boxed());
            let mut pages = 0;
            let spaces = one.spaces();
            assert_eq!(spaces, other.spaces());
            for page in spaces
                .iter()
                .flat_map(|space| (0..MOST_PAGES).map(|number| PageId::new(*space, PageNo(number))))
            {
                let version = PageRead::Latest { at_least };
                let replies = (
                    one.read(page, version, &mut of_one),
                    other.read(page, version, &mut of_other),
                );
                match replies {
                    (Ok(_), Ok(_)) => assert!(of_one.bytes() == of_other.bytes(), "{page}"),
                    (Err(PageStoreError::Absent(_)), Err(PageStoreError::Absent(_))) => break,
                    replies => panic!("{page}: {replies:?}"),
                }
                pages += 1;
            }
            assert!(pages > 0);
        });
        compared.expect("nobody kills it");
        observer.kill();
    }
}

/// What the engines of a run share.
#[derive(Clone)]
struct Outside {
    access: Access,
    witness: Arc<Mutex<Witness>>,
    trees: Trees,
    shape: Shape,
    stop: Arc<AtomicBool>,
    evictions: Arc<AtomicU64>,
}

impl Outside {
    fn create(elsewhere: &Elsewhere, evictions: &Arc<AtomicU64>) -> Outside {
        let seed = elsewhere.random.word();
        let shape =
            Shape { seed, threads: 3, keys: 400, accounts: 4, value_bytes: 4_000, long_steps: 120 };
        let (access, own) = (elsewhere.access(), shape.clone());
        let world = &elsewhere.world;
        let created = world.start("creator", &world.new_disk()).run(move |environment| {
            let engine = access.open(environment, "creator").expect("an empty log");
            let trees = Trees::create(&engine, &own).expect("an empty database");
            engine.close().expect("nothing is wrong with the log");
            trees
        });
        Outside {
            access: elsewhere.access(),
            witness: Arc::new(Mutex::new(Witness::new(Model::new(&shape)))),
            trees: created.expect("nobody kills it"),
            shape,
            stop: Arc::default(),
            evictions: Arc::clone(evictions),
        }
    }

    fn report(&self) -> Report {
        let witness = Arc::clone(&self.witness);
        Arc::new(move |thread, sequence, said| witness.lock().hear(thread, sequence, said))
    }

    /// One life of an engine. It may not even open.
    fn live(&self, environment: &Environment, random: &Random) {
        let Ok(engine) = self.access.open(environment, "node").map(Arc::new) else { return };
        if end_prepared(&engine, random, &self.report()).is_err() {
            return;
        }
        let tasks = (0..self.shape.threads).map(|thread| {
            let (engine, outside, random) = (Arc::clone(&engine), self.clone(), random.fork());
            let body = move || {
                let worker = Worker {
                    engine: &engine,
                    trees: outside.trees,
                    shape: &outside.shape,
                    thread,
                    random: &random,
                    report: outside.report(),
                    stop: &outside.stop,
                    lock_wait: Duration::from_millis(200),
                    is_storage_bad: true,
                };
                worker.run();
            };
            environment.spawner.spawn("worker", Box::new(body))
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.join();
        }
    }

    /// Opens an engine and compares it with everything that was acknowledged.
    fn verify(&self, world: &World) {
        let outside = self.clone();
        let verifier = world.start("verifier", &world.new_disk());
        let verified = verifier.run(move |environment| {
            let engine = outside.access.open(environment, "verifier").expect("all answer");
            outside.check(&engine);
            let pool = engine.system().pages().pool.statistics();
            assert_eq!(pool.evictions_offered, 0, "no page goes to a page node");
            outside.evictions.fetch_add(pool.evictions_clean, Ordering::Relaxed);
            engine.close().expect("a majority answers");
        });
        verified.expect("nobody kills the verifier");
        verifier.kill();
    }

    fn check(&self, engine: &Engine) {
        // Taken out, because the check waits, and no task may wait while it holds a mutex.
        let placeholder = Witness::new(Model::new(&self.shape));
        let mut witness = std::mem::replace(&mut *self.witness.lock(), placeholder);
        if let Err(complaint) = witness.check(engine, self.trees) {
            panic!("{complaint}");
        }
        *self.witness.lock() = witness;
    }
}

#[test]
fn crashes_over_page_nodes_lose_nothing_that_was_acknowledged() {
    let (committed, evictions) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (all_committed, all_evictions) = (Arc::clone(&committed), Arc::clone(&evictions));
    for_each_seed(0..12, move |world| {
        let mut elsewhere = Elsewhere::new(world);
        let outside = Outside::create(&elsewhere, &all_evictions);
        for _ in 0..4 {
            let node = world.start("node", &world.new_disk());
            let (own, choices) = (outside.clone(), elsewhere.random.fork());
            node.spawn("live", move |environment| own.live(environment, &choices));
            elsewhere.disturb();
            node.crash();
            elsewhere.settle();
            if elsewhere.random.chance(0.5) {
                outside.verify(world);
            }
        }
        outside.verify(world);
        elsewhere.compare();
        all_committed.fetch_add(outside.witness.lock().committed(), Ordering::Relaxed);
    });
    let (committed, evictions) =
        (committed.load(Ordering::Relaxed), evictions.load(Ordering::Relaxed));
    println!("{committed} transactions were committed, {evictions} pages dropped by verifiers");
    assert!(committed > 0 && evictions > 0);
}
