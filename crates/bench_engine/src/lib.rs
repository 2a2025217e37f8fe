//! `firn bench engine`: the speed of this build's engine on this machine, and the reasons for it.
//!
//! Each workload opens its own nodes in fresh directories, so it can run beside a database. The
//! compared sides run in turns, round by round, and the report has the medians of the rounds and of
//! the rounds' ratios:
//!
//! ```text
//!   round 1:  Firn  baseline        round 2:  baseline  Firn        round 3:  Firn  baseline …
//!              └── ratio ──┘                   └── ratio ──┘                   └── ratio ──┘
//! ```
//!
//! A ratio is Firn's figure divided by the baseline's. For throughput, above 1 is better; for
//! latencies and waits, below 1.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "files and the clock of whoever runs the bench"
)]

mod arguments;
mod bare;
mod commits;
mod comparison;
mod counts;
mod disk_loop;
mod drive;
mod in_flight;
mod insert;
mod larger_than_memory;
mod node;
mod point_reads;
mod scans;
mod snapshots;

use std::fmt::Write as _;
use std::io;

use clap::{ArgMatches, Command};
use firn_engine::EngineError;

use self::arguments::{EngineArguments, Workload};
use self::node::Workshop;
use firn_bench::progress::Progress;
use firn_bench::report::Report;
use firn_node::node::NodeError;

/// Why a measurement did not complete.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file or directory other than the database's.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The node under test did not start or stop.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// An operation of the workload failed.
    #[error("the workload failed: {0}")]
    Engine(#[from] EngineError),
    /// A workload at a server failed.
    #[error(transparent)]
    Workload(#[from] firn_bench::BenchError),
    /// A read returned something other than what was written.
    #[error("a read of row {row} gave something else than what was written")]
    WrongRow {
        /// The row's number.
        row: u64,
    },
}

/// The command and its flags.
pub fn command() -> Command {
    Command::new("bench")
        .about("Measure this build on this machine, or any MySQL server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(arguments::engine_command())
        .subcommands(firn_bench::commands())
}

/// Runs the commands of the command line and prints the measurements.
///
/// # Errors
/// [`BenchError`]; earlier measurements have been printed.
pub fn dispatch(matches: &ArgMatches, out: &mut dyn io::Write) -> Result<(), BenchError> {
    match matches.subcommand() {
        Some(("engine", matches)) => run(&EngineArguments::from_matches(matches), out),
        Some((workload, matches)) => Ok(firn_bench::dispatch(workload, matches, out)?),
        None => unreachable!("clap asks for a measurement"),
    }
}

fn run(arguments: &EngineArguments, out: &mut dyn io::Write) -> Result<(), BenchError> {
    let workshop = Workshop::open(arguments.data_dir.as_deref())?;
    let progress = Progress::start();
    let mut reports = Vec::new();
    for workload in arguments.workloads() {
        let report = measure(workload, arguments, &workshop, &progress)?;
        progress.clear();
        writeln!(out, "{}", report.to_text())?;
        reports.push(report);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, to_json(&reports))?;
    }
    Ok(())
}

fn measure(
    workload: Workload,
    arguments: &EngineArguments,
    workshop: &Workshop,
    progress: &Progress,
) -> Result<Report, BenchError> {
    match workload {
        Workload::Insert => insert::run(arguments, workshop, progress),
        Workload::Snapshots => snapshots::run(arguments, workshop, progress),
        Workload::PointReads => point_reads::run(arguments, workshop, progress),
        Workload::Commits => commits::run(arguments, workshop, progress),
        Workload::LargerThanMemory => larger_than_memory::run(arguments, workshop, progress),
        Workload::Scans => scans::run(arguments, workshop, progress),
        Workload::All => unreachable!("all stands for the others"),
    }
}

fn to_json(reports: &[Report]) -> String {
    let reports: Vec<_> = reports.iter().map(Report::to_json).collect();
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = writeln!(
        text,
        "{:#}",
        serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cores": cores(),
            "reports": reports,
        })
    );
    text
}

/// The number of threads that this machine runs at once, as the system reports it.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests;
