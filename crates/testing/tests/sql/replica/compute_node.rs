//! What a compute node over a replica refuses, and which state it takes from the writer.

use mysql::prelude::Queryable;

use super::Follower;
use crate::client::Client;
use crate::server::Server;

/// The error number of a statement of the replica's session.
fn refusal(connection: &mut mysql::Conn, text: &str) -> u16 {
    match connection.query::<mysql::Row, _>(text) {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn what_writes_or_locks_is_refused() {
    let server = Server::start_of_several();
    let mut writer = Client::connect(server.port(), None);
    writer.make_schema("refused");
    let made = ["USE refused", "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT)"];
    let made = made.into_iter().chain(["INSERT INTO t (a) VALUES (1), (2)"]);
    made.for_each(|text| writer.connection().query_drop(text).expect(text));
    let (follower, _running) = Follower::of(&server);
    let mut copy = follower.connect(Some("refused"));
    for text in [
        "INSERT INTO t (a) VALUES (3)",
        "UPDATE t SET a = 5",
        "DELETE FROM t WHERE id = 1",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t LOCK IN SHARE MODE",
        "CREATE TABLE u (a INT)",
        "CREATE TEMPORARY TABLE u (a INT)",
        "ALTER TABLE t ADD COLUMN b INT",
        "CREATE INDEX a ON t (a)",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "CREATE DATABASE v",
        "XA RECOVER",
        "XA COMMIT 'x'",
        "CREATE USER u@localhost",
        "SET PERSIST max_error_count = 7",
    ] {
        assert_eq!(refusal(copy.connection(), text), 1836, "{text}");
    }
    for level in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}");
        copy.connection().query_drop(set).expect("a level");
        let sum: Option<u64> = copy.connection().query_first("SELECT SUM(a) FROM t").expect(level);
        assert_eq!(sum, Some(3), "{level}");
    }
    let checked: Vec<(String, String, String, String)> =
        copy.connection().query("CHECK TABLE t").expect("a check");
    assert_eq!(checked[0].3, "OK");
}

#[test]
fn accounts_that_the_writer_changes_are_those_of_the_replica() {
    let server = Server::start_of_several();
    let mut writer = Client::connect(server.port(), None);
    let (follower, _running) = Follower::of(&server);
    let mut copy = follower.connect(None);
    for number in 0..30 {
        let account = format!("u{number}@localhost");
        writer.connection().query_drop(format!("CREATE USER {account}")).expect("an account");
        let grants: Vec<String> = copy
            .connection()
            .query(format!("SHOW GRANTS FOR {account}"))
            .expect("it is there once CREATE USER has returned");
        assert_eq!(grants.len(), 1);
    }
}
