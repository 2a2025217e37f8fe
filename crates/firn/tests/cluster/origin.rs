//! A cluster that begins with a moment of another one's archive has what was acknowledged by then,
//! and nothing later. It is a cluster as any other.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::network::Role;
use firn_base::task::StopAtEnd;
use mysql::prelude::Queryable;

use super::archive::audit::{Written, check, ids, moment_of, now_ms, run, time_of, write};
use super::archive::{create, wait_for_count};
use super::{Cluster, ONE_AT_A_TIME, signal};

/// Writes rows for some seconds, until the archive has them. Returns them, and a time at which some
/// of them were there.
fn load(cluster: &Cluster) -> (Vec<Written>, u64) {
    create(cluster);
    let ends = AtomicBool::new(false);
    let (written, time) = std::thread::scope(|scope| {
        let _stop = StopAtEnd(&ends);
        let ends = &ends;
        let writers = [0, 1]
            .map(|number| scope.spawn(move || write(&|| Some(cluster.connect()), number, 2, ends)));
        cluster.wait_for_status(|text| text.contains(" objects of log and 1 sets"));
        wait_for_count(cluster, 80);
        // A moment of the log is noted every 100 ms, which a busy machine may miss for a while.
        std::thread::sleep(Duration::from_secs(2));
        let time = now_ms();
        std::thread::sleep(Duration::from_millis(10));
        let query = "select count(*) from test.t";
        wait_for_count(cluster, cluster.rows::<u64>(Role::Database, query)[0] + 40);
        ends.store(true, Ordering::SeqCst);
        let written = writers.into_iter().flat_map(|writer| writer.join().unwrap());
        (written.collect(), time)
    });
    // Somebody makes a mistake.
    let _: Vec<mysql::Row> = cluster.rows(Role::Database, "drop table if exists test.t");
    cluster.wait_for_status(|text| text.contains(", 0 and 0.0 seconds behind"));
    (written, time)
}

fn kill(cluster: &Cluster, name: &str) {
    let processes = cluster.processes();
    let (_, process) = processes.iter().find(|(found, _)| found == name).unwrap();
    signal("KILL", process);
}

fn leader(status: &str) -> Option<&str> {
    let line = status.lines().find_map(|line| line.strip_prefix("log group 1: "))?;
    Some(line.split(" leads").next()?).filter(|_| line.contains(" leads"))
}

#[test]
fn a_cluster_begins_at_a_moment_of_an_archive() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let archive = |name| format!("file://{}/{name}", place.path().display());
    let (first_archive, own_archive) = (archive("archive"), archive("own"));
    let flags = ["--archive", &first_archive, "--archive-interval-seconds", "1"];
    let first =
        Cluster::start(&place.path().join("first"), &[&["--nodes", "1"], &flags[..]].concat());
    let (written, time) = load(&first);
    first.end();
    assert!(written.len() > 100, "{} rows", written.len());

    let time = time_of(time);
    let origin = ["--from-archive", &first_archive, "--to-time", &time];
    let told = run(place.path(), &[&["cluster", "origin"], &origin[..]].concat());
    assert!(told.contains("\n[origin]\narchive = \"file://"), "{told}");
    let moment = moment_of(&told);
    let flags = ["--separate", "--archive", &own_archive, "--archive-interval-seconds", "1"];
    let directory = place.path().join("second");
    let second = Cluster::start(&directory, &[&flags[..], &origin].concat());
    let mut client = second.connect();
    let found = ids(&mut client);
    check(&found, &written, moment);
    assert!(found.len() > 50 && found.len() < written.len(), "{} rows", found.len());

    // It writes on, and lives on without the node that writes and without a page node.
    client.query_drop("insert into test.t values (999999991, 'of its own')").unwrap();
    let status = second.wait_for_status(|text| leader(text).is_some());
    kill(&second, leader(&status).unwrap());
    second.connect().query_drop("insert into test.t values (999999992, 'after a kill')").unwrap();
    kill(&second, "pages-1");
    second.connect().query_drop("insert into test.t values (999999993, 'and another')").unwrap();
    second.wait_for_status(|text| text.contains(" objects of log and 1 sets"));
    let again = std::process::Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(["cluster", "start", "--dir"])
        .arg(&directory)
        .args(origin)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("has a cluster already"), "{again:?}");
    second.end();

    // Nothing of the first archive is needed any more.
    std::fs::remove_dir_all(place.path().join("archive")).unwrap();
    let flags = ["--archive", &own_archive, "--archive-interval-seconds", "1"];
    let second = Cluster::start(&directory, &flags);
    let mut client = second.connect();
    let expected = [&found[..], &[999_999_991, 999_999_992, 999_999_993]].concat();
    assert_eq!(ids(&mut client), expected);
    let checked: Vec<(String, String, String, String)> =
        client.query("check table test.t").unwrap();
    assert_eq!(checked[0].3, "OK");
    second.wait_for_status(|text| text.contains(", 0 and 0.0 seconds behind"));
    second.end();
    let verified = run(place.path(), &["admin", "backup", "verify", "--archive", &own_archive]);
    assert!(verified.contains("no damage found"), "{verified}");
}
