//! Durable commits of single-row updates, waited for or handed over, compared with:
//!
//! * the disk's limit: a loop that writes and syncs as many bytes as the log does for each sync, in
//!   a file that was written before;
//! * the machine's limit for as many waiting threads: [`super::bare`], commits without
//!   transactions.

use firn_base::clock::{Clock, SystemClock};
use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::IsolationLevel;
use firn_node::node::NodeOptions;

use crate::arguments::EngineArguments;
use crate::bare::BareCommits;
use crate::counts::Counts;
use crate::disk_loop::DiskLoop;
use crate::drive::{Drive, Driven};
use crate::in_flight::Window;
use crate::node::{BenchNode, Workshop, fill};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Report, Section};
use firn_bench::statistics::{Ratios, median};

/// The default measurements.
const WRITERS: [Writers; 3] = [
    Writers { threads: 1, in_flight: 1 },
    Writers { threads: 64, in_flight: 1 },
    Writers { threads: 2, in_flight: 64 },
];
const ROWS: u64 = 100_000;
const ROW_BYTES: usize = 100;
const BUFFER_POOL: u64 = 256 << 20;

/// The threads that commit, and how.
#[derive(Debug, Clone, Copy)]
struct Writers {
    threads: usize,
    /// The most commits of a thread that are not durable yet. With 1, it waits for each.
    in_flight: usize,
}

impl Writers {
    fn asked_for(arguments: &EngineArguments) -> Vec<Writers> {
        if arguments.threads.is_none() && arguments.in_flight.is_none() {
            return WRITERS.to_vec();
        }
        let in_flight = arguments.in_flight.unwrap_or(1);
        let threads = arguments.threads_or(&[1, 64]);
        threads.into_iter().map(|threads| Writers { threads, in_flight }).collect()
    }
}

/// One measurement, and the loop's measurement after it.
struct Round {
    driven: Driven,
    counts: Counts,
    /// Syncs a second of the loop.
    disk_per_second: f64,
    /// The median of its syncs, in microseconds.
    disk_us: f64,
    /// Commits without transactions; `None` for commits that are handed over.
    bare: Option<Driven>,
}

impl Round {
    /// Commits that share a sync.
    fn group(&self) -> f64 {
        self.driven.operations as f64 / self.counts.syncs.max(1) as f64
    }

    fn bytes_per_sync(&self) -> f64 {
        self.counts.log_bytes as f64 / self.counts.syncs.max(1) as f64
    }

    /// Commits per second if only the disk took time.
    fn allowed_per_second(&self) -> f64 {
        self.disk_per_second * self.group()
    }
}

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let writers = Writers::asked_for(arguments);
    progress.plan(1 + writers.len() * arguments.rounds * 3);
    progress.step("commits: loading");
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    let node = workshop.node(&options)?;
    let rows = arguments
        .rows
        .unwrap_or(ROWS)
        .max(writers.iter().map(|writers| writers.threads as u64).max().unwrap_or(1));
    node.load(rows, arguments.row_bytes.unwrap_or(ROW_BYTES), |row| row)?;
    let disk = DiskLoop::open(&node.path().join("disk-loop"))?;
    let mut by_writers: Vec<Vec<Round>> = writers.iter().map(|_| Vec::new()).collect();
    for _ in 0..arguments.rounds {
        for (writers, rounds) in writers.iter().zip(&mut by_writers) {
            progress.step(&format!("commits: {} threads", writers.threads));
            let (driven, counts) = measure(arguments, &node, rows, *writers)?;
            let mut round =
                Round { driven, counts, disk_per_second: 0.0, disk_us: 0.0, bare: None };
            progress.step("commits: what the disk allows");
            node.settle()?;
            let times = disk.sync_times(round.bytes_per_sync() as usize, arguments.duration)?;
            round.disk_per_second = times.len() as f64 / times.iter().sum::<f64>();
            round.disk_us = median(times) * 1e6;
            progress.step("commits: threads that only wait");
            if writers.in_flight == 1 {
                let bytes = round.bytes_per_sync() / round.group();
                let bare = BareCommits::new(&disk, bytes as usize);
                round.bare = Some(bare.drive(writers.threads, arguments.duration)?);
            }
            rounds.push(round);
        }
    }
    node.close()?;
    Ok(report(arguments, &writers, &by_writers))
}

