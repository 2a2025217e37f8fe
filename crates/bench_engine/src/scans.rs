//! Whole scans of a tree that is larger than the pool, by one thread.
//!
//! Expected: a forward scan reads ahead and is limited by the disk's bandwidth; a backward scan
//! waits for each leaf. *Cold*: the system's cache of the page files was emptied before.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::fs::File;

use firn_base::Environment;
use firn_engine::transaction::{Cursor, Direction, IsolationLevel, KeyRange, ReadMode};
use firn_format::page::PAGE_SIZE;
use firn_node::memory::MemoryPlan;
use firn_node::node::NodeOptions;
use rustix::fs::{Advice, fadvise};

use crate::arguments::EngineArguments;
use crate::counts::Counts;
use crate::node::{BenchNode, Workshop};
use crate::{BenchError, cores};
use firn_bench::progress::Progress;
use firn_bench::report::{Report, Section};
use firn_bench::statistics::median;

const ROW_BYTES: usize = 1000;
const BUFFER_POOL: u64 = 64 << 20;
/// Approximate size of the tree in buffer pools.
const SIZE: usize = 5;

struct Round {
    rows: u64,
    seconds: f64,
    misses: u64,
    prefetches: u64,
}

pub(crate) fn run(
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    let pool_bytes = arguments.buffer_pool_or(BUFFER_POOL);
    let row_bytes = arguments.row_bytes.unwrap_or(ROW_BYTES);
    let mut options = NodeOptions::default();
    MemoryPlan::for_pool(pool_bytes as u64).apply(&mut options);
    let rows = arguments.rows.unwrap_or((SIZE * pool_bytes / row_bytes) as u64);
    progress.plan(1 + 4 * arguments.rounds);
    progress.step("scans: loading");
    let node = workshop.node(&options)?;
    node.load(rows, row_bytes, |row| row)?;
    node.settle()?;
    let mut section = Section::new("One scan over all rows (more MiB/s is better)", &COLUMNS);
    for is_cold in [true, false] {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut rounds = Vec::new();
            for _ in 0..arguments.rounds {
                progress.step(&format!("scans: {direction:?}"));
                if is_cold {
                    empty_system_cache(&node)?;
                }
                rounds.push(scan(&node, direction, rows)?);
            }
            let middle = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
            let bytes_per_second =
                middle(|round| round.rows as f64 / round.seconds) * row_bytes as f64;
            section.push(vec![
                format!("{direction:?}").to_lowercase().as_str().into(),
                if is_cold { "cold" } else { "cached by the system" }.into(),
                (bytes_per_second / f64::from(1 << 20)).into(),
                middle(|round| round.rows as f64 / round.seconds).into(),
                middle(|round| round.misses as f64).into(),
                middle(|round| round.prefetches as f64).into(),
            ]);
        }
    }
    node.close()?;
    let mut report = Report::new("scans");
    report.note(format!(
        "{rows} rows of {row_bytes} bytes, about {SIZE} buffer pools of {} MiB, in pages of {} KiB; one thread, {} \
         cores, median of {} rounds.",
        pool_bytes >> 20,
        PAGE_SIZE >> 10,
        cores(),
        arguments.rounds,
    ));
    report.add(section);
    Ok(report)
}

const COLUMNS: [&str; 6] =
    ["direction", "page files", "MiB/s", "rows/s", "reads", "of these ahead"];

fn scan(node: &BenchNode, direction: Direction, rows: u64) -> Result<Round, BenchError> {
    let clock = Environment::system().clock;
    let (before, began) = (Counts::read(node.system()), clock.monotonic());
    let prefetches = || node.system().pages().pool.statistics().prefetches;
    let prefetched_before = prefetches();
    let mut trx = node.begin(IsolationLevel::RepeatableRead)?;
    let mut cursor = Cursor::new(node.index(), KeyRange::all(), direction, ReadMode::Consistent);
    let mut found = 0;
    while cursor.fetch(&mut trx)? {
        found += cursor.rows().len() as u64;
    }
    trx.commit()?;
    if found != rows {
        return Err(BenchError::WrongRow { row: found });
    }
    Ok(Round {
        rows,
        seconds: clock.monotonic().saturating_sub(began).as_secs_f64(),
        misses: Counts::read(node.system()).since(&before).misses,
        prefetches: prefetches() - prefetched_before,
    })
}

/// Makes the system drop what it caches of the page files, which are synced.
fn empty_system_cache(node: &BenchNode) -> Result<(), BenchError> {
    for entry in std::fs::read_dir(node.path().join("pages"))? {
        let file = File::open(entry?.path())?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(std::io::Error::from)?;
    }
    Ok(())
}
