//! The time from start to first answer with a gibibyte of log that no page has seen yet.

use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use firn_base::{Environment, IndexId};
use firn_engine::transaction::{IsolationLevel, ReadMode};
use firn_node::node::{Node, NodeOptions};
use firn_testing::crash::{Death, KillLoop, Life, Victim};

use crate::mirror::Trees;
use crate::plan::Shape;

const VICTIM_VARIABLE: &str = "FIRN_TEST_LOG_FILLER";
const LOG_BYTES: u64 = 1 << 30;
const KEYS: u64 = 20_000;

/// A page store that applies no log by itself.
fn lazy() -> NodeOptions {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = 256 << 20;
    options.storage.pages.behind_limit_bytes = u64::MAX;
    options.storage.pages.idle_pages_per_second = 0;
    options
}

#[test]
#[ignore = "the process that writes the log"]
fn filler() {
    let Ok(orders) = std::env::var(VICTIM_VARIABLE) else { return };
    let (table, path) = orders.split_once(' ').expect("a table and a path");
    let table = IndexId(table.parse().expect("a number"));
    let node = Node::open(&Environment::system(), path.as_ref(), &lazy()).unwrap();
    let log = &node.engine().forest().pages().log;
    let mut number = 0_u64;
    while log.end_lsn().0 < LOG_BYTES {
        let mut trx = node.engine().begin(IsolationLevel::ReadCommitted).unwrap();
        for _ in 0..100 {
            number += 1;
            let payload = number.to_be_bytes().repeat(60);
            let key = (number % KEYS).to_be_bytes();
            if number <= KEYS {
                trx.insert(table, &key, &payload).unwrap();
            } else {
                assert!(trx.update(table, &key, &payload).unwrap());
            }
        }
        trx.commit_without_waiting().unwrap();
    }
    log.wait_durable(log.end_lsn()).unwrap();
    let behind = node.storage().figures().pages.behind_bytes;
    println!("\n@full {behind}");
    firn_base::task::sleep(Duration::from_secs(3600));
}

struct Filler {
    path: String,
    table: IndexId,
    told: Mutex<String>,
}

impl Victim for Filler {
    fn command(&mut self, _round: u32) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this test's own file"));
        command.args(["--exact", "restart_time::filler", "--ignored", "--nocapture"]);
        command.env(VICTIM_VARIABLE, format!("{} {}", self.table.0, self.path));
        command
    }

    fn is_ready(&self, line: &str) -> bool {
        line.starts_with("@full")
    }

    fn drive(&self, _life: &Life) {}

    fn verify(&mut self, death: &Death) -> Result<(), String> {
        let line = death.lines.iter().find(|line| line.starts_with("@full"));
        *self.told.lock().expect("no panic") = line.cloned().unwrap_or_default();
        Ok(())
    }
}

#[test]
#[ignore = "a measurement: writes a gibibyte"]
fn a_gibibyte_of_log_does_not_delay_the_first_answer() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::system();
    let node = Node::open(&environment, directory.path(), &lazy()).unwrap();
    let shape = Shape { seed: 1, threads: 1, keys: 1, accounts: 1, value_bytes: 1, long_steps: 1 };
    let trees = Trees::create(node.engine(), &shape).unwrap();
    node.close().unwrap();
    let path = directory.path().display().to_string();
    let mut filler = Filler { path, table: trees.table, told: Mutex::default() };
    let once = KillLoop::new(1).rounds(1).ready_timeout(Duration::from_secs(1800));
    once.run(&mut filler).unwrap();
    eprintln!("bytes of log without pages: {}", filler.told.lock().unwrap());
    for _ in 0..3 {
        let began = environment.clock.monotonic();
        let node = Node::open(&environment, directory.path(), &lazy()).unwrap();
        let opened = environment.clock.monotonic() - began;
        let mut trx = node.engine().begin(IsolationLevel::RepeatableRead).unwrap();
        let mut payload = Vec::new();
        let key = 7_u64.to_be_bytes();
        assert!(trx.get(trees.table, &key, ReadMode::Consistent, &mut payload).unwrap());
        let answered = environment.clock.monotonic() - began;
        eprintln!("opened after {opened:?}, answered after {answered:?}");
        drop(trx);
        node.close().unwrap();
    }
}
