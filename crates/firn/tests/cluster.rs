//! A cluster of processes as a user starts it: database nodes, a logger and page nodes are killed
//! while clients write. What was acknowledged is there afterwards.
//!
//! `CLUSTER_KILLS=200 cargo test --release -p firn --test cluster` kills as often.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

#[path = "cluster/archive.rs"]
mod archive;
#[path = "cluster/chunks.rs"]
mod chunks;
#[path = "cluster/controls.rs"]
mod controls;
#[path = "cluster/origin.rs"]
mod origin;
#[path = "support/mod.rs"]
mod server;
#[path = "cluster/splits.rs"]
mod splits;
#[path = "cluster/tables.rs"]
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use firn_base::network::Role;
use firn_base::task::StopAtEnd;
use firn_cluster::Layout;
use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, OptsBuilder, Row};

const WRITERS: u64 = 16;
/// How long the cluster may take until somebody answers.
const PATIENCE: Duration = Duration::from_secs(120);

/// Tests of clusters run one after the other: the machine may have two cores.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A running `firn cluster start`.
struct Cluster {
    directory: PathBuf,
    parent: Child,
    /// The ports at which nodes that joined may answer clients.
    joined: Mutex<Vec<u16>>,
}

impl Cluster {
    fn start(directory: &Path, arguments: &[&str]) -> Cluster {
        Cluster::start_with(directory, arguments, "off")
    }

    /// With that value of `asynchronous_commit`.
    fn start_with(directory: &Path, arguments: &[&str], asynchronous_commit: &str) -> Cluster {
        let parent = Command::new(env!("CARGO_BIN_EXE_firn"))
            .env("FIRN_ASYNCHRONOUS_COMMIT", asynchronous_commit)
            .args(["cluster", "start", "--buffer-pool", "16M", "--dir"])
            .arg(directory)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        Cluster { directory: directory.to_owned(), parent, joined: Mutex::default() }
    }

    /// The ports of the nodes with a role that may answer clients.
    fn ports(&self, role: Role) -> Vec<u16> {
        let layout = fs::read_to_string(self.directory.join("cluster.toml")).unwrap_or_default();
        let Ok(layout) = Layout::parse(&layout) else { return Vec::new() };
        let founders = layout.with_role(role);
        let mut ports: Vec<u16> =
            founders.filter_map(|node| node.client_address.as_ref()?.port()).collect();
        if role == Role::Database {
            ports.extend(self.joined.lock().unwrap().iter());
        }
        ports
    }

    fn connect_once(&self, role: Role, (user, password): (&str, &str)) -> Option<Conn> {
        self.ports(role).into_iter().find_map(|port| {
            let options = OptsBuilder::new()
                .ip_or_hostname(Some("127.0.0.1"))
                .tcp_port(port)
                .user(Some(user))
                .pass(Some(password))
                .prefer_socket(false)
                .read_timeout(Some(PATIENCE));
            Conn::new(options).ok()
        })
    }

    /// A connection to the node that writes.
    fn connect(&self) -> Conn {
        self.connect_to(Role::Database)
    }

    /// A connection to a node with a role that answers.
    fn connect_to(&self, role: Role) -> Conn {
        self.connect_with(role, ("root", ""))
    }

    /// A connection of an account with a password to the node that writes.
    fn connect_as(&self, user: &str, password: &str) -> Conn {
        self.connect_with(Role::Database, (user, password))
    }

