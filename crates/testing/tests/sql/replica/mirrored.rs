//! The SQL scripts against a writer; each query also runs on a replica.
//!
//! ```text
//!   script ──► writer ──► rows ─────────────────────────────────┐
//!                │ log                                          ├─ the same?
//!                └──► replica, once it sees the newest commit ──┘  by rows and over columns
//!   load ────► writer: splits, merges, changes of definitions; purge
//! ```
//!
//! Queries that depend on the writer's session are left out and counted: open transactions,
//! temporary tables, variables ([`session`]). A query that fails on the writer must fail on the
//! replica with the same number.

use std::collections::BTreeMap;

use firn_node::report;
use mysql::prelude::Queryable;
use parking_lot::Mutex;
use sqllogictest::{DB, DBOutput, DefaultColumnType};

use super::load::Load;
use super::session::{self, Session};
use super::{EXECUTORS, Follower};
use crate::client::{Client, ClientError};
use crate::server::Server;

/// The least number of compared queries in a run of all scripts.
const FLOOR: usize = 900;

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
    copies: Vec<Client>,
    session: Session,
}

type Answer = Result<DBOutput<DefaultColumnType>, ClientError>;

impl<'f> Mirrored<'f> {
    fn connect(follower: &'f Follower, outcome: &'f Mutex<Outcome>, schema: &str) -> Mirrored<'f> {
        follower.catch_up();
        let copies = EXECUTORS.map(|executor| {
            let mut copy = follower.connect(Some(schema));
            let set = format!("SET firn_executor = {executor}");
            copy.connection().query_drop(set).expect("a setting");
            copy
        });
        let writer = Client::connect(follower.writer_port, Some(schema));
        Mirrored { follower, outcome, writer, copies: copies.into(), session: Session::default() }
    }

    /// Applies a setting to the replica's sessions, or compares their answers to a query.
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
        let mut outcome = self.outcome.lock();
        outcome.differences.append(&mut differences);
        match is_left_out {
            None => outcome.compared += 1,
            Some(reason) => *outcome.left_out.entry(reason).or_default() += 1,
        }
    }
}

/// How an answer of the replica differs from the writer's. The order of rows counts if the text has
/// one.
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
