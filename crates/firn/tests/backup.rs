//! An archived server under load, killed now and then: random moments are restored and cloned, and
//! the rows that were acknowledged by then, and no later ones, are there.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use firn_base::random::{RandomSource, SplitMix};
use mysql::prelude::Queryable;
use support::{Server, firn, text};

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A row, when its insert began, and when it was acknowledged, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Written {
    id: u64,
    began: u64,
    acknowledged: u64,
}

/// Inserts rows until told to end or the server is gone. Every tenth transaction is rolled back.
fn write(mut client: mysql::Conn, first: u64, step: u64, ends: &AtomicBool) -> Vec<Written> {
    let mut written = Vec::new();
    let mut id = first;
    while !ends.load(Ordering::SeqCst) {
        id += step;
        let began = now_ms();
        let filler = "x".repeat(300);
        let inserted = client
            .query_drop("begin")
            .and_then(|()| client.query_drop(format!("insert into t values ({id}, \'{filler}\')")));
        if inserted.is_err() {
            return written;
        }
        if id.is_multiple_of(10) {
            if client.query_drop("rollback").is_err() {
                return written;
            }
            continue;
        }
        if client.query_drop("commit").is_err() {
            return written;
        }
        written.push(Written { id, began, acknowledged: now_ms() });
    }
    written
}

/// Runs a load for a while. Returns what was acknowledged.
fn load(server: &Server, first: u64, time: Duration) -> Vec<Written> {
    let ends = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|number| {
            let (client, ends) = (server.connect(), Arc::clone(&ends));
            std::thread::spawn(move || write(client, first + number, 2, &ends))
        })
        .collect();
    std::thread::sleep(time);
    ends.store(true, Ordering::SeqCst);
    writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
}

fn arguments(archive: &str) -> Vec<&str> {
    vec!["--archive", archive, "--archive-interval-seconds", "1"]
}

fn ids(client: &mut mysql::Conn) -> Vec<u64> {
    client.query("select id from test.t order by id").unwrap()
}

/// What a restore says of its moment, in milliseconds.
fn moment_of(output: &str) -> u64 {
    let after = output.split(", ").nth(1).unwrap_or_else(|| panic!("{output}"));
    let text = after.split(" UTC").next().unwrap().replace(' ', "T");
    let time: jiff::Timestamp = format!("{text}Z").parse().unwrap();
    time.as_millisecond() as u64
}

fn check(found: &[u64], written: &[Written], moment: u64) {
    for row in written {
        let is_there = found.binary_search(&row.id).is_ok();
        assert!(is_there || row.acknowledged >= moment, "{row:?} is missing at {moment}");
        assert!(!is_there || row.began <= moment, "{row:?} is there at {moment}");
    }
    assert!(found.iter().all(|id| !id.is_multiple_of(10)), "a row that was rolled back is there");
}

