//! Statements whose commit waits for a disk that hangs. `KILL QUERY`, `KILL`, a client that leaves
//! and the end of the server close the connection soon, without an answer that would say what
//! became of the statement. The locks are free, and the rows follow the commit's record: they are
//! there once the disk works again.
//!
//! ```text
//!   victim   statement ─► commit record ─► sync ········ hangs ········ ─► durable
//!   watcher                         KILL ─► the victim's client loses its connection
//! ```

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use firn_base::Environment;
use firn_node::endpoint::Endpoint;
use mysql::prelude::Queryable;
use support::Database;
use support::hanging_disk::{Hang, HangingDisk};

/// How long a client may wait for the end. The test's build is slow, and the machine may be.
const LIMIT: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 100 });
/// A machine that is busy is late now and then, but not so often in a row.
const ATTEMPTS: usize = 20;
/// Time until a statement waits for the sync that hangs.
const SOON: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(endpoint: &Endpoint) -> mysql::Conn {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1"));
    let options = options.tcp_port(endpoint.address().unwrap().port()).user(Some("root"));
    mysql::Conn::new(options.prefer_socket(false)).unwrap()
}

/// A server over a disk that hangs on command.
struct Rig {
    hang: Arc<Hang>,
    endpoint: Endpoint,
    _database: Database,
}

/// A client whose statement hangs.
struct Victim {
    id: u32,
    thread: JoinHandle<(Instant, mysql::Error)>,
}

impl Rig {
    fn new() -> Rig {
        let hang = Arc::new(Hang::default());
        let disk = Arc::new(HangingDisk(Arc::clone(&hang)));
        let database = Database::open_in(Environment { disk, ..Environment::system() });
        let endpoint = database.start("compute");
        let mut client = connect(&endpoint);
        for statement in [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO d.t VALUES (1, 1), (2, 2)",
        ] {
            client.query_drop(statement).unwrap();
        }
        Rig { hang, endpoint, _database: database }
    }

