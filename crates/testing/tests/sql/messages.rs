//! The messages between SQL and a remote node: how many calls a statement makes, and how many bytes
//! come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_row_service::{Link, LinkError, Loopback};
use mysql::prelude::Queryable;

use crate::client::Client;
use crate::server::{Server, remote};

/// A link that counts calls and bytes.
struct CountingLink {
    inner: Loopback,
    calls: AtomicU64,
    received_bytes: AtomicU64,
}

impl Link for CountingLink {
    fn call(&self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        let reply = self.inner.call(message)?;
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.received_bytes.fetch_add(reply.len() as u64, Ordering::Relaxed);
        Ok(reply)
    }

    fn cast(&self, message: Vec<u8>) {
        self.inner.cast(message);
    }
}

/// Statements over 20,000 rows of about 100 bytes: the rows that each returns, and the most calls
/// and bytes that it may take.
const STATEMENTS: &[(&str, usize, u64, u64)] = &[
    // All rows, for comparison.
    ("SELECT * FROM t", 20_000, 2_000, 4_000_000),
    ("SELECT * FROM t WHERE v = 7", 20, 100, 20_000),
    ("SELECT * FROM t WHERE v BETWEEN 7 AND 9 AND d > 1.5", 60, 100, 30_000),
    ("SELECT * FROM t WHERE v = 7 OR s = 'row 12'", 21, 100, 20_000),
    ("SELECT * FROM t WHERE s IN ('ROW 3', 'row 4')", 2, 100, 10_000),
    ("SELECT * FROM t WHERE n IS NULL AND LENGTH(s) = 5", 1, 100, 40_000),
    ("SELECT * FROM t WHERE day >= '2026-01-01' AND v < 3", 60, 100, 40_000),
    ("SELECT COUNT(*), SUM(v), MIN(id), MAX(n) FROM t", 1, 20, 2_000),
    ("SELECT COUNT(n), AVG(v) FROM t WHERE v BETWEEN 3 AND 30 AND d < 4000", 1, 20, 2_000),
    (
        "SELECT s FROM t WHERE id IN (1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39)",
        20,
        20,
        10_000,
    ),
];

#[test]
fn a_statement_costs_messages_for_what_it_wants() {
    let mut link = None;
    let server = Server::start_with(|rows| {
        let counting = Arc::new(CountingLink {
            inner: Loopback::to(rows),
            calls: AtomicU64::new(0),
            received_bytes: AtomicU64::new(0),
        });
        link = Some(Arc::clone(&counting));
        remote(counting)
    });
    let link = link.expect("a link");
    let mut client = Client::connect(server.port(), None);
    client.make_schema("messages");
    for statement in [
        "USE messages",
        "SET cte_max_recursion_depth = 100000, firn_executor = ROW",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(40), d DECIMAL(10,2), n INT, day DATE,
            filler CHAR(60))",
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
            SELECT i, i % 1000, CONCAT('row ', i), i / 4, IF(i % 100 = 0, NULL, i),
                DATE_ADD('2026-01-01', INTERVAL i DAY), 'x' FROM n",
    ] {
        client.connection().query_drop(statement).expect(statement);
    }
    let mut failures = Vec::new();
    for (statement, rows, most_calls, most_bytes) in STATEMENTS {
        let before = [&link.calls, &link.received_bytes].map(|count| count.load(Ordering::Relaxed));
        let answer: Vec<mysql::Row> = client.connection().query(statement).expect(statement);
        let after = [&link.calls, &link.received_bytes].map(|count| count.load(Ordering::Relaxed));
        let (calls, bytes) = (after[0] - before[0], after[1] - before[1]);
        println!("{} rows, {calls} calls, {bytes} bytes: {statement}", answer.len());
        if answer.len() != *rows || calls > *most_calls || bytes > *most_bytes {
            failures
                .push(format!("{statement}: {} rows, {calls} calls, {bytes} bytes", answer.len()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
