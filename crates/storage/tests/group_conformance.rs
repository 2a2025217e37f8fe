//! The log store over a group passes the suite for log stores, with one member and with three, and
//! the suite finds disks that break their promises.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::{CASES, Case, Copies, Life, Lives, Node, REMOTE_CASES};
use firn_api::{FollowOptions, LogError, LogFollower, LogStore, OpenedLog, WriterEpoch};
use firn_base::network::Address;
use firn_base::{Environment, Lsn, task};
use firn_consensus::{Base, MemberId, Members, Role, Term};
use firn_storage::group::{GroupOptions, GroupStore, NetworkPeers};
use firn_testing::group_log::{DiskFault, GroupCluster, GroupSettings, MemberDisk};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, first_failure, for_each_seed};

/// The member of the process that a life runs in, the one that stands for election next, and the
/// one that is elsewhere.
const OWN: u64 = 1;
const OTHER: u64 = 2;
const ELSEWHERE: u64 = 3;

/// A group with somebody who decides where the log is written.
#[derive(Clone)]
struct Group {
    cluster: GroupCluster,
    /// The member of `other_store`: the one that is elected in the place of the life's own.
    other: Arc<AtomicU64>,
    /// Nobody else shall lead than who does.
    is_pinned: Arc<AtomicBool>,
}

impl Group {
    fn new(cluster: &GroupCluster) -> Group {
        let other = Arc::new(AtomicU64::new(OTHER));
        Group { cluster: cluster.clone(), other, is_pinned: Arc::default() }
    }

    fn other(&self) -> u64 {
        self.other.load(Ordering::SeqCst)
    }

    fn has_majority(&self) -> bool {
        let cluster = &self.cluster;
        cluster.ids().filter(|id| cluster.is_cut(*id)).count() * 2 < cluster.ids().count()
    }

    /// Does a step towards a group that the life's own member leads.
    fn move_to_own(&self) {
        if let Some(store) = self.cluster.leader().and_then(|leader| self.cluster.store(leader)) {
            // Refused while it is under way.
            let _ = store.hand_over(MemberId(OWN));
        }
    }

    /// Does a step towards a group that another member leads. The life's own member, if it leads,
    /// is cut off as if it had died.
    fn move_away(&self) {
        let cluster = &self.cluster;
        let leader = match cluster.leader() {
            Some(OWN) if !self.has_majority() || cluster.is_cut(OWN) => return,
            Some(OWN) => {
                cluster.cut([OWN]);
                let leader = cluster.wait_for_leader_but(OWN);
                cluster.cut([]);
                leader
            }
            Some(leader) => leader,
            None => return,
        };
        self.other.store(leader, Ordering::SeqCst);
    }
}

/// The store of the life's own member or of another one, which is made to lead when it is opened.
struct Placed {
    group: Group,
    is_own: bool,
}

impl Placed {
    fn store(&self) -> Arc<dyn LogStore> {
        let id = if self.is_own { OWN } else { self.group.other() };
        self.group.cluster.store(id).expect("it runs")
    }

    fn make_lead(&self) {
        if self.is_own {
            self.group.move_to_own()
        } else {
            self.group.move_away()
        }
        task::sleep(Duration::from_millis(2));
    }
}

impl LogStore for Placed {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        loop {
            let is_pinned = self.group.is_pinned.load(Ordering::SeqCst);
            match self.store().open(epoch) {
                Err(LogError::NotLeader { .. }) if !is_pinned => self.make_lead(),
                // It may lack log that another one has, which then stands for election later.
                Err(LogError::Unavailable { .. }) if self.group.has_majority() => {}
                outcome => return outcome,
            }
        }
    }

    fn durable_lsn(&self) -> Lsn {
        self.store().durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.store().truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.store().read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        self.store().follow(options)
    }
}

struct Process {
    environment: Environment,
    group: Group,
}

impl Process {
    fn placed(&self, is_own: bool) -> Arc<dyn LogStore> {
        Arc::new(Placed { group: self.group.clone(), is_own })
    }

