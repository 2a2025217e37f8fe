//! A cluster that is archived while the processes that archive and write are killed: random moments
//! are restored and cloned, and have the rows that were acknowledged by then, and no later ones.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::network::Role;
use firn_base::random::{RandomSource, SplitMix};
use firn_base::task::StopAtEnd;
use mysql::prelude::Queryable;

use super::server::Server;
use super::splits::split_first;
use super::{Cluster, ONE_AT_A_TIME, signal, wait_until};

#[path = "../support/audit.rs"]
pub(super) mod audit;

use audit::{Written, check, ids, moment_of, now_ms, run, time_of, write};

/// The node that archives, as `firn cluster status` has it.
fn archiving(status: &str) -> Option<&str> {
    let line = status.lines().find_map(|line| line.strip_prefix("archive: "))?;
    line.split(' ').next().filter(|_| line.contains(" up to "))
}

/// The node that writes the log.
fn writing(status: &str) -> Option<&str> {
    let line = status.lines().find_map(|line| line.strip_prefix("log group 1: "))?;
    line.split(" leads").next()
}

fn kill(cluster: &Cluster, name: &str) {
    let processes = cluster.processes();
    if let Some((_, process)) = processes.iter().find(|(found, _)| found == name) {
        signal("KILL", process);
    }
}

/// Writes rows while nodes are killed, and other things happen. Returns the rows, and the time from
/// which on moments are restored.
fn load(cluster: &Cluster, disturb: &dyn Fn(&Cluster)) -> (Vec<Written>, u64) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&ends);
        let (running, ends) = (cluster, &ends);
        let writers = [0, 1]
            .map(|number| scope.spawn(move || write(&|| Some(running.connect()), number, 2, ends)));
        cluster.wait_for_status(|text| {
            archiving(text).is_some() && text.contains(" objects of log and 1 sets")
        });
        let began = now_ms();
        for round in 0..5 {
            std::thread::sleep(Duration::from_millis(1_500));
            disturb(cluster);
            let status = cluster.wait_for_status(|text| archiving(text).is_some());
            match round {
                3 => kill(cluster, writing(&status).unwrap()),
                _ => kill(cluster, archiving(&status).unwrap()),
            }
            drop(cluster.connect());
        }
        std::thread::sleep(Duration::from_millis(1_500));
        wait_for_count(cluster, 150);
        ends.store(true, Ordering::SeqCst);
        let written = writers.into_iter().flat_map(|writer| writer.join().unwrap());
        (written.collect(), began)
    })
}

/// Restores and clones random moments between two times.
fn audit_moments(place: &Path, archive: &str, written: &[Written], (began, ended): (u64, u64)) {
    let random = SplitMix::from_entropy();
    for round in 0..4 {
        let time = time_of(began + random.below(ended - began));
        let name = format!("restored{round}");
        let (from, to) = (["--archive", archive], ["--data-dir", &name, "--to-time", &time]);
        let path = place.join(&name);
        let directory = ["--data-dir", path.to_str().unwrap()];
        let (server, moment) = if round % 2 == 0 {
            let restored = run(place, &[&["admin", "restore"], &from[..], &to].concat());
            let checked = run(place, &["admin", "check", "--data-dir", &name]);
            assert!(checked.contains("no damage found"), "{checked}");
            (Server::start(&directory, &[]), moment_of(&restored))
        } else {
            let clone = ["--clone-of", archive, "--to-time", &time];
            let server = Server::start(&[clone.as_slice(), &directory].concat(), &[]);
            let moment = moment_of(&server.greeting);
            (server, moment)
        };
        let mut client = server.connect();
        check(&ids(&mut client), written, moment);
        client.query_drop("insert into test.t values (999999999, 'of its own')").unwrap();
    }
}

/// Makes the table for the rows.
pub(super) fn create(cluster: &Cluster) {
    let table = "test.t (id bigint primary key, filler varchar(400))";
    let table = format!("create table if not exists {table}");
    for statement in ["create database if not exists test", &table] {
        let _: Vec<mysql::Row> = cluster.rows(Role::Database, statement);
    }
}

/// Waits until the table has `count` rows.
pub(super) fn wait_for_count(cluster: &Cluster, count: u64) {
    let query = "select count(*) from test.t";
    wait_until(query, || cluster.rows::<u64>(Role::Database, query)[0] >= count);
}

fn archive_a_cluster(shape: &[&str], disturb: &dyn Fn(&Cluster)) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    let archive = format!("file://{}/archive", place.path().display());
    let flags = ["--archive", &archive, "--archive-interval-seconds", "1"];
    let cluster = Cluster::start(&place.path().join("cluster"), &[shape, &flags].concat());
    create(&cluster);
    let (written, began) = load(&cluster, disturb);
    assert!(written.len() > 100, "{} rows", written.len());
    let ended = now_ms();
    cluster.wait_for_status(|text| text.contains(", 0 and 0.0 seconds behind"));
    // The node that writes knows the archive, also if another node writes it: as soon as that has
    // said so.
    let query = "select node, image_sets from information_schema.firn_archive";
    let mut archived = None;
    wait_until("a set of images", || {
        archived = cluster.rows::<(String, u64)>(Role::Database, query).pop();
        archived.as_ref().is_some_and(|(_, sets)| *sets > 0)
    });
    let (node, _) = archived.expect("it was waited for");
    assert!(cluster.processes().iter().any(|(name, _)| *name == node), "{node}");
    cluster.end();

    let listed = run(place.path(), &["admin", "backup", "list", "--archive", &archive]);
    assert!(listed.contains("no gaps"), "{listed}");
    let verified = run(place.path(), &["admin", "backup", "verify", "--archive", &archive]);
    assert!(verified.contains("no damage found"), "{verified}");
    audit_moments(place.path(), &archive, &written, (began, ended));
}

#[test]
fn nodes_that_do_everything_are_archived() {
    archive_a_cluster(&["--nodes", "3"], &|_| {});
}

#[test]
fn page_nodes_without_log_archive() {
    archive_a_cluster(&["--separate"], &|_| {});
}

#[test]
fn page_nodes_with_a_part_of_the_pages_each_archive_all() {
    let pages = ["--page-nodes", "3", "--page-copies", "2", "--extent-pages", "8"];
    archive_a_cluster(&[&["--separate"], &pages[..]].concat(), &|_| {});
}

#[test]
fn an_archive_has_all_pages_while_chunks_are_split() {
    let pages = ["--page-nodes", "3", "--page-copies", "2", "--page-chunks", "2"];
    let shape = [&["--separate", "--extent-pages", "8"], &pages[..]].concat();
    archive_a_cluster(&shape, &split_first);
}
