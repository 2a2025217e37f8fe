//! The quorum log of the tests passes the suite for log stores, and the suite finds each fault.

use std::sync::Arc;
use std::time::Duration;

use firn_api::LogStore;
use firn_api::log_store::conformance::{CASES, Case, Copies, Life, Lives, Node, REMOTE_CASES};
use firn_base::{Environment, Lsn};

use firn_testing::quorum_log::{Fault, QuorumMembers, QuorumOptions};
use firn_testing::simulation::{World, first_failure, for_each_seed};

const OWN: &str = "own";
const OTHER: &str = "other";

struct Process {
    environment: Environment,
    members: QuorumMembers,
}

impl Node for Process {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn store(&self) -> Arc<dyn LogStore> {
        Arc::new(self.members.log(&self.environment, OWN))
    }

    fn other_store(&self) -> Arc<dyn LogStore> {
        Arc::new(self.members.log(&self.environment, OTHER))
    }

    fn let_go(&self, lsn: Lsn) {
        self.members.let_go(lsn);
    }

    fn copies(&self) -> Option<&dyn Copies> {
        Some(self)
    }
}

impl Copies for Process {
    fn lose_minority(&self) {
        self.members.lose_minority();
    }

    fn lose_majority(&self) {
        self.members.lose_majority();
    }

    fn isolate(&self) {
        self.members.isolate(OWN);
    }

    fn hold_back(&self) {
        self.members.hold_back();
    }

    fn lead_at(&self, leader: &str) {
        self.members.lead_at(leader);
    }

    fn heal(&self) {
        self.members.heal();
    }
}

/// A log whose processes lose power; its members do not.
struct Simulated<'a> {
    world: &'a World,
    members: QuorumMembers,
}

impl Lives for Simulated<'_> {
    fn live(&self, life: Life) {
        let node = self.world.start("node", &self.world.new_disk());
        let members = self.members.clone();
        let ended = node.run(move |environment| {
            life(&Process { environment: environment.clone(), members });
        });
        ended.expect("nobody kills it");
        node.crash();
        self.members.heal();
        self.members.lose_senders();
        if self.world.random().chance(0.5) {
            self.members.lose_minority();
        }
    }
}

fn options(world: &World, fault: Option<Fault>) -> QuorumOptions {
    let random = world.random();
    QuorumOptions {
        members: *random.pick(&[3, 3, 5]),
        max_delay: Duration::from_micros(*random.pick(&[100, 1_000, 3_000])),
        window: *random.pick(&[2, 6, 20]),
        fault,
        ..QuorumOptions::new(random.word())
    }
}

fn run_case(world: &World, case: &Case, fault: Option<Fault>) {
    let members = QuorumMembers::new(options(world, fault));
    (case.run)(&Simulated { world, members });
}

fn all_cases() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(REMOTE_CASES)
}

#[test]
fn the_log_conforms_under_the_simulator() {
    for_each_seed(0..16, |world| all_cases().for_each(|case| run_case(world, case, None)));
}

/// Processes of this machine; when a life ends, its messages may be lost.
struct OnSystem(QuorumMembers);

impl Lives for OnSystem {
    fn live(&self, life: Life) {
        life(&Process { environment: Environment::system(), members: self.0.clone() });
        self.0.heal();
        self.0.lose_senders();
    }
}

#[test]
fn the_log_conforms_on_threads() {
    for case in all_cases() {
        eprintln!("{}", case.name);
        (case.run)(&OnSystem(QuorumMembers::new(QuorumOptions::new(1))));
    }
}

/// The first complaint of a case about a fault.
fn complaint(case: &str, fault: Fault) -> Option<String> {
    let case = *all_cases().find(|known| known.name == case).expect("a case of the suite");
    let failure = first_failure(0..400, move |world| run_case(world, &case, Some(fault)));
    failure.map(|failure| failure.to_string())
}

#[test]
fn each_fault_is_found() {
    let expected = [
        (Fault::AcknowledgedBeforeSync, "what was told to be durable survives", "was durable"),
        (Fault::OneMemberIsEnough, "what was told to be durable survives", "was durable"),
        (Fault::GapIgnored, "copies come and go and lose nothing", "was durable"),
        (Fault::OpenedFromOne, "a minority is not missed", "was durable"),
        (Fault::TailNotWritten, "what waited for a majority is whole or gone", "the log ends at"),
        (Fault::OldEpochAccepted, "a newer epoch fences the older writer", ""),
        (Fault::OldEpochAccepted, "a writer that was cut off is fenced", ""),
        (Fault::LeaseIgnored, "leases hold truncation", "the slow reader holds everything"),
        (Fault::TakenWithoutRoom, "what is not taken stays with the writer", "takes more"),
        (Fault::SilenceEndsWriter, "without a majority nothing becomes durable", "unavailable"),
    ];
    for (fault, case, says) in expected {
        let found = complaint(case, fault);
        let found = found.unwrap_or_else(|| panic!("{case:?} does not find {fault:?}"));
        assert!(found.contains(says), "{fault:?}: {found}");
    }
}
