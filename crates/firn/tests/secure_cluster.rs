//! A cluster whose nodes have certificates and are reached by names: a page node joins it with a
//! certificate of its own, and strangers are refused.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{firn, text};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with an authority `c`, another one `d`, and the processes of a cluster.
struct Cluster {
    directory: tempfile::TempDir,
    /// Where the node that founds the cluster is reached.
    founder: String,
    /// Where it answers clients, and probes.
    clients: u16,
    probes: u16,
    processes: Vec<Child>,
}

/// A port of this machine that nobody uses.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Runs `firn admin certificates` and returns what it says.
fn certificates(directory: &Path, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = firn(directory, &[&["admin", "certificates"], &arguments[..]].concat(), &[]);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout).to_owned()
}

impl Cluster {
    /// A cluster of one node, `node-1`, which does everything.
    fn start() -> Cluster {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let made = certificates(path, "create --dir c");
        let cluster = made.strip_prefix("cluster ").unwrap().split(',').next().unwrap();
        certificates(path, "create --dir d");
        let roles = "database+log+pages+control";
        let node = "node --dir c --name node-1 --address localhost --roles";
        certificates(path, &format!("{node} {roles}"));
        certificates(path, "node --dir c --name pages-2 --roles pages");
        certificates(path, "node --dir d --name pages-3 --roles pages --id 3");
        let (port, clients, probes) = (free_port(), free_port(), free_port());
        let founder = format!("localhost:{port}");
        let layout = format!(
            "cluster = \"{cluster}\"\n[[node]]\nnumber = 1\nname = \"node-1\"\n\
             address = \"{founder}\"\nclient_address = \"localhost:{clients}\"\n\
             roles = [\"database\", \"log\", \"pages\", \"control\"]\n"
        );
        fs::write(path.join("cluster.toml"), layout).unwrap();
        let mut cluster = Cluster { directory, founder, clients, probes, processes: Vec::new() };
        let listen = format!("127.0.0.1:{port}");
        let founder = ["--cluster-layout", "cluster.toml", "--cluster-listen", &listen];
        let own = ["--cluster-certificates", "c/nodes/node-1"];
        let (everywhere, probes) = (format!("0.0.0.0:{clients}"), format!("0.0.0.0:{probes}"));
        let listens = ["--listen", &everywhere, "--metrics-listen", &probes];
        cluster.run("node-1", &[&founder[..], &own, &listens]);
        cluster
    }

    fn run(&mut self, name: &str, arguments: &[&[&str]]) {
        let mut command = self.command(name, &arguments.concat());
        self.processes.push(command.spawn().unwrap());
    }

    fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let path = self.directory.path();
        let mut command = Command::new(env!("CARGO_BIN_EXE_firn"));
        command
            .current_dir(path)
            .args(["start", "--buffer-pool", "16M", "--log-segment-size", "1M"])
            .args(["--ends-with-input", "--node-name", name, "--data-dir", name])
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path.join(format!("{name}.log"))).unwrap());
        command
    }

    /// What a page node says that joins with these arguments and is not taken.
    fn refusal(&self, name: &str, certificates: &[&str]) -> String {
        let mut arguments = vec!["--join", &self.founder, "--role", "pages"];
        let listen = format!("127.0.0.1:{}", free_port());
        arguments.extend(["--cluster-listen", &listen]);
        arguments.extend(certificates);
        let mut process = self.command(name, &arguments).spawn().unwrap();
        let status = process.wait().unwrap();
        let said = fs::read_to_string(self.directory.path().join(format!("{name}.log"))).unwrap();
        assert_eq!(status.code(), Some(1), "{said}");
        said
    }

    /// Runs `firn cluster …` with the certificates of a node.
    fn ask(&self, node: &str, arguments: &[&str]) -> Output {
        let certificates = format!("c/nodes/{node}");
        let which = ["--layout", "cluster.toml", "--certificates", &certificates];
        let command = [&["cluster"], arguments, &which].concat();
        firn(self.directory.path(), &command, &[])
    }

    /// Waits until `firn cluster status` says something.
    fn wait_for_status(&self, says: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let output = self.ask("node-1", &["status"]);
            if says(text(&output.stdout)) {
                return;
            }
            let log = fs::read_to_string(self.directory.path().join("node-1.log")).unwrap();
            assert!(Instant::now() < until, "{output:?}\n{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The answer to a `GET`, with its head.
fn get(port: u16, path: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn a_node_joins_with_its_certificate_and_strangers_are_refused() {
    let mut cluster = Cluster::start();
    cluster.wait_for_status(|text| text.matches(" up ").count() == 1);

    let stranger = cluster.refusal("pages-3", &["--cluster-certificates", "d/nodes/pages-3"]);
    assert!(stranger.contains("node 3 (pages-3)"), "{stranger}");
    assert!(stranger.contains("node 1 (node-1)"), "{stranger}");
    let bare = cluster.refusal("pages-4", &[]);
    assert!(bare.contains("wants --cluster-certificates"), "{bare}");
    let other = cluster.refusal("pages-5", &["--cluster-certificates", "c/nodes/pages-2"]);
    assert!(other.contains("the certificate is of node 2 (pages-2)"), "{other}");

    let port = free_port();
    let (listen, address) = (format!("127.0.0.1:{port}"), format!("localhost:{port}"));
    let founder = cluster.founder.clone();
    let join = ["--join", &founder, "--role", "pages", "--cluster-listen", &listen];
    let own = ["--cluster-address", &address, "--cluster-certificates", "c/nodes/pages-2"];
    cluster.run("pages-2", &[&join, &own]);
    cluster.wait_for_status(|text| text.matches(" up ").count() == 2 && text.contains(&address));

    // It is removed, and joins again with its certificate and an empty directory.
    assert!(cluster.ask("node-1", &["copies", "1"]).status.success());
    let removed = cluster.ask("node-1", &["remove", "pages-2"]);
    assert!(removed.status.success(), "{removed:?}");
    let mut process = cluster.processes.pop().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    fs::remove_dir_all(cluster.directory.path().join("pages-2")).unwrap();
    cluster.run("pages-2", &[&join, &own]);
    cluster.wait_for_status(|text| text.matches(" up ").count() == 2 && text.contains(&address));
}

#[test]
fn a_zone_that_takes_over_keeps_its_certificates() {
    let mut cluster = Cluster::start();
    cluster.wait_for_status(|text| text.contains("leads, term"));
    // The cluster of one node has ended; another one is founded with a standby.
    let _ = cluster.processes.remove(0).wait_with_output();
    let path = cluster.directory.path().to_owned();
    fs::remove_dir_all(path.join("node-1")).unwrap();
    let roles = "database+log+pages+control";
    let node = "node --dir c --name standby-1 --address localhost --id 9 --roles";
    certificates(&path, &format!("{node} {roles}"));
    let (port, clients) = (free_port(), free_port());
    let layout = fs::read_to_string(path.join("cluster.toml")).unwrap();
    let layout = layout.replacen("[[node]]", "asynchronous_zones = [\"west\"]\n[[node]]", 1);
    let standby = format!(
        "[[node]]\nnumber = 9\nname = \"standby-1\"\nzone = \"west\"\n\
         address = \"localhost:{port}\"\nclient_address = \"localhost:{clients}\"\n\
         roles = [\"database\", \"log\", \"pages\", \"control\"]\n"
    );
    fs::write(path.join("cluster.toml"), layout + &standby).unwrap();
    let founder = cluster.founder.replace("localhost", "127.0.0.1");
    for (name, port) in [("node-1", founder), ("standby-1", format!("127.0.0.1:{port}"))] {
        let certificates = format!("c/nodes/{name}");
        let own = ["--cluster-certificates", &certificates, "--cluster-listen", &port];
        cluster.run(name, &[&["--cluster-layout", "cluster.toml"], &own]);
    }
    cluster.wait_for_status(|text| text.contains("zone west: asynchronous; it would lose nothing"));
    let mut lost = cluster.processes.remove(0);
    lost.kill().unwrap();
    lost.wait().unwrap();
    let taken = cluster.ask("standby-1", &["take-over", "west", "--accept-loss"]);
    assert!(taken.status.success(), "{taken:?}");
    let port = clients.to_string();
    let made = ["sql", "--port", &port, "-e", "CREATE DATABASE kept"];
    let made = firn(&path, &made, &[]);
    assert!(made.status.success(), "{made:?}");
}

#[test]
fn probes_say_what_a_node_does_and_metrics_are_there_once_an_account_has_a_password() {
    let cluster = Cluster::start();
    let until = Instant::now() + PATIENCE;
    let wait_for = |path: &str, status: &str| {
        loop {
            let answer = get(cluster.probes, path);
            if answer.starts_with(&format!("HTTP/1.1 {status} ")) {
                return answer;
            }
            assert!(Instant::now() < until, "{path}: {answer}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait_for("/live", "200");
    // It starts, and waits for control and its election.
    let early = wait_for("/ready", "503");
    assert!(early.contains("\r\n\r\nit") || early.contains("\r\n\r\nno member"), "{early}");
    wait_for("/ready", "200");
    let closed = wait_for("/metrics", "503");
    assert!(closed.contains("no engine or replica answers clients"), "{closed}");

    let port = cluster.clients.to_string();
    // Nobody has a password, so only clients of this machine can log in.
    let create = "CREATE USER clerk@'%' IDENTIFIED BY 'secret'; DO SLEEP(0.3); \
                  GRANT ALL ON *.* TO clerk@'%'";
    let created = firn(cluster.directory.path(), &["sql", "--port", &port, "-e", create], &[]);
    assert!(created.status.success(), "{created:?}");
    wait_for("/metrics", "200");
    wait_for("/ready", "200");
    wait_for("/live", "200");
}
