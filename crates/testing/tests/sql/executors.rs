//! Both executors over the same rows: random values of each type, and queries that compute,
//! compare, group, order and join them. A replica answers the same queries with both.

use mysql::prelude::Queryable;
use mysql::{Row, Value};

use crate::client::Client;
use crate::replica::Follower;
use crate::server::Server;

/// Rows of the table; enough for several batches of a feed.
const ROWS: u64 = 5_000;

/// Pseudorandom numbers that are the same in each run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    /// One of ten values is NULL.
    fn or_null(&mut self, value: impl FnOnce(&mut Numbers) -> String) -> String {
        if self.next(10) == 0 { "NULL".to_owned() } else { value(self) }
    }

    fn row(&mut self, id: u64) -> String {
        let texts = ["", "a", "A", "ä", "b ", "b", "straße", "STRASSE", "Zz", "%_\\\\"];
        let values = [
            id.to_string(),
            self.or_null(|numbers| (numbers.next(256) as i64 - 128).to_string()),
            self.or_null(|numbers| (numbers.next(1 << 31) * numbers.next(1 << 31)).to_string()),
            self.or_null(|numbers| {
                format!("{}.{:03}", numbers.next(2_000_000) as i64 - 1_000_000, numbers.next(1000))
            }),
            self.or_null(|numbers| format!("{}e-2", numbers.next(4_000_000) as i64 - 2_000_000)),
            self.or_null(|numbers| format!("'{}'", texts[numbers.next(10) as usize])),
            self.or_null(|numbers| format!("'{}'", texts[numbers.next(10) as usize])),
            self.or_null(|numbers| {
                format!(
                    "'19{:02}-{:02}-{:02}'",
                    numbers.next(100),
                    numbers.next(12) + 1,
                    numbers.next(28) + 1
                )
            }),
            self.or_null(|numbers| {
                let (day, hour) = (numbers.next(28) + 1, numbers.next(24));
                format!("'2024-02-{day:02} {hour:02}:30:00.{:03}'", numbers.next(1000))
            }),
            self.or_null(|numbers| format!("'-{}:{:02}:07'", numbers.next(800), numbers.next(60))),
            self.or_null(|numbers| (1901 + numbers.next(200)).to_string()),
            self.or_null(|numbers| (1 + numbers.next(3)).to_string()),
            self.or_null(|numbers| numbers.next(8).to_string()),
        ];
        format!("({})", values.join(","))
    }
}

/// Expressions over the table's columns.
const EXPRESSIONS: &[&str] = &[
    "i",
    "u",
    "d",
    "f",
    "t",
    "b",
    "dt",
    "ts",
    "tm",
    "y",
    "e",
    "s",
    "i + 1",
    "i * i - 3",
    "i / 7",
    "u % 10",
    "i DIV 4",
    "-i",
    "d + i",
    "d * d",
    "d - 0.05",
    "d / 3",
    "f * 2",
    "f + d",
    "i = 5",
    "i < u",
    "i <=> NULL",
    "d > i",
    "d >= 12.5",
    "f < 0",
    "f = d",
    "t = 'A'",
    "t < 'b'",
    "t = b",
    "b = 'a'",
    "t LIKE 's%'",
    "t NOT LIKE '_'",
    "b LIKE '%a%'",
    "t IN ('a', 'strasse')",
    "t NOT IN ('a', NULL)",
    "i IN (1, 2, 3, NULL)",
    "dt > '1950-06-01'",
    "dt = ts",
    "ts < '2024-02-14'",
    "tm > '-100:00:00'",
    "YEAR(dt)",
    "MONTH(ts)",
    "DAY(dt)",
    "EXTRACT(YEAR FROM ts)",
    "EXTRACT(HOUR FROM ts)",
    "dt + INTERVAL 1 MONTH",
    "y > 2000",
    "e = 'two'",
    "e > 1",
    "s",
    "FIND_IN_SET('x', s)",
    "i IS NULL",
    "i IS NOT TRUE",
    "NOT i",
    "i AND d",
    "i OR u",
    "i XOR f",
    "i BETWEEN -5 AND 5",
    "d BETWEEN i AND u",
    "CASE WHEN i > 0 THEN d WHEN i < -50 THEN 0 END",
    "CASE i WHEN 1 THEN 'one' WHEN 2 THEN t ELSE 'more' END",
    "COALESCE(t, b, 'none')",
    "COALESCE(i, d)",
    "IFNULL(d, 0)",
    "NULLIF(i, 5)",
    "IF(t = 'a', i, NULL)",
    "SUBSTRING(t, 2, 3)",
    "CONCAT(t, '-', i)",
    "UPPER(t)",
    "LENGTH(t)",
    "CAST(d AS SIGNED)",
    "CAST(i AS DECIMAL(10, 2))",
    "CAST(d AS DOUBLE)",
    "CAST(t AS BINARY)",
    "ROUND(d, 1)",
    "ABS(i)",
    "GREATEST(i, 3)",
    "u * 3",
    "i + u",
    "d * d * d * d * d",
];

