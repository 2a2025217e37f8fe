//! An engine whose log is in copies elsewhere and whose pages are on two page nodes at the other
//! end of links, under the simulator: the nodes follow the log, die and come back, links are cut
//! and slow, engines crash and are replaced. The pool holds a part of the pages only, so the engine
//! drops pages that it has changed and reads them again. What was acknowledged is there afterwards,
//! and both nodes have the same pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::LogStore;
use firn_base::Environment;
use firn_engine::{Engine, EngineError};
use firn_testing::quorum_log::{QuorumMembers, QuorumOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{LinkFaults, World, for_each_seed};

use crate::crowd::{Crowd, open_small_engine};
use crate::page_machines::{MS, NODES, PageLinks, PageMachines, host};
use crate::plan::Shape;

/// How a process reaches log and pages.
#[derive(Clone)]
struct Access {
    members: QuorumMembers,
    links: PageLinks,
}

impl Access {
    /// An engine of the node `name`, which fences all others.
    fn open(&self, environment: &Environment, name: &str) -> Result<Engine, EngineError> {
        let log = Arc::new(self.members.log(environment, name));
        open_small_engine(environment, log, self.links.pages(environment, &NODES), 0)
    }
}

/// Log and pages, which outlive the engines.
struct Elsewhere {
    world: World,
    members: QuorumMembers,
    machines: PageMachines,
    random: Random,
}

impl Elsewhere {
    fn new(world: &World) -> Elsewhere {
        let random = world.random();
        let members = QuorumMembers::new(QuorumOptions {
            max_delay: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
            ..QuorumOptions::new(random.word())
        });
        let of_nodes = members.clone();
        let log = move |environment: &Environment, name: &str| {
            Ok(Arc::new(of_nodes.log(environment, name)) as Arc<dyn LogStore>)
        };
        let machines = PageMachines::start(world, random.fork(), Arc::new(log), &NODES);
        Elsewhere { world: world.clone(), members, machines, random }
    }

    fn access(&self) -> Access {
        Access { members: self.members.clone(), links: self.machines.links() }
    }

    /// What may happen while an engine works.
    fn disturb(&mut self) {
        let network = self.world.network();
        for _ in 0..self.random.below(6) {
            self.world.sleep(Duration::from_micros(self.random.between(1, 20_000)));
            let index = self.random.below(2) as usize;
            let node = host(NODES[index]);
            match self.random.below(8) {
                0..3 => self.machines.restart(index),
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
                self.machines.restart(index);
            }
        }
    }

    /// Every page is the same on both nodes.
    fn compare(&self) {
        let durable = self.members.log(&Environment::system(), "observer").durable_lsn();
        self.machines.compare(durable);
    }
}

/// What the engines of a run share.
#[derive(Clone)]
struct Outside {
    access: Access,
    crowd: Crowd,
    evictions: Arc<AtomicU64>,
}

impl Outside {
    fn create(elsewhere: &Elsewhere, evictions: &Arc<AtomicU64>) -> Outside {
        let seed = elsewhere.random.word();
        let shape =
            Shape { seed, threads: 3, keys: 400, accounts: 4, value_bytes: 4_000, long_steps: 120 };
        let access = elsewhere.access();
        let world = &elsewhere.world;
        let created = world.start("creator", &world.new_disk()).run(move |environment| {
            Crowd::create(access.open(environment, "creator").expect("an empty log"), &shape)
        });
        Outside {
            access: elsewhere.access(),
            crowd: created.expect("nobody kills it"),
            evictions: Arc::clone(evictions),
        }
    }

    /// One life of an engine. It may not even open.
    fn live(&self, environment: &Environment, random: &Random) {
        if let Ok(engine) = self.access.open(environment, "node").map(Arc::new) {
            self.crowd.live(environment, &engine, random);
        }
    }

    /// Opens an engine and compares it with everything that was acknowledged.
    fn verify(&self, world: &World) {
        let outside = self.clone();
        let verifier = world.start("verifier", &world.new_disk());
        let verified = verifier.run(move |environment| {
            let engine = outside.access.open(environment, "verifier").expect("all answer");
            outside.crowd.check(&engine);
            let pool = engine.system().pages().pool.statistics();
            assert_eq!(pool.evictions_offered, 0, "no page goes to a page node");
            outside.evictions.fetch_add(pool.evictions_clean, Ordering::Relaxed);
            engine.close().expect("a majority answers");
        });
        verified.expect("nobody kills the verifier");
        verifier.kill();
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
        all_committed.fetch_add(outside.crowd.committed(), Ordering::Relaxed);
    });
    let (committed, evictions) =
        (committed.load(Ordering::Relaxed), evictions.load(Ordering::Relaxed));
    println!("{committed} transactions were committed, {evictions} pages dropped by verifiers");
    assert!(committed > 0 && evictions > 0);
}
