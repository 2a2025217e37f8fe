//! `kill -9` at random moments, over a real disk. The process under test is this test binary,
//! started again with [`VICTIM_VARIABLE`] set.
//!
//! ```text
//!   child:  opening ── (recovery) ── 16 workers ── "@A 3 17" … ──✗ killed, soon after its start or late
//!   parent: some kills later, opens the directory, and compares it with all that was said
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_api::WriterEpoch;
use firn_base::{Environment, IndexId};
use firn_node::node::{Node, NodeOptions};
use firn_storage::local::LocalStorage;
use firn_testing::crash::{Death, KillLoop, Victim};
use firn_testing::random::Random;

use crate::mirror::Trees;
use crate::plan::{Model, Shape};
use crate::verify::Witness;
use crate::worker::{Report, Said, Worker, end_prepared};

const VICTIM_VARIABLE: &str = "FIRN_TEST_VICTIM";
/// How often the process is killed; 15 by default.
const ROUNDS_VARIABLE: &str = "FIRN_ROUNDS";
const SEED_VARIABLE: &str = firn_testing::simulation::SEED_VARIABLE;
const DEFAULT_ROUNDS: u64 = 15;
const DEFAULT_SEED: u64 = 1;

fn shape(seed: u64) -> Shape {
    Shape { seed, threads: 16, keys: 400, accounts: 40, value_bytes: 3_000, long_steps: 300 }
}

/// Small sizes that differ each time, so that materialisation, truncation, snapshots of the page
/// map, recycling of files, eviction and offloading happen all the time.
fn options(random: &Random) -> NodeOptions {
    let mut options = NodeOptions::default();
    options.engine.buffer_pool_bytes = *random.pick(&[3 << 20, 8 << 20, 64 << 20]);
    options.engine.transactions.table_slots = *random.pick(&[16, 1024, 64 * 1024]);
    options.engine.log.buffer_bytes = *random.pick(&[1 << 20, 16 << 20]);
    options.engine.log.leave_from = *random.pick(&[None, Some(1), Some(4)]);
    options.storage.log.segment_size_bytes = *random.pick(&[1 << 20, 4 << 20]);
    options.storage.log.spare_limit = *random.pick(&[0, 1, 4]);
    options.storage.log.index_cache_bytes = *random.pick(&[64 << 10, 64 << 20]);
    options.storage.pages.behind_limit_bytes = *random.pick(&[512 << 10, 2 << 20, 16 << 20]);
    options.storage.pages.batch_pages = *random.pick(&[4, 32, 256]);
    options.storage.pages.queue_bytes = *random.pick(&[128 << 10, 16 << 20]);
    options.storage.pages.grow_bytes = 1 << 20;
    options.storage.pages.reserve_bytes = 2 << 20;
    options
}

/// Writes a line with one system call, so that a kill leaves the whole line or nothing.
fn say(line: &str) {
    let mut stdout = std::io::stdout().lock();
    let said = stdout.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdout.flush());
    said.expect("the parent listens");
}

/// The child's parameters.
struct Orders {
    path: PathBuf,
    seed: u64,
    round: u64,
    trees: Trees,
}

impl Orders {
    fn to_text(&self) -> String {
        let (table, index) = (self.trees.table.0, self.trees.index.0);
        format!("{} {} {table} {index} {}", self.seed, self.round, self.path.display())
    }

    fn parse(text: &str) -> Option<Orders> {
        let mut parts = text.splitn(5, ' ');
        let mut number = || parts.next()?.parse().ok();
        let [seed, round, table, index] = [number()?, number()?, number()?, number()?];
        let trees = Trees { table: IndexId(table), index: IndexId(index) };
        Some(Orders { path: parts.next()?.into(), seed, round, trees })
    }
}

#[test]
#[ignore = "the process that the kill loop kills"]
fn victim() {
    let Some(orders) = std::env::var(VICTIM_VARIABLE).ok().and_then(|text| Orders::parse(&text))
    else {
        return;
    };
    let random = Random::new(orders.seed ^ (orders.round << 32));
    std::panic::set_hook(Box::new(|panic| {
        say(&format!("thread panicked: {panic}").replace('\n', " "));
        say("@W 0 0");
    }));
    say("\n@opening");
    let node = Node::open(&Environment::system(), &orders.path, &options(&random));
    let node = node.expect("the directory is good");
    let report: Report = Arc::new(|thread, sequence, said| {
        let letter = match said {
            Said::Acknowledged => 'A',
            Said::Prepared => 'P',
            Said::Ending => 'E',
            Said::Wrong => 'W',
        };
        say(&format!("@{letter} {thread} {sequence}"));
    });
    end_prepared(node.engine(), &random, &report).expect("nothing is wrong with the log");
    let (shape, stop) = (shape(orders.seed), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..shape.threads {
            let (engine, report, own) = (node.engine(), Arc::clone(&report), random.fork());
            let (shape, stop) = (&shape, &stop);
            scope.spawn(move || {
                let worker = Worker {
                    engine,
                    trees: orders.trees,
                    shape,
                    thread,
                    random: &own,
                    report,
                    stop,
                    pace: Duration::ZERO,
                    lock_wait: Duration::from_secs(2),
                    is_storage_bad: false,
                };
                worker.run();
            });
        }
    });
}

