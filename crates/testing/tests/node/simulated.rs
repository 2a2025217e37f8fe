//! The whole node under the simulator: the seed determines every wait, disk call and crash.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_api::WriterEpoch;
use firn_base::Environment;
use firn_engine::transaction::{IsolationLevel, ReadMode};
use firn_node::node::{Node, NodeOptions};
use firn_storage::local::LocalStorage;
use firn_testing::random::Random;
use firn_testing::simulation::{Faults, SimulatedDisk, World, assert_replays, for_each_seed};
use parking_lot::Mutex;

use crate::mirror::Trees;
use crate::plan::{Model, Shape, account_key};
use crate::verify::Witness;
use crate::worker::{Report, Worker, end_prepared};

const DIRECTORY: &str = "/db";
const LATENCY: Duration = Duration::from_micros(100);

fn shape(seed: u64) -> Shape {
    Shape { seed, threads: 4, keys: 60, accounts: 4, value_bytes: 2_500, long_steps: 60 }
}

fn options(random: &Random) -> NodeOptions {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = *random.pick(&[1 << 20, 4 << 20]);
    options.engine.transactions.transactions = 64;
    options.engine.transactions.table_slots = *random.pick(&[4, 64]);
    options.engine.log.buffer_bytes = 512 << 10;
    options.engine.log.leave_from = *random.pick(&[None, Some(1)]);
    options.storage.log.segment_size_bytes = *random.pick(&[160 << 10, 512 << 10]);
    options.storage.log.spare_limit = *random.pick(&[0, 2]);
    options.storage.pages.behind_limit_bytes = *random.pick(&[64 << 10, 512 << 10]);
    options.storage.pages.batch_pages = *random.pick(&[2, 16]);
    options.storage.pages.queue_bytes = *random.pick(&[64 << 10, 1 << 20]);
    options.storage.pages.grow_bytes = 256 << 10;
    options.storage.pages.reserve_bytes = 2 << 20;
    options.storage.pages.retry_delay_ms = 2;
    options
}

/// The state that outlives all processes.
#[derive(Clone)]
struct Outside {
    witness: Arc<Mutex<Witness>>,
    trees: Trees,
    shape: Shape,
    stop: Arc<AtomicBool>,
    is_disk_bad: bool,
}

impl Outside {
    fn report(&self) -> Report {
        let witness = Arc::clone(&self.witness);
        Arc::new(move |thread, sequence, said| witness.lock().hear(thread, sequence, said))
    }

    fn committed(&self) -> u64 {
        self.witness.lock().committed()
    }
}

fn open(environment: &Environment, random: &Random) -> Result<Node, String> {
    open_with_storage(environment, random).map(|(node, _)| node)
}

fn open_with_storage(
    environment: &Environment,
    random: &Random,
) -> Result<(Node, LocalStorage), String> {
    let options = options(random);
    let storage = LocalStorage::open(environment, Path::new(DIRECTORY), options.storage.clone())
        .map_err(|error| error.to_string())?;
    let opened = Arc::new(storage.clone());
    let node = Node::open_over(environment, opened, WriterEpoch::Next, &options);
    node.map(|node| (node, storage)).map_err(|error| error.to_string())
}

fn create(world: &World, disk: &SimulatedDisk) -> Outside {
    let (shape, random) = (shape(world.random().word()), world.random());
    let own = shape.clone();
    let created = world.start("creator", disk).run(move |environment| {
        let node = open(environment, &random).expect("an empty disk");
        let trees = Trees::create(node.engine(), &own).expect("an empty database");
        node.close().expect("nothing is wrong with the log");
        trees
    });
    Outside {
        witness: Arc::new(Mutex::new(Witness::new(Model::new(&shape)))),
        trees: created.expect("nobody kills it"),
        shape,
        stop: Arc::default(),
        is_disk_bad: false,
    }
}

/// One life: workers run until they are stopped or cannot continue. False if the node did not open.
fn live(environment: &Environment, random: &Random, outside: &Outside) -> bool {
    work(environment, random, outside).is_some()
}

