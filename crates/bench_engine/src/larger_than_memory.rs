//! Working sets from half of the buffer pool to ten times its size: reads and updates of random
//! rows in a part of a tree. The part has the size of the working set.
//!
//! Expected: throughput falls with the misses and no further, no tenth of a measurement falls far
//! behind the others, and the process stays within its memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::{IsolationLevel, ReadMode};
use firn_format::page::PAGE_SIZE;
use firn_node::memory::{MemoryPlan, resident_bytes};
use firn_node::node::NodeOptions;

use crate::arguments::EngineArguments;
use crate::counts::Counts;
use crate::drive::{Drive, Driven};
use crate::node::{BenchNode, Workshop, check, fill};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Report, Section};
use firn_bench::statistics::{median, ratio};

const THREADS: [usize; 1] = [8];
const ROW_BYTES: usize = 1000;
const BUFFER_POOL: u64 = 64 << 20;
/// Sizes of the working set, in buffer pools.
const SIZES: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];
/// One operation in this many is an update.
const UPDATE_ONE_IN: u64 = 10;
/// Parts of a measurement that are examined separately.
const WINDOWS: u32 = 10;

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let threads = arguments.threads_or(&THREADS);
    let pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    let row_bytes = arguments.row_bytes.unwrap_or(ROW_BYTES);
    let mut options = NodeOptions::default();
    let plan = MemoryPlan::for_pool(pool_bytes as u64);
    plan.apply(&mut options);
    let rows = arguments.rows.unwrap_or_else(|| rows_in(10 * pool_bytes, row_bytes));
    progress.plan(1 + SIZES.len() * threads.len() * arguments.rounds);
    progress.step("larger-than-memory: loading");
    let node = workshop.node(&options)?;
    node.load(rows, row_bytes, |row| row)?;
    let memory = Memory { budget: plan.budget_bytes };
    let mut section = Section::new("Operations a second (more is better), and memory", &COLUMNS);
    let mut first = None;
    for size in SIZES {
        for threads in &threads {
            let working_set = ((rows as f64 * size / 10.0) as u64).max(1);
            let mut rounds = Vec::new();
            for _ in 0..arguments.rounds {
                progress
                    .step(&format!("larger-than-memory: {size} of the pool, {threads} threads"));
                rounds.push(measure(arguments, &node, working_set, row_bytes, *threads)?);
            }
            let speed = median(rounds.iter().map(|round| round.driven.per_second()));
            let to_first = ratio(speed, *first.get_or_insert(speed));
            let middle = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
            let highest = |figure: fn(&Round) -> u64| rounds.iter().map(figure).max().unwrap_or(0);
            section.push(vec![
                size.into(),
                (*threads).into(),
                speed.into(),
                to_first.into(),
                middle(Round::misses_per_operation).into(),
                middle(Round::slowest_window).into(),
                middle(|round| round.driven.percentile_us(50.0)).into(),
                middle(|round| round.driven.percentile_us(95.0)).into(),
                middle(|round| round.driven.percentile_us(99.0)).into(),
                middle(|round| round.driven.processor_us()).into(),
                megabytes(highest(|round| round.resident_bytes)).into(),
                memory.of_budget(highest(|round| round.resident_bytes)).into(),
                ratio(highest(|round| round.pool_bytes) as f64, pool_bytes as f64).into(),
            ]);
        }
    }
    node.close()?;
    let mut report = Report::new("larger-than-memory");
    report.note(format!(
        "{rows} rows of {row_bytes} bytes, a buffer pool of {} MiB; one operation in {UPDATE_ONE_IN} is an update \
         whose commit nobody waits for, the others are reads. Misses are reads of the page store, which the \
         system may answer from its own cache of files. {} cores, median of {} rounds of {} s.",
        pool_bytes >> 20,
        cores(),
        arguments.rounds,
        arguments.duration.as_secs_f64(),
    ));
    report.note(format!(
        "Memory: what the process holds, over its budget of {} MiB: the buffer pool and what is beside it.",
        memory.budget >> 20
    ));
    report.add(section);
    Ok(report)
}

const COLUMNS: [&str; 13] = [
    "working set / pool",
    "threads",
    "ops/s",
    "to first row",
    "misses/op",
    "slowest tenth / median tenth",
    "P50 us",
    "P95 us",
    "P99 us",
    "CPU us/op",
    "resident MiB",
    "memory / budget (<1.1 wanted)",
    "pool / its budget",
];

