//! Inserts, each in its own transaction, with structure changes side by side (PolarIndex, paper 000
//! §4.1) and one at a time.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::IsolationLevel;
use firn_engine::tree::StructureChanges;
use firn_node::node::NodeOptions;

use crate::arguments::{Durability, EngineArguments};
use crate::comparison::{Comparison, Count, Sample, Side};
use crate::counts::Counts;
use crate::drive::Drive;
use crate::node::{BenchNode, Workshop, fill};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Cell, Report, Section};

const THREADS: [usize; 3] = [1, 8, 64];
const ROWS: u64 = 20_000;
const ROW_BYTES: usize = 200;
const BUFFER_POOL: u64 = 1 << 30;

/// The position of new keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Between existing keys, at random.
    Random,
    /// After the greatest one, so that all threads meet in one leaf.
    Sequential,
}

impl Keys {
    fn name(self) -> &'static str {
        match self {
            Keys::Random => "random",
            Keys::Sequential => "sequential",
        }
    }
}

const COUNT_COLUMNS: [&str; 10] = [
    "keys",
    "threads",
    "side",
    "splits",
    "structure waits",
    "latch waits",
    "right moves",
    "restarts",
    "lock waits",
    "syncs",
];
const COUNTS: [Count; 7] = [
    |counts| counts.splits,
    |counts| counts.structure_waits,
    |counts| counts.latch_waits,
    |counts| counts.right_moves,
    |counts| counts.restarts,
    |counts| counts.lock_waits,
    |counts| counts.syncs,
];

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let threads = arguments.threads_or(&THREADS);
    let mut speed_columns = vec!["keys", "threads"];
    speed_columns.extend(Comparison::SPEED_COLUMNS);
    let mut speed = Section::new("Inserts a second, and latency of an insert", &speed_columns);
    let mut counts = Section::new("Counts for each thousand inserts", &COUNT_COLUMNS);
    progress.plan(2 * threads.len() * arguments.rounds * 2);
    for keys in [Keys::Random, Keys::Sequential] {
        for threads in &threads {
            let comparison = Comparison::run(arguments.rounds, |side| {
                progress.step(&format!("insert: {} keys, {threads} threads", keys.name()));
                measure(arguments, workshop, keys, *threads, side)
            })?;
            let label: [Cell; 2] = [keys.name().into(), (*threads).into()];
            speed.push([&label[..], &comparison.speed_cells()].concat());
            comparison.push_counts(&mut counts, &label, &COUNTS);
        }
    }
    let mut report = Report::new("insert");
    describe(&mut report, arguments);
    report.add(speed);
    report.add(counts);
    Ok(report)
}

fn describe(report: &mut Report, arguments: &EngineArguments) {
    report.note(format!(
        "firn: structure changes side by side; baseline: one at a time in each tree. {} cores, {} rows of {} \
         bytes loaded first, {} rounds of {} s.",
        cores(),
        arguments.rows.unwrap_or(ROWS),
        arguments.row_bytes.unwrap_or(ROW_BYTES),
        arguments.rounds,
        arguments.duration.as_secs_f64(),
    ));
    report.note(match arguments.durability {
        Durability::None => {
            "Nobody waits for the disk: transactions commit in memory, the log follows in the background."
        }
        Durability::Commit => "Each insert waits until its commit is on the disk.",
    });
}

fn measure(
    arguments: &EngineArguments,
    workshop: &Workshop,
    keys: Keys,
    threads: usize,
    side: Side,
) -> Result<Sample, BenchError> {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    options.engine.structure_changes = match side {
        Side::Candidate => StructureChanges::Concurrent,
        Side::Baseline => StructureChanges::Serialised,
    };
    let node = workshop.node(&options)?;
    let rows = arguments.rows.unwrap_or(ROWS);
    let row_bytes = arguments.row_bytes.unwrap_or(ROW_BYTES);
    let stride = if keys == Keys::Random { u64::MAX / rows } else { 1 };
    node.load(rows, row_bytes, |row| row * stride)?;
    let next = AtomicU64::new(rows);
    let before = Counts::read(node.system());
    let drive = Drive { threads, duration: arguments.duration, timed_one_in: 1 };
    let driven = drive.run(|number| {
        let (random, next, node) = (SplitMix::new(number as u64), &next, &node);
        let mut payload = vec![0; row_bytes];
        move || {
            let key = match keys {
                Keys::Random => random.next_u64(),
                Keys::Sequential => next.fetch_add(1, Ordering::Relaxed),
            };
            fill(&mut payload, key);
            insert(node, key, &payload, arguments.durability)
        }
    })?;
    let counts = Counts::read(node.system()).since(&before);
    node.close()?;
    Ok(Sample { driven, counts })
}

fn insert(
    node: &BenchNode,
    key: u64,
    payload: &[u8],
    durability: Durability,
) -> Result<(), BenchError> {
    let mut trx = node.begin(IsolationLevel::RepeatableRead)?;
    trx.insert(node.index(), &key.to_be_bytes(), payload)?;
    match durability {
        Durability::Commit => trx.commit()?,
        Durability::None => trx.commit_without_waiting()?,
    }
    Ok(())
}
