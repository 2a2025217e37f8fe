//! The SQL scripts against a writer, with each query asked once more of a replica that follows the
//! writer's log in the same process.
//!
//! ```text
//!   script ──► writer ──► rows ─────────────────────────────────┐
//!                │ log                                          ├─ the same?
//!                └──► replica, once it sees the newest commit ──┘  by rows and over columns
//!   load ────► writer: splits, merges, changes of definitions; purge
//! ```
//!
//! What only the writer's session knows is left out, and counted: transactions that are open, temporary
//! tables, variables ([`session`]). A query that fails on the writer has to fail on the replica with the
//! same number.

mod load;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use firn_engine::replica::{Replica, ReplicaOptions};
use firn_engine::rows::replica::ReplicaNode;
use firn_node::endpoint::Endpoint;
use firn_node::node::LocalNode;
use firn_node::{replica, report};
use mysql::prelude::Queryable;
use parking_lot::Mutex;
use sqllogictest::{DB, DBOutput, DefaultColumnType};

use crate::client::{Client, ClientError};
use crate::server::Server;
use load::Load;
use session::Session;

/// The longest wait for the replica to see a commit.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The executors that the replica answers by. Their rows may come in different orders.
const EXECUTORS: [&str; 2] = ["ROW", "VECTORISED"];
/// Queries that are compared at least, where all scripts run.
const FLOOR: usize = 900;

/// A replica of a server's database node, with a compute node over it.
struct Follower {
    writer: Arc<LocalNode>,
    writer_port: u16,
    replica: Arc<Replica>,
    port: u16,
    /// Held while the load changes definitions, and while both nodes are asked for definitions of all
    /// schemas.
    definitions: Mutex<()>,
    outcome: Mutex<Outcome>,
}

/// Ends the compute node and its replica when it is dropped.
struct Running {
    endpoint: Endpoint,
    replica: Arc<Replica>,
}

/// What came of the comparisons.
#[derive(Debug, Default)]
struct Outcome {
    compared: usize,
    left_out: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
}

impl Follower {
    fn of(server: &Server) -> (Follower, Running) {
        // Small enough that pages are evicted and read again at the applied position.
        let options = ReplicaOptions { buffer_pool_bytes: 8 << 20, ..ReplicaOptions::default() };
        let environment = firn_base::Environment::system();
        let replica = replica::open_beside(&environment, server.node(), options);
        let replica = replica.expect("a replica");
        let rows = ReplicaNode::new(Arc::clone(&replica), TIMEOUT);
        let endpoint = server.start_another("replica", Arc::new(rows));
        let follower = Follower {
            writer: Arc::clone(server.node()),
            writer_port: server.port(),
            replica: Arc::clone(&replica),
            port: endpoint.address().expect("it listens at TCP").port(),
            definitions: Mutex::default(),
            outcome: Mutex::default(),
        };
        (follower, Running { endpoint, replica })
    }

    fn connect(&self, schema: Option<&str>) -> Client {
        Client::connect(self.port, schema)
    }

    /// Blocks until the replica sees all that was committed before.
    fn catch_up(&self) {
        let newest = self.writer.engine().system().order().max_committed();
        let has_come = self.replica.wait_until_visible(newest, TIMEOUT);
        let (visible, failure) = (self.replica.visible(), self.replica.failure());
        assert!(has_come, "at {visible} instead of {newest}: {failure:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.endpoint.shutdown(Duration::from_secs(1));
        self.replica.close();
    }
}

/// A connection to the writer, and sessions of the replica that are asked the same.
struct Mirrored<'f> {
    follower: &'f Follower,
    writer: Client,
    copies: Vec<Client>,
    session: Session,
}

type Answer = Result<DBOutput<DefaultColumnType>, ClientError>;