    fn connect_with(&self, role: Role, account: (&str, &str)) -> Conn {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(connection) = self.connect_once(role, account) {
                return connection;
            }
            assert!(Instant::now() < until, "nobody answers:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The rows of a query at a node with a role. It is asked again as long as nobody is sure to
    /// lead, or a replica is opened again: on a busy machine, that may be at any time.
    fn rows<T: FromRow>(&self, role: Role, query: &str) -> Vec<T> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.connect_to(role).query(query) {
                Ok(rows) => return rows,
                Err(error) => {
                    assert!(Instant::now() < until, "{query}: {error}\n{}", self.logs());
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Makes the table for the numbers.
    fn create(&self) {
        let _: Vec<Row> = self.rows(Role::Database, "CREATE DATABASE IF NOT EXISTS kept");
        let table = "kept.t (n BIGINT PRIMARY KEY, v TEXT, KEY (v(20)))";
        let create = format!("CREATE TABLE IF NOT EXISTS {table}");
        let _: Vec<Row> = self.rows(Role::Database, &create);
    }

    fn logs(&self) -> String {
        let files = fs::read_dir(&self.directory).unwrap().filter_map(Result::ok);
        let logs = files.map(|file| file.path()).filter(|path| path.extension().is_some());
        logs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }

    /// What `firn cluster status` says, once it says what is waited for.
    fn wait_for_status(&self, says: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let output = self.command(&["status"]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            if says(&text) {
                return text;
            }
            assert!(Instant::now() < until, "{text}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// `firn cluster …` about this cluster.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.arg("cluster").args(arguments).arg("--dir").arg(&self.directory);
        command
    }

    /// Starts a node that joins by hand. Its process ends with the returned one's input.
    fn join(&self, name: &str, roles: &str) -> Child {
        let layout = fs::read_to_string(self.directory.join("cluster.toml")).unwrap();
        let address = layout.lines().find_map(|line| line.strip_prefix("address = ")).unwrap();
        let port = || {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap()
        };
        let clients = port();
        if roles.contains("database") {
            self.joined.lock().unwrap().push(clients.port());
        }
        let log = fs::File::create(self.directory.join(format!("{name}.log"))).unwrap();
        Command::new(env!("CARGO_BIN_EXE_firn"))
            .args(["start", "--ends-with-input", "--buffer-pool", "16M", "--data-dir"])
            .arg(self.directory.join(name))
            .args(["--join", address.trim_matches('"'), "--node-name", name, "--role", roles])
            .args(["--cluster-listen", &port().to_string(), "--listen", &clients.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the binary runs")
    }

    /// Starts a node that has joined before. Its process ends with the returned one's input.
    fn start_again(&self, name: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_firn"))
            .args(["start", "--ends-with-input", "--buffer-pool", "16M", "--data-dir"])
            .arg(self.directory.join(name))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs")
    }

    /// Sends a signal to the process of a node.
    fn signal(&self, name: &str, what: &str) {
        for (found, process) in self.processes() {
            if found == name {
                signal(what, &process);
            }
        }
    }

    /// The processes of the nodes, with their names.
    fn processes(&self) -> Vec<(String, String)> {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let found = processes.filter_map(|process| {
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut words = line.split('\0').skip_while(|word| *word != "--data-dir").skip(1);
            let directory = Path::new(words.next()?);
            let name = directory.strip_prefix(&self.directory).ok()?.to_str()?.to_owned();
            Some((name, process.file_name().into_string().ok()?))
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        found
    }

    fn end(mut self) {
        signal("INT", &self.parent.id().to_string());
        assert!(self.parent.wait().unwrap().success());
        assert_eq!(self.processes(), [], "all nodes have ended");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nodes end with it.
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

fn signal(name: &str, process: &str) {
    let _ =
        Command::new("kill").args([&format!("-{name}"), process]).stderr(Stdio::null()).status();
}

/// The numbers whose insertion was acknowledged.
type Acknowledged = Mutex<BTreeSet<u64>>;

/// Inserts numbers until it is told to stop, and notes those that were acknowledged.
fn write(cluster: &Cluster, writer: u64, stop: &AtomicBool, acknowledged: &Acknowledged) {
    let mut connection = cluster.connect();
    let mut number = writer;
    while !stop.load(Ordering::Relaxed) {
        number += WRITERS;
        match connection
            .query_drop(format!("INSERT INTO kept.t VALUES ({number}, REPEAT('x', 300))"))
        {
            Ok(()) => {
                acknowledged.lock().unwrap().insert(number);
            }
            // The number may be stored or not. The next one goes to the node that answers then.
            Err(_) => connection = cluster.connect(),
        }
    }
}

/// Does something while clients write; returns its result, and the numbers that were acknowledged.
fn while_writing<T>(cluster: &Cluster, act: impl FnOnce(&Acknowledged) -> T) -> (T, BTreeSet<u64>) {
    let stop = AtomicBool::new(false);
    let acknowledged = Acknowledged::default();
    let done = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let (stop, acknowledged) = (&stop, &acknowledged);
        for writer in 0..WRITERS {
            scope.spawn(move || write(cluster, writer, stop, acknowledged));
        }
        act(acknowledged)
    });
    (done, acknowledged.into_inner().unwrap())
}

/// The power fails.
fn kill_all(cluster: &Cluster) {
    cluster.processes().iter().for_each(|(_, process)| signal("KILL", process));
}

#[test]
fn clusters_that_are_made_at_once_have_ports_of_their_own() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let clusters = directories.each_ref().map(|it| Cluster::start(it.path(), &["--nodes", "1"]));
    let mut ports = BTreeSet::new();
    for cluster in &clusters {
        drop(cluster.connect());
        ports.extend(cluster.ports(Role::Database));
        assert!(!cluster.logs().contains("Address already in use"), "{}", cluster.logs());
    }
    assert_eq!(ports.len(), clusters.len());
    clusters.into_iter().for_each(Cluster::end);
}

fn kill_nodes(arguments: &[&str], asynchronous_commit: &str) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let kills = std::env::var("CLUSTER_KILLS").map_or(4, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start_with(directory.path(), arguments, asynchronous_commit);
    cluster.create();
    let ((), acknowledged) = while_writing(&cluster, |_| {
        for round in 0..kills {
            std::thread::sleep(Duration::from_millis(1_500));
            let processes = cluster.processes();
            if round % 4 == 3 {
                kill_all(&cluster);
            } else if let Some((_, process)) = processes.get(round % processes.len().max(1)) {
                signal("KILL", process);
            }
            drop(cluster.connect());
        }
    });
    check_kept(&cluster, &acknowledged);
    cluster.end();
    check_files(directory.path());
}

/// What `firn admin check` says of the directory of a node that does not run: the status, what it
/// has found, and the error.
fn check_node(node: &Path) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(["admin", "check", "--data-dir"])
        .arg(node)
        .output()
        .expect("the binary runs");
    let [found, error] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    (output.status.success(), found, error)
}

/// The files of all nodes of a cluster that has ended are whole.
fn check_files(directory: &Path) {
    let nodes = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let nodes: Vec<PathBuf> = nodes.filter(|path| path.is_dir()).collect();
    assert!(!nodes.is_empty());
    for node in nodes {
        let (is_whole, found, error) = check_node(&node);
        assert!(
            is_whole && found.contains("no damage found"),
            "{}: {found}{error}",
            node.display()
        );
    }
}

/// Changes a bit in each hundred bytes of a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes.iter_mut().skip(99).step_by(100).filter(|byte| **byte != 0).for_each(|byte| *byte ^= 1);
    fs::write(file, bytes).unwrap();
}

#[test]
fn files_of_nodes_are_checked() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--separate"]);
    cluster.create();
    let ((), _) = while_writing(&cluster, |_| std::thread::sleep(Duration::from_secs(3)));
    let node = |name: &str| directory.path().join(name);
    let (is_whole, _, error) = check_node(&node("pages-1"));
    assert!(!is_whole && error.contains("another process uses"), "{error}");
    cluster.end();
    check_files(directory.path());

    damage(&node("pages-1").join("page-node/pages/0000.pages"));
    damage(&node("logger-1").join("control-node/control.group"));
    damage(&node("database-2").join("log-member/log/0000000000000008.log"));
    damage(&node("database-1").join("node.record"));
    for (name, damaged) in [
        ("pages-1", "page"),
        ("logger-1", "control.group is damaged"),
        ("database-2", "log is damaged"),
        ("database-1", "is damaged or of another release"),
    ] {
        let (is_whole, found, error) = check_node(&node(name));
        assert!(!is_whole && error.contains(damaged), "{name}: {found}{error}");
    }
}

#[test]
fn nodes_that_do_everything_are_killed() {
    kill_nodes(&["--nodes", "3"], "on");
}

#[test]
fn processes_of_each_tier_are_killed() {
    kill_nodes(&["--separate"], "off");
}

#[test]
fn a_cluster_tells_its_state_and_goes_on_where_it_ended() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--separate"]);
    cluster.create();
    let wanted = ["leads, term", "follows", "control: ", "log group 1: ", "on pages-1, pages-2\n"];
    cluster.wait_for_status(|text| {
        text.matches(" up ").count() == 5 && wanted.iter().all(|part| text.contains(part))
    });
    cluster.end();
    let again = Cluster::start(directory.path(), &[]);
    let found: Vec<String> = again.rows(Role::Database, "SHOW DATABASES LIKE 'kept'");
    assert_eq!(found, ["kept"]);
    again.end();
}

/// Reads all numbers at a replica again and again. Each read has what was acknowledged before it
/// began, and what an earlier read has seen. Counts the reads that were answered.
fn follow(cluster: &Cluster, stop: &AtomicBool, acknowledged: &Acknowledged, answered: &AtomicU64) {
    let mut seen = BTreeSet::new();
    let mut connection = cluster.connect_to(Role::Replica);
    while !stop.load(Ordering::Relaxed) {
        let mut expected = acknowledged.lock().unwrap().clone();
        expected.append(&mut seen);
        match connection.query::<u64, _>("SELECT n FROM kept.t ORDER BY n") {
            Ok(now) => {
                let now = BTreeSet::from_iter(now);
                let gone: Vec<_> = expected.difference(&now).collect();
                assert!(gone.is_empty(), "the replica does not see {gone:?}");
                answered.fetch_add(1, Ordering::Relaxed);
                seen = now;
            }
            // The replica was killed, or is opened again beside another writer; or nobody is sure
            // to lead.
            Err(_) => {
                seen = expected;
                connection = cluster.connect_to(Role::Replica);
            }
        }
    }
}

/// Waits until something holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_replica_answers_reads_while_nodes_of_each_tier_are_killed() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--separate", "--replicas", "1"]);
    cluster.create();
    wait_for(&cluster, &BTreeSet::new());
    let stop = AtomicBool::new(false);
    let (acknowledged, answered) = (Acknowledged::default(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let (cluster, stop, acknowledged) = (&cluster, &stop, &acknowledged);
        for writer in 0..2 {
            scope.spawn(move || write(cluster, writer, stop, acknowledged));
        }
        let of_reader = &answered;
        scope.spawn(move || follow(cluster, stop, acknowledged, of_reader));
        for name in ["database-1", "pages-1", "replica-1", "logger-1", "database-2", "pages-2"] {
            std::thread::sleep(Duration::from_millis(1_000));
            let processes = cluster.processes();
            if let Some((_, process)) = processes.iter().find(|(found, _)| found == name) {
                signal("KILL", process);
            }
            drop(cluster.connect());
            drop(cluster.connect_to(Role::Replica));
        }
        let before = answered.load(Ordering::Relaxed);
        wait_until("a read", || answered.load(Ordering::Relaxed) > before);
    });
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(!acknowledged.is_empty());
    wait_for(&cluster, &acknowledged);
    let checked: Vec<(String, String, String, String)> =
        cluster.rows(Role::Replica, "CHECK TABLE kept.t");
    assert_eq!(checked[0].3, "OK");
    cluster.end();
}

/// Waits until a replica sees all of these numbers.
fn wait_for(cluster: &Cluster, numbers: &BTreeSet<u64>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let seen: Result<Vec<u64>, _> =
            cluster.connect_to(Role::Replica).query("SELECT n FROM kept.t");
        if let Ok(seen) = &seen
            && numbers.is_subset(&BTreeSet::from_iter(seen.iter().copied()))
        {
            return;
        }
        assert!(Instant::now() < until, "the replica does not catch up: {seen:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_page_node_joins_under_load_and_another_one_leaves() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--separate"]);
    cluster.create();
    let (mut joined, acknowledged) = while_writing(&cluster, |_| {
        cluster.wait_for_status(|text| text.matches(" up ").count() == 5);
        let mut joined = cluster.join("pages-3", "pages");
        cluster.wait_for_status(|text| text.matches(" up ").count() == 6);
        assert!(cluster.command(&["copies", "3"]).status().unwrap().success());
        cluster.wait_for_status(|text| text.contains("on pages-1, pages-2, pages-3\n"));
        // A node that joined comes back with its directory alone.
        signal("KILL", &joined.id().to_string());
        joined.wait().unwrap();
        joined = cluster.start_again("pages-3");
        let refused = cluster.command(&["remove", "pages-1"]).output().unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains("each chunk has 3 replicas"), "{text}");
        assert!(cluster.command(&["copies", "2"]).status().unwrap().success());
        assert!(cluster.command(&["remove", "pages-1"]).status().unwrap().success());
        cluster.wait_for_status(|text| !text.contains("\npages-1"));
        joined
    });
    // An engine that has nothing in memory reads what the copy has.
    let processes = cluster.processes();
    for (name, process) in processes {
        if name.starts_with("database") || name == "pages-2" {
            signal("KILL", &process);
        }
    }
    check_kept(&cluster, &acknowledged);
    drop(joined.stdin.take());
    joined.wait().unwrap();
    cluster.end();
}

/// A layout whose control nodes keep no log, so that each member of the log group can go.
fn write_layout(directory: &Path) {
    let listeners: Vec<_> =
        (0..8).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let mut ports = listeners.iter().map(|listener| listener.local_addr().unwrap());
    let nodes = [
        ("control-1", "\"control\", \"pages\"", false),
        ("pages-1", "\"pages\"", false),
        ("database-1", "\"database\", \"log\"", true),
        ("database-2", "\"database\", \"log\"", true),
        ("logger-1", "\"log\"", false),
    ];
    let mut text = format!("cluster = \"{:032x}\"\n", u128::from(std::process::id()) + 1);
    for (number, (name, roles, has_clients)) in (1..).zip(nodes) {
        let address = ports.next().unwrap();
        text +=
            &format!("[[node]]\nnumber = {number}\nname = \"{name}\"\naddress = \"{address}\"\n");
        if has_clients {
            text += &format!("client_address = \"{}\"\n", ports.next().unwrap());
        }
        text += &format!("roles = [{roles}]\n");
    }
    fs::write(directory.join("cluster.toml"), text).unwrap();
}

/// The rows of the log group's members in what `firn cluster status` says.
fn log_rows(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.contains(" leads, term") || line.contains(" follows "))
        .collect()
}

#[test]
fn all_members_of_the_log_are_replaced_one_after_the_other_under_load() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    write_layout(directory.path());
    let cluster = Cluster::start(directory.path(), &[]);
    cluster.create();
    let (mut joined, acknowledged) = while_writing(&cluster, |acknowledged| {
        cluster.wait_for_status(|text| text.matches(" up ").count() == 5);
        let mut joined = Vec::new();
        for (old, new, roles) in [
            ("logger-1", "logger-2", "log"),
            ("database-1", "database-3", "database+log"),
            ("database-2", "database-4", "database+log"),
        ] {
            joined.push(cluster.join(new, roles));
            cluster.wait_for_status(|text| {
                text.lines().any(|line| line.starts_with(new) && line.contains(" up "))
            });
            let before = acknowledged.lock().unwrap().len();
            if old == "database-1" {
                // It is silent from now on, and nobody asks for a replacement.
                cluster.signal(old, "STOP");
                cluster
                    .wait_for_status(|text| log_rows(text).iter().any(|row| row.starts_with(new)));
            }
            assert!(cluster.command(&["remove", old]).status().unwrap().success());
            cluster.wait_for_status(|text| {
                let rows = log_rows(text);
                rows.len() == 3 && rows.iter().any(|row| row.starts_with(new))
            });
            // A member that was replaced while it was away comes back, and disturbs nobody.
            cluster.signal(old, "KILL");
            // The next engine may still be opening.
            drop(cluster.connect());
            let is_written = || acknowledged.lock().unwrap().len() > before;
            wait_until("something is written meanwhile", is_written);
        }
        joined
    });
    check_kept(&cluster, &acknowledged);
    // Nobody who comes back was there when the log began.
    kill_all(&cluster);
    for node in &mut joined {
        node.wait().unwrap();
    }
    let mut again: Vec<Child> =
        ["logger-2", "database-3", "database-4"].map(|name| cluster.start_again(name)).into();
    check_kept(&cluster, &acknowledged);
    for node in &mut again {
        drop(node.stdin.take());
        node.wait().unwrap();
    }
    cluster.end();
}

/// All of these numbers are in the table, which is whole.
fn check_kept(cluster: &Cluster, acknowledged: &BTreeSet<u64>) {
    let kept: Vec<u64> = cluster.rows(Role::Database, "SELECT n FROM kept.t ORDER BY n");
    let kept = BTreeSet::from_iter(kept);
    let lost: Vec<_> = acknowledged.difference(&kept).collect();
    assert!(!acknowledged.is_empty());
    assert!(lost.is_empty(), "{} of {} rows are lost: {lost:?}", lost.len(), acknowledged.len());
    let checked: Vec<(String, String, String, String)> =
        cluster.rows(Role::Database, "CHECK TABLE kept.t");
    assert_eq!(checked[0].3, "OK");
}
