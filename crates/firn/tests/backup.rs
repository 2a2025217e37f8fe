//! An archived server under load, killed now and then: random moments are restored and cloned, and
//! the rows that were acknowledged by then, and no later ones, are there.

#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

#[path = "support/audit.rs"]
mod audit;
mod support;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use audit::{Written, check, ids, moment_of, now_ms, run, time_of, write};
use firn_base::random::{RandomSource, SplitMix};
use mysql::prelude::Queryable;
use support::{Server, firn, text};

/// How long an archive may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a load for a while. Returns what was acknowledged.
fn load(server: &Server, first: u64, time: Duration) -> Vec<Written> {
    let ends = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|number| {
            let (client, ends) = (Cell::new(Some(server.connect())), Arc::clone(&ends));
            std::thread::spawn(move || write(&|| client.take(), first + number, 2, &ends))
        })
        .collect();
    std::thread::sleep(time);
    ends.store(true, Ordering::SeqCst);
    writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
}

fn arguments(archive: &str) -> Vec<&str> {
    vec!["--archive", archive, "--archive-interval-seconds", "1"]
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
            wait_until_archived(&mut client);
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

/// Waits until an archive has a set of images, and all that was committed.
fn wait_until_archived(client: &mut mysql::Conn) {
    let until = std::time::Instant::now() + PATIENCE;
    let look = "select lag_bytes, log_objects, image_sets from information_schema.firn_archive";
    loop {
        let row: (u64, u64, u64) = client.query_first(look).unwrap().unwrap();
        if row.0 == 0 && row.1 > 0 && row.2 > 0 {
            return;
        }
        assert!(std::time::Instant::now() < until, "{row:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_state_of_an_archive_is_in_sql_and_in_the_metrics() {
    let archive_directory = tempfile::tempdir().unwrap();
    let archive = format!("file://{}/archive", archive_directory.path().display());
    let flags = ["--metrics-listen", "127.0.0.1:0"];
    let server = Server::start(&[arguments(&archive).as_slice(), &flags].concat(), &[]);
    let mut client = server.connect();
    client.query_drop("create database shop").unwrap();
    let until = std::time::Instant::now() + PATIENCE;
    let (lsn, time, error) = loop {
        let row: (Option<String>, u64, u64, u64, u64, u64, u64, Option<String>) = client
            .query_first(
                "select node, archived_lsn, archived_unix_time_ms, lag_bytes, log_objects, \
                 image_sets, size_bytes, last_error from information_schema.firn_archive",
            )
            .unwrap()
            .expect("an archived server has a row");
        assert_eq!(row.0, None);
        if row.3 == 0 && row.4 > 0 && row.5 == 1 && row.6 > 0 {
            break (row.1, row.2, row.7);
        }
        assert!(std::time::Instant::now() < until, "{row:?}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(lsn > 0 && now_ms().abs_diff(time) < 60_000 && error.is_none(), "{time}, {error:?}");
    let shown: (String, u64) =
        client.query_first("show global status like 'Firn_archive_log_objects'").unwrap().unwrap();
    assert!(shown.1 > 0);
    let status: (String, String, String) =
        client.query_first("show engine innodb status").unwrap().unwrap();
    assert!(status.2.contains("Archived up to "), "{}", status.2);
    let metrics = server.get("/metrics");
    assert!(metrics.contains("firn_archive_sets 1\n"), "{metrics}");
    assert!(metrics.contains("firn_archive_behind_seconds "), "{metrics}");
    let other = Server::start(&[], &[]);
    let rows: Vec<u64> =
        other.connect().query("select lag_ms from information_schema.firn_archive").unwrap();
    assert!(rows.is_empty(), "a server without an archive has no row");
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
    wait_until_archived(&mut client);
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
    let mut client = server.connect();
    client.query_drop("create database shop").unwrap();
    wait_until_archived(&mut client);
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
