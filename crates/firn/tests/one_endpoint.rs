//! A cluster behind one endpoint: clients of a proxy, and of a node that does not lead, keep their
//! connections when the node that writes is killed.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

#[path = "one_endpoint/bound.rs"]
mod bound;
#[path = "one_endpoint/elastic.rs"]
mod elastic;
#[path = "one_endpoint/kubernetes.rs"]
mod kubernetes;
#[path = "one_endpoint/no_writer.rs"]
mod no_writer;
#[path = "one_endpoint/pause.rs"]
mod pause;
#[path = "one_endpoint/replicas.rs"]
mod replicas;
#[path = "one_endpoint/standby.rs"]
mod standby;
#[path = "one_endpoint/stateful_set.rs"]
mod stateful_set;
#[path = "one_endpoint/stopped.rs"]
mod stopped;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use firn_base::network::Role;
use firn_base::task::StopAtEnd;
use firn_cluster::Layout;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use bound::Bound;

/// How long the cluster may take until it answers.
const PATIENCE: Duration = Duration::from_secs(120);
const WRITERS: u64 = 4;

/// Two clusters that are made at the same time would choose the same ports.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Cluster {
    directory: PathBuf,
    parent: Child,
}

impl Cluster {
    fn start(directory: &Path, arguments: &[&str]) -> Cluster {
        Cluster::start_with(directory, arguments, &[])
    }

    /// With these settings of its nodes.
    fn start_with(directory: &Path, arguments: &[&str], settings: &[(&str, &str)]) -> Cluster {
        let parent = Command::new(env!("CARGO_BIN_EXE_firn"))
            .args(["cluster", "start", "--buffer-pool", "128M", "--dir"])
            .arg(directory)
            .args(arguments)
            .env("FIRN_LOG_LEVEL", "info")
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        Cluster { directory: directory.to_owned(), parent }
    }

    fn layout(&self) -> Option<Layout> {
        let text = fs::read_to_string(self.directory.join("cluster.toml")).ok()?;
        Layout::parse(&text).ok()
    }

    /// The ports for clients of the nodes with a role, with their names.
    fn ports(&self, role: Role) -> BTreeMap<String, u16> {
        let layout = self.layout();
        let nodes = layout.iter().flat_map(|layout| layout.with_role(role));
        let port = |node: &firn_cluster::NodeEntry| node.client_address.as_ref()?.port();
        nodes.filter_map(|node| Some((node.name.clone(), port(node)?))).collect()
    }

