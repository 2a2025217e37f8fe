//! A node that writes is stopped for longer than its lease, and goes on: another one has begun to
//! write meanwhile.

use std::sync::atomic::AtomicU64;

use super::*;

const CLIENTS: u64 = 8;
/// How long the node is stopped: longer than the others wait for it.
const STOPPED: Duration = Duration::from_secs(3);

/// Counts the client's row up until it is told to stop, by single statements and by transactions.
/// Returns how often that was acknowledged; `count` has it all the time.
fn count_up(mut connection: Conn, row: u64, count: &AtomicU64, stop: &AtomicBool) -> u64 {
    let update = format!("UPDATE kept.c SET v = v + 1 WHERE n = {row}");
    let (mut counted, mut round) = (0, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let done = match round % 2 {
            0 => connection.query_drop(&update),
            _ => connection
                .query_drop("BEGIN")
                .and_then(|()| connection.query_drop("SELECT v FROM kept.c"))
                .and_then(|()| connection.query_drop(&update))
                .and_then(|()| connection.query_drop("COMMIT")),
        };
        match done.map_err(code) {
            Ok(()) => {
                counted += 1;
                count.store(counted, Ordering::SeqCst);
            }
            Err(1213) if round % 2 == 1 => {}
            Err(code) => panic!("client {row} got error {code} in round {round}"),
        }
    }
    counted
}

/// Reads all rows at the port of a node that may be stopped, and compares them with what was
/// acknowledged before. Returns how many of them were older.
fn compare(mut connection: Conn, counts: &[AtomicU64], stop: &AtomicBool) -> u64 {
    let (mut older, mut round) = (0, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        let expected: Vec<u64> = counts.iter().map(|count| count.load(Ordering::SeqCst)).collect();
        let texts = match round % 2 {
            0 => &["SELECT v FROM kept.c ORDER BY n"][..],
            _ => &["BEGIN", "SELECT v FROM kept.c ORDER BY n", "COMMIT"],
        };
        let mut found: Vec<u64> = Vec::new();
        for text in texts {
            match connection.query::<u64, _>(text).map_err(code) {
                Ok(rows) if !rows.is_empty() => found = rows,
                Ok(_) => {}
                Err(1213) if texts.len() > 1 => break,
                Err(code) => panic!("{text}: error {code}"),
            }
        }
        older +=
            found.iter().zip(expected).filter(|(found, expected)| *found < expected).count() as u64;
    }
    older
}

#[test]
fn clients_of_a_proxy_see_nothing_but_deadlocks_of_a_writer_that_was_stopped() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let stops = std::env::var("CLUSTER_STOPS").map_or(2, |stops| stops.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3", "--proxies", "1"]);
    let mut first = cluster.proxy();
    first.query_drop("CREATE DATABASE kept").unwrap();
    first.query_drop("CREATE TABLE kept.c (n BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    for row in 0..CLIENTS {
        first.query_drop(format!("INSERT INTO kept.c VALUES ({row}, 0)")).unwrap();
    }
    let stop = AtomicBool::new(false);
    let counts = [const { AtomicU64::new(0) }; CLIENTS as usize];
    let counted: Vec<u64> = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|row| {
                let (connection, stop) = (cluster.proxy(), &stop);
                let count = &counts[row as usize];
                scope.spawn(move || count_up(connection, row, count, stop))
            })
            .collect();
        let readers: Vec<_> = cluster
            .ports(Role::Database)
            .into_values()
            .map(|port| {
                let (connection, stop) = (cluster.connect(|| Some(port)), &stop);
                let counts = &counts;
                scope.spawn(move || compare(connection, counts, stop))
            })
            .collect();
        for _ in 0..stops {
            std::thread::sleep(Duration::from_secs(1));
            let leader = cluster.leader();
            cluster.signal("STOP", &leader);
            std::thread::sleep(STOPPED);
            cluster.signal("CONT", &leader);
        }
        std::thread::sleep(Duration::from_secs(1));
        stop.store(true, Ordering::Relaxed);
        let older: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
        assert_eq!(older, 0, "reads at a node that was stopped");
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    println!("{} were acknowledged", counted.iter().sum::<u64>());
    let kept: Vec<u64> = first.query("SELECT v FROM kept.c ORDER BY n").unwrap();
    assert_eq!(kept, counted, "what was acknowledged");
    cluster.end();
}