/// Like [`live`], but leaves the node open.
fn work(environment: &Environment, random: &Random, outside: &Outside) -> Option<Arc<Node>> {
    // A bad disk may refuse even that. The verifier has a good disk and finds any harm.
    let node = open(environment, random).map(Arc::new).ok()?;
    end_prepared(node.engine(), random, &outside.report()).ok()?;
    let tasks = (0..outside.shape.threads).map(|thread| {
        let (node, outside, random) = (Arc::clone(&node), outside.clone(), random.fork());
        let work = move || {
            let worker = Worker {
                engine: node.engine(),
                trees: outside.trees,
                shape: &outside.shape,
                thread,
                random: &random,
                report: outside.report(),
                stop: &outside.stop,
                pace: Duration::ZERO,
                lock_wait: Duration::from_millis(200),
                is_storage_bad: outside.is_disk_bad,
            };
            worker.run();
        };
        environment.spawner.spawn("worker", Box::new(work))
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        task.join();
    }
    Some(node)
}

fn verify(world: &World, disk: &SimulatedDisk, outside: &Outside) {
    let (outside, random) = (outside.clone(), world.random());
    let verifier = world.start("verifier", disk);
    let verified = verifier.run(move |environment| {
        let opened = open_with_storage(environment, &random);
        let (node, storage) = opened.expect("nothing is wrong with the disk");
        // Taken out, because the check waits, and no task may wait while it holds a mutex.
        let placeholder = Witness::new(Model::new(&outside.shape));
        let mut witness = std::mem::replace(&mut *outside.witness.lock(), placeholder);
        if let Err(complaint) = witness.check(node.engine(), outside.trees) {
            panic!("{complaint}");
        }
        *outside.witness.lock() = witness;
        storage.pages.verify_all(&mut |_| {}).expect("every stored image is good");
        // The life ends in order, or without any close.
        if random.chance(0.5) {
            node.close().expect("nothing is wrong with the disk");
        }
    });
    verified.expect("nobody kills the verifier");
    verifier.kill();
}

fn lives(world: &World, faults: &Faults) {
    let disk = world.new_disk();
    let random = world.random();
    let mut outside = create(world, &disk);
    outside.is_disk_bad = faults.read_failure > 0.0;
    for _ in 0..4 {
        disk.set_faults(faults.clone());
        let node = world.start("node", &disk);
        let (own, choices) = (outside.clone(), random.fork());
        node.spawn("live", move |environment| live(environment, &choices, &own));
        world.sleep(Duration::from_micros(random.between(1, 40_000)));
        if random.chance(0.3) {
            node.kill();
        } else {
            node.crash();
        }
        disk.set_faults(Faults::default());
        if random.chance(0.7) {
            verify(world, &disk, &outside);
        }
    }
    verify(world, &disk, &outside);
}

#[test]
fn crashes_lose_nothing_that_was_acknowledged() {
    for_each_seed(0..250, |world| {
        lives(world, &Faults { max_latency: LATENCY, ..Faults::default() });
    });
}

#[test]
fn nor_do_failing_syncs() {
    for_each_seed(1000..1150, |world| {
        let faults = Faults {
            sync_failure: 0.01,
            write_failure: 0.002,
            read_failure: 0.002,
            max_latency: LATENCY,
            ..Faults::default()
        };
        lives(world, &faults);
    });
}

/// A process is killed after it created a page file and before it synced the name. The next process
/// stores pages in that file. Then the power fails.
#[test]
fn names_that_a_killed_process_did_not_sync_do_not_vanish_later() {
    for_each_seed(12_803..12_804, |world| {
        lives(world, &Faults { max_latency: LATENCY, ..Faults::default() });
    });
}

#[test]
fn a_full_disk_is_borne_and_work_goes_on_once_there_is_room() {
    for_each_seed(2000..2100, |world| {
        let (disk, random) = (world.new_disk(), world.random());
        let outside = create(world, &disk);
        let node = world.start("node", &disk);
        disk.set_faults(Faults { max_latency: LATENCY, ..Faults::default() });
        let (own, choices) = (outside.clone(), random.fork());
        let life = node.spawn("live", move |environment| live(environment, &choices, &own));
        world.sleep(Duration::from_millis(random.between(1, 20)));
        disk.set_space_bytes(Some(disk.used_bytes() + random.below(1 << 20)));
        world.sleep(Duration::from_millis(200));
        disk.set_space_bytes(None);
        world.sleep(Duration::from_millis(200));
        outside.stop.store(true, Ordering::Release);
        assert!(life.join().expect("nobody kills it"), "the node opens");
        node.kill();
        outside.stop.store(false, Ordering::Release);
        verify(world, &disk, &outside);
        assert!(outside.committed() > 0, "something was done");
    });
}

/// Nothing frees the disk: new work is refused, open transactions end, and the node closes in
/// order.
#[test]
fn a_disk_that_stays_full_keeps_neither_transactions_nor_the_node_from_their_end() {
    for_each_seed(4000..4100, |world| {
        let (disk, random) = (world.new_disk(), world.random());
        let outside = create(world, &disk);
        let node = world.start("node", &disk);
        disk.set_faults(Faults { max_latency: LATENCY, ..Faults::default() });
        let (own, choices) = (outside.clone(), random.fork());
        let has_closed = Arc::new(AtomicBool::new(false));
        let closed = Arc::clone(&has_closed);
        node.spawn("live", move |environment| {
            let node = work(environment, &choices, &own).expect("the node opens");
            let node = Arc::into_inner(node).expect("the workers have ended");
            node.close().expect("the reserve is enough for what was admitted");
            closed.store(true, Ordering::Release);
        });
        world.sleep(Duration::from_millis(random.between(1, 20)));
        disk.set_space_bytes(Some(disk.used_bytes() + random.below(1 << 20)));
        world.sleep(Duration::from_millis(500));
        outside.stop.store(true, Ordering::Release);
        world.sleep(Duration::from_secs(10));
        assert!(has_closed.load(Ordering::Acquire), "the node does not end on a full disk");
        node.kill();
        outside.stop.store(false, Ordering::Release);
        disk.set_space_bytes(None);
        verify(world, &disk, &outside);
    });
}

/// A prepared transaction changes every account, and its rollback is crashed at each switch point.
#[test]
fn a_prepared_transaction_whose_rollback_was_cut_off_is_not_committed_by_halves() {
    const ACCOUNTS: u64 = 12;
    for_each_seed(3000..3200, |world| {
        let disk = world.new_disk();
        let point = world.random().between(500, 3_000);
        let shape = Shape { accounts: ACCOUNTS, ..shape(world.seed()) };
        let preparer = world.start("preparer", &disk);
        let trees = preparer.run(move |environment| {
            let node = open_eager(environment);
            let trees = Trees::create(node.engine(), &shape).expect("an empty database");
            let mut trx =
                node.engine().begin(IsolationLevel::RepeatableRead).expect("few are open");
            for account in 0..ACCOUNTS {
                let changed = vec![1; 3_000];
                assert!(trx.update(trees.table, &account_key(account), &changed).unwrap());
            }
            trx.prepare(b"0-1", None).expect("nothing is wrong with the log");
            trees
        });
        let trees = trees.expect("nobody kills it");
        preparer.crash();
        disk.set_faults(Faults { max_latency: LATENCY, ..Faults::default() });
        let node = world.start("node", &disk);
        let rollback = node.spawn("rollback", move |environment| {
            let node = open_eager(environment);
            node.engine().system().rollback_prepared(b"0-1").expect("it was prepared");
        });
        node.wait_for_switches(point);
        node.crash();
        let is_acknowledged = rollback.join().is_ok();
        let verifier = world.start("verifier", &disk);
        let verified = verifier.run(move |environment| {
            let node = open_eager(environment);
            let is_prepared = !node.engine().system().prepared_transactions().is_empty();
            assert!(!is_prepared || !is_acknowledged, "it was rolled back");
            if is_prepared {
                node.engine().system().commit_prepared(b"0-1", None).unwrap();
            }
            let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
            for account in 0..ACCOUNTS {
                let mut payload = Vec::new();
                let key = account_key(account);
                assert!(trx.get(trees.table, &key, ReadMode::Consistent, &mut payload).unwrap());
                assert_eq!(payload.len() == 3_000, is_prepared, "account {account}");
            }
        });
        verified.expect("nobody kills it");
        verifier.kill();
    });
}

/// A node that writes its log without waiting for a request.
fn open_eager(environment: &Environment) -> Node {
    let mut options = options(&Random::new(1));
    options.storage.log.idle_flush_ms = 0;
    Node::open(environment, Path::new(DIRECTORY), &options).expect("a good disk")
}

#[test]
#[ignore = "alone in its process: when pages are freed depends on the epochs of all threads of the process"]
fn runs_replay_from_their_seeds() {
    assert_replays(0..3, |world| {
        lives(world, &Faults { max_latency: LATENCY, ..Faults::default() });
    });
}
