//! Commits that sessions leave to the log (`asynchronous_commit`), over a disk that hangs or fails.
//!
//! ```text
//!   first    statement ─► leads the sync ······· hangs ······· ─► answered
//!   second   statement ─► stays: it leads the next one        ─► answered
//!   others   statement ─► receives the next command             (answered by another thread)
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

/// How many clients commit while the disk hangs.
const CLIENTS: usize = 8;
/// Time in which nobody is answered.
const MOMENT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(endpoint: &Endpoint) -> mysql::Conn {
    let options = mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1"));
    let options = options.tcp_port(endpoint.address().unwrap().port()).user(Some("root"));
    mysql::Conn::new(options.prefer_socket(false)).unwrap()
}

/// A server whose sessions leave commits whenever they can.
struct Rig {
    hang: Arc<Hang>,
    endpoint: Endpoint,
    _database: Database,
}

/// A client with a statement under way.
struct Waiting {
    id: u32,
    thread: JoinHandle<(mysql::Conn, Result<(), mysql::Error>)>,
}

impl Waiting {
    /// Lets the client run `statements` one after the other, up to the first error.
    fn begin(mut client: mysql::Conn, statements: Vec<String>) -> Waiting {
        let id = client.connection_id();
        let thread = std::thread::spawn(move || {
            let done = statements.iter().try_for_each(|statement| client.query_drop(statement));
            (client, done)
        });
        Waiting { id, thread }
    }
}

impl Rig {
    fn new() -> Rig {
        let hang = Arc::new(Hang::default());
        let disk = Arc::new(HangingDisk(Arc::clone(&hang)));
        let environment = Environment { disk, ..Environment::system() };
        let database = Database::open_with(environment, Some(1));
        let endpoint = database.start("compute");
        let mut client = connect(&endpoint);
        for statement in [
            "CREATE DATABASE d",
            "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)",
            "INSERT INTO d.t VALUES (1000, 0)",
            "INSERT INTO d.t VALUES (1001, 0)",
        ] {
            client.query_drop(statement).unwrap();
        }
        Rig { hang, endpoint, _database: database }
    }

    /// Clients whose commits wait for the disk, which hangs. Half of them insert, the others commit
    /// a transaction.
    fn commit_into_the_hang(&self) -> Vec<Waiting> {
        let clients: Vec<_> = (0..CLIENTS).map(|_| connect(&self.endpoint)).collect();
        self.hang.begin();
        let begin = |(id, client)| {
            let insert = format!("INSERT INTO d.t VALUES ({id}, 7)");
            let statements = match id % 2 {
                0 => vec![insert],
                _ => vec!["BEGIN".to_owned(), insert, "COMMIT".to_owned()],
            };
            Waiting::begin(client, statements)
        };
        clients.into_iter().enumerate().map(begin).collect()
    }