fn run(directory: &Path, arguments: &[&str]) -> String {
    let output = firn(directory, arguments, &[]);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

fn time_of(moment: u64) -> String {
    jiff::Timestamp::from_millisecond(moment as i64).unwrap().to_string()
}

#[test]
fn moments_of_a_load_with_kills_come_back() {
    let archive_directory = tempfile::tempdir().unwrap();
    let archive = format!("file://{}/archive", archive_directory.path().display());
    let mut server = Server::start(&arguments(&archive), &[]);
    let mut client = server.connect();
    client.query_drop("use test").or_else(|_| client.query_drop("create database test")).unwrap();
    client.query_drop("create table test.t (id bigint primary key, filler varchar(400))").unwrap();
    let mut written = Vec::new();
    let mut began = 0;
    for round in 0..3 {
        written.extend(load_in_test(&server, round * 1_000_000));
        if round == 0 {
            began = now_ms();
        }
        server.signal("KILL");
        server.wait();
        let directory = std::mem::replace(&mut server.directory, tempfile::tempdir().unwrap());
        server = Server::start_in(directory, &arguments(&archive), &[]);
    }
    written.extend(load_in_test(&server, 3_000_000));
    let ended = now_ms();
    server.signal("TERM");
    assert!(server.wait().0.success());

    let place = archive_directory.path();
    let listed = run(place, &["admin", "backup", "list", "--archive", &archive]);
    assert!(listed.contains("no gaps"), "{listed}");
    let verified = run(place, &["admin", "backup", "verify", "--archive", &archive]);
    assert!(verified.contains("no damage found"), "{verified}");
    let random = SplitMix::from_entropy();
    for round in 0..4 {
        let time = time_of(began + random.below(ended - began));
        let name = format!("restored{round}");
        if round % 2 == 0 {
            let restored = run(
                place,
                &[
                    "admin",
                    "restore",
                    "--archive",
                    &archive,
                    "--data-dir",
                    &name,
                    "--to-time",
                    &time,
                ],
            );
            let checked = run(place, &["admin", "check", "--data-dir", &name]);
            assert!(checked.contains("no damage found"), "{checked}");
            let path = place.join(&name);
            let server = Server::start(&["--data-dir", path.to_str().unwrap()], &[]);
            check(&ids(&mut server.connect()), &written, moment_of(&restored));
        } else {
            let path = place.join(&name);
            let clone = ["--clone-of", &archive, "--to-time", &time];
            let directory = ["--data-dir", path.to_str().unwrap()];
            let server = Server::start(&[clone.as_slice(), &directory].concat(), &[]);
            let moment = moment_of(&server.greeting);
            let mut client = server.connect();
            check(&ids(&mut client), &written, moment);
            client.query_drop("insert into test.t values (999999999, \'of the clone\')").unwrap();
            drop(server);
            // A clone that was killed goes on as any database does.
            let server = Server::start(&directory, &[]);
            let mut found = ids(&mut server.connect());
            assert_eq!(found.pop(), Some(999_999_999));
            check(&found, &written, moment);
        }
    }
}

fn load_in_test(server: &Server, first: u64) -> Vec<Written> {
    let mut client = server.connect();
    client.query_drop("use test").unwrap();
    load(server, first, Duration::from_millis(2500))
}

#[test]
fn a_mistake_is_undone_by_a_restore_to_the_moment_before() {
    let archive_directory = tempfile::tempdir().unwrap();
    let place = archive_directory.path();
    let archive = format!("file://{}/archive", place.display());
    let mut server = Server::start(&arguments(&archive), &[]);
    let mut client = server.connect();
    client.query_drop("create database shop").unwrap();
    client.query_drop("create table shop.t (id int primary key)").unwrap();
    client.query_drop("insert into shop.t values (1), (2), (3)").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let before = time_of(now_ms());
    std::thread::sleep(Duration::from_millis(300));
    client.query_drop("drop table shop.t").unwrap();
    server.signal("TERM");
    assert!(server.wait().0.success());
    run(
        place,
        &["admin", "restore", "--archive", &archive, "--data-dir", "r", "--to-time", &before],
    );
    let path = place.join("r");
    // Its archive is another one: this database is not the one that the archive is of.
    let server = Server::start(&["--data-dir", path.to_str().unwrap(), "--archive", &archive], &[]);
    let found: Vec<u32> = server.connect().query("select id from shop.t").unwrap();
    assert_eq!(found, [1, 2, 3]);
    let again = firn(
        place,
        &["admin", "restore", "--archive", &archive, "--data-dir", "r", "--to-time", &before],
        &[],
    );
    assert!(!again.status.success() && text(&again.stderr).contains("is not empty"));
}

#[test]
fn damage_in_an_archive_is_named() {
    let archive_directory = tempfile::tempdir().unwrap();
    let place = archive_directory.path();
    let archive = format!("file://{}/archive", place.display());
    let mut server = Server::start(&arguments(&archive), &[]);
    server.connect().query_drop("create database shop").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    server.signal("TERM");
    assert!(server.wait().0.success());
    let objects = std::fs::read_dir(place.join("archive/log")).unwrap();
    let object = objects.map(|entry| entry.unwrap().path()).next().unwrap();
    let mut bytes = std::fs::read(&object).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&object, bytes).unwrap();
    let output = firn(place, &["admin", "backup", "verify", "--archive", &archive], &[]);
    assert_eq!(output.status.code(), Some(1));
    let named = object.file_name().unwrap().to_str().unwrap();
    assert!(text(&output.stdout).contains(named), "{}", text(&output.stdout));
    let nowhere = format!("file://{}/nowhere", place.display());
    let output = firn(place, &["admin", "backup", "list", "--archive", &nowhere], &[]);
    assert!(text(&output.stderr).contains("there is no archive"), "{}", text(&output.stderr));
}