    /// Runs statements; the disk hangs before the last one.
    fn hang_in(&self, statements: &[&'static str]) -> Victim {
        let mut client = connect(&self.endpoint);
        let id = client.connection_id();
        let (last, first) = statements.split_last().unwrap();
        first.iter().for_each(|statement| client.query_drop(statement).unwrap());
        self.hang.begin();
        let last = *last;
        let thread = std::thread::spawn(move || {
            let error = client.query_drop(last).expect_err("the disk hangs");
            (Instant::now(), error)
        });
        self.hang.wait_until_met();
        std::thread::sleep(SOON);
        Victim { id, thread }
    }
}

impl Victim {
    /// Checks that the client lost its connection after `began`, without an answer: any error with
    /// a number would say that the statement has had no effect. Returns how long that took.
    fn check_lost(self, began: Instant, what: &str) -> Duration {
        while !self.thread.is_finished() {
            assert!(began.elapsed() < PATIENCE, "{what} does not end the wait");
            std::thread::sleep(Duration::from_millis(2));
        }
        let (at, error) = self.thread.join().unwrap();
        assert!(!matches!(error, mysql::Error::MySqlError(_)), "{what}: {error}");
        at - began
    }
}

/// Lets the disk go on when it is dropped, which includes a panic.
struct EndsHang(Arc<Hang>);

impl Drop for EndsHang {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Repeats a story until its wait ends in time.
fn check_in_time(what: &str, mut story: impl FnMut() -> Duration) {
    let took: Vec<Duration> =
        (0..ATTEMPTS).map(|_| story()).take_while(|it| *it >= LIMIT).collect();
    assert!(took.len() < ATTEMPTS, "{what} takes {took:?}");
}

/// The command that the process list shows for a connection.
fn command_of(watcher: &mut mysql::Conn, id: u32) -> Option<String> {
    let statement = format!("SELECT command FROM information_schema.processlist WHERE id = {id}");
    watcher.query_first(statement).unwrap()
}

/// Statements of which the last one's commit hangs, and what a later session sees of them.
const STATEMENTS: [(&[&str], &str); 6] = [
    (&["UPDATE d.t SET v = 10 WHERE id = 1"], "SELECT v = 10 FROM d.t WHERE id = 1"),
    (
        &["BEGIN", "INSERT INTO d.t VALUES (3, 3)", "COMMIT"],
        "SELECT COUNT(*) FROM d.t WHERE id = 3",
    ),
    (
        &["CREATE TABLE d.made (a INT)"],
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'made'",
    ),
    (&["CREATE USER someone"], "SELECT COUNT(*) FROM mysql.user WHERE user = 'someone'"),
    (
        &["XA START 'x'", "INSERT INTO d.t VALUES (4, 4)", "XA END 'x'", "XA COMMIT 'x' ONE PHASE"],
        "SELECT COUNT(*) FROM d.t WHERE id = 4",
    ),
    (
        &[
            "XA START 'y'",
            "INSERT INTO d.t VALUES (5, 5)",
            "XA END 'y'",
            "XA PREPARE 'y'",
            "XA COMMIT 'y'",
        ],
        "SELECT COUNT(*) FROM d.t WHERE id = 5",
    ),
];

/// Kills the last statement, and returns how long its client waited for the end.
fn kill(scope: &str, statements: &[&'static str], question: &str) -> Duration {
    let what = format!("KILL {scope} of {statements:?}");
    let rig = Rig::new();
    let mut watcher = connect(&rig.endpoint);
    let victim = rig.hang_in(statements);
    let id = victim.id;
    assert_eq!(command_of(&mut watcher, id).as_deref(), Some("Query"), "{what}");
    let began = Instant::now();
    watcher.query_drop(format!("KILL {scope} {id}")).unwrap();
    let took = victim.check_lost(began, &what);
    assert_eq!(command_of(&mut watcher, id).as_deref(), Some("Killed"), "{what}");
    rig.hang.end();
    while command_of(&mut watcher, id).is_some() {
        assert!(began.elapsed() < PATIENCE, "{what}: the session stays");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(watcher.query_first::<u64, _>(question).unwrap(), Some(1), "{what}");
    took
}

#[test]
fn a_killed_commit_ends_its_connection_and_follows_its_record() {
    for scope in ["QUERY", "CONNECTION"] {
        for (statements, question) in STATEMENTS {
            check_in_time(&format!("{scope} {statements:?}"), || kill(scope, statements, question));
        }
    }
}

/// One session syncs for all that commit meanwhile; those that wait for it end alike.
#[test]
fn a_commit_that_waits_for_another_sessions_sync_ends_too() {
    check_in_time("KILL QUERY", || {
        let rig = Rig::new();
        let mut watcher = connect(&rig.endpoint);
        let first = rig.hang_in(&["UPDATE d.t SET v = 10 WHERE id = 1"]);
        let second = rig.hang_in(&["UPDATE d.t SET v = 20 WHERE id = 2"]);
        let kill = |watcher: &mut mysql::Conn, victim: Victim| {
            let began = Instant::now();
            watcher.query_drop(format!("KILL QUERY {}", victim.id)).unwrap();
            victim.check_lost(began, "KILL QUERY")
        };
        let of_second = kill(&mut watcher, second);
        assert_eq!(command_of(&mut watcher, first.id).as_deref(), Some("Query"));
        let of_first = kill(&mut watcher, first);
        rig.hang.end();
        let sum = "SELECT SUM(v) FROM d.t";
        assert_eq!(watcher.query_first::<u64, _>(sum).unwrap(), Some(30));
        of_first.max(of_second)
    });
}

#[test]
fn the_end_of_the_server_ends_connections_that_wait_for_the_disk() {
    check_in_time("the end of the server", || {
        let rig = Rig::new();
        let victim = rig.hang_in(&["UPDATE d.t SET v = 10 WHERE id = 1"]);
        let hang = EndsHang(Arc::clone(&rig.hang));
        std::thread::scope(|scope| {
            let began = Instant::now();
            let lost = scope.spawn(move || {
                let _hang = hang;
                victim.check_lost(began, "the end of the server")
            });
            rig.endpoint.shutdown(Duration::ZERO);
            lost.join().unwrap()
        })
    });
}

/// A kill that comes while a commit waits does no harm if the disk answers soon: before the server
/// looks twice whether it does, every 25 ms.
#[test]
fn a_killed_commit_that_is_confirmed_soon_is_answered() {
    let rig = Rig::new();
    let mut watcher = connect(&rig.endpoint);
    let mut client = connect(&rig.endpoint);
    let mut id = client.connection_id();
    for value in 0..200 {
        let began = Instant::now();
        let (updated, killed) = std::thread::scope(|scope| {
            let killer = scope.spawn(|| watcher.query_drop(format!("KILL QUERY {id}")));
            let updated = client.query_drop(format!("UPDATE d.t SET v = {value} WHERE id = 1"));
            (updated, killer.join().unwrap())
        });
        killed.unwrap();
        match updated {
            Ok(()) => {}
            Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1317),
            // The disk did not answer soon.
            Err(_) if began.elapsed() >= Duration::from_millis(25) => {
                client = connect(&rig.endpoint);
                id = client.connection_id();
            }
            Err(error) => panic!("{error}"),
        }
    }
}
