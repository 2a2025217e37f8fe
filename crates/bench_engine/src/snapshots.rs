//! Short transactions of several statements, each with its own snapshot (READ COMMITTED): snapshots
//! that are one timestamp (PolarTrans, paper 000 §4.2), and snapshots that copy a list of the
//! active transactions under a mutex.
//!
//! ```text
//!   update ─ pause ─ read ─ pause ─ read ─ pause ─ read ─ pause ─ read ─ commit
//! ```
//!
//! In each pause the thread yields its core, like a session that waits for its client's next
//! statement. So about as many transactions are active as there are threads, on any number of
//! cores.

use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::{IsolationLevel, ReadMode, SnapshotKind};
use firn_node::node::NodeOptions;

use crate::arguments::EngineArguments;
use crate::comparison::{Comparison, Count, Sample, Side};
use crate::counts::Counts;
use crate::drive::Drive;
use crate::node::{BenchNode, Workshop, check, fill};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Cell, Report, Section};

const THREADS: [usize; 4] = [8, 64, 256, 512];
const ROWS: u64 = 100_000;
const ROW_BYTES: usize = 100;
const BUFFER_POOL: u64 = 256 << 20;
const READS: usize = 4;

const COUNT_COLUMNS: [&str; 6] =
    ["threads", "side", "list waits", "latch waits", "lock waits", "restarts"];
const COUNTS: [Count; 4] = [
    |counts| counts.list_waits,
    |counts| counts.latch_waits,
    |counts| counts.lock_waits,
    |counts| counts.restarts,
];

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let threads = arguments.threads_or(&THREADS);
    let mut speed_columns = vec!["threads"];
    speed_columns.extend(Comparison::SPEED_COLUMNS);
    let mut speed =
        Section::new("Transactions a second, and latency of a transaction", &speed_columns);
    let mut counts = Section::new("Counts for each thousand transactions", &COUNT_COLUMNS);
    progress.plan(threads.len() * arguments.rounds * 2);
    for threads in &threads {
        let comparison = Comparison::run(arguments.rounds, |side| {
            progress.step(&format!("snapshots: {threads} threads"));
            measure(arguments, workshop, *threads, side)
        })?;
        let label: [Cell; 1] = [(*threads).into()];
        speed.push([&label[..], &comparison.speed_cells()].concat());
        comparison.push_counts(&mut counts, &label, &COUNTS);
    }
    let mut report = Report::new("snapshots");
    report.note(format!(
        "firn: a snapshot is one timestamp; baseline: a copy of the list of active transactions. {} cores, \
         {} rounds of {} s. A transaction is an update and {READS} reads under READ COMMITTED, each with a \
         snapshot of its own; between them the thread gives up its core. Nobody waits for the disk.",
        cores(),
        arguments.rounds,
        arguments.duration.as_secs_f64(),
    ));
    report.add(speed);
    report.add(counts);
    Ok(report)
}

fn measure(
    arguments: &EngineArguments,
    workshop: &Workshop,
    threads: usize,
    side: Side,
) -> Result<Sample, BenchError> {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    options.engine.transactions.snapshots = match side {
        Side::Candidate => SnapshotKind::Timestamp,
        Side::Baseline => SnapshotKind::ActiveList,
    };
    let node = workshop.node(&options)?;
    let rows = arguments.rows.unwrap_or(ROWS).max(threads as u64);
    node.load(rows, arguments.row_bytes.unwrap_or(ROW_BYTES), |row| row)?;
    let before = Counts::read(node.system());
    let drive = Drive { threads, duration: arguments.duration, timed_one_in: 1 };
    let driven = drive.run(|number| {
        let mut session = Session {
            node: &node,
            random: SplitMix::new(number as u64),
            // Each thread writes only its own rows, so no thread waits for a row.
            own_rows: rows / threads as u64,
            first_own: rows / threads as u64 * number as u64,
            rows,
            payload: vec![0; arguments.row_bytes.unwrap_or(ROW_BYTES)],
            found: Vec::new(),
        };
        move || session.transaction()
    })?;
    let counts = Counts::read(node.system()).since(&before);
    node.close()?;
    Ok(Sample { driven, counts })
}

struct Session<'a> {
    node: &'a BenchNode,
    random: SplitMix,
    own_rows: u64,
    first_own: u64,
    rows: u64,
    payload: Vec<u8>,
    found: Vec<u8>,
}

impl Session<'_> {
    fn transaction(&mut self) -> Result<(), BenchError> {
        let index = self.node.index();
        let mut trx = self.node.begin(IsolationLevel::ReadCommitted)?;
        let own = self.first_own + self.random.next_u64() % self.own_rows;
        fill(&mut self.payload, own);
        trx.open_snapshot();
        trx.update(index, &own.to_be_bytes(), &self.payload)?;
        trx.end_statement();
        for _ in 0..READS {
            firn_base::task::yield_now();
            let row = self.random.next_u64() % self.rows;
            trx.get(index, &row.to_be_bytes(), ReadMode::Consistent, &mut self.found)?;
            check(&self.found, row)?;
            trx.end_statement();
        }
        Ok(trx.commit_without_waiting()?)
    }
}
