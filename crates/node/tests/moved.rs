//! Transactions that begin at a replica's session and go on at the writer's.

mod support;

use std::time::Duration;

use firn_node::endpoint::Endpoint;
use firn_wire::{Login, Service, Session, Status};

use support::sessions::{ask, login, open, refusal, run, service, value};
use support::{Database, Follower};

/// A writer, and a replica beside it. Fields are dropped in this order.
struct Cluster {
    follower: Follower,
    writer: Endpoint,
    _database: Database,
}

impl Cluster {
    /// With a table of three rows in the schema `shop`, whose `b` is 0.
    fn start() -> Cluster {
        let database = Database::open();
        let writer = database.start("writer");
        let first = Login { schema: None, ..login(writer.instance()) };
        let mut session = service(&writer).open(first).unwrap();
        for text in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (a INT PRIMARY KEY, b INT, c INT, KEY (c))",
            "INSERT INTO shop.t VALUES (1, 0, 10), (2, 0, 20), (3, 0, 30)",
        ] {
            run(&mut *session, text);
        }
        drop(session);
        let follower = database.follow("follower");
        Cluster { follower, writer, _database: database }
    }

    /// A session at the replica that has run these statements.
    fn begun(&self, texts: &[&str]) -> Box<dyn Session> {
        let mut session = open(&self.follower.endpoint);
        texts.iter().for_each(|text| run(&mut *session, text));
        session
    }

    /// Runs a statement of another client at the writer.
    fn other(&self, text: &str) {
        run(&mut *open(&self.writer), text);
    }

    /// A session at the writer that goes on with the other one's transaction.
    fn moved(&self, there: Box<dyn Session>) -> Box<dyn Session> {
        let mut here = open(&self.writer);
        self.take_up(&mut *here, there);
        here
    }

    fn take_up(&self, here: &mut dyn Session, mut there: Box<dyn Session>) {
        let described = there.describe_transaction().expect("it has only read");
        here.take_up_transaction(&described).unwrap();
        run(&mut *there, "ROLLBACK");
    }
}

const FIRST: &str = "SELECT b FROM t WHERE a = 1";

#[test]
fn it_goes_on_from_its_snapshot_and_commits() {
    let cluster = Cluster::start();
    let mut there = cluster.begun(&["BEGIN", FIRST]);
    cluster.other("UPDATE t SET b = 5 WHERE a = 2");
    assert_eq!(refusal(&mut *there, "UPDATE t SET b = 1 WHERE a = 3"), 1290);
    let mut here = cluster.moved(there);
    assert!(here.status().contains(Status::IN_TRANSACTION));
    assert!(!here.status().contains(Status::IN_TRANSACTION_READONLY));
    let second = "SELECT b FROM t WHERE a = 2";
    assert_eq!(value(&mut *here, second).unwrap(), "0", "as of its snapshot");
    run(&mut *here, "UPDATE t SET b = 7 WHERE a = 3");
    run(&mut *here, "COMMIT");
    assert!(!here.status().contains(Status::IN_TRANSACTION));
    assert_eq!(value(&mut *here, "SELECT SUM(b) FROM t").unwrap(), "12");
}

