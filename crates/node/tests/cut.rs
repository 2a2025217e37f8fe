//! Statements that are cut ([`firn_wire::Canceller::cut`]): they end as if they had not been run.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::task::StopAtEnd;
use firn_compute::{Instance, SqlService};
use firn_node::endpoint::Endpoint;
use firn_wire::{
    Canceller, Capabilities, ConnectionControl, Connections, Execution, LastResults, Login,
    PeerAddress, Query, ReplyRecorder, RowFormat, Service, Session, Status, WireError,
};

use support::Database;

/// The connection of the session that is cut.
const VICTIM: u32 = 0;
const HOLDER: u32 = 1;

fn login(instance: &Instance, connection: u32) -> Login {
    let ids = instance.connection_ids();
    Login {
        connection: Arc::new(ConnectionControl::relayed(ids.end() - connection, PeerAddress::Unix)),
        connections: Arc::new(Connections::new(ids)),
        user: "root".to_owned(),
        account: "root@localhost".to_owned(),
        schema: None,
        collation: 255,
        capabilities: Capabilities::PROTOCOL_41,
        attributes: Vec::new(),
        tls: None,
    }
}

fn service(endpoint: &Endpoint) -> SqlService {
    SqlService::new(Arc::clone(endpoint.instance()))
}

fn open(endpoint: &Endpoint, connection: u32) -> Box<dyn Session> {
    service(endpoint).open(login(endpoint.instance(), connection)).unwrap()
}

/// The answer to a text of one or several statements, or the error's code and message.
fn ask(session: &mut dyn Session, text: &str) -> Result<Vec<u8>, String> {
    let mut recorder = ReplyRecorder::new(RowFormat::Text);
    let query = Query { text: text.as_bytes(), attributes: &[], multi_statements: true };
    let done = session.query(query, &mut recorder.replies());
    answer(done, recorder)
}

fn answer(done: Result<(), WireError>, mut recorder: ReplyRecorder) -> Result<Vec<u8>, String> {
    match done {
        Ok(()) => Ok(recorder.take()),
        Err(WireError::Refused(error)) => {
            Err(format!("{} {} after {:?}", error.code, error.message, recorder.take()))
        }
        Err(error) => panic!("{error}"),
    }
}

fn run(session: &mut dyn Session, text: &str) {
    ask(session, text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// Runs something in the session, which is cut again and again once `is_time` says so.
fn while_cutting<T>(
    session: &mut dyn Session,
    is_time: impl Fn() -> bool + Sync,
    run: impl FnOnce(&mut dyn Session) -> T,
) -> T {
    let canceller = session.canceller();
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _ended = StopAtEnd(&has_ended);
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                if is_time() {
                    canceller.cut();
                }
                pause();
            }
        });
        run(session)
    })
}

#[allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Runs a text until it has been cut, which is what its error says.
fn cut(session: &mut dyn Session, text: &str) {
    let done = while_cutting(session, || true, |session| ask(session, text));
    assert_cut(session, text, done);
}

fn assert_cut(session: &mut dyn Session, text: &str, done: Result<Vec<u8>, String>) {
    assert_eq!(
        done.expect_err(text),
        "1317 Query execution was interrupted after []",
        "nothing was answered to {text}"
    );
    assert!(session.was_cut(), "{text}");
}

/// A server with a table of 300 rows.
fn server() -> (Database, Endpoint) {
    let database = Database::open();
    let endpoint = database.start("one");
    let mut session = open(&endpoint, HOLDER);
    run(&mut *session, "CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY, b INT)");
    let rows: Vec<String> = (1..=300).map(|row| format!("({row}, 0)")).collect();
    run(&mut *session, &format!("INSERT INTO shop.t VALUES {}", rows.join(", ")));
    (database, endpoint)
}

/// The short text in the only column of the first row.
fn value(session: &mut dyn Session, query: &str) -> String {
    let answer = ask(session, query).unwrap();
    let mut rest = &answer[..];
    let mut packets = Vec::new();
    while let [a, b, c, _, tail @ ..] = rest {
        let (payload, later) = tail.split_at(u32::from_le_bytes([*a, *b, *c, 0]) as usize);
        packets.push(payload);
        rest = later;
    }
    // The number of columns and the column come before it, the length of the text in it.
    String::from_utf8(packets[2][1..].to_vec()).unwrap()
}

