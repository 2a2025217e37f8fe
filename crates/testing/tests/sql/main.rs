//! SQL scripts: a MySQL client runs each file of `files/` against a server with an empty directory.
//!
//! ```text
//!   files/joins.slt ──sqllogictest──► mysql client ──wire──► Endpoint over a Node in a temporary directory
//! ```
//!
//! Each file has its own schema. `FIRN_SQL_FILES=join` runs the files whose names contain that
//! text; `FIRN_SQL_PORT` runs them against an existing server, such as MariaDB.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

mod client;
mod counting_link;
mod executors;
mod faulty_link;
mod fronted;
mod kept_columns;
mod kill;
mod messages;
mod page_waits;
mod plans;
mod pushed;
mod renewal;
mod replica;
mod server;
mod spilling;
mod statistics;
mod switches;
mod waits;

use std::path::{Path, PathBuf};

use client::Client;
use mysql::prelude::Queryable;
use server::Server;
use sqllogictest::{DB, Normalizer, Runner, Validator, default_validator};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sql/files")
}

fn files() -> Vec<PathBuf> {
    let wanted = std::env::var("FIRN_SQL_FILES").unwrap_or_default();
    let entries = std::fs::read_dir(folder()).expect("the folder of scripts");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".slt") && name.contains(&wanted)
    };
    let mut files: Vec<PathBuf> = paths.filter(is_wanted).collect();
    files.sort();
    files
}

/// The server for the scripts: a new one, or the one that the environment names.
fn server() -> (Option<Server>, u16) {
    if let Ok(given) = std::env::var("FIRN_SQL_PORT") {
        return (None, given.parse().expect("FIRN_SQL_PORT is a port"));
    }
    let server = Server::start();
    let port = server.port();
    // The output of EXPLAIN must depend on the script alone, not on timing.
    Client::connect(port, None).set_global("innodb_stats_auto_recalc = OFF");
    (Some(server), port)
}

/// The failures of each file, run by clients of one server.
fn run_files(port: u16, validator: Option<Validator>) -> Vec<String> {
    run_files_by(port, validator, |schema| Client::connect(port, Some(schema)))
}

/// The failures of each file. `connect` makes what runs the statements of a connection.
fn run_files_by<D: DB + Send>(
    port: u16,
    validator: Option<Validator>,
    connect: impl Fn(&str) -> D,
) -> Vec<String> {
    let mut failures = Vec::new();
    let files = files();
    assert!(!files.is_empty(), "no file matches FIRN_SQL_FILES");
    for file in files {
        failures.extend(failure_of(&file, port, validator, &connect));
    }
    failures
}

/// The failure of one script, run by clients of a server.
fn run_script(port: u16, name: &str) -> Vec<String> {
    let file = folder().join(format!("{name}.slt"));
    let failure = failure_of(&file, port, None, |schema| Client::connect(port, Some(schema)));
    failure.into_iter().collect()
}

fn failure_of<D: DB + Send>(
    file: &Path,
    port: u16,
    validator: Option<Validator>,
    connect: impl Fn(&str) -> D,
) -> Option<String> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let schema = format!("slt_{name}");
    Client::connect(port, None).make_schema(&schema);
    let mut runner = Runner::new(|| {
        let connection = connect(&schema);
        async move { Ok(connection) }
    });
    if let Some(validator) = validator {
        runner.with_validator(validator);
    }
    let error = runner.run_file(file).err()?;
    Some(format!("{name}: {}", error.display(false)))
}

/// The problems that `CHECK TABLE` finds in the tables that the scripts have left.
fn damage(port: u16) -> Vec<String> {
    let mut client = Client::connect(port, None);
    let connection = client.connection();
    let left = "SELECT table_schema, table_name FROM information_schema.tables
        WHERE table_type = 'BASE TABLE' AND table_schema LIKE 'slt%'";
    let tables: Vec<(String, String)> = connection.query(left).expect("the tables");
    let mut damage = Vec::new();
    for (schema, table) in &tables {
        let check = format!("CHECK TABLE `{schema}`.`{table}`");
        let lines: Vec<(String, String, String, String)> =
            connection.query(check).expect("a check");
        let wrong = lines.into_iter().filter(|(.., text)| text != "OK");
        damage.extend(wrong.map(|(table, _, kind, text)| format!("{table}: {kind}: {text}")));
    }
    println!("{} tables are sound", tables.len());
    damage
}

#[test]
fn scripts_give_what_they_say() {
    let (server, port) = server();
    let mut failures = run_files(port, None);
    if server.is_some() {
        failures.extend(damage(port));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Compares rows in any order: without `ORDER BY`, a parallel engine returns them in its own order.
fn same_rows(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    if default_validator(normalizer, actual, expected) {
        return true;
    }
    let (mut actual, mut expected) = (actual.to_vec(), expected.to_vec());
    actual.sort_by_cached_key(|row| row.join(" "));
    expected.sort();
    default_validator(normalizer, &actual, &expected)
}

/// Queries of the scripts that the engine may give up: it was 44 when the reasons were listed in
/// `docs/decisions/2026-11-24-the-plan-names-its-executor.md`. A new script whose queries
/// warn or fail may raise it; a reason that a plan shows belongs into the engine's check.
const MOST_DECLINED: u64 = 50;

#[test]
fn scripts_give_the_same_over_columns() {
    let (server, port) = server();
    let Some(_server) = server else { return };
    Client::connect(port, None).set_global("firn_executor = VECTORISED");
    let mut failures = run_files(port, Some(same_rows));
    failures.extend(damage(port));
    let mut client = Client::connect(port, None);
    let (selects, ran) = (client.status("Com_select"), client.status("Firn_queries_vectorised"));
    let declined = client.status("Firn_queries_vectorised_declined");
    println!("{selects} queries: {ran} over columns, {declined} given up to the row executor");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(std::env::var("FIRN_SQL_FILES").is_ok() || ran > 100, "only {ran} took the engine");
    assert!(declined <= MOST_DECLINED, "{declined} queries were given up after they had begun");
}