fn parse_said(line: &str) -> Option<(u32, u64, Said)> {
    let mut parts = line.strip_prefix('@')?.split(' ');
    let said = match parts.next()? {
        "A" => Said::Acknowledged,
        "P" => Said::Prepared,
        "E" => Said::Ending,
        "W" => Said::Wrong,
        _ => return None,
    };
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, said))
}

struct Firn {
    orders: Orders,
    witness: Witness,
    random: Random,
    opened: Duration,
    checks: u32,
}

impl Firn {
    fn create(path: &Path, seed: u64) -> Firn {
        let shape = shape(seed);
        let node = Node::open(&Environment::system(), path, &NodeOptions::default());
        let node = node.expect("an empty directory");
        let trees = Trees::create(node.engine(), &shape).expect("an empty database");
        node.close().expect("nothing is wrong with the log");
        Firn {
            orders: Orders { path: path.to_owned(), seed, round: 0, trees },
            witness: Witness::new(Model::new(&shape)),
            random: Random::new(seed),
            opened: Duration::ZERO,
            checks: 0,
        }
    }

    fn check(&mut self) -> Result<(), String> {
        let environment = Environment::system();
        let began = environment.clock.monotonic();
        let options = options(&self.random);
        let storage = LocalStorage::open(&environment, &self.orders.path, options.storage.clone())
            .map_err(|error| error.to_string())?;
        let opened = Arc::new(storage.clone());
        let node = Node::open_over(&environment, opened, WriterEpoch::Next, &options)
            .map_err(|error| error.to_string())?;
        self.opened = self.opened.max(environment.clock.monotonic() - began);
        self.checks += 1;
        self.witness.check(node.engine(), self.orders.trees)?;
        if self.random.chance(0.2) {
            let verified = storage.pages.verify_all(&mut |_| {});
            verified.map_err(|error| error.to_string())?;
        }
        node.close().map_err(|error| error.to_string())
    }
}

impl Victim for Firn {
    fn command(&mut self, round: u32) -> Command {
        self.orders.round = u64::from(round);
        let mut command = Command::new(std::env::current_exe().expect("this test's own file"));
        command.args(["--exact", "kill_loop::victim", "--ignored", "--nocapture"]);
        command.env(VICTIM_VARIABLE, self.orders.to_text());
        command
    }

    fn is_ready(&self, line: &str) -> bool {
        line == "@opening"
    }

    fn verify(&mut self, death: &Death) -> Result<(), String> {
        for line in &death.lines {
            if let Some((thread, sequence, said)) = parse_said(line) {
                self.witness.hear(thread, sequence, said);
            }
        }
        let complaints = death.lines.iter().filter(|line| line.starts_with("thread "));
        complaints.for_each(|line| eprintln!("round {}: {line}", death.round));
        // Some starts follow a kill immediately and are killed while they recover.
        if self.random.chance(0.4) {
            return Ok(());
        }
        let checked = self.check();
        eprintln!(
            "round {}: lived {:?}, {} transactions{}",
            death.round,
            death.lived,
            self.witness.committed(),
            if checked.is_ok() { "" } else { ": WRONG" }
        );
        checked
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let (seed, rounds) =
        (number(SEED_VARIABLE, DEFAULT_SEED), number(ROUNDS_VARIABLE, DEFAULT_ROUNDS));
    let directory = tempfile::Builder::new().prefix("firn-kill-loop-").tempdir().unwrap();
    let mut firn = Firn::create(directory.path(), seed);
    let kills = KillLoop::new(seed)
        .rounds(rounds as u32)
        .life(Duration::from_millis(1)..=Duration::from_millis(900));
    let outcome = kills.run(&mut firn).map_err(|error| error.to_string());
    let outcome = outcome.and_then(|survived| firn.check().map(|()| survived));
    match outcome {
        Ok(survived) => eprintln!(
            "seed {seed}: {} kills, {} checks, {} transactions in {:?}; opened in {:?} at most",
            survived.kills,
            firn.checks,
            firn.witness.committed(),
            survived.lived,
            firn.opened
        ),
        Err(error) => {
            let kept = directory.keep();
            panic!("{error}\nthe directory is kept: {}\nseed {seed}", kept.display());
        }
    }
}
