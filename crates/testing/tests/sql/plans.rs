//! Plans stay in the cache until one of their own tables changes.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::client::Client;
use crate::server::Server;

const MISSES: &str = "SHOW GLOBAL STATUS LIKE 'Firn_plan_cache_misses'";

/// Runs a statement, and counts the plans that are made for it.
fn misses_of(connection: &mut Conn, run: impl Fn(&mut Conn)) -> u64 {
    let mut misses = || -> u64 {
        let row: Option<(String, u64)> = connection.query_first(MISSES).expect("a query");
        row.expect("a row").1
    };
    // This query itself is planned once.
    misses();
    let before = misses();
    run(connection);
    let row: Option<(String, u64)> = connection.query_first(MISSES).expect("a query");
    row.expect("a row").1 - before
}

/// How often the session has normalised, parsed and planned so far.
fn session_work(connection: &mut Conn) -> [u64; 3] {
    let show = "SHOW SESSION STATUS LIKE 'Firn\\_%'";
    let counters: Vec<(String, u64)> = connection.query(show).expect("the counters");
    ["Firn_texts_normalised", "Firn_texts_parsed", "Firn_statements_planned"]
        .map(|name| counters.iter().find(|counter| counter.0 == name).expect("a counter").1)
}

/// How often the session normalises, parses and plans for a statement.
fn work_of(connection: &mut Conn, statement: &str) -> [u64; 3] {
    // Reading the counters takes work as well.
    let (first, before) = (session_work(connection), session_work(connection));
    let _refused = connection.query_drop(statement);
    let after = session_work(connection);
    std::array::from_fn(|at| after[at] - before[at] - (before[at] - first[at]))
}

fn server_with_tables() -> Server {
    let server = Server::start();
    Client::connect(server.port(), None).make_schema("plans");
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY a (a))").unwrap();
    connection.query_drop("CREATE TABLE other (id INT PRIMARY KEY, t_id INT)").unwrap();
    connection.query_drop("INSERT INTO t VALUES (1, 10), (2, 20)").unwrap();
    server
}

#[test]
fn what_others_do_to_other_tables_leaves_a_plan_in_the_cache() {
    let server = server_with_tables();
    let mut first = Client::connect(server.port(), Some("plans"));
    let mut second = Client::connect(server.port(), Some("plans"));
    let (first, second) = (first.connection(), second.connection());
    let select = |connection: &mut Conn| {
        connection.query_drop("SELECT a FROM t WHERE id = 1").unwrap();
    };
    let update = |connection: &mut Conn| {
        connection.query_drop("UPDATE t SET a = a + 1 WHERE id = 2").unwrap();
    };
    select(first);
    update(first);
    for elsewhere in [
        "CREATE TEMPORARY TABLE t (id INT)",
        "INSERT INTO t VALUES (7)",
        "DROP TEMPORARY TABLE t",
        "ANALYZE TABLE other",
        "ALTER TABLE other ADD COLUMN b INT",
        "CREATE TABLE third (id INT)",
    ] {
        second.query_drop(elsewhere).unwrap();
        assert_eq!(misses_of(first, select), 0, "after {elsewhere}");
        assert_eq!(misses_of(first, update), 0, "after {elsewhere}");
    }
}

#[test]
fn what_changes_its_tables_makes_a_plan_again() {
    let server = server_with_tables();
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    let select = |connection: &mut Conn| {
        connection.query_drop("SELECT a FROM t WHERE id = 1").unwrap();
    };
    let delete = |connection: &mut Conn| {
        connection.query_drop("DELETE FROM t WHERE id = 77").unwrap();
    };
    select(connection);
    delete(connection);
    for changed in ["ALTER TABLE t ADD COLUMN b INT", "ANALYZE TABLE t", "FLUSH TABLES"] {
        connection.query_drop(changed).unwrap();
        assert_eq!(misses_of(connection, select), 1, "after {changed}");
        assert_eq!(misses_of(connection, delete), 1, "after {changed}");
    }
    // A foreign key to the table changes the checks of a deletion, but not the definition of `t`.
    let key = "ALTER TABLE other ADD CONSTRAINT to_t FOREIGN KEY (t_id) REFERENCES t (id)";
    connection.query_drop(key).unwrap();
    assert_eq!(misses_of(connection, select), 0);
    assert_eq!(misses_of(connection, delete), 1);
    connection.query_drop("INSERT INTO other (id, t_id) VALUES (1, 1)").unwrap();
    let refused = connection.query_drop("DELETE FROM t WHERE id = 1").unwrap_err();
    assert!(refused.to_string().contains("1451"), "{refused}");
}

