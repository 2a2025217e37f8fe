//! The redo log over the local log store, on the simulated disk: committers that write for each
//! other, commits that are handed over, power losses and failing syncs at any switch point.
//!
//! The store's own task runs only once an hour here. A committer that nobody wakes is then a
//! deadlock, or shows as an hour that has passed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogError, LogStore, WriterEpoch};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_engine::log::writer::Purpose;
use firn_engine::log::{Completion, RedoLog, RedoLogOptions};
use firn_format::page::PAGE_HEADER_BYTES;
use firn_format::redo::{Change, GroupBuilder};
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions, OpenError};
use firn_testing::random::Random;
use firn_testing::simulation::{Faults, Process, World, assert_replays, for_each_seed};

const DIRECTORY: &str = "/db";
const COMMITTERS: u64 = 4;
const COMMITS: u64 = 15;
const HOUR: Duration = Duration::from_secs(3600);

/// What was reported to the committers.
#[derive(Default)]
struct Told {
    /// The highest position that was acknowledged.
    acknowledged: AtomicU64,
    commits: AtomicU64,
    refused: AtomicU64,
}

impl Told {
    fn hear(&self, end: Lsn, is_durable: bool) {
        let count = if is_durable { &self.commits } else { &self.refused };
        count.fetch_add(1, Ordering::SeqCst);
        if is_durable {
            self.acknowledged.fetch_max(end.0, Ordering::SeqCst);
        }
    }

    fn answers(&self) -> u64 {
        self.commits.load(Ordering::SeqCst) + self.refused.load(Ordering::SeqCst)
    }
}

fn open_store(environment: &Environment) -> Result<Arc<LocalLog>, OpenError> {
    let directory = LocalDirectory::open(environment, Path::new(DIRECTORY))?;
    let options = LogOptions {
        segment_size_bytes: 4096 + 64 * 512,
        idle_flush_ms: 3_600_000,
        ..LogOptions::default()
    };
    LocalLog::open(&directory, options)
}

fn start(environment: &Environment) -> Result<(Arc<RedoLog>, Arc<LocalLog>), OpenError> {
    let store = open_store(environment)?;
    let options = RedoLogOptions { buffer_bytes: 512 << 10, ..RedoLogOptions::default() };
    let log = RedoLog::start(store.open(WriterEpoch::Next)?, options, Box::new(|_| {}));
    Ok((log, store))
}

/// Appends a group of any length; `None` if the log has failed.
fn append(log: &RedoLog, random: &Random) -> Option<Lsn> {
    let bytes = vec![7; random.between(1, 2_000) as usize];
    let mut group = GroupBuilder::new();
    let page = PageId::new(SpaceId(1), PageNo(1));
    Change::WriteBytes { at: PAGE_HEADER_BYTES as u16, bytes: &bytes }.encode(page, &mut group);
    let admission = log.admit(4_096, Purpose::Completion).ok()?;
    Some(log.append(admission, group.finish()).end)
}

/// One committer: it waits for most commits and hands some over.
fn commit(log: &RedoLog, random: &Random, told: &Arc<Told>) {
    for _ in 0..COMMITS {
        if random.chance(0.2) {
            firn_base::task::sleep(Duration::from_micros(random.below(300)));
        }
        let Some(end) = append(log, random) else {
            told.refused.fetch_add(1, Ordering::SeqCst);
            continue;
        };
        if random.chance(0.2) {
            let told = Arc::clone(told);
            let completion =
                move |_, outcome: Result<(), LogError>| told.hear(end, outcome.is_ok());
            log.when_durable(end, Completion::new(Arc::new(completion), 0));
        } else {
            told.hear(end, log.wait_durable(end).is_ok());
        }
    }
}

/// Starts a log and its committers. The task ends when all of them have got all answers.
fn run(node: &Process, random: &Random, told: &Arc<Told>) -> firn_testing::simulation::Task<()> {
    let (random, told) = (random.fork(), Arc::clone(told));
    node.spawn("node", move |environment| {
        let before = told.answers();
        // A sync may fail before the log is open.
        let Ok((log, _store)) = start(environment) else { return };
        let committers = (0..COMMITTERS).map(|_| {
            let (log, random, told) = (Arc::clone(&log), random.fork(), Arc::clone(&told));
            let body = Box::new(move || commit(&log, &random, &told));
            environment.spawner.spawn("committer", body)
        });
        let committers: Vec<_> = committers.collect();
        assert!(committers.into_iter().all(|committer| committer.join()));
        while told.answers() < before + COMMITTERS * COMMITS {
            firn_base::task::sleep(Duration::from_millis(1));
            assert!(environment.clock.monotonic() < HOUR / 2, "a completion was forgotten");
        }
        let failed = log.failure().is_some();
        assert_eq!(log.close().is_err(), failed);
    })
}

/// A fast disk or a slow one.
fn faults(random: &Random, sync_failure: f64) -> Faults {
    let max_latency = Duration::from_micros(*random.pick(&[100, 3_000]));
    Faults { sync_failure, max_latency, ..Faults::default() }
}

#[test]
fn simulated_committers_write_for_each_other() {
    for_each_seed(0..300, |world: &World| {
        let disk = world.new_disk();
        disk.set_faults(faults(&world.random(), 0.0));
        let told = Arc::new(Told::default());
        let node = world.start("node", &disk);
        run(&node, &world.random(), &told).join().expect("nobody kills it");
        assert_eq!(told.commits.load(Ordering::SeqCst), COMMITTERS * COMMITS);
        assert!(world.clock().monotonic() < HOUR / 2, "somebody was not woken");
    });
}

fn losing_power_loses_nothing(world: &World) {
    let (disk, random, told) = (world.new_disk(), world.random(), Arc::new(Told::default()));
    for _ in 0..3 {
        disk.set_faults(faults(&random, *random.pick(&[0.0, 0.0, 0.05])));
        let node = world.start("node", &disk);
        let task = run(&node, &random, &told);
        if random.chance(0.8) {
            world.sleep(Duration::from_micros(random.between(1, 30_000)));
        } else {
            let _ = task.join();
        }
        node.crash();
        disk.set_faults(Faults::default());
        let verifier = world.start("verifier", &disk);
        let end = verifier.run(|environment| open_store(environment).map(|log| log.durable_lsn()));
        let end = end.expect("nobody kills the verifier").expect("a log without damage");
        assert!(end.0 >= told.acknowledged.load(Ordering::SeqCst), "an acknowledged group is lost");
    }
}

#[test]
fn simulated_power_losses_and_failing_syncs_lose_nothing() {
    for_each_seed(0..300, losing_power_loses_nothing);
}

#[test]
fn a_simulated_run_replays_from_its_seed() {
    assert_replays(0..20, losing_power_loses_nothing);
}
