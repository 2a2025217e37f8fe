//! An engine whose log is in copies elsewhere and whose pages are at a page service, under the
//! simulator: members come and go, messages overtake each other, engines crash and are replaced.
//! What was acknowledged is there afterwards, and an engine that was replaced acknowledges nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::page_store::page_service::{SimulatedOptions, SimulatedPages};
use firn_api::{LogError, LogStore};
use firn_base::{Environment, Lsn};
use firn_engine::transaction::{IsolationLevel, ReadMode};
use firn_engine::{Engine, EngineError};
use firn_testing::quorum_log::{Fault, QuorumMembers, QuorumOptions};
use firn_testing::random::Random;
use firn_testing::simulation::{World, first_failure, for_each_seed};

use crate::crowd::{Crowd, open_small_engine};
use crate::mirror::Trees;
use crate::plan::{Shape, account_key};

/// Log and pages, which outlive the engines.
#[derive(Clone)]
struct Elsewhere {
    members: QuorumMembers,
    pages: Arc<SimulatedPages>,
}

impl Elsewhere {
    fn new(world: &World, fault: Option<Fault>) -> Elsewhere {
        let random = world.random();
        let members = QuorumMembers::new(QuorumOptions {
            members: *random.pick(&[3, 3, 5]),
            max_delay: Duration::from_micros(*random.pick(&[50, 500, 2_000])),
            window: *random.pick(&[2, 8]),
            round_bytes: *random.pick(&[4_000, 40_000]),
            fault,
            ..QuorumOptions::new(random.word())
        });
        // Reading needs nothing of the environment.
        let log = members.log(&Environment::system(), "the page service");
        let read = move |from: Lsn| {
            let mut bytes = Vec::new();
            match log.read(from, usize::MAX, &mut bytes) {
                Err(LogError::OutOfRange { .. }) => None,
                // What could be read before the members stopped to answer.
                _ => Some(bytes),
            }
        };
        let options = SimulatedOptions { chunk_pages: 4, ..SimulatedOptions::new(random.word()) };
        Elsewhere { members, pages: SimulatedPages::new(options, Box::new(read)) }
    }

    /// An engine of the node `name`, which fences all others.
    fn open(&self, environment: &Environment, name: &str) -> Result<Engine, EngineError> {
        let log = Arc::new(self.members.log(environment, name));
        open_small_engine(environment, log, Arc::clone(&self.pages) as _, 2 << 20)
    }

    /// What may happen to the members while an engine works.
    fn disturb(&self, world: &World, random: &Random) {
        for _ in 0..random.below(5) {
            world.sleep(Duration::from_micros(random.between(1, 10_000)));
            match random.below(6) {
                0 | 1 => self.members.lose_minority(),
                2 => self.members.lose_majority(),
                3 => self.members.hold_back(),
                _ => self.members.heal(),
            }
        }
        world.sleep(Duration::from_micros(random.between(1, 10_000)));
    }

    /// The engine's process has lost power; perhaps a page service and some members did too.
    fn settle(&self, random: &Random) {
        self.members.heal();
        self.members.lose_senders();
        if random.chance(0.5) {
            self.members.lose_minority();
        }
        if random.chance(0.3) {
            self.pages.restart();
        }
    }
}

/// What outlives all engines.
#[derive(Clone)]
struct Outside {
    elsewhere: Elsewhere,
    crowd: Crowd,
}

impl Outside {
    fn create(world: &World, fault: Option<Fault>) -> Outside {
        let seed = world.random().word();
        let shape =
            Shape { seed, threads: 3, keys: 40, accounts: 4, value_bytes: 2_500, long_steps: 40 };
        let elsewhere = Elsewhere::new(world, fault);
        let opened = elsewhere.clone();
        let created = world.start("creator", &world.new_disk()).run(move |environment| {
            Crowd::create(opened.open(environment, "creator").expect("an empty log"), &shape)
        });
        Outside { elsewhere, crowd: created.expect("nobody kills it") }
    }

    /// One life of an engine. It may not even open: too few members may answer.
    fn live(&self, environment: &Environment, random: &Random) {
        let Ok(engine) = self.elsewhere.open(environment, "node").map(Arc::new) else { return };
        self.crowd.live(environment, &engine, random);
    }

    /// Opens an engine and compares it with everything that was acknowledged.
    fn verify(&self, world: &World) {
        let outside = self.clone();
        let verifier = world.start("verifier", &world.new_disk());
        let verified = verifier.run(move |environment| {
            let engine = outside.elsewhere.open(environment, "verifier").expect("a majority");
            outside.crowd.check(&engine);
            engine.close().expect("a majority answers");
        });
        verified.expect("nobody kills the verifier");
        verifier.kill();
    }
}

/// Engines that crash, one after the other. Returns how many transactions were committed.
fn lives(world: &World, fault: Option<Fault>) -> u64 {
    let (outside, random) = (Outside::create(world, fault), world.random());
    for _ in 0..4 {
        let node = world.start("node", &world.new_disk());
        let (own, choices) = (outside.clone(), random.fork());
        node.spawn("live", move |environment| own.live(environment, &choices));
        outside.elsewhere.disturb(world, &random);
        node.crash();
        outside.elsewhere.settle(&random);
        if random.chance(0.7) {
            outside.verify(world);
        }
    }
    outside.verify(world);
    outside.crowd.committed()
}

