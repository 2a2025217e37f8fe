//! Whether a zone can take over, and with what: decided from a survey, without I/O.

use std::collections::BTreeSet;

use firn_base::Lsn;
use firn_base::network::{NodeId, Role};

use super::TakeOverOrder;
use crate::layout::{Layout, NodeEntry};
use crate::message::{LogStatus, NodeStatus};
use crate::survey::Survey;
use crate::zones::{ZonePlace, zones};

/// How a zone takes over.
#[derive(Debug, Clone)]
pub struct TakeOver {
    pub(crate) order: TakeOverOrder,
    /// The names of the nodes that go on.
    pub nodes: Vec<String>,
    /// The node that writes then.
    pub leader: String,
    /// The end of its log: what was committed behind it is lost.
    pub end: Lsn,
}

impl TakeOver {
    /// The cluster of the nodes that go on.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.order.layout
    }
}

/// Why a zone does not take over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTakeOver {
    #[error("no node is in zone '{zone}'; there are {}", known.join(", "))]
    Unknown { zone: String, known: Vec<String> },
    #[error(
        "{node} writes, so nothing has to be taken over: if another node is to write, use firn cluster switch; if {zone} is to be left, stop its nodes first"
    )]
    Writes { node: String, zone: String },
    #[error(
        "zone '{0}' votes, and has a majority with others: a node of them is elected without being told"
    )]
    Elects(String),
    #[error("no node of zone '{zone}' that answers has {what}")]
    Lacks { zone: String, what: &'static str },
    #[error(
        "{node} has pages of log up to {position}, and no log of the zone goes further than {end}; start the node with that log, or give the pages up: stop {node}"
    )]
    Ahead { node: String, position: Lsn, end: Lsn },
}

/// Plans the take-over by a zone.
///
/// # Errors
/// Why it does not.
pub fn plan(survey: &Survey, zone: &str) -> Result<TakeOver, NoTakeOver> {
    let layout = &survey.layout;
    if !layout.nodes().any(|node| node.zone == zone) {
        let known: BTreeSet<String> = layout.nodes().map(|node| node.zone.clone()).collect();
        return Err(NoTakeOver::Unknown {
            zone: zone.to_owned(),
            known: known.into_iter().collect(),
        });
    }
    let told: Vec<(&NodeEntry, &NodeStatus)> = survey
        .nodes
        .iter()
        .filter_map(|one| Some((&one.node, one.status.as_ref().ok()?)))
        .collect();
    check_needed(survey, zone, &told)?;
    let there: Vec<_> = told.iter().filter(|(node, _)| node.zone == zone).copied().collect();
    let log_of = |(node, status): &(&NodeEntry, &NodeStatus)| {
        let log = status.log.as_ref().filter(|log| log.failure.is_none())?;
        node.has(Role::Database).then_some((log.end, node.number))
    };
    let lacks = |what| NoTakeOver::Lacks { zone: zone.to_owned(), what };
    let furthest = there.iter().filter_map(log_of).max();
    let (end, leader) = furthest.ok_or_else(|| lacks("the log and can run an engine"))?;
    check_pages(&there, end)?;
    let numbers: BTreeSet<NodeId> = there.iter().map(|(node, _)| node.number).collect();
    let after = layout.of_these(&numbers).map_err(lacks)?;
    let generation = told.iter().map(|(_, status)| status.generation).max().unwrap_or(0) + 1;
    let name = |number| layout.node(number).map_or_else(String::new, |node| node.name.clone());
    Ok(TakeOver {
        nodes: numbers.iter().map(|number| name(*number)).collect(),
        leader: name(leader),
        end,
        order: TakeOverOrder { generation, layout: after, leader, position: end },
    })
}

/// Nobody writes, and nobody will be elected.
fn check_needed(
    survey: &Survey,
    zone: &str,
    told: &[(&NodeEntry, &NodeStatus)],
) -> Result<(), NoTakeOver> {
    let leads = |(_, status): &&(&NodeEntry, &NodeStatus)| {
        status.log.as_ref().is_some_and(|log: &LogStatus| log.leads.is_some())
    };
    if let Some((node, _)) = told.iter().find(leads) {
        let (node, zone) = (node.name.clone(), node.zone.clone());
        return Err(NoTakeOver::Writes { node, zone });
    }
    let members = survey.layout.members();
    let votes = |is_counted: &dyn Fn(NodeId) -> bool| {
        let counted = survey.layout.log_members().filter(|(_, node)| is_counted(node.number));
        counted.filter(|(id, _)| members.role(*id).is_some_and(|role| role.votes())).count()
    };
    let answers = |number: NodeId| told.iter().any(|(node, _)| node.number == number);
    let is_voting = zones(survey).iter().any(|one| {
        one.zone == zone && matches!(one.place, ZonePlace::Votes | ZonePlace::Synchronous)
    });
    match is_voting && votes(&answers) * 2 > votes(&|_| true) {
        true => Err(NoTakeOver::Elects(zone.to_owned())),
        false => Ok(()),
    }
}

/// Pages that include log which is lost would contradict what is written from now on.
fn check_pages(there: &[(&NodeEntry, &NodeStatus)], end: Lsn) -> Result<(), NoTakeOver> {
    for (node, status) in there {
        let received = status.pages.as_ref().filter(|pages| pages.is_open);
        if let Some(pages) = received.filter(|pages| pages.received > end) {
            let (node, position) = (node.name.clone(), pages.received);
            return Err(NoTakeOver::Ahead { node, position, end });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
