//! Statements with far less memory than they need: both executors spill rows to disk and give the
//! same answers as with enough memory.

use mysql::prelude::Queryable;
use mysql::{Row, Value};

use crate::client::Client;
use crate::server::Server;

const ROWS: u32 = 60_000;

/// Queries that need more memory than they may use.
const QUERIES: &[&str] = &[
    "SELECT * FROM wide ORDER BY s, id",
    "SELECT * FROM wide ORDER BY g DESC, id DESC",
    "SELECT COUNT(*), SUM(n), SUM(i) FROM (SELECT s, COUNT(*) n, MIN(id) i FROM wide GROUP BY s) x",
    "SELECT COUNT(*), SUM(n), MAX(a) FROM (SELECT d, COUNT(*) n, AVG(d) a FROM wide GROUP BY d, s) x",
    "SELECT DISTINCT s, g FROM wide ORDER BY s, g",
    "SELECT COUNT(*), SUM(a.id), SUM(b.g) FROM wide a JOIN other b ON a.s = b.s",
    "SELECT a.id, b.id FROM wide a LEFT JOIN other b ON a.s = b.s AND b.g > 20 ORDER BY a.id, b.id",
    "SELECT COUNT(*), SUM(id) FROM wide WHERE s IN (SELECT s FROM other WHERE g < 900)",
    "SELECT COUNT(*), SUM(id) FROM wide a WHERE NOT EXISTS (SELECT 1 FROM other b WHERE a.s = b.s AND a.g < b.g)",
    "SELECT COUNT(*), SUM(a.id + b.id) FROM wide a JOIN other b ON a.one = b.one WHERE a.id < 300",
    "SELECT s, g FROM wide UNION SELECT s, id FROM other ORDER BY 1, 2",
    "SELECT COUNT(*) FROM (SELECT s, d FROM wide INTERSECT SELECT s, d FROM other) x",
];

/// Queries for operators that only the row executor has.
const ROW_QUERIES: &[&str] = &[
    "SELECT s, d, COUNT(*), SUM(g) FROM wide GROUP BY s, d WITH ROLLUP",
    "SELECT id, SUM(g) OVER (ORDER BY id) FROM wide ORDER BY id",
    "SELECT id, ROW_NUMBER() OVER (ORDER BY s DESC, id), LAG(s, 3) OVER (ORDER BY s DESC, id) FROM wide ORDER BY id",
    "SELECT id, AVG(g) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM wide ORDER BY id",
    "WITH RECURSIVE n AS (SELECT 1 i, REPEAT('x', 100) t UNION ALL SELECT i + 1, t FROM n WHERE i < 50000)
        SELECT COUNT(*), SUM(i), MIN(LENGTH(t)) FROM n",
    "SELECT COUNT(*), SUM(a.g) FROM other b JOIN wide a ON a.one = b.one WHERE b.id < 40",
];

/// Bytes of memory for a statement that works row by row.
const LITTLE: u32 = 2 << 20;
const LITTLE_FOR_BATCHES: u32 = 12 << 20;

fn fill(client: &mut Client) {
    client.make_schema("spilling");
    for statement in [
        "USE spilling",
        "SET cte_max_recursion_depth = 1000000",
        "CREATE TABLE wide (id INT PRIMARY KEY, g INT, d DECIMAL(20, 4), s VARCHAR(200), one INT)",
        &format!(
            "INSERT INTO wide WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < {})
            SELECT i, i * 7919 % 1009, i * 104729 % 30011 / 8, REPEAT(MD5(i * 7919 % 40009), 4), 1 FROM n",
            ROWS - 1
        ),
        "CREATE TABLE other (id INT PRIMARY KEY, g INT, d DECIMAL(20, 4), s VARCHAR(200), one INT)",
        "INSERT INTO other SELECT * FROM wide WHERE id % 2 = 0",
        "INSERT INTO other SELECT id, g + 7, d + 1, s, one FROM wide WHERE id % 22 = 1",
        "ANALYZE TABLE wide, other",
    ] {
        client.connection().query_drop(statement).expect("filled tables");
    }
}

fn answer(client: &mut Client, query: &str) -> Vec<String> {
    let rows: Result<Vec<Row>, mysql::Error> = client.connection().query(query);
    let shown = |value: &Value| value.as_sql(false);
    let line = |row: Row| row.unwrap().iter().map(shown).collect::<Vec<_>>().join("|");
    match rows {
        Ok(rows) => rows.into_iter().map(line).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// The answers to a query with enough memory and with little memory.
fn both(client: &mut Client, query: &str, little: u32) -> (Vec<String>, Vec<String>) {
    client.connection().query_drop("SET firn_statement_memory = DEFAULT").expect("a setting");
    let enough = answer(client, query);
    let little = format!("SET firn_statement_memory = {little}");
    client.connection().query_drop(little).expect("a setting");
    (enough, answer(client, query))
}

fn differing(client: &mut Client, executor: &str, little: u32, queries: &[&str]) -> Vec<String> {
    let setting = format!("SET firn_executor = {executor}");
    client.connection().query_drop(setting).expect("a setting");
    let mut differing = Vec::new();
    for query in queries {
        let (enough, little) = both(client, query, little);
        if enough != little {
            let at = enough.iter().zip(&little).find(|(one, other)| one != other);
            differing.push(format!("{executor}: {query}\n   {at:?}"));
        }
    }
    differing
}

#[test]
fn statements_with_little_memory_answer_the_same() {
    let server = Server::start();
    let mut client = Client::connect(server.port(), None);
    fill(&mut client);
    let mut wrong = differing(&mut client, "ROW", LITTLE, QUERIES);
    wrong.extend(differing(&mut client, "ROW", LITTLE, ROW_QUERIES));
    let before = client.status("Firn_queries_vectorised");
    wrong.extend(differing(&mut client, "VECTORISED", LITTLE_FOR_BATCHES, QUERIES));
    let ran = client.status("Firn_queries_vectorised") - before;
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{ran} of {} ran over columns", 2 * QUERIES.len());
    assert!(server.spilled_files().is_empty(), "files stay behind: {:?}", server.spilled_files());
}

/// The first rows of an order keep no memory for the rows that they push out: here each row pushes
/// out another one, and all of them together are many times what the statement may hold.
#[test]
fn first_rows_of_an_order_take_little_memory() {
    let server = Server::start();
    let mut client = Client::connect(server.port(), None);
    fill(&mut client);
    for (executor, little) in [("ROW", LITTLE / 2), ("VECTORISED", LITTLE_FOR_BATCHES)] {
        let executor = format!("SET firn_executor = {executor}");
        client.connection().query_drop(executor).expect("a setting");
        let little = format!("SET firn_statement_memory = {little}");
        client.connection().query_drop(little).expect("a setting");
        for query in [
            "SELECT id, s FROM wide ORDER BY id + 0 DESC LIMIT 3",
            "SELECT id, s FROM wide ORDER BY id + 0 DESC LIMIT 2 OFFSET 1",
            "SELECT id, s FROM (SELECT id, s FROM wide ORDER BY id + 0 DESC LIMIT 3) x ORDER BY id DESC",
        ] {
            let rows = answer(&mut client, query);
            let begins =
                |row: &String| row.split('|').next().map(|id| id.trim_matches('\'').to_owned());
            let ids: Vec<String> = rows.iter().filter_map(begins).collect();
            let last = [ROWS - 1, ROWS - 2, ROWS - 3].map(|id| id.to_string());
            assert_eq!(ids, last[last.len() - ids.len()..], "{query}");
            assert!(ids.len() >= 2, "{query}: {rows:?}");
        }
    }
}
