//! A total that no commit changes, queried on a replica while it follows the log.
//!
//! ```text
//!   writers      move amounts between rows, or take it back      total = ROWS × AMOUNT
//!   definer      columns and indexes come and go, rows are copied into a new table
//!   readers      of the replica: the total, by rows and over columns; twice in one transaction
//! ```
//!
//! A reader does not wait for the replica. The only error that it may get is that a table has
//! changed since its snapshot (1412).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::task::StopAtEnd;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::{EXECUTORS, Follower};
use crate::client::Client;
use crate::executors::Numbers;
use crate::server::Server;

const SCHEMA: &str = "replica_total";
const ROWS: u64 = 400;
const AMOUNT: u64 = 100;
/// Number of changes of the definition.
const CHANGES: usize = 40;
/// Time between two of them, in which readers get their answers.
const PAUSE: Duration = Duration::from_millis(25);
const DEFINITIONS: [&str; 6] = [
    "ALTER TABLE w ADD COLUMN b INT DEFAULT 7",
    "CREATE INDEX a ON w (a)",
    "ALTER TABLE w MODIFY a BIGINT",
    "ALTER TABLE w DROP COLUMN b",
    "DROP INDEX a ON w",
    "ALTER TABLE w MODIFY a INT",
];

/// The queries of one transaction; the first answer has the total.
const QUERIES: [&str; 3] = [
    "SELECT SUM(a), COUNT(*) FROM w",
    "SELECT SUM(a), COUNT(*) FROM w WHERE a > -1000000",
    "SELECT SUM(a * id), COUNT(*) FROM w",
];

/// The fewest transactions that a writer and each reader must get done.
const ENOUGH: usize = 6;
/// How long a slow machine may take for them, after the last change of the definition.
const PATIENCE: Duration = Duration::from_secs(120);

/// Counts of a reader's results.
#[derive(Debug, Default)]
struct Met {
    answers: AtomicUsize,
    refused: AtomicUsize,
}

fn is_refused(error: &mysql::Error) -> bool {
    matches!(error, mysql::Error::MySqlError(error) if error.code == 1412)
}

/// Moves an amount; a conflict rolls the transaction back.
fn transfer(connection: &mut Conn, numbers: &mut Numbers) -> mysql::Result<()> {
    let (from, to, amount) = (numbers.next(ROWS), numbers.next(ROWS), numbers.next(50));
    connection.query_drop("BEGIN")?;
    connection.query_drop(format!("UPDATE w SET a = a - {amount} WHERE id = {from}"))?;
    connection.query_drop(format!("UPDATE w SET a = a + {amount} WHERE id = {to}"))?;
    connection.query_drop(if amount % 8 == 0 { "ROLLBACK" } else { "COMMIT" })
}

fn write(port: u16, seed: u64, is_over: &AtomicBool, done: &AtomicUsize) {
    let mut client = Client::connect(port, Some(SCHEMA));
    let mut numbers = Numbers(seed);
    while !is_over.load(Ordering::Relaxed) {
        match transfer(client.connection(), &mut numbers) {
            Ok(()) => {
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => client.connection().query_drop("ROLLBACK").expect("a rollback"),
        }
    }
}

/// The answers of one transaction.
fn ask(connection: &mut Conn) -> mysql::Result<Vec<(i64, u64)>> {
    connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    let rounds = QUERIES.iter().chain(&QUERIES);
    let answers = rounds.map(|query| {
        let first: Option<(i64, u64)> = connection.query_first(query)?;
        Ok(first.expect("a row"))
    });
    let answers: mysql::Result<Vec<_>> = answers.collect();
    connection.query_drop("COMMIT")?;
    answers
}

fn read(follower: &Follower, executor: &str, is_over: &AtomicBool, met: &Met) {
    let mut client = follower.connect(Some(SCHEMA));
    let connection = client.connection();
    connection.query_drop(format!("SET firn_executor = {executor}")).expect("a setting");
    while !is_over.load(Ordering::Relaxed) {
        match ask(connection) {
            Ok(answers) => {
                let (sum, count) = answers[0];
                assert_eq!((sum as u64, count), (ROWS * AMOUNT, ROWS), "{executor}");
                assert_eq!(answers[1], answers[0], "{executor}");
                assert_eq!(answers[..3], answers[3..], "{executor}: a snapshot stays as it is");
                met.answers.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if is_refused(&error) => {
                met.refused.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{executor}: {error}"),
        }
    }
}

fn define(port: u16) {
    let mut client = Client::connect(port, Some(SCHEMA));
    for number in 0..CHANGES {
        let change = DEFINITIONS[number % DEFINITIONS.len()];
        let mut tries = 0;
        // A row lock may block it until the wait times out; then it tries again.
        while let Err(error) = client.connection().query_drop(change) {
            tries += 1;
            assert!(tries < 20, "{change}: {error}");
        }
        firn_base::task::sleep(PAUSE);
    }
}

#[test]
fn a_total_is_the_same_at_every_commit() {
    let server = Server::start_of_several();
    let port = server.port();
    let mut writer = Client::connect(port, None);
    writer.make_schema(SCHEMA);
    let rows: Vec<String> = (0..ROWS).map(|id| format!("({id}, {AMOUNT})")).collect();
    for text in [
        format!("CREATE TABLE {SCHEMA}.w (id INT PRIMARY KEY, a INT)"),
        format!("INSERT INTO {SCHEMA}.w VALUES {}", rows.join(",")),
    ] {
        writer.connection().query_drop(text).expect("the table");
    }
    let (follower, _running) = Follower::of(&server);
    let is_over = AtomicBool::new(false);
    let (written, met) = (AtomicUsize::new(0), EXECUTORS.map(|_| Met::default()));
    let is_enough = || {
        let answered = met.iter().map(|met| met.answers.load(Ordering::Relaxed));
        written.load(Ordering::Relaxed) > 20 && answered.min() >= Some(ENOUGH)
    };
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&is_over);
        let (follower, is_over, written) = (&follower, &is_over, &written);
        let writers = [1, 2].map(|seed| scope.spawn(move || write(port, seed, is_over, written)));
        let mut met = met.iter();
        let readers = EXECUTORS.map(|by| {
            let met = met.next().expect("one for each");
            scope.spawn(move || read(follower, by, is_over, met))
        });
        let defined = scope.spawn(move || define(port)).join();
        let has_ended = || readers.iter().any(std::thread::ScopedJoinHandle::is_finished);
        let until = firn_base::task::monotonic() + PATIENCE;
        while !is_enough() && !has_ended() && firn_base::task::monotonic() < until {
            firn_base::task::sleep(PAUSE);
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|one| one.join().expect("a writer"));
        defined.expect("the definitions");
        readers.into_iter().for_each(|one| one.join().expect("a reader"));
    });
    println!("{written:?} transfers; {met:?}");
    assert!(is_enough(), "{written:?}, {met:?}");
}
