#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;

use super::arguments::{Durability, EngineArguments, Workload};
use super::*;
use firn_node::size::Size;

fn parse(arguments: &[&str]) -> Result<EngineArguments, clap::Error> {
    let matches =
        arguments::engine_command().try_get_matches_from([&["engine"], arguments].concat())?;
    Ok(EngineArguments::from_matches(&matches))
}

#[test]
fn without_flags_everything_is_measured() {
    let arguments = parse(&[]).unwrap();
    assert_eq!(arguments.duration, Duration::from_secs(2));
    assert_eq!((arguments.rounds, arguments.durability), (3, Durability::None));
    assert_eq!(arguments.workloads().len(), 6);
    assert_eq!(arguments.threads_or(&[1, 8]), [1, 8]);
    assert_eq!(arguments.buffer_pool_or(64 << 20), 64 << 20);
}

#[test]
fn every_flag_is_taken() {
    let text = "insert --threads 1,8,64 --in-flight 3 --seconds 0.5 --rounds 7 --durability commit --rows 10 \
                --row-bytes 99 --buffer-pool 2G --data-dir /d --json out.json";
    let arguments = parse(&text.split_whitespace().collect::<Vec<_>>()).unwrap();
    assert_eq!(
        arguments,
        EngineArguments {
            workload: Workload::Insert,
            threads: Some(vec![1, 8, 64]),
            in_flight: Some(3),
            duration: Duration::from_millis(500),
            rounds: 7,
            durability: Durability::Commit,
            rows: Some(10),
            row_bytes: Some(99),
            buffer_pool: Some(Size(2 << 30)),
            data_dir: Some(PathBuf::from("/d")),
            json: Some(PathBuf::from("out.json")),
        }
    );
    assert_eq!(arguments.workloads(), [Workload::Insert]);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for refused in [
        &["--threads", "0"][..],
        &["--threads", "1,,2"],
        &["--threads", "5000"],
        &["--seconds", "0"],
        &["--seconds", "NaN"],
        &["--rounds", "0"],
        &["--row-bytes", "4"],
        &["--buffer-pool", "1M"],
        &["--durability", "often"],
        &["updates"],
    ] {
        let error = parse(refused).expect_err(&format!("{refused:?}"));
        let kind = error.kind();
        assert!(
            matches!(kind, ErrorKind::ValueValidation | ErrorKind::InvalidValue),
            "{refused:?}: {kind:?}"
        );
    }
}

/// Runs one workload at a small size and returns its output.
fn smoke(workload: &str, more: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("out.json");
    let text = format!(
        "{workload} --seconds 0.05 --rounds 2 --data-dir {} --json {} {more}",
        directory.path().display(),
        json.display()
    );
    let arguments = parse(&text.split_whitespace().collect::<Vec<_>>()).unwrap();
    let mut out = Vec::new();
    run(&arguments, &mut out).unwrap();
    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(written["reports"][0]["workload"], workload);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the JSON file is left: {left:?}");
    String::from_utf8(out).unwrap()
}

#[test]
fn inserts_are_compared() {
    let text = smoke("insert", "--threads 2 --rows 500 --buffer-pool 32M");
    assert!(text.contains("| sequential |       2 |"), "{text}");
    let text = smoke("insert", "--threads 2 --rows 500 --buffer-pool 32M --durability commit");
    assert!(text.contains("until its commit is on the disk"), "{text}");
}

#[test]
fn snapshots_are_compared() {
    let text = smoke("snapshots", "--threads 3,5 --rows 500 --buffer-pool 32M");
    assert!(text.contains("list waits"), "{text}");
}

#[test]
fn point_reads_are_measured() {
    let text = smoke("point-reads", "--threads 2 --rows 2000 --buffer-pool 32M");
    assert!(text.contains("1000 in a transaction"), "{text}");
}

#[test]
fn commits_are_held_against_the_disk() {
    let text = smoke("commits", "--threads 1,4 --rows 500 --buffer-pool 32M");
    assert!(text.contains("disk allows/s"), "{text}");
    let text = smoke("commits", "--threads 2 --in-flight 8 --rows 500 --buffer-pool 32M");
    assert!(text.contains("disk allows/s"), "{text}");
}

#[test]
fn scans_are_measured() {
    let text = smoke("scans", "--rows 2000 --buffer-pool 8M");
    assert!(text.contains("of these ahead"), "{text}");
}

#[test]
fn working_sets_grow_beyond_the_pool() {
    let text = smoke("larger-than-memory", "--threads 2 --rows 12000 --buffer-pool 8M");
    assert!(text.contains("memory / budget"), "{text}");
}
