//! An example of the simulator's use: a toy log over the simulated disk, with a writer that commits
//! in groups, clients that wait for their acknowledgement, and power losses at any switch point.
//! Afterwards everything that was acknowledged must exist. The test must find variants of the log
//! that skip a step.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::disk::{File, OpenMode};
use firn_base::event::Event;
use firn_testing::simulation::{
    Faults, Process, SimulatedDisk, World, assert_replays, first_failure, for_each_crash_point,
    for_each_seed,
};
use parking_lot::Mutex;

const RECORD_BYTES: usize = 16;
const PATH: &str = "/log";

/// The step that a variant of the log skips.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Forgets {
    Nothing,
    ToSync,
    ToSyncItsName,
    ThatTheSyncFailed,
    ToCheckRecords,
}

/// Appended records that are not written yet, and how far the log is durable.
struct Log {
    file: Arc<dyn File>,
    forgets: Forgets,
    tail: Mutex<Tail>,
    appended: Event,
    durable: AtomicU64,
    became_durable: Event,
    broken: AtomicBool,
}

#[derive(Default)]
struct Tail {
    records: Vec<u64>,
    next: u64,
}

impl Log {
    fn open(environment: &Environment, forgets: Forgets) -> io::Result<Arc<Log>> {
        let (path, disk) = (Path::new(PATH), &environment.disk);
        let file = match disk.open(path, OpenMode::ReadWrite) {
            Ok(file) => file,
            Err(_) => disk.open(path, OpenMode::CreateNew)?,
        };
        if forgets != Forgets::ToSyncItsName {
            disk.sync_directory(Path::new("/"))?;
        }
        let next = recovered(&*file, forgets)?.len() as u64;
        Ok(Arc::new(Log {
            file,
            forgets,
            tail: Mutex::new(Tail { records: Vec::new(), next }),
            appended: Event::new(),
            durable: AtomicU64::new(next),
            became_durable: Event::new(),
            broken: AtomicBool::new(false),
        }))
    }

    /// Returns the record's number once it is durable; `None` if the log is broken.
    fn append(&self, value: u64) -> Option<u64> {
        let number = {
            let mut tail = self.tail.lock();
            tail.records.push(value);
            tail.next += 1;
            tail.next - 1
        };
        self.appended.notify_all();
        let durable = || self.durable.load(Ordering::SeqCst) > number;
        let broken = || self.broken.load(Ordering::SeqCst);
        self.became_durable.wait_until(None, || durable() || broken());
        durable().then_some(number)
    }

    /// Writes the appended records, in groups, until the disk fails.
    fn write(&self) {
        loop {
            self.appended.wait_until(None, || !self.tail.lock().records.is_empty());
            let (records, end) = {
                let mut tail = self.tail.lock();
                (std::mem::take(&mut tail.records), tail.next)
            };
            if self.write_group(&records, end - records.len() as u64).is_err() {
                self.broken.store(true, Ordering::SeqCst);
                self.became_durable.notify_all();
                return;
            }
            self.durable.store(end, Ordering::SeqCst);
            self.became_durable.notify_all();
        }
    }

    fn write_group(&self, records: &[u64], first: u64) -> io::Result<()> {
        let bytes: Vec<u8> = records.iter().flat_map(|value| encode(*value)).collect();
        self.file.write_at(&bytes, first * RECORD_BYTES as u64)?;
        match self.forgets {
            Forgets::ToSync => Ok(()),
            Forgets::ThatTheSyncFailed => self.file.sync_data().or(Ok(())),
            _ => self.file.sync_data(),
        }
    }
}

fn encode(value: u64) -> [u8; RECORD_BYTES] {
    let mut record = [0; RECORD_BYTES];
    record[..8].copy_from_slice(&value.to_le_bytes());
    record[8..].copy_from_slice(&(!value).to_le_bytes());
    record
}

/// The records of the log up to the first incomplete one.
fn recovered(file: &dyn File, forgets: Forgets) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; file.length()? as usize];
    file.read_at(&mut bytes, 0)?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let records = bytes.as_chunks::<RECORD_BYTES>().0.iter();
    Ok(records
        .map(|record| (word(&record[..8]), word(&record[8..])))
        .take_while(|(value, check)| forgets == Forgets::ToCheckRecords || *value == !*check)
        .map(|(value, _)| value)
        .collect())
}

