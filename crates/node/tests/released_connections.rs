//! `COMMIT RELEASE`, `ROLLBACK RELEASE` and `completion_type = RELEASE`: the statement is answered,
//! and then the server closes the connection. The table was recorded from MySQL 9.7.

mod support;

use firn_node::endpoint::Endpoint;
use mysql::prelude::Queryable;
use support::Database;

fn connect(endpoint: &Endpoint) -> mysql::Conn {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1"));
    let options = options.tcp_port(endpoint.address().unwrap().port()).user(Some("root"));
    mysql::Conn::new(options.prefer_socket(false)).unwrap()
}

const RELEASING: &str = "SET completion_type = 'RELEASE'";

/// Statements, and whether the connection is over after the last one.
const CASES: [(&[&str], bool); 17] = [
    (&["COMMIT RELEASE"], true),
    (&["ROLLBACK RELEASE"], true),
    (&["COMMIT WORK AND NO CHAIN RELEASE"], true),
    (&["PREPARE p FROM 'COMMIT RELEASE'", "EXECUTE p"], true),
    (&["SET completion_type = 2", "COMMIT"], true),
    (&[RELEASING, "ROLLBACK"], true),
    (&[RELEASING, "COMMIT AND CHAIN"], true),
    (&[RELEASING, "COMMIT AND NO CHAIN"], true),
    (&["COMMIT"], false),
    (&["COMMIT NO RELEASE"], false),
    (&[RELEASING, "COMMIT NO RELEASE"], false),
    (&[RELEASING, "BEGIN", "BEGIN"], false),
    (&[RELEASING, "BEGIN", "SAVEPOINT s", "ROLLBACK TO SAVEPOINT s"], false),
    (&[RELEASING, "BEGIN", "ALTER TABLE d.t COMMENT 'x'"], false),
    (&[RELEASING, "SET autocommit = 0", "INSERT INTO d.t VALUES (9)", "SET autocommit = 1"], false),
    (&[RELEASING, "XA START 'x'", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"], false),
    (&[RELEASING, "LOCK TABLES d.t WRITE", "UNLOCK TABLES"], false),
];

#[test]
fn a_released_connection_ends_after_the_answer() {
    let database = Database::open();
    let endpoint = database.start("compute");
    let mut other = connect(&endpoint);
    other.query_drop("CREATE DATABASE d").unwrap();
    other.query_drop("CREATE TABLE d.t (a INT)").unwrap();
    for (statements, is_over) in CASES {
        let mut client = connect(&endpoint);
        for statement in statements {
            client.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        assert_eq!(client.query_drop("DO 1").is_err(), is_over, "{statements:?}");
    }
    let mut client = connect(&endpoint);
    for statement in ["BEGIN", "INSERT INTO d.t VALUES (1)", "COMMIT RELEASE"] {
        client.query_drop(statement).unwrap();
    }
    let mut client = connect(&endpoint);
    for statement in ["BEGIN", "INSERT INTO d.t VALUES (2)", "ROLLBACK RELEASE"] {
        client.query_drop(statement).unwrap();
    }
    let rows: Vec<u8> = other.query("SELECT a FROM d.t WHERE a < 9").unwrap();
    assert_eq!(rows, [1]);
}

/// What follows in the same text is not run.
#[test]
fn statements_after_a_release_are_not_run() {
    let database = Database::open();
    let endpoint = database.start("compute");
    let mut other = connect(&endpoint);
    other.query_drop("CREATE DATABASE d").unwrap();
    other.query_drop("CREATE TABLE d.t (a INT)").unwrap();
    let mut client = connect(&endpoint);
    let text = "INSERT INTO d.t VALUES (1); COMMIT RELEASE; INSERT INTO d.t VALUES (2)";
    // The answers before it arrive.
    drop(client.query_iter(text).unwrap());
    client.query_drop("DO 1").unwrap_err();
    assert_eq!(other.query_first("SELECT COUNT(*) FROM d.t").unwrap(), Some(1));
}
