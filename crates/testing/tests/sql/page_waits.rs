//! Statements over columns that wait for pages, and one that needs none meanwhile.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use firn_base::Environment;
use firn_base::disk::{DirectoryLock, Disk, File, OpenMode};
use firn_base::event::Event;
use firn_node::node::NodeOptions;
use mysql::prelude::Queryable;

use crate::client::Client;
use crate::server::Server;

/// Rows of the large table, which is scanned as a whole: one task for each statement.
const ROWS: usize = 40_000;
/// Less than they take.
const POOL_BYTES: usize = 12 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// While it is shut, no read of the disk returns.
#[derive(Default)]
struct Gate {
    is_shut: AtomicBool,
    changed: Event,
    waiting: AtomicUsize,
}

impl Gate {
    fn set(&self, is_shut: bool) {
        self.is_shut.store(is_shut, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.changed.wait_until(None, || !self.is_shut.load(Ordering::SeqCst));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The system's disk behind a gate.
struct GatedDisk {
    disk: Arc<dyn Disk>,
    gate: Arc<Gate>,
}

struct GatedFile {
    file: Arc<dyn File>,
    gate: Arc<Gate>,
}

impl Disk for GatedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.disk.open(path, mode)?;
        Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_directory(path)
    }

    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.disk.lock_directory(path)
    }
}

impl File for GatedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.gate.pass();
        self.file.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }
}

/// A table that does not fit the pool, and one that stays in it.
fn fill(client: &mut Client) {
    client.make_schema("waits_for_pages");
    for statement in [
        "USE waits_for_pages",
        "SET cte_max_recursion_depth = 1000000",
        "CREATE TABLE large (id INT PRIMARY KEY, s VARCHAR(600))",
        &format!(
            "INSERT INTO large WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < {})
            SELECT i, REPEAT(MD5(i), 16) FROM n",
            ROWS - 1
        ),
        "CREATE TABLE small (id INT PRIMARY KEY, v INT)",
        "INSERT INTO small SELECT id, id % 7 FROM large WHERE id < 2000",
        "ANALYZE TABLE large, small",
        "SET GLOBAL innodb_stats_auto_recalc = OFF",
        "SET GLOBAL firn_executor = VECTORISED",
    ] {
        client.connection().query_drop(statement).expect("filled tables");
    }
}

fn sum(port: u16, query: &str) -> mysql::Result<Option<i64>> {
    Client::connect(port, Some("waits_for_pages")).connection().query_first(query)
}

#[test]
fn a_statement_runs_while_more_statements_than_workers_wait_for_pages() {
    let gate = Arc::new(Gate::default());
    let mut environment = Environment::system();
    environment.disk =
        Arc::new(GatedDisk { disk: Arc::clone(&environment.disk), gate: Arc::clone(&gate) });
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = POOL_BYTES;
    let server = Server::start_over(&environment, &options);
    let port = server.port();
    fill(&mut Client::connect(port, None));
    let small = || sum(port, "SELECT SUM(v) FROM small").expect("rows in memory");
    let expected = small();
    let mut client = Client::connect(port, None);
    let before = client.status("Firn_queries_vectorised");
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let statements = workers * 2;
    // Each begins at another page of those that were evicted first.
    let firsts = (0..statements).map(|number| number * ROWS / 4 / statements);
    for first in firsts.clone() {
        // What planning reads, and the path to the first leaf.
        let begin = format!("EXPLAIN SELECT SUM(LENGTH(s)) FROM large WHERE id >= {first}");
        let connection = client.connection();
        connection.query_drop("USE waits_for_pages").expect("a schema");
        connection.query_drop(begin).expect("a plan");
        let row = format!("SELECT /*+ EXECUTOR(ROW) */ id FROM large WHERE id = {first}");
        connection.query_drop(row).expect("a row");
    }

    // What was evicted comes from memory until it is stored.
    let until = std::time::Instant::now() + PATIENCE;
    while client.status("Innodb_data_pending_writes") > 0 {
        assert!(std::time::Instant::now() < until, "evicted pages are not stored");
        std::thread::sleep(Duration::from_millis(5));
    }
    gate.set(true);
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for first in firsts {
            let sender = sender.clone();
            scope.spawn(move || {
                let query = format!("SELECT SUM(LENGTH(s)) FROM large WHERE id >= {first}");
                sender.send(("large", sum(port, &query).is_ok())).expect("the test listens");
            });
        }
        let began = std::time::Instant::now();
        while gate.waiting.load(Ordering::SeqCst) == 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        // By now the other statements wait too, or for a worker.
        std::thread::sleep(Duration::from_millis(300));
        let gate = &gate;
        scope.spawn(move || {
            sender.send(("small", small() == expected)).expect("the test listens");
        });
        let first = receiver.recv_timeout(PATIENCE);
        gate.set(false);
        assert_eq!(first, Ok(("small", true)));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), vec![("large", true); statements]);
    });
    let ran = client.status("Firn_queries_vectorised") - before;
    assert_eq!(ran, statements as u64 + 1, "statements went to the row executor");
}
