//! The whole storage tier under the simulator: a replicated log whose members come and go, each
//! with its log service, two page nodes that follow it over links, and an engine at the member that
//! leads, which reads pages from them. Everything may happen to everything: members are cut off,
//! stall, are full and lose power, links lose messages, page nodes die, clocks drift and jump,
//! members are replaced. Then the writer is taken over by another member. What was acknowledged is
//! there, and both page nodes have the same pages.
//!
//! ```text
//!   log-1, 2, 3 (4, 5, … join)   member of the group · log service · engine, where it leads
//!        ▲ renewals, log              │ pages of at least this position
//!   pages-1, pages-2  ◄───────────────┘
//! ```
//!
//! Faults that are put in on purpose are found: a sync of votes and entries that does not sync, a
//! term that is not checked, log that is applied before it is durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogStore, PageStore};
use firn_base::task::sleep;
use firn_base::{Environment, Lsn};
use firn_consensus::{Index, MemberChange, MemberId, Role as MemberRole, Saved};
use firn_testing::group_log::{DiskFault, GroupCluster, PeerFault};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, assert_replays, first_failure, for_each_seed};
use parking_lot::Mutex;

use crate::crowd::Crowd;
use crate::members::{LogLinks, Members, Voters, some_settings};
use crate::page_machines::{MS, NODES, PageMachines, host};
use crate::plan::Shape;

/// A newcomer has caught up when it lacks no more log than this, in bytes.
const NEAR_BYTES: u64 = 50_000;

/// What a run breaks.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Disk(DiskFault),
    Peer(PeerFault),
}

struct Tier {
    world: World,
    random: Random,
    members: Members,
    machines: PageMachines,
    voters: Voters,
    crowd: Crowd,
    next_member: u64,
}

impl Tier {
    fn found(world: &World, fault: Option<Fault>) -> Tier {
        let random = world.random();
        let mut settings = some_settings(&random);
        if let Some(Fault::Peer(fault)) = fault {
            settings.peer_fault = Some(fault);
        }
        let cluster = GroupCluster::new(world, settings);
        if let Some(Fault::Disk(fault)) = fault {
            cluster.set_disk_fault(Some(fault));
        }
        let voters: Voters = Arc::new(Mutex::new(cluster.ids().collect()));
        let log = LogLinks::new(world, &voters).opener();
        let machines = PageMachines::start(world, random.fork(), log, &NODES);
        let links = machines.links();
        let pages = move |environment: &Environment, _| {
            links.pages(environment, &NODES) as Arc<dyn PageStore>
        };
        let members = Members::start(cluster, Arc::new(pages));
        let shape = Shape {
            seed: random.word(),
            threads: 3,
            keys: 200,
            accounts: 4,
            value_bytes: 3_000,
            long_steps: 60,
        };
        let crowd = members.create(&shape);
        let world = world.clone();
        Tier { world, random, members, machines, voters, crowd, next_member: 4 }
    }

    fn cluster(&self) -> &GroupCluster {
        &self.members.cluster
    }

    /// One of the members that vote.
    fn some_member(&self) -> u64 {
        *self.random.pick(&self.voters.lock())
    }

    fn pause(&self, most_ms: u64) {
        self.world.sleep(Duration::from_millis(self.random.between(1, most_ms)));
    }

    /// What may happen while an engine works at `home`.
    fn disturb(&mut self, home: u64) {
        for _ in 0..self.random.below(6) {
            self.pause(40);
            self.disturb_once(home);
        }
        self.pause(60);
    }

    fn disturb_once(&mut self, home: u64) {
        let (other, node) = (self.some_member(), self.random.index(NODES.len()));
        let (network, page_host) = (self.world.network(), host(NODES[node]));
        match self.random.below(14) {
            0 => self.cluster().cut([other]),
            1 => self.cluster().cut(self.voters.lock().clone()),
            2 => self.cluster().disk(other).set_stalled(true),
            3 => self.cluster().disk(other).set_full(true),
            4 | 5 if other != home => self.cluster().crash(other),
            6 => self.members.start_all(),
            7 | 8 => self.machines.restart(node),
            9 => network.cut(&format!("log-{home}"), &page_host),
            10 => {
                let slow = LinkFaults { delay: MS..=30 * MS, ..LinkFaults::default() };
                network.set_link(&page_host, &format!("log-{other}"), slow);
            }
            11 => network.set_faults(LinkFaults {
                loss: 0.02,
                reset: 0.005,
                duplication: 0.02,
                ..LinkFaults::default()
            }),
            12 => {
                let hours = self.random.between(0, 100) as i64 - 50;
                if let Some(process) = self.cluster().process(other) {
                    process.jump(hours * 3_600_000);
                }
            }
            _ => self.heal(),
        }
    }

    fn heal(&self) {
        self.cluster().heal();
        self.world.network().set_faults(LinkFaults::default());
    }

    /// The engine's member loses power, or all do. Perhaps another member leads before that.
    fn end_life(&mut self, home: u64) {
        self.members.end_life(&self.world, &self.random, home, || self.heal());
        if self.random.chance(0.3) {
            self.machines.restart(self.random.index(NODES.len()));
        }
    }

