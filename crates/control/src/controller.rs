//! The controller of one control node: events in, commands out.
//!
//! It has the node's copy of the catalog. While the node leads the control group, it also listens
//! to heartbeats, proposes what the [`crate::plan`] and the failure detector find, and sends the
//! orders that are outstanding until they are acknowledged. What it remembers besides the catalog
//! may be lost at any time: the next leader finds it out again.

mod reports;

use std::collections::BTreeMap;
use std::mem;

use firn_consensus::Term;

use crate::catalog::{Applied, Catalog};
use crate::detector::Detector;
use crate::identifiers::{ClusterId, NodeId, OperationId};
use crate::message::{ControlMessage, NodeMessage, Progress, ToControl, ToNode};
use crate::node::{Health, NodeState};
use crate::operation::{OperationKind, Reason};
use crate::order::{Order, OrderNumber, orders};
use crate::planner::plan;
use crate::proposal::Proposal;
use crate::refusal::Refusal;

/// What the process has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Append the proposal to the control group's log. It may be lost; the controller asks again.
    Propose(Proposal),
    Send(NodeId, ToNode),
}

/// Why a message is not processed. The sender gets the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    #[error("this control node does not lead; ask another one")]
    NotLeader,
    #[error("node {node} is of cluster {theirs}, and this is cluster {ours}")]
    OtherCluster { node: NodeId, theirs: ClusterId, ours: ClusterId },
    #[error(
        "node {0} was removed from the cluster. Give it an empty directory, and let it join again"
    )]
    Removed(NodeId),
    #[error("there is no node {0} in the cluster. Let it join with an empty directory")]
    Unknown(NodeId),
    /// The node has to say that it has started.
    #[error("start {0} of the node is not the one that the catalog knows")]
    OtherStart(u64),
}

/// An operation that is under way, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationStatus {
    pub operation: OperationId,
    /// What it does, and at which step it is.
    pub text: String,
    pub reason: Reason,
    /// `None` if it is not about bytes, or nothing has been heard yet.
    pub progress: Option<Progress>,
    /// Why it does not go on, if that is known.
    pub waits_for: Option<String>,
}

/// A proposal that was made, and is not in the catalog yet.
#[derive(Debug, Clone, Copy)]
struct Pending {
    made: u64,
    /// It begins an operation, so the next plan waits for it.
    is_planned: bool,
}

/// The controller of one control node. See the module's page.
pub struct Controller {
    catalog: Catalog,
    /// The term that the node leads in.
    term: Option<Term>,
    ticks: u64,
    detector: Detector,
    /// By their bytes.
    proposed: BTreeMap<Vec<u8>, Pending>,
    /// Orders that are outstanding, and when they were sent last.
    sent: BTreeMap<(NodeId, OrderNumber), (Order, u64)>,
    /// The entries of the catalog when the planner last looked at it, and when that was.
    planned: Option<(u64, u64)>,
    progress: BTreeMap<OperationId, Progress>,
    /// The step of an upgrade that restarts a node, and when it was first seen.
    restarting: Option<((OperationId, u32), u64)>,
    commands: Vec<Command>,
}

impl Controller {
    /// The controller of a node that follows, and whose catalog is this one.
    #[must_use]
    pub fn new(catalog: Catalog) -> Controller {
        Controller {
            catalog,
            term: None,
            ticks: 0,
            detector: Detector::default(),
            proposed: BTreeMap::new(),
            sent: BTreeMap::new(),
            planned: None,
            progress: BTreeMap::new(),
            restarting: None,
            commands: Vec::new(),
        }
    }

    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The term in which the node leads.
    #[must_use]
    pub fn leads(&self) -> Option<Term> {
        self.term
    }

    /// The commands since the last call, to carry out in this order.
    #[must_use]
    pub fn take_commands(&mut self) -> Vec<Command> {
        mem::take(&mut self.commands)
    }

    /// The node leads the control group, and has applied all entries of earlier terms.
    pub fn lead(&mut self, term: Term) {
        self.follow();
        self.term = Some(term);
        self.send_orders();
    }