    /// A connection to a port, once it answers.
    fn connect(&self, port: impl Fn() -> Option<u16>) -> Conn {
        let until = Instant::now() + PATIENCE;
        loop {
            let options = |port| {
                OptsBuilder::new()
                    .ip_or_hostname(Some("127.0.0.1"))
                    .tcp_port(port)
                    .user(Some("root"))
                    .prefer_socket(false)
                    .read_timeout(Some(PATIENCE))
            };
            if let Some(connection) = port().and_then(|port| Conn::new(options(port)).ok()) {
                return connection;
            }
            assert!(Instant::now() < until, "nobody answers:\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A connection to the proxy.
    fn proxy(&self) -> Conn {
        self.connect(|| self.ports(Role::Proxy).into_values().next())
    }

    fn logs(&self) -> String {
        let files = fs::read_dir(&self.directory).unwrap().filter_map(Result::ok);
        let logs = files.map(|file| file.path()).filter(|path| path.extension().is_some());
        logs.map(|path| fs::read_to_string(path).unwrap_or_default()).collect()
    }

    fn status(&self) -> String {
        self.run(&["status"]).0
    }

    /// What `firn cluster …` says, and whether it succeeds.
    fn run(&self, arguments: &[&str]) -> (String, bool) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command.arg("cluster").args(arguments).arg("--dir").arg(&self.directory);
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        (text.concat(), output.status.success())
    }

    /// Has another node write: what `firn cluster switch` says, and whether it succeeds. Control
    /// hears of the new writer a little later, so a switch may seem to be under way that is over.
    fn switch(&self, to: &[&str]) -> (String, bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let (output, is_done) = self.run(&[&["switch"], to].concat());
            if !output.contains("is under way") {
                return (output, is_done);
            }
            assert!(Instant::now() < until, "{output}");
        }
    }

    /// Waits until control knows that this many nodes are up.
    fn wait_until_up(&self, nodes: usize) {
        let until = Instant::now() + PATIENCE;
        while self.status().matches(" up ").count() < nodes {
            assert!(Instant::now() < until, "{}", self.status());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The name of the node that leads, once one does.
    fn leader(&self) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.status();
            let leads = |line: &&str| line.contains("leads, term") && !line.contains("forwards");
            if let Some(line) = text.lines().find(leads) {
                return line.split_whitespace().next().unwrap().to_owned();
            }
            assert!(Instant::now() < until, "nobody leads:\n{text}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill(&self, name: &str) {
        self.signal("KILL", name);
    }

    /// Sends a signal to the process of a node.
    fn signal(&self, signal: &str, name: &str) {
        let id = self.process_of(name).unwrap_or_else(|| panic!("no process of {name}"));
        let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status();
    }

    /// The number of the process of a node.
    fn process_of(&self, name: &str) -> Option<String> {
        let directory = self.directory.join(name);
        fs::read_dir("/proc").unwrap().filter_map(Result::ok).find_map(|process| {
            let line = fs::read(process.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut words = line.split('\0').skip_while(|word| *word != "--data-dir").skip(1);
            let is_it = words.next().is_some_and(|word| Path::new(word) == directory);
            is_it.then(|| process.file_name().into_string().ok())?
        })
    }

    /// Starts a node that joins by hand, for clients at that port. Its process ends with the
    /// returned one's input.
    fn join(&self, name: &str, role: Role, port: u16) -> Child {
        self.join_with(name, role.name(), port, &[])
    }

    /// The same with several roles, and with further arguments.
    fn join_with(&self, name: &str, roles: &str, port: u16, arguments: &[&str]) -> Child {
        joining(&self.directory, &self.control(), name, roles)
            .args(["--ends-with-input", "--listen", &format!("127.0.0.1:{port}")])
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("the binary runs")
    }

    /// Where a control node is.
    fn control(&self) -> String {
        let layout = self.layout().unwrap();
        layout.with_role(Role::Control).next().unwrap().address.to_string()
    }

    fn end(mut self) {
        let _ = Command::new("kill").args(["-INT", &self.parent.id().to_string()]).status();
        assert!(self.parent.wait().unwrap().success());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nodes end with it.
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

/// A process that joins a cluster, with its files and its log in the cluster's directory.
fn joining(directory: &Path, control: &str, name: &str, roles: &str) -> Command {
    let log = directory.join(format!("{name}.log"));
    let log = fs::File::options().create(true).append(true).open(log).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
    command
        .args(["start", "--data-dir"])
        .arg(directory.join(name))
        .args(["--join", control, "--node-name", name, "--role", roles])
        .args(["--cluster-listen", &format!("127.0.0.1:{}", free_port())])
        .env("FIRN_LOG_LEVEL", "info")
        .stdout(Stdio::null())
        .stderr(log);
    command
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// What became of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    /// The client was told that nobody knows.
    Unknown,
    Refused,
}

/// One statement, or a transaction of two.
fn insert_one(connection: &mut Conn, number: u64) -> mysql::Result<()> {
    let insert = format!("INSERT INTO kept.t VALUES ({number})");
    if !number.is_multiple_of(3) {
        connection.query_drop(insert)?;
        assert_eq!(connection.affected_rows(), 1);
        return Ok(());
    }
    connection.query_drop("BEGIN")?;
    connection.query_drop(insert)?;
    connection.query_drop("COMMIT")
}

/// Inserts rows on one connection until it is told to stop.
fn insert(mut connection: Conn, writer: u64, stop: &AtomicBool) -> BTreeMap<u64, Fate> {
    let mut fates = BTreeMap::new();
    let mut number = writer;
    while !stop.load(Ordering::Relaxed) {
        number += WRITERS;
        let inserted = insert_one(&mut connection, number);
        let fate = match inserted {
            Ok(()) => Fate::Acknowledged,
            Err(mysql::Error::MySqlError(error)) if error.message.contains("nknown") => {
                Fate::Unknown
            }
            Err(mysql::Error::MySqlError(_)) => Fate::Refused,
            Err(error) => panic!("writer {writer} has lost its connection: {error}"),
        };
        fates.insert(number, fate);
    }
    // The connection is the one that it was.
    let one: Option<u8> = connection.query_first("SELECT 1").unwrap();
    assert_eq!(one, Some(1));
    fates
}

fn code(error: mysql::Error) -> u16 {
    match error {
        mysql::Error::MySqlError(error) => error.code,
        error => panic!("the connection is lost: {error}"),
    }
}

#[test]
fn clients_of_a_proxy_keep_their_connections_when_the_writer_is_killed() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let kills = std::env::var("CLUSTER_KILLS").map_or(2, |kills| kills.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3", "--proxies", "1"]);
    let mut first = cluster.proxy();
    first.query_drop("CREATE DATABASE kept").unwrap();
    first.query_drop("CREATE TABLE kept.t (n BIGINT PRIMARY KEY)").unwrap();
    first.query_drop("CREATE TABLE kept.u (n BIGINT PRIMARY KEY)").unwrap();
    let stop = AtomicBool::new(false);
    let fates = Mutex::new(BTreeMap::new());
    let read = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for writer in 0..WRITERS {
            let connection = cluster.proxy();
            let (stop, fates) = (&stop, &fates);
            scope.spawn(move || {
                let own = insert(connection, writer, stop);
                fates.lock().unwrap().extend(own);
            });
        }
        let mut reader = cluster.proxy();
        let (of_reader, read) = (&stop, &read);
        scope.spawn(move || {
            while !of_reader.load(Ordering::Relaxed) {
                let count: Option<u64> = reader.query_first("SELECT COUNT(*) FROM kept.u").unwrap();
                assert!(count.is_some());
                read.fetch_add(1, Ordering::Relaxed);
            }
        });
        for round in 1..=kills {
            // A session that is set up, and one with an open transaction.
            let mut set_up = cluster.proxy();
            set_up.query_drop("USE kept").unwrap();
            set_up.query_drop("SET @mine = 'kept', SESSION lock_wait_timeout = 7").unwrap();
            set_up.query_drop("PREPARE named FROM 'SELECT ? + 1'").unwrap();
            let prepared = set_up.prep("SELECT CONCAT(@mine, ?), @@lock_wait_timeout").unwrap();
            let id: Option<u64> = set_up.query_first("SELECT CONNECTION_ID()").unwrap();
            let mut open = cluster.proxy();
            open.query_drop("BEGIN").unwrap();
            open.query_drop(format!("INSERT INTO kept.u VALUES ({round}000)")).unwrap();
            let mut bound = cluster.proxy();
            bound.query_drop("CREATE TEMPORARY TABLE kept.own (n INT)").unwrap();
            std::thread::sleep(Duration::from_millis(1_500));

            cluster.kill(&cluster.leader());
            let killed = Instant::now();
            let error = open.query_drop("SELECT COUNT(*) FROM kept.u").unwrap_err();
            assert_eq!(code(error), 1213);
            let rolled_back: Option<u64> =
                open.query_first(format!("SELECT n FROM kept.u WHERE n = {round}000")).unwrap();
            assert_eq!(rolled_back, None, "once is enough, and nothing of it is left");
            println!("round {round}: an answer {:?} after the kill", killed.elapsed());
            open.query_drop(format!("INSERT INTO kept.u VALUES ({round})")).unwrap();
            let ended = bound.query_drop("SELECT * FROM kept.own").unwrap_err();
            assert_eq!(code(ended), 1053, "its table has ended with the node");

            let found: Option<(String, u64)> = set_up.exec_first(&prepared, ("!",)).unwrap();
            assert_eq!(found, Some(("kept!".to_owned(), 7)));
            set_up.query_drop("SET @one = 1").unwrap();
            let two: Option<f64> = set_up.query_first("EXECUTE named USING @one").unwrap();
            assert_eq!(two, Some(2.0));
            let count: Option<u64> = set_up.query_first("SELECT COUNT(*) FROM u").unwrap();
            assert_eq!(count, Some(round));
            let same: Option<u64> = set_up.query_first("SELECT CONNECTION_ID()").unwrap();
            assert_eq!(same, id);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(read.into_inner() > 0);
    let fates = fates.into_inner().unwrap();
    let kept: Vec<u64> = first.query("SELECT n FROM kept.t ORDER BY n").unwrap();
    for number in &kept {
        assert_ne!(fates.get(number), Some(&Fate::Refused), "{number} was refused and is there");
    }
    let is_acknowledged = |(_, fate): &(&u64, &Fate)| **fate == Fate::Acknowledged;
    let lost: Vec<_> = fates
        .iter()
        .filter(is_acknowledged)
        .filter(|(number, _)| kept.binary_search(number).is_err())
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let count = |wanted| fates.values().filter(|fate| **fate == wanted).count();
    println!(
        "{} acknowledged, {} unknown, {} refused",
        count(Fate::Acknowledged),
        count(Fate::Unknown),
        count(Fate::Refused)
    );
    assert!(count(Fate::Acknowledged) > 0);
    assert_eq!(count(Fate::Unknown), 0, "what became of a statement is found out");
    cluster.end();
}

/// Runs transactions of a read and a write until it is told to stop: none may fail. Returns how
/// many there were, and the longest of them.
fn transact(mut connection: Conn, row: u64, stop: &AtomicBool) -> (u64, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        connection.query_drop("BEGIN").unwrap();
        let seen: Option<u64> =
            connection.query_first(format!("SELECT v FROM kept.t WHERE n = {row}")).unwrap();
        assert_eq!(seen, Some(count), "what was acknowledged is there");
        connection.query_drop(format!("UPDATE kept.t SET v = v + 1 WHERE n = {row}")).unwrap();
        connection.query_drop("COMMIT").unwrap();
        count += 1;
        longest = longest.max(began.elapsed());
    }
    (count, longest)
}

/// A transaction that is open while the writer changes: it has a snapshot, changes, a savepoint, a
/// lock on a row that it has not changed, and one on a definition.
struct Open {
    connection: Conn,
    /// The first of the rows that are its own.
    at: u64,
}

impl Open {
    fn begin(mut connection: Conn, other: &mut Conn, at: u64) -> Open {
        let locked = at + 1;
        other.query_drop(format!("INSERT INTO kept.t VALUES ({at}, 0), ({locked}, 0)")).unwrap();
        connection.query_drop("BEGIN").unwrap();
        let seen: Option<u64> = connection.query_first(of_row(at)).unwrap();
        assert_eq!(seen, Some(0));
        let _: Option<u64> = connection.query_first("SELECT n FROM kept.defined").unwrap();
        let _: Option<u64> =
            connection.query_first(format!("{} FOR UPDATE", of_row(locked))).unwrap();
        connection.query_drop(format!("INSERT INTO kept.t VALUES ({at} + 2, 0)")).unwrap();
        connection.query_drop("SAVEPOINT here").unwrap();
        connection.query_drop(format!("INSERT INTO kept.t VALUES ({at} + 3, 0)")).unwrap();
        // Its snapshot does not see these.
        other.query_drop(format!("UPDATE kept.t SET v = 1 WHERE n = {at}")).unwrap();
        other.query_drop(format!("INSERT INTO kept.t VALUES ({at} + 4, 0)")).unwrap();
        Open { connection, at }
    }

    /// It goes on at the next writer.
    fn end(mut self, other: &mut Conn) {
        let at = self.at;
        let rows = format!("SELECT n, v FROM kept.t WHERE n BETWEEN {at} AND {at} + 4 ORDER BY n");
        let locking = format!("{} FOR UPDATE NOWAIT", of_row(at + 1));
        let refused = other.query_first::<u64, _>(&locking).unwrap_err();
        assert_eq!(code(refused), 3572, "the row is locked");
        let seen: Vec<(u64, u64)> = self.connection.query(&rows).unwrap();
        assert_eq!(seen, [(at, 0), (at + 1, 0), (at + 2, 0), (at + 3, 0)]);
        self.connection.query_drop("ROLLBACK TO SAVEPOINT here").unwrap();
        self.connection.query_drop("COMMIT").unwrap();
        let seen: Vec<(u64, u64)> = other.query(&rows).unwrap();
        assert_eq!(seen, [(at, 1), (at + 1, 0), (at + 2, 0), (at + 4, 0)]);
        let _: Option<u64> = other.query_first(&locking).expect("the lock has ended");
    }
}

/// Clients whose statements run while the writer changes: they wait for a row of an idle
/// transaction, or take their time.
struct Busy<'s> {
    holder: Conn,
    row: u64,
    clients: Vec<ScopedJoinHandle<'s, mysql::Result<()>>>,
}

/// How many of them change the row.
const CHANGE_IT: u64 = 4;

impl<'s> Busy<'s> {
    /// `port`: that of the node that writes.
    fn begin(
        cluster: &Cluster,
        scope: &'s Scope<'s, '_>,
        port: u16,
        other: &mut Conn,
        row: u64,
    ) -> Busy<'s> {
        other.query_drop(format!("INSERT INTO kept.t VALUES ({row}, 0)")).unwrap();
        let mut holder = cluster.proxy();
        holder.query_drop("BEGIN").unwrap();
        holder.query_drop(format!("UPDATE kept.t SET v = 10 WHERE n = {row}")).unwrap();
        let update = |also| {
            format!("UPDATE kept.t SET v = v + 1 WHERE n IN ({row}, {also}) /* busy {row} */")
        };
        let mut clients = Vec::new();
        for mut client in [cluster.proxy(), cluster.connect(|| Some(port))] {
            let update = update(row);
            clients.push(scope.spawn(move || client.query_drop(update)));
        }
        for (at, mut client) in (1..).zip([cluster.proxy(), cluster.connect(|| Some(port))]) {
            // It changes its own row first, which is taken back.
            let (own, update) = (row - at, update(row - at));
            clients.push(scope.spawn(move || {
                client.query_drop("BEGIN")?;
                client.query_drop(format!("INSERT INTO kept.t VALUES ({own}, 1)"))?;
                client.exec_drop(update.as_str(), ())?;
                client.query_drop("COMMIT")
            }));
        }
        for text in ["SELECT SLEEP(2)", "SELECT COUNT(*) FROM kept.n a, kept.n b, kept.n c"] {
            for mut client in [cluster.proxy(), cluster.connect(|| Some(port))] {
                clients.push(scope.spawn(move || client.query_drop(text)));
            }
        }
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%/* busy {row} */'"
        );
        let until = Instant::now() + PATIENCE;
        while other.query_first::<u64, _>(&waiting).unwrap() != Some(CHANGE_IT) {
            assert!(Instant::now() < until, "they do not wait");
            std::thread::sleep(Duration::from_millis(10));
        }
        Busy { holder, row, clients }
    }

    /// They go on at the next writer.
    fn end(mut self, other: &mut Conn) {
        self.holder.query_drop("COMMIT").unwrap();
        for client in self.clients {
            client.join().unwrap().unwrap();
        }
        let row = self.row;
        let sum = format!("SELECT SUM(v) FROM kept.t WHERE n BETWEEN {row} - 2 AND {row}");
        assert_eq!(other.query_first(sum).unwrap(), Some(10 + CHANGE_IT + 2 * 2));
    }
}

fn of_row(number: u64) -> String {
    format!("SELECT v FROM kept.t WHERE n = {number}")
}

#[test]
fn no_client_sees_a_planned_switch() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let switches = std::env::var("CLUSTER_SWITCHES").map_or(4, |n| n.parse().expect("a number"));
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3", "--proxies", "1"]);
    let mut first = cluster.proxy();
    first.query_drop("CREATE DATABASE kept").unwrap();
    first.query_drop("CREATE TABLE kept.t (n BIGINT PRIMARY KEY, v BIGINT)").unwrap();
    first.query_drop("CREATE TABLE kept.defined (n BIGINT PRIMARY KEY)").unwrap();
    first.query_drop("CREATE TABLE kept.n (n BIGINT PRIMARY KEY)").unwrap();
    let numbers: Vec<String> = (0..150).map(|n| format!("({n})")).collect();
    first.query_drop(format!("INSERT INTO kept.n VALUES {}", numbers.join(", "))).unwrap();
    cluster.wait_until_up(4);
    let mut ports: Vec<u16> = cluster.ports(Role::Database).into_values().collect();
    ports.extend(cluster.ports(Role::Proxy).into_values());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let mut transacting = Vec::new();
        for (row, port) in (0..).zip(ports.iter().chain(&ports)) {
            first.query_drop(format!("INSERT INTO kept.t VALUES ({row}, 0)")).unwrap();
            let connection = cluster.connect(|| Some(*port));
            let stop = &stop;
            transacting.push(scope.spawn(move || transact(connection, row, stop)));
        }
        for round in 0..switches {
            // Sessions with a state, at the node that writes and at another one, and two open
            // transactions.
            let before = cluster.leader();
            let mut set_up = cluster.proxy();
            set_up.query_drop("SET @mine = 'kept', SESSION lock_wait_timeout = 7").unwrap();
            let prepared = set_up.prep("SELECT CONCAT(@mine, ?), @@lock_wait_timeout").unwrap();
            let port = cluster.ports(Role::Database)[&before];
            let at = 1000 + 10 * round;
            // Both define tables, which transactions that are open before do not survive.
            let connect = || cluster.connect(|| Some(port));
            let near_bound = Bound::begin(scope, &connect, &mut first, 10_000 + 10 * round);
            let connect = || cluster.proxy();
            let far_bound = Bound::begin(scope, &connect, &mut first, 10_005 + 10 * round);
            let near = Open::begin(cluster.connect(|| Some(port)), &mut first, at);
            let far = Open::begin(cluster.proxy(), &mut first, at + 5);
            let busy = Busy::begin(&cluster, scope, port, &mut first, 5002 + 10 * round);
            let (output, is_done) = cluster.switch(&[]);
            assert!(is_done, "{output}\n{}", cluster.logs());
            println!("{output}");
            let after = cluster.leader();
            assert_ne!(before, after);
            if round == 0 {
                first.query_drop("SET lock_wait_timeout = 1").unwrap();
                let change = "ALTER TABLE kept.defined ADD COLUMN v INT";
                assert_eq!(code(first.query_drop(change).unwrap_err()), 1205, "both use it");
            }
            near.end(&mut first);
            far.end(&mut first);
            busy.end(&mut first);
            near_bound.end(&mut first);
            far_bound.end(&mut first);
            let found: Option<(String, u64)> = set_up.exec_first(&prepared, ("!",)).unwrap();
            assert_eq!(found, Some(("kept!".to_owned(), 7)));
        }
        first.query_drop("ALTER TABLE kept.defined ADD COLUMN v INT").unwrap();
        // One that names where to.
        let before = cluster.leader();
        let to = cluster.ports(Role::Database).into_keys().find(|name| *name != before).unwrap();
        let (output, is_done) = cluster.switch(&[&to]);
        assert!(is_done && output.contains(&format!("{to} writes")), "{output}");
        // In SQL.
        let asked = format!("ALTER INSTANCE SWITCHOVER TO '{before}'");
        let until = Instant::now() + PATIENCE;
        while let Err(error) = first.query_drop(&asked) {
            assert!(error.to_string().contains("is under way"), "{error}");
            assert!(Instant::now() < until, "{error}");
        }
        while cluster.leader() != before {
            std::thread::sleep(Duration::from_millis(50));
        }
        let to = before;
        let (output, is_done) = cluster.switch(&[&to]);
        assert!(!is_done && output.contains("leads the log group already"), "{output}");
        stop.store(true, Ordering::Relaxed);
        for (row, transacting) in transacting.into_iter().enumerate() {
            let (count, longest) = transacting.join().unwrap();
            println!("{count} transactions, the longest {longest:?}");
            let kept: Option<u64> =
                first.query_first(format!("SELECT v FROM kept.t WHERE n = {row}")).unwrap();
            assert_eq!(kept, Some(count));
        }
    });
    a_writer_that_is_told_to_end_hands_over(&cluster);
    cluster.end();
}