#[test]
fn crashes_over_copies_elsewhere_lose_nothing_that_was_acknowledged() {
    let committed = Arc::new(AtomicU64::new(0));
    let total = Arc::clone(&committed);
    for_each_seed(0..30, move |world| {
        total.fetch_add(lives(world, None), Ordering::Relaxed);
    });
    let committed = committed.load(Ordering::Relaxed);
    println!("{committed} transactions were committed");
    assert!(committed > 0, "no transaction was committed");
}

#[test]
fn a_log_that_breaks_its_promises_is_found() {
    for fault in [Fault::AcknowledgedBeforeSync, Fault::OneMemberIsEnough, Fault::OpenedFromOne] {
        let failure = first_failure(0..200, move |world| {
            lives(world, Some(fault));
        });
        assert!(failure.is_some(), "the loss of {fault:?} was not noticed");
    }
    let fault = Fault::OldEpochAccepted;
    let failure = first_failure(0..50, move |world| late_commit(world, Some(fault)));
    assert!(failure.is_some(), "{fault:?} was not noticed");
}

/// An engine opens while another one works, which is not told.
#[test]
fn an_engine_that_was_replaced_acknowledges_nothing_more() {
    for_each_seed(100..130, |world| {
        let (outside, random) = (Outside::create(world, None), world.random());
        let old = world.start("old", &world.new_disk());
        let (own, choices) = (outside.clone(), random.fork());
        let replaced = old.spawn("live", move |environment| {
            let engine = Arc::new(own.elsewhere.open(environment, "old").expect("a majority"));
            own.crowd.work(environment, &engine, &choices);
            assert_ended(&engine, own.crowd.trees);
        });
        world.sleep(Duration::from_micros(random.between(5_000, 40_000)));
        outside.verify(world);
        // The workers of the old engine have ended on their own.
        replaced.join().expect("nobody kills it");
        outside.verify(world);
        old.kill();
    });
}

/// The engine was fenced: it says so, and takes no change.
fn assert_ended(engine: &Engine, trees: Trees) {
    let failure = engine.failure().expect("its workers have ended");
    assert!(failure.is_fatal() && failure.mysql_code() == 1836, "{failure:?}");
    let refused = set_account(engine, trees, b"late").expect_err("it may not write");
    assert!(matches!(refused, EngineError::Log(LogError::Fenced { .. })), "{refused:?}");
    assert_eq!(refused.mysql_code(), 1836);
}

fn set_account(engine: &Engine, trees: Trees, payload: &[u8]) -> Result<(), EngineError> {
    let mut trx = engine.begin(IsolationLevel::RepeatableRead)?;
    assert!(trx.update(trees.table, &account_key(0), payload)?, "the account is there");
    trx.commit().map(drop)
}

fn account(engine: &Engine, trees: Trees) -> Vec<u8> {
    let mut trx = engine.begin(IsolationLevel::RepeatableRead).expect("few are open");
    let mut payload = Vec::new();
    let found = trx.get(trees.table, &account_key(0), ReadMode::Consistent, &mut payload);
    assert!(found.expect("all pages are there"), "the account is there");
    payload
}

#[test]
fn a_late_commit_is_refused_and_leaves_nothing() {
    for_each_seed(200..230, |world| late_commit(world, None));
}

/// A commit that reaches the members after another engine has opened, or that never does.
fn late_commit(world: &World, fault: Option<Fault>) {
    let (outside, is_cut_off) = (Outside::create(world, fault), world.random().chance(0.5));
    let (old, new) = (world.start("old", &world.new_disk()), world.start("new", &world.new_disk()));
    let (trees, elsewhere) = (outside.crowd.trees, outside.elsewhere.clone());
    let (own, successor) = (elsewhere.clone(), new.environment());
    let ended = old.run(move |environment| {
        let engine = own.open(environment, "old").expect("a majority");
        set_account(&engine, trees, b"acknowledged").expect("nobody else writes");
        if is_cut_off {
            own.members.isolate("old");
        }
        let newer = own.open(&successor, "new").expect("a majority");
        let error = set_account(&engine, trees, b"late").expect_err("another one writes");
        // Its log was in flight, or the engine knew already.
        assert!(matches!(error.mysql_code(), 1180 | 1836 | 1429), "{error:?}");
        own.members.heal();
        // It learns that it was replaced from the members, once it has log for them.
        while engine.failure().is_none() {
            assert!(set_account(&engine, trees, b"late").is_err(), "another one writes");
            firn_base::task::sleep(Duration::from_millis(1));
        }
        assert_ended(&engine, trees);
        assert_eq!(account(&newer, trees), b"acknowledged");
        set_account(&newer, trees, b"of the newer one").expect("nobody fences it");
        newer.close().expect("a majority answers");
    });
    ended.expect("nobody kills it");
    old.crash();
    new.kill();
    let verifier = world.start("verifier", &world.new_disk());
    let verified = verifier.run(move |environment| {
        let engine = elsewhere.open(environment, "verifier").expect("a majority");
        assert_eq!(account(&engine, trees), b"of the newer one");
    });
    verified.expect("nobody kills it");
}
