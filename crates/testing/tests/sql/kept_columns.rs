//! Cached columns while rows are written, tables are altered and snapshots grow old. The executor
//! without columns gives the expected answers.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use crate::client::Client;
use crate::executors::Numbers;
use crate::server::Server;

const ROWS: u64 = 6_000;
const STEPS: usize = 60;
/// Number of sessions, which hold snapshots of different ages.
const READERS: usize = 3;

/// The queries: all columns, few rows, an index alone, a range that begins within a leaf.
const QUERIES: &[&str] = &[
    "SELECT COUNT(*), SUM(id), SUM(a), SUM(d), SUM(LENGTH(t)), MIN(t), MAX(z) FROM k",
    "SELECT COUNT(*), SUM(a) FROM k WHERE t = 'often' AND d > 5000",
    "SELECT a, COUNT(*) FROM k WHERE a BETWEEN 10 AND 400 GROUP BY a ORDER BY a",
    "SELECT SUM(d), MAX(t) FROM k WHERE id BETWEEN 777 AND 4444",
    "SELECT t, COUNT(*), SUM(d) FROM k GROUP BY t ORDER BY t, 2, 3 LIMIT 40",
];

/// A row with this key.
fn row(numbers: &mut Numbers, id: u64) -> String {
    let text = match numbers.next(4) {
        0 => "NULL".to_owned(),
        1 => format!("'{}'", "long ".repeat(1 + numbers.next(20) as usize)),
        _ => "'often'".to_owned(),
    };
    let (a, d, minute) = (numbers.next(1000), numbers.next(1_000_000), numbers.next(60));
    format!("({id},{a},{d}.25,{text},'2026-03-29 01:{minute:02}:00')")
}

fn write(numbers: &mut Numbers) -> String {
    let id = numbers.next(ROWS);
    let to = id + numbers.next(300);
    match numbers.next(8) {
        0 => format!("DELETE FROM k WHERE id BETWEEN {id} AND {to}"),
        1 => format!("UPDATE k SET t = 'changed', d = d + 1 WHERE id BETWEEN {id} AND {to}"),
        2 => format!("UPDATE k SET a = a + 1 WHERE id = {id}"),
        3 => format!("REPLACE INTO k (id, a, d, t, z) VALUES {}", row(numbers, id)),
        _ => {
            let rows: Vec<String> = (id..id + 20).map(|id| row(numbers, id)).collect();
            format!("INSERT IGNORE INTO k (id, a, d, t, z) VALUES {}", rows.join(","))
        }
    }
}

fn answer(connection: &mut Conn, executor: &str, query: &str) -> Vec<String> {
    connection.query_drop(format!("SET firn_executor = {executor}")).expect("a setting");
    let rows: Vec<Row> = connection.query(query).expect(query);
    let shown = |value: &Value| value.as_sql(false);
    rows.into_iter()
        .map(|row| row.unwrap().iter().map(shown).collect::<Vec<_>>().join("|"))
        .collect()
}

fn check(connection: &mut Conn, step: &str) {
    for query in QUERIES {
        let expected = answer(connection, "ROW", query);
        // The first run fills the cache, the second one uses it.
        for _ in 0..2 {
            assert_eq!(answer(connection, "VECTORISED", query), expected, "{query}, after {step}");
        }
    }
}

fn exec(connection: &mut Conn, statement: &str) {
    connection.query_drop(statement).expect(statement);
}

#[test]
fn kept_columns_are_what_each_snapshot_sees() {
    let server = Server::start();
    let mut client = Client::connect(server.port(), None);
    client.make_schema("kept_columns");
    let writer = client.connection();
    exec(writer, "USE kept_columns");
    exec(
        writer,
        "CREATE TABLE k (id INT PRIMARY KEY, a INT, d DECIMAL(12,2), t VARCHAR(100), z TIMESTAMP, \
         INDEX by_a (a))",
    );
    let mut numbers = Numbers(11);
    for start in (0..ROWS).step_by(500) {
        let rows: Vec<String> = (start..start + 500).map(|id| row(&mut numbers, id * 2)).collect();
        exec(writer, &format!("INSERT INTO k VALUES {}", rows.join(",")));
    }
    let mut readers: Vec<Client> = (0..READERS)
        .map(|_| {
            let mut reader = Client::connect(server.port(), None);
            exec(reader.connection(), "USE kept_columns");
            reader
        })
        .collect();
    for number in 0..STEPS {
        let statement = write(&mut numbers);
        exec(writer, &statement);
        let reader = readers[number % READERS].connection();
        match numbers.next(6) {
            0 => exec(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT"),
            1 => exec(reader, "COMMIT"),
            2 => {
                exec(reader, "COMMIT");
                let zone = ["+00:00", "+05:30", "Europe/Zurich"][numbers.next(3) as usize];
                exec(reader, &format!("SET time_zone = '{zone}'"));
            }
            // Only this session sees its own writes.
            3 => {
                exec(reader, "COMMIT");
                exec(reader, "BEGIN");
                exec(reader, &write(&mut numbers));
                check(reader, "a write of its own");
                exec(reader, "ROLLBACK");
            }
            _ => {}
        }
        check(reader, &statement);
    }
    readers.iter_mut().for_each(|reader| exec(reader.connection(), "COMMIT"));
    for alteration in [
        "ALTER TABLE k ADD COLUMN a2 INT DEFAULT 7",
        "ALTER TABLE k DROP COLUMN t, ADD COLUMN t VARCHAR(50) DEFAULT 'new'",
        "ALTER TABLE k MODIFY a BIGINT",
        "TRUNCATE TABLE k",
    ] {
        check(writer, "nothing");
        exec(writer, alteration);
        check(writer, alteration);
    }
    assert!(client.status("Firn_memory_column_cache") > 0);
}
