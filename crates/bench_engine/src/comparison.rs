//! Two ways to do the same work, measured in turns.

use crate::BenchError;
use crate::counts::Counts;
use crate::drive::Driven;
use firn_bench::report::{Cell, Section};
use firn_bench::statistics::{Ratios, median};

/// One measurement of one side.
pub(crate) struct Sample {
    pub(crate) driven: Driven,
    pub(crate) counts: Counts,
}

impl Sample {
    /// A count per thousand operations.
    fn per_thousand(&self, count: impl Fn(&Counts) -> u64) -> f64 {
        count(&self.counts) as f64 * 1000.0 / self.driven.operations.max(1) as f64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Candidate,
    Baseline,
}

/// Samples of both sides, one of each in every round.
#[derive(Default)]
pub(crate) struct Comparison {
    candidate: Vec<Sample>,
    baseline: Vec<Sample>,
}

/// A figure in which the two sides are compared.
type Figure = fn(&Sample) -> f64;

/// A count that is shown per thousand operations.
pub(crate) type Count = fn(&Counts) -> u64;

impl Comparison {
    /// Measures `rounds` rounds; the sides take turns in going first. Blocks.
    pub(crate) fn run(
        rounds: usize,
        mut measure: impl FnMut(Side) -> Result<Sample, BenchError>,
    ) -> Result<Comparison, BenchError> {
        let mut comparison = Comparison::default();
        for round in 0..rounds {
            let mut order = [Side::Candidate, Side::Baseline];
            if !round.is_multiple_of(2) {
                order.reverse();
            }
            for side in order {
                let sample = measure(side)?;
                comparison.side_mut(side).push(sample);
            }
        }
        Ok(comparison)
    }

    fn side_mut(&mut self, side: Side) -> &mut Vec<Sample> {
        match side {
            Side::Candidate => &mut self.candidate,
            Side::Baseline => &mut self.baseline,
        }
    }

    fn ratios(&self, figure: Figure) -> Option<Ratios> {
        let rounds = self.candidate.iter().zip(&self.baseline);
        Ratios::of(rounds.map(|(candidate, baseline)| (figure(candidate), figure(baseline))))
    }

    /// Columns that [`Comparison::speed_cells`] fills.
    pub(crate) const SPEED_COLUMNS: [&'static str; 10] = [
        "firn ops/s",
        "baseline ops/s",
        "ratio (>1 better)",
        "from..to",
        "firn P95 us",
        "baseline P95 us",
        "P95 ratio (<1 better)",
        "P99 ratio (<1 better)",
        "firn CPU us",
        "CPU ratio (<1 better)",
    ];

    /// Throughput and tail of both sides, and their ratios.
    pub(crate) fn speed_cells(&self) -> Vec<Cell> {
        let throughput: Figure = |sample| sample.driven.per_second();
        let p95: Figure = |sample| sample.driven.percentile_us(95.0);
        let p99: Figure = |sample| sample.driven.percentile_us(99.0);
        let processor: Figure = |sample| sample.driven.processor_us();
        let ratios = self.ratios(throughput);
        let spread = ratios.map_or(Cell::Empty, |ratios| {
            format!("{:.2}..{:.2}", ratios.lowest, ratios.highest).into()
        });
        vec![
            median(self.candidate.iter().map(throughput)).into(),
            median(self.baseline.iter().map(throughput)).into(),
            ratios.map(|ratios| ratios.median).into(),
            spread,
            median(self.candidate.iter().map(p95)).into(),
            median(self.baseline.iter().map(p95)).into(),
            self.ratios(p95).map(|ratios| ratios.median).into(),
            self.ratios(p99).map(|ratios| ratios.median).into(),
            median(self.candidate.iter().map(processor)).into(),
            self.ratios(processor).map(|ratios| ratios.median).into(),
        ]
    }

    /// Adds a row for each side: counts per thousand operations.
    pub(crate) fn push_counts(&self, into: &mut Section, label: &[Cell], counts: &[Count]) {
        for (name, samples) in [("firn", &self.candidate), ("baseline", &self.baseline)] {
            let mut row = label.to_vec();
            row.push(name.into());
            let figures = counts
                .iter()
                .map(|count| median(samples.iter().map(|one| one.per_thousand(count))));
            row.extend(figures.map(Cell::from));
            into.push(row);
        }
    }
}