fn report(arguments: &EngineArguments, writers: &[Writers], by_writers: &[Vec<Round>]) -> Report {
    let mut section = Section::new(
        "Commits a second (more is better), and latency of a commit",
        &[
            "threads",
            "in flight each",
            "commits/s",
            "P50 us",
            "P95 us",
            "P99 us",
            "CPU us/commit",
            "commits/sync",
            "bytes/sync",
            "disk syncs/s",
            "disk P50 us",
            "disk allows/s",
            "of that (1 is all)",
            "bare commits/s",
            "bare CPU us/commit",
            "of bare (1 is all)",
            "to first row (more is better)",
        ],
    );
    for (writers, rounds) in writers.iter().zip(by_writers) {
        let middle = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
        let of_allowed =
            rounds.iter().map(|round| (round.driven.per_second(), round.allowed_per_second()));
        let of_bare = rounds.iter().filter_map(|round| {
            Some((round.driven.per_second(), round.bare.as_ref()?.per_second()))
        });
        let bare = |figure: fn(&Driven) -> f64| {
            let figures = rounds.iter().filter_map(|round| round.bare.as_ref().map(figure));
            let figures: Vec<f64> = figures.collect();
            (!figures.is_empty()).then(|| median(figures))
        };
        let first = by_writers[0].iter().map(|round| round.driven.per_second());
        let to_first = rounds.iter().map(|round| round.driven.per_second()).zip(first);
        section.push(vec![
            writers.threads.into(),
            writers.in_flight.into(),
            middle(|round| round.driven.per_second()).into(),
            middle(|round| round.driven.percentile_us(50.0)).into(),
            middle(|round| round.driven.percentile_us(95.0)).into(),
            middle(|round| round.driven.percentile_us(99.0)).into(),
            middle(|round| round.driven.processor_us()).into(),
            middle(Round::group).into(),
            middle(Round::bytes_per_sync).into(),
            middle(|round| round.disk_per_second).into(),
            middle(|round| round.disk_us).into(),
            middle(Round::allowed_per_second).into(),
            Ratios::of(of_allowed).map(|ratios| ratios.median).into(),
            bare(Driven::per_second).into(),
            bare(Driven::processor_us).into(),
            Ratios::of(of_bare).map(|ratios| ratios.median).into(),
            Ratios::of(to_first).map(|ratios| ratios.median).into(),
        ]);
    }
    let mut report = Report::new("commits");
    report.note(format!(
        "Updates of one row of {} bytes, each acknowledged after its log was synced. What the disk allows: \
         with all pages brought up to date and nothing else to do, syncs of a loop that writes the same bytes for each sync to the same file system, times the commits \
         that shared a sync. Bare: as many threads, whose commits are a number that they add to, a write and a sync for all \
         that have added, and their waking. {} cores, median of {} rounds of {} s.",
        arguments.row_bytes.unwrap_or(ROW_BYTES),
        cores(),
        arguments.rounds,
        arguments.duration.as_secs_f64(),
    ));
    report.add(section);
    report
}

fn measure(
    arguments: &EngineArguments,
    node: &BenchNode,
    rows: u64,
    writers: Writers,
) -> Result<(Driven, Counts), BenchError> {
    let before = Counts::read(node.system());
    // The windows measure commits that are handed over.
    let timed_one_in = if writers.in_flight > 1 { u32::MAX } else { 1 };
    let drive = Drive { threads: writers.threads, duration: arguments.duration, timed_one_in };
    let own_rows = rows / writers.threads as u64;
    let windows: Vec<_> = (0..writers.threads).map(|_| Window::new(writers.in_flight)).collect();
    let mut driven = drive.run(|number| {
        let random = SplitMix::new(firn_seed(number));
        let mut payload = vec![0; arguments.row_bytes.unwrap_or(ROW_BYTES)];
        let first_own = own_rows * number as u64;
        let window = (writers.in_flight > 1).then_some(&windows[number]);
        move || {
            let entered = window.map(Window::enter).transpose()?;
            let row = first_own + random.next_u64() % own_rows;
            fill(&mut payload, row);
            if let [.., last] = &mut payload[..] {
                *last = random.next_u64() as u8;
            }
            let mut trx = node.begin(IsolationLevel::RepeatableRead)?;
            trx.update(node.index(), &row.to_be_bytes(), &payload)?;
            match entered {
                None => Ok(trx.commit()?),
                Some(entered) => entered.commit(trx),
            }
        }
    })?;
    let latencies: Vec<_> = windows.iter().map(|window| window.drain()).collect();
    if writers.in_flight > 1 {
        driven.set_latencies(&latencies);
    }
    Ok((driven, Counts::read(node.system()).since(&before)))
}

/// Seeds that differ from thread to thread and run to run.
fn firn_seed(thread: usize) -> u64 {
    SystemClock.wall_time_ms().wrapping_mul(4099).wrapping_add(thread as u64)
}
