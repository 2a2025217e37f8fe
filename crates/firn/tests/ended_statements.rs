//! Every wait and every computation ends soon after `KILL QUERY`, `KILL`, the end of its time, or
//! the end of its client: a table of all wait points and stages of statements, each ended in each
//! way.
//!
//! ```text
//!   holder   what stands in the way: a lock, a transaction         (kept for all rounds)
//!   victim   first ─► statement                                    through a relay that can be cut
//!   watcher  KILL, and how long the list of processes names the statement
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{LocalInfileHandler, SslOpts};
use support::{MAKE_BIG, Server};

/// A statement that would take long, and what it needs.
struct Case {
    /// Statements of the other session, which keeps what they take.
    holder: &'static [&'static str],
    /// Statements that the session runs first.
    first: &'static [&'static str],
    statement: &'static str,
}

const fn alone(statement: &'static str) -> Case {
    Case { holder: &[], first: &[], statement }
}

const fn after(first: &'static [&'static str], statement: &'static str) -> Case {
    Case { holder: &[], first, statement }
}

const fn behind(holder: &'static [&'static str], statement: &'static str) -> Case {
    Case { holder, first: &[], statement }
}

const READS: &[&str] = &["BEGIN", "SELECT v FROM t WHERE id = 1"];
const ROW_LOCKED: &[&str] = &["BEGIN", "UPDATE t SET v = 2 WHERE id = 1"];
const TABLE_LOCKED: &[&str] = &["LOCK TABLES t WRITE"];
const READ_LOCKED: &[&str] = &["LOCK TABLES t READ"];
const ALL_LOCKED: &[&str] = &["FLUSH TABLES WITH READ LOCK"];
const SERIALIZABLE: &[&str] = &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"];

/// Waits for rows and for user locks.
const ROWS: &[Case] = &[
    alone("SELECT SLEEP(100)"),
    alone("DO SLEEP(100)"),
    behind(&["SELECT GET_LOCK('held', 1)"], "SELECT GET_LOCK('held', 100)"),
    behind(ROW_LOCKED, "UPDATE t SET v = 3"),
    behind(ROW_LOCKED, "DELETE FROM t WHERE id = 1"),
    behind(ROW_LOCKED, "SELECT * FROM t FOR UPDATE"),
    behind(ROW_LOCKED, "SELECT * FROM t FOR SHARE"),
    behind(ROW_LOCKED, "INSERT INTO copy SELECT id, v FROM t FOR SHARE"),
    behind(ROW_LOCKED, "INSERT INTO child VALUES (1, 1)"),
    behind(ROW_LOCKED, "SELECT * FROM copy UNION ALL SELECT id, v FROM t FOR UPDATE"),
    behind(&["BEGIN", "INSERT INTO t VALUES (50, 1)"], "INSERT INTO t VALUES (50, 2)"),
    behind(&["BEGIN", "INSERT INTO t VALUES (50, 1)"], "REPLACE INTO t VALUES (50, 2)"),
    Case { holder: ROW_LOCKED, first: SERIALIZABLE, statement: "SELECT * FROM t" },
    Case {
        holder: &[
            "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "BEGIN",
            "SELECT * FROM t WHERE id > 10 FOR UPDATE",
        ],
        first: &[],
        statement: "INSERT INTO t VALUES (60, 1)",
    },
    Case {
        holder: ROW_LOCKED,
        first: SERIALIZABLE,
        statement: "CREATE TABLE made AS SELECT * FROM t",
    },
    Case {
        holder: ROW_LOCKED,
        first: &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET autocommit = 0"],
        statement: "CREATE TABLE made AS SELECT * FROM t",
    },
    Case {
        holder: ROW_LOCKED,
        first: SERIALIZABLE,
        statement: "CREATE TEMPORARY TABLE made AS SELECT * FROM t",
    },
    Case {
        holder: ROW_LOCKED,
        first: &["PREPARE p FROM 'UPDATE t SET v = 3 WHERE id = 1'"],
        statement: "EXECUTE p",
    },
];