const AGGREGATES: &[&str] = &[
    "COUNT(*)",
    "COUNT(i)",
    "COUNT(DISTINCT t)",
    "SUM(i)",
    "SUM(d)",
    "SUM(u)",
    "AVG(i)",
    "AVG(d)",
    "SUM(f)",
    "AVG(f)",
    "MIN(i)",
    "MAX(u)",
    "MIN(d)",
    "MAX(f)",
    "MIN(t)",
    "MAX(b)",
    "MIN(dt)",
    "MAX(ts)",
    "MIN(tm)",
    "MAX(y)",
    "MIN(e)",
    "BIT_OR(i)",
    "BIT_XOR(u)",
    "STDDEV(i)",
    "VAR_SAMP(d)",
    "SUM(DISTINCT i)",
    "SUM(CASE WHEN t = 'a' THEN d ELSE 0 END)",
    "SUM(d * (1 - i))",
    "GROUP_CONCAT(DISTINCT e ORDER BY e)",
];

fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for expression in EXPRESSIONS {
        queries.push(format!("SELECT id, {expression} FROM v"));
        queries.push(format!("SELECT id FROM v WHERE {expression}"));
        queries
            .push(format!("SELECT {expression}, COUNT(*), MIN(id) FROM v GROUP BY {expression}"));
        queries.push(format!("SELECT DISTINCT {expression} FROM v"));
        queries.push(format!("SELECT id FROM v ORDER BY {expression}, id LIMIT 70 OFFSET 20"));
        queries.push(format!("SELECT id FROM v ORDER BY {expression} DESC, id"));
    }
    for aggregate in AGGREGATES {
        queries.push(format!("SELECT {aggregate} FROM v"));
        queries.push(format!("SELECT {aggregate} FROM v WHERE id < 0"));
        queries.push(format!("SELECT t, {aggregate} FROM v GROUP BY t"));
        queries.push(format!("SELECT e, y > 2000, {aggregate} FROM v GROUP BY e, y > 2000"));
    }
    for key in ["i", "t", "dt", "e", "d"] {
        for join in ["JOIN", "LEFT JOIN"] {
            queries.push(format!(
                "SELECT COUNT(*), SUM(a.id), SUM(w.id) FROM v a {join} w ON a.{key} = w.{key} AND w.id > a.id - 50"
            ));
        }
        queries
            .push(format!("SELECT id FROM v WHERE {key} IN (SELECT {key} FROM w WHERE id < 20)"));
        queries.push(format!(
            "SELECT id FROM v WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.{key} = v.{key} AND w.id < 90)"
        ));
        queries.push(format!(
            "SELECT id, (SELECT MAX(w.id) FROM w WHERE w.{key} = v.{key}) FROM v WHERE id < 300"
        ));
    }
    queries.push("SELECT i FROM v UNION SELECT id FROM w UNION ALL SELECT y FROM v".to_owned());
    queries.push(
        "WITH c AS (SELECT t, SUM(d) x FROM v GROUP BY t) SELECT * FROM c JOIN c o ON c.t = o.t"
            .to_owned(),
    );
    queries.push(
        "SELECT i, d, SUM(d) OVER (PARTITION BY i ORDER BY id) FROM v WHERE id < 500".to_owned(),
    );
    queries.push("SELECT * FROM v WHERE d > (SELECT AVG(d) FROM w)".to_owned());
    queries
}

