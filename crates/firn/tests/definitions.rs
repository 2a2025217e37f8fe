//! Statements beside changes of definitions: the statements succeed as if there were no changes.

#![allow(clippy::disallowed_methods)]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use firn_base::task::StopAtEnd;
use mysql::prelude::Queryable;
use support::Server;

/// Statements that change the table over and over: in place, with an index, with a copy, with
/// another table.
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
/// How long a client may need for one statement.
const PATIENCE: Duration = Duration::from_secs(60);

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
        let _stop = StopAtEnd(&is_over);
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
            done.unwrap_or_else(|error| panic!("{change}: {error}"));
            // Some statement runs between two changes.
            let until = Instant::now() + PATIENCE;
            while ran.load(Ordering::Relaxed) == before {
                assert!(Instant::now() < until, "no statement runs");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

/// Statements that rewrite all rows while others write.
const COPIES: &[&str] = &[
    "ALTER TABLE t FORCE, LOCK = NONE",
    "ALTER TABLE t ADD COLUMN w BIGINT AS (v * 2) VIRTUAL, ALGORITHM = INPLACE, LOCK = NONE",
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 5, ADD INDEX (c), LOCK = NONE",
    "ALTER TABLE t ADD UNIQUE INDEX (u, w), LOCK = NONE",
    "ALTER TABLE t FORCE",
];
const COPIED_ROWS: i64 = 20_000;

/// Writes rows with `id % 3 = number` until `stop` is set; returns the last content of each.
fn write_rows(client: &mut mysql::Conn, number: i64, stop: &AtomicBool) -> BTreeMap<i64, i64> {
    let own = (0..COPIED_ROWS).filter(|id| id % 3 == number);
    let mut rows: BTreeMap<i64, i64> = own.map(|id| (id, 0)).collect();
    for step in 0_i64.. {
        let id = step * 7_919 % COPIED_ROWS / 3 * 3 + number;
        let change = match (rows.get_mut(&id), step % 4) {
            (Some(_), 0) => {
                rows.remove(&id);
                format!("DELETE FROM t WHERE id = {id}")
            }
            (Some(v), _) => {
                *v += 1;
                format!("UPDATE t SET v = v + 1, s = CONCAT(s, 'y') WHERE id = {id}")
            }
            (None, _) if id < COPIED_ROWS => {
                rows.insert(id, step);
                format!("INSERT INTO t (id, v, u) VALUES ({id}, {step}, {id})")
            }
            (None, _) => continue,
        };
        client.query_drop(&change).unwrap_or_else(|error| panic!("{change}: {error}"));
        assert_eq!(client.affected_rows(), 1, "{change}");
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    rows
}

#[test]
fn rows_that_are_written_while_a_table_is_copied_are_in_the_copy() {
    copies_beside_writers("id INT PRIMARY KEY");
}

/// Such rows have a hidden number, which a copy keeps.
#[test]
fn rows_without_a_primary_key_are_copied_beside_writers() {
    copies_beside_writers("id INT NOT NULL, KEY (id)");
}

fn copies_beside_writers(id: &str) {
    let server = Server::start(&[], &[]);
    let mut admin = server.connect();
    let table = format!("CREATE TABLE t ({id}, v INT, u INT UNIQUE, s VARCHAR(200) DEFAULT '')");
    for statement in [
        "CREATE DATABASE d",
        "USE d",
        &table,
        "SET cte_max_recursion_depth = 100000",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999) \
         SELECT i, 0, i, REPEAT('x', 60) FROM n",
    ] {
        admin.query_drop(statement).unwrap();
    }
    let stop = AtomicBool::new(false);
    let rows: BTreeMap<i64, i64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|number| {
                let mut client = server.connect();
                client.query_drop("USE d").unwrap();
                let stop = &stop;
                scope.spawn(move || write_rows(&mut client, number, stop))
            })
            .collect();
        let stopping = StopAtEnd(&stop);
        let changed = COPIES.iter().try_for_each(|change| admin.query_drop(change));
        drop(stopping);
        let rows = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        changed.unwrap();
        rows
    });
    let found: Vec<(i64, i64, i64)> = admin.query("SELECT id, v, w FROM t ORDER BY id").unwrap();
    let wanted: Vec<_> = rows.iter().map(|(id, v)| (*id, *v, *v * 2)).collect();
    assert_eq!(found, wanted);
    let checked: Option<(String, String, String, String)> =
        admin.query_first("CHECK TABLE t").unwrap();
    assert_eq!(checked.unwrap().3, "OK");
    let refused = admin.query_drop("ALTER TABLE t ADD COLUMN x INT AS (v + 1) STORED, LOCK = NONE");
    assert!(refused.unwrap_err().to_string().contains("LOCK=NONE is not supported"));
}
