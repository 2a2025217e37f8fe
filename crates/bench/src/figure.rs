//! A result file: the measured numbers behind one plot of the documentation, with their origin.
//!
//! ```json
//! {
//!   "title": "sysbench, 8 connections",
//!   "unit": "transactions/s",
//!   "relative_to": "MariaDB",
//!   "machine": "2 cores",
//!   "commit": "41d498c",
//!   "command": "sysbench oltp_… --threads=8",
//!   "systems": ["Firn", "MariaDB"],
//!   "rows": [{ "name": "read only", "values": [3379, 1344] }]
//! }
//! ```
//!
//! `relative_to` is optional. With it, each row is drawn in multiples of that system's value, so
//! that rows of different magnitude fit one plot; the numbers beside the bars stay those of the
//! file.

#![allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]

use std::path::Path;

use serde_json::Value;

use crate::error::BenchError;

/// The content of a result file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// Index of the system that bars are drawn relative to.
    pub(crate) reference: Option<usize>,
    /// Machine, commit and command, one line each.
    pub(crate) origin: Vec<String>,
    pub(crate) systems: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// A group of bars: one measurement of every system.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// Above 0, in the order of [`Figure::systems`].
    pub(crate) values: Vec<f64>,
}

impl Figure {
    /// Reads a result file.
    ///
    /// # Errors
    /// [`BenchError::Figure`] with the file's name and the first field that is missing or wrong.
    pub(crate) fn read(path: &Path) -> Result<Figure, BenchError> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
        text.and_then(|text| Figure::parse(&text))
            .map_err(|reason| BenchError::Figure { file: path.to_owned(), reason })
    }

    fn parse(text: &str) -> Result<Figure, String> {
        let file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let systems = texts(&file, "systems")?;
        let reference = match file.get("relative_to") {
            None => None,
            Some(_) => {
                let name = self::text(&file, "relative_to")?;
                let found = systems.iter().position(|system| *system == name);
                Some(found.ok_or_else(|| format!("relative_to: {name} is not in systems"))?)
            }
        };
        let rows = list(&file, "rows")?.iter().map(|row| Row::parse(row, systems.len()));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        if rows.is_empty() {
            return Err("rows is empty".to_owned());
        }
        Ok(Figure {
            title: self::text(&file, "title")?,
            unit: self::text(&file, "unit")?,
            reference,
            origin: vec![
                format!(
                    "{}; commit {}",
                    self::text(&file, "machine")?,
                    self::text(&file, "commit")?
                ),
                self::text(&file, "command")?,
            ],
            systems,
            rows,
        })
    }

    /// The length of a bar: the value, or its ratio to the reference system's value.
    pub(crate) fn length(&self, row: &Row, system: usize) -> f64 {
        row.values[system] / self.reference.map_or(1.0, |reference| row.values[reference])
    }
}

impl Row {
    fn parse(row: &Value, systems: usize) -> Result<Row, String> {
        let name = text(row, "name")?;
        let values = list(row, "values")?.iter().map(Value::as_f64).collect::<Option<Vec<_>>>();
        match values {
            Some(values) if values.len() == systems && values.iter().all(|value| *value > 0.0) => {
                Ok(Row { name, values })
            }
            _ => Err(format!("{name}: values needs {systems} numbers above 0")),
        }
    }
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    let list = value.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).ok_or_else(|| format!("{name} is missing or not a list"))
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    let text = value.get(name).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| format!("{name} is missing or not a text"))
}

fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    let texts = list(value, name)?.iter().map(|text| text.as_str().map(str::to_owned));
    texts
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| format!("{name} holds something other than texts"))
}

#[cfg(test)]
mod tests;
