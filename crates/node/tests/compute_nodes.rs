//! Two compute nodes over one database node, in this process. They share the server's state, and a
//! session's state survives starts and ends of the other node.

mod support;

use std::time::Duration;

use firn_node::endpoint::Endpoint;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use support::Database;

fn connect_as(endpoint: &Endpoint, user: &str, password: Option<&str>) -> mysql::Result<Conn> {
    let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1"));
    let options = options.tcp_port(endpoint.address().unwrap().port()).prefer_socket(false);
    Conn::new(options.user(Some(user)).pass(password))
}

fn connect(endpoint: &Endpoint) -> Conn {
    connect_as(endpoint, "root", None).unwrap()
}

fn run(connection: &mut Conn, text: &str) {
    connection.query_drop(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn code(connection: &mut Conn, text: &str) -> u16 {
    match connection.query_drop(text) {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{text}: {other:?}"),
    }
}

fn number(connection: &mut Conn, text: &str) -> i64 {
    connection.query_first(text).unwrap().unwrap()
}

/// Waits until `is_so` returns true.
fn until(mut is_so: impl FnMut() -> bool) {
    let end = firn_base::task::monotonic() + Duration::from_secs(60);
    while !is_so() {
        assert!(firn_base::task::monotonic() < end, "it did not come about in a minute");
        firn_base::task::sleep(Duration::from_millis(10));
    }
}

/// Whether the statement of a connection waits for a lock.
fn waiting(connection: &mut Conn, id: u32) -> bool {
    let text = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND STATE LIKE 'Waiting%'"
    );
    number(connection, &text) == 1
}

#[test]
fn accounts_are_the_servers() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let (mut a, mut b) = (connect(&one), connect(&other));
    run(&mut a, "CREATE DATABASE shop");
    run(&mut a, "CREATE TABLE shop.t (a INT PRIMARY KEY)");
    run(&mut a, "CREATE USER app@'%' IDENTIFIED BY 'secret'");
    let mut app = connect_as(&other, "app", Some("secret")).unwrap();
    assert_eq!(code(&mut app, "SELECT * FROM shop.t"), 1142);
    run(&mut a, "GRANT SELECT ON shop.* TO app@'%'");
    run(&mut app, "SELECT * FROM shop.t");
    run(&mut b, "REVOKE SELECT ON shop.* FROM app@'%'");
    run(&mut a, "ALTER USER app@'%' IDENTIFIED BY 'other'");
    assert_eq!(code(&mut app, "SELECT * FROM shop.t"), 1142);
    assert!(connect_as(&other, "app", Some("secret")).is_err());
    connect_as(&other, "app", Some("other")).unwrap();
    run(&mut b, "DROP USER app@'%'");
    assert!(connect_as(&one, "app", Some("other")).is_err());
}

#[test]
fn accounts_that_both_nodes_change_keep_every_change() {
    let database = Database::open();
    let endpoints = [database.start("one"), database.start("other")];
    std::thread::scope(|scope| {
        for (at, endpoint) in endpoints.iter().enumerate() {
            let mut connection = connect(endpoint);
            scope.spawn(move || {
                for user in 0..20 {
                    run(&mut connection, &format!("CREATE USER u{at}_{user}@localhost"));
                }
            });
        }
    });
    for endpoint in &endpoints {
        let users = "SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'u%'";
        assert_eq!(number(&mut connect(endpoint), users), 40);
    }
}

#[test]
fn global_variables_are_the_servers() {
    let database = Database::open();
    let one = database.start("one");
    let mut a = connect(&one);
    run(&mut a, "SET GLOBAL lock_wait_timeout = 77");
    let other = database.start("other");
    let mut b = connect(&other);
    let global = "SELECT @@GLOBAL.lock_wait_timeout";
    assert_eq!(number(&mut b, global), 77, "a node that starts later has it");
    assert_eq!(number(&mut b, "SELECT @@lock_wait_timeout"), 77);
    run(&mut b, "SET GLOBAL lock_wait_timeout = 78");
    assert_eq!(number(&mut a, global), 78);
    assert_eq!(number(&mut a, "SELECT @@lock_wait_timeout"), 31_536_000, "the session's own");
    run(&mut b, "CREATE DATABASE shop");
    run(&mut b, "CREATE USER app@'%' IDENTIFIED BY 'x'");
    run(&mut b, "GRANT ALL ON shop.* TO app@'%'");
    run(&mut a, "SET GLOBAL super_read_only = ON");
    let mut app = connect_as(&other, "app", Some("x")).unwrap();
    assert_eq!(code(&mut app, "CREATE TABLE shop.t (a INT)"), 1290);
    run(&mut b, "SET GLOBAL read_only = OFF");
    assert_eq!(number(&mut a, "SELECT @@super_read_only"), 0);
    run(&mut app, "CREATE TABLE shop.t (a INT)");
    run(&mut a, "SET PERSIST lock_wait_timeout = 79");
    assert_eq!(number(&mut b, global), 79);
}

