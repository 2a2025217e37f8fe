//! The binary as a user runs it.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the machine as it is"
)]

use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect;
use firn_base::Environment;
use firn_node::node::{Node, NodeOptions};
use firn_storage::local::LocalDirectory;

/// Runs `firn` in `directory` with an environment of nothing but `variables`.
fn firn(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_firn"))
        .current_dir(directory)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("the output is text")
}

#[test]
fn the_configuration_is_merged_from_all_three_sources() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("firn.toml"), "\ndata_dir = \"here\"\n").unwrap();
    let output = firn(
        directory.path(),
        &["admin", "configuration", "--config", "firn.toml", "--buffer-pool", "2048M"],
        &[("FIRN_LOG_LEVEL", "info"), ("FIRN_PORT", "7")],
    );
    expect![[r#"
        data_dir                   here            firn.toml:2
        listen                     127.0.0.1:3306  default
        socket                                     default
        max_connections            10000           default
        metrics_listen                             default
        shutdown_patience_seconds  10              default
        tls_certificate                            default
        tls_key                                    default
        secure_file_priv                           default
        buffer_pool                2G              --buffer-pool
        memory_budget              0               default
        log_segment_size           64M             default
        asynchronous_commit        off             default
        history_window_seconds     0               default
        materialise_behind_limit   1G              default
        archive                                    default
        archive_interval_seconds   10              default
        archive_window_hours       168             default
        archive_log_limit          16G             default
        cluster_layout                             default
        node_name                                  default
        join                                       default
        role                                       default
        zone                       default         default
        asynchronous_zone          off             default
        cluster_listen                             default
        cluster_address                            default
        cluster_certificates                       default
        replica_snapshot_seconds   3600            default
        pause_after_idle_seconds   0               default
        writer_wait_seconds        10              default
        log_level                  info            FIRN_LOG_LEVEL
        FIRN_PORT names no setting and is ignored
    "#]]
    .assert_eq(text(&output.stdout));
    assert!(output.status.success());
}

#[test]
fn a_bad_setting_ends_the_command_with_two() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("firn.toml"), "buffer_pool = '1Z'\n").unwrap();
    let variables = [("FIRN_CONFIG", "firn.toml")];
    let output = firn(directory.path(), &["admin", "configuration"], &variables);
    assert_eq!(output.status.code(), Some(2));
    let refusal = text(&output.stderr);
    assert!(refusal.starts_with("firn: firn.toml:1: buffer_pool: '1Z' is not a size"), "{refusal}");
}

#[test]
fn help_names_every_setting() {
    let directory = tempfile::tempdir().unwrap();
    let output = firn(directory.path(), &["admin", "configuration", "--help"], &[]);
    for flag in ["--data-dir", "--buffer-pool", "--log-segment-size", "--log-level", "--config"] {
        assert!(text(&output.stdout).contains(flag), "{flag}");
    }
}

/// Makes an empty database in `path`.
fn write_database(path: &Path) {
    let options = NodeOptions::default();
    Node::open(&Environment::system(), path, &options).unwrap().close().unwrap();
}

#[test]
fn a_good_database_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    write_database(&directory.path().join("data"));
    let output = firn(directory.path(), &["admin", "check"], &[]);
    let report = text(&output.stdout);
    for line in ["log: ", "pages: ", "engine: ", "no damage found\n"] {
        assert!(report.contains(line), "{output:?}");
    }
    assert!(output.status.success());
}

