//! Starts a `firn start` for a test, and runs other commands beside it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]
// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

/// Makes a table of 20,000 rows, over which statements can take any time.
pub(crate) const MAKE_BIG: [&str; 3] = [
    "CREATE TABLE big (id INT PRIMARY KEY, v INT, s VARCHAR(60))",
    "SET cte_max_recursion_depth = 100000",
    "INSERT INTO big WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
     SELECT i, (i * 7919) % 100003, MD5(i) FROM n",
];

/// A running server; it is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Its output until it was ready.
    pub(crate) greeting: String,
    /// Directory of its files and of the test's.
    pub(crate) directory: tempfile::TempDir,
}

impl Server {
    /// Starts a server with further arguments and variables, and waits until clients can connect.
    pub(crate) fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        Server::start_in(tempfile::tempdir().unwrap(), arguments, variables)
    }

    /// Like [`Server::start`], over an existing directory.
    pub(crate) fn start_in(
        directory: tempfile::TempDir,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_firn"))
            .current_dir(directory.path())
            .args(["start", "--buffer-pool", "16M", "--log-segment-size", "1M"])
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .env_clear()
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("SIGTERM ends it") {
            if output.read_line(&mut greeting).unwrap() == 0 {
                let mut errors = String::new();
                child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                panic!("the server did not start: {greeting}{errors}");
            }
        }
        Server { child, output, greeting, directory }
    }

    fn number_after(&self, before: &str) -> u16 {
        let rest = self.greeting.split(before).nth(1).unwrap();
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    /// The port of MySQL's protocol.
    pub(crate) fn port(&self) -> u16 {
        self.number_after("listening at 127.0.0.1:")
    }

    /// The port of `/metrics`.
    pub(crate) fn metrics_port(&self) -> u16 {
        self.number_after("metrics at http://127.0.0.1:")
    }

    /// The answer to `GET path` at the port of `/metrics`, with its headers.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", self.metrics_port())).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: firn\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A file in the data directory.
    pub(crate) fn data_file(&self, name: &str) -> PathBuf {
        self.directory.path().join("data").join(name)
    }

    /// A connection of the MySQL client library.
    pub(crate) fn connect(&self) -> mysql::Conn {
        let options =
            mysql::OptsBuilder::new().ip_or_hostname(Some("127.0.0.1")).tcp_port(self.port());
        mysql::Conn::new(options.user(Some("root")).prefer_socket(false)).unwrap()
    }

    /// Resident memory of the server, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        self.status_number("VmRSS") << 10
    }

    pub(crate) fn threads(&self) -> u64 {
        self.status_number("Threads")
    }

    /// A number of `/proc/PID/status`.
    fn status_number(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end; returns the status and the rest of the output.
    pub(crate) fn wait(&mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// Runs `firn sql` over the server with `input` as its standard input.
    pub(crate) fn sql(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_firn"))
            .current_dir(self.directory.path())
            .args(["sql", "--port", &self.port().to_string()])
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A client that ends before it has read everything closes the pipe.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `firn` in a directory.
pub(crate) fn firn(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firn"))
        .current_dir(directory)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
