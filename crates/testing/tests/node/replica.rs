//! Strong reads at a replica, under the simulator: a writer over a replicated log, which moves from
//! member to member, and a replica in another process, which learns over links what is newest.
//! Members are cut off, paused, and lose power; links are slow. A read that was answered as STRONG
//! has what was acknowledged before it began. The same reads without the wait show how often they
//! would have lied, and rules that are broken on purpose are found.
//!
//! ```text
//!   writer    n ← n + 1, commit, acknowledged: n          (one number for each key)
//!   reader    note what is acknowledged · wait · read · compare
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::page_store::page_service::{SimulatedOptions, SimulatedPages};
use firn_api::rows::{Cancellation, DatabaseNode, ReadConsistency};
use firn_api::{LogStore, PageStore, Timestamps, WriterEpoch};
use firn_base::network::Role;
use firn_base::task::sleep;
use firn_base::{Environment, IndexId, SpaceId, TableId};
use firn_consensus::Term;
use firn_engine::log::writer::Purpose;
use firn_engine::mini_transaction::MiniTransaction;
use firn_engine::replica::{RegionWriter, Replica, ReplicaOptions, ReplicaStorage};
use firn_engine::rows::replica::ReplicaNode;
use firn_engine::transaction::{IsolationLevel, ReadMode, ReadTransaction, RecordReader};
use firn_engine::{Engine, EngineError, EngineOptions, Storage};
use firn_fabric::{Epoch, InProcessFabric};
use firn_format::key::BinaryCollation;
use firn_format::space::SpacePurpose;
use firn_link::{Caller, CallerSettings, Server, ServerSettings};
use firn_log_service::{LogService, LogServiceOptions, RemoteLog, RemoteLogOptions};
use firn_testing::group_log::{GroupCluster, GroupSettings};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, first_failure, for_each_seed};
use firn_writer_service::{RemoteWriter, SurelyLeads, WriterService};

use crate::page_machines::{MS, local};

/// The port of the members' servers.
const PORT: u16 = 7_100;
const SPACE: SpaceId = SpaceId(100);
const KEYS: usize = 4;
/// How long a strong read waits here.
const PATIENCE: Duration = Duration::from_millis(200);

/// A rule that a run breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Reads do not wait.
    SkippedWait,
    /// A node says that it leads without looking at its lease.
    NoLease,
}

/// What the writers have done, by key. It is beside the simulated world: no message carries it.
#[derive(Default)]
struct Numbers {
    /// The number that was written last, acknowledged or not.
    tried: [AtomicU64; KEYS],
    acknowledged: [AtomicU64; KEYS],
}

/// What the readers found.
#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    /// How many reads would have been old without the wait.
    lies: AtomicU64,
    acknowledged: AtomicU64,
    replicas: AtomicU64,
}

/// What outlives all engines and replicas.
#[derive(Clone)]
struct Outside {
    world: World,
    cluster: GroupCluster,
    pages: Arc<SimulatedPages>,
    index: IndexId,
    numbers: Arc<Numbers>,
    counts: Arc<Counts>,
    fault: Option<Fault>,
    stop: Arc<AtomicBool>,
    /// Nobody writes for a moment.
    pauses: Arc<AtomicBool>,
}

fn key(number: usize) -> [u8; 1] {
    [number as u8]
}

/// An engine at a member of the group, and its regions.
fn open(
    environment: &Environment,
    cluster: &GroupCluster,
    id: u64,
    pages: &Arc<SimulatedPages>,
) -> Result<(Engine, RegionWriter), EngineError> {
    let fabric = InProcessFabric::new(Epoch(environment.clock.wall_time_ms()));
    let peer = fabric.peer();
    let storage = Storage {
        log: cluster.store(id).expect("its own process runs") as Arc<dyn LogStore>,
        epoch: WriterEpoch::Next,
        pages: Arc::clone(pages) as Arc<dyn PageStore>,
        timestamps: Timestamps::Local,
        fabric: Arc::new(fabric),
    };
    let mut options = EngineOptions { buffer_pool_bytes: 2 << 20, ..EngineOptions::default() };
    options.log.buffer_bytes = 512 << 10;
    options.transactions.transactions = 64;
    options.transactions.table_slots = 16;
    let engine = Engine::open(environment, storage, &options)?;
    engine.open_dictionary(Arc::new(BinaryCollation))?;
    let writer = RegionWriter::connect(peer, true)?;
    Ok((engine, writer))
}