/// A query's answer, sorted unless the query has an order; for an error, its number.
fn answer(client: &mut Client, executor: &str, query: &str) -> Vec<String> {
    let connection = client.connection();
    connection.query_drop(format!("SET firn_executor = {executor}")).expect("a setting");
    let rows: Result<Vec<Row>, mysql::Error> = connection.query(query);
    let shown =
        |row: Row| row.unwrap().iter().map(Value::as_sql_text).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = match rows {
        Ok(rows) => rows.into_iter().map(shown).collect(),
        Err(error) => return vec![error.to_string()],
    };
    if !query.contains("ORDER BY") {
        rows.sort();
    }
    rows
}

trait SqlText {
    fn as_sql_text(&self) -> String;
}

impl SqlText for Value {
    fn as_sql_text(&self) -> String {
        self.as_sql(false)
    }
}

#[test]
fn both_executors_answer_the_same() {
    let server = Server::start_of_several();
    let (follower, _running) = Follower::of(&server);
    let mut client = Client::connect(server.port(), None);
    client.make_schema("executors");
    let connection = client.connection();
    connection.query_drop("USE executors").expect("a schema");
    for table in ["v", "w"] {
        let created = format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, i TINYINT, u BIGINT UNSIGNED, d DECIMAL(12,3), f DOUBLE, \
             t VARCHAR(20), b VARBINARY(20), dt DATE, ts DATETIME(3), tm TIME, y YEAR, \
             e ENUM('two','one','three'), s SET('x','y','z'))"
        );
        connection.query_drop(created).expect("a table");
    }
    let mut numbers = Numbers(7);
    let mut fill = |table: &str, rows: u64| {
        for start in (0..rows).step_by(500) {
            let rows: Vec<String> =
                (start..(start + 500).min(rows)).map(|id| numbers.row(id)).collect();
            connection
                .query_drop(format!("INSERT INTO {table} VALUES {}", rows.join(",")))
                .expect("rows");
        }
    };
    fill("v", ROWS);
    fill("w", 400);
    follower.catch_up();
    let mut copy = follower.connect(Some("executors"));
    let before = client.status("Firn_queries_vectorised");
    let queries = queries();
    let mut differing = Vec::new();
    for query in &queries {
        let row = answer(&mut client, "ROW", query);
        let others = [
            ("over columns", answer(&mut client, "VECTORISED", query)),
            ("replica by rows", answer(&mut copy, "ROW", query)),
            ("replica over columns", answer(&mut copy, "VECTORISED", query)),
        ];
        for (by, other) in others.into_iter().filter(|(_, other)| *other != row) {
            let at = row.iter().zip(&other).find(|(one, other)| one != other);
            let counts = format!("{} and {} rows", row.len(), other.len());
            differing.push(format!("{query}\n   {by}: {counts}, {at:?}"));
        }
    }
    let ran = client.status("Firn_queries_vectorised") - before;
    println!("{} queries, {ran} over columns", queries.len());
    assert!(differing.is_empty(), "{} differ:\n{}", differing.len(), differing.join("\n"));
    assert!(
        ran as usize > queries.len() * 8 / 10,
        "only {ran} of {} took the engine",
        queries.len()
    );
}
