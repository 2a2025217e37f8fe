//! Clients of a replica write too: what only reads runs at the replica, everything else at the node
//! that writes, and the session is one.

use std::sync::atomic::AtomicU64;

use firn_base::task::StopAtEnd;

use super::*;

/// Rows that the checker's writers count up, one each.
const COUNTERS: usize = 6;

impl Cluster {
    fn replica(&self) -> Conn {
        self.connect(|| self.ports(Role::Replica).into_values().next())
    }

    /// A connection to the node that writes.
    fn writer(&self) -> Conn {
        let leader = self.leader();
        self.connect(|| self.ports(Role::Database).get(&leader).copied())
    }
}

fn first<T: mysql::prelude::FromRow>(client: &mut Conn, text: &str) -> T {
    let row = client.query_first(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    row.unwrap_or_else(|| panic!("{text}: no row"))
}

fn run(client: &mut Conn, texts: &[&str]) {
    for text in texts {
        client.query_drop(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

/// How many queries the node that writes has run.
fn selects(writer: &mut Conn) -> u64 {
    first::<(String, u64)>(writer, "SHOW GLOBAL STATUS LIKE 'Com_select'").1
}

#[test]
fn a_session_that_reads_at_a_replica_is_one_session() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--nodes", "3", "--replicas", "1", "--proxies", "1"];
    let cluster = Cluster::start(directory.path(), &arguments);
    let mut other = cluster.writer();
    run(&mut other, &["SET SESSION innodb_lock_wait_timeout = 1"]);
    for endpoint in [Cluster::replica, Cluster::proxy] {
        let mut client = endpoint(&cluster);
        run(
            &mut client,
            &[
                "DROP DATABASE IF EXISTS kept",
                "DROP USER IF EXISTS reader@localhost",
                "CREATE DATABASE kept",
                "USE kept",
                "CREATE TABLE t (n INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9), KEY (v))",
            ],
        );
        run(&mut other, &["USE kept"]);
        reads_do_not_reach_the_writer(&mut client, &mut other);
        results_of_statements_go_with_the_session(&mut client);
        what_was_set_up_goes_with_the_session(&mut client);
        transactions_are_kept_together(&mut client, &mut other);
        transactions_that_only_read_do_not_reach_the_writer(&mut client, &mut other);
        transactions_move_with_what_they_have_read(&mut client, &mut other);
        locks_are_those_of_the_writer(&mut client, &mut other);
        what_belongs_to_the_server_is_the_writers(&mut client, &mut other, &cluster);
        own_writes_are_seen_with_session_consistency(&mut client);
        reads_are_killed_from_elsewhere(endpoint(&cluster), &mut other);
    }

    let open = [Cluster::replica, Cluster::proxy].map(|endpoint| {
        let mut client = endpoint(&cluster);
        run(&mut client, &["BEGIN"]);
        let count: u64 = first(&mut client, "SELECT COUNT(*) FROM kept.t");
        (client, count)
    });
    let mut client = cluster.replica();
    let mut through_proxy = cluster.proxy();
    // Another node writes: the replica begins again, and transactions that it had go on.
    let (output, is_done) = cluster.switch(&[]);
    assert!(is_done, "{output}");
    run(&mut through_proxy, &["INSERT INTO kept.t (v) VALUES ('new')"]);
    for (mut client, count) in open {
        assert_eq!(first::<u64>(&mut client, "SELECT COUNT(*) FROM kept.t"), count);
        run(&mut client, &["INSERT INTO kept.t (v) VALUES ('moved')"]);
        assert_eq!(first::<u64>(&mut client, "SELECT COUNT(*) FROM kept.t"), count + 1);
        run(&mut client, &["ROLLBACK"]);
    }

    // The node that writes dies: the clients of the others go on.
    cluster.kill(&cluster.leader());
    for client in [&mut client, &mut through_proxy] {
        let count: u64 = first(client, "SELECT COUNT(*) FROM kept.t");
        // This one runs again where another node writes.
        let _: u64 = first(client, "SELECT @@global.max_error_count");
        run(client, &["INSERT INTO kept.t (v) VALUES ('after')"]);
        assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM kept.t"), count + 1);
    }
    cluster.end();
}

fn reads_do_not_reach_the_writer(client: &mut Conn, writer: &mut Conn) {
    run(client, &["INSERT INTO t (v) VALUES ('a'), ('b')"]);
    // Until the replica is open, the node that writes answers.
    let until = Instant::now() + PATIENCE;
    loop {
        let before = selects(writer);
        let _: u64 = first(client, "SELECT COUNT(*) FROM t");
        if selects(writer) == before {
            break;
        }
        assert!(Instant::now() < until, "the replica does not open");
        std::thread::sleep(Duration::from_millis(50));
    }
    let prepared = client.prep("SELECT v FROM t WHERE n = ?").unwrap();
    mostly_apart(writer, || {
        for _ in 0..50 {
            assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM t"), 2);
            let found: Option<String> = client.exec_first(&prepared, (1,)).unwrap();
            assert_eq!(found.as_deref(), Some("a"));
        }
    });
}

fn results_of_statements_go_with_the_session(client: &mut Conn) {
    run(client, &["INSERT INTO t (v) VALUES ('c'), ('d')"]);
    let told: (u64, i64) = first(client, "SELECT LAST_INSERT_ID(), ROW_COUNT()");
    assert_eq!(told, (3, 2));
    assert_eq!(first::<i64>(client, "SELECT ROW_COUNT()"), -1, "of the query before");
    let _: u64 = first(client, "SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1");
    assert_eq!(first::<u64>(client, "SELECT FOUND_ROWS()"), 4);
    // From the replica to the node that writes.
    let _: u64 = first(client, "SELECT LAST_INSERT_ID(77)");
    run(client, &["INSERT INTO t (n, v) VALUES (LAST_INSERT_ID(), 'e')"]);
    assert_eq!(first::<String>(client, "SELECT v FROM t WHERE n = 77"), "e");

    run(client, &["INSERT IGNORE INTO t (v) VALUES ('0123456789')"]);
    let warned: Vec<(String, u16, String)> = client.query("SHOW WARNINGS").unwrap();
    assert_eq!((warned.len(), warned[0].1), (1, 1265), "{warned:?}");
    let _: i64 = first(client, "SELECT CAST('x' AS SIGNED)");
    let warned: Vec<(String, u16, String)> = client.query("SHOW WARNINGS").unwrap();
    assert_eq!((warned.len(), warned[0].1), (1, 1292), "{warned:?}");
    assert_eq!(first::<u64>(client, "SELECT @@warning_count"), 1);
    assert_eq!(code(client.query_drop("SELECT nothing FROM t").unwrap_err()), 1054);
    let errors: Vec<(String, u16, String)> = client.query("SHOW ERRORS").unwrap();
    assert_eq!(errors[0].1, 1054);
}

fn what_was_set_up_goes_with_the_session(client: &mut Conn) {
    run(client, &["SET @a = 'mine', SESSION lock_wait_timeout = 7, time_zone = '+03:00'"]);
    let set: (String, u64, String) =
        first(client, "SELECT @a, @@lock_wait_timeout, @@session.time_zone");
    assert_eq!(set, ("mine".to_owned(), 7, "+03:00".to_owned()));
    let _: u64 = first(client, "SELECT @b := 8");
    run(client, &["SELECT n INTO @c FROM t WHERE n = 3"]);
    assert_eq!(first::<(u64, u64)>(client, "SELECT @b, @c"), (8, 3));
    run(client, &["PREPARE named FROM 'SELECT CONCAT(@a, ?)'", "SET @d = '!'"]);
    assert_eq!(first::<String>(client, "EXECUTE named USING @d"), "mine!");

    // Prepared statements, here and there by turns.
    let insert = client.prep("INSERT INTO t (n, v) VALUES (?, ?)").unwrap();
    let select = client.prep("SELECT CONCAT(v, @a) FROM t WHERE n = ?").unwrap();
    for n in 100..110 {
        client.exec_drop(&insert, (n, "x")).unwrap();
        let found: Option<String> = client.exec_first(&select, (n,)).unwrap();
        assert_eq!(found.as_deref(), Some("xmine"));
    }
    client.close(select).unwrap();
    client.exec_drop(&insert, (110, "x")).unwrap();
    // Several statements in one text.
    let mut results = client
        .query_iter("INSERT INTO t (n) VALUES (111); SELECT COUNT(*) FROM t WHERE n > 99")
        .unwrap();
    drop(results.iter());
    let count = results.iter().unwrap().next().unwrap().unwrap();
    assert_eq!(mysql::from_row::<u64>(count), 12);
    drop(results);
    run(client, &["SET NAMES latin1"]);
    let set: String = first(client, "SELECT @@character_set_client");
    assert_eq!(set, "latin1");
    run(client, &["SET NAMES utf8mb4"]);
    client.reset().unwrap();
    assert_eq!(first::<Option<String>>(client, "SELECT @a"), None);
    run(client, &["USE kept"]);
}

fn transactions_are_kept_together(client: &mut Conn, other: &mut Conn) {
    let count = "SELECT COUNT(*) FROM t WHERE v = 'trx'";
    for begin in [&["BEGIN"][..], &["SET autocommit = 0"], &["BEGIN", "SELECT 1 FROM t"]] {
        run(client, begin);
        let before: u64 = first(client, count);
        run(client, &["INSERT INTO t (v) VALUES ('trx')", "SAVEPOINT s"]);
        run(client, &["INSERT INTO t (v) VALUES ('trx')", "ROLLBACK TO s"]);
        assert_eq!(first::<u64>(client, count), before + 1, "its own row");
        assert_eq!(first::<u64>(other, count), before, "not committed");
        run(client, &["COMMIT"]);
        assert_eq!(first::<u64>(client, count), before + 1);
        assert_eq!(first::<u64>(other, count), before + 1);
        run(client, &["SET autocommit = 1"]);
    }
    // A snapshot stays as it is when the transaction begins to write.
    run(client, &["BEGIN"]);
    let before: u64 = first(client, count);
    run(other, &["INSERT INTO t (v) VALUES ('trx')"]);
    assert_eq!(first::<u64>(client, count), before);
    run(client, &["INSERT INTO t (v) VALUES ('other')"]);
    assert_eq!(first::<u64>(client, count), before, "the snapshot is the same");
    run(client, &["ROLLBACK"]);
    assert_eq!(first::<u64>(client, count), before + 1);
    // One that may not write.
    run(client, &["START TRANSACTION READ ONLY"]);
    assert_eq!(first::<u64>(client, count), before + 1);
    let refused = client.query_drop("INSERT INTO t (v) VALUES ('trx')").unwrap_err();
    assert_eq!(code(refused), 1792);
    run(client, &["COMMIT", "SET TRANSACTION READ ONLY"]);
    assert_eq!(first::<u64>(client, count), before + 1);
    run(client, &["INSERT INTO t (v) VALUES ('trx')"]);
    // XA.
    run(client, &["XA START 'x'", "INSERT INTO t (v) VALUES ('xa')"]);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM t WHERE v = 'xa'"), 1);
    run(client, &["XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"]);
    assert_eq!(first::<u64>(other, "SELECT COUNT(*) FROM t WHERE v = 'xa'"), 1);
    run(client, &["SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE"]);
    assert_eq!(first::<u64>(client, count), before + 2);
    run(client, &["SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ"]);
}

/// Runs it until the writer has answered few of its queries: while the replica is opened again, as
/// on a busy machine, the node that writes answers.
fn mostly_apart(writer: &mut Conn, mut run: impl FnMut()) {
    let until = Instant::now() + PATIENCE;
    loop {
        let before = selects(writer);
        run();
        let ran = selects(writer) - before;
        if ran < 20 {
            break;
        }
        assert!(Instant::now() < until, "{ran} of 100 queries have run at the node that writes");
    }
}

fn transactions_that_only_read_do_not_reach_the_writer(client: &mut Conn, writer: &mut Conn) {
    // The session's transactions have written before.
    for begin in ["BEGIN", "START TRANSACTION READ ONLY", "SET autocommit = 0"] {
        mostly_apart(writer, || {
            run(client, &[begin]);
            for _ in 0..25 {
                let one: u64 = first(client, "SELECT COUNT(*) FROM t WHERE n = 1");
                let same: u64 = first(client, "SELECT COUNT(*) FROM t WHERE n = 1");
                assert_eq!(one, same);
                run(client, &["COMMIT"]);
                if begin != "SET autocommit = 0" {
                    run(client, &[begin]);
                }
                let _: u64 = first(client, "SELECT COUNT(*) FROM t");
                let _: u64 = first(client, "SELECT COUNT(*) FROM t WHERE v > 'a'");
                run(client, &["ROLLBACK"]);
                if begin != "SET autocommit = 0" {
                    run(client, &[begin]);
                }
            }
            run(client, &["COMMIT", "SET autocommit = 1"]);
        });
    }
}

/// Has the session's next transactions begin at the replica.
fn only_read(client: &mut Conn) {
    for _ in 0..3 {
        run(client, &["BEGIN", "SELECT 1 FROM t", "COMMIT"]);
    }
}

fn transactions_move_with_what_they_have_read(client: &mut Conn, other: &mut Conn) {
    run(other, &["CREATE TABLE m (n INT PRIMARY KEY, v INT, KEY (v))"]);
    run(other, &["INSERT INTO m VALUES (1, 1), (2, 2), (3, 3)"]);
    // Nothing that was read has changed: the snapshot is renewed.
    only_read(client);
    run(client, &["BEGIN"]);
    assert_eq!(first::<u64>(client, "SELECT v FROM m WHERE n = 1"), 1);
    run(other, &["UPDATE m SET v = 20 WHERE n = 2"]);
    run(client, &["UPDATE m SET v = v + 1 WHERE n = 2", "COMMIT"]);
    assert_eq!(first::<u64>(other, "SELECT v FROM m WHERE n = 2"), 21);
    // Something has.
    for read in ["SELECT v FROM m WHERE n = 3", "SELECT COUNT(*) FROM m WHERE v BETWEEN 2 AND 30"] {
        only_read(client);
        run(client, &["BEGIN"]);
        let _: u64 = first(client, read);
        run(other, &["UPDATE m SET v = v + 1 WHERE n = 3"]);
        let refused = client.query_drop("UPDATE m SET v = 0 WHERE n = 3").unwrap_err();
        assert_eq!(code(refused), 1020, "{read}");
        run(client, &["ROLLBACK"]);
    }
    // BEGIN commits the transaction before it, and a write may come first in the new one.
    only_read(client);
    run(client, &["BEGIN"]);
    let _: u64 = first(client, "SELECT COUNT(*) FROM m");
    run(client, &["BEGIN", "INSERT INTO m VALUES (4, 4)", "COMMIT"]);
    only_read(client);
    run(client, &["START TRANSACTION READ ONLY"]);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM m"), 4);
    assert_eq!(code(client.query_drop("DELETE FROM m").unwrap_err()), 1792);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM m"), 4);
    run(client, &["COMMIT"]);
    // Savepoints and prepared statements.
    only_read(client);
    run(client, &["BEGIN"]);
    let _: u64 = first(client, "SELECT COUNT(*) FROM m");
    run(client, &["SAVEPOINT s"]);
    client.exec_drop("INSERT INTO m VALUES (?, 5)", (5,)).unwrap();
    run(client, &["ROLLBACK TO s", "COMMIT"]);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM m"), 4);
    run(client, &["DROP TABLE m"]);
}

/// A read at the replica is interrupted by a client of the node that writes.
fn reads_are_killed_from_elsewhere(mut victim: Conn, other: &mut Conn) {
    let id = victim.connection_id();
    run(&mut victim, &["USE kept"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let of_victim = &done;
        let killed = scope.spawn(move || {
            let _done = StopAtEnd(of_victim);
            let crossed = "SELECT COUNT(*) FROM t a, t b, t c, t d, t e, t f, t g, t h \
                           WHERE a.n + b.n + c.n + d.n + e.n + f.n + g.n + h.n < 0";
            let began = Instant::now();
            let crossed = victim.query_first::<u64, _>(crossed);
            println!("{:?} until the end: {crossed:?}", began.elapsed());
            crossed.unwrap_err()
        });
        let until = Instant::now() + PATIENCE;
        while !done.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "it runs on");
            std::thread::sleep(Duration::from_millis(50));
            let _ = other.query_drop(format!("KILL QUERY {id}"));
        }
        assert_eq!(code(killed.join().unwrap()), 1317);
    });
}

fn locks_are_those_of_the_writer(client: &mut Conn, other: &mut Conn) {
    assert_eq!(first::<u64>(client, "SELECT GET_LOCK('mine', 1)"), 1);
    assert_eq!(first::<u64>(other, "SELECT IS_FREE_LOCK('mine')"), 0);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM t WHERE n = 1"), 1);
    assert_eq!(first::<u64>(client, "SELECT RELEASE_LOCK('mine')"), 1);

    run(client, &["CREATE TEMPORARY TABLE u (n INT)", "INSERT INTO u VALUES (1), (2)"]);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM u JOIN t USING (n)"), 2);
    run(client, &["DROP TEMPORARY TABLE u"]);

    run(client, &["LOCK TABLES t WRITE"]);
    assert_eq!(first::<u64>(client, "SELECT COUNT(*) FROM t WHERE n = 1"), 1);
    run(other, &["SET SESSION lock_wait_timeout = 1"]);
    assert_eq!(code(other.query_drop("DELETE FROM t WHERE n = 1").unwrap_err()), 1205);
    run(client, &["UNLOCK TABLES"]);

    for lock in ["FOR UPDATE", "FOR SHARE"] {
        run(client, &["BEGIN"]);
        let _: u64 = first(client, &format!("SELECT n FROM t WHERE n = 1 {lock}"));
        let refused = other.query_first::<u64, _>("SELECT n FROM t WHERE n = 1 FOR UPDATE NOWAIT");
        assert_eq!(code(refused.unwrap_err()), 3572, "{lock}");
        run(client, &["COMMIT"]);
    }
    run(client, &["HANDLER t OPEN", "HANDLER t READ FIRST", "HANDLER t CLOSE"]);
}

fn what_belongs_to_the_server_is_the_writers(
    client: &mut Conn,
    other: &mut Conn,
    cluster: &Cluster,
) {
    run(client, &["SET GLOBAL max_error_count = 99, GLOBAL local_infile = 1"]);
    let global = "SELECT @@global.max_error_count";
    assert_eq!(first::<u64>(client, global), 99);
    assert_eq!(first::<u64>(other, global), 99);
    let began = first::<u64>(&mut cluster.replica(), "SELECT @@max_error_count");
    assert_eq!(began, 99, "of a session that has begun later");
    assert_eq!(first::<u64>(client, "SELECT @@read_only"), 0);
    let same = "SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()";
    assert_eq!(first::<u64>(client, same), 1);
    run(client, &["USE information_schema"]);
    let same = "SELECT COUNT(*) FROM processlist WHERE id = CONNECTION_ID()";
    assert_eq!(first::<u64>(client, same), 1);
    run(client, &["USE kept"]);
    client.set_local_infile_handler(Some(mysql::LocalInfileHandler::new(|_, to| {
        std::io::Write::write_all(to, b"900\tfile\n")
    })));
    run(client, &["LOAD DATA LOCAL INFILE 'f' INTO TABLE t"]);
    assert_eq!(first::<String>(client, "SELECT v FROM t WHERE n = 900"), "file");
    run(client, &["CREATE USER reader@localhost", "GRANT SELECT ON kept.* TO reader@localhost"]);
    let port = cluster.ports(Role::Replica).into_values().next();
    let options = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port.unwrap())
        .user(Some("reader"))
        .prefer_socket(false);
    let mut reader = Conn::new(options).expect("a new account logs in at once");
    assert_eq!(first::<u64>(&mut reader, "SELECT COUNT(*) FROM kept.t WHERE n = 900"), 1);
    assert_eq!(code(reader.query_drop("DELETE FROM kept.t").unwrap_err()), 1142);
}

