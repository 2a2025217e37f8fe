//! Tables of a run, and of a comparison.

use crate::client::Target;
use crate::measure::{Kind, Measured};
use crate::report::{Cell, Report, Section};
use crate::run::RunOptions;
use crate::statistics::{Ratios, median};
use crate::workload::{Case, Condition, Suite};

/// The rate that characterises a case: its name and value.
#[must_use]
pub fn headline(case: &dyn Case, measured: &Measured) -> (&'static str, f64) {
    match case.counted() {
        Some(counted) => {
            let rate = measured.fruitful_per_second(counted.kind) * f64::from(counted.seconds);
            (counted.name, rate)
        }
        None if case.operations().is_some() => ("seconds", measured.elapsed.as_secs_f64()),
        None => ("transactions/s", measured.per_second()),
    }
}

const RUN_COLUMNS: [&str; 12] = [
    "transaction",
    "count",
    "per second",
    "P50 ms",
    "P90 ms",
    "P95 ms",
    "P99 ms",
    "longest ms",
    "fruitless",
    "1213",
    "1205",
    "1020",
];

#[must_use]
pub fn run_report(
    suite: &dyn Suite,
    case: &dyn Case,
    target: &Target,
    options: &RunOptions,
    measured: &Measured,
) -> Report {
    let mut report = Report::new(case.label());
    report.note(suite.setup());
    report.note(format!(
        "{}, {} connections, {} statements, seed {}; {:.1} s measured after {} s of warm-up. 1213, 1205 and \
         1020 count attempts that the server took back; each was tried again, and its time is in the latency.",
        target.address(),
        measured.connections,
        target.mode().name(),
        options.seed,
        measured.elapsed.as_secs_f64(),
        options.warm_up.as_secs_f64(),
    ));
    report.add(overall(case, measured));
    report.add(by_kind(measured));
    for section in case.more(measured) {
        report.add(section);
    }
    report
}

fn overall(case: &dyn Case, measured: &Measured) -> Section {
    let (name, figure) = headline(case, measured);
    let mut section = Section::new(
        "Overall",
        &[
            name,
            "transactions/s",
            "jitter %",
            "slowest second",
            "client cores",
            "client us/transaction",
        ][usize::from(name == "transactions/s")..],
    );
    let total = measured.total().transactions().max(1);
    let processor = measured.processor_time.as_secs_f64();
    let full = measured.windows.iter().filter(|window| window.length.as_millis() > 500);
    let slowest = full.map(crate::measure::Window::per_second).reduce(f64::min);
    let row: Vec<Cell> = vec![
        figure.into(),
        measured.per_second().into(),
        measured.jitter().map(|jitter| jitter * 100.0).into(),
        slowest.into(),
        (processor / measured.elapsed.as_secs_f64().max(1e-9)).into(),
        (processor * 1e6 / total as f64).into(),
    ];
    section.push(row[usize::from(name == "transactions/s")..].to_vec());
    section
}

fn by_kind(measured: &Measured) -> Section {
    let mut section = Section::new("By transaction", &RUN_COLUMNS);
    let total = measured.total();
    let kinds = measured.names.iter().map(String::as_str).zip(&measured.kinds);
    // A case may run fewer kinds than its suite has.
    let is_met = |kind: &Kind| kind.transactions() > 0 || kind.conflicts != [0; 3];
    let mut rows: Vec<_> = kinds.filter(|(_, kind)| is_met(kind)).collect();
    if rows.len() > 1 {
        rows.push(("all", &total));
    }
    for (name, kind) in rows {
        let mut row: Vec<Cell> = vec![
            name.into(),
            kind.transactions().into(),
            (kind.transactions() as f64 / measured.elapsed.as_secs_f64().max(1e-9)).into(),
        ];
        row.extend([50.0, 90.0, 95.0, 99.0].map(|percent| Cell::from(kind.percentile_ms(percent))));
        row.push((kind.latency_ns.max() as f64 / 1e6).into());
        row.push(kind.fruitless.into());
        row.extend(kind.conflicts.map(Cell::from));
        section.push(row);
    }
    section
}

