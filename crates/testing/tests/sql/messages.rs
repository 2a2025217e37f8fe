//! The messages between SQL and a remote node: how many calls a statement makes, how many bytes
//! come back, and that rows written in batches are treated like single ones.

use std::sync::Arc;

use firn_api::rows::{
    DatabaseNode, DescribedTransaction, IsolationLevel, ReadMark, ReadMode, RowsError, ScanOptions,
    WaitPolicy,
};
use firn_format::value::ValueRef;
use firn_row_service::Loopback;
use mysql::prelude::Queryable;
use sqllogictest::{DB, DBOutput};

use crate::client::Client;
use crate::counting_link::{CountingLink, start_counted};
use crate::server::{Server, remote};

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
    // The node stops after the wanted rows.
    ("SELECT * FROM t LIMIT 5", 5, 10, 1_000),
    ("SELECT * FROM t LIMIT 3 OFFSET 4", 3, 10, 1_000),
    ("SELECT id + 1 FROM t ORDER BY id DESC LIMIT 3", 3, 10, 1_000),
    ("SELECT * FROM t WHERE v < 100 LIMIT 2", 2, 10, 1_000),
    ("SELECT * FROM t WHERE s > 'row 9' LIMIT 2", 2, 10, 1_000),
    ("SELECT COUNT(*), SUM(v), MIN(id), MAX(n) FROM t", 1, 20, 2_000),
    ("SELECT COUNT(n), AVG(v) FROM t WHERE v BETWEEN 3 AND 30 AND d < 4000", 1, 20, 2_000),
    // Expressions over the row, alone and behind others.
    ("SELECT * FROM t WHERE v + 1 = 8", 20, 100, 20_000),
    ("SELECT * FROM t WHERE v * 2 > d AND CHAR_LENGTH(s) = 5 AND v = n", 9, 100, 20_000),
    (
        "SELECT * FROM t WHERE s LIKE '%w 1234%' OR MONTH(day) = 2 AND v IN (n, 3) LIMIT 3",
        3,
        40,
        1_000,
    ),
    // Warnings belong to rows that come.
    ("SELECT COUNT(*) FROM t WHERE v % (n - 7) = 1", 1, 200, 4_000_000),
    // Groups.
    ("SELECT v % 10, COUNT(*), SUM(d), MAX(n + 1) FROM t GROUP BY v % 10", 10, 20, 2_000),
    (
        "SELECT LEFT(s, 5) k, COUNT(n), AVG(d) FROM t WHERE v < 500 GROUP BY k HAVING AVG(d) > 1",
        9,
        20,
        2_000,
    ),
    ("SELECT id, COUNT(*) FROM t GROUP BY id", 20_000, 40, 700_000),
    (
        "SELECT s FROM t WHERE id IN (1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39)",
        20,
        20,
        10_000,
    ),
    // Joins by key.
    ("SELECT t.s, u.w FROM t JOIN u ON u.id = t.n WHERE t.id < 1000", 990, 30, 120_000),
    ("SELECT t.s, u.w FROM t LEFT JOIN u ON u.k = t.v WHERE t.id < 1000", 1_000, 30, 120_000),
    (
        "SELECT t.s FROM t JOIN u ON u.id = t.n JOIN u x ON x.id = u.w WHERE t.id < 1000",
        990,
        40,
        160_000,
    ),
    ("SELECT t.s, u.w FROM t STRAIGHT_JOIN u ON u.id = t.id LIMIT 1", 1, 15, 20_000),
];

/// Statements that write, how many rows each changes, and the most calls that it may take.
const WRITES: &[(&str, u64, u64)] = &[
    ("UPDATE t SET d = d + 1 WHERE id < 2000", 2_000, 35),
    ("UPDATE t SET id = id + 100000 WHERE id < 2000", 2_000, 35),
    ("UPDATE t JOIN u ON u.id = t.n SET t.v = u.w WHERE t.id BETWEEN 2000 AND 2009", 9, 30),
    ("DELETE FROM t WHERE id >= 100000", 2_000, 35),
];

/// A server whose calls to its node are counted, with tables `t` and `u`.
fn counting_server() -> (Server, Arc<CountingLink>, Client) {
    let (server, link) = start_counted();
    let mut client = Client::connect(server.port(), None);
    client.make_schema("messages");
    for statement in [
        "USE messages",
        "SET cte_max_recursion_depth = 100000, firn_executor = ROW",
        "CREATE TABLE t (id INT PRIMARY KEY, v INT, s VARCHAR(40), d DECIMAL(10,2), n INT, day DATE,
            filler CHAR(60))",
        "CREATE TABLE u (id INT PRIMARY KEY, w INT, k INT NOT NULL, UNIQUE KEY (k))",
        "INSERT INTO t WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
            SELECT i, i % 1000, CONCAT('row ', i), i / 4, IF(i % 100 = 0, NULL, i),
                DATE_ADD('2026-01-01', INTERVAL i DAY), 'x' FROM n",
        "INSERT INTO u SELECT id, id / 2, id + 500 FROM t",
    ] {
        client.connection().query_drop(statement).expect(statement);
    }
    (server, link, client)
}

