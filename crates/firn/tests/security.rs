//! What accounts may do, what logs and process lists must not show, and who may read the files.

#![allow(clippy::disallowed_methods)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use support::Server;

/// Runs statements that must succeed.
fn run(client: &mut Conn, statements: &[&str]) {
    for statement in statements {
        client.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// The error number of a statement; 0 if it succeeds.
fn code(client: &mut Conn, statement: &str) -> u16 {
    match client.query_drop(statement) {
        Ok(()) => 0,
        Err(mysql::Error::MySqlError(error)) => error.code,
        Err(error) => panic!("{statement}: {error}"),
    }
}

fn log_in(server: &Server, user: &str, password: &str) -> Result<Conn, u16> {
    let options = OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(server.port());
    let options = options.user(Some(user)).pass(Some(password)).prefer_socket(false);
    Conn::new(options).map_err(|error| match error {
        mysql::Error::MySqlError(error) => error.code,
        error => panic!("{error}"),
    })
}

fn refused(server: &Server, user: &str, password: &str) -> u16 {
    log_in(server, user, password).map_or_else(|code| code, |_| 0)
}

#[test]
fn files_are_not_for_others() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    run(
        &mut client,
        &["CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "SET GLOBAL general_log = ON"],
    );
    let root = server.data_file("log").parent().unwrap().to_owned();
    let mut seen = 0;
    let mut open = vec![root];
    while let Some(path) = open.pop() {
        let mode = path.symlink_metadata().unwrap().permissions().mode() & 0o777;
        let wanted = if path.is_dir() { 0o750 } else { 0o640 };
        assert_eq!(mode, wanted, "{} {mode:o}", path.display());
        seen += 1;
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    assert!(seen > 8, "{seen}");
}

#[test]
fn no_log_and_no_list_tells_passwords() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    run(
        &mut client,
        &[
            "SET GLOBAL general_log = ON, GLOBAL slow_query_log = ON, long_query_time = 0",
            "CREATE USER u IDENTIFIED BY 'hidden'",
            "PREPARE s FROM 'ALTER USER u IDENTIFIED BY ''hidden'''",
            "EXECUTE s",
            "PREPARE s FROM \"SET PASSWORD FOR u = 'hidden'\"",
            "EXECUTE s",
            "SET @text = 'ALTER USER u IDENTIFIED BY \\'hidden\\''",
            "PREPARE s FROM @text",
            "EXECUTE s",
            "ALTER USER u IDENTIFIED /* BY */ BY /* 'x' */ 'hidden'",
            "SET PASSWORD FOR u = 'hidden'",
            "ALTER USER u IDENTIFIED WITH 'caching_sha2_password' BY 'hidden'",
        ],
    );
    assert_eq!(code(&mut client, "CREATE USER w IDENTIFED BY 'hidden'"), 1064);
    assert_ne!(code(&mut client, "CHANGE MASTER TO MASTER_PASSWORD = 'hidden'"), 0);
    client.exec_drop("ALTER USER u IDENTIFIED BY 'hidden'", ()).unwrap();
    let shown: String = client
        .query_first(
            "SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID() \
             AND 'IDENTIFIED BY ''hidden''' <> ''",
        )
        .unwrap()
        .unwrap();
    assert!(!shown.contains("hidden"), "{shown}");
    for name in ["firn.log", "firn-slow.log"] {
        let log = std::fs::read_to_string(server.data_file(name)).unwrap();
        assert!(log.contains("<secret>"), "{log}");
        assert!(!log.contains("hidden"), "{log}");
    }
}

#[test]
fn logs_stay_where_logs_are() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    let outside = std::env::temp_dir().join("firn-outside.log");
    let inside = server.data_file("other.log");
    for variable in ["general_log_file", "slow_query_log_file"] {
        for scope in ["GLOBAL", "PERSIST", "PERSIST_ONLY"] {
            let mut set = |path: &Path| {
                code(&mut client, &format!("SET {scope} {variable} = '{}'", path.display()))
            };
            assert_eq!(set(&outside), 1231);
            assert_eq!(set(Path::new("FORMAT")), 1231);
            assert_eq!(set(Path::new("log/x.log")), 1231);
            assert_eq!(set(Path::new("../x.log")), 1231);
            assert_eq!(set(&inside), 0);
            assert_eq!(set(Path::new("another.log")), 0);
        }
    }
}

#[test]
fn failed_logins_block_and_limits_hold() {
    let server = Server::start(&[], &[]);
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER b IDENTIFIED BY 'p' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3",
            "CREATE USER c IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1",
            "CREATE USER h IDENTIFIED BY 'p' WITH MAX_CONNECTIONS_PER_HOUR 1",
            "CREATE USER q IDENTIFIED BY 'p' WITH MAX_QUERIES_PER_HOUR 20",
        ],
    );
    assert_eq!(refused(&server, "b", "x"), 1045);
    assert_eq!(refused(&server, "b", "x"), 3955);
    assert_eq!(refused(&server, "b", "p"), 3955);
    run(&mut root, &["ALTER USER b ACCOUNT UNLOCK"]);
    assert_eq!(refused(&server, "b", "p"), 0);
    let first = log_in(&server, "c", "p").unwrap();
    assert_eq!(refused(&server, "c", "p"), 1226);
    drop(first);
    assert_eq!(refused(&server, "h", "p"), 0);
    assert_eq!(refused(&server, "h", "p"), 1226);
    run(&mut root, &["FLUSH USER_RESOURCES"]);
    assert_eq!(refused(&server, "h", "p"), 0);
    let mut asking = log_in(&server, "q", "p").unwrap();
    let refusal = (0..30).map(|_| code(&mut asking, "DO 1")).find(|code| *code != 0);
    assert_eq!(refusal, Some(1226));
    run(&mut root, &["ALTER USER h PASSWORD EXPIRE", "FLUSH USER_RESOURCES"]);
    let of_expired = refused(&server, "h", "p");
    assert!([1820, 1862].contains(&of_expired), "{of_expired}");
    run(&mut root, &["SET GLOBAL max_user_connections = 1"]);
    let _held = log_in(&server, "b", "p").unwrap();
    assert_eq!(refused(&server, "b", "p"), 1203);
    assert_eq!(code(&mut root, "CREATE USER x REQUIRE X509"), 1235);
}

