//! A server keeps its memory budget under statements that would take more.
#![allow(clippy::disallowed_methods, reason = "tests look at the clock")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};
use support::{MAKE_BIG, Server};

const MEBIBYTE: u64 = 1 << 20;
const DURATION: Duration = Duration::from_secs(8);

/// MySQL's error numbers for a server without free memory.
const REFUSALS: [u16; 5] = [1037, 1038, 1041, 1153, 1301];

fn number(connection: &mut Conn, name: &str) -> u64 {
    let row: (String, u64) =
        connection.query_first(format!("SHOW STATUS LIKE '{name}'")).unwrap().unwrap();
    row.1
}

/// A load: takes the number of the round and a connection, which it may fill with state.
type Load = fn(u64, &mut Conn) -> mysql::Result<()>;

/// Runs a query and reads all rows.
fn read(connection: &mut Conn, query: &str) -> mysql::Result<()> {
    connection.query::<mysql::Row, _>(query).map(drop)
}

fn long_literals(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    let text = "x".repeat(((4 + round % 13) * MEBIBYTE) as usize);
    let read: Option<String> = connection.query_first(format!("SELECT '{text}' AS a"))?;
    assert_eq!(read.map(|read| read.len()), Some(text.len()));
    let length: Option<usize> = connection.query_first(format!("SELECT LENGTH('{text}')"))?;
    assert_eq!(length, Some(text.len()));
    Ok(())
}

fn user_variables(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    if round % 16 == 15 {
        connection.reset()?;
    }
    connection.query_drop(format!("SET @v{round} = REPEAT('v', {})", MEBIBYTE + round))
}

fn long_rows(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    let (id, length) = (round % 7, ((1 + round % 9) * MEBIBYTE) as usize);
    connection.exec_drop(
        "REPLACE INTO load_test.t VALUES (?, ?)",
        (id, Value::Bytes(vec![b'r'; length])),
    )?;
    let read: Option<Vec<u8>> =
        connection.exec_first("SELECT a FROM load_test.t WHERE id = ?", (id,))?;
    assert_eq!(read.map(|read| read.len()), Some(length));
    Ok(())
}

fn functions(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    let bytes = (1 + round % 11) * MEBIBYTE;
    let of = match round % 6 {
        0 => format!("LENGTH(LPAD('a', {bytes}, 'bcd'))"),
        1 => format!("LENGTH(CONCAT(REPEAT('a', {bytes}), SPACE({bytes})))"),
        2 => format!("LENGTH(REPLACE(REPEAT('a', {bytes}), 'a', 'bb'))"),
        3 => format!("LENGTH(HEX(REPEAT('a', {bytes})))"),
        4 => format!("JSON_LENGTH(CONCAT('[', REPEAT('1,', {bytes} DIV 8), '1]'))"),
        _ => format!("LENGTH(TO_BASE64(REVERSE(UPPER(REPEAT('a', {bytes})))))"),
    };
    read(connection, &format!("SELECT {of}"))
}

fn aggregates(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    connection.query_drop("SET group_concat_max_len = 1 << 30, sort_buffer_size = 1 << 20")?;
    let source = "load_test.n x JOIN load_test.n y JOIN load_test.n z";
    let query = match round % 3 {
        0 => format!("SELECT LENGTH(GROUP_CONCAT(REPEAT('g', 900))) FROM {source}"),
        1 => {
            format!("SELECT COUNT(DISTINCT CONCAT(x.i, y.i, z.i, REPEAT('d', 900))) FROM {source}")
        }
        _ => {
            format!("SELECT CONCAT(z.i, REPEAT('s', 900)) s FROM {source} ORDER BY s DESC LIMIT 9")
        }
    };
    read(connection, &query)
}

fn prepared_statements(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    let text = "p".repeat((MEBIBYTE + round % 1000) as usize);
    let statement = connection.prep(format!("SELECT LENGTH('{text}'), ?"))?;
    connection.exec_drop(&statement, (1,))
}

