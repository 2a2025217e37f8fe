//! Failure detection: what the leader of the control group makes of heartbeats.
//!
//! A node is *suspected* when it was silent for a while, and *down* when it was silent for the
//! detection time. A node that control hears, but that most other nodes cannot reach, is treated as
//! silent. A node that was down is up again when it has been heard without a gap for a time that
//! doubles with each time it went down lately, so that a node that comes and goes is not given
//! pages each time.
//!
//! All of this is the leader's memory. What it concludes goes into the catalog. A new leader gives
//! every node the whole detection time.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::identifiers::NodeId;
use crate::node::{Health, Node};
use crate::proposal::Proposal;
use crate::settings::Settings;

/// The most times that the time until a node is up again is doubled.
const MOST_DOUBLINGS: u8 = 6;

/// What was heard of one node. Times are ticks.
#[derive(Debug, Clone)]
struct Heard {
    /// The last heartbeat, or when the leader began to listen.
    last: u64,
    /// Since when heartbeats have come without a gap.
    since: Option<u64>,
    /// Since when most others cannot reach it.
    accused_since: Option<u64>,
    /// Since when it has been up, or was forgiven last.
    calm_since: u64,
    /// The nodes that it cannot reach.
    unreachable: BTreeSet<NodeId>,
}

/// What the leader has heard of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    nodes: BTreeMap<NodeId, Heard>,
}

impl Detector {
    /// A node has sent a heartbeat of its present life.
    pub(crate) fn heard(
        &mut self,
        node: NodeId,
        unreachable: &BTreeSet<NodeId>,
        settings: &Settings,
        now: u64,
    ) {
        let heard = self.nodes.entry(node).or_insert_with(|| Heard::begin(now));
        let gap = now - heard.last >= u64::from(settings.suspect_ticks);
        if gap || heard.since.is_none() {
            heard.since = Some(now);
        }
        heard.last = now;
        heard.unreachable.clone_from(unreachable);
    }

    /// What has become of the nodes.
    pub(crate) fn decide(&mut self, catalog: &Catalog, now: u64) -> Vec<Proposal> {
        self.nodes.retain(|node, _| catalog.nodes().contains_key(node));
        for node in catalog.nodes().keys() {
            self.nodes.entry(*node).or_insert_with(|| Heard::begin(now));
        }
        self.note_accused(catalog, now);
        let mut proposals = Vec::new();
        for (id, node) in catalog.nodes() {
            let heard = self.nodes.get_mut(id).expect("added above");
            let verdict = heard.verdict(node, catalog.settings(), now);
            if verdict != (node.health, node.flaps) {
                let (health, flaps) = verdict;
                let incarnation = node.incarnation;
                proposals.push(Proposal::Health { node: *id, incarnation, health, flaps });
            }
        }
        proposals
    }

    /// Notes which nodes cannot be reached by most of the others.
    fn note_accused(&mut self, catalog: &Catalog, now: u64) {
        let suspect = u64::from(catalog.settings().suspect_ticks);
        let witnesses: BTreeMap<NodeId, BTreeSet<NodeId>> = self
            .nodes
            .iter()
            .filter(|(id, heard)| {
                now - heard.last < suspect && catalog.nodes().get(id).is_some_and(Node::is_up)
            })
            .map(|(id, heard)| (*id, heard.unreachable.clone()))
            .collect();
        for (id, heard) in &mut self.nodes {
            let others = witnesses.keys().filter(|witness| *witness != id).count();
            let accusers = witnesses
                .iter()
                .filter(|(witness, unreachable)| *witness != id && unreachable.contains(id))
                .count();
            // One witness alone may itself be the one that is cut off.
            let accused = accusers >= 2 && accusers * 2 > others;
            heard.accused_since = accused.then(|| heard.accused_since.unwrap_or(now));
            if accused {
                heard.since = None;
            }
        }
    }
}

impl Heard {
    fn begin(now: u64) -> Heard {
        Heard {
            last: now,
            since: None,
            accused_since: None,
            calm_since: now,
            unreachable: BTreeSet::new(),
        }
    }

    /// The health that the node should have in the catalog, and how often it went down lately.
    fn verdict(&mut self, node: &Node, settings: &Settings, now: u64) -> (Health, u8) {
        let accused = self.accused_since.map_or(0, |since| now - since);
        let silent = (now - self.last).max(accused);
        let is_heard = silent < u64::from(settings.suspect_ticks);
        let is_down = silent >= u64::from(settings.down_ticks);
        if node.health != Health::Up {
            self.calm_since = now;
        }
        match node.health {
            Health::Down if self.is_stable(node.flaps, settings) && is_heard => {
                (Health::Up, node.flaps)
            }
            Health::Down => (Health::Down, node.flaps),
            _ if is_down => (Health::Down, node.flaps.saturating_add(1)),
            Health::Unknown if self.since.is_some() && is_heard => (Health::Up, node.flaps),
            Health::Unknown => (Health::Unknown, node.flaps),
            Health::Up | Health::Suspected if !is_heard => (Health::Suspected, node.flaps),
            Health::Suspected if self.since.is_some() => (Health::Up, node.flaps),
            Health::Suspected => (Health::Suspected, node.flaps),
            Health::Up => (Health::Up, self.forgive(node.flaps, settings, now)),
        }
    }

    /// Whether a node that was down has been heard for long enough.
    fn is_stable(&self, flaps: u8, settings: &Settings) -> bool {
        let doublings = flaps.saturating_sub(1).min(MOST_DOUBLINGS);
        let needed = u64::from(settings.stable_ticks) << doublings;
        // The silence since the last heartbeat proves nothing.
        self.since.is_some_and(|since| self.last - since >= needed)
    }

    fn forgive(&mut self, flaps: u8, settings: &Settings, now: u64) -> u8 {
        if flaps == 0 || now - self.calm_since < u64::from(settings.calm_ticks) {
            return flaps;
        }
        self.calm_since = now;
        flaps - 1
    }
}

#[cfg(test)]
mod tests;
