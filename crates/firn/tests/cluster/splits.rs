//! Chunks that are cut in two while clients write, nodes are killed, and the cluster is archived.

use std::path::Path;
use std::sync::PoisonError;
use std::time::Duration;

use firn_base::network::Role;
use firn_cluster::Layout;
use mysql::prelude::Queryable;

use super::chunks::{chunks, counts, is_at_rest};
use super::{Cluster, ONE_AT_A_TIME, check_kept, kill_all, wait_until, while_writing};

/// Has chunk 1 cut in two, as soon as nothing else changes it.
pub(super) fn split_first(cluster: &Cluster) {
    wait_until("chunk 1 is cut", || {
        cluster.command(&["split", "1"]).output().unwrap().status.success()
    });
}

/// Waits until there are `count` chunks with `copies` copies each, and nothing is under way.
fn wait_for_chunks(cluster: &Cluster, count: usize, copies: usize) -> String {
    cluster.wait_for_status(|text| {
        let is_split = chunks(text).len() == count && !text.contains(" split chunk ");
        is_split && is_at_rest(text, copies)
    })
}

/// The directories in which a node has pages of chunks.
fn directories(cluster: &Cluster, node: &str) -> Vec<String> {
    let pages = cluster.directory.join(node).join("page-node");
    let entries = std::fs::read_dir(pages).unwrap().filter_map(Result::ok);
    let has_files = |path: &Path| {
        std::fs::read_dir(path.join("pages")).is_ok_and(|mut files| files.next().is_some())
    };
    let filled = entries.filter(|entry| has_files(&entry.path()));
    let names = filled.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.starts_with("chunk-")).collect();
    names.sort();
    names
}

