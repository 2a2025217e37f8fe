//! Sessions that leave what ends with their server, and go on at the next one.

mod support;

use firn_compute::Instance;
use firn_node::endpoint::Endpoint;
use firn_wire::{
    Carried, Execution, Login, Parameter, ReplyRecorder, RowFormat, Service, Session, Status,
};

use support::Database;
use support::sessions::{ask, login, refusal, run, service, value};

/// A client's login: two of different numbers are different clients.
fn client(instance: &Instance, number: u32) -> Login {
    use std::sync::Arc;

    use firn_wire::{ConnectionControl, PeerAddress};
    let id = instance.connection_ids().end() - number;
    let connection = Arc::new(ConnectionControl::relayed(id, PeerAddress::Unix));
    Login { connection, schema: None, ..login(instance) }
}

fn open(endpoint: &Endpoint, number: u32) -> Box<dyn Session> {
    service(endpoint).open(client(endpoint.instance(), number)).unwrap()
}

/// The session of this client goes on.
fn go_on(endpoint: &Endpoint, number: u32, carried: &Carried) -> Box<dyn Session> {
    let login = client(endpoint.instance(), number);
    let document = carried.document.as_deref();
    let mut session = service(endpoint).resume(login, document, &carried.last).unwrap();
    session.take_left();
    session
}

/// The session leaves what it has and ends, as in a planned switch.
fn leave(mut session: Box<dyn Session>) -> Carried {
    let carried = session.carried();
    assert!(session.leave_session());
    carried
}

/// The next life of the database, and its compute node, after a planned switch.
fn switch(database: Database, endpoint: Endpoint) -> (Database, Endpoint) {
    let handed = endpoint.instance().hand_over(7).unwrap();
    drop(endpoint);
    let database = database.restart();
    let endpoint = database.start_after("one", handed.sessions);
    (database, endpoint)
}

/// A database with a table of two rows.
fn database() -> (Database, Endpoint) {
    let database = Database::open();
    let endpoint = database.start("one");
    let mut session = open(&endpoint, 9);
    run(&mut *session, "CREATE DATABASE shop");
    run(&mut *session, "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT)");
    run(&mut *session, "INSERT INTO shop.t VALUES (1, 10), (2, 20)");
    drop(session);
    (database, endpoint)
}

fn own_schemas(database: &Database) -> Vec<Box<str>> {
    let schemas = database.seams.rows.schemas().unwrap();
    schemas.into_iter().filter(|name| name.starts_with('#')).collect()
}

