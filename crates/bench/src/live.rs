//! A live view of a run in the terminal, once a second: throughput over time, and latencies by
//! transaction.

use std::io::{IsTerminal, Write, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::measure::Measured;
use crate::report::{Section, readable};
use crate::run::Watcher;
use crate::workload::Counted;

/// Returns lines about a server that runs in this process.
pub type Figures<'a> = Box<dyn FnMut() -> Vec<String> + 'a>;

/// The live view. Without a terminal, it prints a line every fifth second.
pub struct LiveView<'a> {
    title: String,
    duration: Duration,
    counted: Option<Counted>,
    figures: Figures<'a>,
    is_terminal: bool,
    /// Lines on the screen, which the next drawing replaces.
    drawn: usize,
    seconds: u64,
    stop: Arc<AtomicBool>,
}

impl<'a> LiveView<'a> {
    /// A view of a run of `duration`. It ends early when `stop` is set.
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        duration: Duration,
        counted: Option<Counted>,
        figures: Figures<'a>,
        stop: Arc<AtomicBool>,
    ) -> LiveView<'a> {
        let is_terminal = stdout().is_terminal();
        LiveView {
            title: title.into(),
            duration,
            counted,
            figures,
            is_terminal,
            drawn: 0,
            seconds: 0,
            stop,
        }
    }

    fn draw(&mut self, measured: &Measured) -> String {
        let gone = measured.elapsed.as_secs_f64();
        let mut text =
            format!("{}   {gone:.0} s of {:.0}\n", self.title, self.duration.as_secs_f64());
        text.push_str(&self.throughput(measured));
        text.push('\n');
        for line in (self.figures)() {
            text.push_str(&line);
            text.push('\n');
        }
        text.push_str(&table(measured));
        text
    }

    fn throughput(&self, measured: &Measured) -> String {
        let last = measured.windows.last().map_or(0.0, crate::measure::Window::per_second);
        let rate = match self.counted {
            Some(counted) => {
                let rate = measured.fruitful_per_second(counted.kind) * f64::from(counted.seconds);
                format!(", {} {} on average", readable(rate), counted.name)
            }
            None => String::new(),
        };
        let course: Vec<f64> =
            measured.windows.iter().map(crate::measure::Window::per_second).collect();
        format!("{} transactions/s{rate}   {}", readable(last), sparkline(&course))
    }
}

/// The last sixty values as blocks of up to eight eighths.
fn sparkline(course: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &course[course.len().saturating_sub(60)..];
    let top = shown.iter().copied().fold(0.0, f64::max);
    let block = |figure: &f64| match top > 0.0 {
        true => BLOCKS[((figure / top * 8.0) as usize).min(7)],
        false => BLOCKS[0],
    };
    shown.iter().map(block).collect()
}

fn table(measured: &Measured) -> String {
    let mut section = Section::new(
        "",
        &[
            "transaction",
            "count",
            "P50 ms",
            "P90 ms",
            "P95 ms",
            "P99 ms",
            "rolled back",
            "tried again",
        ],
    );
    for (name, kind) in measured.names.iter().zip(&measured.kinds) {
        let mut row = vec![name.as_str().into(), kind.transactions().into()];
        row.extend([50.0, 90.0, 95.0, 99.0].map(|percent| kind.percentile_ms(percent).into()));
        row.push(kind.fruitless.into());
        row.push(kind.conflicts.iter().sum::<u64>().into());
        section.push(row);
    }
    section.to_text().trim_start().to_owned()
}

impl Watcher for LiveView<'_> {
    fn second(&mut self, measured: &Measured, _is_warm: bool) {
        self.seconds += 1;
        // Ignored: standard output may be closed.
        if self.is_terminal {
            let text = self.draw(measured);
            let up = match self.drawn {
                0 => String::new(),
                lines => format!("\x1b[{lines}A\x1b[J"),
            };
            self.drawn = text.lines().count();
            let _ = write!(stdout(), "{up}{text}");
            let _ = stdout().flush();
        } else if self.seconds.is_multiple_of(5) {
            let latency = measured.total();
            let [p50, p95, p99] =
                [50.0, 95.0, 99.0].map(|percent| readable(latency.percentile_ms(percent)));
            let gone = measured.elapsed.as_secs_f64();
            let figures = (self.figures)().join("; ");
            let _ = writeln!(
                stdout(),
                "{gone:.0} s: {}; P50 {p50} P95 {p95} P99 {p99} ms; {figures}",
                self.throughput(measured)
            );
        }
    }

    fn wants_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Window;

    #[test]
    fn the_course_is_drawn_in_blocks() {
        assert_eq!(sparkline(&[0.0, 4.0, 8.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0]), "▁");
        assert_eq!(sparkline(&[1.0; 100]).chars().count(), 60);
    }

    #[test]
    fn a_drawing_says_where_it_stands() {
        let mut measured = Measured::new(vec!["new_order".into()], 1);
        measured.elapsed = Duration::from_secs(2);
        for _ in 0..40 {
            measured.kinds[0].record(Duration::from_millis(2));
        }
        measured.windows.push(Window {
            end: Duration::from_secs(2),
            length: Duration::from_secs(2),
            transactions: vec![40],
            conflicts: 0,
            latency_ms: [2.0; 3],
        });
        let counted = Some(Counted { kind: 0, name: "tpmC", seconds: 60 });
        let figures: Figures = Box::new(|| vec!["log 3 MiB/s".to_owned()]);
        let stop = Arc::new(AtomicBool::new(false));
        let mut view = LiveView::new("TPC-C", Duration::from_secs(30), counted, figures, stop);
        let text = view.draw(&measured);
        assert!(
            text.starts_with("TPC-C   2 s of 30\n20 transactions/s, 1 200 tpmC on average   █\n"),
            "{text}"
        );
        assert!(text.contains("log 3 MiB/s") && text.contains("| new_order   |"), "{text}");
        assert!(!view.wants_end());
    }
}