#[test]
fn its_snapshot_is_renewed_where_that_changes_nothing_that_it_has_read() {
    let cluster = Cluster::start();
    let write = "UPDATE t SET b = b + 10 WHERE a = 3";
    let by_index = "SELECT SUM(b) FROM t FORCE INDEX (c) WHERE c BETWEEN 5 AND 15";
    let absent = "SELECT b FROM t WHERE a = 4";
    for (begin, read, change, is_written) in [
        ("BEGIN", FIRST, "UPDATE t SET b = b + 1 WHERE a = 2", true),
        ("BEGIN", FIRST, "UPDATE t SET b = b + 1 WHERE a = 1", false),
        ("BEGIN", by_index, "UPDATE t SET c = c + 1 WHERE a = 2", true),
        ("BEGIN", by_index, "INSERT INTO t VALUES (5, 0, 12)", false),
        ("BEGIN", absent, "INSERT INTO t VALUES (6, 0, 60)", true),
        ("BEGIN", absent, "INSERT INTO t VALUES (4, 0, 40)", false),
        ("BEGIN", "DO 1", "UPDATE t SET b = b + 1 WHERE a = 2", true),
        ("START TRANSACTION WITH CONSISTENT SNAPSHOT", "DO 1", "DO 1", false),
    ] {
        let there = cluster.begun(&[begin, read]);
        cluster.other(change);
        cluster.other("UPDATE t SET b = b + 1 WHERE a = 3");
        let mut here = cluster.moved(there);
        match is_written {
            true => run(&mut *here, write),
            false => assert_eq!(refusal(&mut *here, write), 1020, "{read}, {change}"),
        }
        run(&mut *here, "ROLLBACK");
    }
}

#[test]
fn what_it_reads_after_the_move_counts_too() {
    let cluster = Cluster::start();
    let mut here = cluster.moved(cluster.begun(&["BEGIN", FIRST]));
    assert_eq!(value(&mut *here, "SELECT b FROM t WHERE a = 2").unwrap(), "0");
    cluster.other("UPDATE t SET b = 1 WHERE a >= 2");
    assert_eq!(refusal(&mut *here, "UPDATE t SET b = 5 WHERE a = 3"), 1020);
}

#[test]
fn without_autocommit_the_first_statement_begins_it() {
    let cluster = Cluster::start();
    let mut there = cluster.begun(&["SET autocommit = 0"]);
    assert_eq!(there.describe_transaction(), None, "none is open");
    run(&mut *there, FIRST);
    cluster.other("UPDATE t SET b = 5 WHERE a = 2");
    let mut here = open(&cluster.writer);
    run(&mut *here, "SET autocommit = 0");
    cluster.take_up(&mut *here, there);
    assert_eq!(here.status() & Status::AUTOCOMMIT, Status::empty());
    assert_eq!(value(&mut *here, "SELECT SUM(b) FROM t").unwrap(), "0");
    run(&mut *here, "INSERT INTO t VALUES (9, 1, 1)");
    run(&mut *here, "ROLLBACK");
    assert_eq!(value(&mut *here, "SELECT SUM(b) FROM t").unwrap(), "5");
}

#[test]
fn one_that_only_reads_stays_so() {
    let cluster = Cluster::start();
    let mut there = cluster.begun(&["START TRANSACTION READ ONLY", FIRST]);
    let write = "INSERT INTO t VALUES (9, 1, 1)";
    assert_eq!(refusal(&mut *there, write), 1792);
    cluster.other("UPDATE t SET b = 5");
    let mut here = cluster.moved(there);
    assert!(here.status().contains(Status::IN_TRANSACTION_READONLY));
    assert_eq!(refusal(&mut *here, write), 1792);
    assert_eq!(value(&mut *here, FIRST).unwrap(), "0", "the refusal has ended nothing");
    run(&mut *here, "COMMIT");
    run(&mut *here, write);
}

#[test]
fn read_committed_sees_what_has_been_committed_since() {
    let cluster = Cluster::start();
    let level = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED";
    let there = cluster.begun(&[level, "BEGIN", FIRST]);
    cluster.other("UPDATE t SET b = 5 WHERE a = 1");
    cluster.other("ALTER TABLE t ADD COLUMN d INT");
    let mut here = cluster.moved(there);
    assert_eq!(value(&mut *here, FIRST).unwrap(), "5");
    run(&mut *here, "UPDATE t SET b = 6 WHERE a = 1");
    cluster.other("UPDATE t SET b = 7 WHERE a = 2");
    assert_eq!(value(&mut *here, "SELECT SUM(b) FROM t").unwrap(), "13");
    run(&mut *here, "COMMIT");
}