fn documents(round: u64, connection: &mut Conn) -> mysql::Result<()> {
    let members = (1 + round % 5) * 20_000;
    let of = match round % 3 {
        0 => format!("CAST(CONCAT('[', REPEAT('\"ab\",', {members}), '1]') AS JSON)"),
        1 => format!("JSON_ARRAY(REPEAT('a', {members}), JSON_OBJECT('k', SPACE({members})))"),
        _ => format!("JSON_PRETTY(CONCAT('[', REPEAT('1,', {members}), '1]'))"),
    };
    read(connection, &format!("SELECT {of}"))
}

static LOADS: [Load; 7] = [
    long_literals,
    user_variables,
    long_rows,
    functions,
    aggregates,
    prepared_statements,
    documents,
];

/// Runs one load until the time is up, on one connection.
fn run(load: Load, port: u16, compressed: bool, end: Instant, done: &AtomicU64) {
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .user(Some("root"))
        .prefer_socket(false)
        .stmt_cache_size(8)
        .compress(compressed.then_some(mysql::Compression::fast()));
    let mut connection = Conn::new(options).unwrap();
    for round in 0.. {
        if Instant::now() > end {
            return;
        }
        match load(round, &mut connection) {
            Ok(()) => {
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(mysql::Error::MySqlError(error)) => {
                assert!(REFUSALS.contains(&error.code), "{} {}", error.code, error.message);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_budget_is_kept_while_everything_that_takes_memory_runs_at_once() {
    let server = Server::start(&["--memory-budget", "160M"], &[]);
    let mut connection = server.connect();
    let budget = number(&mut connection, "Firn_memory_budget");
    connection.query_drop("CREATE DATABASE load_test").unwrap();
    connection.query_drop("CREATE TABLE load_test.t (id INT PRIMARY KEY, a LONGBLOB)").unwrap();
    connection.query_drop("CREATE TABLE load_test.n (i INT PRIMARY KEY)").unwrap();
    let numbers = (0..30).map(|i| format!("({i})")).collect::<Vec<_>>().join(",");
    connection.query_drop(format!("INSERT INTO load_test.n VALUES {numbers}")).unwrap();

    let most = AtomicU64::new(0);
    let done: Vec<AtomicU64> = LOADS.iter().map(|_| AtomicU64::new(0)).collect();
    // A slow machine needs more than one round to do enough.
    for _ in 0..10 {
        let stopped = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    most.fetch_max(server.resident_bytes(), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let end = Instant::now() + DURATION;
            let loads: Vec<_> = LOADS
                .iter()
                .zip(&done)
                .enumerate()
                .map(|(at, (load, done))| {
                    let port = server.port();
                    threads.spawn(move || run(*load, port, at % 3 == 2, end, done))
                })
                .collect();
            let ended: Vec<_> = loads.into_iter().map(|load| load.join()).collect();
            stopped.store(true, Ordering::Relaxed);
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        let refused = number(&mut connection, "Firn_memory_refusals");
        if refused > 0 && done.iter().map(|done| done.load(Ordering::Relaxed)).sum::<u64>() > 10 {
            break;
        }
    }
    let most = most.into_inner();
    let done: Vec<u64> = done.into_iter().map(AtomicU64::into_inner).collect();
    println!("{} of {} MiB; done {done:?}", most / MEBIBYTE, budget / MEBIBYTE);
    assert!(most <= budget + budget / 10, "{} of {} MiB", most / MEBIBYTE, budget / MEBIBYTE);
    assert!(number(&mut connection, "Firn_memory_refusals") > 0, "the loads are too light");
    assert!(done.iter().sum::<u64>() > 10, "{done:?}");

    // Freed memory goes back, and the pool fills its frames again.
    let end = Instant::now() + Duration::from_secs(120);
    let settled = |connection: &mut Conn| {
        let promised = number(connection, "Firn_memory_promised");
        promised == 0 && server.resident_bytes() < budget * 9 / 10
    };
    while !settled(&mut connection) {
        let resident = server.resident_bytes() / MEBIBYTE;
        assert!(Instant::now() < end, "{resident} of {} MiB are kept", budget / MEBIBYTE);
        std::thread::sleep(Duration::from_millis(100));
    }
    let length: Option<u64> = connection.query_first("SELECT LENGTH(SPACE(1 << 22))").unwrap();
    assert_eq!(length, Some(1 << 22));
}

/// What the allocator and the program keep after large statements leaves room for small ones.
#[test]
fn a_small_node_has_room_again_after_large_statements() {
    const LARGE: &[&str] = &[
        "SELECT a.s FROM big a, (SELECT 1 FROM big LIMIT 500) b ORDER BY a.s, a.v LIMIT 1 OFFSET 9000000",
        "SELECT a.v, b.id, COUNT(*) FROM big a, (SELECT id FROM big LIMIT 500) b GROUP BY 1, 2 ORDER BY 3 LIMIT 1",
        "SELECT COUNT(*) FROM (SELECT DISTINCT a.v, b.id FROM big a, (SELECT id FROM big LIMIT 500) b) c",
        "SELECT MAX(n) FROM (SELECT SUM(a.v) OVER (PARTITION BY a.v % 7 ORDER BY a.s) n \
         FROM big a, (SELECT 1 FROM big LIMIT 500) b) c",
    ];
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    for statement in ["CREATE DATABASE d", "USE d"].into_iter().chain(MAKE_BIG) {
        connection.query_drop(statement).unwrap();
    }
    connection.query_drop("SET max_execution_time = 150").unwrap();
    for executor in ["ROW", "VECTORISED"] {
        connection.query_drop(format!("SET firn_executor = {executor}")).unwrap();
        // Each ends in its time, or is refused memory.
        LARGE.iter().for_each(|statement| drop(connection.query_drop(statement)));
    }
    connection.query_drop("SET max_execution_time = 0").unwrap();
    let budget = number(&mut connection, "Firn_memory_budget");
    let end = Instant::now() + Duration::from_secs(30);
    while server.resident_bytes() > budget / 3 * 2 {
        let resident = server.resident_bytes() / MEBIBYTE;
        assert!(Instant::now() < end, "{resident} of {} MiB are kept", budget / MEBIBYTE);
        std::thread::sleep(Duration::from_millis(100));
    }
    let document = "SELECT JSON_LENGTH((SELECT JSON_ARRAYAGG(s) FROM big))";
    assert_eq!(connection.query_first(document).unwrap(), Some(20_000));
}

#[test]
fn a_statement_that_finds_no_memory_ends_and_its_connection_goes_on() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    connection.query_drop("SET GLOBAL max_allowed_packet = 1 << 30").unwrap();
    let mut connection = server.connect();
    let code = |result: mysql::Result<()>| match result {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{other:?}"),
    };
    // A text beyond the budget is refused before it has been received.
    let literal = format!("SELECT '{}'", "x".repeat(200 << 20));
    assert_eq!(code(read(&mut connection, &literal)), 1041);
    assert_eq!(code(read(&mut connection, "SELECT LENGTH(REPEAT('x', 200 << 20))")), 1041);
    assert_eq!(code(connection.query_drop("SET @a = REPEAT('x', 200 << 20)")), 1041);
    let value = Value::Bytes(vec![b'x'; 200 << 20]);
    assert_eq!(
        code(connection.exec::<mysql::Row, _, _>("SELECT LENGTH(?)", (value,)).map(drop)),
        1041
    );
    // A value beyond `max_allowed_packet` becomes NULL, with a warning.
    connection.query_drop("SET GLOBAL max_allowed_packet = 1 << 20").unwrap();
    let mut connection = server.connect();
    let null: Option<Option<String>> =
        connection.query_first("SELECT REPEAT('x', 2 << 20)").unwrap();
    assert_eq!(null, Some(None));
    let warning: Option<(String, u16, String)> = connection.query_first("SHOW WARNINGS").unwrap();
    assert_eq!(warning.map(|warning| warning.1), Some(1301));
}

#[test]
fn functions_answer_null_for_what_no_packet_holds() {
    let server = Server::start(&[], &[]);
    let mut connection = server.connect();
    connection.query_drop("SET GLOBAL max_allowed_packet = 1 << 20").unwrap();
    let mut connection = server.connect();
    connection
        .query_drop("SET @half = REPEAT('a', 600000), @@group_concat_max_len = 1 << 30")
        .unwrap();
    // As MySQL 9.7 answers: the length of the text, or the function that cannot make it.
    let cases: [(&str, Result<u64, &str>); 32] = [
        ("LPAD('a', 262144, 'b')", Ok(262_144)),
        ("LPAD('a', 262145, 'b')", Err("lpad")),
        ("RPAD('a', 262145, 'b')", Err("rpad")),
        ("LPAD(_binary'a', 1048576, _binary'b')", Ok(1_048_576)),
        ("CAST('a' AS BINARY(1048576))", Ok(1_048_576)),
        ("CAST('a' AS BINARY(1048577))", Err("cast_as_binary")),
        ("WEIGHT_STRING(REPEAT('a', 65537) COLLATE utf8mb4_0900_ai_ci)", Err("weight_string")),
        ("WEIGHT_STRING(REPEAT('a', 32768) COLLATE utf8mb4_0900_as_ci)", Err("weight_string")),
        ("WEIGHT_STRING(REPEAT('a', 262144) COLLATE utf8mb4_0900_bin)", Ok(262_144)),
        ("WEIGHT_STRING(REPEAT('a', 262145) COLLATE utf8mb4_0900_bin)", Err("weight_string")),
        ("WEIGHT_STRING(REPEAT('a', 524289) COLLATE utf8mb4_general_ci)", Err("weight_string")),
        ("WEIGHT_STRING(REPEAT('a', 349526) COLLATE utf8mb4_bin)", Err("weight_string")),
        ("WEIGHT_STRING(REPEAT('a', 32769) COLLATE utf8mb4_unicode_ci)", Err("weight_string")),
        ("JSON_ARRAY(@half)", Ok(600_004)),
        ("JSON_ARRAY(@half, @half)", Err("json_array")),
        ("CONCAT(JSON_ARRAY(@half, @half))", Err("json_array")),
        ("IF(1, JSON_ARRAY(@half, @half), 1)", Err("json_array")),
        ("JSON_OBJECT('k', @half, 'l', @half)", Err("json_object")),
        ("JSON_EXTRACT(JSON_ARRAY(@half, @half), '$')", Err("json_extract")),
        ("JSON_EXTRACT(JSON_ARRAY(@half, @half), '$[0]')", Ok(600_002)),
        ("JSON_SET(JSON_ARRAY(@half), '$[1]', @half)", Err("json_set")),
        ("JSON_ARRAY_APPEND(JSON_ARRAY(@half), '$', @half)", Err("json_array_append")),
        ("JSON_MERGE_PRESERVE(JSON_ARRAY(@half), JSON_ARRAY(@half))", Err("json_merge_preserve")),
        ("JSON_LENGTH(JSON_ARRAY(@half, @half))", Ok(1)),
        ("JSON_ARRAYAGG(@half)", Ok(600_004)),
        ("JSON_ARRAYAGG(JSON_ARRAY(@half, @half))", Err("json_arrayagg")),
        ("JSON_OBJECTAGG('k', JSON_ARRAY(@half, @half))", Err("json_objectagg")),
        ("AES_ENCRYPT(REPEAT('a', 1048576), 'k')", Ok(1_048_592)),
        ("DATE_FORMAT('2020-01-01', REPEAT('%W', 400000))", Ok(3_600_000)),
        ("CONCAT(@half, @half)", Err("concat")),
        ("TO_BASE64(CONCAT(@half, REPEAT('a', 400000)))", Err("to_base64")),
        ("EXPORT_SET(3, @half, 'b', ',', 2)", Err("export_set")),
    ];
    for (expression, expected) in cases {
        let length: Option<Option<u64>> =
            connection.query_first(format!("SELECT LENGTH({expression})")).unwrap();
        let warning: Option<(String, u16, String)> =
            connection.query_first("SHOW WARNINGS").unwrap();
        let answered = match (length.flatten(), warning) {
            (Some(length), None) => Ok(length),
            (length, warning) => Err((length, warning.map(|warning| warning.2))),
        };
        let expected = expected.map_err(|function| {
            let limit = 1 << 20;
            let message = format!(
                "Result of {function}() was larger than max_allowed_packet ({limit}) - truncated"
            );
            (None, Some(message))
        });
        assert_eq!(answered, expected, "{expression}");
    }
    let error = read(&mut connection, "SELECT REGEXP_REPLACE(@half, 'a', 'bb')").unwrap_err();
    assert!(matches!(error, mysql::Error::MySqlError(error) if error.code == 3684));
}