#[test]
fn a_read_only_server_takes_no_changes() {
    let server = Server::start(&[], &[]);
    let (mut root, mut other) = (server.connect(), server.connect());
    run(
        &mut root,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT)",
            "CREATE USER u IDENTIFIED BY 'p'",
            "GRANT ALL ON d.* TO u",
            "SET GLOBAL read_only = ON",
        ],
    );
    let mut user = log_in(&server, "u", "p").unwrap();
    for statement in ["INSERT INTO d.t VALUES (1)", "CREATE TABLE d.u (a INT)", "DROP TABLE d.t"] {
        assert_eq!(code(&mut user, statement), 1290, "{statement}");
    }
    run(
        &mut user,
        &[
            "CREATE TEMPORARY TABLE d.x (a INT)",
            "INSERT INTO d.x VALUES (1)",
            "SELECT * FROM d.x",
            "DROP TEMPORARY TABLE d.x",
        ],
    );
    run(&mut root, &["INSERT INTO d.t VALUES (1)", "SET GLOBAL super_read_only = ON"]);
    assert_eq!(code(&mut root, "INSERT INTO d.t VALUES (2)"), 1290);
    assert_eq!(code(&mut root, "CREATE USER v"), 1290);
    run(&mut root, &["SET GLOBAL read_only = OFF", "INSERT INTO d.t VALUES (3)"]);
    run(&mut other, &["SET SESSION TRANSACTION READ ONLY"]);
    for statement in ["INSERT INTO d.t VALUES (4)", "TRUNCATE d.t", "GRANT SELECT ON d.* TO u"] {
        assert_eq!(code(&mut other, statement), 1792, "{statement}");
    }
}

/// Who may read the first column of a table is not told the name of another one by `*`; as recorded
/// from MySQL 9.7.
#[test]
fn a_star_does_not_tell_the_names_of_forbidden_columns() {
    let server = Server::start(&[], &[]);
    let mut client = server.connect();
    run(
        &mut client,
        &[
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT, b INT, c INT)",
            "CREATE USER reader IDENTIFIED BY 'one'",
            "GRANT SELECT (a), SELECT (b) ON d.t TO reader",
            "CREATE USER last IDENTIFIED BY 'one'",
            "GRANT SELECT (c) ON d.t TO last",
        ],
    );
    let mut reader = log_in(&server, "reader", "one").unwrap();
    for (statement, expected) in [
        ("SELECT a, b FROM d.t", 0),
        ("SELECT * FROM d.t", 1142),
        ("SELECT x.* FROM d.t AS x WHERE c = 1", 1142),
        ("SELECT a FROM d.t WHERE c = 1", 1143),
        ("SELECT a, c FROM d.t", 1143),
    ] {
        assert_eq!(code(&mut reader, statement), expected, "{statement}");
    }
    let mut last = log_in(&server, "last", "one").unwrap();
    assert_eq!(code(&mut last, "SELECT * FROM d.t"), 1143);
}

#[test]
fn sessions_begin_with_the_consistency_of_their_account() {
    let server = Server::start(&[], &[]);
    let mut root = server.connect();
    run(
        &mut root,
        &[
            "CREATE USER rita@'%' IDENTIFIED BY 'r' ATTRIBUTE '{\"firn_read_consistency\": \"STALE\"}'",
        ],
    );
    let consistency = |client: &mut Conn| -> String {
        client.query_first("SELECT @@firn_read_consistency").unwrap().unwrap()
    };
    let mut client = log_in(&server, "rita", "r").unwrap();
    assert_eq!(consistency(&mut client), "STALE");
    run(&mut client, &["SET firn_read_consistency = 'STRONG'"]);
    assert_eq!(consistency(&mut client), "STRONG");
    client.reset().unwrap();
    assert_eq!(consistency(&mut client), "STALE");
    assert_eq!(consistency(&mut root), "STRONG");
    run(&mut root, &["ALTER USER rita@'%' ATTRIBUTE '{\"firn_read_consistency\": null}'"]);
    let mut client = log_in(&server, "rita", "r").unwrap();
    assert_eq!(consistency(&mut client), "STRONG");
}
