//! Statements beside changes of definitions: none of them notices.

#![allow(clippy::disallowed_methods)]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mysql::prelude::Queryable;
use support::Server;

/// What changes the table, over and over: in place, with an index, with a copy, with another table.
const CHANGES: &[&str] = &[
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
    "ALTER TABLE t ADD INDEX (v)",
    "ALTER TABLE t MODIFY v BIGINT",
    "ALTER TABLE t DROP INDEX v",
    "ALTER TABLE t MODIFY v INT",
    "ALTER TABLE t DROP COLUMN c",
    "RENAME TABLE t TO s, other TO t, s TO other",
    "RENAME TABLE t TO s, other TO t, s TO other",
];
const ROUNDS: usize = 4;

#[test]
fn single_statements_do_not_notice_that_a_table_is_altered() {
    let server = Server::start(&[], &[]);
    let mut admin = server.connect();
    for statement in [
        "CREATE DATABASE d",
        "USE d",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE TABLE other LIKE t",
        "INSERT INTO other SELECT * FROM t",
        "CREATE VIEW w AS SELECT id, v FROM t",
    ] {
        admin.query_drop(statement).unwrap();
    }
    let (is_over, ran) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..3 {
            let (server, is_over, ran) = (&server, &is_over, &ran);
            scope.spawn(move || {
                let mut client = server.connect();
                client.query_drop("USE d").unwrap();
                let prepared = client.prep("SELECT v FROM t WHERE id = ?").unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let id = 1000 * (number + 1);
                    for statement in [
                        "SELECT * FROM t".to_owned(),
                        "SELECT COUNT(*) FROM w".to_owned(),
                        format!("REPLACE INTO t (id, v) VALUES ({id}, 1)"),
                        format!("UPDATE t SET v = v + 1 WHERE id = {id}"),
                        format!("REPLACE INTO t (id, v) SELECT id + {id}, v FROM t WHERE id = 1"),
                        format!("DELETE FROM t WHERE id IN ({id}, {})", id + 1),
                        "SELECT v FROM t WHERE id = 2 FOR UPDATE".to_owned(),
                    ] {
                        let done = client.query_drop(&statement);
                        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
                        ran.fetch_add(1, Ordering::Relaxed);
                    }
                    let row: Option<i64> = client.exec_first(&prepared, (2,)).unwrap();
                    assert_eq!(row, Some(2));
                }
            });
        }
        for change in std::iter::repeat_n(CHANGES, ROUNDS).flatten() {
            let before = ran.load(Ordering::Relaxed);
            let done = admin.query_drop(change);
            is_over.fetch_or(done.is_err(), Ordering::Relaxed);
            done.unwrap_or_else(|error| panic!("{change}: {error}"));
            // Somebody runs something between two changes.
            while ran.load(Ordering::Relaxed) == before {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