fn execute(session: &mut dyn Session, statement: u32, parameters: &[Parameter<'_>]) -> Vec<u8> {
    let mut recorder = ReplyRecorder::new(RowFormat::Binary);
    let execution = Execution { statement, parameters, attributes: &[] };
    session.execute(execution, &mut recorder.replies()).unwrap();
    recorder.take()
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

fn shown(session: &mut dyn Session) -> Vec<Result<Vec<u8>, String>> {
    SHOWN.iter().map(|text| ask(session, text)).collect()
}

#[test]
fn a_session_goes_on_at_the_next_server_as_it_was() {
    let database = Database::open();
    let endpoint = database.start("one");
    let mut old = open(&endpoint, 0);
    SET_UP.iter().for_each(|text| run(&mut *old, text));
    old.prepare(7, b"SELECT b, ? FROM t WHERE a = ?").unwrap();
    let parameters = [Parameter::Text(b"p"), Parameter::Int(1)];
    let before = (shown(&mut *old), execute(&mut *old, 7, &parameters));
    run(&mut *old, "COMMIT");
    let carried = leave(old);
    let (database, endpoint) = switch(database, endpoint);
    // No other session has anything of it in between.
    let mut stranger = open(&endpoint, 1);
    assert_eq!(value(&mut *stranger, "SELECT GET_LOCK('x', 0)"), Ok("0".to_owned()));
    assert_eq!(value(&mut *stranger, "SELECT COUNT(*) FROM shop.t"), Ok("2".to_owned()));
    assert_eq!(refusal(&mut *stranger, "SELECT 1 FROM shop.other"), 1146);
    drop(stranger);

    let mut new = go_on(&endpoint, 0, &carried);
    assert!(new.carried().is_bound);
    let after = (shown(&mut *new), execute(&mut *new, 7, &parameters));
    for ((text, before), after) in SHOWN.iter().zip(&before.0).zip(&after.0) {
        assert_eq!(before, after, "{text}");
        assert!(after.is_ok(), "{text}: {after:?}");
    }
    assert_eq!(before.1, after.1);
    run(&mut *new, "DROP TEMPORARY TABLE t");
    run(&mut *new, "CREATE TEMPORARY TABLE third (a INT)");
    run(&mut *new, "DEALLOCATE PREPARE plain");
    drop(new);
    assert_eq!(own_schemas(&database), []);
    assert_eq!(database.seams.server.user_lock_owner("x"), None);
}

#[test]
fn locks_go_on_and_nobody_gets_them_in_between() {
    for (begin, wanted, end) in [
        ("LOCK TABLES shop.t WRITE", "SELECT * FROM shop.t", "UNLOCK TABLES"),
        ("LOCK TABLES shop.t READ", "INSERT INTO shop.t VALUES (7, 7)", "UNLOCK TABLES"),
        ("FLUSH TABLES WITH READ LOCK", "INSERT INTO shop.t VALUES (7, 7)", "UNLOCK TABLES"),
    ] {
        let (database, endpoint) = database();
        let mut holder = open(&endpoint, 0);
        run(&mut *holder, begin);
        let carried = leave(holder);
        let (_database, endpoint) = switch(database, endpoint);
        let mut stranger = open(&endpoint, 1);
        run(&mut *stranger, "SET SESSION lock_wait_timeout = 1");
        assert_eq!(refusal(&mut *stranger, wanted), 1205, "{begin}");
        let mut holder = go_on(&endpoint, 0, &carried);
        assert!(holder.carried().is_bound, "{begin}");
        run(&mut *holder, "SELECT * FROM shop.t");
        assert_eq!(refusal(&mut *stranger, wanted), 1205, "{begin}");
        run(&mut *holder, end);
        assert!(!holder.carried().is_bound, "{begin}");
        run(&mut *stranger, wanted);
    }
}

#[test]
fn a_handler_goes_on_from_its_row() {
    let (database, endpoint) = database();
    let mut session = open(&endpoint, 0);
    run(&mut *session, "HANDLER shop.t OPEN AS h");
    run(&mut *session, "HANDLER h READ `PRIMARY` FIRST");
    let carried = leave(session);
    let (_database, endpoint) = switch(database, endpoint);
    let mut session = go_on(&endpoint, 0, &carried);
    let mut other = open(&endpoint, 1);
    let next = ask(&mut *session, "HANDLER h READ `PRIMARY` NEXT").unwrap();
    assert!(next.windows(2).any(|bytes| bytes == b"20"), "the second row");
    run(&mut *session, "HANDLER h CLOSE");
    run(&mut *other, "DROP TABLE shop.t");
}

#[test]
fn what_was_left_comes_back_where_the_switch_fails() {
    let (database, endpoint) = database();
    let mut session = open(&endpoint, 0);
    for text in [
        "CREATE TEMPORARY TABLE shop.u (a INT PRIMARY KEY)",
        "INSERT INTO shop.u VALUES (5)",
        "DO GET_LOCK('x', 0)",
        "XA START 'one'",
        "INSERT INTO shop.t VALUES (3, 30)",
        "INSERT INTO shop.u VALUES (6)",
        "XA END 'one'",
    ] {
        run(&mut *session, text);
    }
    let carried = leave(session);
    let instance = endpoint.instance();
    let handed = instance.hand_over(7).unwrap();
    assert_eq!(handed.sessions.len(), 1);
    assert_eq!(handed.node.transactions.len(), 1);
    instance.keep_writing();
    let mut session = go_on(&endpoint, 0, &carried);
    assert!(session.status().contains(Status::IN_TRANSACTION));
    assert_eq!(refusal(&mut *session, "XA END 'one'"), 1399, "it is idle");
    run(&mut *session, "XA COMMIT 'one' ONE PHASE");
    assert_eq!(value(&mut *session, "SELECT SUM(b) FROM shop.t"), Ok("60".to_owned()));
    assert_eq!(value(&mut *session, "SELECT SUM(a) FROM shop.u"), Ok("11".to_owned()));
    assert_eq!(value(&mut *session, "SELECT RELEASE_LOCK('x')"), Ok("1".to_owned()));
    drop(session);
    assert_eq!(own_schemas(&database), []);
}

#[test]
fn a_transaction_may_be_lost_without_the_rest() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint, 0);
    run(&mut *session, "DO GET_LOCK('x', 0)");
    run(&mut *session, "XA START 'one'");
    run(&mut *session, "INSERT INTO shop.t VALUES (3, 30)");
    let carried = leave(session);
    endpoint.instance().roll_back_left_sessions();
    let mut session = go_on(&endpoint, 0, &carried);
    assert!(!session.status().contains(Status::IN_TRANSACTION));
    assert_eq!(value(&mut *session, "SELECT COUNT(*) FROM shop.t"), Ok("2".to_owned()));
    assert_eq!(value(&mut *session, "SELECT RELEASE_LOCK('x')"), Ok("1".to_owned()));
    assert!(!session.carried().is_bound);
}

