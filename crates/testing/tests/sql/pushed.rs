//! What a remote node evaluates: filters, limits and groups give the rows, errors and warnings of a
//! statement that evaluates everything itself, whatever the session's settings.

use mysql::prelude::Queryable;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use sqllogictest::{DB, DBOutput};

use crate::client::Client;
use crate::counting_link::start_counted;
use crate::server::Server;

/// How many statements are compared.
const STATEMENTS: u32 = 600;

/// Rows that overflow, do not divide, are NULL, are no numbers, or lie out of line.
const TABLE: &[&str] = &[
    "CREATE TABLE t (
        id INT PRIMARY KEY, i INT, b BIGINT, u BIGINT UNSIGNED, d DECIMAL(10,2), e DECIMAL(30,6),
        f FLOAT, g DOUBLE, s VARCHAR(40), p CHAR(8) COLLATE utf8mb4_bin,
        l VARCHAR(20) CHARACTER SET latin1, w TEXT, x VARBINARY(10), day DATE, at DATETIME(2),
        ts TIMESTAMP NULL, h TIME, m ENUM('a', 'b'), KEY (i))",
    "INSERT INTO t (id, i, b, u, d, e, f, g, s, p, l, w, x, day, at, ts, h, m)
        WITH RECURSIVE n AS (SELECT 1 k UNION ALL SELECT k + 1 FROM n WHERE k < 400)
        SELECT k, IF(k % 11 = 0, NULL, k % 17 - 8),
            CASE k % 50 WHEN 0 THEN 9223372036854775807 WHEN 1 THEN NULL ELSE k * 1000 END,
            IF(k % 50 = 3, 18446744073709551615, k % 5), (k % 37) / 4 - 3,
            IF(k % 40 = 7, 999999999999999999999999.999999, k / 7), k / 3, (k % 23) / 8,
            CASE k % 9 WHEN 0 THEN 'Straße' WHEN 1 THEN 'STRASSE ' WHEN 2 THEN NULL WHEN 3 THEN '12x'
                WHEN 4 THEN '' ELSE CONCAT('row ', k % 6) END,
            ELT(k % 4 + 1, 'a', 'A', 'b ', NULL), ELT(k % 3 + 1, 'é', 'E', '7'),
            IF(k % 60 = 5, REPEAT('w', 20000), CONCAT('w', k % 3)), UNHEX(HEX(k % 300)),
            DATE_ADD('2025-12-20', INTERVAL k % 40 DAY),
            DATE_ADD('2025-12-20 23:00:00.25', INTERVAL k HOUR),
            DATE_ADD('2025-12-20 23:00:00', INTERVAL k % 9 HOUR), SEC_TO_TIME(k * 61 % 90000),
            IF(k % 2 = 0, 'a', 'b') FROM n",
];

/// Settings under which statements differ.
const SETTINGS: &[&str] = &[
    "SET sql_mode = DEFAULT",
    "SET sql_mode = ''",
    "SET sql_mode = 'ALLOW_INVALID_DATES,TIME_TRUNCATE_FRACTIONAL,NO_UNSIGNED_SUBTRACTION'",
    "SET time_zone = '+05:30'",
    "SET time_zone = DEFAULT",
    "SET div_precision_increment = 0",
    "SET div_precision_increment = DEFAULT",
    "SET default_week_format = 3",
];

fn any_of(texts: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(texts).prop_map(str::to_owned).boxed()
}

