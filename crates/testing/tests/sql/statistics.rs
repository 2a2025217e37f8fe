//! The planner's statistics follow the writes, and plans follow the statistics.

use firn_compute::Instance;
use firn_compute::statistics_keeper;
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::client::Client;
use crate::server::Server;

const CARDINALITY: &str = "SELECT cardinality FROM information_schema.statistics \
     WHERE table_schema = 'fresh' AND index_name = 'few'";
const MISSES: &str = "SHOW GLOBAL STATUS LIKE 'Firn_plan_cache_misses'";

fn insert(connection: &mut Conn, from: u32, to: u32) {
    let rows: Vec<String> = (from..to).map(|id| format!("({id}, {})", id % 4)).collect();
    connection.query_drop(format!("INSERT INTO t VALUES {}", rows.join(", "))).expect("rows");
}

fn cardinality(connection: &mut Conn) -> u64 {
    connection.query_first(CARDINALITY).expect("a query").expect("a row")
}

fn misses(connection: &mut Conn) -> u64 {
    let row: Option<(String, u64)> = connection.query_first(MISSES).expect("a query");
    row.expect("a row").1
}

fn refresh(instance: &Instance) {
    statistics_keeper::refresh(instance, &|_| true);
}

#[test]
fn statistics_follow_what_is_written() {
    let server = Server::start();
    Client::connect(server.port(), None).make_schema("fresh");
    let mut client = Client::connect(server.port(), Some("fresh"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE t (id INT PRIMARY KEY, few INT, KEY few (few))").unwrap();

    insert(connection, 0, 100);
    refresh(server.instance());
    let guessed = cardinality(connection);
    assert_ne!(guessed, 4, "a few rows are not worth a look");

    insert(connection, 100, 2_000);
    refresh(server.instance());
    assert_eq!(cardinality(connection), 4);

    // The table is read again after this many rows have changed.
    connection.query_drop("UPDATE t SET few = id WHERE id < 150").unwrap();
    refresh(server.instance());
    assert_eq!(cardinality(connection), 4);
    connection.query_drop("UPDATE t SET few = id WHERE id BETWEEN 150 AND 299").unwrap();
    refresh(server.instance());
    // 300, scaled to the estimated number of rows in the tree.
    assert!(cardinality(connection) > 100);
}

#[test]
fn a_prepared_statement_is_planned_anew_when_statistics_are() {
    let server = Server::start();
    Client::connect(server.port(), None).make_schema("fresh");
    let mut client = Client::connect(server.port(), Some("fresh"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE t (id INT PRIMARY KEY, few INT, KEY few (few))").unwrap();
    let prepared = connection.prep("SELECT COUNT(*) FROM t WHERE few = ?").unwrap();
    let count = |connection: &mut Conn| -> u64 {
        connection.exec_first(&prepared, (1,)).expect("a query").expect("a row")
    };
    count(connection);
    misses(connection);
    let before = misses(connection);
    count(connection);
    assert_eq!(misses(connection), before, "the plan is kept");

    insert(connection, 0, 1_000);
    refresh(server.instance());
    misses(connection);
    let before = misses(connection);
    assert_eq!(count(connection), 250);
    assert_eq!(misses(connection), before + 1, "the plan was made from other statistics");
}