fn own_writes_are_seen_with_session_consistency(client: &mut Conn) {
    run(client, &["SET SESSION firn_read_consistency = 'SESSION'"]);
    for n in 2_000..2_100 {
        run(client, &[&format!("INSERT INTO t (n) VALUES ({n})")]);
        let newest: u64 = first(client, "SELECT MAX(n) FROM t");
        assert_eq!(newest, n);
    }
    run(client, &["SET SESSION firn_read_consistency = 'STRONG'"]);
}

/// Counts a row up at an endpoint, in one statement or in a transaction.
fn count_up(mut client: Conn, row: usize, counts: &[AtomicU64], stop: &AtomicBool) {
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        count += 1;
        let update = format!("UPDATE kept.c SET v = {count}, w = {count} WHERE n = {row}");
        match count % 3 {
            0 => run(&mut client, &["BEGIN", "SELECT v FROM kept.c", &update, "COMMIT"]),
            _ => run(&mut client, &[&update]),
        }
        counts[row].store(count, Ordering::SeqCst);
    }
}

/// Reads all rows at an endpoint, and compares them with what was acknowledged before. Returns how
/// many rows were read, and how many were older.
fn compare(mut client: Conn, counts: &[AtomicU64], stop: &AtomicBool) -> (u64, u64) {
    let point = client.prep("SELECT n, v FROM kept.c WHERE n = ?").unwrap();
    let texts = [
        "SELECT n, v FROM kept.c",
        "SELECT n, v FROM kept.c WHERE n BETWEEN 0 AND 99 ORDER BY n",
        "SELECT n, w FROM kept.c FORCE INDEX (w) WHERE w >= 0",
        "SELECT a.n, b.v FROM kept.c a JOIN kept.c b ON a.n = b.n",
        "SELECT n, SUM(v) FROM kept.c GROUP BY n",
    ];
    let (mut read, mut older, mut round) = (0, 0, 0);
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let in_transaction = round % 4 == 3;
        if in_transaction {
            let begin = if round % 8 == 3 { "BEGIN" } else { "START TRANSACTION READ ONLY" };
            run(&mut client, &[begin]);
        }
        let expected: Vec<u64> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        let found: Vec<(usize, u64)> = match round % 6 {
            5 => client.exec(&point, (round % COUNTERS,)).unwrap(),
            at => client.query(texts[at]).unwrap(),
        };
        read += found.len() as u64;
        older += found.iter().filter(|(n, v)| *v < expected[*n]).count() as u64;
        if in_transaction {
            let again: Vec<(usize, u64)> = client.query(texts[0]).unwrap();
            let is_same = |(n, v)| again.iter().any(|(m, w)| m == n && w == v);
            assert!(found.iter().map(|(n, v)| (n, v)).all(is_same), "one snapshot");
            run(&mut client, &["COMMIT"]);
        }
    }
    (read, older)
}