#[test]
fn a_temporary_table_hides_the_stored_one_from_a_prepared_statement() {
    let server = server_with_tables();
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    let prepared = connection.prep("SELECT a FROM t WHERE id = ?").unwrap();
    let a = |connection: &mut Conn| -> Option<i64> {
        connection.exec_first(&prepared, (1,)).expect("a query")
    };
    assert_eq!(a(connection), Some(10));
    connection.query_drop("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a INT)").unwrap();
    assert_eq!(a(connection), None);
    connection.query_drop("INSERT INTO t VALUES (1, 11)").unwrap();
    assert_eq!(a(connection), Some(11));
    connection.query_drop("ALTER TABLE t ADD COLUMN b INT FIRST").unwrap();
    assert_eq!(a(connection), Some(11));
    connection.query_drop("DROP TEMPORARY TABLE t").unwrap();
    assert_eq!(a(connection), Some(10));
}

/// A text is normalised, parsed and planned once when its plan is not in the cache, whether or not
/// the plan can be kept.
#[test]
fn a_statement_is_parsed_and_planned_once() {
    let server = server_with_tables();
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE days (id INT PRIMARY KEY, day DATE)").unwrap();
    connection.query_drop("INSERT INTO days VALUES (1, '2024-02-29')").unwrap();
    for statement in [
        // Cached, with and without literals.
        "SELECT a FROM t WHERE id = 1 AND a < 100",
        "SELECT a FROM t",
        "INSERT INTO t (a, id) VALUES (700, 70), (710, 71)",
        // Not cached: user variables, names that show literals, a value that fits no date.
        "SELECT @b := a FROM t WHERE id = 2",
        "SELECT (SELECT id FROM t AS u WHERE id = 2) FROM t WHERE id = 1",
        "SELECT a FROM t WHERE id = 1 INTO @b",
        "SELECT id FROM days WHERE day = 5",
        // Literals that the grammar needs, so that they are no parameters.
        "SELECT a, 'x' 'y' FROM t LIMIT 1",
    ] {
        assert_eq!(work_of(connection, statement), [1, 1, 1], "{statement}");
    }
    assert_eq!(work_of(connection, "SELECT a FROM t WHERE id = 2 AND a < 7"), [1, 0, 0]);
}

/// Errors quote the text as the client wrote it, with the literals that were lifted out of it.
#[test]
fn an_error_quotes_the_text_as_written() {
    let server = server_with_tables();
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE days (id INT PRIMARY KEY, day DATE)").unwrap();
    for (statement, error) in [
        ("SELECT a FROM t WHERE id = 17\n AND a = 'x' 5 LIMIT 1", "near '5 LIMIT 1' at line 2"),
        ("SELECT a FROM t WHERE id = 17 LIMIT 'x'", "near ''x'' at line 1"),
        ("UPDATE t SET a = 5 WHERE id = 17 FROM 3", "near 'FROM 3' at line 1"),
        ("SELECT id FROM days WHERE day = 'abc'", "Incorrect DATE value: 'abc'"),
        ("SELECT a FROM t WHERE id = 17 AND b = 4", "Unknown column 'b' in 'where clause'"),
    ] {
        let refused = connection.query_drop(statement).expect_err("an error").to_string();
        assert!(refused.contains(error), "{statement}: {refused}");
    }
}

#[test]
fn bounds_that_are_worked_out_once_are_bounds_of_an_index() {
    let server = server_with_tables();
    let mut client = Client::connect(server.port(), Some("plans"));
    let connection = client.connection();
    connection.query_drop("CREATE TABLE many (id INT PRIMARY KEY)").expect("a table");
    let rows: Vec<String> = (0..1000).map(|row| format!("({row})")).collect();
    let insert = format!("INSERT INTO many VALUES {}", rows.join(", "));
    connection.query_drop(insert).expect("rows");
    let examined = |connection: &mut Conn| -> u64 {
        let show = "SHOW SESSION STATUS LIKE 'Firn_rows_examined'";
        let row: Option<(String, u64)> = connection.query_first(show).expect("the counter");
        row.expect("a row").1
    };
    for condition in ["id BETWEEN 7 - 2 AND 7 + 2", "id BETWEEN 5 AND 3 * 3", "id BETWEEN 5 AND 9"]
    {
        let before = examined(connection);
        let query = format!("SELECT COUNT(*) FROM many WHERE {condition}");
        assert_eq!(connection.query_first(query).expect("a query"), Some(5), "{condition}");
        let looked_at = examined(connection) - before;
        assert!(looked_at < 50, "{condition}: {looked_at} rows");
    }
}