    fn has_others(&self) -> bool {
        self.group.cluster.ids().count() > 1
    }
}

impl Node for Process {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn store(&self) -> Arc<dyn LogStore> {
        self.placed(true)
    }

    fn other_store(&self) -> Arc<dyn LogStore> {
        self.placed(!self.has_others())
    }

    fn let_go(&self, lsn: Lsn) {
        let stores = self.group.cluster.ids().filter_map(|id| self.group.cluster.store(id));
        stores.for_each(|store| store.let_go(lsn));
    }

    fn copies(&self) -> Option<&dyn Copies> {
        self.has_others().then_some(self as &dyn Copies)
    }
}

impl Copies for Process {
    fn lose_minority(&self) {
        let random = self.group.cluster.random();
        self.group.cluster.cut([*random.pick(&[OTHER, ELSEWHERE])]);
    }

    fn lose_majority(&self) {
        self.group.cluster.cut([OTHER, ELSEWHERE]);
    }

    fn isolate(&self) {
        self.group.cluster.cut([OWN]);
    }

    fn hold_back(&self) {
        for id in [OTHER, ELSEWHERE] {
            self.group.cluster.disk(id).set_stalled(true);
        }
    }

    /// The suite's name is that of the third member.
    fn lead_at(&self, _: &str) {
        self.group.is_pinned.store(true, Ordering::SeqCst);
        self.group.cluster.lead_at(ELSEWHERE);
        let own = self.group.cluster.store(OWN).expect("it runs");
        while own.leader() != Some(MemberId(ELSEWHERE)) {
            task::sleep(Duration::from_millis(1));
        }
    }

    fn heal(&self) {
        self.group.cluster.heal();
        self.group.is_pinned.store(false, Ordering::SeqCst);
    }
}

/// A group of which one member loses power with each life, and others sometimes.
struct Simulated<'a> {
    world: &'a World,
    group: Group,
}

impl Lives for Simulated<'_> {
    fn live(&self, life: Life) {
        let cluster = &self.group.cluster;
        cluster.start_all();
        let group = self.group.clone();
        let process = cluster.process(OWN).expect("it was started");
        let ended = process.run(move |environment| {
            life(&Process { environment: environment.clone(), group });
        });
        ended.expect("nobody kills it");
        // A task of the life may be at work in the store of the other member.
        cluster.crash(OWN);
        cluster.crash(self.group.other());
        if self.world.random().chance(0.5) {
            cluster.crash_all();
        }
        cluster.heal();
        self.group.is_pinned.store(false, Ordering::SeqCst);
    }
}

fn settings(world: &World, members: u64) -> GroupSettings {
    let random = world.random();
    GroupSettings {
        max_sync: Duration::from_micros(*random.pick(&[50, 500, 3_000])),
        round_bytes: *random.pick(&[1_000, 4_000, 50_000]),
        recent_bytes: *random.pick(&[0, 10_000, 1 << 20]),
        names: BTreeMap::from([(ELSEWHERE, "10.1.2.3:4407".to_owned())]),
        ..GroupSettings::new(members)
    }
}

fn run_case(world: &World, case: &Case, members: u64, fault: Option<DiskFault>) {
    let cluster = GroupCluster::new(world, settings(world, members));
    cluster.set_disk_fault(fault);
    let random = world.random();
    let most = Duration::from_micros(*random.pick(&[200, 1_000, 4_000]));
    // What is lost is late by more than an election takes. Most cases want no leader but theirs.
    let is_calm = CASES.iter().any(|one| one.name == case.name);
    world.network().set_faults(LinkFaults {
        delay: Duration::from_micros(50)..=most,
        loss: if is_calm { 0.0 } else { *random.pick(&[0.0, 0.02]) },
        reset: if is_calm { 0.0 } else { *random.pick(&[0.0, 0.002]) },
        ..LinkFaults::default()
    });
    (case.run)(&Simulated { world, group: Group::new(&cluster) });
    cluster.crash_all();
}

