//! The local log passes the suite for log stores, on the simulated disk and on the system's disk.
//! The suite finds faults that a layer between the two adds on purpose.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::log_store::conformance::{CASES, Case, Life, Lives, Node};
use firn_api::{
    FollowOptions, LogError, LogFollower, LogSource, LogStore, LogWriter, OpenedLog, Room,
    WriterEpoch,
};
use firn_base::{Environment, Lsn};
use firn_storage::local::page_log::PageLog;
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions, OpenError};
use firn_testing::simulation::{Faults, SimulatedDisk, World, first_failure, for_each_seed};

/// Adds a layer between the log and the suite.
type Wrap = fn(Arc<dyn LogStore>) -> Arc<dyn LogStore>;

struct Process {
    environment: Environment,
    log: Arc<LocalLog>,
    wrap: Wrap,
}

impl Process {
    fn open(environment: &Environment, path: &Path, wrap: Wrap) -> Process {
        let options = LogOptions {
            segment_size_bytes: 4096 + 64 * 512,
            idle_flush_ms: 1,
            ..LogOptions::default()
        };
        let log = loop {
            let directory = LocalDirectory::open(environment, path);
            match directory.and_then(|directory| LocalLog::open(&directory, options)) {
                // Tasks of the previous life hold the directory until they have ended.
                Err(OpenError::InUse { .. }) => firn_base::task::sleep(Duration::from_millis(1)),
                opened => break opened.expect("a good disk"),
            }
        };
        Process { environment: environment.clone(), log, wrap }
    }
}

impl Node for Process {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn store(&self) -> Arc<dyn LogStore> {
        (self.wrap)(Arc::clone(&self.log) as _)
    }

    fn other_store(&self) -> Arc<dyn LogStore> {
        self.store()
    }

    fn let_go(&self, lsn: Lsn) {
        self.log.wait_until_indexed(lsn).expect("a good disk");
        self.log.release_before(lsn);
    }
}

/// A stream on a simulated disk, which loses unsynced data when a life ends.
struct Simulated<'a> {
    world: &'a World,
    disk: SimulatedDisk,
    wrap: Wrap,
}

impl Lives for Simulated<'_> {
    fn live(&self, life: Life) {
        let node = self.world.start("node", &self.disk);
        let wrap = self.wrap;
        let ended = node.run(move |environment| {
            life(&Process::open(environment, Path::new("/db"), wrap));
        });
        ended.expect("nobody kills it");
        node.crash();
    }
}

fn run_case(world: &World, case: &Case, wrap: Wrap) {
    let disk = world.new_disk();
    let max_latency = Duration::from_micros(*world.random().pick(&[50, 2_000]));
    disk.set_faults(Faults { max_latency, ..Faults::default() });
    (case.run)(&Simulated { world, disk, wrap });
}

#[test]
fn the_local_log_conforms_on_a_simulated_disk() {
    for_each_seed(0..8, |world| CASES.iter().for_each(|case| run_case(world, case, |log| log)));
}

/// A stream in a directory of this machine. Its processes are killed, but the machine keeps its
/// power.
struct OnSystem(PathBuf);

impl Lives for OnSystem {
    fn live(&self, life: Life) {
        life(&Process::open(&Environment::system(), &self.0, |store| store));
    }
}

#[test]
fn the_local_log_conforms_on_the_systems_disk() {
    for case in CASES {
        let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        eprintln!("{}", case.name);
        (case.run)(&OnSystem(place.path().to_owned()));
    }
}

/// A fault: positions are reported as durable when they are taken, before the sync.
struct TellsEarly(Arc<dyn LogStore>);

struct EarlySource {
    source: Arc<dyn LogSource>,
    taken: AtomicU64,
}

impl LogSource for EarlySource {
    fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn {
        let before = into.len();
        let start = self.source.take(into, limit_bytes);
        let end = start.advance((into.len() - before) as u64);
        self.taken.store(end.0, Ordering::SeqCst);
        self.source.advance(end);
        start
    }

    fn advance(&self, _durable: Lsn) {}

    fn tell(&self, outcome: Result<Lsn, &LogError>) {
        self.source.tell(outcome);
    }
}

struct EarlyWriter {
    source: Arc<EarlySource>,
    writer: Box<dyn LogWriter>,
}

impl LogWriter for EarlyWriter {
    fn submit(&self, lsn: Lsn) {
        self.writer.submit(lsn);
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        self.writer.submit(lsn);
        while self.source.taken.load(Ordering::SeqCst) < lsn.0 {
            self.writer.failure().map_or(Ok(()), Err)?;
            firn_base::task::sleep(Duration::from_micros(10));
        }
        Ok(())
    }

    fn room(&self) -> Result<Room, LogError> {
        self.writer.room()
    }

    fn failure(&self) -> Option<LogError> {
        self.writer.failure()
    }

    fn close(&self) {
        self.writer.close();
    }
}

impl LogStore for TellsEarly {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        let opened = self.0.open(epoch)?;
        Ok(OpenedLog::new(opened.tail, move |source| {
            let source = Arc::new(EarlySource { source, taken: AtomicU64::new(0) });
            let writer = opened.start(Arc::clone(&source) as _);
            Box::new(EarlyWriter { source, writer })
        }))
    }

    fn durable_lsn(&self) -> Lsn {
        self.0.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.0.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.0.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        self.0.follow(options)
    }
}

/// Two faults: the writer gets an epoch whatever it asks for, or a reader's lease holds nothing.
struct Careless {
    store: Arc<dyn LogStore>,
    checks_epochs: bool,
    holds: bool,
}

impl LogStore for Careless {
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError> {
        self.store.open(if self.checks_epochs { epoch } else { WriterEpoch::Next })
    }

    fn durable_lsn(&self) -> Lsn {
        self.store.durable_lsn()
    }

    fn truncated_lsn(&self) -> Lsn {
        self.store.truncated_lsn()
    }

    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError> {
        self.store.read(from, limit_bytes, into)
    }

    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError> {
        let hold_limit_bytes = if self.holds { options.hold_limit_bytes } else { 0 };
        self.store.follow(FollowOptions { hold_limit_bytes, ..options })
    }
}

/// The failure message of one case under a fault, at the first seed that finds it.
fn finds(case: &str, wrap: Wrap) -> String {
    let case = *CASES.iter().find(|known| known.name == case).expect("a case of the suite");
    let failure = first_failure(0..20, move |world| run_case(world, &case, wrap));
    failure.expect("the fault was not found").to_string()
}

#[test]
fn a_position_that_is_told_before_the_sync_is_found() {
    let found = finds("what was told to be durable survives", |log| Arc::new(TellsEarly(log)));
    assert!(found.contains("was durable"), "{found}");
}

#[test]
fn an_epoch_that_is_not_checked_is_found() {
    let found = finds("a newer epoch fences the older writer", |store| {
        Arc::new(Careless { store, checks_epochs: false, holds: true })
    });
    assert!(found.contains("it is not newer"), "{found}");
}

#[test]
fn a_truncation_past_a_lease_is_found() {
    let found = finds("leases hold truncation", |store| {
        Arc::new(Careless { store, checks_epochs: true, holds: false })
    });
    assert!(found.contains("the slow reader holds everything"), "{found}");
}
