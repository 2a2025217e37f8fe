//! Pages that are divided: each page node has a part of them, and parts come and go under load.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use super::{Cluster, ONE_AT_A_TIME, check_kept, kill_nodes, signal, wait_until, while_writing};

/// The nodes of each chunk, as `firn cluster status` says; those that it copies to are left out.
pub(super) fn chunks(text: &str) -> Vec<BTreeSet<String>> {
    let lines = text.lines().filter(|line| line.starts_with("chunk "));
    let nodes = lines.filter_map(|line| line.split_once(", on ")).map(|(_, nodes)| nodes);
    nodes
        .map(|nodes| {
            let served = nodes.split(", ").filter(|node| !node.contains(' '));
            served.map(str::to_owned).collect()
        })
        .collect()
}

/// How many chunks each node has.
pub(super) fn counts(text: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in chunks(text).into_iter().flatten() {
        *counts.entry(node).or_default() += 1;
    }
    counts
}

/// Whether each chunk is in service on `copies` nodes, and nothing moves.
pub(super) fn is_at_rest(text: &str, copies: usize) -> bool {
    let whole = chunks(text).iter().all(|nodes| nodes.len() == copies);
    whole && !text.contains("(copying)") && !text.contains("(leaving)")
}

#[test]
fn four_page_nodes_with_two_copies_have_half_of_the_pages_each() {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let arguments =
        ["--separate", "--page-nodes", "4", "--page-copies", "2", "--extent-pages", "8"];
    let cluster = Cluster::start(directory.path(), &arguments);
    cluster.create();
    let (mut dead, acknowledged) = while_writing(&cluster, |_| {
        let text = cluster
            .wait_for_status(|text| text.matches(" up ").count() == 7 && is_at_rest(text, 2));
        let found = counts(&text);
        assert_eq!(found.len(), 4, "{text}");
        assert!(found.values().all(|count| *count == 8), "half of 16 each: {text}");
        let files = |node: &str| {
            let pages = directory.path().join(node).join("page-node");
            std::fs::read_dir(pages).unwrap().count()
        };
        wait_until("it has no files of other chunks", || files("pages-1") == 8);
        // A node that is new gets its share.
        let mut joined = cluster.join("pages-5", "pages");
        let text = cluster.wait_for_status(|text| {
            let share = counts(text).get("pages-5").copied().unwrap_or(0);
            (5..=7).contains(&share) && is_at_rest(text, 2)
        });
        assert_eq!(counts(&text).values().sum::<usize>(), 32, "{text}");
        // One that leaves gives all away.
        assert!(cluster.command(&["remove", "pages-1"]).status().unwrap().success());
        let text =
            cluster.wait_for_status(|text| !text.contains("\npages-1") && is_at_rest(text, 2));
        assert!(!counts(&text).contains_key("pages-1"), "{text}");
        // What a node had that dies is copied elsewhere.
        joined.kill().unwrap();
        cluster
            .wait_for_status(|text| !counts(text).contains_key("pages-5") && is_at_rest(text, 2));
        joined
    });
    assert!(acknowledged.len() > 100, "the load went on: {}", acknowledged.len());
    // An engine that has nothing in memory reads what the nodes have, one of them being away.
    for (name, process) in cluster.processes() {
        if name.starts_with("database") || name == "pages-2" {
            signal("KILL", &process);
        }
    }
    check_kept(&cluster, &acknowledged);
    dead.wait().unwrap();
    cluster.end();
}

#[test]
fn page_nodes_with_a_part_of_the_pages_are_killed() {
    let pages = ["--page-nodes", "4", "--page-copies", "2", "--extent-pages", "8"];
    kill_nodes(&[&["--separate"], &pages[..]].concat(), "off");
}

#[test]
fn nodes_that_do_everything_with_a_part_of_the_pages_are_killed() {
    kill_nodes(&["--nodes", "3", "--page-copies", "2", "--extent-pages", "8"], "off");
}