type Acknowledged = Arc<Mutex<Vec<(u64, u64)>>>;

/// Starts a log and three clients that append to it.
fn start(node: &Process, forgets: Forgets, acknowledged: &Acknowledged) {
    let sink = Arc::clone(acknowledged);
    node.spawn("open", move |environment| {
        let log = Log::open(environment, forgets).expect("nothing is wrong with the disk");
        let writer = Arc::clone(&log);
        environment.spawner.spawn("writer", Box::new(move || writer.write()));
        for client in 0..3 {
            let (log, sink) = (Arc::clone(&log), Arc::clone(&sink));
            let body = move || {
                for round in 1..=10 {
                    let value = client * 1000 + round;
                    let Some(number) = log.append(value) else { return };
                    sink.lock().push((number, value));
                }
            };
            environment.spawner.spawn("client", Box::new(body));
        }
    });
}

/// Checks that every acknowledged record exists, and no record that was never written.
fn verify(world: &World, disk: &SimulatedDisk, forgets: Forgets, acknowledged: &Acknowledged) {
    let found = world.start("verifier", disk).run(move |environment| {
        match environment.disk.open(Path::new(PATH), OpenMode::Read) {
            Ok(file) => recovered(&*file, forgets).expect("the disk reads well"),
            Err(_) => Vec::new(),
        }
    });
    let found = found.expect("nobody kills the verifier");
    for (number, value) in acknowledged.lock().iter() {
        assert_eq!(found.get(*number as usize), Some(value), "record {number} was lost");
    }
    let written = |value: &u64| *value < 3000 && (1..=10).contains(&(value % 1000));
    assert!(found.iter().all(written), "a record was found that nobody wrote");
}

fn crashes_lose_nothing_that_was_acknowledged(world: &World, forgets: Forgets) {
    let disk = world.new_disk();
    let random = world.random();
    let acknowledged = Acknowledged::default();
    for _ in 0..3 {
        disk.set_faults(Faults {
            sync_failure: 0.02,
            max_latency: Duration::from_micros(100),
            files: Some(Arc::new(|path| path == Path::new(PATH))),
            ..Faults::default()
        });
        let node = world.start("node", &disk);
        start(&node, forgets, &acknowledged);
        world.sleep(Duration::from_micros(random.between(1, 2000)));
        node.crash();
        disk.set_faults(Faults::default());
        verify(world, &disk, forgets, &acknowledged);
    }
}

#[test]
fn a_log_that_syncs_loses_nothing() {
    for_each_seed(0..200, |world| {
        crashes_lose_nothing_that_was_acknowledged(world, Forgets::Nothing);
    });
}

#[test]
fn a_run_with_crashes_replays_from_its_seed() {
    assert_replays(0..30, |world| {
        crashes_lose_nothing_that_was_acknowledged(world, Forgets::Nothing);
    });
}

#[test]
fn a_log_bears_a_crash_at_every_switch_point() {
    for_each_crash_point(0..2, |world, point| {
        let disk = world.new_disk();
        let acknowledged = Arc::new(Mutex::new(Vec::new()));
        let node = world.start("node", &disk);
        start(&node, Forgets::Nothing, &acknowledged);
        let reached = node.wait_for_switches(point);
        node.crash();
        verify(world, &disk, Forgets::Nothing, &acknowledged);
        reached
    });
}

#[track_caller]
fn is_caught(forgets: Forgets, seeds: u64, complaint: &str) {
    let failure = first_failure(0..seeds, move |world| {
        crashes_lose_nothing_that_was_acknowledged(world, forgets);
    });
    let failure = failure.expect("the seeds find what the log forgets");
    assert!(failure.cause.is_panic_with(complaint), "{failure}");
}

#[test]
fn a_log_that_forgets_to_sync_is_caught() {
    is_caught(Forgets::ToSync, 20, "was lost");
}

#[test]
fn a_log_that_forgets_to_sync_its_name_is_caught() {
    is_caught(Forgets::ToSyncItsName, 50, "was lost");
}

#[test]
fn a_log_that_goes_on_after_a_failed_sync_is_caught() {
    is_caught(Forgets::ThatTheSyncFailed, 200, "was lost");
}

#[test]
fn a_log_that_takes_torn_records_for_whole_is_caught() {
    is_caught(Forgets::ToCheckRecords, 200, "nobody wrote");
}
