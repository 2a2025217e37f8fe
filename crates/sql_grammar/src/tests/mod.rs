//! What the grammar accepts, what it refuses, and the resulting trees.

mod dumps;
mod normalised;
mod properties;
mod rendered;
mod splits;
mod statements;

/// Reading and changing of rows.
const DML: &str = include_str!("dml.sql");
/// Databases, tables, indexes, views, stored programs.
const DDL: &str = include_str!("ddl.sql");
/// Transactions, sessions, the server, accounts.
const SESSION: &str = include_str!("session.sql");

/// Runs a test on a stack like that of a session.
fn with_session_stack(test: fn()) {
    use firn_base::task::{Spawner, ThreadSpawner};
    assert!(ThreadSpawner.spawn("test", Box::new(test)).join(), "the test has failed");
}

/// The statements of a file, one per line.
fn statements(file: &'static str) -> impl Iterator<Item = &'static str> {
    file.lines().filter(|line| !line.trim().is_empty())
}
