//! Commits that are handed over instead of waited for, so that a thread has several in flight.
//!
//! ```text
//!   enter (waits while the window is full) ──► transaction ──commit_then──► log's task: commits_ended
//! ```
//!
//! `in flight <= size`; a thread's window is empty before its run ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use firn_api::LogError;
use firn_base::clock::{Clock, SystemClock};
use firn_base::event::Event;
use firn_engine::EngineError;
use firn_engine::log::{CommitListener, Completion};
use firn_engine::transaction::Transaction;
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::BenchError;
use crate::drive::histogram;

/// The commits of a thread that are not durable yet.
pub(super) struct Window {
    size: usize,
    in_flight: AtomicUsize,
    /// Notified when commits have ended; its thread waits while the window is full, and at the end.
    room: Event,
    failed: OnceLock<LogError>,
    /// Locked by the thread that calls completions, and at the end.
    latency_ns: Mutex<Histogram<u64>>,
}

impl Window {
    pub(super) fn new(size: usize) -> Arc<Window> {
        Arc::new(Window {
            size,
            in_flight: AtomicUsize::new(0),
            room: Event::new(),
            failed: OnceLock::new(),
            latency_ns: Mutex::new(histogram()),
        })
    }

    /// Takes a place as soon as one is free; only for the window's own thread. Blocks.
    ///
    /// # Errors
    /// The error of an earlier commit.
    pub(super) fn enter(self: &Arc<Window>) -> Result<Entered, BenchError> {
        self.wait_until_at_most(self.size - 1);
        if let Some(error) = self.failed.get() {
            return Err(EngineError::Log(error.clone()).into());
        }
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        Ok(Entered { window: Some(Arc::clone(self)), began: SystemClock.monotonic() })
    }

    /// Waits until none is in flight, and returns the latencies of all. Blocks.
    pub(super) fn drain(&self) -> Histogram<u64> {
        self.wait_until_at_most(0);
        std::mem::replace(&mut self.latency_ns.lock(), histogram())
    }

    fn leave(&self, commits: usize) {
        self.in_flight.fetch_sub(commits, Ordering::SeqCst);
        self.room.notify_all();
    }

    fn wait_until_at_most(&self, in_flight: usize) {
        self.room.wait_until(None, || self.in_flight.load(Ordering::SeqCst) <= in_flight);
    }
}

impl CommitListener for Window {
    /// A token is the time at which the commit's transaction began, in nanoseconds.
    fn commits_ended(&self, tokens: &[u64], outcome: &Result<(), LogError>) {
        match outcome {
            Ok(()) => {
                let now_ns = SystemClock.monotonic().as_nanos() as u64;
                let mut latency_ns = self.latency_ns.lock();
                tokens.iter().for_each(|began_ns| latency_ns.saturating_record(now_ns - began_ns));
            }
            Err(error) => drop(self.failed.set(error.clone())),
        }
        self.leave(tokens.len());
    }
}

/// A place in the window. It is free again when this is dropped, or when the commit handed over
/// with it ends.
pub(super) struct Entered {
    window: Option<Arc<Window>>,
    began: Duration,
}

impl Entered {
    /// Hands over the commit of `trx`, and the place with it.
    ///
    /// # Errors
    /// The error for which it could not be handed over.
    pub(super) fn commit(mut self, trx: Transaction) -> Result<(), BenchError> {
        let window = self.window.clone().expect("it has its place until here");
        trx.commit_then(Completion::new(window, self.began.as_nanos() as u64))?;
        self.window = None;
        Ok(())
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(window) = &self.window {
            window.leave(1);
        }
    }
}