#[test]
fn what_is_no_database_is_not_made_one() {
    let directory = tempfile::tempdir().unwrap();
    let output = firn(directory.path(), &["admin", "check", "--data-dir", "nowhere"], &[]);
    expect!["firn: there is no database in nowhere; --data-dir names the directory of one\n"]
        .assert_eq(text(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
    assert!(!directory.path().join("nowhere").exists());
}

#[test]
fn a_database_in_use_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let _held = LocalDirectory::open(&Environment::system(), &directory.path().join("data"));
    let output = firn(directory.path(), &["admin", "check"], &[]);
    assert!(text(&output.stderr).starts_with("firn: data is in use"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn sizes_are_written_in_any_usual_way() {
    let directory = tempfile::tempdir().unwrap();
    let settings = "log_segment_size = '32MiB'\nbuffer_pool = '256MB'\n";
    std::fs::write(directory.path().join("firn.toml"), settings).unwrap();
    let output = firn(
        directory.path(),
        &["admin", "configuration", "--config", "firn.toml", "--memory-budget", "1gib"],
        &[("FIRN_MATERIALISE_BEHIND_LIMIT", "512Mb")],
    );
    let shown = text(&output.stdout);
    for (name, value) in [
        ("log_segment_size", "32M"),
        ("buffer_pool", "256M"),
        ("memory_budget", "1G"),
        ("materialise_behind_limit", "512M"),
    ] {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some(value), "{line}");
    }
}

#[test]
fn errors_are_said_in_words_and_not_in_the_names_of_types() {
    let directory = tempfile::tempdir().unwrap();
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        closed.local_addr().unwrap().port()
    };
    let url = format!("mysql://root@127.0.0.1:{dead}");
    let listen = occupied.local_addr().unwrap().to_string();
    let port = dead.to_string();
    let commands: [&[&str]; 7] = [
        &["sql", "--port", &port, "-e", "SELECT 1"],
        &["bench", "sysbench", "prepare", "--url", &url],
        &["bench", "tpcc", "run", "--url", &url],
        &["bench", "tpcc", "check", "--url", "postgres://here"],
        &["bench", "tpcc", "run", "--mix", "1,2", "--url", &url],
        &["start", "--listen", &listen],
        &["start", "--listen", "127.0.0.1:0", "--socket", "/nowhere/firn.sock"],
    ];
    for command in commands {
        let output = firn(directory.path(), command, &[("HOME", "/nowhere")]);
        assert!(!output.status.success(), "{command:?}");
        let said = text(&output.stderr);
        let debug = ["Error {", " { ", "Err(", "Some(", "Tcp(", "Os {", "kind:"];
        let found = debug.iter().find(|mark| said.contains(**mark));
        assert!(found.is_none() && !said.is_empty(), "{command:?}: {said}");
    }
}

/// The lines of a command that succeeds.
fn lines(directory: &Path, arguments: &[&str]) -> Vec<String> {
    let output = firn(directory, arguments, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn certificates_are_made_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let certificates = |arguments: &[&str]| {
        let all = [&["admin", "certificates"], arguments, &["--dir", "c"]].concat();
        firn(directory.path(), &all, &[])
    };
    let early = certificates(&["node", "--name", "a"]);
    assert!(text(&early.stderr).contains("firn admin certificates create"), "{early:?}");
    let made = certificates(&["create"]);
    assert!(text(&made.stdout).starts_with("cluster "), "{made:?}");
    assert!(text(&certificates(&["create"]).stderr).contains("--renew"));
    let node = ["node", "--name", "a", "--roles", "log+pages", "--address", "10.0.0.1"];
    let made = certificates(&[&node[..], &["--address", "a.example"]].concat());
    assert!(text(&made.stdout).contains("copy c/nodes/a to the node's machine"), "{made:?}");
    for bad in [["--name", "a b"], ["--address", "10.0.0"]] {
        let bad = certificates(&[&["node", "--name", "a"][..], &bad].concat());
        assert_eq!(bad.status.code(), Some(2));
    }
    let shown = lines(directory.path(), &["admin", "certificates", "show", "--dir", "c"]);
    assert!(shown[0].starts_with("authority of cluster ") && shown[0].ends_with("days left"));
    assert!(shown[1].starts_with("node 1 (a) log+pages: valid until 20"), "{shown:?}");
    assert_eq!(shown.len(), 2);
}