#[test]
fn what_nobody_goes_on_with_ends() {
    for ends in [
        |endpoint: &Endpoint| {
            let id = *endpoint.instance().connection_ids().end();
            service(endpoint).abandon_session(id);
        },
        |endpoint: &Endpoint| endpoint.instance().end_left_sessions(),
    ] {
        let (database, endpoint) = database();
        let mut session = open(&endpoint, 0);
        run(&mut *session, "CREATE TEMPORARY TABLE shop.u (a INT PRIMARY KEY)");
        run(&mut *session, "DO GET_LOCK('x', 0)");
        run(&mut *session, "BEGIN");
        run(&mut *session, "INSERT INTO shop.u VALUES (6)");
        leave(session);
        assert_eq!(own_schemas(&database).len(), 1);
        assert!(database.seams.server.user_lock_owner("x").is_some());
        ends(&endpoint);
        assert_eq!(own_schemas(&database), []);
        assert_eq!(database.seams.server.user_lock_owner("x"), None);
    }
}

#[test]
fn belongings_go_on_as_a_whole_or_not_at_all() {
    let (database, endpoint) = database();
    let mut session = open(&endpoint, 0);
    run(&mut *session, "CREATE TEMPORARY TABLE shop.u (a INT PRIMARY KEY)");
    run(&mut *session, "DO GET_LOCK('x', 0)");
    let carried = leave(session);
    let schemas = own_schemas(&database);
    let mut definitions = database.seams.rows.change_definitions().unwrap();
    definitions.drop_schema(&schemas[0]).unwrap();
    definitions.commit().unwrap();
    let mut session = go_on(&endpoint, 0, &carried);
    assert!(!session.carried().is_bound, "the front ends the connection");
    assert_eq!(database.seams.server.user_lock_owner("x"), None);
}

#[test]
fn the_next_transaction_is_what_was_set() {
    let (_database, endpoint) = database();
    let mut old = open(&endpoint, 0);
    run(&mut *old, "SET TRANSACTION READ ONLY");
    let carried = old.carried();
    drop(old);
    let mut new = go_on(&endpoint, 0, &carried);
    assert_eq!(refusal(&mut *new, "INSERT INTO shop.t VALUES (3, 3)"), 1792);
    run(&mut *new, "INSERT INTO shop.t VALUES (3, 3)");
}

#[test]
fn a_document_is_taken_up_by_its_account_and_only_whole() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint, 0);
    run(&mut *session, "CREATE USER app@localhost");
    run(&mut *session, "SET @a = 1");
    let Carried { document, last, .. } = session.carried();
    let document = document.unwrap();
    let login = || client(endpoint.instance(), 1);
    let app = || {
        let (user, account) = ("app".to_owned(), "app@localhost".to_owned());
        Login { user, account, ..login() }
    };
    let other = service(&endpoint).resume(app(), Some(&document), &last).err().unwrap();
    assert!(other.message.contains("another account"), "{}", other.message);
    let half = &document[..document.len() / 2];
    let half = service(&endpoint).resume(login(), Some(half), &last).err().unwrap();
    assert!(half.message.contains("cannot be read"), "{}", half.message);
}