/// Makes the tree with a number for each key.
fn create(engine: &Engine) -> Result<IndexId, EngineError> {
    let forest = engine.forest();
    forest.spaces().create(SPACE, SpacePurpose::Table, TableId(1))?;
    let mut frames = forest.pages().pool.reserve(1);
    let index = forest.pages().run(|| {
        let mut mtr = MiniTransaction::begin_large(forest.pages(), Purpose::Forward)?;
        let index = forest.create_root(&mut mtr, &mut frames, SPACE)?;
        let _ = mtr.commit();
        Ok(index)
    })?;
    drop(frames);
    let mut trx = engine.begin(IsolationLevel::RepeatableRead)?;
    for number in 0..KEYS {
        trx.insert(index, &key(number), &0_u64.to_be_bytes())?;
    }
    trx.commit()?;
    Ok(index)
}

impl Outside {
    fn create(world: &World, fault: Option<Fault>, counts: &Arc<Counts>) -> Outside {
        let random = world.random();
        let settings = GroupSettings {
            max_sync: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
            undurable_bytes: 400_000,
            ..GroupSettings::new(3)
        };
        let cluster = GroupCluster::new(world, settings);
        let log = cluster.clone();
        let options = SimulatedOptions { chunk_pages: 4, ..SimulatedOptions::new(random.word()) };
        let pages = SimulatedPages::new(options, Box::new(move |from| log.durable_log(from)));
        cluster.start_all();
        cluster.lead_at(1);
        let (opened, at) = (cluster.clone(), Arc::clone(&pages));
        let process = cluster.process(1).expect("it runs");
        let created = process.run(move |environment| {
            let (engine, _) = open(environment, &opened, 1, &at).expect("an empty log");
            let index = create(&engine).expect("an empty database");
            engine.close().expect("nothing is wrong with the log");
            index
        });
        let outside = Outside {
            world: world.clone(),
            cluster,
            pages,
            index: created.expect("nobody kills it"),
            numbers: Arc::default(),
            counts: Arc::clone(counts),
            fault,
            stop: Arc::default(),
            pauses: Arc::default(),
        };
        outside.cluster.ids().for_each(|id| outside.serve(id));
        outside
    }

    /// Starts the members that do not run, with their servers.
    fn serve_all(&self) {
        for id in self.cluster.ids() {
            if self.cluster.store(id).is_none() {
                self.cluster.start(id);
                self.serve(id);
            }
        }
    }

    /// A member serves its log, and tells who writes. Its engine is opened where it leads.
    fn serve(&self, id: u64) {
        let process = self.cluster.process(id).expect("it runs");
        let (address, own) = (process.address(PORT), self.clone());
        drop(process.spawn("serve", move |environment| {
            let store = own.cluster.store(id).expect("its own process runs");
            let log = Arc::clone(&store) as Arc<dyn LogStore>;
            let log = LogService::new(environment, log, LogServiceOptions::default());
            let writer = WriterService::new(environment);
            let offers = vec![log.offer(), writer.offer()];
            let node = local(id, &format!("log-{id}"), Role::Log);
            let settings = ServerSettings { workers: 2, ..ServerSettings::default() };
            let server = Server::start(environment, node, &address, settings, offers);
            let _server = server.expect("nobody else listens there");
            loop {
                if store.leads().is_some() {
                    own.write(environment, id, &writer);
                }
                sleep(2 * MS);
            }
        }));
    }

    /// One life of an engine: it writes until its log ends.
    fn write(&self, environment: &Environment, id: u64, service: &Arc<WriterService>) {
        let Ok((engine, writer)) = open(environment, &self.cluster, id, &self.pages) else {
            return;
        };
        let store = self.cluster.store(id).expect("its own process runs");
        let (term, fault) = (Term(writer.epoch().0), self.fault);
        let surely_leads: SurelyLeads =
            Arc::new(move || fault == Some(Fault::NoLease) || store.surely_leads(term));
        service.begin(Arc::new(writer), surely_leads, None);
        let engine = Arc::new(engine);
        let tasks = (0..KEYS).map(|number| {
            let (own, engine) = (self.clone(), Arc::clone(&engine));
            // A writer that is cut off goes on until it learns that another one leads.
            let body = move || {
                while engine.failure().is_none() && !own.stop.load(Ordering::SeqCst) {
                    // Clients of a node that is cut off go elsewhere.
                    let pauses = own.pauses.load(Ordering::SeqCst) || own.cluster.is_cut(id);
                    if pauses || own.write_one(&engine, number).is_err() {
                        sleep(MS);
                    }
                }
            };
            environment.spawner.spawn("write", Box::new(body))
        });
        let tasks: Vec<_> = tasks.collect();
        for task in tasks {
            task.join();
        }
        service.end();
        let _ = engine.close();
    }