#[test]
fn no_read_at_any_endpoint_is_older_than_a_write_at_any_other() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seconds = std::env::var("CLUSTER_SECONDS").map_or(4, |text| text.parse().expect("seconds"));
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--nodes", "3", "--replicas", "2", "--proxies", "1"];
    let cluster = Cluster::start(directory.path(), &arguments);
    let mut first = cluster.proxy();
    run(
        &mut first,
        &[
            "CREATE DATABASE kept",
            "CREATE TABLE kept.c (n BIGINT PRIMARY KEY, v BIGINT, w BIGINT, KEY w (w))",
            "INSERT INTO kept.c VALUES (0,0,0), (1,0,0), (2,0,0), (3,0,0), (4,0,0), (5,0,0)",
        ],
    );
    let mut ports: Vec<u16> = cluster.ports(Role::Database).into_values().collect();
    ports.extend(cluster.ports(Role::Replica).into_values());
    ports.extend(cluster.ports(Role::Proxy).into_values());
    assert_eq!(ports.len(), COUNTERS);
    count_and_compare(&cluster, &ports, &ports, seconds);
    let (port, mut far) = join_far_replica(&cluster);
    count_and_compare(&cluster, &ports, &[&ports[..], &[port]].concat(), seconds);
    cluster.end();
    drop(far.stdin.take());
    far.wait().unwrap();
}

