//! What is carried of a session to go on with it at another server, after its own has ended
//! without a word.

mod support;

use std::time::Duration;

use firn_node::endpoint::Endpoint;
use firn_wire::{
    Carried, CommandIdentity, Execution, LastResults, Login, Parameter, ReplyRecorder, RowFormat,
    Service,
};

use support::Database;
use support::sessions::{ask, login, open, run, service};

/// A database with a schema and a table.
fn database() -> (Database, Endpoint) {
    let database = Database::open();
    let endpoint = database.start("one");
    let mut session =
        service(&endpoint).open(Login { schema: None, ..login(endpoint.instance()) }).unwrap();
    run(&mut *session, "CREATE DATABASE shop");
    run(&mut *session, "CREATE TABLE shop.t (a INT AUTO_INCREMENT PRIMARY KEY, b INT)");
    drop(session);
    (database, endpoint)
}

#[test]
fn a_session_is_written_down_only_when_it_has_changed() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint);
    assert_eq!(session.carried().document, None, "the login says all");
    for text in ["SELECT * FROM t", "INSERT INTO t (b) VALUES (1)", "BEGIN", "COMMIT", "SELECT @a"]
    {
        run(&mut *session, text);
        assert_eq!(session.carried().document, None, "{text}");
    }
    for text in [
        "SET @a = 1",
        "SELECT @a := 2",
        "SELECT 3 INTO @a",
        "SET SESSION lock_wait_timeout = 7",
        "SET TRANSACTION READ ONLY",
        // The next transaction takes that away.
        "SELECT 1 FROM t",
        "USE shop",
        "SET ROLE NONE",
        "SET NAMES latin1",
        "PREPARE one FROM 'SELECT 1'",
        "DEALLOCATE PREPARE one",
    ] {
        run(&mut *session, text);
        assert!(session.carried().document.is_some(), "{text}");
        assert_eq!(session.carried().document, None, "once is enough");
    }
    session.prepare(7, b"SELECT ?").unwrap();
    assert!(session.carried().document.is_some());
    session.close_statement(7);
    assert_eq!(session.carried().document, None, "the process that has the client knows it");
}

#[test]
fn a_session_keeps_the_global_values_that_it_began_with() {
    let ((_one, first), (_other, second)) = (database(), database());
    run(&mut *open(&first), "SET GLOBAL lock_wait_timeout = 7, GLOBAL sql_mode = ''");
    run(&mut *open(&second), "SET GLOBAL max_error_count = 3, GLOBAL lock_wait_timeout = 9");
    let mut old = open(&first);
    let document = old.carried().document.expect("the login does not say that");
    let text = "SELECT @@lock_wait_timeout, @@sql_mode, @@max_error_count";
    let resume = |document: Option<&[u8]>| {
        let login = login(second.instance());
        service(&second).resume(login, document, &LastResults::default()).unwrap()
    };
    assert_eq!(ask(&mut *resume(Some(&document)), text), ask(&mut *old, text));
    // And a session of a server whose values were the built-in ones.
    let (_third, third) = database();
    let mut plain = open(&third);
    assert_eq!(plain.carried().document, None);
    assert_eq!(ask(&mut *resume(None), text), ask(&mut *plain, text));
    // What the login says is a value that can be taken back.
    run(&mut *old, "SET NAMES utf8mb4");
    let document = old.carried().document.unwrap();
    let latin = Login { collation: 8, ..login(second.instance()) };
    let mut new = service(&second).resume(latin, Some(&document), &LastResults::default()).unwrap();
    let text = "SELECT @@character_set_client, @@collation_connection";
    assert_eq!(ask(&mut *new, text), ask(&mut *old, text));
}

#[test]
fn reads_of_the_server_itself_are_known() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint);
    assert!(!session.carried().reads_at_home);
    run(&mut *session, "USE information_schema");
    assert!(session.carried().reads_at_home);
}

#[test]
fn a_note_waits_for_the_table_that_somebody_else_makes() {
    for is_made in [false, true] {
        let (database, endpoint) = database();
        let rows = &database.seams.rows;
        let table = |schema: &str, name: &str| rows.table_named(schema, name).unwrap();
        assert!(table("mysql", "firn_commits").is_none(), "nobody has left a note");
        // A table of the server has the same columns.
        let like = table("mysql", "firn_accounts").expect("a table of documents");
        let mut definition = like.definition().clone();
        definition.name = "firn_commits".into();
        let mut other = rows.change_definitions().unwrap();
        other.create_table(definition).unwrap();
        let mut session = open(&endpoint);
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || {
                session.identify(CommandIdentity { front: 1, session: 2, number: 3 });
                ask(&mut *session, "INSERT INTO t (b) VALUES (1)")
            });
            firn_base::task::sleep(Duration::from_millis(50));
            if is_made {
                other.commit().unwrap()
            } else {
                drop(other)
            }
            writer.join().unwrap().expect("the other one is waited for");
        });
        assert!(table("mysql", "firn_commits").is_some());
    }
}

