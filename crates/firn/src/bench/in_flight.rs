//! Commits that are handed over instead of waited for, so that a thread has several in flight.
//!
//! ```text
//!   enter (waits while the window is full) ──► transaction ──commit_then──► log's task: leave
//! ```
//!
//! `entered - left <= size`; a thread's window is empty before its run ends.

use std::sync::Arc;
use std::time::Duration;

use firn_api::LogError;
use firn_base::clock::{Clock, SystemClock};
use firn_engine::EngineError;
use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};

use super::BenchError;
use super::drive::histogram;

/// The commits of a thread that are not durable yet.
pub(super) struct Window {
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    in_flight: usize,
    failed: Option<LogError>,
    latency_ns: Histogram<u64>,
}

impl Window {
    pub(super) fn new(size: usize) -> Arc<Window> {
        let state = State { in_flight: 0, failed: None, latency_ns: histogram() };
        Arc::new(Window { size, state: Mutex::new(state), changed: Condvar::new() })
    }

    /// Takes a place, as soon as there is one. Blocks.
    ///
    /// # Errors
    /// What an earlier commit ended with.
    pub(super) fn enter(self: &Arc<Window>) -> Result<Entered, BenchError> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.in_flight >= self.size);
        if let Some(error) = state.failed.clone() {
            return Err(EngineError::Log(error).into());
        }
        state.in_flight += 1;
        Ok(Entered { window: Arc::clone(self), began: SystemClock.monotonic(), durable: None })
    }

    /// Waits until none is in flight, and gives the latencies of all that were. Blocks.
    pub(super) fn drain(&self) -> Histogram<u64> {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.in_flight > 0);
        std::mem::replace(&mut state.latency_ns, histogram())
    }
}

/// A place in the window. It is free again when this is dropped.
pub(super) struct Entered {
    window: Arc<Window>,
    began: Duration,
    durable: Option<Result<(), LogError>>,
}

impl Entered {
    /// Says how the commit has ended.
    pub(super) fn leave(mut self, outcome: Result<(), LogError>) {
        self.durable = Some(outcome);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.window.state.lock();
        match self.durable.take() {
            Some(Ok(())) => {
                let took = SystemClock.monotonic().saturating_sub(self.began);
                state.latency_ns.saturating_record(took.as_nanos() as u64);
            }
            Some(Err(error)) => state.failed = Some(error),
            // The transaction has told its thread why it was not committed.
            None => {}
        }
        state.in_flight -= 1;
        self.window.changed.notify_one();
    }
}
