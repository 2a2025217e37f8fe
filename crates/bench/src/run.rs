//! Runs a case: a thread for each connection, attempts until a transaction succeeds, and a
//! collector that reads the results every second.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};
use parking_lot::Mutex;

use crate::client::Target;
use crate::error::BenchError;
use crate::measure::{Measured, Recorder};
use crate::workload::{Case, Outcome, Worker};

/// Length and size of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions {
    /// Connections, each with a thread.
    pub connections: usize,
    /// Measured time, unless the case fixes the number of transactions.
    pub duration: Duration,
    /// Time before the measurement; its results are dropped.
    pub warm_up: Duration,
    /// Determines the input.
    pub seed: u64,
}

/// Receives the results of each second of a run.
pub trait Watcher {
    /// Called when a second is over. `measured` is empty during the warm-up.
    fn second(&mut self, measured: &Measured, is_warm: bool);

    /// Whether the run should end early.
    fn wants_end(&self) -> bool {
        false
    }
}

/// Ignores the results.
impl Watcher for () {
    fn second(&mut self, _: &Measured, _: bool) {}
}

/// After this many conflicts in a row a transaction fails, and the run with it.
const MOST_ATTEMPTS: u32 = 1000;
const LOOK_EVERY: Duration = Duration::from_millis(10);
const WINDOW: Duration = Duration::from_secs(1);

struct Shared {
    stop: AtomicBool,
    /// Workers that are still running.
    at_work: AtomicUsize,
    failure: Mutex<Option<BenchError>>,
    recorders: Vec<Mutex<Recorder>>,
}

/// Runs a case. Blocks until its time is over or its transactions are done.
///
/// # Errors
/// The error of the first worker that failed.
pub fn run(
    case: &dyn Case,
    target: &Target,
    options: &RunOptions,
    watcher: &mut dyn Watcher,
) -> Result<Measured, BenchError> {
    let names = case.kinds();
    let recorders = || Mutex::new(Recorder::new(names.len()));
    let shared = Shared {
        stop: AtomicBool::new(false),
        at_work: AtomicUsize::new(options.connections),
        failure: Mutex::new(None),
        recorders: (0..options.connections).map(|_| recorders()).collect(),
    };
    let workers: Result<Vec<_>, _> =
        (0..options.connections).map(|number| case.worker(target, number, options.seed)).collect();
    let start = Barrier::new(options.connections + 1);
    let measured = Measured::new(names, options.connections);
    let measured = std::thread::scope(|scope| {
        for (number, worker) in workers?.into_iter().enumerate() {
            let (shared, start) = (&shared, &start);
            let limit = case.operations();
            scope.spawn(move || {
                start.wait();
                work(worker, shared, &shared.recorders[number], limit);
            });
        }
        start.wait();
        let limit = case.operations().is_none().then_some(options.duration);
        Ok::<_, BenchError>(watch(&shared, measured, limit, options.warm_up, watcher))
    })?;
    match shared.failure.into_inner() {
        Some(error) => Err(error),
        None => Ok(measured),
    }
}

/// Collects the results of each second. Sets `stop` when the time is over.
fn watch(
    shared: &Shared,
    empty: Measured,
    limit: Option<Duration>,
    warm_up: Duration,
    watcher: &mut dyn Watcher,
) -> Measured {
    let mut warming = (!warm_up.is_zero()).then(|| empty.clone());
    let mut measured = empty.clone();
    let (mut began, mut processor_began) = (SystemClock.monotonic(), processor_time());
    let mut next = WINDOW;
    loop {
        firn_base::task::sleep(LOOK_EVERY);
        let gone = SystemClock.monotonic().saturating_sub(began);
        let is_done = shared.at_work.load(Ordering::Acquire) == 0;
        let end = if warming.is_some() { Some(warm_up) } else { limit };
        let is_ended = is_done || watcher.wants_end();
        let is_over = is_ended || end.is_some_and(|end| gone >= end);
        if gone < next && !is_over {
            continue;
        }
        next += WINDOW;
        let is_warm = warming.is_none();
        let into = warming.as_mut().unwrap_or(&mut measured);
        into.collect(shared.recorders.iter(), gone);
        watcher.second(into, is_warm);
        if is_over && warming.is_some() && !is_ended {
            (warming, next) = (None, WINDOW);
            (began, processor_began) = (SystemClock.monotonic(), processor_time());
        } else if is_over {
            break;
        }
    }
    measured.processor_time = processor_time().saturating_sub(processor_began);
    shared.stop.store(true, Ordering::Relaxed);
    measured
}

/// Time that the process has spent on a core.
pub(crate) fn processor_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn work(
    mut worker: Box<dyn Worker>,
    shared: &Shared,
    recorder: &Mutex<Recorder>,
    limit: Option<u64>,
) {
    let mut done = 0;
    while !shared.stop.load(Ordering::Relaxed) && limit.is_none_or(|limit| done < limit) {
        if let Err(error) = one(&mut *worker, &shared.stop, recorder) {
            shared.failure.lock().get_or_insert(error);
            shared.stop.store(true, Ordering::Relaxed);
        }
        done += 1;
    }
    shared.at_work.fetch_sub(1, Ordering::Release);
}

/// Runs one transaction, with as many attempts as it needs.
fn one(
    worker: &mut dyn Worker,
    stop: &AtomicBool,
    recorder: &Mutex<Recorder>,
) -> Result<(), BenchError> {
    let next = worker.next();
    pause(next.pause, stop);
    let began = SystemClock.monotonic();
    for _ in 0..MOST_ATTEMPTS {
        match worker.attempt() {
            Ok(outcome) => {
                let took = SystemClock.monotonic().saturating_sub(began);
                recorder.lock().record(next.kind, took, outcome == Outcome::Fruitless);
                return Ok(());
            }
            Err(error) => match error.conflict() {
                Some(conflict) => {
                    recorder.lock().conflict(next.kind, conflict);
                    worker.take_back()?;
                }
                None => return Err(error),
            },
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    Err(BenchError::Wrong(format!("{MOST_ATTEMPTS} conflicts in a row for one transaction")))
}

/// Waits, but not beyond the end of the run.
fn pause(pause: Duration, stop: &AtomicBool) {
    let mut left = pause;
    while !left.is_zero() && !stop.load(Ordering::Relaxed) {
        let slice = left.min(Duration::from_millis(50));
        firn_base::task::sleep(slice);
        left -= slice;
    }
}

#[cfg(test)]
mod tests;