impl<'f> Mirrored<'f> {
    fn connect(follower: &'f Follower, schema: &str) -> Mirrored<'f> {
        follower.catch_up();
        let copies = EXECUTORS.map(|executor| {
            let mut copy = follower.connect(Some(schema));
            let set = format!("SET firn_executor = {executor}");
            copy.connection().query_drop(set).expect("a setting");
            copy
        });
        let writer = Client::connect(follower.writer_port, Some(schema));
        Mirrored { follower, writer, copies: copies.into(), session: Session::default() }
    }

    /// Has the replica's sessions follow a setting, or answer a query.
    fn mirror(&mut self, text: &str, answer: &Answer) {
        if answer.is_ok() && session::is_setting(text) {
            self.follower.catch_up();
            for copy in &mut self.copies {
                copy.connection()
                    .query_drop(text)
                    .unwrap_or_else(|error| panic!("{text}: {error}"));
            }
            return;
        }
        if !session::is_query(text) || matches!(answer, Ok(DBOutput::StatementComplete(_))) {
            return;
        }
        let is_left_out = self.session.is_left_out(text);
        let mut differences = Vec::new();
        if is_left_out.is_none() {
            self.follower.catch_up();
            for (copy, executor) in self.copies.iter_mut().zip(EXECUTORS) {
                let copied = copy.run(text);
                if let Some(difference) = difference(text, answer, &copied) {
                    differences.push(format!("{executor}: {text}\n{difference}"));
                }
            }
        }
        let mut outcome = self.follower.outcome.lock();
        outcome.differences.append(&mut differences);
        match is_left_out {
            None => outcome.compared += 1,
            Some(reason) => *outcome.left_out.entry(reason).or_default() += 1,
        }
    }
}

/// How an answer of the replica is not that of the writer. Rows count in their order if the text asks
/// for one.
fn difference(text: &str, written: &Answer, copied: &Answer) -> Option<String> {
    let shown = |answer: &Answer| match answer {
        Ok(DBOutput::Rows { rows, .. }) => {
            let mut rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
            if !session::is_ordered(text) {
                rows.sort_unstable();
            }
            rows.join("\n")
        }
        Ok(_) => "no rows".to_owned(),
        Err(error) => error.code(),
    };
    let (written, copied) = (shown(written), shown(copied));
    (written != copied).then(|| format!("the writer:\n{written}\nthe replica:\n{copied}\n"))
}

impl DB for Mirrored<'_> {
    type Error = ClientError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, text: &str) -> Answer {
        let follower = self.follower;
        let _stay = session::is_about_definitions(text).then(|| follower.definitions.lock());
        let answer = self.writer.run(text);
        self.session.ran(text, answer.is_ok());
        self.mirror(text, &answer);
        answer
    }

    fn engine_name(&self) -> &str {
        "firn"
    }
}

#[test]
fn queries_give_the_same_on_a_replica() {
    let server = Server::start_of_several();
    // Plans depend on the script alone, not on timing.
    Client::connect(server.port(), None).set_global("innodb_stats_auto_recalc = OFF");
    let (follower, _running) = Follower::of(&server);
    let before = report::of(server.node());
    let load = Load::new(&follower);
    let (failures, loaded) = std::thread::scope(|scope| {
        let stop = load.stop_at_end();
        let running = scope.spawn(|| load.run());
        let connect = |schema: &str| Mirrored::connect(&follower, schema);
        let failures = crate::run_files_by(server.port(), None, connect);
        drop(stop);
        (failures, running.join())
    });
    let after = report::of(server.node());
    let outcome = std::mem::take(&mut *follower.outcome.lock());
    println!("{} queries compared; left out: {:?}", outcome.compared, outcome.left_out);
    let trees = (before.transactions, after.transactions);
    println!("{} splits, {} merges", trees.1.splits - trees.0.splits, trees.1.merges);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let differences = &outcome.differences;
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    let loaded = loaded.expect("the load");
    println!("{loaded:?}");
    loaded.check();
    let is_whole = std::env::var("FIRN_SQL_FILES").is_err();
    assert!(!is_whole || outcome.compared >= FLOOR, "only {} were compared", outcome.compared);
    assert!(trees.1.splits > trees.0.splits, "the load splits pages");
    assert!(!is_whole || trees.1.merges > 0, "the load merges pages");
}

/// The number of the error that a statement of the replica's session ends with.
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
