//! Runs an operation on many threads for a time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use hdrhistogram::Histogram;

use crate::BenchError;

/// The combined result of the threads.
pub(crate) struct Driven {
    pub(crate) operations: u64,
    /// From the start of the first thread to the end of the last.
    pub(crate) elapsed: Duration,
    /// Time that the whole process spent on a core meanwhile, including background tasks.
    pub(crate) processor_time: Duration,
    latency_ns: Histogram<u64>,
}

impl Driven {
    /// Operations per second of all threads together.
    pub(crate) fn per_second(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }

    /// Time on a core per operation, in microseconds. It shows the cost of an operation even when
    /// other processes use the cores too.
    pub(crate) fn processor_us(&self) -> f64 {
        self.processor_time.as_secs_f64() * 1e6 / self.operations.max(1) as f64
    }

    /// Replaces the threads' latencies by latencies that were measured elsewhere.
    pub(crate) fn set_latencies(&mut self, latencies_ns: &[Histogram<u64>]) {
        self.latency_ns = histogram();
        latencies_ns.iter().for_each(|part| self.latency_ns += part);
    }

    /// The latency, in microseconds, below which `percent` of the operations are.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        self.latency_ns.value_at_percentile(percent) as f64 / 1000.0
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Drive {
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    /// One operation in this many is timed.
    pub(crate) timed_one_in: u32,
}

/// The precision of latencies in digits: one part in a hundred.
const DIGITS: u8 = 2;
const LONGEST_NS: u64 = 600_000_000_000;

/// The result of one thread.
struct Own {
    operations: u64,
    latency_ns: Histogram<u64>,
}

/// An empty histogram of latencies.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are sound")
}

impl Drive {
    /// Makes a worker for each thread, then calls the workers repeatedly until the time is over or
    /// one fails. Blocks.
    ///
    /// # Errors
    /// The error of the first worker that failed.
    pub(crate) fn run<W>(&self, mut worker: impl FnMut(usize) -> W) -> Result<Driven, BenchError>
    where
        W: FnMut() -> Result<(), BenchError> + Send,
    {
        let (stop, start) = (AtomicBool::new(false), Barrier::new(self.threads + 1));
        let every = self.timed_one_in;
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|number| {
                    let (stop, start, worker) = (&stop, &start, worker(number));
                    scope.spawn(move || {
                        start.wait();
                        work(worker, stop, every)
                    })
                })
                .collect();
            start.wait();
            let processor_began = processor_time();
            let began = SystemClock.monotonic();
            wait_for_end(began, self.duration, &stop);
            let outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            let elapsed = SystemClock.monotonic().saturating_sub(began);
            let processor_time = processor_time().saturating_sub(processor_began);
            let mut driven =
                Driven { operations: 0, elapsed, processor_time, latency_ns: histogram() };
            for outcome in outcomes {
                let own = outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                driven.operations += own.operations;
                driven.latency_ns += own.latency_ns;
            }
            Ok(driven)
        })
    }
}

/// Time that the process has spent on a core.
fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Waits until the time is over or a worker has failed.
fn wait_for_end(began: Duration, duration: Duration, stop: &AtomicBool) {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    while !stop.load(Ordering::Relaxed) {
        let gone = SystemClock.monotonic().saturating_sub(began);
        let Some(left) = duration.checked_sub(gone).filter(|left| !left.is_zero()) else { break };
        firn_base::task::sleep(left.min(LOOK_EVERY));
    }
    stop.store(true, Ordering::Relaxed);
}

fn work(
    mut worker: impl FnMut() -> Result<(), BenchError>,
    stop: &AtomicBool,
    timed_one_in: u32,
) -> Result<Own, BenchError> {
    let mut own = Own { operations: 0, latency_ns: histogram() };
    let mut until_timed = 1;
    while !stop.load(Ordering::Relaxed) {
        until_timed -= 1;
        let began = (until_timed == 0).then(|| SystemClock.monotonic());
        let outcome = worker();
        if let Err(error) = outcome {
            stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
        own.operations += 1;
        if let Some(began) = began {
            until_timed = timed_one_in;
            let took = SystemClock.monotonic().saturating_sub(began);
            own.latency_ns.saturating_record(took.as_nanos() as u64);
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_works_until_the_time_is_over() {
        let drive = Drive { threads: 3, duration: Duration::from_millis(20), timed_one_in: 1 };
        let sleepy = || {
            firn_base::task::sleep(Duration::from_millis(1));
            Ok(())
        };
        let driven = drive.run(|_| sleepy).unwrap();
        assert!(driven.operations >= 3 && driven.operations <= 60, "{}", driven.operations);
        assert!(driven.elapsed >= Duration::from_millis(20));
        assert!(driven.percentile_us(50.0) >= 990.0);
        assert!(driven.percentile_us(99.0) >= driven.percentile_us(50.0));
    }

    #[test]
    fn a_failure_ends_the_run() {
        let drive = Drive { threads: 2, duration: Duration::from_secs(600), timed_one_in: 1 };
        let outcome = drive.run(|number| {
            move || if number == 1 { Err(BenchError::WrongRow { row: 7 }) } else { Ok(()) }
        });
        assert!(matches!(outcome, Err(BenchError::WrongRow { row: 7 })));
    }
}