#[test]
fn a_group_of_one_conforms() {
    for_each_seed(0..6, |world| CASES.iter().for_each(|case| run_case(world, case, 1, None)));
}

#[test]
fn a_group_of_three_conforms() {
    for_each_seed(0..4, |world| CASES.iter().for_each(|case| run_case(world, case, 3, None)));
}

#[test]
fn a_group_of_three_conforms_when_members_fail() {
    for_each_seed(0..4, |world| {
        REMOTE_CASES.iter().for_each(|case| run_case(world, case, 3, None));
    });
}

#[test]
fn a_disk_that_does_not_sync_is_found() {
    let case = CASES.iter().find(|case| case.name == "what was told to be durable survives");
    let case = *case.expect("a case of the suite");
    for members in [1, 3] {
        let failure = first_failure(0..50, move |world| {
            run_case(world, &case, members, Some(DiskFault::NotSynced));
        });
        let failure = failure.unwrap_or_else(|| panic!("a group of {members} loses nothing"));
        assert!(failure.to_string().contains("was durable"), "{failure}");
    }
}

/// Members on threads of this machine, with sockets between them. When a life ends, all stop, and
/// their disks lose power. Only the first one is opened.
struct OnThreads {
    disks: Vec<MemberDisk>,
    sockets: tempfile::TempDir,
    lives: AtomicU64,
}

impl OnThreads {
    fn new(members: u64) -> OnThreads {
        let voters = (1..=members).map(|id| (MemberId(id), Role::Voter));
        let base = Base::founding(Term(1), Lsn::FIRST, Members::new(voters).expect("voters"));
        let disk = |id| MemberDisk::new(base.clone(), Random::new(id), Duration::from_micros(300));
        OnThreads {
            disks: (1..=members).map(disk).collect(),
            sockets: tempfile::tempdir().expect("a directory for sockets"),
            lives: AtomicU64::new(0),
        }
    }

    fn start(&self, environment: &Environment, life: u64, id: u64) -> Arc<GroupStore> {
        let address = |id| Address::Unix(self.sockets.path().join(format!("{life}-{id}")));
        let ids = 1..=self.disks.len() as u64;
        let others =
            ids.filter(|other| *other != id).map(|other| (MemberId(other), address(other)));
        let peers = NetworkPeers::listen(environment, &address(id), others);
        let mut member = firn_consensus::Options::new(MemberId(id), id + life);
        member.priority = (id - 1) as u8 * 10;
        let mut options = GroupOptions::new(member);
        options.tick = Duration::from_millis(10);
        options.idle_flush = Duration::from_millis(2);
        let log = Arc::new(self.disks[id as usize - 1].clone());
        let peers = Arc::new(peers.expect("a socket"));
        Arc::new(GroupStore::start(environment, options, log, peers).expect("a good log"))
    }
}

struct OnThisMachine {
    environment: Environment,
    stores: Vec<Arc<GroupStore>>,
}

impl Node for OnThisMachine {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn store(&self) -> Arc<dyn LogStore> {
        Arc::clone(&self.stores[0]) as Arc<dyn LogStore>
    }

    fn other_store(&self) -> Arc<dyn LogStore> {
        self.store()
    }

    fn let_go(&self, lsn: Lsn) {
        self.stores.iter().for_each(|store| store.let_go(lsn));
    }
}

impl Lives for OnThreads {
    fn live(&self, life: Life) {
        let environment = Environment::system();
        let number = self.lives.fetch_add(1, Ordering::SeqCst);
        let start = |id| self.start(&environment, number, id);
        let stores: Vec<_> = (1..=self.disks.len() as u64).map(start).collect();
        life(&OnThisMachine { environment: environment.clone(), stores: stores.clone() });
        stores.iter().for_each(|store| store.close());
        self.disks.iter().for_each(MemberDisk::lose_power);
    }
}

#[test]
fn groups_on_threads_conform() {
    for members in [1, 3] {
        for case in CASES {
            eprintln!("{members}: {}", case.name);
            (case.run)(&OnThreads::new(members));
        }
    }
}