#[test]
fn savepoints_go_with_it() {
    let cluster = Cluster::start();
    let mut here = cluster.moved(cluster.begun(&["BEGIN", FIRST, "SAVEPOINT s"]));
    run(&mut *here, "UPDATE t SET b = 5");
    run(&mut *here, "ROLLBACK TO s");
    assert_eq!(value(&mut *here, "SELECT SUM(b) FROM t").unwrap(), "0");
    assert!(here.status().contains(Status::IN_TRANSACTION));
    run(&mut *here, "COMMIT");
}

#[test]
fn a_table_that_has_changed_meanwhile_ends_it() {
    let cluster = Cluster::start();
    for change in ["ALTER TABLE t ADD COLUMN d INT", "TRUNCATE TABLE t", "DROP TABLE t"] {
        let mut there = cluster.begun(&["BEGIN", FIRST.replace(" b ", " COUNT(*) ").as_str()]);
        let described = there.describe_transaction().unwrap();
        cluster.other(change);
        let mut here = open(&cluster.writer);
        let refused = here.take_up_transaction(&described).unwrap_err();
        assert_eq!(refused.code, 1412, "{change}: {refused}");
        assert!(!here.status().contains(Status::IN_TRANSACTION));
        // Nothing is locked: a later change of definitions does not wait.
        run(&mut *here, "SELECT 1");
    }
}

#[test]
fn definitions_wait_for_it_once_it_has_moved() {
    let cluster = Cluster::start();
    let mut here = cluster.moved(cluster.begun(&["BEGIN", FIRST]));
    let mut other = open(&cluster.writer);
    run(&mut *other, "SET lock_wait_timeout = 1");
    assert_eq!(refusal(&mut *other, "TRUNCATE TABLE t"), 1205);
    run(&mut *here, "COMMIT");
    run(&mut *other, "TRUNCATE TABLE t");
}

#[test]
fn what_cannot_go_on_is_refused() {
    let cluster = Cluster::start();
    let mut there = cluster.begun(&["BEGIN", FIRST]);
    let described = there.describe_transaction().unwrap();
    let mut here = open(&cluster.writer);
    for bytes in [&b""[..], b"\x01", b"\xffabc", &described[..described.len() - 1]] {
        let refused = here.take_up_transaction(bytes).unwrap_err();
        assert_eq!(refused.code, 1105, "{refused}");
    }
    run(&mut *here, "BEGIN");
    assert_eq!(here.take_up_transaction(&described).unwrap_err().code, 1105, "it has one");
    run(&mut *here, "ROLLBACK");
    here.take_up_transaction(&described).unwrap();
    run(&mut *here, "ROLLBACK");

    // Nobody holds its snapshot any more.
    run(&mut *there, "COMMIT");
    let is_too_old = |_| {
        cluster.other("UPDATE t SET b = b + 1");
        firn_base::task::sleep(Duration::from_millis(10));
        match here.take_up_transaction(&described) {
            Ok(()) => {
                run(&mut *here, "ROLLBACK");
                false
            }
            Err(refused) => {
                assert_eq!(refused.code, 1412, "{refused}");
                true
            }
        }
    };
    assert!((0..5_000).any(is_too_old), "what it sees is purged at last");
}

#[test]
fn some_transactions_are_not_described() {
    let cluster = Cluster::start();
    let mut there = cluster.begun(&[]);
    assert_eq!(there.describe_transaction(), None);
    run(&mut *there, FIRST);
    assert_eq!(there.describe_transaction(), None, "a statement is one by itself");
    run(&mut *there, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
    run(&mut *there, "BEGIN");
    run(&mut *there, FIRST);
    assert_eq!(there.describe_transaction(), None, "its reads would be locks");
    let mut here = open(&cluster.writer);
    run(&mut *here, "BEGIN");
    ask(&mut *here, FIRST).unwrap();
    assert_eq!(here.describe_transaction(), None, "it is where it can write");
}
