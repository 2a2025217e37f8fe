//! The figures of one interruption.

use std::time::Duration;

use crate::report::{Cell, Section, readable};

/// The rate is that of so much time.
const WINDOW: Duration = Duration::from_millis(250);
/// Windows begin at a distance of this.
const STEP: Duration = Duration::from_millis(10);
/// The part of the usual rate that counts as going on.
const ENOUGH: f64 = 0.9;

/// A transaction that was acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transaction {
    pub(super) began: Duration,
    pub(super) ended: Duration,
}

/// What clients noticed of one command, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Round {
    /// How long the command took.
    command_ms: f64,
    has_failed: bool,
    /// The longest time in which no client got a commit acknowledged.
    silence_ms: f64,
    /// From the beginning of the command until the rate was at [`ENOUGH`] of the usual one again;
    /// `None`: not while it was watched.
    recovery_ms: Option<f64>,
    /// The longest transaction that was open meanwhile.
    longest_ms: f64,
    usual_per_second: f64,
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl Round {
    /// The figures of a command that began at `began_at`, from the transactions that were
    /// acknowledged from then until `ended_at`.
    pub(super) fn of(
        began_at: Duration,
        took: Duration,
        has_failed: bool,
        usual_per_second: f64,
        ended_at: Duration,
        mut done: Vec<Transaction>,
    ) -> Round {
        done.sort_unstable_by_key(|transaction| transaction.ended);
        let ends: Vec<Duration> = done.iter().map(|transaction| transaction.ended).collect();
        let (silence, spoke_at) = longest_silence(began_at, ended_at, &ends);
        let recovered_at = recovered_at(spoke_at, ended_at, usual_per_second, &ends);
        let lengths = done.iter().map(|one| one.ended.saturating_sub(one.began));
        Round {
            command_ms: milliseconds(took),
            has_failed,
            silence_ms: milliseconds(silence),
            recovery_ms: recovered_at.map(|at| milliseconds(at.saturating_sub(began_at))),
            longest_ms: milliseconds(lengths.max().unwrap_or_default()),
            usual_per_second,
        }
    }

    /// The round in one line, as progress.
    pub(super) fn line(&self, number: u64, of: u64) -> String {
        let recovery = self.recovery_ms.map_or("not".to_owned(), |ms| format!("after {ms:.0} ms"));
        let failed = if self.has_failed { "; the command failed" } else { "" };
        format!(
            "round {number} of {of}: {:.0} ms without a commit, {recovery} at 90 % of {}/s again, \
             longest transaction {:.0} ms{failed}",
            self.silence_ms,
            readable(self.usual_per_second),
            self.longest_ms,
        )
    }
}

/// The longest time without an end, and when it was over.
fn longest_silence(
    began_at: Duration,
    ended_at: Duration,
    ends: &[Duration],
) -> (Duration, Duration) {
    let until = ends.iter().copied().chain([ended_at]);
    let mut from = began_at;
    let mut longest = (Duration::ZERO, began_at);
    for until in until {
        let silence = until.saturating_sub(from);
        if silence > longest.0 {
            longest = (silence, until);
        }
        from = from.max(until);
    }
    longest
}

/// When the first window after `from` begins whose rate is enough.
fn recovered_at(
    from: Duration,
    ended_at: Duration,
    usual_per_second: f64,
    ends: &[Duration],
) -> Option<Duration> {
    let enough = usual_per_second * ENOUGH * WINDOW.as_secs_f64();
    let mut window = from;
    while window + WINDOW <= ended_at {
        let first = ends.partition_point(|end| *end < window);
        let last = ends.partition_point(|end| *end < window + WINDOW);
        if (last - first) as f64 >= enough {
            return Some(window);
        }
        window += STEP;
    }
    None
}

/// The value below which so large a part of the values lies; 0 for none.
fn percentile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let place = (values.len() as f64 * part).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

/// The figures of all rounds.
pub(super) fn section(rounds: &[Round]) -> Section {
    let columns = ["milliseconds", "median", "P90", "P99", "most", "rounds"];
    let mut section = Section::new("Interruptions", &columns);
    let mut add = |name: &str, values: Vec<f64>| {
        let mut row = vec![Cell::from(name)];
        row.extend([0.5, 0.9, 0.99, 1.0].map(|part| Cell::from(percentile(&values, part))));
        row.push(Cell::from(values.len()));
        section.push(row);
    };
    let of = |value: fn(&Round) -> f64| rounds.iter().map(value).collect::<Vec<f64>>();
    add("the command", of(|round| round.command_ms));
    add("no commit of any client for", of(|round| round.silence_ms));
    add(
        "90 % of the usual rate after",
        rounds.iter().filter_map(|round| round.recovery_ms).collect(),
    );
    add("longest transaction", of(|round| round.longest_ms));
    section
}