/// The layout that the cluster has now, in a file.
fn layout_now(cluster: &Cluster) -> Layout {
    let text = String::from_utf8(cluster.command(&["layout"]).output().unwrap().stdout).unwrap();
    let path = cluster.directory.join("now.toml");
    std::fs::write(&path, &text).unwrap();
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_firn"))
        .args(["cluster", "status", "--layout"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(status.status.success(), "{text}");
    Layout::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_chunk_is_split_twice_under_load_and_its_parts_move() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let pages = ["--page-nodes", "3", "--page-copies", "2", "--page-chunks", "2"];
    let arguments = [&["--separate", "--extent-pages", "8"], &pages[..]].concat();
    let cluster = Cluster::start(directory.path(), &arguments);
    cluster.create();
    let (mut joined, acknowledged) = while_writing(&cluster, |_| {
        wait_for_chunks(&cluster, 2, 2);
        std::thread::sleep(Duration::from_secs(2));
        split_first(&cluster);
        wait_for_chunks(&cluster, 3, 2);
        let refused = cluster.command(&["split", "9"]).output().unwrap();
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(text.contains("there is no chunk 9; there are 1, 2, 3"), "{text}");
        split_first(&cluster);
        let text = wait_for_chunks(&cluster, 4, 2);
        assert_eq!(counts(&text).values().sum::<usize>(), 8, "{text}");
        assert!(layout_now(&cluster).to_text().contains("page_bounds = [536870911, 1073741823, "));
        // A node that is new gets some of them.
        let joined = cluster.join("pages-4", "pages");
        let text = cluster
            .wait_for_status(|text| counts(text).contains_key("pages-4") && is_at_rest(text, 2));
        assert_eq!(chunks(&text).len(), 4, "{text}");
        let layout = layout_now(&cluster);
        assert!(layout.to_text().contains("page_nodes = [["), "{}", layout.to_text());
        joined
    });
    assert!(acknowledged.len() > 100, "the load went on: {}", acknowledged.len());
    kill_all(&cluster);
    joined.wait().unwrap();
    joined = cluster.start_again("pages-4");
    check_kept(&cluster, &acknowledged);
    for (node, count) in counts(&wait_for_chunks(&cluster, 4, 2)) {
        wait_until("it has the files of its chunks alone", || {
            directories(&cluster, &node).len() == count
        });
    }
    drop(joined.stdin.take());
    joined.wait().unwrap();
    cluster.end();
}

#[test]
fn nodes_that_do_everything_split_their_only_chunk() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--nodes", "3", "--page-chunks", "1", "--extent-pages", "8"];
    let cluster = Cluster::start(directory.path(), &arguments);
    cluster.create();
    let mut connection = cluster.connect();
    connection.query_drop("SET @stays = 7").unwrap();
    let ((), acknowledged) = while_writing(&cluster, |_| {
        wait_for_chunks(&cluster, 1, 3);
        std::thread::sleep(Duration::from_secs(2));
        split_first(&cluster);
        wait_for_chunks(&cluster, 2, 3);
        split_first(&cluster);
        wait_for_chunks(&cluster, 3, 3);
        std::thread::sleep(Duration::from_secs(1));
    });
    // The engine goes on, and reads the pages of its own node.
    let stays: Option<u64> = connection.query_first("SELECT @stays").unwrap();
    assert_eq!(stays, Some(7), "{}", cluster.logs());
    assert_eq!(directories(&cluster, "node-1"), ["chunk-2", "chunk-3"]);
    kill_all(&cluster);
    check_kept(&cluster, &acknowledged);
    let text = wait_for_chunks(&cluster, 3, 3);
    assert!(counts(&text).values().all(|count| *count == 3), "{text}");
    cluster.end();
}

#[test]
fn nodes_are_killed_while_chunks_that_grow_are_split() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let pages = ["--page-nodes", "3", "--page-copies", "2", "--page-chunks", "2"];
    let arguments = [&["--separate", "--extent-pages", "8"], &pages[..]].concat();
    let cluster = Cluster::start(directory.path(), &arguments);
    cluster.create();
    let ((), acknowledged) = while_writing(&cluster, |_| {
        wait_until("chunks are cut when they are large", || {
            cluster.command(&["chunk-size", "1M"]).output().unwrap().status.success()
        });
        let begun = |text: &str| text.contains(" split chunk ") || chunks(text).len() > 3;
        cluster.wait_for_status(begun);
        for name in ["pages-1", "database-1", "pages-2", "pages-3"] {
            cluster.signal(name, "KILL");
            std::thread::sleep(Duration::from_millis(700));
        }
        kill_all(&cluster);
        cluster.wait_for_status(|text| chunks(text).len() > 3);
        cluster.signal("pages-2", "KILL");
        drop(cluster.connect());
    });
    cluster.wait_for_status(|text| !text.contains(" split chunk ") && is_at_rest(text, 2));
    kill_all(&cluster);
    check_kept(&cluster, &acknowledged);
    cluster.end();
}

#[test]
fn a_cluster_begins_with_the_layout_of_one_whose_chunks_were_split() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (directory.path().join("first"), directory.path().join("second"));
    let text = {
        let arguments = ["--nodes", "3", "--page-chunks", "2", "--extent-pages", "8"];
        let cluster = Cluster::start(&first, &arguments);
        wait_for_chunks(&cluster, 2, 3);
        split_first(&cluster);
        wait_for_chunks(&cluster, 3, 3);
        let text = layout_now(&cluster).to_text();
        cluster.end();
        text
    };
    std::fs::create_dir(&second).unwrap();
    std::fs::write(second.join("cluster.toml"), &text).unwrap();
    let cluster = Cluster::start(&second, &[]);
    cluster.create();
    wait_for_chunks(&cluster, 3, 3);
    assert_eq!(layout_now(&cluster).to_text(), text);
    assert_eq!(directories(&cluster, "node-1"), ["chunk-1", "chunk-2", "chunk-3"]);
    let found: Vec<String> = cluster.rows(Role::Database, "SHOW DATABASES LIKE 'kept'");
    assert_eq!(found, ["kept"]);
    cluster.end();
}
