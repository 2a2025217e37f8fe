//! Rows with the times of their commits, and what a restored moment must have of them.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use mysql::Conn;
use mysql::prelude::Queryable;

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A row, when its insert began, and when it was acknowledged, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub(crate) id: u64,
    began: u64,
    acknowledged: u64,
}

/// Inserts rows into `test.t` until told to end, or until `connect` gives no connection. Every
/// tenth transaction is rolled back. Returns the rows that were acknowledged.
pub(crate) fn write(
    connect: &dyn Fn() -> Option<Conn>,
    first: u64,
    step: u64,
    ends: &AtomicBool,
) -> Vec<Written> {
    let mut written = Vec::new();
    let mut id = first;
    let mut client = connect();
    while !ends.load(Ordering::SeqCst) {
        let Some(connection) = &mut client else { break };
        id += step;
        let began = now_ms();
        let filler = "x".repeat(300);
        let end = if id.is_multiple_of(10) { "rollback" } else { "commit" };
        let ended = connection
            .query_drop("begin")
            .and_then(|()| {
                connection.query_drop(format!("insert into test.t values ({id}, '{filler}')"))
            })
            .and_then(|()| connection.query_drop(end));
        match ended {
            Ok(()) if end == "commit" => {
                written.push(Written { id, began, acknowledged: now_ms() });
            }
            Ok(()) => {}
            // The row may be there or not. The next one goes to a node that answers.
            Err(_) => client = connect(),
        }
    }
    written
}

pub(crate) fn ids(client: &mut Conn) -> Vec<u64> {
    client.query("select id from test.t order by id").unwrap()
}

/// What a restore says of its moment, in milliseconds.
pub(crate) fn moment_of(output: &str) -> u64 {
    let after = output.split(", ").nth(1).unwrap_or_else(|| panic!("{output}"));
    let text = after.split(" UTC").next().unwrap().replace(' ', "T");
    let time: jiff::Timestamp = format!("{text}Z").parse().unwrap();
    time.as_millisecond() as u64
}

/// The rows that were acknowledged before the moment are there, and none that began after it.
pub(crate) fn check(found: &[u64], written: &[Written], moment: u64) {
    for row in written {
        let is_there = found.binary_search(&row.id).is_ok();
        assert!(is_there || row.acknowledged >= moment, "{row:?} is missing at {moment}");
        assert!(!is_there || row.began <= moment, "{row:?} is there at {moment}");
    }
    assert!(found.iter().all(|id| !id.is_multiple_of(10)), "a row that was rolled back is there");
}

/// Runs `firn` with these arguments, which must succeed; returns its output.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> String {
    let firn = Command::new(env!("CARGO_BIN_EXE_firn"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&firn.stderr);
    assert!(firn.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(firn.stdout).unwrap()
}

pub(crate) fn time_of(moment: u64) -> String {
    jiff::Timestamp::from_millisecond(moment as i64).unwrap().to_string()
}