    /// Writes the next number of a key.
    fn write_one(&self, engine: &Engine, number: usize) -> Result<(), EngineError> {
        let next = self.numbers.tried[number].fetch_add(1, Ordering::SeqCst) + 1;
        let mut trx = engine.begin(IsolationLevel::RepeatableRead)?;
        trx.update(self.index, &key(number), &next.to_be_bytes())?;
        trx.commit()?;
        self.numbers.acknowledged[number].fetch_max(next, Ordering::SeqCst);
        self.counts.acknowledged.fetch_add(1, Ordering::SeqCst);
        sleep(Duration::from_micros(300));
        Ok(())
    }

    fn callers(&self, environment: &Environment) -> Vec<Arc<Caller>> {
        let network = self.world.network();
        let caller = |id: u64| {
            let mut settings = CallerSettings::new(network.address(&format!("log-{id}"), PORT));
            (settings.connect_timeout, settings.most_delay) = (200 * MS, 50 * MS);
            (settings.silence, settings.least_delay) = (300 * MS, 5 * MS);
            let node = local(9, "replica", Role::Replica);
            Arc::new(Caller::new(environment, node, settings))
        };
        self.cluster.ids().map(caller).collect()
    }

    /// The body of the replica's process: one replica after the other.
    fn follow(&self, environment: &Environment) {
        let callers = self.callers(environment);
        let log = loop {
            let options = RemoteLogOptions { attempt: 100 * MS, ..RemoteLogOptions::default() };
            match RemoteLog::open(environment, callers.clone(), options) {
                Ok(log) => break log,
                Err(_) => sleep(5 * MS),
            }
        };
        loop {
            let Some(writer) = RemoteWriter::find(&callers, 50 * MS) else {
                sleep(5 * MS);
                continue;
            };
            let storage = ReplicaStorage {
                log: Arc::clone(&log) as Arc<dyn LogStore>,
                pages: Arc::clone(&self.pages) as Arc<dyn PageStore>,
                fabric: Arc::new(InProcessFabric::new(Epoch(1))),
                writer: Arc::new(writer.clone()),
            };
            let mut options = ReplicaOptions {
                buffer_pool_bytes: 2 << 20,
                start_timeout: Duration::from_secs(2),
                ..ReplicaOptions::default()
            };
            options.transactions.transactions = 64;
            options.transactions.table_slots = 16;
            let opened = Replica::open(environment, storage, options, Arc::new(BinaryCollation));
            match opened {
                Ok(replica) => self.read_at(environment, Arc::new(replica), &callers, &writer),
                Err(_) => sleep(5 * MS),
            }
        }
    }

    /// One life of a replica: readers read until another node writes.
    fn read_at(
        &self,
        environment: &Environment,
        replica: Arc<Replica>,
        callers: &[Arc<Caller>],
        writer: &RemoteWriter,
    ) {
        self.counts.replicas.fetch_add(1, Ordering::SeqCst);
        let is_over = Arc::new(AtomicBool::new(false));
        let tasks = (0..3).map(|_| {
            let (own, replica) = (self.clone(), Arc::clone(&replica));
            let (is_over, random) = (Arc::clone(&is_over), own.cluster.random());
            let body = move || {
                while !is_over.load(Ordering::SeqCst) {
                    own.read_one(&replica, &random);
                }
            };
            environment.spawner.spawn("read", Box::new(body))
        });
        let tasks: Vec<_> = tasks.collect();
        loop {
            sleep(20 * MS);
            let is_replaced = || {
                let found = RemoteWriter::find(callers, 50 * MS);
                found.is_some_and(|found| found.epoch() > writer.epoch())
            };
            if replica.failure().is_some() || (replica.is_cut_off() && is_replaced()) {
                break;
            }
        }
        is_over.store(true, Ordering::SeqCst);
        for task in tasks {
            task.join();
        }
        replica.close();
    }

