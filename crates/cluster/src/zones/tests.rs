use std::collections::BTreeMap;

use super::*;
use crate::layout::zoned::{ALL, without_pages, zoned};

fn layout(nodes: &[(&str, &str)]) -> Layout {
    zoned(nodes.iter().copied())
}

const LOGGER: &str = "\"log\", \"control\"";

/// A member with log up to `end`. The first one leads, has 1000 since 40 ms, and had 900 before.
fn status(number: u64, end: u64) -> NodeStatus {
    let leads = number == 1;
    let history = match leads {
        true => vec![(40, Lsn(1000)), (250, Lsn(900)), (700, Lsn(500))],
        false => Vec::new(),
    };
    NodeStatus {
        log: Some(LogStatus {
            leads: leads.then_some(3),
            leader: Some(1),
            truncated: Lsn(8),
            durable: Lsn(end),
            end: Lsn(end),
            history,
            failure: None,
        }),
        ..NodeStatus::of(NodeId(number))
    }
}

/// Zones as `zone place bytes/ms`, when these members have log up to there.
fn seen(layout: &Layout, ends: &[(u64, u64)]) -> Vec<String> {
    let told: BTreeMap<NodeId, NodeStatus> =
        ends.iter().map(|(number, end)| (NodeId(*number), status(*number, *end))).collect();
    let reports = reports(layout, &|node| told.get(&node));
    let line = |one: &ZoneReport| {
        let loss = one.loss.map_or("?".to_owned(), |loss| format!("{}/{}", loss.bytes, loss.ms));
        let pages = if one.missing_chunks > 0 { " without pages" } else { "" };
        format!("{} {:?} {loss}{pages}", one.zone, one.place)
    };
    reports.iter().map(line).collect()
}

#[test]
fn a_cluster_of_one_zone_has_no_report() {
    assert!(seen(&layout(&[("a", ALL), ("a", ALL)]), &[(1, 1000)]).is_empty());
}

#[test]
fn a_zone_that_votes_loses_nothing_if_a_majority_is_left() {
    let three = layout(&[("a", ALL), ("b", ALL), ("c", LOGGER)]);
    let ends = [(1, 1000), (2, 700), (3, 1000)];
    let expected = ["a Writes 0/0", "b Synchronous 0/0", "c Synchronous 0/0"];
    assert_eq!(seen(&three, &ends), expected);
    let two = layout(&[("a", ALL), ("a", LOGGER), ("b", ALL)]);
    assert_eq!(seen(&two, &[(1, 1000), (2, 1000), (3, 920)]), ["a Writes 0/0", "b Votes 80/250"]);
    let loggers = layout(&[("a", ALL), ("b", LOGGER), ("c", LOGGER)]);
    assert_eq!(seen(&loggers, &ends)[1], "b Votes 300/700", "a logger runs no engine");
}

#[test]
fn a_zone_that_follows_loses_what_it_lacks() {
    let follows = layout(&[("a", ALL), ("a", ALL), ("a", LOGGER), ("far", ALL), ("far", ALL)]);
    let seen = |ends: &[(u64, u64)]| seen(&follows, ends)[1].clone();
    assert_eq!(seen(&[(1, 1000), (4, 910), (5, 800)]), "far Asynchronous 90/250");
    assert_eq!(seen(&[(1, 1000), (4, 1010)]), "far Asynchronous 0/0", "it has it all");
    assert_eq!(seen(&[(1, 1000)]), "far Asynchronous ?", "it does not answer");
    assert_eq!(seen(&[(2, 1000), (4, 1000)]), "far Asynchronous ?", "nobody leads");
}

#[test]
fn a_zone_that_follows_needs_all_pages() {
    let follows = layout(&[("a", ALL), ("a", ALL), ("far", ALL), ("far", ALL)]);
    let ends = [(1, 1000), (3, 1000)];
    let one_lacks = without_pages(follows, NodeId(3));
    assert_eq!(seen(&one_lacks, &ends)[1], "far Asynchronous 0/0");
    let both_lack = without_pages(one_lacks, NodeId(4));
    let expected = ["a Writes 0/0", "far Asynchronous 0/0 without pages"];
    assert_eq!(seen(&both_lack, &ends), expected);
}