/// Waits for definitions, and for other sessions to stop writing.
const DEFINITIONS: &[Case] = &[
    behind(TABLE_LOCKED, "SELECT * FROM t"),
    behind(TABLE_LOCKED, "SELECT * FROM w"),
    behind(TABLE_LOCKED, "LOCK TABLES t READ"),
    behind(TABLE_LOCKED, "CREATE TABLE made LIKE t"),
    behind(TABLE_LOCKED, "CREATE TABLE made AS SELECT * FROM t"),
    behind(READ_LOCKED, "INSERT INTO t VALUES (70, 1)"),
    behind(READ_LOCKED, "SELECT * FROM t FOR UPDATE"),
    behind(READ_LOCKED, "LOCK TABLES t WRITE"),
    behind(READS, "ALTER TABLE t ADD COLUMN c INT"),
    behind(READS, "ALTER TABLE t MODIFY v BIGINT"),
    behind(READS, "ALTER TABLE t RENAME TO s"),
    behind(READS, "CREATE INDEX i ON t (v)"),
    behind(READS, "DROP TABLE t, copy"),
    behind(READS, "TRUNCATE TABLE t"),
    behind(READS, "RENAME TABLE copy TO c, t TO s"),
    behind(READS, "LOCK TABLES copy READ, t WRITE"),
    behind(READS, "DROP DATABASE d"),
    behind(&["BEGIN", "SELECT * FROM w"], "CREATE OR REPLACE VIEW w AS SELECT 1"),
    behind(&["BEGIN", "SELECT * FROM w"], "DROP VIEW w"),
    behind(&["BEGIN", "INSERT INTO child VALUES (5, 2)"], "ALTER TABLE t ADD COLUMN c INT"),
    behind(
        &[
            "XA START 'ended'",
            "INSERT INTO t VALUES (80, 1)",
            "XA END 'ended'",
            "XA PREPARE 'ended'",
        ],
        "ALTER TABLE t ADD COLUMN c INT",
    ),
    behind(ALL_LOCKED, "INSERT INTO t VALUES (70, 1)"),
    behind(ALL_LOCKED, "SELECT * FROM t FOR UPDATE"),
    behind(ALL_LOCKED, "LOCK TABLES t WRITE"),
    behind(TABLE_LOCKED, "FLUSH TABLES WITH READ LOCK"),
    behind(ALL_LOCKED, "CREATE TABLE made (a INT)"),
    behind(ALL_LOCKED, "ALTER TABLE t ADD COLUMN c INT"),
];

const ROW: &[&str] = &["SET firn_executor = 'ROW'"];
const COLUMNS: &[&str] = &["SET firn_executor = 'VECTORISED'"];
const SPILLING: &[&str] = &["SET firn_executor = 'ROW'", "SET firn_statement_memory = 1048576"];
const RECURSION: &[&str] =
    &["SET firn_executor = 'ROW'", "SET cte_max_recursion_depth = 4000000000"];

