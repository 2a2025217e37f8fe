//! Load beside the scripts, in its own schema: pages split and merge, definitions change, and purge
//! has much to do, while a snapshot of the replica stays as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Cts;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::Follower;
use crate::client::Client;

const SCHEMA: &str = "replica_load";
/// Rows inserted in a round.
const ROWS: u64 = 3_000;
/// Rows of one INSERT.
const RUN: u64 = 500;
/// Time between two rounds, in which the scripts have the machine.
const PAUSE: Duration = Duration::from_millis(50);

/// The queries that both nodes answer.
const QUERIES: [&str; 3] = [
    "SELECT COUNT(*), SUM(id), SUM(a), SUM(CRC32(t)) FROM k",
    "SELECT a, COUNT(*), MAX(t) FROM k WHERE a BETWEEN 10 AND 60 GROUP BY a ORDER BY a",
    "SELECT id, t FROM k WHERE id BETWEEN 700 AND 720 ORDER BY id",
];

/// The load. It runs until it is stopped.
pub(super) struct Load<'f> {
    follower: &'f Follower,
    is_stopped: AtomicBool,
}

/// Ends a load.
pub(super) struct Stop<'l>(&'l AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Counts of the load's work.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    rounds: u64,
    compared: u64,
    /// The position of purge after the first round and at the end.
    purged: (Cts, Cts),
}

impl Loaded {
    /// Checks that there was a load.
    pub(super) fn check(&self) {
        assert!(self.rounds > 1 && self.compared > 0, "{self:?}");
        assert!(self.purged.1 > self.purged.0, "purge goes on: {self:?}");
    }
}

fn run(connection: &mut Conn, text: &str) {
    connection.query_drop(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn answers(connection: &mut Conn) -> Vec<Vec<String>> {
    let shown = |row: Row| row.unwrap().iter().map(|value| value.as_sql(false)).collect();
    let ask = |query: &str| -> Vec<Vec<String>> {
        connection.query_map(query, shown).unwrap_or_else(|error| panic!("{query}: {error}"))
    };
    QUERIES.map(ask).concat()
}

impl<'f> Load<'f> {
    pub(super) fn new(follower: &'f Follower) -> Load<'f> {
        Load { follower, is_stopped: AtomicBool::new(false) }
    }

    /// Stops the load when the result is dropped, which includes a panic.
    pub(super) fn stop_at_end(&self) -> Stop<'_> {
        Stop(&self.is_stopped)
    }

    /// Runs rounds until it is stopped, at least two.
    pub(super) fn run(&self) -> Loaded {
        let mut writer = Client::connect(self.follower.writer_port, None);
        writer.make_schema(SCHEMA);
        let writer = writer.connection();
        run(writer, &format!("USE {SCHEMA}"));
        run(writer, "CREATE TABLE k (id INT PRIMARY KEY, a INT, t VARCHAR(400), KEY a (a))");
        let mut copy = self.follower.connect(None);
        let copy = copy.connection();
        let mut loaded = Loaded::default();
        while loaded.rounds < 2 || !self.is_stopped.load(Ordering::Relaxed) {
            self.round(writer, copy, &mut loaded);
            firn_base::task::sleep(PAUSE);
        }
        loaded
    }

    /// Fills the table, keeps a snapshot of the replica beyond the life of its rows, and changes
    /// the definition.
    fn round(&self, writer: &mut Conn, copy: &mut Conn, loaded: &mut Loaded) {
        let round = loaded.rounds;
        for from in (0..ROWS).step_by(RUN as usize) {
            let row = |id: u64| {
                let length = 20 + (id * 37 + round) % 300;
                format!("({id}, {}, REPEAT('{}', {length}))", (id + round) % 97, id % 10)
            };
            let rows: Vec<String> = (from..from + RUN).map(row).collect();
            run(writer, &format!("REPLACE INTO k (id, a, t) VALUES {}", rows.join(",")));
        }
        run(writer, "UPDATE k SET t = CONCAT(t, 'x'), a = a + 1 WHERE id % 3 = 0");
        self.follower.catch_up();
        run(copy, &format!("USE {SCHEMA}"));
        run(copy, "START TRANSACTION WITH CONSISTENT SNAPSHOT");
        let before = answers(writer);
        assert_eq!(answers(copy), before, "round {round}");
        run(writer, "DELETE FROM k WHERE id % 10 <> 7");
        run(writer, "UPDATE k SET t = 'short'");
        self.follower.catch_up();
        assert_eq!(answers(copy), before, "a snapshot stays as it is, round {round}");
        run(copy, "COMMIT");
        assert_eq!(answers(copy), answers(writer), "after deletes, round {round}");
        {
            let _others_wait = self.follower.definitions.lock();
            self.define(writer, round);
        }
        self.follower.catch_up();
        assert_eq!(answers(copy), answers(writer), "after a new definition, round {round}");
        loaded.rounds += 1;
        loaded.compared += 4;
        let purged = self.follower.writer.engine().system().snapshots().horizon();
        match round {
            0 => loaded.purged = (purged, purged),
            _ => loaded.purged.1 = purged,
        }
    }

    fn define(&self, writer: &mut Conn, round: u64) {
        let changes: &[&str] = match round % 6 {
            0 => &["ALTER TABLE k ADD COLUMN b INT DEFAULT 7"],
            1 => &["ALTER TABLE k DROP COLUMN b", "CREATE INDEX t ON k (t)"],
            2 => &["DROP INDEX t ON k", "CREATE TABLE l LIKE k", "INSERT INTO l SELECT * FROM k"],
            3 => &["RENAME TABLE k TO m, l TO k", "DROP TABLE m"],
            4 => &["ALTER TABLE k MODIFY a BIGINT"],
            _ => &["TRUNCATE TABLE k", "ALTER TABLE k MODIFY a INT"],
        };
        changes.iter().for_each(|change| run(writer, change));
    }
}