    /// Reads a key, and compares it with what was acknowledged before.
    fn read_one(&self, replica: &Arc<Replica>, random: &Random) {
        let number = random.below(KEYS as u64) as usize;
        let acknowledged = self.numbers.acknowledged[number].load(Ordering::SeqCst);
        if self.read(replica, number).is_some_and(|found| found < acknowledged) {
            self.counts.lies.fetch_add(1, Ordering::SeqCst);
        }
        let node = ReplicaNode::new(Arc::clone(replica), PATIENCE);
        let freshness = node.freshness().expect("a replica waits");
        let acknowledged = self.numbers.acknowledged[number].load(Ordering::SeqCst);
        if self.fault != Some(Fault::SkippedWait) {
            let by_page = random.chance(0.5);
            let wanted =
                ReadConsistency::Strong { shares: random.chance(0.8), by_page, log_tail: true };
            match freshness.catch_up(wanted, PATIENCE, &Cancellation::default()) {
                Ok(awaited) => assert_eq!(awaited, None, "another machine tells of no pages"),
                Err(_) => {
                    self.counts.refused.fetch_add(1, Ordering::SeqCst);
                    return sleep(MS);
                }
            }
        }
        if let Some(found) = self.read(replica, number) {
            assert!(
                found >= acknowledged,
                "a strong read of key {number} found {found} after {acknowledged} was acknowledged"
            );
            self.counts.answered.fetch_add(1, Ordering::SeqCst);
        }
        sleep(Duration::from_micros(random.between(1, 2_000)));
    }

    /// The number of a key as the replica has it; `None` if pages do not answer.
    fn read(&self, replica: &Replica, number: usize) -> Option<u64> {
        let isolation = IsolationLevel::ReadCommitted;
        let mut trx = ReadTransaction::begin(replica.versions(), isolation).ok()?;
        let mut payload = Vec::new();
        let found = trx.get(self.index, &key(number), ReadMode::Consistent, &mut payload).ok()?;
        assert!(found, "key {number} is gone");
        Some(u64::from_be_bytes(payload.as_slice().try_into().expect("eight bytes")))
    }

    /// What happens to members and links meanwhile.
    fn disturb(&self, random: &Random) {
        let network = self.world.network();
        for _ in 0..12 {
            self.world.sleep(random.between(5, 80) as u32 * MS);
            let id = random.between(1, 3);
            let home = self.cluster.leader();
            match random.below(8) {
                // The node that writes is replaced, and does not know it yet.
                0 | 1 => {
                    // Without a commit under way there: that one would be visible there and never
                    // come, and reads would wait for it.
                    self.pauses.store(true, Ordering::SeqCst);
                    self.world.sleep(20 * MS);
                    self.cluster.cut(home);
                    self.pauses.store(false, Ordering::SeqCst);
                    self.world.sleep(random.between(50, 500) as u32 * MS);
                }
                2 => {
                    self.cluster.crash(id);
                    self.world.sleep(random.between(1, 60) as u32 * MS);
                    self.serve_all();
                }
                3 => {
                    if let Some(process) = self.cluster.process(id) {
                        process.pause();
                        self.world.sleep(random.between(10, 400) as u32 * MS);
                        process.resume();
                    }
                }
                4 => network.cut("replica", &format!("log-{id}")),
                5 => network.set_faults(LinkFaults {
                    delay: Duration::from_micros(50)..=random.between(1, 10) as u32 * MS,
                    ..LinkFaults::default()
                }),
                _ => {
                    self.cluster.heal();
                    self.serve_all();
                }
            }
        }
    }
}

/// Members, writers and a replica for a while.
fn run(world: &World, fault: Option<Fault>, counts: &Arc<Counts>) {
    let random = world.random();
    let outside = Outside::create(world, fault, counts);
    let replica = world.start("replica", &world.new_disk());
    let own = outside.clone();
    drop(replica.spawn("follow", move |environment| own.follow(environment)));
    world.sleep(100 * MS);
    outside.disturb(&random);
    outside.stop.store(true, Ordering::SeqCst);
    replica.crash();
    outside.cluster.crash_all();
}

#[test]
fn a_strong_read_has_what_was_acknowledged_before_it() {
    let counts = Arc::<Counts>::default();
    let all = Arc::clone(&counts);
    for_each_seed(0..12, move |world| run(world, None, &all));
    let value = |count: &AtomicU64| count.load(Ordering::SeqCst);
    let (answered, lies) = (value(&counts.answered), value(&counts.lies));
    println!(
        "{} commits; {answered} strong reads at {} replicas, {} refused; without the wait {lies} were old",
        value(&counts.acknowledged),
        value(&counts.replicas),
        value(&counts.refused),
    );
    assert!(answered > 1_000 && lies > 100, "{answered} answered, {lies} would have been old");
}

#[test]
fn rules_that_are_broken_are_found() {
    for fault in [Fault::SkippedWait, Fault::NoLease] {
        let counts = Arc::<Counts>::default();
        let failure = first_failure(0..60, move |world| run(world, Some(fault), &counts));
        let failure = failure.expect("a broken rule is noticed").to_string();
        assert!(failure.contains("a strong read of key"), "{fault:?}: {failure}");
    }
}