/// Stages of statements that compute. `big` has 20,000 rows.
const STAGES: &[Case] = &[
    after(ROW, "SELECT COUNT(*) FROM big a, big b WHERE MD5(CONCAT(a.s, b.s)) < '0'"),
    after(ROW, "SELECT COUNT(*) FROM big a JOIN big b ON a.v % 10 = b.v % 10 WHERE a.s < b.s"),
    after(
        ROW,
        "SELECT a.s FROM big a, (SELECT 1 FROM big LIMIT 500) b ORDER BY a.s, a.v LIMIT 1 OFFSET 9000000",
    ),
    after(
        SPILLING,
        "SELECT a.s FROM big a, (SELECT 1 FROM big LIMIT 500) b ORDER BY a.s, a.v LIMIT 1 OFFSET 9000000",
    ),
    after(
        ROW,
        "SELECT a.v, b.id, COUNT(*) FROM big a, (SELECT id FROM big LIMIT 500) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1",
    ),
    after(
        SPILLING,
        "SELECT a.v, b.id, COUNT(*) FROM big a, (SELECT id FROM big LIMIT 500) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1",
    ),
    after(
        ROW,
        "SELECT COUNT(*) FROM (SELECT DISTINCT a.v, b.id FROM big a, (SELECT id FROM big LIMIT 500) b) c",
    ),
    after(
        ROW,
        "SELECT COUNT(*) FROM (SELECT a.v, b.v w FROM big a, big b UNION SELECT b.v, a.v FROM big a, big b) c",
    ),
    after(
        ROW,
        "SELECT MAX(n) FROM (SELECT SUM(a.v) OVER (PARTITION BY a.v % 7 ORDER BY a.s) n FROM big a, (SELECT 1 FROM big LIMIT 500) b) c",
    ),
    after(
        ROW,
        "SELECT COUNT(*) FROM big a WHERE EXISTS (SELECT 1 FROM big b WHERE MD5(CONCAT(a.s, b.s)) < '0')",
    ),
    after(
        RECURSION,
        "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 1000000000) SELECT COUNT(*) FROM r",
    ),
    after(COLUMNS, "SELECT COUNT(*) FROM big a, big b WHERE MD5(CONCAT(a.s, b.s)) < '0'"),
    after(
        COLUMNS,
        "SELECT COUNT(*), MAX(CONCAT(a.s, b.s)) FROM big a JOIN big b ON a.v % 10 = b.v % 10",
    ),
    after(
        COLUMNS,
        "SELECT a.s FROM big a, (SELECT 1 FROM big LIMIT 500) b ORDER BY a.s, a.v LIMIT 1 OFFSET 9000000",
    ),
    after(
        COLUMNS,
        "SELECT a.v, b.id, COUNT(*) FROM big a, (SELECT id FROM big LIMIT 500) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1",
    ),
    // Within one call of a function.
    alone("SELECT REPEAT('a', 400000) LIKE CONCAT('%', REPEAT('a', 100000), '_b%')"),
    alone("SELECT REPEAT('ä', 200000) LIKE CONCAT('%', REPEAT('ä', 50000), '_b%')"),
    alone(
        "SELECT JSON_CONTAINS((SELECT JSON_ARRAYAGG(s) FROM big), (SELECT JSON_ARRAYAGG(s) FROM same))",
    ),
    alone("SELECT a.*, b.* FROM big a, big b"),
    alone("INSERT INTO wide SELECT a.id * 20000 + b.id, a.s FROM big a, big b"),
    alone("UPDATE big a SET s = (SELECT MAX(MD5(CONCAT(a.s, b.s))) FROM same b)"),
    alone(
        "DELETE FROM big WHERE (SELECT COUNT(*) FROM same b WHERE MD5(CONCAT(big.s, b.s)) < '0') > 0",
    ),
    alone("CREATE TABLE made AS SELECT a.s FROM big a, big b"),
];

/// Statements that go through whole tables. `many` has a million rows, and as many refer to the one
/// of `parent`.
const WHOLE_TABLES: &[Case] = &[
    alone("CREATE INDEX i ON many (s)"),
    alone("ALTER TABLE many MODIFY v BIGINT"),
    alone("ALTER TABLE many ADD COLUMN w INT AS (v + 1) STORED, ALGORITHM = COPY"),
    alone("OPTIMIZE TABLE many"),
    alone("CHECK TABLE many"),
    alone("DELETE FROM parent"),
    alone("UPDATE parent SET id = 2"),
    alone(
        "UPDATE big a JOIN same b ON a.v % 10 = b.v % 10 SET a.v = 1, b.v = 2 WHERE MD5(CONCAT(a.s, b.s)) < '0'",
    ),
    alone(
        "DELETE a, b FROM big a JOIN same b ON a.v % 10 = b.v % 10 WHERE MD5(CONCAT(a.s, b.s)) < '0'",
    ),
    after(&["HANDLER many OPEN"], "HANDLER many READ FIRST WHERE MD5(CONCAT(s, s)) < '0'"),
];

