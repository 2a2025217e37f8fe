//! A replicated log on local directories: its members lose power, one or all at once, and what was
//! acknowledged is there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use firn_api::log_store::conformance::Appender;
use firn_api::{LogStore, WriterEpoch};
use firn_base::network::Address;
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId, task};
use firn_consensus::{Base, MemberId, Members, Options, Role, Term};
use firn_format::redo::GroupBuilder;
use firn_storage::group::{GroupLog, GroupOptions, GroupStore, NetworkPeers};
use firn_storage::local::{LocalDirectory, LogOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{Faults, Process, SimulatedDisk, World, for_each_seed};

const PORT: u16 = 7_000;
const MEMBERS: u64 = 3;

/// A machine and what runs on it.
struct Machine {
    id: u64,
    disk: SimulatedDisk,
    running: Option<(Process, Arc<GroupStore>)>,
}

/// The machines of a group, and what was appended and is durable.
struct Machines {
    world: World,
    random: Random,
    all: Vec<Machine>,
    acknowledged: Vec<u8>,
    /// The acknowledged log before it is not looked at any more.
    let_go: Lsn,
}

impl Machines {
    fn new(world: &World) -> Machines {
        let random = world.random();
        let machine = |id| {
            let disk = world.new_disk();
            let max_latency = Duration::from_micros(100);
            disk.set_faults(Faults { max_latency, ..Faults::default() });
            Machine { id, disk, running: None }
        };
        let all = (1..=MEMBERS).map(machine).collect();
        let (acknowledged, let_go) = (Vec::new(), Lsn::FIRST);
        Machines { world: world.clone(), random, all, acknowledged, let_go }
    }

    fn address(&self, id: u64) -> Address {
        self.world.network().address(&host(id), PORT)
    }

    fn start_all(&mut self) {
        for place in 0..self.all.len() {
            if self.all[place].running.is_none() {
                self.start(place);
            }
        }
    }

    fn start(&mut self, place: usize) {
        let id = self.all[place].id;
        let others = (1..=MEMBERS).filter(|other| *other != id);
        let others: Vec<_> = others.map(|other| (MemberId(other), self.address(other))).collect();
        let own = self.address(id);
        let process = self.world.start(&host(id), &self.all[place].disk);
        let store = process.run(move |environment| open(environment, id, &own, others));
        self.all[place].running = Some((process, store.expect("nobody kills it")));
    }

    fn crash(&mut self, place: usize) {
        if let Some((process, store)) = self.all[place].running.take() {
            process.crash();
            drop(store);
        }
    }

    fn stores(&self) -> Vec<Arc<GroupStore>> {
        let running = self.all.iter().filter_map(|machine| machine.running.as_ref());
        running.map(|(_, store)| Arc::clone(store)).collect()
    }

    /// Opens the log where it can be opened. Everything that was acknowledged is there.
    fn open(&mut self) -> (Arc<GroupStore>, Appender) {
        for _ in 0..10_000 {
            let leader = self.stores().into_iter().find(|store| store.leads().is_some());
            let opened = leader.and_then(|store| {
                let log = Appender::open(&*store, WriterEpoch::Next).ok()?;
                Some((store, log))
            });
            if let Some((store, log)) = opened {
                let (from, kept) = read_all(&*store);
                let skipped = from.since(Lsn::FIRST) as usize;
                assert!(from <= self.let_go, "log is gone that is needed");
                assert!(
                    kept.starts_with(&self.acknowledged[skipped..]),
                    "acknowledged log is lost"
                );
                // What was never acknowledged may be there all the same.
                self.acknowledged.truncate(skipped);
                self.acknowledged.extend(kept);
                return (store, log);
            }
            task::sleep(Duration::from_millis(2));
        }
        panic!("nobody leads");
    }

    fn commit(&mut self, log: &Appender, count: u64) {
        for _ in 0..count {
            let length = if self.random.below(10) == 0 { 9_000 } else { self.random.below(700) };
            let group = group(self.random.below(50) as u32, length as usize);
            let end = log.append(&group);
            if log.writer.wait_durable(end).is_err() {
                return;
            }
            self.acknowledged.extend_from_slice(&group);
        }
    }

    fn end(&self) -> Lsn {
        Lsn::FIRST.advance(self.acknowledged.len() as u64)
    }

    fn let_go(&mut self) {
        self.let_go = Lsn(self.end().0.saturating_sub(20_000)).max(self.let_go);
        self.stores().iter().for_each(|store| store.let_go(self.let_go));
    }
}

fn open(
    environment: &Environment,
    id: u64,
    own: &Address,
    others: Vec<(MemberId, Address)>,
) -> Arc<GroupStore> {
    let directory = LocalDirectory::open(environment, Path::new("/db")).unwrap();
    let options = LogOptions { segment_size_bytes: 4096 + 16 * 512, ..LogOptions::default() };
    let members = (1..=MEMBERS).map(|id| (MemberId(id), Role::Voter));
    let founding = Base::founding(Term(1), Lsn::FIRST, Members::new(members).unwrap());
    let log = Arc::new(GroupLog::open(&directory, options, founding).expect("a good log"));
    let member = Options::new(MemberId(id), environment.random.next_u64());
    let mut options = GroupOptions::new(member);
    options.tick = Duration::from_millis(5);
    options.patience = Duration::from_millis(300);
    options.idle_flush = Duration::from_millis(2);
    let peers = NetworkPeers::listen(environment, own, others).expect("nobody else listens there");
    Arc::new(GroupStore::start(environment, options, log, Arc::new(peers)).expect("a good log"))
}

fn host(id: u64) -> String {
    format!("log-{id}")
}

/// A group of one record.
fn group(page: u32, length: usize) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let page = PageId::new(SpaceId(1), PageNo(page));
    builder.push(1, page, |body| body.extend((0..length).map(|byte| byte as u8)));
    builder.finish().to_vec()
}

/// The kept durable log, and where it begins.
fn read_all(store: &dyn LogStore) -> (Lsn, Vec<u8>) {
    let from = store.truncated_lsn();
    let (mut bytes, mut position) = (Vec::new(), from);
    while position < store.durable_lsn() {
        position = store.read(position, 10_000, &mut bytes).unwrap();
    }
    (from, bytes)
}

#[test]
fn what_was_acknowledged_survives_power_losses_of_members() {
    for_each_seed(0..20, |world| {
        let mut machines = Machines::new(world);
        for round in 0..6 {
            machines.start_all();
            let (store, log) = machines.open();
            let count = 1 + machines.random.below(40);
            machines.commit(&log, count);
            if round % 2 == 1 {
                machines.let_go();
                task::sleep(Duration::from_millis(20));
            }
            drop((log, store));
            match machines.random.below(3) {
                0 => (0..MEMBERS as usize).for_each(|place| machines.crash(place)),
                _ => {
                    let place = machines.random.below(MEMBERS) as usize;
                    machines.crash(place);
                    let (store, log) = machines.open();
                    machines.commit(&log, 10);
                    drop((log, store));
                }
            }
        }
        machines.start_all();
        drop(machines.open());
        let is_released = |store: &Arc<GroupStore>| store.truncated_lsn() > Lsn::FIRST;
        let is_long = machines.let_go > Lsn(30_000);
        assert!(!is_long || machines.stores().iter().any(is_released), "no log is released");
    });
}