/// Values, most of which a node can evaluate.
fn value() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        6 => any_of(&["i", "b", "u", "d", "e", "f", "g", "s", "p", "l", "x", "day", "at", "w", "h"]),
        1 => any_of(&["ts", "m", "NOW() > ts", "@@div_precision_increment"]),
        3 => any_of(&["0", "1", "-3", "2.5", "1e2", "9223372036854775807", "NULL", "'row 3'", "'7'",
            "'2026-01-01'", "DATE'2026-01-03'", "'é'", "''"]),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => (two.clone(), any_of(&["+", "-", "*", "%", "DIV", "/", "&", "|", "<<"]))
                .prop_map(|((a, b), sign)| format!("({a} {sign} {b})")),
            3 => (inner.clone(), any_of(&["ABS", "SIGN", "FLOOR", "ROUND", "LENGTH", "CHAR_LENGTH",
                "UPPER", "LOWER", "REVERSE", "TRIM", "HEX", "CRC32", "YEAR", "MONTH", "DAYOFYEAR",
                "WEEK", "HOUR", "LAST_DAY", "BIT_COUNT", "-", "SQRT"]))
                .prop_map(|(a, name)| format!("{name}({a})")),
            2 => (two.clone(), any_of(&["GREATEST", "LEAST", "CONCAT", "LOCATE", "STRCMP", "IFNULL",
                "NULLIF", "COALESCE", "LEFT", "ROUND", "DATEDIFF", "FIELD"]))
                .prop_map(|((a, b), name)| format!("{name}({a}, {b})")),
            // A date is a count of twenty million.
            1 => two.clone().prop_map(|(a, b)| format!("REPEAT({a}, {b} % 999)")),
            1 => (inner.clone(), any_of(&["SIGNED", "UNSIGNED", "CHAR", "DECIMAL(8,2)", "BINARY",
                "DATE", "DATETIME", "DOUBLE", "CHAR(2)"]))
                .prop_map(|(a, ty)| format!("CAST({a} AS {ty})")),
            1 => (two, inner).prop_map(|((a, b), c)| format!("IF({a}, {b}, {c})")),
        ]
    })
    .boxed()
}

fn condition() -> BoxedStrategy<String> {
    let two = || (value(), value());
    let leaf = prop_oneof![
        6 => (two(), any_of(&["=", "<", "<=", "<>", ">", "<=>"]))
            .prop_map(|((a, b), sign)| format!("{a} {sign} {b}")),
        1 => two().prop_map(|(a, b)| format!("{a} BETWEEN -2 AND {b}")),
        1 => two().prop_map(|(a, b)| format!("{a} NOT IN (1, {b}, 'row 2')")),
        1 => (value(), any_of(&["'%o%'", "'r_w%'", "'STRA%'", "'1%'"]))
            .prop_map(|(a, pattern)| format!("{a} LIKE {pattern}")),
        1 => (value(), any_of(&["NULL", "NOT NULL", "TRUE", "NOT FALSE"]))
            .prop_map(|(a, test)| format!("{a} IS {test}")),
        1 => value(),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        (inner.clone(), any_of(&["AND", "OR", "XOR"]), inner)
            .prop_map(|(a, sign, b)| format!("({a} {sign} {b})"))
    })
    .boxed()
}

/// A query whose rows have one order in both servers.
fn query() -> BoxedStrategy<String> {
    let aggregates = "COUNT(*), COUNT(s), SUM(i), MIN(d), MAX(e), AVG(d), SUM(b)";
    prop_oneof![
        4 => condition().prop_map(|c| format!("SELECT id FROM t WHERE {c}")),
        2 => (condition(), 0..9, 0..9)
            .prop_map(|(c, n, o)| format!("SELECT id FROM t WHERE {c} LIMIT {n} OFFSET {o}")),
        1 => (condition(), value())
            .prop_map(|(c, v)| format!("SELECT id, {v} FROM t WHERE i > -5 AND {c} LIMIT 5")),
        2 => (condition(), value()).prop_map(move |(c, v)| {
            format!("SELECT {aggregates}, COUNT({v}), SUM({v}) FROM t WHERE {c}")
        }),
        3 => (condition(), value(), value()).prop_map(move |(c, k, v)| {
            format!("SELECT {k}, {aggregates}, MAX({v}) FROM t WHERE {c} GROUP BY {k}")
        }),
        2 => (any_of(&["s", "p", "d", "i + 1", "UPPER(s)", "YEAR(day)", "i > 3", "w", "x", "g"]),
            any_of(&["i", "i * 2", "d + e", "u", "b", "CHAR_LENGTH(s)"]))
            .prop_map(move |(k, v)| {
                format!("SELECT {k}, {aggregates}, SUM({v}), MIN({v}) FROM t GROUP BY {k}")
            }),
    ]
    .boxed()
}

