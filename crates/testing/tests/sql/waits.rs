//! `KILL QUERY` of statements that wait at the database node: the wait ends, and the kill does not
//! affect later statements.

use std::time::Duration;

use mysql::prelude::Queryable;

use crate::client::Client;
use crate::kill::killed;
use crate::server::Server;

/// Statements of one session that take locks, and a statement of another that waits for them.
const WAITS: &[(&str, &str)] = &[
    ("BEGIN; UPDATE w SET v = 1 WHERE id = 1", "UPDATE w SET v = 2 WHERE id = 1"),
    ("BEGIN; UPDATE w SET v = 1 WHERE id = 1", "SELECT * FROM w FOR UPDATE"),
    ("BEGIN; UPDATE w SET v = 1 WHERE id = 1", "DELETE FROM w"),
    ("BEGIN; INSERT INTO w VALUES (9, 9)", "INSERT INTO w VALUES (9, 8)"),
    ("BEGIN; SELECT * FROM w", "ALTER TABLE w DROP COLUMN v"),
    ("BEGIN; UPDATE w SET v = 1 WHERE id = 1", "CREATE INDEX by_v ON w (v)"),
    ("BEGIN; SELECT * FROM w", "DROP TABLE w"),
    ("LOCK TABLES w WRITE", "SELECT * FROM w"),
    ("LOCK TABLES w READ", "INSERT INTO w VALUES (10, 10)"),
];

/// The limit of the waits, in seconds: a statement may not go on for as long after it was killed.
const LIMIT: u32 = 10;

#[test]
fn waits_end_when_they_are_killed() {
    let failures = failures(&Server::start(), WAITS.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The first `count` of the waits that do not end.
pub(crate) fn failures(server: &Server, count: usize) -> Vec<String> {
    Client::connect(server.port(), None).make_schema("waits");
    let mut failures = Vec::new();
    for (held, waiting) in &WAITS[..count] {
        let mut setup = Client::connect(server.port(), Some("waits"));
        for statement in [
            "DROP TABLE IF EXISTS w",
            "CREATE TABLE w (id INT PRIMARY KEY, v INT)",
            "INSERT INTO w VALUES (1, 1), (2, 2), (3, 3)",
        ] {
            setup.connection().query_drop(statement).expect("a filled table");
        }
        let mut holder = Client::connect(server.port(), Some("waits"));
        for statement in held.split("; ") {
            holder.connection().query_drop(statement).expect(statement);
        }
        if let Err(failure) = end_of_wait(server.port(), waiting) {
            failures.push(format!("{held} before {waiting}: {failure}"));
        }
    }
    failures
}

/// Lets a session wait, kills the statement, and runs further statements.
fn end_of_wait(port: u16, waiting: &str) -> Result<(), String> {
    let mut victim = Client::connect(port, Some("waits"));
    // A wait that the kill does not end times out with another error.
    let limits = format!("SET innodb_lock_wait_timeout = {LIMIT}, lock_wait_timeout = {LIMIT}");
    victim.connection().query_drop(limits).expect("limits");
    let (answer, lasted) = killed(&mut victim, port, waiting, Duration::from_millis(300));
    match answer {
        Err(mysql::Error::MySqlError(error)) if error.code == 1317 => {}
        other => return Err(format!("it answered {other:?}")),
    }
    if lasted > Duration::from_secs(1) * LIMIT / 2 {
        return Err(format!("it went on for {lasted:?}"));
    }
    let next = victim
        .connection()
        .query_first::<i64, _>("SELECT COUNT(*) FROM information_schema.schemata");
    next.map(drop).map_err(|error| format!("the next statement: {error}"))
}
