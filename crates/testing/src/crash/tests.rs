#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Death, KillLoop, KillLoopError, Life, Victim};

const FILE_VARIABLE: &str = "FIRN_TEST_CRASH_FILE";
const MODE_VARIABLE: &str = "FIRN_TEST_CRASH_MODE";
const WORD: &str = "acknowledged ";

/// The program to kill: this test binary, which runs only this test. It appends numbers to a file
/// and prints each number after writing it.
#[test]
fn victim_program() {
    let Ok(path) = std::env::var(FILE_VARIABLE) else { return };
    let mode = std::env::var(MODE_VARIABLE).unwrap();
    let written = fs::read(&path).map_or(0, |bytes| bytes.len() as u64 / 8);
    let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let mut unwritten = Vec::new();
    println!("\nready");
    if mode == "exits" {
        eprintln!("nothing to live for");
        std::process::exit(3);
    }
    for number in written.. {
        unwritten.extend(number.to_le_bytes());
        if mode != "forgets" || number % 100 == 99 {
            file.write_all(&unwritten).unwrap();
            unwritten.clear();
        }
        println!("{WORD}{number}");
    }
}

struct Appender {
    path: PathBuf,
    mode: &'static str,
    driven: AtomicU64,
}

impl Victim for Appender {
    fn command(&mut self, _round: u32) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::tests::victim_program", "--nocapture"]);
        command.env(FILE_VARIABLE, &self.path).env(MODE_VARIABLE, self.mode);
        command
    }

    fn is_ready(&self, line: &str) -> bool {
        line == "ready"
    }

    fn drive(&self, life: &Life) {
        assert_ne!(life.process_id, std::process::id());
        while !life.is_over() {
            std::thread::yield_now();
        }
        self.driven.fetch_add(1, Ordering::SeqCst);
    }

    fn verify(&mut self, death: &Death) -> Result<(), String> {
        let acknowledged = death.lines.iter().filter_map(|line| line.strip_prefix(WORD));
        let last: Option<u64> = acknowledged.map(|number| number.parse().unwrap()).max();
        let written = fs::metadata(&self.path).map_or(0, |metadata| metadata.len() / 8);
        match last {
            Some(last) if last >= written => Err(format!("{last} was lost")),
            _ => Ok(()),
        }
    }
}

fn appender(directory: &tempfile::TempDir, mode: &'static str) -> Appender {
    Appender { path: directory.path().join("numbers"), mode, driven: AtomicU64::new(0) }
}

fn short_loop() -> KillLoop {
    KillLoop::new(1).rounds(8).life(Duration::ZERO..=Duration::from_millis(30))
}

#[test]
fn a_program_that_writes_before_it_acknowledges_survives() {
    let directory = tempfile::tempdir().unwrap();
    let mut victim = appender(&directory, "writes");
    let survived = short_loop().run(&mut victim).unwrap();
    assert_eq!((survived.kills, victim.driven.load(Ordering::SeqCst)), (8, 8));
}

#[test]
fn a_program_that_acknowledges_too_early_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let error = short_loop().rounds(50).run(&mut appender(&directory, "forgets")).unwrap_err();
    assert!(
        matches!(&error, KillLoopError::Verification { complaint, .. } if complaint.ends_with("was lost")),
        "{error}"
    );
}

#[test]
fn a_program_that_ends_by_itself_is_reported_with_its_last_words() {
    let directory = tempfile::tempdir().unwrap();
    let life = Duration::from_secs(60)..=Duration::from_secs(60);
    let error = short_loop().life(life).run(&mut appender(&directory, "exits")).unwrap_err();
    assert!(error.to_string().contains("nothing to live for"), "{error}");
    assert!(
        matches!(error, KillLoopError::Ended { what: "ended before it was killed", status, .. } if status.code() == Some(3))
    );
}

#[test]
fn a_program_that_never_gets_ready_is_killed_and_reported() {
    struct Mute;
    impl Victim for Mute {
        fn command(&mut self, _round: u32) -> Command {
            let mut command = Command::new("sleep");
            command.arg("600");
            command
        }
        fn verify(&mut self, _death: &Death) -> Result<(), String> {
            unreachable!("it was never ready")
        }
    }
    let error = short_loop().ready_timeout(Duration::from_millis(50)).run(&mut Mute).unwrap_err();
    assert!(matches!(error, KillLoopError::Ended { what: "was not ready in time", .. }), "{error}");
}
