//! An engine whose log is a replicated group and whose pages are at a page service, under the
//! simulator: members are cut off, stall and lose power, and the engine moves to another member.
//! What was acknowledged is there afterwards, and an engine that was replaced acknowledges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::page_store::page_service::{SimulatedOptions, SimulatedPages};
use firn_base::Environment;
use firn_engine::{Engine, EngineError};
use firn_testing::group_log::{DiskFault, GroupCluster, GroupSettings};
use firn_testing::random::Random;
use firn_testing::simulation::{World, first_failure, for_each_seed};

use crate::crowd::{Crowd, open_small_engine};
use crate::plan::Shape;

/// What outlives all engines.
#[derive(Clone)]
struct Outside {
    cluster: GroupCluster,
    pages: Arc<SimulatedPages>,
    crowd: Crowd,
}

/// An engine at a member of the group.
fn open(
    environment: &Environment,
    cluster: &GroupCluster,
    id: u64,
    pages: &Arc<SimulatedPages>,
) -> Result<Engine, EngineError> {
    let log = cluster.store(id).expect("its own process runs");
    open_small_engine(environment, log, Arc::clone(pages) as _, 2 << 20)
}

impl Outside {
    fn create(world: &World, fault: Option<DiskFault>) -> Outside {
        let random = world.random();
        let cluster = GroupCluster::new(
            world,
            GroupSettings {
                max_sync: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
                round_bytes: *random.pick(&[4_000, 40_000]),
                undurable_bytes: 400_000,
                ..GroupSettings::new(3)
            },
        );
        cluster.set_disk_fault(fault);
        let log = cluster.clone();
        let options = SimulatedOptions { chunk_pages: 4, ..SimulatedOptions::new(random.word()) };
        let pages = SimulatedPages::new(options, Box::new(move |from| log.durable_log(from)));
        let shape = Shape {
            seed: random.word(),
            threads: 3,
            keys: 40,
            accounts: 4,
            value_bytes: 2_500,
            long_steps: 40,
        };
        cluster.start_all();
        cluster.lead_at(1);
        let (opened, at) = (cluster.clone(), Arc::clone(&pages));
        let process = cluster.process(1).expect("it runs");
        let created = process.run(move |environment| {
            Crowd::create(open(environment, &opened, 1, &at).expect("an empty log"), &shape)
        });
        Outside { cluster, pages, crowd: created.expect("nobody kills it") }
    }

    /// One life of an engine. It may not even open: another member may lead by then.
    fn live(&self, environment: &Environment, id: u64, random: &Random) {
        let opened = open(environment, &self.cluster, id, &self.pages);
        let Ok(engine) = opened.map(Arc::new) else { return };
        self.crowd.live(environment, &engine, random);
    }

    /// What may happen while an engine works at `home`.
    fn disturb(&self, world: &World, random: &Random, home: u64) {
        for _ in 0..random.below(4) {
            world.sleep(Duration::from_millis(random.between(1, 60)));
            let other = random.between(1, 3);
            match random.below(8) {
                0 => self.cluster.cut([other]),
                1 => self.cluster.cut([1, 2, 3]),
                2 => self.cluster.disk(other).set_stalled(true),
                3 => self.cluster.disk(other).set_full(true),
                4 if other != home => self.cluster.crash(other),
                5 => self.cluster.start_all(),
                _ => self.cluster.heal(),
            }
        }
        world.sleep(Duration::from_millis(random.between(1, 60)));
    }

    /// Opens an engine where the log is led, and compares it with everything that was acknowledged.
    fn verify(&self, world: &World) {
        self.cluster.heal();
        self.cluster.start_all();
        for _ in 0..100 {
            let id = self.cluster.wait_for_leader_but(0);
            let outside = self.clone();
            let process = self.cluster.process(id).expect("it leads");
            let verified = process.run(move |environment| {
                // Another one may be elected meanwhile.
                let opened = open(environment, &outside.cluster, id, &outside.pages);
                let Ok(engine) = opened else { return false };
                outside.crowd.check(&engine);
                engine.close().expect("a majority answers");
                true
            });
            if verified.expect("nobody kills the verifier") {
                return;
            }
            world.sleep(Duration::from_millis(20));
        }
        panic!("no member opens the log");
    }
}

/// Engines at one member after the other. Returns how many transactions were committed.
fn lives(world: &World, fault: Option<DiskFault>) -> u64 {
    let (outside, random) = (Outside::create(world, fault), world.random());
    let cluster = outside.cluster.clone();
    for _ in 0..4 {
        cluster.heal();
        cluster.start_all();
        let home = random.between(1, 3);
        cluster.lead_at(home);
        let (own, choices) = (outside.clone(), random.fork());
        let process = cluster.process(home).expect("it leads");
        process.spawn("live", move |environment| own.live(environment, home, &choices));
        outside.disturb(world, &random, home);
        // Where another member leads by now, the engine may still believe in itself: it is not
        // asked to stop before the log is checked elsewhere.
        if random.chance(0.3) {
            cluster.heal();
            cluster.cut([home]);
            cluster.start_all();
            cluster.wait_for_leader_but(home);
            cluster.heal();
            world.sleep(Duration::from_millis(random.between(1, 100)));
        }
        if random.chance(0.5) {
            cluster.crash_all()
        } else {
            cluster.crash(home)
        }
        if random.chance(0.3) {
            outside.pages.restart();
        }
        if random.chance(0.7) {
            outside.verify(world);
        }
    }
    outside.verify(world);
    let committed = outside.crowd.committed();
    cluster.crash_all();
    committed
}

#[test]
fn crashes_and_fail_over_lose_nothing_that_was_acknowledged() {
    let committed = Arc::new(AtomicU64::new(0));
    let total = Arc::clone(&committed);
    for_each_seed(0..12, move |world| {
        total.fetch_add(lives(world, None), Ordering::Relaxed);
    });
    let committed = committed.load(Ordering::Relaxed);
    println!("{committed} transactions were committed");
    assert!(committed > 0, "no transaction was committed");
}

#[test]
fn a_disk_that_breaks_its_promises_is_found() {
    let failure = first_failure(0..100, move |world| {
        lives(world, Some(DiskFault::NotSynced));
    });
    assert!(failure.is_some(), "the loss was not noticed");
}
