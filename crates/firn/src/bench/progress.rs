//! One line on standard error that says what is going on and how long it will take.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use firn_base::clock::{Clock, SystemClock};

/// See the module's page. Nothing is written if nobody looks at a terminal.
pub(crate) struct Progress {
    is_shown: bool,
    started: Cell<Duration>,
    done: Cell<usize>,
    total: Cell<usize>,
}

impl Progress {
    /// Nothing is planned yet.
    pub(crate) fn start() -> Progress {
        Progress {
            is_shown: stderr().is_terminal(),
            started: Cell::new(SystemClock.monotonic()),
            done: Cell::new(0),
            total: Cell::new(0),
        }
    }

    /// A workload of `total` steps of about the same length begins.
    pub(crate) fn plan(&self, total: usize) {
        self.started.set(SystemClock.monotonic());
        self.done.set(0);
        self.total.set(total);
    }

    /// The next step begins.
    pub(crate) fn step(&self, what: &str) {
        let (done, total) = (self.done.get(), self.total.get());
        self.done.set(done + 1);
        if !self.is_shown {
            return;
        }
        let elapsed = SystemClock.monotonic().saturating_sub(self.started.get());
        let left = remaining(elapsed, done, total)
            .map_or(String::new(), |left| format!(", about {} s left", left.as_secs_f64().ceil()));
        // Whoever closed standard error does not want to know.
        let _ = write!(stderr(), "\r\x1b[K{what} ({} of {total}{left})", done + 1);
    }

    /// Makes room for a result.
    pub(crate) fn clear(&self) {
        if self.is_shown {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// What is left, if the rest goes on as what is done did.
fn remaining(elapsed: Duration, done: usize, total: usize) -> Option<Duration> {
    let left = total.checked_sub(done)?;
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_judged_by_what_is_done() {
        assert_eq!(remaining(Duration::from_secs(9), 0, 4), None);
        assert_eq!(remaining(Duration::from_secs(9), 3, 4), Some(Duration::from_secs(3)));
        assert_eq!(remaining(Duration::from_secs(9), 5, 4), None);
    }
}