    /// Another node leads, or nobody.
    pub fn follow(&mut self) {
        self.term = None;
        self.detector = Detector::default();
        self.proposed.clear();
        self.sent.clear();
        self.planned = None;
        self.progress.clear();
        self.restarting = None;
        self.commands.clear();
    }

    /// Time passes: call it at a steady rate.
    pub fn tick(&mut self) {
        self.ticks += 1;
        if self.term.is_none() {
            return;
        }
        let repeat = u64::from(self.catalog.settings().repeat_ticks);
        let now = self.ticks;
        self.proposed.retain(|_, one| now - one.made < repeat);
        for proposal in self.detector.decide(&self.catalog, now) {
            self.propose(proposal);
        }
        self.watch_upgrade();
        self.plan();
        self.send_orders();
    }

    /// Takes the next entry of the control group's log.
    ///
    /// # Errors
    /// If the catalog refuses it, as on all control nodes.
    pub fn apply(&mut self, proposal: &Proposal) -> Result<Applied, Refusal> {
        let applied = self.catalog.apply(proposal);
        if self.term.is_some() {
            self.proposed.remove(&proposal.encode());
            self.send_orders();
        }
        applied
    }

    /// Takes a snapshot in the place of the catalog, on a node that was away for too long.
    pub fn restore(&mut self, catalog: Catalog) {
        self.follow();
        self.catalog = catalog;
    }

    /// Takes a message of a node.
    ///
    /// # Errors
    /// If the node is not one of this cluster, or this node does not lead.
    pub fn receive(&mut self, message: &ToControl) -> Result<(), ReceiveError> {
        let (node, ours) = (message.node, self.catalog.cluster());
        if message.cluster != ours {
            return Err(ReceiveError::OtherCluster { node, theirs: message.cluster, ours });
        }
        let term = self.term.ok_or(ReceiveError::NotLeader)?;
        let Some(known) = self.catalog.nodes().get(&node) else {
            return match self.catalog.node_state(node) {
                Some(NodeState::Removed) => Err(ReceiveError::Removed(node)),
                _ => Err(ReceiveError::Unknown(node)),
            };
        };
        if known.incarnation != message.incarnation {
            return Err(ReceiveError::OtherStart(message.incarnation));
        }
        match &message.body {
            NodeMessage::Heartbeat(heartbeat) => {
                let (settings, now) = (self.catalog.settings(), self.ticks);
                self.detector.heard(node, &heartbeat.unreachable, settings, now);
                self.take_report(node, heartbeat);
                let entries = self.catalog.entries();
                self.send(node, term, ControlMessage::Heard { entries });
            }
            NodeMessage::Acknowledgement { number, position } => {
                self.take_acknowledgement(node, *number, *position);
            }
        }
        Ok(())
    }

    fn take_acknowledgement(
        &mut self,
        node: NodeId,
        number: OrderNumber,
        position: firn_base::Lsn,
    ) {
        let operation = self.catalog.operations().get(&number.operation);
        let awaited = operation.is_some_and(|one| one.step == number.step) && number.part == 0;
        if awaited {
            let (operation, step) = (number.operation, number.step);
            self.propose(Proposal::Acknowledge { operation, step, node, position });
        }
    }

    fn send(&mut self, node: NodeId, term: Term, body: ControlMessage) {
        let message = ToNode { cluster: self.catalog.cluster(), term, body };
        self.commands.push(Command::Send(node, message));
    }

    /// Proposes it, unless the same proposal is under way.
    fn propose(&mut self, proposal: Proposal) {
        self.propose_once(proposal, false);
    }

    fn propose_once(&mut self, proposal: Proposal, is_planned: bool) {
        let bytes = proposal.encode();
        if !self.proposed.contains_key(&bytes) {
            self.proposed.insert(bytes, Pending { made: self.ticks, is_planned });
            self.commands.push(Command::Propose(proposal));
        }
    }

