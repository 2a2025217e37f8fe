use std::sync::Arc;

use expect_test::{Expect, expect};

use super::*;
use crate::layout::zoned::{ALL, zoned};
use crate::message::PagesStatus;
use crate::status::AskError;
use crate::survey::SurveyedNode;

const LOGGER: &str = "\"log\"";

/// What a node says: where its log ends, whether it leads, and up to where it has log for pages.
#[derive(Clone, Copy)]
struct Told {
    end: u64,
    leads: bool,
    received: u64,
}

fn at(end: u64) -> Option<Told> {
    Some(Told { end, leads: false, received: end })
}

/// A survey of nodes, each with its zone and roles. Those of zone `far` follow; `None`: the node
/// does not answer.
fn survey(nodes: &[(&str, &str, Option<Told>)]) -> Survey {
    let layout = zoned(nodes.iter().map(|(zone, roles, _)| (*zone, *roles)));
    let surveyed = layout.nodes().zip(nodes).map(|(node, (_, _, told))| {
        let status = told.map(|told| status(node, told));
        let silent = AskError::Message(crate::message::NotAStatus);
        SurveyedNode { node: node.clone(), state: None, status: status.ok_or(silent) }
    });
    let nodes = surveyed.collect();
    Survey { control: Err("it was not asked".to_owned()), layout: Arc::new(layout), nodes }
}

fn status(node: &NodeEntry, told: Told) -> NodeStatus {
    let pages = PagesStatus { is_open: true, received: Lsn(told.received), ..Default::default() };
    NodeStatus {
        log: Some(LogStatus {
            leads: told.leads.then_some(3),
            leader: None,
            truncated: Lsn(8),
            durable: Lsn(told.end),
            end: Lsn(told.end),
            history: Vec::new(),
            failure: None,
        }),
        pages: node.has(Role::Pages).then_some(pages),
        generation: 2,
        ..NodeStatus::of(node.number)
    }
}

#[track_caller]
fn refused(survey: &Survey, zone: &str, expected: &Expect) {
    expected.assert_eq(&plan(survey, zone).unwrap_err().to_string());
}

#[test]
fn the_member_with_most_of_the_log_leads() {
    let lost = [("a", ALL, None), ("a", ALL, None), ("a", LOGGER, None)];
    let far = [
        ("far", ALL, at(700)),
        ("far", ALL, at(800)),
        ("far", ALL, None),
        ("far", LOGGER, at(800)),
    ];
    let planned = plan(&survey(&[&lost[..], &far].concat()), "far").unwrap();
    assert_eq!((planned.leader.as_str(), planned.end), ("n5", Lsn(800)));
    assert_eq!(planned.nodes, ["n4", "n5", "n7"]);
    assert_eq!((planned.order.generation, planned.order.leader), (3, NodeId(5)));
    assert_eq!(planned.layout().members().iter().count(), 3);
}

#[test]
fn nothing_is_taken_over_while_a_node_writes_or_can_be_elected() {
    let writes = Some(Told { end: 900, leads: true, received: 900 });
    refused(
        &survey(&[("a", ALL, writes), ("far", ALL, at(800))]),
        "far",
        &expect![
            "n1 writes, so nothing has to be taken over: if another node is to write, use firn cluster switch; if a is to be left, stop its nodes first"
        ],
    );
    let three = [("a", ALL, None), ("b", ALL, at(800)), ("c", LOGGER, at(900))];
    refused(
        &survey(&three),
        "b",
        &expect![
            "zone 'b' votes, and has a majority with others: a node of them is elected without being told"
        ],
    );
    let alone = [("a", ALL, None), ("b", ALL, at(800)), ("c", LOGGER, None)];
    assert!(plan(&survey(&alone), "b").is_ok(), "there is no majority");
}

#[test]
fn a_zone_that_lacks_something_is_told_what() {
    let far = |told: &[Option<Told>]| {
        let node = |told: &Option<Told>| ("far", ALL, *told);
        let nodes: Vec<_> = told.iter().map(node).collect();
        survey(&[&[("a", ALL, None)][..], &nodes].concat())
    };
    refused(
        &far(&[None]),
        "far",
        &expect!["no node of zone 'far' that answers has the log and can run an engine"],
    );
    refused(&far(&[at(9)]), "fa", &expect!["no node is in zone 'fa'; there are a, far"]);
    let ahead = Some(Told { end: 700, leads: false, received: 900 });
    refused(
        &far(&[ahead, at(800)]),
        "far",
        &expect![
            "n2 has pages of log up to 900, and no log of the zone goes further than 800; start the node with that log, or give the pages up: stop n2"
        ],
    );
}
