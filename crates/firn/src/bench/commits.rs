//! Durable commits of single-row updates, and what the disk allows: a loop that writes as many bytes as the
//! log does for each sync, into a file that was written before, and syncs them.

use std::path::Path;
use std::time::Duration;

use firn::node::NodeOptions;
use firn_base::clock::{Clock, SystemClock};
use firn_base::disk::{Disk, File, OpenMode, SystemDisk};
use firn_base::random::{RandomSource, SplitMix};
use firn_engine::transaction::IsolationLevel;

use super::arguments::EngineArguments;
use super::counts::Counts;
use super::drive::{Drive, Driven};
use super::node::{BenchNode, Workshop, fill};
use super::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Report, Section};
use firn_bench::statistics::{Ratios, median};

const THREADS: [usize; 2] = [1, 64];
const ROWS: u64 = 100_000;
const ROW_BYTES: usize = 100;
const BUFFER_POOL: u64 = 256 << 20;

/// One measurement, and the loop's that followed it.
struct Round {
    driven: Driven,
    counts: Counts,
    /// Syncs a second of the loop.
    disk_per_second: f64,
    /// The median of its syncs, in microseconds.
    disk_us: f64,
}

impl Round {
    /// Commits that share a sync.
    fn group(&self) -> f64 {
        self.driven.operations as f64 / self.counts.syncs.max(1) as f64
    }

    fn bytes_per_sync(&self) -> f64 {
        self.counts.log_bytes as f64 / self.counts.syncs.max(1) as f64
    }

    /// Commits a second if the disk were all that takes time.
    fn allowed_per_second(&self) -> f64 {
        self.disk_per_second * self.group()
    }
}

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let threads = arguments.threads_or(&THREADS);
    progress.plan(1 + threads.len() * arguments.rounds * 2);
    progress.step("commits: loading");
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    let node = workshop.node(&options)?;
    let rows = arguments.rows.unwrap_or(ROWS).max(*threads.iter().max().unwrap_or(&1) as u64);
    node.load(rows, arguments.row_bytes.unwrap_or(ROW_BYTES), |row| row)?;
    let disk = DiskLoop::open(&node.path().join("disk-loop"))?;
    let mut by_threads: Vec<Vec<Round>> = threads.iter().map(|_| Vec::new()).collect();
    for _ in 0..arguments.rounds {
        for (threads, rounds) in threads.iter().zip(&mut by_threads) {
            progress.step(&format!("commits: {threads} threads"));
            let (driven, counts) = measure(arguments, &node, rows, *threads)?;
            let mut round = Round { driven, counts, disk_per_second: 0.0, disk_us: 0.0 };
            progress.step("commits: what the disk allows");
            node.settle()?;
            let times = disk.sync_times(round.bytes_per_sync() as usize, arguments.duration)?;
            round.disk_per_second = times.len() as f64 / times.iter().sum::<f64>();
            round.disk_us = median(times) * 1e6;
            rounds.push(round);
        }
    }
    node.close()?;
    Ok(report(arguments, &threads, &by_threads))
}