/// The values that are not 0.
const CHANGED: &str = "SELECT GROUP_CONCAT(b ORDER BY a) FROM shop.t WHERE b <> 0 OR a = 300";

#[test]
fn a_cut_statement_can_be_run_again() {
    let (_database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    let update = "UPDATE shop.t SET b = b + 1 WHERE a < 5";
    cut(&mut *victim, update);
    assert!(!victim.status().contains(Status::IN_TRANSACTION));
    // Nothing of it is locked or changed.
    run(&mut *holder, "UPDATE shop.t SET b = 7 WHERE a = 1");
    assert_eq!(value(&mut *victim, CHANGED), "0");
    run(&mut *holder, "COMMIT");
    run(&mut *victim, update);
    assert!(!victim.was_cut());
    assert_eq!(value(&mut *holder, CHANGED), "8,1,8,1,0");
}

#[test]
fn a_transaction_goes_on_elsewhere_without_its_cut_statement() {
    let (_database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    run(&mut *victim, "BEGIN; INSERT INTO shop.t VALUES (1000, 1)");
    let document = victim.carried().document;
    let update = "UPDATE shop.t SET b = b + 1 WHERE a < 5 OR a = 1000";
    cut(&mut *victim, update);
    assert!(victim.status().contains(Status::IN_TRANSACTION));
    assert!(victim.leave_session());
    drop(victim);
    let login = login(endpoint.instance(), VICTIM);
    let last = LastResults::default();
    let mut next = service(&endpoint).resume(login, document.as_deref(), &last).unwrap();
    assert!(next.take_left());
    assert_eq!(value(&mut *next, CHANGED), "0,1");
    run(&mut *holder, "ROLLBACK");
    run(&mut *next, update);
    run(&mut *next, "COMMIT");
    assert_eq!(value(&mut *holder, CHANGED), "1,1,1,1,0,2");
}

#[test]
fn a_snapshot_of_a_cut_statement_is_not_kept() {
    let (_database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    run(&mut *victim, "BEGIN");
    cut(&mut *victim, "UPDATE shop.t SET b = b + 1 WHERE a = 3");
    assert!(victim.leave_session());
    drop(victim);
    let login = login(endpoint.instance(), VICTIM);
    let mut next = service(&endpoint).resume(login, None, &LastResults::default()).unwrap();
    assert!(next.take_left());
    // It would be refused as one that overwrites a change that its snapshot does not see.
    run(&mut *holder, "COMMIT");
    run(&mut *next, "UPDATE shop.t SET b = b + 1 WHERE a = 3; COMMIT");
    assert_eq!(value(&mut *holder, CHANGED), "8,0");
}

#[test]
fn a_transaction_that_a_cut_statement_has_begun_ends_with_it() {
    let (_database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    run(&mut *victim, "SET autocommit = 0");
    cut(&mut *victim, "SELECT * FROM shop.t FOR UPDATE");
    assert!(!victim.status().contains(Status::IN_TRANSACTION));
    run(&mut *holder, "UPDATE shop.t SET b = 7");
}

#[test]
fn long_statements_are_cut_wherever_they_wait() {
    let (database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "DO GET_LOCK('held', 0); BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    for text in [
        "SELECT SLEEP(100)",
        "DO SLEEP(100)",
        "SELECT SLEEP(100) INTO @slept",
        "SELECT GET_LOCK('own', 0), GET_LOCK('held', 100)",
        "SELECT a, b FROM shop.t UNION ALL SELECT 1, SLEEP(100)",
        "UPDATE shop.t SET b = SLEEP(100) WHERE a = 1",
        "SELECT COUNT(*) FROM shop.t a, shop.t b, shop.t c, shop.t d WHERE a.b + b.b + c.b + d.b < 0",
        "SELECT a.a, SUM(b.b) FROM shop.t a, shop.t b, shop.t c, shop.t d GROUP BY a.a",
        "DELETE FROM shop.t",
        "INSERT INTO shop.t VALUES (3, 3)",
        "REPLACE shop.t VALUES (3, 3)",
        "SELECT * FROM shop.t WHERE a = 3 FOR SHARE",
        "PREPARE p FROM 'DELETE FROM shop.t'; EXECUTE p",
    ] {
        let last = text.rsplit("; ").next().unwrap();
        if last != text {
            run(&mut *victim, text.split("; ").next().unwrap());
        }
        cut(&mut *victim, last);
        assert_eq!(database.seams.server.user_lock_owner("own"), None);
    }
    // A prepared one, and one that waits for a definition.
    victim.prepare(7, b"UPDATE shop.t SET b = 1").unwrap();
    let done = while_cutting(
        &mut *victim,
        || true,
        |session| {
            let mut recorder = ReplyRecorder::new(RowFormat::Binary);
            let execution = Execution { statement: 7, parameters: &[], attributes: &[] };
            let done = session.execute(execution, &mut recorder.replies());
            answer(done, recorder)
        },
    );
    assert_cut(&mut *victim, "execute", done);
    run(&mut *holder, "COMMIT; LOCK TABLES shop.t WRITE");
    cut(&mut *victim, "SELECT * FROM shop.t");
    for text in ["ALTER TABLE shop.t ADD INDEX (b)", "DROP TABLE shop.t", "TRUNCATE shop.t"] {
        cut(&mut *victim, text);
    }
    run(&mut *holder, "UNLOCK TABLES; FLUSH TABLES WITH READ LOCK");
    cut(&mut *victim, "UPDATE shop.t SET b = 1");
}

#[test]
fn what_has_answered_or_done_something_is_not_cut() {
    let (database, endpoint) = server();
    let mut victim = open(&endpoint, VICTIM);
    let server = Arc::clone(&database.seams.server);
    let is_locked = || server.user_lock_owner("begun").is_some();
    let text = "SELECT REPEAT('x', 70000) UNION ALL SELECT 'rows are sent here'
        UNION ALL SELECT GET_LOCK('begun', 0) UNION ALL SELECT SLEEP(0.3)";
    let done = while_cutting(&mut *victim, is_locked, |session| ask(session, text));
    assert!(done.is_ok() && !victim.was_cut(), "{done:?}");
    run(&mut *victim, "DO RELEASE_ALL_LOCKS()");
    let text = "DO GET_LOCK('begun', 0); DO SLEEP(0.3); INSERT INTO shop.t VALUES (2000, 1)";
    let done = while_cutting(&mut *victim, is_locked, |session| ask(session, text));
    assert!(done.is_ok() && !victim.was_cut(), "{done:?}");
    // Cut or not: what is answered was done, and what was cut was not.
    run(&mut *victim, "DO RELEASE_ALL_LOCKS()");
    let mut inserted = 0;
    for row in 3000..3200 {
        let text = format!("INSERT INTO shop.t VALUES ({row}, 9)");
        let done = while_cutting(&mut *victim, || true, |session| ask(session, &text));
        assert_eq!(done.is_err(), victim.was_cut(), "{done:?}");
        inserted += usize::from(done.is_ok());
    }
    let found = value(&mut *victim, "SELECT COUNT(*) FROM shop.t WHERE b = 9");
    assert_eq!(found, inserted.to_string());
}

#[test]
fn a_kill_is_not_taken_for_a_cut() {
    let (_database, endpoint) = server();
    let (mut victim, mut holder) = (open(&endpoint, VICTIM), open(&endpoint, HOLDER));
    run(&mut *holder, "BEGIN; UPDATE shop.t SET b = 7 WHERE a = 3");
    let canceller: Arc<dyn Canceller> = victim.canceller();
    let kill = || {
        canceller.cancel(firn_wire::CancelReason::KillQuery);
        false
    };
    let done = while_cutting(&mut *victim, kill, |session| ask(session, "DELETE FROM shop.t"));
    assert!(done.unwrap_err().starts_with("1317 ") && !victim.was_cut());
}
