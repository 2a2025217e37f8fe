//! Sessions with what ends with a server, while the writer changes: temporary tables, user locks,
//! locked tables, `HANDLER`, XA.

use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::{PATIENCE, code, of_row};

/// What a statement that waits returns, and its session.
type Waiting<'s, T> = ScopedJoinHandle<'s, (T, Conn)>;

/// Clients of one kind of node.
pub(crate) struct Bound<'s> {
    /// The rows and names from here on are theirs.
    at: u64,
    /// Has a temporary table, a user lock, and a transaction that has changed the table.
    temporary: Conn,
    /// Has locked a table and changed it, in a transaction.
    locking: Conn,
    /// Has read the first row of a table by `HANDLER`.
    opened: Conn,
    /// Is in an XA transaction.
    branch: Conn,
    /// Has changed a row.
    holder: Conn,
    /// Has a temporary table, and waits for that row.
    waits_for_row: Waiting<'s, ()>,
    /// Has a user lock, and waits for that of the first one.
    waits_for_lock: Waiting<'s, Option<u64>>,
}

impl<'s> Bound<'s> {
    pub(crate) fn begin(
        scope: &'s Scope<'s, '_>,
        connect: &dyn Fn() -> Conn,
        other: &mut Conn,
        at: u64,
    ) -> Bound<'s> {
        run(other, &[&format!("CREATE TABLE kept.locked{at} (n BIGINT PRIMARY KEY)")]);
        run(other, &[&format!("INSERT INTO kept.t VALUES ({at}, 0)")]);
        let mut temporary = connect();
        run(
            &mut temporary,
            &[
                "CREATE TEMPORARY TABLE kept.own (n BIGINT PRIMARY KEY)",
                "INSERT INTO kept.own VALUES (1)",
                &format!("DO GET_LOCK('first{at}', 0), GET_LOCK('first{at}', 0)"),
                "BEGIN",
                "INSERT INTO kept.own VALUES (2)",
                &format!("INSERT INTO kept.t VALUES ({at} + 1, 0)"),
            ],
        );
        let mut locking = connect();
        run(
            &mut locking,
            &[
                "SET autocommit = 0",
                &format!("LOCK TABLES kept.locked{at} WRITE"),
                &format!("INSERT INTO kept.locked{at} VALUES (5)"),
            ],
        );
        let mut opened = connect();
        run(&mut opened, &["HANDLER kept.n OPEN AS h", "HANDLER h READ `PRIMARY` FIRST"]);
        let mut branch = connect();
        run(
            &mut branch,
            &[&format!("XA START 'b{at}'"), &format!("INSERT INTO kept.t VALUES ({at} + 2, 0)")],
        );
        let mut holder = connect();
        run(&mut holder, &["BEGIN", &format!("UPDATE kept.t SET v = 10 WHERE n = {at}")]);
        let (mut waiting, mut asking) = (connect(), connect());
        let waits_for_row = scope.spawn(move || {
            let update = format!("UPDATE kept.t SET v = v + 1 WHERE n = {at} /* bound {at} */");
            run(&mut waiting, &["CREATE TEMPORARY TABLE kept.own (n INT)", &update]);
            ((), waiting)
        });
        let waits_for_lock = scope.spawn(move || {
            run(&mut asking, &[&format!("DO GET_LOCK('second{at}', 0)")]);
            let ask = format!("SELECT GET_LOCK('first{at}', 1000) /* bound {at} */");
            (asking.query_first(ask).unwrap(), asking)
        });
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%/* bound {at} */'"
        );
        let until = Instant::now() + PATIENCE;
        while other.query_first::<u64, _>(&waiting).unwrap() != Some(2) {
            assert!(Instant::now() < until, "they do not wait");
            std::thread::sleep(Duration::from_millis(10));
        }
        Bound { at, temporary, locking, opened, branch, holder, waits_for_row, waits_for_lock }
    }

    /// They go on at the next writer.
    pub(crate) fn end(self, other: &mut Conn) {
        let Bound { at, mut temporary, mut locking, mut opened, mut branch, mut holder, .. } = self;
        // Nobody else gets what they have.
        let own = format!("SELECT GET_LOCK('first{at}', 0), GET_LOCK('second{at}', 0)");
        assert_eq!(other.query_first(own).unwrap(), Some((0, 0)));
        run(other, &["SET lock_wait_timeout = 1"]);
        let read = other.query_drop(format!("SELECT * FROM kept.locked{at}"));
        assert_eq!(code(read.unwrap_err()), 1205);

        let sum = |of: &mut Conn| of.query_first("SELECT SUM(n) FROM kept.own").unwrap();
        assert_eq!(sum(&mut temporary), Some(3));
        run(&mut temporary, &["ROLLBACK"]);
        assert_eq!(sum(&mut temporary), Some(1));
        assert_eq!(other.query_first::<u64, _>(of_row(at + 1)).unwrap(), None);
        for _ in 0..2 {
            let release = format!("SELECT RELEASE_LOCK('first{at}')");
            assert_eq!(temporary.query_first(release).unwrap(), Some(1));
        }
        run(&mut temporary, &["DROP TEMPORARY TABLE kept.own"]);

        let refused = locking.query_drop("SELECT * FROM kept.n").unwrap_err();
        assert_eq!(code(refused), 1100, "only what it has locked");
        run(&mut locking, &["COMMIT", "UNLOCK TABLES"]);
        let locked = format!("SELECT n FROM kept.locked{at}");
        assert_eq!(other.query_first(locked).unwrap(), Some(5));

        assert_eq!(opened.query_first("HANDLER h READ `PRIMARY` NEXT").unwrap(), Some(1));
        run(&mut opened, &["HANDLER h CLOSE"]);

        run(&mut branch, &[&format!("XA END 'b{at}'"), &format!("XA PREPARE 'b{at}'")]);
        run(&mut branch, &[&format!("XA COMMIT 'b{at}'")]);
        assert_eq!(other.query_first(of_row(at + 2)).unwrap(), Some(0));

        run(&mut holder, &["COMMIT"]);
        let ((), mut waited) = self.waits_for_row.join().unwrap();
        assert_eq!(other.query_first(of_row(at)).unwrap(), Some(11));
        run(&mut waited, &["DROP TEMPORARY TABLE kept.own"]);
        let (granted, mut asked) = self.waits_for_lock.join().unwrap();
        assert_eq!(granted, Some(1));
        let release = format!("SELECT RELEASE_LOCK('first{at}'), RELEASE_LOCK('second{at}')");
        assert_eq!(asked.query_first(release).unwrap(), Some((1, 1)));
        run(other, &[&format!("DROP TABLE kept.locked{at}")]);
    }
}

fn run(client: &mut Conn, texts: &[&str]) {
    for text in texts {
        client.query_drop(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}