/// A way to end a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    KillQuery,
    Kill,
    ClientGone,
    OutOfTime,
}

/// How long a statement may run on. The test's build is slow, and the machine may be.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 100 });
/// A slow round is repeated: the machine may have been busy.
const ROUNDS: usize = 20;
/// How long a slow machine may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time until a statement is ended.
const SOON: Duration = Duration::from_millis(60);
/// The time limit of a statement that runs out of time.
const TIME: Duration = Duration::from_millis(150);

/// Passes bytes between a client and the server until it is cut.
struct Relay {
    port: u16,
    streams: mpsc::Receiver<(TcpStream, TcpStream)>,
}

impl Relay {
    fn to(server: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, streams) = mpsc::channel();
        std::thread::spawn(move || {
            let client = listener.accept().unwrap().0;
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 16 << 10];
                    while let Ok(length @ 1..) = from.read(&mut buffer) {
                        if to.write_all(&buffer[..length]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
            sender.send((client, server)).unwrap();
        });
        Relay { port, streams }
    }

    fn cut(&self) {
        let (client, server) = self.streams.recv().unwrap();
        let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
    }
}

/// How a client is connected to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Plain,
    Compressed,
    Encrypted,
}

fn connect(port: u16) -> mysql::Conn {
    connect_over(port, Link::Plain)
}

fn connect_over(port: u16, link: Link) -> mysql::Conn {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(port);
    let options = options.user(Some("root")).db_name(Some("d")).prefer_socket(false);
    let tls = SslOpts::default().with_danger_accept_invalid_certs(true);
    let tls = tls.with_danger_skip_domain_validation(true);
    let options = match link {
        Link::Plain => options,
        Link::Compressed => options.compress(Some(mysql::Compression::fast())),
        Link::Encrypted => options.ssl_opts(Some(tls)),
    };
    mysql::Conn::new(options).unwrap()
}