    /// Waits until most of these connections are in a command that their sessions have ended, and
    /// then a moment for the others. One may lead the round, and one stays to lead the next one.
    fn wait_until_left(&self, watcher: &mut mysql::Conn, waiting: &[Waiting]) {
        let ids: Vec<_> = waiting.iter().map(|one| one.id.to_string()).collect();
        let question = format!(
            "SELECT COUNT(*) FROM information_schema.processlist
             WHERE id IN ({}) AND command = 'Query' AND info IS NULL",
            ids.join(",")
        );
        let began = Instant::now();
        loop {
            let left: usize = watcher.query_first(&question).unwrap().unwrap();
            if left >= CLIENTS - 2 {
                break;
            }
            assert!(began.elapsed() < PATIENCE, "{left} of {CLIENTS} were left");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(MOMENT);
    }
}

#[test]
fn nobody_is_answered_before_the_disk_has_synced() {
    let rig = Rig::new();
    let mut watcher = connect(&rig.endpoint);
    let waiting = rig.commit_into_the_hang();
    rig.wait_until_left(&mut watcher, &waiting);
    assert!(waiting.iter().all(|one| !one.thread.is_finished()), "somebody was answered");
    rig.hang.end();
    for one in waiting {
        let (mut client, done) = one.thread.join().unwrap();
        done.unwrap();
        // Each connection goes on, and sees its own commit.
        let rows: Option<usize> =
            client.query_first("SELECT COUNT(*) FROM d.t WHERE v = 7").unwrap();
        assert_eq!(rows, Some(CLIENTS));
        client.query_drop("UPDATE d.t SET v = v - 1 WHERE id = 1000").unwrap();
    }
}

#[test]
fn a_failed_sync_is_an_error_to_everybody() {
    let rig = Rig::new();
    let mut watcher = connect(&rig.endpoint);
    let waiting = rig.commit_into_the_hang();
    rig.wait_until_left(&mut watcher, &waiting);
    rig.hang.fail();
    rig.hang.end();
    for one in waiting {
        let (_, done) = one.thread.join().unwrap();
        match done {
            Err(mysql::Error::MySqlError(error)) => assert_eq!(error.code, 1180, "{error}"),
            other => panic!("a commit that is not durable was answered: {other:?}"),
        }
    }
}

#[test]
fn a_killed_commit_that_was_left_ends_its_connection_without_an_answer() {
    for scope in ["QUERY", "CONNECTION"] {
        let rig = Rig::new();
        let mut watcher = connect(&rig.endpoint);
        let waiting = rig.commit_into_the_hang();
        rig.wait_until_left(&mut watcher, &waiting);
        for one in &waiting {
            watcher.query_drop(format!("KILL {scope} {}", one.id)).unwrap();
        }
        let began = Instant::now();
        let ids: Vec<_> = waiting.iter().map(|one| one.id).collect();
        for one in waiting {
            let (_, done) = one.thread.join().unwrap();
            let error = done.expect_err("its outcome is not known");
            assert!(!matches!(error, mysql::Error::MySqlError(_)), "KILL {scope}: {error}");
        }
        assert!(began.elapsed() < PATIENCE);
        let mut command_of = |id| {
            let statement =
                format!("SELECT command FROM information_schema.processlist WHERE id = {id}");
            watcher.query_first::<String, _>(statement).unwrap()
        };
        assert!(ids.iter().all(|id| command_of(*id).as_deref() == Some("Killed")), "KILL {scope}");
        rig.hang.end();
        while ids.iter().any(|id| command_of(*id).is_some()) {
            assert!(began.elapsed() < PATIENCE, "the sessions stay");
            std::thread::sleep(Duration::from_millis(2));
        }
        // They follow their records.
        let rows = watcher.query_first::<usize, _>("SELECT COUNT(*) FROM d.t WHERE v = 7").unwrap();
        assert_eq!(rows, Some(CLIENTS));
    }
}

/// Many rounds of many clients: each is answered, each time.
#[test]
fn every_commit_of_a_crowd_is_answered() {
    let rig = Rig::new();
    let (clients, rounds) = (24, 30);
    let begin = |number: usize| {
        let client = connect(&rig.endpoint);
        let insert = |round| format!("INSERT INTO d.t VALUES ({}, 5)", number * 100 + round + 2000);
        Waiting::begin(client, (0..rounds).map(insert).collect())
    };
    let waiting: Vec<_> = (0..clients).map(begin).collect();
    let began = Instant::now();
    for one in waiting {
        while !one.thread.is_finished() {
            assert!(began.elapsed() < PATIENCE * 3, "a commit is forgotten");
            std::thread::sleep(Duration::from_millis(2));
        }
        let (mut client, done) = one.thread.join().unwrap();
        done.unwrap();
        client.query_drop("DO 1").unwrap();
    }
    let mut watcher = connect(&rig.endpoint);
    let rows = watcher.query_first::<usize, _>("SELECT COUNT(*) FROM d.t WHERE v = 5").unwrap();
    assert_eq!(rows, Some(clients * rounds));
}
