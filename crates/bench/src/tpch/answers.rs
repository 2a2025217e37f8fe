//! Compares a server's answers with those of another engine.
//!
//! Numbers are equal if they differ by less than a hundredth or by less than a millionth part
//! (engines divide and average with different precision), texts if they are equal except for
//! trailing blanks. Rows are compared in order and, if that fails, as sets, because a query's order
//! may leave ties.

#![allow(clippy::disallowed_methods, reason = "a client beside the node, under no simulator")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::client::{Session, text};
use crate::error::BenchError;
use crate::workload::Condition;

type Answer = Vec<Vec<String>>;

/// The source of the right answers.
pub(super) enum Expected {
    /// Answers by the query's number.
    File(BTreeMap<usize, Answer>),
    /// A server over the same rows.
    Server(Session),
}

/// Reads `{"1": [["A", "F", "37734107.00", …], …], …}`.
pub(super) fn read(path: &Path) -> Result<BTreeMap<usize, Answer>, BenchError> {
    let not_answers =
        |reason: String| BenchError::Usage(format!("{} has no answers: {reason}", path.display()));
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)
        .map_err(|error| not_answers(error.to_string()))?;
    let queries = json.as_object().ok_or_else(|| not_answers("it is no object".to_owned()))?;
    let mut answers = BTreeMap::new();
    for (number, rows) in queries {
        let parsed = number.parse().ok().zip(rows_of(rows));
        let (number, rows) = parsed.ok_or_else(|| not_answers(format!("query {number}")))?;
        answers.insert(number, rows);
    }
    Ok(answers)
}

fn rows_of(rows: &serde_json::Value) -> Option<Answer> {
    let cell = |cell: &serde_json::Value| match cell {
        serde_json::Value::Null => "NULL".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let row = |row: &serde_json::Value| Some(row.as_array()?.iter().map(cell).collect());
    rows.as_array()?.iter().map(row).collect()
}

fn ask(session: &mut Session, sql: &str) -> Result<Answer, BenchError> {
    let rows = session.ask(sql)?;
    Ok(rows.iter().map(|row| row.iter().map(text).collect()).collect())
}

pub(super) fn check(
    session: &mut Session,
    mut expected: Expected,
    queries: &[(usize, String)],
) -> Result<Vec<Condition>, BenchError> {
    let mut conditions = Vec::new();
    for (number, sql) in queries {
        let right = match &mut expected {
            Expected::File(answers) => match answers.get(number) {
                Some(answer) => answer.clone(),
                None => {
                    return Err(BenchError::Usage(format!(
                        "the file has no answer to query {number}"
                    )));
                }
            },
            Expected::Server(other) => ask(other, sql)?,
        };
        // When one query fails, the others are still compared.
        let violation = match ask(session, sql) {
            Ok(found) => difference(&found, &right),
            Err(error) if error.code().is_some() => Some(error.to_string()),
            Err(error) => return Err(error),
        };
        conditions.push(Condition { name: format!("Q{number}: {} rows", right.len()), violation });
    }
    Ok(conditions)
}

fn is_same(found: &str, right: &str) -> bool {
    if found.trim_end() == right.trim_end() {
        return true;
    }
    match (found.parse::<f64>(), right.parse::<f64>()) {
        (Ok(found), Ok(right)) => (found - right).abs() <= f64::max(0.01, right.abs() * 1e-6),
        _ => false,
    }
}

fn is_same_row(found: &[String], right: &[String]) -> bool {
    found.len() == right.len()
        && found.iter().zip(right).all(|(found, right)| is_same(found, right))
}

fn difference(found: &Answer, right: &Answer) -> Option<String> {
    if found.len() != right.len() {
        return Some(format!("{} rows instead of {}", found.len(), right.len()));
    }
    let first = found.iter().zip(right).find(|(found, right)| !is_same_row(found, right));
    let (wrong, expected) = first?;
    let mut left: Vec<&Vec<String>> = right.iter().collect();
    for row in found {
        match left.iter().position(|right| is_same_row(row, right)) {
            Some(index) => drop(left.swap_remove(index)),
            None => {
                return Some(format!(
                    "({}) instead of ({})",
                    wrong.join(", "),
                    expected.join(", ")
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&[&str]]) -> Answer {
        rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
    }

    #[test]
    fn answers_are_compared_as_engines_give_them() {
        let right = answer(&[&["A", "1.50"], &["B", "1000000.00"], &["C", "NULL"]]);
        assert_eq!(difference(&right, &right), None);
        let close = answer(&[&["A  ", "1.5000"], &["B", "1000000.9"], &["C", "NULL"]]);
        assert_eq!(difference(&close, &right), None);
        let swapped = answer(&[&["B", "1000000.00"], &["A", "1.50"], &["C", "NULL"]]);
        assert_eq!(difference(&swapped, &right), None);
        let wrong = answer(&[&["A", "1.52"], &["B", "1000000.00"], &["C", "NULL"]]);
        assert_eq!(difference(&wrong, &right).unwrap(), "(A, 1.52) instead of (A, 1.50)");
        assert_eq!(difference(&right[..1].to_vec(), &right).unwrap(), "1 rows instead of 3");
    }
}
