//! Output of runs: tables in the terminal, JSON, and a self-contained HTML page.

#![allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::measure::Measured;
use crate::plot;
use crate::report::{Cell, Report, Section};

/// The result of a run or comparison.
pub struct Page {
    pub report: Report,
    /// The course of the run; `None` for a comparison.
    pub measured: Option<Measured>,
}

/// Files to write besides the terminal's output.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Path of the JSON file.
    pub json: Option<PathBuf>,
    /// Path of the HTML file.
    pub html: Option<PathBuf>,
}

impl Files {
    /// Writes the requested files.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, pages: &[Page]) -> Result<(), BenchError> {
        if let Some(path) = &self.json {
            std::fs::write(path, format!("{:#}\n", to_json(pages)))?;
        }
        if let Some(path) = &self.html {
            std::fs::write(path, to_html(pages)?)?;
        }
        Ok(())
    }
}

/// All pages, for programs.
#[must_use]
pub fn to_json(pages: &[Page]) -> Value {
    let report = |page: &Page| {
        let mut report = page.report.to_json();
        if let (Some(measured), Some(report)) = (&page.measured, report.as_object_mut()) {
            report.insert("course".to_owned(), course(measured));
        }
        report
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "reports": pages.iter().map(report).collect::<Vec<_>>(),
    })
}

fn course(measured: &Measured) -> Value {
    let windows = measured.windows.iter().map(|window| {
        let [p50, p95, p99] = window.latency_ms;
        json!({
            "end s": window.end.as_secs_f64(),
            "transactions/s": window.per_second(),
            "transactions": window.transactions,
            "conflicts": window.conflicts,
            "P50 ms": p50,
            "P95 ms": p95,
            "P99 ms": p99,
        })
    });
    windows.collect()
}

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:.5em 0 1.5em;font-variant-numeric:tabular-nums}\
td,th{border-bottom:1px solid #ddd;padding:.25em .7em;text-align:right}\
td.t,th.t{text-align:left}h2{margin-top:2em}svg{max-width:100%;height:auto;display:block;margin:.5em 0}";

/// All pages as one HTML file without external resources.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn to_html(pages: &[Page]) -> Result<String, BenchError> {
    let mut html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>firn bench</title><style>{STYLE}</style>\
         <h1>firn bench {}</h1>\n",
        env!("CARGO_PKG_VERSION")
    );
    for page in pages {
        // Writing into a string does not fail.
        let _ = writeln!(html, "<h2>{}</h2>", escaped(page.report.name()));
        for note in page.report.notes() {
            let _ = writeln!(html, "<p>{}</p>", escaped(note));
        }
        for section in page.report.sections() {
            table(&mut html, section);
        }
        if let Some(measured) = &page.measured {
            for svg in plot::of_run(measured)? {
                let _ = writeln!(html, "{svg}");
            }
        }
    }
    html.push_str("</html>\n");
    Ok(html)
}

fn table(html: &mut String, section: &Section) {
    let rows = section.rows();
    let is_text = |column: usize| rows.iter().any(|row| matches!(row[column], Cell::Text(_)));
    let class = |column: usize| if is_text(column) { " class=t" } else { "" };
    let _ = writeln!(html, "<h3>{}</h3><table><tr>", escaped(section.heading()));
    for (index, column) in section.columns().iter().enumerate() {
        let _ = write!(html, "<th{}>{}", class(index), escaped(column));
    }
    for row in rows {
        html.push_str("\n<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = write!(html, "<td{}>{}", class(index), escaped(&cell.to_text()));
        }
    }
    html.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
