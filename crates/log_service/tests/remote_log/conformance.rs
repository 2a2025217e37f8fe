//! What the suite for log stores asks of readers holds for readers elsewhere: the store of a life
//! is opened at the life's own member and read from any.

use std::sync::Arc;
use std::time::Duration;

use firn_api::log_store::conformance::{CASES, Case, Copies, Life, Lives, Node, REMOTE_CASES};
use firn_api::{FollowOptions, LogError, LogFollower, LogStore, OpenedLog, WriterEpoch};
use firn_base::{Environment, Lsn, task};
use firn_consensus::MemberId;
use firn_log_service::RemoteLog;
use firn_testing::group_log::GroupSettings;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};

use crate::support::{Group, MS, SECOND, client_options};

/// The member of the process that a life runs in.
const OWN: u64 = 1;

/// Written at the own member, read from any.
struct ReadElsewhere {
    group: Group,
    remote: Arc<RemoteLog>,
}

impl ReadElsewhere {
    /// Waits until the client has heard of all that the own member knows to be durable.
    fn catch_up(&self) {
        let Some(own) = self.group.cluster.store(OWN) else { return };
        let wanted = own.durable_lsn();
        let has_heard = (0..5_000).any(|_| {
            task::sleep(MS);
            self.remote.durable_lsn() >= wanted
        });
        assert!(has_heard, "a client does not hear that {wanted} is durable");
    }
}

impl LogStore for ReadElsewhere {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let refused = self.remote.open(epoch).expect_err("it is not for writers");
        let LogError::NotLeader { hint } = refused else { panic!("{refused}") };
        assert_eq!(hint.as_deref(), Some("10.1.2.3:4407"));
        loop {
            let own = self.group.cluster.store(OWN).expect("it runs");
            match own.open(epoch) {
                Err(LogError::NotLeader { .. }) => {
                    let leader = self.group.cluster.leader();
                    if let Some(store) = leader.and_then(|id| self.group.cluster.store(id)) {
                        // Refused while it is under way.
                        let _ = store.hand_over(MemberId(OWN));
                    }
                    task::sleep(2 * MS);
                }
                Err(LogError::Unavailable { .. }) => {}
                outcome => return outcome,
            }
        }
    }

    fn durable_lsn(&self) -> Lsn {
        self.catch_up();
        self.remote.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.remote.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.catch_up();
        self.remote.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        self.catch_up();
        self.remote.follow(options)
    }
}

struct Process {
    environment: Environment,
    group: Group,
    remote: Arc<RemoteLog>,
}

impl Node for Process {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn store(&self) -> Arc<dyn LogStore> {
        Arc::new(ReadElsewhere { group: self.group.clone(), remote: Arc::clone(&self.remote) })
    }

    fn other_store(&self) -> Arc<dyn LogStore> {
        self.store()
    }

    fn let_go(&self, lsn: Lsn) {
        self.group.let_go(lsn);
    }

    fn copies(&self) -> Option<&dyn Copies> {
        Some(self)
    }
}

impl Copies for Process {
    fn lose_minority(&self) {
        self.group.cluster.cut([*self.group.world.random().pick(&[2, 3])]);
    }

    fn lose_majority(&self) {
        self.group.cluster.cut([2, 3]);
    }

    fn isolate(&self) {
        self.group.cluster.cut([OWN]);
    }

    fn hold_back(&self) {
        [2, 3].iter().for_each(|id| self.group.cluster.disk(*id).set_stalled(true));
    }

    fn lead_at(&self, _: &str) {
        unreachable!("none of the cases asks for another leader");
    }

    fn heal(&self) {
        self.group.cluster.heal();
    }
}

struct Simulated(Group);

impl Lives for Simulated {
    fn live(&self, life: Life) {
        let group = self.0.clone();
        group.start_all();
        let process = group.cluster.process(OWN).expect("it was started");
        let ended = process.run(move |environment| {
            let remote = group.client(environment, group.cluster.ids(), client_options());
            let remote = remote.expect("a majority answers");
            life(&Process { environment: environment.clone(), group, remote });
        });
        ended.expect("nobody kills it");
        self.0.crash_all();
        self.0.cluster.heal();
    }
}

fn run_case(world: &World, case: &Case) {
    let random = world.random();
    let settings = GroupSettings {
        max_sync: Duration::from_micros(*random.pick(&[50, 500, 3_000])),
        round_bytes: *random.pick(&[1_000, 50_000]),
        patience: SECOND,
        ..GroupSettings::new(3)
    };
    let group = Group::new(world, settings);
    let most = Duration::from_micros(*random.pick(&[200, 1_000, 4_000]));
    world.network().set_faults(LinkFaults {
        delay: Duration::from_micros(50)..=most,
        ..LinkFaults::default()
    });
    (case.run)(&Simulated(group));
}

fn case(name: &str) -> Case {
    let mut all = CASES.iter().chain(REMOTE_CASES);
    *all.find(|case| case.name == name).expect("a case of the suite")
}

#[test]
fn readers_elsewhere_conform() {
    for name in [
        "groups are read as they were appended",
        "a reader gets each durable group once",
        "leases hold truncation",
        "a reader beyond its limit is dropped",
        "what was told to be durable survives",
    ] {
        let case = case(name);
        for_each_seed(0..4, move |world| run_case(world, &case));
    }
}

#[test]
fn readers_elsewhere_conform_when_members_fail() {
    for name in ["a minority is not missed", "copies come and go and lose nothing"] {
        let case = case(name);
        for_each_seed(0..4, move |world| run_case(world, &case));
    }
}
