//! Results of a run: counts, latencies and their course over time.
//!
//! Each worker records into its own histograms, under a mutex that only the collector shares. The
//! collector takes them every second, so the figures of each second and of the whole run come from
//! the same samples.
//!
//! ```text
//!   worker ──► Recorder ─┐
//!   worker ──► Recorder ─┼─ each second ──► Measured { windows, kinds }
//!   worker ──► Recorder ─┘
//! ```

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::Conflict;
use crate::statistics::jitter;

/// Precision of latencies in digits: one part in a hundred.
const DIGITS: u8 = 2;
/// A day. Longer times count as one day.
const LONGEST_NS: u64 = 86_400_000_000_000;

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("two digits are a sound precision")
}

/// Results of one kind of transactions.
#[derive(Debug, Clone)]
pub struct Kind {
    /// Latencies of completed transactions, with all their attempts, in nanoseconds.
    pub latency_ns: Histogram<u64>,
    /// Transactions that were rolled back or found nothing, as the workload intends for some.
    pub fruitless: u64,
    /// Attempts that the server rolled back, by [`Conflict::index`].
    pub conflicts: [u64; 3],
}

impl Kind {
    pub(crate) fn new() -> Kind {
        Kind { latency_ns: histogram(), fruitless: 0, conflicts: [0; 3] }
    }

    pub(crate) fn record(&mut self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(LONGEST_NS).clamp(1, LONGEST_NS);
        // Grows as far as it must; the longest time fits.
        self.latency_ns.record(took).expect("a histogram grows");
    }

    /// Completed transactions, including fruitless ones.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.latency_ns.len()
    }

    /// The latency, in milliseconds, below which `percent` of the transactions are.
    #[must_use]
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        percentile_ms(&self.latency_ns, percent)
    }

    fn add(&mut self, other: &Kind) {
        self.latency_ns += &other.latency_ns;
        self.fruitless += other.fruitless;
        for (sum, more) in self.conflicts.iter_mut().zip(other.conflicts) {
            *sum += more;
        }
    }

    fn clear(&mut self) {
        self.latency_ns.reset();
        (self.fruitless, self.conflicts) = (0, [0; 3]);
    }
}

/// A percentile in milliseconds of a histogram in nanoseconds; 0 if it is empty.
#[must_use]
pub fn percentile_ms(latency_ns: &Histogram<u64>, percent: f64) -> f64 {
    latency_ns.value_at_percentile(percent) as f64 / 1e6
}

/// The records of one worker.
pub(crate) struct Recorder {
    kinds: Vec<Kind>,
}

impl Recorder {
    pub(crate) fn new(kinds: usize) -> Recorder {
        Recorder { kinds: (0..kinds).map(|_| Kind::new()).collect() }
    }

    pub(crate) fn record(&mut self, kind: usize, took: Duration, is_fruitless: bool) {
        let kind = &mut self.kinds[kind];
        kind.record(took);
        kind.fruitless += u64::from(is_fruitless);
    }

    pub(crate) fn conflict(&mut self, kind: usize, conflict: Conflict) {
        self.kinds[kind].conflicts[conflict.index()] += 1;
    }
}

/// About one second of a run.
#[derive(Debug, Clone)]
pub struct Window {
    /// Its end, counted from the start of the measurement.
    pub end: Duration,
    pub length: Duration,
    /// Transactions that were completed in it, by kind.
    pub transactions: Vec<u64>,
    /// Attempts that the server rolled back.
    pub conflicts: u64,
    /// P50, P95 and P99 of all kinds, in milliseconds.
    pub latency_ms: [f64; 3],
}

impl Window {
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.transactions.iter().sum::<u64>() as f64 / self.length.as_secs_f64().max(1e-9)
    }
}

#[derive(Debug, Clone)]
pub struct Measured {
    /// Names of the kinds.
    pub names: Vec<String>,
    /// One for each name.
    pub kinds: Vec<Kind>,
    /// The course, window by window, without the warm-up.
    pub windows: Vec<Window>,
    pub elapsed: Duration,
    /// Processor time of this process during the run: the client's, if the server is another
    /// process.
    pub processor_time: Duration,
    pub connections: usize,
}

impl Measured {
    pub(crate) fn new(names: Vec<String>, connections: usize) -> Measured {
        let kinds = names.iter().map(|_| Kind::new()).collect();
        let (elapsed, processor_time) = (Duration::ZERO, Duration::ZERO);
        Measured { names, kinds, windows: Vec::new(), elapsed, processor_time, connections }
    }

    /// Adds a window that ends now, with the records of the workers since the last one.
    pub(crate) fn collect<'a>(
        &mut self,
        recorders: impl Iterator<Item = &'a parking_lot::Mutex<Recorder>>,
        end: Duration,
    ) {
        let mut all = histogram();
        let mut transactions = vec![0; self.kinds.len()];
        let mut conflicts = 0;
        for recorder in recorders {
            let mut recorder = recorder.lock();
            for (index, kind) in recorder.kinds.iter_mut().enumerate() {
                if kind.latency_ns.is_empty() && kind.conflicts == [0; 3] {
                    continue;
                }
                self.kinds[index].add(kind);
                transactions[index] += kind.transactions();
                conflicts += kind.conflicts.iter().sum::<u64>();
                all += &kind.latency_ns;
                kind.clear();
            }
        }
        let length = end.saturating_sub(self.elapsed);
        self.elapsed = end;
        let latency_ms = [50.0, 95.0, 99.0].map(|percent| percentile_ms(&all, percent));
        self.windows.push(Window { end, length, transactions, conflicts, latency_ms });
    }

    /// The sum of all kinds.
    #[must_use]
    pub fn total(&self) -> Kind {
        let mut total = Kind::new();
        for kind in &self.kinds {
            total.add(kind);
        }
        total
    }

    /// Transactions a second, all kinds together.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        self.total().transactions() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Transactions of one kind a second, without fruitless ones.
    #[must_use]
    pub fn fruitful_per_second(&self, kind: usize) -> f64 {
        let kind = &self.kinds[kind];
        (kind.transactions() - kind.fruitless) as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Throughput in windows of about `length`, without an incomplete one at the end.
    #[must_use]
    pub fn throughput(&self, length: Duration) -> Vec<f64> {
        let (mut figures, mut count, mut time) = (Vec::new(), 0u64, Duration::ZERO);
        for window in &self.windows {
            count += window.transactions.iter().sum::<u64>();
            time += window.length;
            // A window ends a little before or after its second.
            if time + window.length / 2 >= length {
                figures.push(count as f64 / time.as_secs_f64().max(1e-9));
                (count, time) = (0, Duration::ZERO);
            }
        }
        figures
    }

    /// Standard deviation over mean of windows of ten seconds; `None` if the run is shorter than
    /// twenty seconds.
    #[must_use]
    pub fn jitter(&self) -> Option<f64> {
        jitter(&self.throughput(Duration::from_secs(10)))
    }

    /// The longest time that a transaction took, in milliseconds.
    #[must_use]
    pub fn longest_ms(&self) -> f64 {
        self.total().latency_ns.max() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests;
