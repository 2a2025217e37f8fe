//! What the grammar takes, what it refuses, and what it makes of it.

use super::{Mode, parse};

/// The statements of a file: one a line, the empty ones and those of `--` left out.
fn statements(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("--"))
}

#[track_caller]
fn takes_all(file: &'static str) {
    let refused: Vec<_> = statements(file)
        .filter_map(|text| parse(text, Mode::default()).err().map(|error| (text, error.message)))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn reads_and_changes_of_rows_are_taken() {
    takes_all(include_str!("dml.sql"));
}
