//! A whole storage tier whose chunks are cut in two, moved and copied while clients write, under
//! the simulator: the members of a replicated log with engines, page nodes and a control node that
//! run as whole processes, and everything that may happen to them. What was acknowledged is there
//! afterwards, and each page is the same on all nodes that have its chunk, and on a page node
//! without chunks that follows the same log.
//!
//! Faults that were put in on purpose are found, mostly by the first seeds: pages that are dropped
//! before the chunk is cut, a node that forgets what it has dropped or believes a late layout more
//! than its record, a copy that lacks log behind its images, a node that acknowledges what it could
//! not note.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_testing::group_log::GroupCluster;
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, assert_replays, for_each_seed};
use parking_lot::Mutex;

use crate::chunk_machines::ChunkMachines;
use crate::crowd::Crowd;
use crate::members::{self, LogLinks, Members, Voters, some_settings};
use crate::page_machines::{MS, PageMachines};
use crate::plan::Shape;

/// The number of a page node that has all pages, and of which control does not know.
const REFERENCE: u64 = 9;

struct Tier {
    world: World,
    random: Random,
    members: Members,
    machines: ChunkMachines,
    reference: PageMachines,
    crowd: Crowd,
    founded_chunks: usize,
}

impl Tier {
    fn found(world: &World) -> Tier {
        let random = world.random();
        let cluster = GroupCluster::new(world, some_settings(&random));
        let voters: Voters = Arc::new(Mutex::new(cluster.ids().collect()));
        let log = LogLinks::new(world, &voters).opener();
        let reference = PageMachines::start(world, random.fork(), log, &[REFERENCE]);
        let mut machines = ChunkMachines::start(world, random.fork());
        let members = Members::start(cluster, machines.open_pages());
        let founded_chunks = machines.settle().chunks().len();
        let shape = Shape {
            seed: random.word(),
            threads: 2,
            keys: 200,
            accounts: 4,
            value_bytes: 3_000,
            long_steps: 40,
        };
        let pace = *random.pick(&[10, 100]) * MS;
        let crowd = members.create(&shape).paced(pace);
        machines.begin_probing(REFERENCE);
        let world = world.clone();
        Tier { world, random, members, machines, reference, crowd, founded_chunks }
    }

    fn pause(&self, most_ms: u64) {
        self.world.sleep(Duration::from_millis(self.random.between(1, most_ms)));
    }

    /// What may happen while an engine works at `home`.
    fn disturb(&mut self, home: u64) {
        for _ in 0..self.random.between(2, 12) {
            self.disturb_once(home);
            self.pause(*self.random.pick(&[10, 100, 600]));
        }
        if self.random.chance(0.2) {
            // A node that is away is down by then.
            self.pause(4_000);
        }
    }

    fn disturb_once(&mut self, home: u64) {
        let cluster = &self.members.cluster;
        let other = self.random.between(1, 3);
        let network = self.world.network();
        match self.random.below(20) {
            0..5 => self.machines.divide(),
            5..7 => self.machines.move_chunk(),
            7..9 => self.machines.restart_one(),
            9 => self.machines.stop_one(),
            10 => self.machines.start_all(),
            11 => self.machines.crash_all(),
            12 => self.machines.fill_disk(),
            13 => self.machines.jump(),
            14 => {
                let (one, another) = (self.machines.some_host(), self.some_host(home));
                network.cut(&one, &another);
            }
            15 => {
                let slow = LinkFaults { delay: MS..=50 * MS, ..LinkFaults::default() };
                network.set_link(&self.some_host(home), &self.machines.some_host(), slow);
            }
            16 => network.set_faults(LinkFaults {
                loss: 0.01,
                reset: 0.003,
                duplication: 0.02,
                ..LinkFaults::default()
            }),
            17 if other != home => cluster.crash(other),
            17 => self.reference.restart(0),
            18 => cluster.cut([other]),
            _ => self.heal(),
        }
    }

    /// The host of the engine, or of another node.
    fn some_host(&self, home: u64) -> String {
        match self.random.chance(0.5) {
            true => members::host(home),
            false => self.machines.some_host(),
        }
    }

    fn heal(&mut self) {
        self.members.cluster.heal();
        self.members.start_all();
        self.world.network().set_faults(LinkFaults::default());
        self.machines.heal();
        self.machines.start_all();
    }

    /// Compares an engine with everything that was acknowledged, and page nodes with each other.
    fn verify(&mut self) {
        self.heal();
        let durable = self.members.check(&self.world, &self.crowd);
        let catalog = self.machines.settle();
        self.machines.compare(&catalog, REFERENCE, durable);
    }
}

/// What happened in a run.
#[derive(Default)]
struct Tally {
    committed: AtomicU64,
    cuts: AtomicU64,
}

/// Engines at one member after the other.
fn lives(world: &World, tally: &Tally) {
    let mut tier = Tier::found(world);
    for _ in 0..3 {
        tier.heal();
        let home = tier.random.between(1, 3);
        tier.members.begin_life(home, &tier.crowd, tier.random.fork());
        tier.disturb(home);
        let (world, network) = (tier.world.clone(), tier.world.network());
        let cluster = tier.members.cluster.clone();
        tier.members.end_life(&world, &tier.random, home, || {
            cluster.heal();
            network.set_faults(LinkFaults::default());
        });
        if tier.random.chance(0.3) {
            tier.verify();
        }
    }
    tier.verify();
    tally.committed.fetch_add(tier.crowd.committed(), Ordering::Relaxed);
    let cuts = tier.machines.chunks() - tier.founded_chunks;
    tally.cuts.fetch_add(cuts as u64, Ordering::Relaxed);
    tier.members.cluster.crash_all();
}

#[test]
fn chunks_are_cut_and_moved_and_nothing_acknowledged_is_lost() {
    let tally = Arc::new(Tally::default());
    let all = Arc::clone(&tally);
    for_each_seed(0..3, move |world| lives(world, &all));
    let (committed, cuts) = (&tally.committed, &tally.cuts);
    let (committed, cuts) = (committed.load(Ordering::Relaxed), cuts.load(Ordering::Relaxed));
    println!("{committed} transactions were committed, chunks were cut {cuts} times");
    assert!(committed > 0, "no transaction was committed");
    assert!(cuts > 0, "no chunk was cut");
}

/// Nodes that start again while control is away, and whose layout may be older than what they have
/// dropped, because the one that control told was not kept.
fn late_layouts(world: &World) {
    let mut tier = Tier::found(world);
    for _ in 0..3 {
        let home = tier.random.between(1, 3);
        tier.members.begin_life(home, &tier.crowd, tier.random.fork());
        tier.machines.spoil_records();
        for _ in 0..3 {
            tier.machines.divide();
            tier.pause(1_500);
        }
        tier.members.cluster.crash(home);
        tier.members.start_all();
        let durable = tier.members.check(world, &tier.crowd);
        tier.machines.restart_without_control();
        world.sleep(2_000 * MS);
        tier.machines.check_answers(REFERENCE, durable);
        tier.heal();
        tier.machines.settle();
    }
    tier.verify();
    tier.members.cluster.crash_all();
}

#[test]
fn a_late_layout_does_not_make_a_node_serve_what_it_has_dropped() {
    for_each_seed(0..1, late_layouts);
}

#[test]
fn lives_with_chunks_replay_from_their_seeds() {
    assert_replays(100..101, |world| lives(world, &Tally::default()));
}
