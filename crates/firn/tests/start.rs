//! `firn start` as a user runs it: it reports what it recovered, ends cleanly on a signal, and
//! survives being killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running `firn start` and its output.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The first line.
    greeting: String,
}

impl Running {
    /// Starts a node over `directory/data` and waits until it is open.
    fn start(directory: &Path) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_firn"))
            .current_dir(directory)
            .args([
                "start",
                "--buffer-pool",
                "16M",
                "--log-segment-size",
                "1M",
                "--listen",
                "127.0.0.1:0",
            ])
            .env_clear()
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        output.read_line(&mut greeting).unwrap();
        Running { child, output, greeting }
    }

    /// Waits until it listens: the start is complete then.
    fn until_it_listens(&mut self) {
        let mut line = String::new();
        while !line.contains("listening at") {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it has ended");
        }
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end; returns the status and the rest of the output.
    fn wait(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Running {
    /// Leaves no process behind when a test fails.
    fn drop(&mut self) {
        // Most have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn either_signal_closes_the_node() {
    for signal in ["INT", "TERM"] {
        let directory = tempfile::tempdir().unwrap();
        let node = Running::start(directory.path());
        assert!(node.greeting.contains("data is open after"), "{}", node.greeting);
        node.signal(signal);
        let (status, rest) = node.wait();
        assert!(status.success(), "{status}");
        assert!(rest.contains("firn: listening at 127.0.0.1:"), "{rest}");
        assert!(rest.ends_with(&format!("firn: closed after SIG{signal}\n")), "{rest}");
    }
}

#[test]
fn a_killed_node_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    for _ in 0..3 {
        let mut node = Running::start(directory.path());
        assert!(node.greeting.contains("0 transactions to roll back"), "{}", node.greeting);
        node.until_it_listens();
        node.signal("KILL");
        assert!(!node.wait().0.success());
    }
    let node = Running::start(directory.path());
    node.signal("TERM");
    assert!(node.wait().0.success());
}

#[test]
fn a_second_node_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let first = Running::start(directory.path());
    let second = Running::start(directory.path());
    assert_eq!(second.greeting, "");
    assert_eq!(second.wait().0.code(), Some(1));
    first.signal("TERM");
    assert!(first.wait().0.success());
}