    /// Plans what is wanting, once everything that was planned before is in the catalog.
    fn plan(&mut self) {
        let entries = self.catalog.entries();
        let repeat = u64::from(self.catalog.settings().repeat_ticks);
        let is_new =
            self.planned.is_none_or(|(seen, when)| seen != entries || self.ticks - when >= repeat);
        if !is_new || self.proposed.values().any(|one| one.is_planned) {
            return;
        }
        self.planned = Some((entries, self.ticks));
        for proposal in plan(&self.catalog) {
            self.propose_once(proposal, true);
        }
    }

    /// Sends the orders that are new or have changed, and those that were not acknowledged for
    /// a while.
    fn send_orders(&mut self) {
        let Some(term) = self.term else { return };
        let repeat = u64::from(self.catalog.settings().repeat_ticks);
        let mut outstanding = BTreeMap::new();
        for order in orders(&self.catalog) {
            if self.catalog.is_down(order.node) {
                continue;
            }
            let key = (order.node, order.number);
            let before = self.sent.remove(&key).filter(|(sent, _)| *sent == order);
            let due = before.as_ref().is_none_or(|(_, when)| self.ticks - when >= repeat);
            let when = if due { self.ticks } else { before.map_or(self.ticks, |(_, when)| when) };
            if due {
                self.send(order.node, term, ControlMessage::Order(order.clone()));
            }
            outstanding.insert(key, (order, when));
        }
        self.sent = outstanding;
    }

    /// Stops an upgrade whose node does not come back.
    fn watch_upgrade(&mut self) {
        let running = self.catalog.operations().iter().find_map(|(id, one)| match &one.kind {
            OperationKind::Upgrade(upgrade) if upgrade.restarting && !upgrade.stopped => {
                Some((*id, one.step))
            }
            _ => None,
        });
        let Some(step) = running else {
            self.restarting = None;
            return;
        };
        let since = match self.restarting {
            Some((seen, since)) if seen == step => since,
            _ => self.ticks,
        };
        self.restarting = Some((step, since));
        if self.ticks - since >= u64::from(self.catalog.settings().upgrade_ticks) {
            self.propose(Proposal::StopUpgrade { operation: step.0 });
        }
    }

    /// The operations that are under way, for `firn cluster status`.
    #[must_use]
    pub fn operation_statuses(&self) -> Vec<OperationStatus> {
        let status = |(id, one): (&OperationId, &crate::Operation)| OperationStatus {
            operation: *id,
            text: one.kind.to_string(),
            reason: one.reason,
            progress: self.progress_of(*id, &one.kind),
            waits_for: self.waits_for(&one.kind),
        };
        self.catalog.operations().iter().map(status).collect()
    }

    fn progress_of(&self, id: OperationId, kind: &OperationKind) -> Option<Progress> {
        if let OperationKind::Drain { node } = kind {
            return Some(self.drained(*node));
        }
        self.progress.get(&id).copied()
    }

    /// What is left on a node that is drained, as a part of what it and the moves from it have.
    fn drained(&self, node: NodeId) -> Progress {
        let left = self.catalog.chunks_on(node).fold(0_u64, |sum, (_, one)| sum + one.bytes);
        let moving =
            self.catalog.operations().iter().filter(|(_, one)| {
                one.kind.replica_move().is_some_and(|one| one.from == Some(node))
            });
        let done = moving.filter_map(|(id, _)| Some(self.progress.get(id)?.done)).sum();
        Progress { done, total: left }
    }

    fn waits_for(&self, kind: &OperationKind) -> Option<String> {
        match kind {
            OperationKind::Upgrade(one) if !one.restarting => self.catalog.obstacle(),
            OperationKind::ChangeMember(one) => {
                let group = self.catalog.groups().get(&one.group)?;
                group.writer.is_none().then(|| format!("log group {} has no leader", one.group))
            }
            _ => {
                let waiting = self.sent.values().map(|(order, _)| order.node);
                let late = waiting.filter(|node| {
                    self.catalog.nodes().get(node).is_some_and(|node| node.health != Health::Up)
                });
                let late = late.filter(|node| kind.brings_to(*node)).min()?;
                let node = &self.catalog.nodes()[&late];
                Some(format!("node {} is {}", node.name, node.state()))
            }
        }
    }
}

#[cfg(test)]
mod tests;
