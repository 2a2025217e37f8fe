//! Measurements as a table for people and as JSON for programs.

use std::fmt::Write as _;

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value, json};

/// One figure or one word.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Text(String),
    /// A figure, shown with about three digits.
    Number(f64),
    Empty,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        Cell::Number(number)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Cell {
        Cell::Number(number as f64)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number as f64)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Cell {
        number.map_or(Cell::Empty, Cell::Number)
    }
}

impl Cell {
    /// The text in a table.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => readable(*number),
            Cell::Empty => "-".to_owned(),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
            Cell::Empty => Value::Null,
        }
    }
}

/// A number with about three digits, and thousands in groups.
#[must_use]
pub fn readable(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size < 10.0 && number.fract() != 0.0 => format!("{number:.2}"),
        size if size < 100.0 && number.fract() != 0.0 => format!("{number:.1}"),
        _ => thousands(number.round() as i64),
    }
}

fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A table of one workload.
#[derive(Debug, Clone)]
pub struct Section {
    heading: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Section {
    #[must_use]
    pub fn new(heading: impl Into<String>, columns: &[&str]) -> Section {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        Section { heading: heading.into(), columns, rows: Vec::new() }
    }

    #[must_use]
    pub fn heading(&self) -> &str {
        &self.heading
    }

    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows; each has a cell for every column.
    #[must_use]
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from the number of columns.
    pub fn push(&mut self, row: Vec<Cell>) {
        assert_eq!(row.len(), self.columns.len(), "a row fills the table's columns");
        self.rows.push(row);
    }

    /// The heading and the table, for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut table = Table::new();
        table.load_style(ASCII_MARKDOWN).set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(Cell::to_text));
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            let is_text = self.rows.iter().any(|row| matches!(row[index], Cell::Text(_)));
            if !is_text {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{}\n{table}\n", self.heading)
    }

    fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Map<String, Value> {
            let cells = self.columns.iter().zip(cells);
            cells.map(|(column, cell)| (column.clone(), cell.to_json())).collect()
        };
        json!({ "heading": self.heading, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// The results of one workload.
#[derive(Debug, Clone)]
pub struct Report {
    name: String,
    notes: Vec<String>,
    sections: Vec<Section>,
}

impl Report {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Report {
        Report { name: name.into(), notes: Vec::new(), sections: Vec::new() }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The conditions of the measurement.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Adds a note on the conditions of the measurement.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The report for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("== {} ==\n", self.name);
        for note in &self.notes {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{note}");
        }
        for section in &self.sections {
            let _ = write!(text, "\n{}", section.to_text());
        }
        text
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let sections: Vec<_> = self.sections.iter().map(Section::to_json).collect();
        json!({ "workload": self.name, "notes": self.notes, "tables": sections })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn numbers_are_shown_with_about_three_digits() {
        let shown = [0.0, 1.0, 0.123, 12.345, 123.45, 1234.5, 9_876_543.2, -4321.0].map(readable);
        assert_eq!(shown, ["0", "1", "0.12", "12.3", "123", "1 235", "9 876 543", "-4 321"]);
    }

    #[test]
    fn a_report_reads_as_a_table_and_as_json() {
        let mut report = Report::new("insert");
        report.note("on one core");
        let mut section = Section::new("throughput", &["keys", "rows/s", "ratio"]);
        section.push(vec!["random".into(), 125_000.0.into(), Cell::Empty]);
        report.add(section);
        expect![[r#"
            == insert ==
            on one core

            throughput
            | keys   |  rows/s | ratio |
            |--------|---------|-------|
            | random | 125 000 |     - |
        "#]]
        .assert_eq(&report.to_text());
        expect![[
            r#"{"notes":["on one core"],"tables":[{"heading":"throughput","rows":[{"keys":"random","ratio":null,"rows/s":125000.0}]}],"workload":"insert"}"#
        ]]
        .assert_eq(&report.to_json().to_string());
    }
}
