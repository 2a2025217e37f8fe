//! The progress of a run as a line on standard error.

use std::io::{IsTerminal, Write, stderr};
use std::time::Duration;

use crate::measure::Measured;
use crate::report::readable;
use crate::run::Watcher;

/// Reports each second in place on a terminal, otherwise with a line every tenth second.
pub struct LineWatcher {
    what: String,
    /// Length of the run, if it is known.
    duration: Option<Duration>,
    is_terminal: bool,
    seconds: u64,
}

impl LineWatcher {
    /// A watcher for a run of `what`.
    #[must_use]
    pub fn new(what: impl Into<String>, duration: Option<Duration>) -> LineWatcher {
        LineWatcher { what: what.into(), duration, is_terminal: stderr().is_terminal(), seconds: 0 }
    }

    /// Clears the line for a result.
    pub fn clear(&self) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// The results so far, in one line.
fn line(what: &str, duration: Option<Duration>, measured: &Measured, is_warm: bool) -> String {
    let gone = measured.elapsed.as_secs_f64();
    let time = match duration.filter(|_| is_warm) {
        Some(duration) => {
            let percent = (gone * 100.0 / duration.as_secs_f64()).min(100.0);
            let left = (duration.as_secs_f64() - gone).max(0.0).round();
            format!("{percent:.0} %, {left} s left")
        }
        None if is_warm => format!("{gone:.0} s"),
        None => "warming up".to_owned(),
    };
    let Some(window) = measured.windows.last() else { return format!("{what}: {time}") };
    let [p50, p95, p99] = window.latency_ms.map(readable);
    format!(
        "{what}: {time}; {} transactions/s, P50 {p50} P95 {p95} P99 {p99} ms, {} conflicts",
        readable(window.per_second()),
        window.conflicts
    )
}

impl Watcher for LineWatcher {
    fn second(&mut self, measured: &Measured, is_warm: bool) {
        self.seconds += 1;
        let line = line(&self.what, self.duration, measured, is_warm);
        // Ignored: standard error may be closed.
        let _ = match self.is_terminal {
            true => write!(stderr(), "\r\x1b[K{line}"),
            false if self.seconds.is_multiple_of(10) => writeln!(stderr(), "{line}"),
            false => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Window;

    #[test]
    fn the_line_says_how_far_it_has_come() {
        let mut measured = Measured::new(vec!["a".into()], 1);
        measured.elapsed = Duration::from_secs(15);
        measured.windows.push(Window {
            end: Duration::from_secs(15),
            length: Duration::from_secs(1),
            transactions: vec![1234],
            conflicts: 2,
            latency_ms: [0.5, 1.0, 12.0],
        });
        let minute = Some(Duration::from_secs(60));
        assert_eq!(
            line("tpcc", minute, &measured, true),
            "tpcc: 25 %, 45 s left; 1 234 transactions/s, P50 0.50 P95 1 P99 12 ms, 2 conflicts"
        );
        assert!(line("tpcc", minute, &measured, false).starts_with("tpcc: warming up; "));
        assert!(line("q", None, &measured, true).starts_with("q: 15 s; "));
    }
}