/// The clients of other nodes than it see nothing.
fn a_writer_that_is_told_to_end_hands_over(cluster: &Cluster) {
    let mut first = cluster.proxy();
    first.query_drop("INSERT INTO kept.t VALUES (3000, 0)").unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        let (connection, of_client) = (cluster.proxy(), &stop);
        let client = scope.spawn(move || transact(connection, 3000, of_client));
        let before = cluster.leader();
        cluster.signal("TERM", &before);
        while cluster.leader() == before {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        let (count, longest) = client.join().unwrap();
        println!("{count} transactions while the writer ended, the longest {longest:?}");
    });
}

#[test]
fn every_node_takes_every_statement() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(directory.path(), &["--nodes", "3", "--proxies", "1"]);
    let mut first = cluster.proxy();
    first.query_drop("CREATE DATABASE kept").unwrap();
    first.query_drop("CREATE TABLE kept.t (n INT PRIMARY KEY, v LONGTEXT)").unwrap();
    first.query_drop("SET GLOBAL local_infile = 1").unwrap();
    let mut ports = cluster.ports(Role::Database);
    ports.extend(cluster.ports(Role::Proxy));
    let mut ids = Vec::new();
    for (at, (name, port)) in ports.iter().enumerate() {
        let mut client = cluster.connect(|| Some(*port));
        ids.push(client.connection_id());
        let n = 10 * at;
        // A transaction, and a long value in both directions.
        client.query_drop("BEGIN").unwrap();
        let long = "x".repeat(2 << 20);
        client.exec_drop("INSERT INTO kept.t VALUES (?, ?)", (n, &long)).unwrap();
        client.query_drop("COMMIT").unwrap();
        let found: Option<String> =
            client.exec_first("SELECT v FROM kept.t WHERE n = ?", (n,)).unwrap();
        assert!(found.as_deref() == Some(long.as_str()), "{name}");
        // Several statements, many rows.
        let rows: Vec<u64> = client
            .query("WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i FROM n")
            .unwrap();
        assert_eq!(rows, Vec::from_iter(1..=900));
        // Errors are those of the node that writes.
        let error = client.query_drop(format!("INSERT INTO kept.t VALUES ({n}, '')")).unwrap_err();
        assert_eq!(code(error), 1062, "{name}");
        // A file of the client.
        let content = format!("{}\ta\n{}\tb\n", n + 1, n + 2);
        client.set_local_infile_handler(Some(mysql::LocalInfileHandler::new(move |_, to| {
            std::io::Write::write_all(to, content.as_bytes())
        })));
        client.query_drop("LOAD DATA LOCAL INFILE 'f' INTO TABLE kept.t").unwrap();
        let loaded: Vec<String> =
            client.query(format!("SELECT v FROM kept.t WHERE n IN ({n} + 1, {n} + 2)")).unwrap();
        assert_eq!(loaded, ["a", "b"], "{name}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each connection has a number of its own");

    // A statement is killed from another node than its client's.
    let mut victim = cluster.proxy();
    let id = victim.connection_id();
    let killed = std::thread::spawn(move || {
        let slept: Option<u8> = victim.query_first("SELECT SLEEP(600)").unwrap();
        (slept, Instant::now(), victim)
    });
    let until = Instant::now() + PATIENCE;
    let asleep = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE id = {id} AND state = 'User sleep'"
    );
    while first.query_first::<u64, _>(&asleep).unwrap() != Some(1) {
        assert!(Instant::now() < until, "it does not sleep");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begin = Instant::now();
    first.query_drop(format!("KILL QUERY {id}")).unwrap();
    let (slept, end, mut victim) = killed.join().unwrap();
    assert_eq!(slept, Some(1), "as a sleep that was killed");
    println!("the KILL took {:?}", end - begin);
    assert!(end - begin < PATIENCE);
    let one: Option<u8> = victim.query_first("SELECT 1").unwrap();
    assert_eq!(one, Some(1));
    first.query_drop(format!("KILL {id}")).unwrap();
    assert!(victim.query_drop("SELECT 1").is_err());

    // A client that goes away takes its transaction with it.
    let mut gone = cluster.proxy();
    gone.query_drop("BEGIN").unwrap();
    gone.query_drop("DELETE FROM kept.t WHERE n = 1").unwrap();
    drop(gone);
    first.query_drop("SET SESSION innodb_lock_wait_timeout = 120").unwrap();
    first.query_drop("UPDATE kept.t SET v = 'c' WHERE n = 1").unwrap();

    // Another proxy joins.
    let port = free_port();
    let mut joined = cluster.join("proxy-2", Role::Proxy, port);
    let mut client = cluster.connect(|| Some(port));
    let count: Option<u64> = client.query_first("SELECT COUNT(*) FROM kept.t").unwrap();
    assert_eq!(count, Some(12));
    let until = Instant::now() + PATIENCE;
    while cluster.status().matches(", forwards").count() != 4 {
        assert!(Instant::now() < until, "{}", cluster.status());
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(joined.stdin.take());
    assert!(joined.wait().unwrap().success());
    assert!(client.query_drop("SELECT 1").is_err(), "its clients were its own");
    cluster.end();
}