/// The memory limit of the process.
struct Memory {
    budget: u64,
}

impl Memory {
    fn of_budget(&self, resident: u64) -> Option<f64> {
        ratio(resident as f64, self.budget as f64)
    }
}

fn megabytes(bytes: u64) -> f64 {
    (bytes >> 20) as f64
}

/// Approximate number of rows in `bytes` of leaves.
fn rows_in(bytes: usize, row_bytes: usize) -> u64 {
    const KEY_AND_VERSION_BYTES: usize = 32;
    let per_page = (PAGE_SIZE / (row_bytes + KEY_AND_VERSION_BYTES)).max(1);
    (bytes / PAGE_SIZE * per_page) as u64
}

struct Round {
    driven: Driven,
    counts: Counts,
    /// Operations of each window.
    windows: Vec<u64>,
    /// The largest size seen at the end of a window.
    resident_bytes: u64,
    pool_bytes: u64,
}

impl Round {
    fn misses_per_operation(&self) -> f64 {
        self.counts.misses as f64 / self.driven.operations.max(1) as f64
    }

    fn slowest_window(&self) -> f64 {
        let slowest = self.windows.iter().min().copied().unwrap_or(0);
        ratio(slowest as f64, median(self.windows.iter().map(|count| *count as f64))).unwrap_or(0.0)
    }
}

fn measure(
    arguments: &EngineArguments,
    node: &BenchNode,
    working_set: u64,
    row_bytes: usize,
    threads: usize,
) -> Result<Round, BenchError> {
    let (done, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let before = Counts::read(node.system());
    let drive = Drive { threads, duration: arguments.duration, timed_one_in: 1 };
    std::thread::scope(|scope| {
        let (watched, over) = (&done, &over);
        let window = arguments.duration / WINDOWS;
        let watcher = scope.spawn(move || watch(node, watched, over, window));
        let driven = drive.run(|number| {
            let mut session = Session {
                node,
                random: SplitMix::new(number as u64),
                working_set,
                payload: vec![0; row_bytes],
                found: Vec::new(),
                done: &done,
            };
            move || session.operation()
        });
        over.store(true, Ordering::Relaxed);
        let watched = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let counts = Counts::read(node.system()).since(&before);
        let Watched { windows, resident_bytes, pool_bytes } = watched;
        Ok(Round { driven: driven?, counts, windows, resident_bytes, pool_bytes })
    })
}

/// What is observed from outside while the threads work.
#[derive(Default)]
struct Watched {
    windows: Vec<u64>,
    resident_bytes: u64,
    pool_bytes: u64,
}

fn watch(
    node: &BenchNode,
    done: &AtomicU64,
    over: &AtomicBool,
    window: Duration,
) -> Result<Watched, BenchError> {
    let (mut watched, mut last) = (Watched::default(), 0);
    for _ in 0..WINDOWS {
        firn_base::task::sleep(window);
        if over.load(Ordering::Relaxed) {
            break;
        }
        let now = done.load(Ordering::Relaxed);
        watched.windows.push(now - last);
        last = now;
        watched.resident_bytes = watched.resident_bytes.max(resident_bytes().unwrap_or(0));
        let pool_bytes = node.system().pages().pool.resident_bytes() as u64;
        watched.pool_bytes = watched.pool_bytes.max(pool_bytes);
    }
    Ok(watched)
}

struct Session<'a> {
    node: &'a BenchNode,
    random: SplitMix,
    working_set: u64,
    payload: Vec<u8>,
    found: Vec<u8>,
    done: &'a AtomicU64,
}

impl Session<'_> {
    fn operation(&mut self) -> Result<(), BenchError> {
        let row = self.random.next_u64() % self.working_set;
        let mut trx = self.node.begin(IsolationLevel::ReadCommitted)?;
        if self.random.next_u64().is_multiple_of(UPDATE_ONE_IN) {
            fill(&mut self.payload, row);
            trx.update(self.node.index(), &row.to_be_bytes(), &self.payload)?;
            trx.commit_without_waiting()?;
        } else {
            let key = row.to_be_bytes();
            trx.get(self.node.index(), &key, ReadMode::Consistent, &mut self.found)?;
            check(&self.found, row)?;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
