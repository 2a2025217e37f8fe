//! Nodes that are emptied, and a cluster that gets another release.

use firn_consensus::{MemberId, Role};

use super::Catalog;
use crate::chunk::ReplicaState;
use crate::group::LogGroup;
use crate::identifiers::{NodeId, OperationId};
use crate::node::{Health, NodeRole, Release};
use crate::operation::{OperationKind, Outcome, Reason, Upgrade};
use crate::refusal::Refusal;

impl Catalog {
    /// Begins to empty a node, or ends that.
    pub(super) fn drain(&mut self, id: NodeId, on: bool) -> Result<OperationId, Refusal> {
        let node = self.node(id)?;
        if on && node.has(NodeRole::Page) && !self.chunks.is_empty() {
            self.check_pages_left(id)?;
        }
        let running = self.operations.iter().find_map(|(operation, one)| {
            (one.kind == OperationKind::Drain { node: id }).then_some(*operation)
        });
        let node = self.nodes.get_mut(&id).expect("looked up above");
        node.draining = on;
        match (on, running) {
            (true, Some(running)) => Ok(running),
            (true, None) => Ok(self.begin(OperationKind::Drain { node: id }, Reason::Asked)),
            (false, running) => {
                let running = running.unwrap_or_default();
                self.end(running, Outcome::Cancelled);
                Ok(running)
            }
        }
    }

    /// The other page nodes have to be enough for all replicas.
    fn check_pages_left(&self, id: NodeId) -> Result<(), Refusal> {
        let left = self
            .nodes
            .iter()
            .filter(|(other, node)| **other != id && node.has(NodeRole::Page) && !node.draining);
        let (left, wanted) = (left.count(), self.replicas());
        if left < wanted {
            let name = self.nodes[&id].name.clone();
            return Err(Refusal::TooFewLeft { name, left, wanted });
        }
        Ok(())
    }

    pub(super) fn settle_drain(&mut self, id: OperationId, node: NodeId) -> bool {
        let outcome = if !self.nodes.contains_key(&node) {
            Outcome::Failed
        } else if self.is_empty(node) {
            Outcome::Done
        } else {
            return false;
        };
        self.end(id, outcome);
        true
    }

    /// Whether the node has nothing, and nothing is about to come.
    #[must_use]
    pub fn is_empty(&self, node: NodeId) -> bool {
        self.chunks_on(node).next().is_none()
            && self.groups.values().all(|group| group.member_on(node).is_none())
            && !self.operations.values().any(|operation| operation.kind.brings_to(node))
    }

    pub(super) fn upgrade(&mut self, release: Release) -> Result<OperationId, Refusal> {
        self.check_release(&release, None)?;
        let running = self.operations.iter().find_map(|(id, operation)| match &operation.kind {
            OperationKind::Upgrade(one) => Some((*id, *one)),
            _ => None,
        });
        match running {
            Some((id, one)) if one.release == release && !one.stopped => return Ok(id),
            Some((id, one)) if !one.stopped => return Err(Refusal::Busy(id)),
            Some((id, _)) => self.end(id, Outcome::Failed),
            None => {}
        }
        let one = Upgrade { release, node: None, restarting: false, stopped: false };
        Ok(self.begin(OperationKind::Upgrade(one), Reason::Asked))
    }

    /// A node did not come back in time.
    pub(super) fn stop_upgrade(&mut self, id: OperationId) -> Result<(), Refusal> {
        let operation = self.operations.get(&id).ok_or(Refusal::NoOperation(id))?;
        let OperationKind::Upgrade(mut one) = operation.kind.clone() else {
            return Err(Refusal::NoOperation(id));
        };
        one.stopped = true;
        self.go_on(id, OperationKind::Upgrade(one));
        Ok(())
    }

    pub(super) fn settle_upgrade(&mut self, id: OperationId, mut one: Upgrade) -> bool {
        if one.stopped {
            return false;
        }
        let node = one.node.filter(|node| self.nodes.contains_key(node));
        match node {
            Some(node) if one.restarting => {
                let known = &self.nodes[&node];
                if known.release != one.release || !known.is_up() {
                    return false;
                }
                (one.node, one.restarting) = (None, false);
            }
            Some(node) => {
                let must_hand_over =
                    |group: &LogGroup| self.successor(group, node, one.release).is_some();
                if self.groups.values().any(must_hand_over) || self.obstacle().is_some() {
                    return false;
                }
                one.restarting = true;
            }
            None if self.obstacle().is_some() => return false,
            None => match self.next_to_upgrade(one.release) {
                Some(next) => (one.node, one.restarting) = (Some(next), false),
                None => {
                    self.end(id, Outcome::Done);
                    return true;
                }
            },
        }
        self.go_on(id, OperationKind::Upgrade(one));
        true
    }

    /// Page nodes first, then loggers, compute nodes and followers. A node that leads is last.
    fn next_to_upgrade(&self, release: Release) -> Option<NodeId> {
        let older = self.nodes.iter().filter(|(_, node)| node.release != release);
        older.map(|(id, _)| (self.upgrade_rank(*id), *id)).min().map(|(_, id)| id)
    }

    fn upgrade_rank(&self, id: NodeId) -> u8 {
        let roles = |group: &LogGroup| {
            let member = group.member_on(id)?;
            Some((group.members[&member].role, group.writer == Some(member)))
        };
        let rank = |(role, leads)| match role {
            _ if leads => 4,
            Role::Voter => 3,
            Role::Logger | Role::Learner => 1,
        };
        let ranks = self.groups.values().filter_map(roles).map(rank);
        let is_page = self.nodes.get(&id).is_some_and(|node| node.has(NodeRole::Page));
        ranks.max().unwrap_or(if is_page { 0 } else { 2 })
    }

    /// The member that should lead instead of the one on `node`, which does: best one that runs
    /// `release` already. `None` if the node does not lead, or nobody else can.
    pub(crate) fn successor(
        &self,
        group: &LogGroup,
        node: NodeId,
        release: Release,
    ) -> Option<MemberId> {
        if group.writer_node() != Some(node) {
            return None;
        }
        let voters = group.members.iter().filter(|(_, member)| {
            member.role == Role::Voter && member.node != node && self.is_up(member.node)
        });
        let ranked = voters.map(|(id, member)| (self.nodes[&member.node].release != release, *id));
        ranked.min().map(|(_, id)| id)
    }

    /// Why no node may be stopped now, for people. `None` if all is as it should be.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if let Some(node) = self.nodes.values().find(|node| node.health != Health::Up) {
            return Some(format!("node {} is {}", node.name, node.state()));
        }
        for (id, operation) in &self.operations {
            if !matches!(operation.kind, OperationKind::Drain { .. } | OperationKind::Upgrade(_)) {
                return Some(format!("operation {id} is under way: {}", operation.kind));
            }
        }
        if let Some((id, _)) = self.groups.iter().find(|(_, group)| group.writer.is_none()) {
            return Some(format!("log group {id} has no leader"));
        }
        for (id, chunk) in &self.chunks {
            let (has, wanted) = (chunk.nodes_in(ReplicaState::InService).count(), self.replicas());
            if has < wanted {
                return Some(format!("chunk {id} has {has} of {wanted} replicas"));
            }
        }
        None
    }

    /// How many replicas a chunk can have: as the settings say, or one for each page node.
    #[must_use]
    pub fn replicas(&self) -> usize {
        let pages = self.nodes.values().filter(|node| node.has(NodeRole::Page));
        usize::from(self.settings.replicas).min(pages.count()).max(1)
    }
}