#[test]
fn user_locks_are_the_servers() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let (mut a, mut b) = (connect(&one), connect(&other));
    assert_ne!(a.connection_id(), b.connection_id());
    assert_eq!(number(&mut a, "SELECT GET_LOCK('x', 0)"), 1);
    assert_eq!(number(&mut b, "SELECT GET_LOCK('x', 0.05)"), 0);
    assert_eq!(number(&mut b, "SELECT IS_USED_LOCK('x')"), i64::from(a.connection_id()));
    assert_eq!(number(&mut b, "SELECT RELEASE_LOCK('x')"), 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| number(&mut b, "SELECT GET_LOCK('x', 60)"));
        firn_base::task::sleep(Duration::from_millis(30));
        assert!(!waiting.is_finished());
        drop(a);
        assert_eq!(waiting.join().unwrap(), 1, "a session that ends gives its locks back");
    });
}

#[test]
fn the_global_read_lock_is_the_servers() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let (mut a, mut b, mut c) = (connect(&one), connect(&other), connect(&one));
    run(&mut a, "CREATE DATABASE shop");
    run(&mut a, "CREATE TABLE shop.t (a INT PRIMARY KEY)");
    run(&mut a, "FLUSH TABLES WITH READ LOCK");
    run(&mut b, "SET lock_wait_timeout = 1");
    assert_eq!(code(&mut b, "INSERT INTO shop.t VALUES (1)"), 1205);
    assert_eq!(code(&mut a, "INSERT INTO shop.t VALUES (1)"), 1223);
    run(&mut b, "SET lock_wait_timeout = 100");
    let writer = b.connection_id();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| run(&mut b, "INSERT INTO shop.t VALUES (1)"));
        until(|| waiting(&mut c, writer));
        run(&mut a, "UNLOCK TABLES");
        writing.join().unwrap();
    });
    // The lock waits for the other node's writers, and ends with its session.
    run(&mut b, "FLUSH TABLES WITH READ LOCK");
    drop(b);
    until(|| c.query_drop("INSERT INTO shop.t VALUES (2)").is_ok());
    let late = database.start("late");
    run(&mut a, "FLUSH TABLES WITH READ LOCK");
    drop(late);
    let late = database.start("late");
    let mut d = connect(&late);
    run(&mut d, "SET lock_wait_timeout = 1");
    assert_eq!(code(&mut d, "INSERT INTO shop.t VALUES (3)"), 1205, "it started meanwhile");
}

#[test]
fn processes_are_listed_and_killed_on_any_node() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let (mut a, mut b) = (connect(&one), connect(&other));
    let victim = b.connection_id();
    std::thread::scope(|scope| {
        let asleep = scope.spawn(|| number(&mut b, "SELECT SLEEP(60)"));
        let asleep_text = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {victim} AND \
             INFO = 'SELECT SLEEP(60)' AND COMMAND = 'Query' AND STATE = 'User sleep'"
        );
        until(|| number(&mut a, &asleep_text) == 1);
        run(&mut a, &format!("KILL QUERY {victim}"));
        assert_eq!(asleep.join().unwrap(), 1);
    });
    run(&mut a, &format!("KILL {victim}"));
    until(|| b.query_drop("DO 1").is_err());
    // The client learns of its end a little before the server has forgotten the session.
    let unknown = |error: &mysql::Error| match error {
        mysql::Error::MySqlError(error) => error.code == 1094,
        _ => false,
    };
    until(|| a.query_drop(format!("KILL {victim}")).is_err_and(|error| unknown(&error)));
    let ids: Vec<mysql::Row> = a.query("SHOW PROCESSLIST").unwrap();
    assert_eq!(ids.len(), 1);
}

#[test]
fn statistics_of_a_table_are_the_servers() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let (mut a, mut b) = (connect(&one), connect(&other));
    run(&mut a, "CREATE DATABASE shop");
    run(&mut a, "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT, KEY (b))");
    let rows: Vec<String> = (0..500).map(|n| format!("({n}, {})", n % 5)).collect();
    run(&mut a, &format!("INSERT INTO shop.t VALUES {}", rows.join(",")));
    let cardinality = "SELECT CARDINALITY FROM information_schema.STATISTICS \
                       WHERE TABLE_NAME = 't' AND INDEX_NAME = 'b'";
    let before = number(&mut b, cardinality);
    assert_ne!(before, 5, "nothing was gathered yet");
    run(&mut a, "ANALYZE TABLE shop.t");
    assert_eq!(number(&mut b, cardinality), 5);
}

#[test]
fn temporary_tables_outlive_other_nodes() {
    let database = Database::open();
    let one = database.start("one");
    let mut a = connect(&one);
    run(&mut a, "CREATE DATABASE shop");
    run(&mut a, "CREATE TEMPORARY TABLE shop.t (a INT PRIMARY KEY)");
    run(&mut a, "INSERT INTO shop.t VALUES (1), (2)");
    let count = "SELECT COUNT(*) FROM shop.t";
    for _ in 0..2 {
        let other = database.start("other");
        let mut b = connect(&other);
        assert_eq!(code(&mut b, count), 1146, "it is one session's");
        run(&mut b, "CREATE TEMPORARY TABLE shop.t (a INT PRIMARY KEY)");
        assert_eq!(number(&mut b, count), 0);
        assert_eq!(number(&mut a, count), 2);
        drop(b);
        drop(other);
        assert_eq!(number(&mut a, count), 2);
    }
    let names = || {
        let schemas = database.seams.rows.schemas().unwrap();
        schemas.iter().filter(|name| name.starts_with("#temporary")).count()
    };
    until(|| names() == 1);
    drop(a);
    until(|| names() == 0);
}