fn prepare(server: &Server) {
    let mut client = server.connect();
    client.query_drop("CREATE DATABASE d").unwrap();
    client.query_drop("USE d").unwrap();
    let small = [
        "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE TABLE copy (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id))",
        "CREATE VIEW w AS SELECT id, v FROM t",
        "CREATE TABLE wide (id BIGINT PRIMARY KEY, s VARCHAR(60))",
    ];
    let same = ["CREATE TABLE same LIKE big", "INSERT INTO same SELECT * FROM big"];
    for statement in small.into_iter().chain(MAKE_BIG).chain(same) {
        client.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// Whether the process list has a connection, at work if `at_work`.
fn is_listed(watcher: &mut mysql::Conn, id: u32, at_work: bool) -> bool {
    let condition = if at_work { " AND command = 'Query'" } else { "" };
    let statement =
        format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}{condition}");
    watcher.query_first::<u64, _>(statement).unwrap() == Some(1)
}

/// Ends a statement in one way; returns how long it ran on, `None` if it had ended by itself.
fn end(server: &Server, watcher: &mut mysql::Conn, case: &Case, way: Way) -> Option<Duration> {
    let delay = if way == Way::OutOfTime { TIME } else { SOON };
    end_after(server, watcher, case, way, Link::Plain, delay)
}

/// Like [`end`], over a kind of connection, after the statement has run for `delay`.
fn end_after(
    server: &Server,
    watcher: &mut mysql::Conn,
    case: &Case,
    way: Way,
    link: Link,
    delay: Duration,
) -> Option<Duration> {
    let relay = Relay::to(server.port());
    let (sender, started) = mpsc::channel();
    let (ended, end) = mpsc::channel::<()>();
    let (port, first, statement) = (relay.port, case.first, case.statement);
    let is_answered = Arc::new(AtomicBool::new(false));
    let of_victim = Arc::clone(&is_answered);
    let victim = std::thread::spawn(move || {
        let mut client = connect_over(port, link);
        for statement in first {
            client.query_drop(statement).unwrap();
        }
        if way == Way::OutOfTime {
            let time_ms = delay.as_millis().max(1);
            client.query_drop(format!("SET max_execution_time = {time_ms}")).unwrap();
        }
        sender.send(client.connection_id()).unwrap();
        // The client reads no rows, so the server has to wait for it.
        let answer = client.query_iter(statement).map(|_| ());
        of_victim.store(true, Ordering::SeqCst);
        let _ = end.recv();
        if let Err(mysql::Error::MySqlError(error)) = &answer {
            assert!([1317, 3024, 1053].contains(&error.code), "{statement}: {error}");
        }
    });
    let id = started.recv().unwrap();
    let mut began = Instant::now();
    // On a busy machine it may be over before it was seen.
    let is_over = || is_answered.load(Ordering::SeqCst);
    while !is_over() && !is_listed(watcher, id, true) {
        assert!(began.elapsed() < PATIENCE, "does not run: {statement}");
        std::thread::sleep(Duration::from_millis(2));
    }
    match way {
        Way::OutOfTime => began += delay,
        _ => std::thread::sleep(delay),
    }
    let was_running = way == Way::OutOfTime || is_listed(watcher, id, true);
    match way {
        Way::KillQuery => watcher.query_drop(format!("KILL QUERY {id}")).unwrap(),
        Way::Kill => watcher.query_drop(format!("KILL {id}")).unwrap(),
        Way::ClientGone => relay.cut(),
        Way::OutOfTime => {}
    }
    if way != Way::OutOfTime {
        began = Instant::now();
    }
    let is_session_over = matches!(way, Way::Kill | Way::ClientGone);
    while is_listed(watcher, id, !is_session_over) {
        let took = began.elapsed();
        assert!(took < PATIENCE, "{way:?} does not end {}", case.statement);
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = Instant::now().saturating_duration_since(began);
    drop(ended);
    if way == Way::ClientGone {
        drop(relay);
    } else {
        relay.cut();
    }
    let _ = victim.join();
    while is_listed(watcher, id, false) {
        std::thread::sleep(Duration::from_millis(2));
    }
    was_running.then_some(took)
}

fn prepare_whole_tables(server: &Server) {
    let mut client = connect(server.port());
    for statement in [
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "INSERT INTO parent VALUES (1)",
        "CREATE TABLE many (id INT PRIMARY KEY, v INT, s VARCHAR(60), p INT DEFAULT 1, \
         FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO many (id, v, s) SELECT a.id * 50 + b.id, a.v, a.s \
         FROM big a, (SELECT id FROM big WHERE id <= 50) b",
    ] {
        client.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn check(cases: &[Case]) {
    let server = Server::start(&[], &[]);
    prepare(&server);
    check_at(&server, cases);
}

fn check_at(server: &Server, cases: &[Case]) {
    let mut watcher = server.connect();
    let mut late = Vec::new();
    for case in cases {
        let mut holder = connect(server.port());
        for statement in case.holder {
            holder.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        let is_query = case.statement.starts_with("SELECT") && !case.statement.contains("FOR ");
        let ways = [Way::KillQuery, Way::Kill, Way::ClientGone, Way::OutOfTime];
        for way in ways.into_iter().filter(|way| *way != Way::OutOfTime || is_query) {
            let took = fastest(|| end(server, &mut watcher, case, way));
            assert!(took.is_some(), "too short: {}", case.statement);
            late.extend(took.filter(|took| *took > LIMIT).map(|took| (way, took, case.statement)));
        }
        drop(holder);
        if case.holder.iter().any(|statement| statement.starts_with("XA ")) {
            watcher.query_drop("XA ROLLBACK 'ended'").unwrap();
        }
    }
    assert!(late.is_empty(), "these went on for too long: {late:#?}");
}

#[test]
fn waits_for_rows_end() {
    check(ROWS);
}

#[test]
fn waits_for_definitions_end() {
    check(DEFINITIONS);
}

#[test]
fn stages_that_compute_end() {
    check(STAGES);
}

#[test]
fn what_goes_through_whole_tables_ends() {
    let server = Server::start(&[], &[]);
    prepare(&server);
    prepare_whole_tables(&server);
    check_at(&server, WHOLE_TABLES);
}

/// The server notices that a client is gone over any kind of connection, whether it reads,
/// computes, waits for another session, or waits for the client to take rows.
#[test]
fn clients_of_all_connections_are_missed() {
    const CASES: &[Case] = &[
        alone("SELECT SLEEP(100)"),
        behind(ROW_LOCKED, "UPDATE t SET v = 3"),
        behind(TABLE_LOCKED, "SELECT * FROM t"),
        after(ROW, "SELECT COUNT(*) FROM big a, big b WHERE MD5(CONCAT(a.s, b.s)) < '0'"),
        after(COLUMNS, "SELECT COUNT(*) FROM big a, big b WHERE MD5(CONCAT(a.s, b.s)) < '0'"),
        alone("SELECT a.*, b.* FROM big a, big b"),
    ];
    let server = Server::start(&[], &[]);
    prepare(&server);
    let mut watcher = server.connect();
    let mut late = Vec::new();
    for (case, link) in CASES
        .iter()
        .flat_map(|case| [Link::Plain, Link::Compressed, Link::Encrypted].map(|link| (case, link)))
    {
        let mut holder = connect(server.port());
        case.holder.iter().for_each(|statement| holder.query_drop(statement).unwrap());
        let way = Way::ClientGone;
        let took = fastest(|| end_after(&server, &mut watcher, case, way, link, SOON));
        late.extend(took.filter(|took| *took > LIMIT).map(|took| (link, took, case.statement)));
    }
    assert!(late.is_empty(), "these went on for too long: {late:#?}");
}

/// The shortest of some rounds; one within [`LIMIT`] is the last. `None` if the statement ended by
/// itself in each round.
fn fastest(round: impl FnMut() -> Option<Duration>) -> Option<Duration> {
    fastest_within(LIMIT, round)
}

fn fastest_within(
    limit: Duration,
    mut round: impl FnMut() -> Option<Duration>,
) -> Option<Duration> {
    let mut fastest: Option<Duration> = None;
    for _ in 0..ROUNDS {
        if let Some(took) = round() {
            fastest = Some(fastest.map_or(took, |other| other.min(took)));
        }
        if fastest.is_some_and(|took| took <= limit) {
            break;
        }
    }
    fastest
}

/// Ends a statement of a megabyte at moments of its parsing, binding and planning, from the first
/// to the last. A prepared statement is only bound and planned.
#[test]
fn statements_end_while_they_are_parsed_bound_and_planned() {
    const MOMENTS: u32 = 4;
    let server = Server::start(&["--memory-budget", "1G"], &[]);
    prepare(&server);
    let mut watcher = server.connect();
    let alternatives: Vec<String> =
        (0..10_000).map(|number| format!("id = {number} AND v > {number}")).collect();
    let text = format!("SELECT COUNT(*) FROM t WHERE {}", alternatives.join(" OR "));
    let prepared = format!("PREPARE long_one FROM '{text}'");
    let (text, prepared): (&'static str, &'static str) = (text.leak(), prepared.leak());
    let cases = [
        Case { holder: &[], first: &[], statement: text },
        // A plan from before does not hold for the changed table.
        Case {
            holder: &[],
            first: vec![prepared, "ALTER TABLE t COMMENT = 'changed'"].leak(),
            statement: "EXECUTE long_one",
        },
    ];
    let mut late = Vec::new();
    for case in &cases {
        let mut client = connect(server.port());
        case.first.iter().for_each(|statement| client.query_drop(statement).unwrap());
        let began = Instant::now();
        client.query_drop(case.statement).unwrap();
        let whole = began.elapsed();
        // A machine that takes long for the whole takes longer to end it.
        let limit = LIMIT.max(whole / 4);
        for moment in 0..MOMENTS {
            let delay = whole * (2 * moment + 1) / (2 * MOMENTS);
            for way in [Way::KillQuery, Way::Kill, Way::ClientGone, Way::OutOfTime] {
                let delay = if way == Way::OutOfTime { delay.max(TIME) } else { delay };
                let link = Link::Plain;
                let end = || end_after(&server, &mut watcher, case, way, link, delay);
                let took = fastest_within(limit, end);
                let name = &case.statement[..16];
                late.extend(took.filter(|took| *took > limit).map(|took| (way, took, delay, name)));
            }
        }
    }
    assert!(late.is_empty(), "these went on for too long: {late:#?}");
}

/// `LOAD DATA LOCAL` gives its locks back when it is ended, even if the client sends nothing. A
/// client whose statement alone was ended must still send the end of its file before it gets an
/// answer.
#[test]
fn loads_of_silent_clients_end() {
    let server = Server::start(&[], &[]);
    prepare(&server);
    let mut watcher = server.connect();
    watcher.query_drop("USE d").unwrap();
    let mut late = Vec::new();
    for way in [Way::KillQuery, Way::Kill, Way::ClientGone] {
        for lines in ["", "1001\t1\n1002\t"] {
            let took = fastest(|| Some(end_load(&server, &mut watcher, way, lines)));
            late.extend(took.filter(|took| *took > LIMIT).map(|took| (way, took, lines)));
        }
    }
    assert!(late.is_empty(), "these went on for too long: {late:#?}");
    assert_eq!(watcher.query_first::<u64, _>("SELECT COUNT(*) FROM t").unwrap(), Some(3));
}

/// Ends a load in the middle of its file; returns how long its locks stayed.
fn end_load(server: &Server, watcher: &mut mysql::Conn, way: Way, lines: &'static str) -> Duration {
    let relay = Relay::to(server.port());
    let port = relay.port;
    let (sender, started) = mpsc::channel();
    let (ended, end) = mpsc::channel::<()>();
    let victim = std::thread::spawn(move || {
        let mut client = connect(port);
        let id = client.connection_id();
        client.set_local_infile_handler(Some(LocalInfileHandler::new(move |_, file| {
            file.write_all(lines.as_bytes())?;
            file.flush()?;
            sender.send(id).unwrap();
            let _ = end.recv();
            Ok(())
        })));
        client.query_drop("LOAD DATA LOCAL INFILE 'silent' INTO TABLE t")
    });
    let id = started.recv().unwrap();
    std::thread::sleep(SOON);
    watcher.query_drop("SET lock_wait_timeout = 1").unwrap();
    let change = "ALTER TABLE t COMMENT = 'free', ALGORITHM = INPLACE";
    let began = Instant::now();
    match way {
        Way::KillQuery => watcher.query_drop(format!("KILL QUERY {id}")).unwrap(),
        Way::Kill => watcher.query_drop(format!("KILL {id}")).unwrap(),
        Way::ClientGone | Way::OutOfTime => relay.cut(),
    }
    while watcher.query_drop(change).is_err() {
        assert!(began.elapsed() < PATIENCE, "{way:?} does not end the load");
    }
    let took = began.elapsed();
    drop(ended);
    let answer = victim.join().unwrap();
    match answer {
        Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1317, "{error}"),
        Err(_) => assert_ne!(way, Way::KillQuery),
        Ok(()) => panic!("the load went on after {way:?}"),
    }
    took
}