/// Rows or the error, and the warnings.
fn outcome(statement: &str, client: &mut Client) -> String {
    let done = match client.run(statement) {
        Ok(DBOutput::Rows { mut rows, .. }) => {
            if !statement.contains("LIMIT") {
                rows.sort();
            }
            format!("{rows:?}")
        }
        Ok(_) => "no rows".to_owned(),
        Err(error) => error.to_string(),
    };
    let warnings: Vec<(String, u16, String)> =
        client.connection().query("SHOW WARNINGS").expect("warnings");
    format!("{done}\n{warnings:?}")
}

fn prepare(server: &Server) -> Client {
    let mut client = Client::connect(server.port(), None);
    // Plans must depend on the statements alone.
    client.set_global("innodb_stats_auto_recalc = OFF");
    client.make_schema("pushed");
    client.connection().query_drop("USE pushed").expect("the schema");
    for statement in TABLE {
        client.connection().query_drop(*statement).expect(statement);
    }
    client.connection().query_drop("SET firn_executor = ROW").expect("the setting");
    client
}

/// A statement has one meaning, whether a node evaluates parts of it or not. Many of the statements
/// are evaluated by the node: fewer bytes come than the table has.
#[test]
fn a_node_evaluates_as_the_statement_does() {
    let embedded = Server::start_with(|rows| rows);
    let (messages, link) = start_counted();
    let mut clients = [prepare(&embedded), prepare(&messages)];
    let mut runner = TestRunner::new(Config { cases: 1, ..Config::default() });
    let mut reduced = 0;
    for number in 0..STATEMENTS {
        if number % 10 == 0 {
            let setting = any_of(SETTINGS).new_tree(&mut runner).expect("a setting").current();
            for client in &mut clients {
                client.connection().query_drop(&setting).expect(&setting);
            }
        }
        let statement = query().new_tree(&mut runner).expect("a statement").current();
        let expected = outcome(&statement, &mut clients[0]);
        let before = link.counts().received_bytes;
        let found = outcome(&statement, &mut clients[1]);
        reduced += u32::from(link.counts().received_bytes - before < 10_000);
        assert_eq!(found, expected, "{statement}");
    }
    println!("{reduced} of {STATEMENTS} statements brought few rows");
    assert!(reduced > STATEMENTS / 8, "the node evaluated only {reduced} of {STATEMENTS}");
}

/// The bounds of a range are evaluated once, also where the node declines to compute groups.
#[test]
fn a_bound_warns_once() {
    let embedded = Server::start_with(|rows| rows);
    let (messages, _link) = start_counted();
    let mut clients = [prepare(&embedded), prepare(&messages)];
    let statement = "SELECT COUNT(*) FROM t WHERE DAYOFYEAR('') > i";
    let [expected, found] = clients.each_mut().map(|client| outcome(statement, client));
    assert_eq!(found, expected);
}

/// The items of a list are evaluated, and warn, if NULL before `IN` is not written but computed.
#[test]
fn a_computed_null_is_not_sent_as_a_written_one() {
    let embedded = Server::start_with(|rows| rows);
    let (messages, _link) = start_counted();
    let mut clients = [prepare(&embedded), prepare(&messages)];
    for client in &mut clients {
        client.connection().query_drop("SET sql_mode = ''").expect("the setting");
    }
    for null in ["('' % '')", "SQRT(NULL)"] {
        let statement = format!("SELECT id FROM t WHERE {null} NOT IN (1, w, 'row 2')");
        let [expected, found] = clients.each_mut().map(|client| outcome(&statement, client));
        assert!(expected.contains("'row 2'"), "{expected}");
        assert_eq!(found, expected, "{statement}");
    }
    let statement = "SELECT id FROM t WHERE ? NOT IN (1, w, 'row 2')";
    let [expected, found] = clients.each_mut().map(|client| {
        let connection = client.connection();
        let rows: Vec<u32> = connection.exec(statement, (None::<i32>,)).expect("rows");
        (rows, connection.query::<(String, u16, String), _>("SHOW WARNINGS").expect("warnings"))
    });
    assert_eq!(found, expected, "{statement}");
}