#[test]
fn a_statement_costs_messages_for_what_it_wants() {
    let (_server, link, mut client) = counting_server();
    let mut failures = Vec::new();
    for (statement, rows, most_calls, most_bytes) in STATEMENTS {
        let before = link.counts();
        let answer: Vec<mysql::Row> = client.connection().query(statement).expect(statement);
        let after = link.counts();
        let (calls, bytes) =
            (after.calls - before.calls, after.received_bytes - before.received_bytes);
        println!("{} rows, {calls} calls, {bytes} bytes: {statement}", answer.len());
        if answer.len() != *rows || calls > *most_calls || bytes > *most_bytes {
            failures
                .push(format!("{statement}: {} rows, {calls} calls, {bytes} bytes", answer.len()));
        }
    }
    for (statement, rows, most_calls) in WRITES {
        let before = link.counts().calls;
        client.connection().query_drop(statement).expect(statement);
        let calls = link.counts().calls - before;
        let affected = client.connection().affected_rows();
        println!("{affected} rows, {calls} calls: {statement}");
        if affected != *rows || calls > *most_calls {
            failures.push(format!("{statement}: {affected} rows, {calls} calls"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Statements of one session whose rows are written in batches by messages, with rows that are
/// refused in the middle of a batch.
const REFUSALS: &[&str] = &[
    "CREATE TABLE p (id INT PRIMARY KEY, u INT, v TINYINT NOT NULL, s VARCHAR(4), UNIQUE KEY (u))",
    "INSERT INTO p WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 600)
        SELECT i, i, i % 100, 'a' FROM n",
    "UPDATE p SET u = u + 1000",
    "UPDATE p SET u = u - 1 ORDER BY u",
    // The row in the middle meets one that the statement has changed before, or not.
    "UPDATE p SET v = v + 1, u = IF(id = 300, 1099, u)",
    "UPDATE p SET u = IF(id = 300, 2005, u + 1000)",
    // The earlier row's error, though the later one cannot even be computed.
    "UPDATE p SET u = IF(id = 100, 1299, u), s = IF(id = 200, 'too long', 'b')",
    "UPDATE p SET u = IF(id = 200, 1299, u), s = IF(id = 100, 'too long', 'b')",
    "UPDATE p SET u = IF(id = 100, 1299, u), s = 'c' WHERE id < 200 OR CAST(s AS JSON) = 1",
    // Warnings of the rows before it, and of no other.
    "SET sql_mode = ''",
    "UPDATE p SET v = 500, u = IF(id = 300, 1099, u)",
    "UPDATE p SET v = 500, u = IF(id = 300, 1099, u + 5000)",
    "SET sql_mode = DEFAULT",
    "UPDATE IGNORE p SET u = IF(id % 100 = 0, 1001, u), v = 7",
    "UPDATE p SET id = id + 1",
    "UPDATE p SET id = id + 1 ORDER BY id DESC",
    "UPDATE IGNORE p SET id = IF(id % 50 = 0, 3, id + 1000), v = 8",
    "UPDATE p SET v = 9 WHERE id > 100 ORDER BY id DESC LIMIT 300",
    // Expressions with effects.
    "SET @n = 0",
    "UPDATE p SET v = (@n := @n + 1) % 100, u = IF(@n = 300, 1099, u)",
    "SELECT @n",
    // Foreign keys: nothing follows `v`, something follows `u`.
    "CREATE TABLE c (id INT PRIMARY KEY AUTO_INCREMENT, f INT, v INT,
        FOREIGN KEY (f) REFERENCES p (u) ON UPDATE CASCADE ON DELETE SET NULL)",
    "INSERT INTO c (f, v) SELECT u, v FROM p ORDER BY u LIMIT 300",
    "UPDATE p SET v = 1",
    "UPDATE p SET u = u + 9000",
    "UPDATE c SET v = 2",
    "UPDATE c SET f = IF(id = 50, 7, f), v = 3",
    "UPDATE c SET id = id + 5000 ORDER BY id DESC",
    "INSERT INTO c (v) VALUES (4)",
    "DELETE FROM p ORDER BY u LIMIT 50",
    "UPDATE p JOIN c ON c.f = p.u SET p.v = 11, c.v = 12",
    "DELETE c FROM c JOIN p ON c.f = p.u WHERE p.id % 2 = 0",
    "DELETE FROM c WHERE id > 5000 LIMIT 20",
    "DELETE p, c FROM p LEFT JOIN c ON c.f = p.u WHERE p.u % 3 = 0",
    "DELETE FROM c",
];

/// The outcome of a statement, and what it left.
fn outcome(statement: &str, client: &mut Client) -> String {
    let done = match client.run(statement) {
        Ok(DBOutput::StatementComplete(affected)) => format!("{affected} rows affected"),
        Ok(DBOutput::Rows { rows, .. }) => format!("{rows:?}"),
        Ok(_) => unreachable!("the client returns these two"),
        Err(error) => error.to_string(),
    };
    let warnings: Vec<(String, u16, String)> =
        client.connection().query("SHOW WARNINGS").expect("warnings");
    let mut left = Vec::new();
    for table in ["p", "c"] {
        let rows = client.connection().query::<mysql::Row, _>(format!("SELECT * FROM {table}"));
        left.extend(rows.unwrap_or_default().into_iter().map(|row| format!("{row:?}")));
    }
    format!("{done}\n{warnings:?}\n{}", left.join("\n"))
}

#[test]
fn rows_written_in_batches_have_the_errors_and_warnings_of_single_ones() {
    let servers = [
        Server::start_with(|rows| rows),
        Server::start_with(|rows| remote(Arc::new(Loopback::to(rows)))),
    ];
    let mut clients = servers.each_ref().map(|server| {
        let mut client = Client::connect(server.port(), None);
        client.make_schema("batches");
        client.connection().query_drop("USE batches").expect("the schema");
        client
    });
    for statement in REFUSALS {
        let [embedded, remote] = clients.each_mut().map(|client| outcome(statement, client));
        println!("{}: {statement}", embedded.lines().next().unwrap_or_default());
        assert_eq!(remote, embedded, "{statement}");
    }
}

/// A compute node asks its database node for the figures, wherever that runs.
#[test]
fn figures_of_a_remote_node_are_messages() {
    let server = Server::start_with(|rows| remote(Arc::new(Loopback::to(rows))));
    let mut client = Client::connect(server.port(), None);
    assert!(client.status("Innodb_buffer_pool_pages_total") > 0);
    let shown = client.connection().query_first("SHOW ENGINE INNODB STATUS").expect("a query");
    let (_, _, text): (String, String, String) = shown.expect("a row");
    assert!(text.contains("TRANSACTIONS") && text.contains("END OF FIRN STATUS"), "{text}");
}

/// A transaction that has only read is described, and goes on, at a remote node as at one of this
/// process.
#[test]
fn a_transaction_goes_on_through_messages() {
    let mut reached = None;
    let server = Server::start_with(|rows| {
        let node = remote(Arc::new(Loopback::to(rows)));
        reached = Some(Arc::clone(&node));
        node
    });
    let node: Arc<dyn DatabaseNode> = reached.expect("the node of the server");
    let mut client = Client::connect(server.port(), None);
    client.make_schema("moved");
    for statement in [
        "USE moved",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
        "INSERT INTO t VALUES (1, 0), (2, 0)",
    ] {
        client.connection().query_drop(statement).expect(statement);
    }
    let table = node.table_named("moved", "t").expect("a look-up").expect("a table");
    let mut there = node.begin(IsolationLevel::RepeatableRead).expect("a transaction");
    there.keep_reads();
    let mut scan = there.scan(&table, &ScanOptions::all()).expect("a scan");
    while scan.fetch(&mut *there).expect("rows") {}
    let described = there.describe().expect("an answer").expect("it has only read");
    client.connection().query_drop("UPDATE t SET b = 1 WHERE a = 2").expect("an update");

    let mut here = node.take_up(&described).expect("its snapshot is open there");
    drop((scan, there));
    here.keep_reads();
    assert_eq!(here.snapshot(), described.snapshot.as_ref().map(|snapshot| snapshot.at));
    let before = here.read_mark();
    assert_eq!(before, ReadMark(1), "its range is known");
    let mut key = Vec::new();
    let clustered = &table.layout().clustered;
    clustered.encode_parts(&[ValueRef::Int(2)], table.collations(), &mut key).expect("a key");
    let mode = ReadMode::Update(WaitPolicy::Wait);
    let table = here.table_for_write(table.definition().table_id).expect("a table");
    let refused = here.get(&table, &key, mode, &mut Vec::new());
    assert_eq!(refused, Err(RowsError::WriteConflict));
    assert!(!here.renew_snapshot(before).expect("an answer"), "what it has read has changed");
    assert_eq!(here.describe(), Ok(None), "it has locked");

    let isolation = IsolationLevel::Serializable;
    let stays = node.take_up(&DescribedTransaction { isolation, ..described });
    assert_eq!(stays.map(drop).expect_err("it is refused at once").mysql_code(), 1030);
}