fn report(arguments: &EngineArguments, threads: &[usize], by_threads: &[Vec<Round>]) -> Report {
    let mut section = Section::new(
        "Commits a second (more is better), and latency of a commit",
        &[
            "threads",
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
            "to first row (more is better)",
        ],
    );
    for (threads, rounds) in threads.iter().zip(by_threads) {
        let middle = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
        let of_allowed =
            rounds.iter().map(|round| (round.driven.per_second(), round.allowed_per_second()));
        let first = by_threads[0].iter().map(|round| round.driven.per_second());
        let to_first = rounds.iter().map(|round| round.driven.per_second()).zip(first);
        section.push(vec![
            (*threads).into(),
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
            Ratios::of(to_first).map(|ratios| ratios.median).into(),
        ]);
    }
    let mut report = Report::new("commits");
    report.note(format!(
        "Updates of one row of {} bytes, each acknowledged after its log was synced. What the disk allows: \
         with all pages brought up to date and nothing else to do, syncs of a loop that writes the same bytes for each sync to the same file system, times the commits \
         that shared a sync. {} cores, median of {} rounds of {} s.",
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
    threads: usize,
) -> Result<(Driven, Counts), BenchError> {
    let before = Counts::read(node.system());
    let drive = Drive { threads, duration: arguments.duration, timed_one_in: 1 };
    let own_rows = rows / threads as u64;
    let driven = drive.run(|number| {
        let random = SplitMix::new(firn_seed(number));
        let mut payload = vec![0; arguments.row_bytes.unwrap_or(ROW_BYTES)];
        let first_own = own_rows * number as u64;
        move || {
            let row = first_own + random.next_u64() % own_rows;
            fill(&mut payload, row);
            if let [.., last] = &mut payload[..] {
                *last = random.next_u64() as u8;
            }
            let mut trx = node.begin(IsolationLevel::RepeatableRead)?;
            trx.update(node.index(), &row.to_be_bytes(), &payload)?;
            Ok(trx.commit()?)
        }
    })?;
    Ok((driven, Counts::read(node.system()).since(&before)))
}

/// Seeds that differ from thread to thread and run to run.
fn firn_seed(thread: usize) -> u64 {
    SystemClock.wall_time_ms().wrapping_mul(4099).wrapping_add(thread as u64)
}

/// The file that the loop writes to.
struct DiskLoop {
    file: std::sync::Arc<dyn File>,
}

const LOOP_FILE_BYTES: u64 = 64 << 20;
/// The log fills up what it writes to whole pages of memory.
const WRITE_UNIT: usize = 4096;

impl DiskLoop {
    /// Makes the file and writes all of it, so that a sync has no blocks to allocate. Blocks for I/O.
    fn open(path: &Path) -> Result<DiskLoop, BenchError> {
        let file = SystemDisk.open(path, OpenMode::CreateNew)?;
        file.allocate(LOOP_FILE_BYTES)?;
        let zeros = vec![0; 1 << 20];
        for offset in (0..LOOP_FILE_BYTES).step_by(zeros.len()) {
            file.write_at(&zeros, offset)?;
        }
        file.sync_data()?;
        Ok(DiskLoop { file })
    }

    /// Writes `bytes`, one after the other as a log does, and syncs, for `duration`. Returns how long each
    /// write and sync took, in seconds; at least one. Blocks for I/O.
    fn sync_times(&self, bytes: usize, duration: Duration) -> Result<Vec<f64>, BenchError> {
        let bytes = bytes.clamp(1, LOOP_FILE_BYTES as usize / 2);
        let buffer = vec![7; bytes.next_multiple_of(WRITE_UNIT) + WRITE_UNIT];
        let (mut position, mut times) = (0_u64, Vec::new());
        let began = SystemClock.monotonic();
        let mut last = began;
        loop {
            let (start, end) = written_range(position, bytes);
            self.file.write_at(&buffer[..(end - start) as usize], start)?;
            self.file.sync_data()?;
            let is_near_end = end + buffer.len() as u64 >= LOOP_FILE_BYTES;
            position = if is_near_end { 0 } else { position + bytes as u64 };
            let now = SystemClock.monotonic();
            times.push(now.saturating_sub(last).as_secs_f64());
            if now.saturating_sub(began) >= duration {
                return Ok(times);
            }
            last = now;
        }
    }
}

/// The whole pages of memory that `bytes` bytes at `position` lie in.
fn written_range(position: u64, bytes: usize) -> (u64, u64) {
    let unit = WRITE_UNIT as u64;
    (position / unit * unit, (position + bytes as u64).next_multiple_of(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_writes_whole_pages() {
        assert_eq!(written_range(0, 1), (0, 4096));
        assert_eq!(written_range(4000, 200), (0, 8192));
        assert_eq!(written_range(8192, 4096), (8192, 12288));
    }
}
