//! A line on standard error with the current step and the estimated time left.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};

use crate::report::readable;

/// Progress over a number of steps. Writes nothing if standard error is not a terminal.
pub struct Progress {
    is_shown: bool,
    started: Cell<Duration>,
    done: Cell<usize>,
    total: Cell<usize>,
}

impl Progress {
    /// Progress without planned steps.
    #[must_use]
    pub fn start() -> Progress {
        Progress {
            is_shown: stderr().is_terminal(),
            started: Cell::new(SystemClock.monotonic()),
            done: Cell::new(0),
            total: Cell::new(0),
        }
    }

    /// Begins a workload of `total` steps of about the same length.
    pub fn plan(&self, total: usize) {
        self.started.set(SystemClock.monotonic());
        self.done.set(0);
        self.total.set(total);
    }

    pub fn step(&self, what: &str) {
        let (done, total) = (self.done.get(), self.total.get());
        self.done.set(done + 1);
        if !self.is_shown {
            return;
        }
        let elapsed = SystemClock.monotonic().saturating_sub(self.started.get());
        let left = remaining(elapsed, done, total)
            .map_or(String::new(), |left| format!(", about {} s left", left.as_secs_f64().ceil()));
        // Ignored: standard error may be closed.
        let _ = write!(stderr(), "\r\x1b[K{what} ({} of {total}{left})", done + 1);
    }

    /// Clears the line for a result.
    pub fn clear(&self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// Progress of a load on standard error: once a second on a terminal, every tenth second elsewhere.
pub struct Loading {
    what: String,
    total: u64,
    done: AtomicU64,
    started: Duration,
    is_terminal: bool,
}

impl Loading {
    /// Starts a load of `total` rows.
    #[must_use]
    pub fn start(what: impl Into<String>, total: u64) -> Loading {
        let (done, started) = (AtomicU64::new(0), SystemClock.monotonic());
        Loading { what: what.into(), total, done, started, is_terminal: stderr().is_terminal() }
    }

    /// Adds `rows` loaded rows.
    pub fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
    }

    /// Reports progress until `is_over` returns true. Blocks.
    pub fn report_until(&self, is_over: &dyn Fn() -> bool) {
        let (mut ticks, every) = (0u64, if self.is_terminal { 1 } else { 10 });
        while !is_over() {
            firn_base::task::sleep(TICK);
            ticks += 1;
            if ticks.is_multiple_of(TICKS_PER_SECOND * every) {
                let _ = write!(stderr(), "{}", self.framed(&self.line(self.elapsed())));
            }
        }
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }

    fn framed(&self, line: &str) -> String {
        if self.is_terminal { format!("\r\x1b[K{line}") } else { format!("{line}\n") }
    }

    pub fn elapsed(&self) -> Duration {
        SystemClock.monotonic().saturating_sub(self.started)
    }

    pub fn rows(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    fn line(&self, elapsed: Duration) -> String {
        let (done, total) = (self.rows(), self.total.max(1));
        let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
        let left = match remaining(elapsed, done as usize, total as usize) {
            Some(left) => format!(", about {} s left", left.as_secs_f64().ceil()),
            None => String::new(),
        };
        let percent = done as f64 * 100.0 / total as f64;
        format!(
            "{}: {} of {} rows ({percent:.0} %), {} rows/s{left}",
            self.what,
            readable(done as f64),
            readable(total as f64),
            readable(rate),
        )
    }
}

const TICKS_PER_SECOND: u64 = 20;
const TICK: Duration = Duration::from_millis(1000 / TICKS_PER_SECOND);

/// Estimated time left, at the pace so far.
fn remaining(elapsed: Duration, done: usize, total: usize) -> Option<Duration> {
    let left = total.checked_sub(done)?;
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_tells_rate_percent_and_what_is_left() {
        let loading = Loading::start("stock", 2000);
        loading.add(500);
        let line = loading.line(Duration::from_secs(2));
        assert_eq!(line, "stock: 500 of 2 000 rows (25 %), 250 rows/s, about 6 s left");
    }

    #[test]
    fn what_is_left_is_judged_by_what_is_done() {
        assert_eq!(remaining(Duration::from_secs(9), 0, 4), None);
        assert_eq!(remaining(Duration::from_secs(9), 3, 4), Some(Duration::from_secs(3)));
        assert_eq!(remaining(Duration::from_secs(9), 5, 4), None);
    }
}
