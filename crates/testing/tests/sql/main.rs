//! SQL by scripts: each file of `files/` is run by a MySQL client against a server over an empty directory.
//!
//! ```text
//!   files/joins.slt ──sqllogictest──► mysql client ──wire──► Endpoint over a LocalNode in a temporary directory
//! ```
//!
//! A file has a schema of its own. `FIRN_SQL_FILES=join` runs the files whose names hold that text;
//! `FIRN_SQL_PORT` runs them against a server that is there already, such as MariaDB.

mod client;
mod server;
mod statistics;

use std::path::PathBuf;

use client::Client;
use server::Server;
use sqllogictest::Runner;

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sql/files");
    let wanted = std::env::var("FIRN_SQL_FILES").unwrap_or_default();
    let entries = std::fs::read_dir(folder).expect("the folder of scripts");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.ends_with(".slt") && name.contains(&wanted)
    };
    let mut files: Vec<PathBuf> = paths.filter(is_wanted).collect();
    files.sort();
    files
}

#[test]
fn scripts_give_what_they_say() {
    let given = std::env::var("FIRN_SQL_PORT").ok();
    let server = given.is_none().then(Server::start);
    let port = match (&server, given) {
        (Some(server), _) => server.port(),
        (None, Some(port)) => port.parse().expect("FIRN_SQL_PORT is a port"),
        (None, None) => unreachable!("a server is started if none is given"),
    };
    if server.is_some() {
        // What EXPLAIN says is to depend on the script alone, not on how long it takes.
        Client::connect(port, None).set_global("innodb_stats_auto_recalc = OFF");
    }
    let mut failures = Vec::new();
    let files = files();
    assert!(!files.is_empty(), "no file matches FIRN_SQL_FILES");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let schema = format!("slt_{name}");
        Client::connect(port, None).make_schema(&schema);
        let mut runner = Runner::new(|| {
            let schema = schema.clone();
            async move { Ok(Client::connect(port, Some(&schema))) }
        });
        if let Err(error) = runner.run_file(&file) {
            failures.push(format!("{name}: {}", error.display(false)));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