/// Starts a replica that does not find the writer's memory, as if it were on another machine.
fn join_far_replica(cluster: &Cluster) -> (u16, Child) {
    let is_by_messages = || cluster.logs().contains("its memory is asked by messages");
    assert!(!is_by_messages());
    let socket = cluster.directory.join(cluster.leader()).join("regions.sock");
    std::fs::remove_file(socket).expect("the socket of the writer's memory");
    let port = free_port();
    let far = cluster.join("far", Role::Replica, port);
    let until = Instant::now() + PATIENCE;
    while !is_by_messages() {
        assert!(Instant::now() < until, "{}", cluster.logs());
        std::thread::sleep(Duration::from_millis(50));
    }
    (port, far)
}

/// Counts rows up at each endpoint, and reads all of them wherever one reads.
fn count_and_compare(cluster: &Cluster, ports: &[u16], read_at: &[u16], seconds: u64) {
    let (counts, stop) = ([const { AtomicU64::new(0) }; COUNTERS], AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let (counts, stop) = (&counts, &stop);
        for (row, port) in ports.iter().enumerate() {
            let client = cluster.connect(|| Some(*port));
            scope.spawn(move || count_up(client, row, counts, stop));
        }
        let readers: Vec<_> = read_at
            .iter()
            .map(|port| {
                let client = cluster.connect(|| Some(*port));
                scope.spawn(move || compare(client, counts, stop))
            })
            .collect();
        let mut client = cluster.replica();
        run(&mut client, &["SET SESSION firn_read_consistency = 'STALE'"]);
        let stale = scope.spawn(move || compare(client, counts, stop));
        std::thread::sleep(Duration::from_secs(seconds));
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            let (read, older) = reader.join().unwrap();
            println!("{read} rows were read");
            assert!(read > 0);
            assert_eq!(older, 0, "of {read} rows");
        }
        let (read, older) = stale.join().unwrap();
        println!("with STALE, {older} of {read} rows were older");
    });
    let written: u64 = counts.iter().map(|count| count.load(Ordering::SeqCst)).sum();
    println!("{written} were written");
}
