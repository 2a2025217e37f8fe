//! Replicas come with the load and leave when it is gone, and clients of the endpoint notice
//! nothing.

use std::sync::atomic::AtomicU64;

use firn_base::Environment;
use firn_cluster::Surveyor;

use super::*;

/// Clients that keep a replica busy.
pub(super) const BUSY: usize = 12;
/// Clients that are there all the time, and do little.
const QUIET: usize = 4;
/// Rows of the table that busy clients read: its cross product is work for a few milliseconds.
const ROWS: u64 = 300;

impl Cluster {
    /// Waits until the line about replicas says that.
    fn wait_until_elastic(&self, says: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.status();
            let mut lines = text.lines().filter(|line| line.starts_with("elastic: "));
            if lines.any(|line| line.contains(says)) {
                return;
            }
            assert!(Instant::now() < until, "not '{says}':\n{text}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// How many reads a replica has answered since it opened.
    fn reads_of(&self, name: &str) -> Option<u64> {
        let surveyor = Surveyor::new(&Environment::system(), self.layout()?, None);
        let survey = surveyor.look();
        let node = survey.nodes.iter().find(|one| one.node.name == name)?;
        Some(node.status.as_ref().ok()?.replica.as_ref()?.load.reads)
    }

    /// Waits until the replica answers reads.
    pub(super) fn wait_until_it_reads(&self, name: &str) {
        let until = Instant::now() + PATIENCE;
        let mut before = None;
        loop {
            let now = self.reads_of(name);
            if before.is_some_and(|before| now > Some(before)) {
                return;
            }
            before = now;
            assert!(Instant::now() < until, "{name} reads nothing:\n{}", self.status());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

pub(super) fn make_tables(client: &mut Conn) {
    for text in [
        "CREATE DATABASE kept",
        "CREATE TABLE kept.t (n BIGINT PRIMARY KEY)",
        "CREATE TABLE kept.c (n BIGINT PRIMARY KEY, v BIGINT)",
        "INSERT INTO kept.c VALUES (1, 0)",
    ] {
        client.query_drop(text).unwrap();
    }
    let rows: Vec<String> = (0..ROWS).map(|row| format!("({row})")).collect();
    client.query_drop(format!("INSERT INTO kept.t VALUES {}", rows.join(", "))).unwrap();
}

/// Reads much until it is told to stop.
pub(super) fn read_much(mut client: Conn, stop: &AtomicBool) -> u64 {
    let text = "SELECT COUNT(*) FROM kept.t a, kept.t b WHERE a.n * b.n >= 0";
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        let count: Option<u64> = client.query_first(text).unwrap();
        assert_eq!(count, Some(ROWS * ROWS));
        reads += 1;
    }
    reads
}

/// Reads a counter now and then, alone and in transactions, and never finds it below what was
/// acknowledged before. Returns how often.
fn read_little(mut client: Conn, counted: &AtomicU64, stop: &AtomicBool) -> u64 {
    let prepared = client.prep("SELECT v FROM kept.c WHERE n = ?").unwrap();
    let mut reads = 0;
    while !stop.load(Ordering::Relaxed) {
        let least = counted.load(Ordering::SeqCst);
        let found: Option<u64> = match reads % 3 {
            0 => client.query_first("SELECT v FROM kept.c").unwrap(),
            1 => client.exec_first(&prepared, (1,)).unwrap(),
            _ => {
                client.query_drop("START TRANSACTION READ ONLY").unwrap();
                let first: Option<u64> = client.query_first("SELECT v FROM kept.c").unwrap();
                // It is open while a replica leaves.
                std::thread::sleep(Duration::from_millis(300));
                let again: Option<u64> = client.query_first("SELECT v FROM kept.c").unwrap();
                client.query_drop("COMMIT").unwrap();
                assert_eq!(first, again, "the snapshot is one");
                first
            }
        };
        assert!(found >= Some(least), "{found:?} is older than {least}");
        reads += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    reads
}

/// Counts up now and then.
fn count_slowly(mut client: Conn, counted: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        client.query_drop("UPDATE kept.c SET v = v + 1").unwrap();
        counted.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_paused_cluster_has_none_of_them() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let shape = ["--nodes", "1", "--proxies", "1", "--most-replicas", "2"];
    let pause = ["--pause-after-idle-seconds", "3"];
    let cluster = Cluster::start(directory.path(), &[&shape[..], &pause].concat());
    let mut client = cluster.proxy();
    cluster.wait_until_elastic("0 serving, 0 wanted (1 to 2); paused");
    assert_eq!(client.query_first("SELECT 1").unwrap(), Some(1));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                client.query_drop("SELECT COUNT(*) FROM mysql.user").unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        cluster.wait_until_elastic("1 serving, 1 wanted");
    });
    drop(client);
    cluster.end();
}

#[test]
fn replicas_come_with_the_load_and_leave_without_an_error() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let shape = ["--nodes", "1", "--proxies", "1", "--most-replicas", "2"];
    let limits = ["--replica-processor-percent", "20"];
    let times = ["--scale-up-seconds", "2", "--scale-down-seconds", "6"];
    let cluster = Cluster::start(directory.path(), &[&shape[..], &limits, &times].concat());
    let mut first = cluster.proxy();
    make_tables(&mut first);
    cluster.wait_until_elastic("1 serving");

    let (stop, is_quiet) = (AtomicBool::new(false), AtomicBool::new(false));
    let counted = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (_stop, _quiet) = (StopAtEnd(&stop), StopAtEnd(&is_quiet));
        let (cluster, counted, stop, is_quiet) = (&cluster, &counted, &stop, &is_quiet);
        let quiet: Vec<_> = (0..QUIET)
            .map(|_| scope.spawn(|| read_little(cluster.proxy(), counted, stop)))
            .collect();
        let counting = scope.spawn(|| count_slowly(cluster.proxy(), counted, stop));
        let busy: Vec<_> =
            (0..BUSY).map(|_| scope.spawn(|| read_much(cluster.proxy(), is_quiet))).collect();
        cluster.wait_until_elastic("2 serving");
        for name in ["elastic-1", "elastic-2"] {
            cluster.wait_until_it_reads(name);
        }
        is_quiet.store(true, Ordering::Relaxed);
        busy.into_iter().for_each(|client| assert!(client.join().unwrap() > 0));
        cluster.wait_until_elastic("1 serving, 1 wanted (1 to 2)");
        cluster.wait_until_elastic("elastic-2 is removed: it has left");
        let text = cluster.status();
        assert!(!text.lines().any(|line| line.starts_with("elastic-2 ")), "{text}");
        assert!(!cluster.directory.join("elastic-2").exists());
        cluster.wait_until_it_reads("elastic-1");
        stop.store(true, Ordering::Relaxed);
        quiet.into_iter().for_each(|client| assert!(client.join().unwrap() > 0));
        counting.join().unwrap();
    });

    // One that dies is replaced.
    cluster.kill("elastic-1");
    cluster.wait_until_elastic("last: elastic-1 starts");
    cluster.wait_until_elastic("1 serving");
    let count: Option<u64> = first.query_first("SELECT v FROM kept.c").unwrap();
    assert_eq!(count, Some(counted.load(Ordering::SeqCst)));
    let status = directory.path().join("elastic.status");
    assert!(status.exists());
    cluster.end();
    assert!(!status.exists());

    // The same command goes on with what there was.
    let cluster = Cluster::start(directory.path(), &["--most-replicas", "2"]);
    cluster.wait_until_elastic("1 serving");
    let count: Option<u64> = cluster.proxy().query_first("SELECT v FROM kept.c").unwrap();
    assert_eq!(count, Some(counted.load(Ordering::SeqCst)));
    cluster.end();
}