#[test]
fn serializable_reads_stay_at_home() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint);
    run(&mut *session, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    assert!(session.carried().reads_at_home);
    run(&mut *session, "BEGIN");
    run(&mut *session, "COMMIT");
    assert!(!session.carried().reads_at_home);
    run(&mut *session, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    assert!(session.carried().reads_at_home);
}

#[test]
fn a_session_that_wants_its_own_writes_tells_up_to_where_they_are() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint);
    run(&mut *session, "INSERT INTO t (b) VALUES (1)");
    assert_eq!(session.carried().last.written, 0, "nobody asks");
    run(&mut *session, "SET SESSION firn_read_consistency = 'SESSION'");
    let before = session.carried().last.written;
    assert!(before > 0);
    run(&mut *session, "INSERT INTO t (b) VALUES (2)");
    assert!(session.carried().last.written > before);
}

#[test]
fn what_ends_with_the_server_binds_the_session_to_it() {
    let (_database, endpoint) = database();
    let mut session = open(&endpoint);
    for (begin, end) in [
        ("CREATE TEMPORARY TABLE u (a INT)", &["DROP TABLE u"][..]),
        ("DO GET_LOCK('x', 0)", &["DO RELEASE_LOCK('x')"]),
        ("LOCK TABLES t READ", &["UNLOCK TABLES"]),
        ("FLUSH TABLES WITH READ LOCK", &["UNLOCK TABLES"]),
        ("HANDLER t OPEN", &["HANDLER t CLOSE"]),
        ("XA START 'x'", &["XA END 'x'", "XA ROLLBACK 'x'"]),
    ] {
        assert!(!session.carried().is_bound, "before {begin}");
        run(&mut *session, begin);
        assert!(session.carried().is_bound, "{begin}");
        end.iter().for_each(|text| run(&mut *session, text));
    }
    assert!(!session.carried().is_bound);
}

#[test]
fn a_session_goes_on_at_another_server() {
    let ((_one, first), (_other, second)) = (database(), database());
    let mut old = open(&first);
    let mut document = None;
    for text in [
        "SET @a = 'text', @b = 1.50",
        "SET SESSION time_zone = '+03:00'",
        "PREPARE named FROM 'SELECT @a, ?'",
        "INSERT INTO t (b) VALUES (1), (2)",
        "BEGIN",
        // What is set up in a transaction outlives it.
        "SET @b = 2.50",
        "INSERT INTO t (b) VALUES (3)",
    ] {
        run(&mut *old, text);
        let carried = old.carried();
        document = carried.document.or(document);
    }
    old.prepare(7, b"SELECT b FROM t WHERE a = ?").unwrap();
    let Carried { document: newest, last, is_bound, .. } = old.carried();
    assert!(!is_bound);
    assert_eq!(last, LastResults { last_insert_id: 3, row_count: 1, ..last });
    let document = newest.or(document).expect("the session was set up");
    run(&mut *old, "ROLLBACK");

    let login = login(second.instance());
    let mut new = service(&second).resume(login, Some(&document), &last).unwrap();
    for (text, is_as_before) in [
        ("SELECT LAST_INSERT_ID(), DATABASE(), @a, @b, @@time_zone", true),
        ("EXECUTE named USING @b", true),
        ("SELECT COUNT(*) FROM t", false),
    ] {
        let (before, after) = (ask(&mut *old, text), ask(&mut *new, text));
        assert!(after.is_ok(), "{text}: {after:?}");
        assert_eq!(before == after, is_as_before, "{text}");
    }
    let mut recorder = ReplyRecorder::new(RowFormat::Binary);
    let parameters = [Parameter::Int(1)];
    let execution = Execution { statement: 7, parameters: &parameters, attributes: &[] };
    new.execute(execution, &mut recorder.replies()).unwrap();
    let none = service(&second);
    let broken =
        none.resume(support::sessions::login(second.instance()), Some(b"{}"), &last).err().unwrap();
    assert_eq!(broken.code, 1105);
}
