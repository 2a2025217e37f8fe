//! What each zone of a cluster is for, and what would be lost if it took over now.
//!
//! ```text
//!   east    voter leads, voter    writes
//!   west    voter                 synchronous: without east, west and mid have a majority, and
//!   mid     logger                all that was acknowledged is with one of them
//!   south   learner               asynchronous: has what the leader had a moment ago
//! ```
//!
//! A zone that votes loses nothing if the others have a majority without the zone that writes:
//! whatever was acknowledged is durable at a majority, and two majorities share a member. If they
//! have none, nobody is elected, and the zone can be made to go on with what it has
//! (`firn cluster take-over`), as a zone that follows can.

use std::collections::BTreeSet;

use firn_base::Lsn;
use firn_base::network::NodeId;
use firn_consensus::Role as MemberRole;

use crate::durable_history::age_ms;
use crate::layout::{Layout, NodeEntry};
use crate::message::{LogStatus, NodeStatus};
use crate::survey::Survey;

/// A zone as a survey found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneReport {
    pub zone: String,
    pub place: ZonePlace,
    /// What would be lost if the zone took over now; `None` if nobody leads who could say it, or no
    /// member of the zone answers.
    pub loss: Option<Loss>,
    /// Chunks of which it has no copy. It cannot go on without the others before it has one of
    /// each.
    pub missing_chunks: usize,
}

/// What a zone is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZonePlace {
    /// The node that writes is here.
    Writes,
    /// Its members vote, and the cluster goes on without the zone that writes.
    Synchronous,
    /// Its members vote, but without the zone that writes there is no majority.
    Votes,
    /// Its members learn: no commit waits for them.
    Asynchronous,
    /// It has no member of the log group.
    WithoutLog,
}

/// Acknowledged log that a zone does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    pub bytes: u64,
    /// How old its oldest part is at most.
    pub ms: u64,
}

/// The zones of a cluster, in order. Empty if there is one.
#[must_use]
pub fn zones(survey: &Survey) -> Vec<ZoneReport> {
    let told = |node: NodeId| {
        let found = survey.nodes.iter().find(|one| one.node.number == node)?;
        found.status.as_ref().ok()
    };
    reports(&survey.layout, &told)
}

fn reports<'a>(
    layout: &Layout,
    told: &dyn Fn(NodeId) -> Option<&'a NodeStatus>,
) -> Vec<ZoneReport> {
    if !layout.has_zones() {
        return Vec::new();
    }
    let zones: BTreeSet<&str> = layout.nodes().map(|node| node.zone.as_str()).collect();
    let log_of = |node: &NodeEntry| told(node.number)?.log.as_ref();
    let members = layout.log_members().filter_map(|(_, node)| Some((node, log_of(node)?)));
    let leader = LogStatus::newest_leader(members);
    let home = leader.map(|(node, _)| node.zone.as_str());
    let report = |zone: &str| {
        let place = place(layout, zone, home);
        let members = layout.log_members().filter(|(_, node)| node.zone == zone);
        let end = members.filter_map(|(_, node)| Some(log_of(node)?.end)).max();
        let loss = match place {
            ZonePlace::Writes | ZonePlace::Synchronous => Some(Loss::default()),
            ZonePlace::WithoutLog => None,
            ZonePlace::Votes | ZonePlace::Asynchronous => {
                end.zip(leader).map(|(end, (_, leader))| loss(leader, end))
            }
        };
        let missing_chunks = match place {
            ZonePlace::Asynchronous => layout.chunks_missing_on(|node| node.zone == zone),
            _ => 0,
        };
        ZoneReport { zone: zone.to_owned(), place, loss, missing_chunks }
    };
    zones.into_iter().map(report).collect()
}

fn place(layout: &Layout, zone: &str, home: Option<&str>) -> ZonePlace {
    let roles = |is_counted: &dyn Fn(&NodeEntry) -> bool| {
        let members = layout.members();
        let counted = layout.log_members().filter(|(_, node)| is_counted(node));
        counted.filter_map(|(id, _)| members.role(id)).collect::<Vec<MemberRole>>()
    };
    let votes = |roles: &[MemberRole]| roles.iter().filter(|role| role.votes()).count();
    let own = roles(&|node| node.zone == zone);
    if home == Some(zone) {
        return ZonePlace::Writes;
    }
    if own.is_empty() {
        return ZonePlace::WithoutLog;
    }
    if votes(&own) == 0 {
        return ZonePlace::Asynchronous;
    }
    let left = roles(&|node| Some(node.zone.as_str()) != home);
    let has_majority = votes(&left) * 2 > votes(&roles(&|_| true));
    match has_majority && left.contains(&MemberRole::Voter) {
        true => ZonePlace::Synchronous,
        false => ZonePlace::Votes,
    }
}

fn loss(leader: &LogStatus, end: Lsn) -> Loss {
    let bytes = leader.durable.0.saturating_sub(end.0);
    let ms = if bytes == 0 { 0 } else { age_ms(&leader.history, end) };
    Loss { bytes, ms }
}

#[cfg(test)]
mod tests;
