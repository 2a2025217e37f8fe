//! The flags of `firn bench engine`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Command, ValueEnum, value_parser};

use firn_node::size::Size;

/// A workload of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Inserts, compared with structure changes one at a time.
    Insert,
    /// Short transactions with many snapshots, compared with a global list of active transactions.
    Snapshots,
    /// Reads of rows that are cached.
    PointReads,
    /// Durable commits, compared with a loop that only writes and syncs.
    Commits,
    /// Growing working sets up to ten times the buffer pool.
    LargerThanMemory,
    /// Scans of a tree that is larger than the buffer pool.
    Scans,
    /// All workloads, one after the other.
    All,
}

impl ValueEnum for Workload {
    fn value_variants<'a>() -> &'a [Workload] {
        &[
            Workload::Insert,
            Workload::Snapshots,
            Workload::PointReads,
            Workload::Commits,
            Workload::LargerThanMemory,
            Workload::Scans,
            Workload::All,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Workload::Insert => ("insert", "inserts, against structure changes one at a time"),
            Workload::Snapshots => {
                ("snapshots", "short transactions, against a list of active transactions")
            }
            Workload::PointReads => ("point-reads", "reads of rows that are cached"),
            Workload::Commits => ("commits", "durable commits, against what the disk allows"),
            Workload::LargerThanMemory => {
                ("larger-than-memory", "working sets up to ten times the buffer pool")
            }
            Workload::Scans => ("scans", "scans of five buffer pools, read ahead or not"),
            Workload::All => ("all", "all of these, one after the other"),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// When an insert counts as complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// When its commit is in the log buffer: this measures the tree, not the disk.
    None,
    /// When its commit is on the disk.
    Commit,
}

impl ValueEnum for Durability {
    fn value_variants<'a>() -> &'a [Durability] {
        &[Durability::None, Durability::Commit]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Durability::None => PossibleValue::new("none").help("no insert waits for the disk"),
            Durability::Commit => {
                PossibleValue::new("commit").help("each commit waits for its sync")
            }
        })
    }
}

/// Settings of the measurements. Each workload chooses its own value for `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EngineArguments {
    pub(crate) workload: Workload,
    pub(crate) threads: Option<Vec<usize>>,
    /// Commits that a thread has in flight.
    pub(crate) in_flight: Option<usize>,
    /// How long one measurement takes.
    pub(crate) duration: Duration,
    pub(crate) rounds: usize,
    pub(crate) durability: Durability,
    pub(crate) rows: Option<u64>,
    pub(crate) row_bytes: Option<usize>,
    pub(crate) buffer_pool: Option<Size>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) json: Option<PathBuf>,
}

/// More threads than this would need another way to run them.
const MAX_THREADS: u64 = 4096;
const DEFAULT_SECONDS: f64 = 2.0;
/// Payloads up to this leave several rows in each page.
const MAX_ROW_BYTES: u64 = 3000;
const MIN_ROW_BYTES: u64 = 8;

pub(crate) fn engine_command() -> Command {
    Command::new("engine")
        .about("Measure the storage engine, without network and SQL")
        .arg(
            Arg::new("workload")
                .value_parser(value_parser!(Workload))
                .default_value("all")
                .help("What to measure"),
        )
        .arg(
            flag("threads", "N,…", "Numbers of threads, one measurement each")
                .value_delimiter(',')
                .value_parser(value_parser!(u64).range(1..=MAX_THREADS)),
        )
        .arg(
            flag("in-flight", "N", "Commits of each thread in flight; more than 1 are handed over")
                .value_parser(value_parser!(u64).range(1..=MAX_THREADS)),
        )
        .arg(flag("seconds", "N", "Length of one measurement [default: 2]").value_parser(seconds))
        .arg(
            flag("rounds", "N", "Rounds of which the median is reported [default: 3]")
                .value_parser(value_parser!(u64).range(1..=1000)),
        )
        .arg(
            flag("durability", "WHEN", "When an insert is done [default: none]")
                .value_parser(value_parser!(Durability)),
        )
        .arg(
            flag("rows", "N", "Rows that are loaded before a measurement")
                .value_parser(value_parser!(u64).range(1..=1 << 40)),
        )
        .arg(
            flag("row-bytes", "N", "Payload of a row")
                .value_parser(value_parser!(u64).range(MIN_ROW_BYTES..=MAX_ROW_BYTES)),
        )
        .arg(flag("buffer-pool", "SIZE", "Memory for pages").value_parser(buffer_pool))
        .arg(
            flag("data-dir", "DIR", "Where fresh directories are made [default: the system's]")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            flag("json", "FILE", "Also write the results to this file")
                .value_parser(value_parser!(PathBuf)),
        )
}

fn flag(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "is not a number of seconds".to_owned())?;
    if !(0.01..=86_400.0).contains(&seconds) {
        return Err("is not between 0.01 and 86400".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn buffer_pool(text: &str) -> Result<Size, String> {
    let size: Size = text.parse().map_err(|error| format!("{error}"))?;
    if !(Size(8 << 20)..=Size(1 << 44)).contains(&size) {
        return Err("is not between 8M and 16T".to_owned());
    }
    Ok(size)
}

impl EngineArguments {
    /// The arguments that clap has accepted.
    pub(crate) fn from_matches(matches: &ArgMatches) -> EngineArguments {
        let number = |name: &str| matches.get_one::<u64>(name).copied();
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let threads = matches.get_many::<u64>("threads");
        EngineArguments {
            workload: *matches.get_one("workload").expect("the workload has a default"),
            threads: threads.map(|threads| threads.map(|count| *count as usize).collect()),
            in_flight: number("in-flight").map(|count| count as usize),
            duration: matches
                .get_one("seconds")
                .copied()
                .unwrap_or(Duration::from_secs_f64(DEFAULT_SECONDS)),
            rounds: number("rounds").unwrap_or(3) as usize,
            durability: matches.get_one("durability").copied().unwrap_or(Durability::None),
            rows: number("rows"),
            row_bytes: number("row-bytes").map(|bytes| bytes as usize),
            buffer_pool: matches.get_one("buffer-pool").copied(),
            data_dir: path("data-dir"),
            json: path("json"),
        }
    }

    /// The requested workloads, in order.
    pub(crate) fn workloads(&self) -> Vec<Workload> {
        match self.workload {
            Workload::All => {
                let all = Workload::value_variants().iter().copied();
                all.filter(|workload| *workload != Workload::All).collect()
            }
            one => vec![one],
        }
    }

    /// The numbers of threads, or those that the workload prefers.
    pub(crate) fn threads_or(&self, preferred: &[usize]) -> Vec<usize> {
        self.threads.clone().unwrap_or_else(|| preferred.to_vec())
    }

    /// The size of the buffer pool in bytes, or the one that the workload prefers.
    pub(crate) fn buffer_pool_or(&self, preferred: u64) -> usize {
        self.buffer_pool.map_or(preferred, |size| size.0) as usize
    }
}
