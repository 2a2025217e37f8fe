//! A session that is written down on one compute node and continues on another one.

mod support;

use std::sync::Arc;

use firn_compute::Instance;
use firn_compute::session::{Beginning, HandoverError, SqlSession};
use firn_node::endpoint::Endpoint;
use firn_wire::{
    ConnectionControl, Connections, Execution, Parameter, Query, ReplyRecorder, RowFormat, Session,
    WireError,
};

use support::Database;

fn beginning(instance: &Instance, user: &str) -> Beginning {
    let ids = instance.connection_ids();
    let account = instance.accounts.find(user, "localhost").unwrap();
    Beginning {
        // The test's own sessions take numbers from the end, clients from the beginning.
        control: Arc::new(ConnectionControl::detached(*ids.end())),
        connections: Arc::new(Connections::new(ids)),
        user: user.to_owned(),
        host: "localhost".to_owned(),
        account,
        schema: None,
        collation: 255,
        tls: None,
    }
}

fn open(endpoint: &Endpoint) -> SqlSession {
    let instance = endpoint.instance();
    SqlSession::open(instance, beginning(instance, "root")).unwrap()
}

/// The packets of an answer, or the error's code and message.
fn ask(session: &mut SqlSession, text: &str) -> Result<Vec<u8>, String> {
    let mut recorder = ReplyRecorder::new(RowFormat::Text);
    let query = Query { text: text.as_bytes(), attributes: &[], multi_statements: false };
    match session.query(query, &mut recorder.replies()) {
        Ok(()) => Ok(recorder.take()),
        Err(WireError::Refused(error)) => Err(format!("{} {}", error.code, error.message)),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn run(session: &mut SqlSession, text: &str) {
    ask(session, text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn execute(session: &mut SqlSession, statement: u32, parameters: &[Parameter<'_>]) -> Vec<u8> {
    let mut recorder = ReplyRecorder::new(RowFormat::Binary);
    let execution = Execution { statement, parameters, attributes: &[] };
    session.execute(execution, &mut recorder.replies()).unwrap();
    recorder.take()
}

fn resume(endpoint: &Endpoint, user: &str, document: &[u8]) -> Result<SqlSession, HandoverError> {
    let instance = endpoint.instance();
    SqlSession::resume(instance, beginning(instance, user), document)
}

/// Statements by which a client sets up its session.
const SET_UP: [&str; 18] = [
    "CREATE DATABASE shop",
    "USE shop",
    "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20))",
    "INSERT INTO t (b) VALUES ('stored'), ('rows')",
    "CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b VARCHAR(20))",
    "INSERT INTO t VALUES (1, 'temporary')",
    "CREATE TEMPORARY TABLE other (a INT)",
    "SET @number = -7, @text = 'snow', @bytes = x'C3FF', @decimal = 12.30, @double = 0.1e0 + 0.2e0",
    "SET @date = CAST('2026-11-24' AS DATE), @json = JSON_ARRAY(1, 2.5, 'x'), @none = NULL",
    "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
    "SET SESSION time_zone = '+03:00', autocommit = 0, lock_wait_timeout = 5",
    "SET character_set_results = latin1",
    "PREPARE plain FROM 'SELECT ? + 1, \"text\"'",
    "SET SESSION sql_mode = 'ANSI_QUOTES,NO_ZERO_DATE'",
    "PREPARE quoted FROM 'SELECT \"a\", b FROM t WHERE a = ?'",
    "DO GET_LOCK('x', 0), GET_LOCK('x', 0), GET_LOCK('y', 0)",
    "DO LAST_INSERT_ID(99)",
    "COMMIT",
];

/// Queries that show the set-up.
const SHOWN: [&str; 12] = [
    "SELECT LAST_INSERT_ID(), DATABASE(), CURRENT_USER(), ROW_COUNT()",
    "SELECT * FROM t",
    "SELECT * FROM shop.other",
    "SELECT @number, @text, @bytes, @decimal, @double, @date, @json, @none",
    "SELECT @number + 1, CONCAT(@text, 'x'), @decimal * 2, @date + INTERVAL 1 DAY, COLLATION(@text)",
    "SELECT @@time_zone, @@autocommit, @@lock_wait_timeout, @@sql_mode",
    "SELECT @@character_set_client, @@collation_connection, @@character_set_results, NULL 'x'",
    "SET @one = 1",
    "EXECUTE plain USING @one",
    "EXECUTE quoted USING @one",
    "SELECT IS_FREE_LOCK('x'), IS_USED_LOCK('y') = CONNECTION_ID()",
    "COMMIT",
];

fn shown(session: &mut SqlSession) -> Vec<Result<Vec<u8>, String>> {
    SHOWN.iter().map(|text| ask(session, text)).collect()
}

#[test]
fn a_session_goes_on_at_another_node_as_it_was() {
    let database = Database::open();
    let (one, other) = (database.start("one"), database.start("other"));
    let mut old = open(&one);
    SET_UP.iter().for_each(|text| run(&mut old, text));
    old.prepare(7, b"SELECT b, ? FROM t WHERE a = ?").unwrap();
    let parameters = [Parameter::Text(b"p"), Parameter::Int(1)];
    let before = (shown(&mut old), execute(&mut old, 7, &parameters));
    run(&mut old, "COMMIT");
    let document = old.suspend().unwrap();
    drop(old);
    // No other session takes the lock in between.
    let mut stranger = open(&other);
    run(&mut stranger, "SELECT 1");
    assert!(ask(&mut stranger, "SELECT 1 FROM t").is_err());
    assert!(database.seams.server.user_lock_owner("x").is_some());
    drop(stranger);

    let mut new = resume(&other, "root", &document).unwrap();
    // The old session's schema went with its tables; the clean-up of its node has nothing to do.
    let schemas = database.seams.rows.schemas().unwrap();
    assert_eq!(schemas.iter().filter(|name| name.starts_with('#')).count(), 1, "{schemas:?}");
    drop(one);
    let after = (shown(&mut new), execute(&mut new, 7, &parameters));
    for ((text, before), after) in SHOWN.iter().zip(&before.0).zip(&after.0) {
        assert_eq!(before, after, "{text}");
        assert!(after.is_ok(), "{text}: {after:?}");
    }
    assert_eq!(before.1, after.1);
    run(&mut new, "DROP TEMPORARY TABLE t");
    run(&mut new, "DEALLOCATE PREPARE plain");
    drop(new);
    let schemas = database.seams.rows.schemas().unwrap();
    assert!(!schemas.iter().any(|name| name.starts_with('#')), "{schemas:?}");
    assert_eq!(database.seams.server.user_lock_owner("x"), None);
}

#[test]
fn the_next_transaction_is_what_was_set() {
    let database = Database::open();
    let one = database.start("one");
    let mut old = open(&one);
    run(&mut old, "CREATE DATABASE shop");
    run(&mut old, "CREATE TABLE shop.t (a INT PRIMARY KEY)");
    run(&mut old, "SET TRANSACTION READ ONLY");
    let document = old.suspend().unwrap();
    drop(old);
    let mut new = resume(&one, "root", &document).unwrap();
    let refused = ask(&mut new, "INSERT INTO shop.t VALUES (1)").unwrap_err();
    assert!(refused.starts_with("1792 "), "{refused}");
    run(&mut new, "INSERT INTO shop.t VALUES (1)");
}

#[test]
fn what_cannot_move_is_refused_and_the_session_goes_on() {
    let database = Database::open();
    let one = database.start("one");
    let mut session = open(&one);
    run(&mut session, "CREATE DATABASE shop");
    run(&mut session, "CREATE TABLE shop.t (a INT PRIMARY KEY)");
    for (begin, refused, end) in [
        ("BEGIN", HandoverError::TransactionOpen, &["ROLLBACK"][..]),
        ("XA START 'x'", HandoverError::TransactionOpen, &["XA END 'x'", "XA ROLLBACK 'x'"]),
        ("LOCK TABLES shop.t READ", HandoverError::TablesLocked, &["UNLOCK TABLES"]),
        ("FLUSH TABLES WITH READ LOCK", HandoverError::TablesLocked, &["UNLOCK TABLES"]),
        ("HANDLER shop.t OPEN", HandoverError::HandlerOpen, &["HANDLER shop.t CLOSE"]),
    ] {
        run(&mut session, begin);
        assert_eq!(session.suspend().unwrap_err(), refused, "{begin}");
        end.iter().for_each(|text| run(&mut session, text));
    }
    run(&mut session, "SELECT * FROM shop.t");
    session.suspend().unwrap();
}

#[test]
fn a_document_is_taken_up_by_its_account_and_only_whole() {
    let database = Database::open();
    let one = database.start("one");
    let mut session = open(&one);
    run(&mut session, "CREATE USER app@localhost");
    run(&mut session, "DO GET_LOCK('x', 0)");
    let document = session.suspend().unwrap();
    let other = resume(&one, "app", &document).err().unwrap();
    assert!(matches!(other, HandoverError::OtherAccount(_)), "{other}");
    let half = resume(&one, "root", &document[..document.len() / 2]).err().unwrap();
    assert!(matches!(half, HandoverError::Document(_)), "{half}");
    database.seams.server.release_user_locks(u64::from(*one.instance().connection_ids().end()));
    let lost = resume(&one, "root", &document).err().unwrap();
    assert_eq!(lost, HandoverError::LockLost("x".to_owned()));
}
