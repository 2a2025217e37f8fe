//! What clients notice while something happens to their server, again and again.
//!
//! ```text
//!   clients   BEGIN, read, change the own row, COMMIT ── a mark for each acknowledged commit
//!   a round   usual rate ──► the command ──────────────► as before
//!                            │ without a commit, until 90 % of the rate, longest transaction
//! ```
//!
//! Each client counts its commits in its own row. At the end, the count must not be lower than the
//! number of acknowledged commits. It may be higher by the commits whose outcome the client was not
//! told.

mod client;
mod round;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use firn_base::task::sleep;
use parking_lot::Mutex;

use self::client::Client;
use self::round::{Round, Transaction};
use crate::client::{Target, whole};
use crate::error::BenchError;
use crate::report::{Cell, Report, Section};

/// The table of the clients' rows.
const TABLE: &str = "interruptions";

/// What happens to the server, and how it is watched.
#[derive(Debug, Clone)]
pub struct Interruptions {
    pub target: Target,
    pub connections: usize,
    pub rounds: u64,
    /// How long the usual rate is measured before each command.
    pub settle: Duration,
    /// How long clients are watched from the beginning of a command; longer if it takes longer.
    pub watch: Duration,
    /// A program and its arguments.
    pub command: Vec<String>,
}

/// What all clients share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Transactions that were acknowledged and that no round has taken.
    done: Mutex<Vec<Transaction>>,
    /// What clients were told instead, by its text.
    troubles: Mutex<BTreeMap<String, u64>>,
}

impl Shared {
    fn trouble(&self, what: String) {
        *self.troubles.lock().entry(what).or_default() += 1;
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn now() -> Duration {
    SystemClock.monotonic()
}

/// The commits of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Commits {
    acknowledged: u64,
    /// Those whose outcome the client was not told.
    unknown: u64,
}

/// Runs the rounds and prints what clients noticed. Blocks.
///
/// # Errors
/// If the server cannot be reached at the beginning, refuses what it should not, or has lost an
/// acknowledged commit.
pub fn interrupt(
    interruptions: &Interruptions,
    progress: &mut dyn Write,
    out: &mut dyn Write,
) -> Result<(), BenchError> {
    prepare(interruptions)?;
    let shared = Shared::default();
    let opened: Result<Vec<Client>, BenchError> = (0..interruptions.connections)
        .map(|row| Client::open(&interruptions.target, row as u64))
        .collect();
    let (mut clients, mut rounds) = (opened?, Vec::new());
    std::thread::scope(|scope| {
        for client in &mut clients {
            let shared = &shared;
            scope.spawn(move || client.run(shared));
        }
        for number in 0..interruptions.rounds {
            let round = one_round(interruptions, &shared);
            // Standard error may be closed.
            let _ = writeln!(progress, "{}", round.line(number + 1, interruptions.rounds));
            rounds.push(round);
        }
        shared.stop.store(true, Ordering::Relaxed);
    });
    let troubles = std::mem::take(&mut *shared.troubles.lock());
    let commits: Vec<Commits> = clients.iter().map(Client::commits).collect();
    let report = report(interruptions, &rounds, &troubles, &commits);
    writeln!(out, "{}", report.to_text())?;
    check(&interruptions.target, &commits)
}

fn prepare(interruptions: &Interruptions) -> Result<(), BenchError> {
    interruptions.target.make_schema()?;
    let mut session = interruptions.target.connect()?;
    session.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
    session.run(&format!("CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY, value BIGINT NOT NULL)"))?;
    let rows: Vec<String> =
        (0..interruptions.connections).map(|row| format!("({row}, 0)")).collect();
    session.run(&format!("INSERT INTO {TABLE} VALUES {}", rows.join(", ")))
}

fn one_round(interruptions: &Interruptions, shared: &Shared) -> Round {
    let take = || std::mem::take(&mut *shared.done.lock());
    drop(take());
    let settled_at = now();
    sleep(interruptions.settle);
    let before = take();
    let began_at = now();
    let failed = run_command(&interruptions.command, shared);
    let took = now().saturating_sub(began_at);
    sleep(interruptions.watch.saturating_sub(took));
    let usual_per_second =
        before.len() as f64 / (began_at.saturating_sub(settled_at)).as_secs_f64();
    Round::of(began_at, took, failed, usual_per_second, now(), take())
}

/// Runs the command. Returns whether it failed.
fn run_command(command: &[String], shared: &Shared) -> bool {
    let Some((program, arguments)) = command.split_first() else { return false };
    let failure = match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => format!("{program}: {error}"),
    };
    shared.trouble(format!("the command failed: {failure}"));
    true
}

fn report(
    interruptions: &Interruptions,
    rounds: &[Round],
    troubles: &BTreeMap<String, u64>,
    commits: &[Commits],
) -> Report {
    let mut report = Report::new("interruptions");
    report.note(format!(
        "{} clients of {}, {} rounds of: {}",
        interruptions.connections,
        interruptions.target.address(),
        rounds.len(),
        interruptions.command.join(" "),
    ));
    let sum = |of: fn(&Commits) -> u64| commits.iter().map(of).sum::<u64>();
    report.note(format!(
        "{} transactions acknowledged, {} of unknown outcome.",
        sum(|commits| commits.acknowledged),
        sum(|commits| commits.unknown),
    ));
    report.add(round::section(rounds));
    let mut told = Section::new("What clients were told", &["instead of an answer", "times"]);
    for (what, times) in troubles {
        told.push(vec![Cell::from(what.as_str()), Cell::from(*times)]);
    }
    report.add(told);
    report
}

/// Compares each client's row with what the client knows.
fn check(target: &Target, commits: &[Commits]) -> Result<(), BenchError> {
    let mut session = target.connect()?;
    let stored = session.ask(&format!("SELECT id, value FROM {TABLE}"))?;
    let mut wrong = Vec::new();
    for (row, known) in commits.iter().enumerate() {
        let found = stored.iter().find(|stored| whole(&stored[0]).ok() == Some(row as i64));
        let value = found.map_or(Ok(-1), |stored| whole(&stored[1]))?;
        let least = known.acknowledged as i64;
        if !(least..=least + known.unknown as i64).contains(&value) {
            wrong.push(format!("client {row} has {value} commits instead of {known:?}"));
        }
    }
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(BenchError::Wrong(format!("{} rows, the first: {first}", wrong.len()))),
    }
}