/// Conditions and whether they hold.
#[must_use]
pub fn check_report(suite: &dyn Suite, target: &Target, conditions: &[Condition]) -> Report {
    let mut report = Report::new(format!("{} check", suite.name()));
    report.note(target.address());
    let mut section = Section::new("Conditions", &["condition", "holds", "violation"]);
    for condition in conditions {
        let holds = if condition.violation.is_none() { "yes" } else { "NO" };
        let violation = condition.violation.clone().map_or(Cell::Empty, Cell::Text);
        section.push(vec![condition.name.as_str().into(), holds.into(), violation]);
    }
    report.add(section);
    report
}

/// The rounds of one case at two servers.
pub(crate) struct Compared {
    pub(crate) label: String,
    /// Name of the headline figure.
    pub(crate) unit: &'static str,
    /// For each round, the first server's run and the second's.
    pub(crate) rounds: Vec<[Sample; 2]>,
}

/// The figures of one run within a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) headline: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p95_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) longest_ms: f64,
    /// Attempts that were rolled back, for each thousand transactions.
    pub(crate) conflicts: f64,
    pub(crate) client_cores: f64,
}

impl Sample {
    pub(crate) fn of(case: &dyn Case, measured: &Measured) -> Sample {
        let total = measured.total();
        let conflicts = total.conflicts.iter().sum::<u64>() as f64;
        Sample {
            headline: headline(case, measured).1,
            p50_ms: total.percentile_ms(50.0),
            p95_ms: total.percentile_ms(95.0),
            p99_ms: total.percentile_ms(99.0),
            longest_ms: measured.longest_ms(),
            conflicts: conflicts * 1000.0 / total.transactions().max(1) as f64,
            client_cores: measured.processor_time.as_secs_f64()
                / measured.elapsed.as_secs_f64().max(1e-9),
        }
    }
}

const COMPARISON_COLUMNS: [&str; 15] = [
    "case",
    "figure",
    "A",
    "B",
    "A/B",
    "lowest",
    "highest",
    "P50 A/B",
    "P95 A/B",
    "P99 A ms",
    "P99 B ms",
    "P99 A/B",
    "longest A ms",
    "longest B ms",
    "conflicts/1000 A, B",
];

pub(crate) fn comparison_section(compared: &[Compared]) -> Section {
    let mut section = Section::new(
        "Medians of the rounds and of their ratios; for times and latencies below 1 is better for A",
        &COMPARISON_COLUMNS,
    );
    for case in compared {
        section.push(comparison_row(case));
    }
    section
}

fn comparison_row(case: &Compared) -> Vec<Cell> {
    type Figure = fn(&Sample) -> f64;
    let middle =
        |side: usize, figure: Figure| median(case.rounds.iter().map(|round| figure(&round[side])));
    let ratios =
        |figure: Figure| Ratios::of(case.rounds.iter().map(|[a, b]| (figure(a), figure(b))));
    let ratio = |figure: Figure| Cell::from(ratios(figure).map(|ratios| ratios.median));
    let headline = ratios(|sample| sample.headline);
    let conflicts =
        [0, 1].map(|side| crate::report::readable(middle(side, |sample| sample.conflicts)));
    vec![
        case.label.as_str().into(),
        case.unit.into(),
        middle(0, |sample| sample.headline).into(),
        middle(1, |sample| sample.headline).into(),
        headline.map(|ratios| ratios.median).into(),
        headline.map(|ratios| ratios.lowest).into(),
        headline.map(|ratios| ratios.highest).into(),
        ratio(|sample| sample.p50_ms),
        ratio(|sample| sample.p95_ms),
        middle(0, |sample| sample.p99_ms).into(),
        middle(1, |sample| sample.p99_ms).into(),
        ratio(|sample| sample.p99_ms),
        middle(0, |sample| sample.longest_ms).into(),
        middle(1, |sample| sample.longest_ms).into(),
        conflicts.join(", ").into(),
    ]
}

#[cfg(test)]
mod tests;