    /// Another member takes the place of one, while an engine may work. Gives up if page nodes need
    /// log that the newcomer will never have.
    fn replace(&mut self) {
        self.heal();
        self.members.start_all();
        let (old, new) = (self.some_member(), self.next_member);
        self.next_member += 1;
        self.cluster().add(new);
        self.members.serve_log(new);
        let learner = MemberChange::Set(MemberId(new), MemberRole::Learner);
        assert!(self.cluster().change_members(&[learner]), "the newcomer is not taken");
        let has_caught_up = (0..500).any(|_| {
            sleep(4 * MS);
            self.has_caught_up(new)
        });
        let (gone, changes) = match has_caught_up {
            true => {
                let voter = MemberChange::Set(MemberId(new), MemberRole::Voter);
                (old, vec![voter, MemberChange::Remove(MemberId(old))])
            }
            false => (new, vec![MemberChange::Remove(MemberId(new))]),
        };
        assert!(self.cluster().change_members(&changes), "the members do not change");
        self.wait_until_all_have_it(gone);
        let mut voters = self.voters.lock();
        if has_caught_up {
            voters.retain(|id| *id != old);
            voters.push(new);
        }
        drop(voters);
        self.cluster().remove(gone);
    }

    /// Waits until each member but `gone` has what the leader has now. The members before a change
    /// elect, too, until the change is durable.
    fn wait_until_all_have_it(&self, gone: u64) {
        // What the leader has just appended is on its disk by then.
        sleep(10 * MS);
        let mut wanted = (0, Index(0));
        for _ in 0..500 {
            let leader = self.cluster().wait_for_leader_but(0);
            if wanted.0 != leader {
                let saved = self.cluster().disk(leader).synced();
                wanted = (leader, last_index(&saved));
            }
            let mut members = self.cluster().ids().filter(|id| *id != gone);
            if members.all(|id| last_index(&self.cluster().disk(id).synced()) >= wanted.1) {
                return;
            }
            sleep(4 * MS);
        }
        panic!("a change of members does not reach all of them");
    }

    fn has_caught_up(&self, new: u64) -> bool {
        let stores = || self.cluster().ids().filter_map(|id| self.cluster().store(id));
        let newest = stores().map(|store| store.durable_lsn()).max().unwrap_or_default();
        let own = self.cluster().store(new).expect("it runs").durable_lsn();
        let base = self.cluster().disk(new).synced().base;
        base.lsn > Lsn(0) && own.0 + NEAR_BYTES >= newest.0 && self.machines.need_from() >= base.lsn
    }

    /// Opens an engine where the log is led, and compares it with everything that was acknowledged.
    fn verify(&self) {
        self.heal();
        self.members.start_all();
        let durable = self.members.check(&self.world, &self.crowd);
        self.machines.compare(durable);
    }
}

fn last_index(saved: &Saved) -> Index {
    saved.entries.last().map_or(saved.base.index, |entry| entry.index)
}

/// Engines at one member after the other. Returns how many transactions were committed, and how
/// many members there were.
fn lives(world: &World, fault: Option<Fault>) -> (u64, u64) {
    let mut tier = Tier::found(world, fault);
    for _ in 0..4 {
        tier.heal();
        tier.members.start_all();
        let home = tier.some_member();
        tier.members.begin_life(home, &tier.crowd, tier.random.fork());
        tier.disturb(home);
        if tier.random.chance(0.3) {
            tier.replace();
        }
        tier.end_life(home);
        if tier.random.chance(0.5) {
            tier.verify();
        }
    }
    tier.verify();
    let members = tier.next_member - 1;
    tier.cluster().crash_all();
    (tier.crowd.committed(), members)
}

#[test]
fn whatever_happens_to_the_tier_nothing_acknowledged_is_lost() {
    let committed = Arc::new(AtomicU64::new(0));
    let joined = Arc::new(AtomicU64::new(0));
    let (all_committed, all_joined) = (Arc::clone(&committed), Arc::clone(&joined));
    for_each_seed(0..8, move |world| {
        let (committed, members) = lives(world, None);
        all_committed.fetch_add(committed, Ordering::Relaxed);
        all_joined.fetch_add(members - 3, Ordering::Relaxed);
    });
    let (committed, joined) = (committed.load(Ordering::Relaxed), joined.load(Ordering::Relaxed));
    println!("{committed} transactions were committed, {joined} members came later");
    assert!(committed > 0, "no transaction was committed");
}

#[test]
fn lives_of_the_tier_replay_from_their_seeds() {
    assert_replays(100..102, |world| {
        lives(world, None);
    });
}

#[test]
fn faults_in_the_tier_are_found() {
    let faults = [
        Fault::Disk(DiskFault::NotSynced),
        Fault::Peer(PeerFault::DurableTooEarly),
        Fault::Peer(PeerFault::TermNotChecked),
    ];
    for fault in faults {
        let failure = first_failure(0..100, move |world| {
            lives(world, Some(fault));
        });
        let failure = failure.unwrap_or_else(|| panic!("{fault:?} was not noticed"));
        println!("{fault:?}: seed {}, {:?}", failure.seed, failure.cause);
    }
}
