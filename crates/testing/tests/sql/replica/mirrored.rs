//! The SQL scripts against a writer; each query also runs on a replica.
//!
//! ```text
//!   script ──► writer ──► rows ─────────────────────────────────┐
//!                │ log                                          ├─ the same?
//!                └──► replica, once it sees the newest commit ──┘  by rows and over columns
//!   load ────► writer: splits, merges, changes of definitions; purge
//! ```
//!
//! The replica's sessions follow the writer's session: settings, variables, prepared statements,
//! handlers, and transactions that have only read ([`super::session`]). A query that fails on the
//! writer must fail on the replica with the same number.
//!
//! These queries are left out, and the test prints how many of each:
//!
//! | class | why |
//! |---|---|
//! | locks or writes | a replica refuses it (1836); `compute_node.rs` tests that |
//! | in a transaction that has written | it sees rows that nobody else sees |
//! | a temporary table | only the writer has it |
//! | the outcome of a write | warnings and counts of a statement that only the writer ran |
//! | a variable that a write has set | as above |
//! | under LOCK TABLES … WRITE | the replica's sessions would wait for each other |
//! | the session's locks and ids | `GET_LOCK` locks the server; `LAST_INSERT_ID` comes from a write |
//! | under sql_auto_is_null | as above |
//! | about the node | processes, counters, connection numbers, and lists with the node's variables |
//! | sizes of all tables | the load and the other scripts grow theirs meanwhile |

use std::collections::BTreeMap;

use firn_node::report;
use mysql::prelude::Queryable;
use parking_lot::Mutex;
use sqllogictest::{DB, DBOutput, DefaultColumnType};

use super::load::Load;
use super::session::{Duty, Session};
use super::statement::Statement;
use super::{EXECUTORS, Follower};
use crate::client::{Client, ClientError};
use crate::server::Server;

/// The least number of compared queries in a run of all scripts.
const FLOOR: usize = 1_120;

/// Counts of the comparisons.
#[derive(Debug, Default)]
struct Outcome {
    compared: usize,
    left_out: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
}

/// A connection to the writer, and sessions of the replica that run the same queries.
struct Mirrored<'f> {
    follower: &'f Follower,
    outcome: &'f Mutex<Outcome>,
    writer: Client,
    copies: Vec<(&'static str, Client)>,
    session: Session,
}

type Answer = Result<DBOutput<DefaultColumnType>, ClientError>;

/// The session that chooses the executor as the writer does. It alone shows plans.
const AS_THE_WRITER: &str = "AUTO";

impl<'f> Mirrored<'f> {
    fn connect(follower: &'f Follower, outcome: &'f Mutex<Outcome>, schema: &str) -> Mirrored<'f> {
        follower.catch_up();
        let executors = EXECUTORS.into_iter().chain([AS_THE_WRITER]);
        let copies = executors.map(|executor| {
            let mut copy = follower.connect(Some(schema));
            let set = format!("SET firn_executor = {executor}");
            copy.connection().query_drop(set).expect("a setting");
            (executor, copy)
        });
        let copies = copies.collect();
        let writer = Client::connect(follower.writer_port, Some(schema));
        Mirrored { follower, outcome, writer, copies, session: Session::default() }
    }

    /// Does what the replica's sessions have to do about a statement.
    fn mirror(&mut self, statement: &Statement<'_>, answer: &Answer) {
        let has_rows = matches!(answer, Ok(DBOutput::Rows { .. }));
        let duty = self.session.duty(statement, answer.is_ok(), has_rows);
        let mut differences = Vec::new();
        if !matches!(duty, Duty::Nothing | Duty::LeaveOut(_)) {
            self.follower.catch_up();
        }
        for (executor, copy) in &mut self.copies {
            match duty {
                Duty::Nothing | Duty::LeaveOut(_) => {}
                Duty::RollBack => copy.connection().query_drop("ROLLBACK").expect("a rollback"),
                Duty::Try => drop(copy.run(statement.text)),
                Duty::Repeat | Duty::Compare => {
                    if statement.shows_a_plan() && *executor != AS_THE_WRITER {
                        continue;
                    }
                    let copied = copy.run(statement.text);
                    let difference = difference(statement, answer, &copied);
                    differences.extend(
                        difference.map(|difference| {
                            format!("{executor}: {}\n{difference}", statement.text)
                        }),
                    );
                }
            }
        }
        let mut outcome = self.outcome.lock();
        outcome.differences.append(&mut differences);
        match duty {
            Duty::Compare => outcome.compared += 1,
            Duty::LeaveOut(reason) => *outcome.left_out.entry(reason).or_default() += 1,
            _ => {}
        }
    }
}

/// How an answer of the replica differs from the writer's. The order of rows counts if the text has
/// one.
fn difference(statement: &Statement<'_>, written: &Answer, copied: &Answer) -> Option<String> {
    let shown = |answer: &Answer| match answer {
        Ok(DBOutput::Rows { rows, .. }) => {
            let mut rows: Vec<String> = rows.iter().map(|row| row.join(" | ")).collect();
            if !statement.is_ordered() {
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
        let statement = Statement::new(text);
        let _stay = statement.is_about_definitions().then(|| follower.definitions.lock());
        let answer = self.writer.run(text);
        self.mirror(&statement, &answer);
        answer
    }

    fn engine_name(&self) -> &str {
        "firn"
    }
}

#[test]
fn queries_give_the_same_on_a_replica() {
    let server = Server::start_of_several();
    // Plans must depend on the script alone, not on timing.
    Client::connect(server.port(), None).set_global("innodb_stats_auto_recalc = OFF");
    let (follower, _running) = Follower::of(&server);
    let before = report::of(server.node());
    let outcome = Mutex::default();
    let load = Load::new(&follower);
    let (failures, loaded) = std::thread::scope(|scope| {
        let stop = load.stop_at_end();
        let running = scope.spawn(|| load.run());
        let connect = |schema: &str| Mirrored::connect(&follower, &outcome, schema);
        let failures = crate::run_files_by(server.port(), None, connect);
        drop(stop);
        (failures, running.join())
    });
    let after = report::of(server.node());
    let outcome = outcome.into_inner();
    let left_out: usize = outcome.left_out.values().sum();
    println!("{} queries compared, {left_out} left out: {:#?}", outcome.compared, outcome.left_out);
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
