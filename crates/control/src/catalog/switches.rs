//! A log group gets another leader because somebody asks for it.

use firn_consensus::{MemberId, Role};

use super::Catalog;
use crate::group::LogGroup;
use crate::identifiers::{GroupId, NodeId, OperationId};
use crate::operation::{OperationKind, Outcome, Reason, Switch};
use crate::refusal::Refusal;

impl Catalog {
    /// Begins to let another member lead: the one on that node, or any that can.
    pub(super) fn switch(
        &mut self,
        id: GroupId,
        to: Option<NodeId>,
    ) -> Result<OperationId, Refusal> {
        if id == GroupId::CONTROL {
            return Err(Refusal::ControlGroup);
        }
        let group = self.groups.get(&id).ok_or(Refusal::NoGroup(id))?;
        if let Some(operation) = group.operation {
            return Err(Refusal::Busy(operation));
        }
        let from = group.writer.ok_or(Refusal::NoLeader(id))?;
        let to = match to {
            Some(node) => self.leader_on(group, node)?,
            None => self.next_leader(group).ok_or(Refusal::NobodyElse(id))?,
        };
        let kind = OperationKind::Switch(Switch { group: id, from, to });
        let operation = self.begin(kind, Reason::Asked);
        self.groups.get_mut(&id).expect("looked up above").operation = Some(operation);
        Ok(operation)
    }

    /// The member on a node, if it may lead instead of the one that does.
    fn leader_on(&self, group: &LogGroup, id: NodeId) -> Result<MemberId, Refusal> {
        let node = self.node(id)?;
        let name = node.name.clone();
        if group.writer_node() == Some(id) {
            return Err(Refusal::LeadsAlready { name });
        }
        if !node.is_up() {
            return Err(Refusal::LeadsLater { name, state: node.state() });
        }
        let voter = group.member_on(id).filter(|one| group.members[one].role == Role::Voter);
        voter.ok_or(Refusal::MayNotLead { name })
    }

    /// A voter that is up and stays, best in the zone of the one that leads.
    fn next_leader(&self, group: &LogGroup) -> Option<MemberId> {
        let zone = |node: NodeId| self.nodes.get(&node).map(|node| &node.zone);
        let home = group.writer_node().and_then(zone);
        let voters = group.members.iter().filter(|(id, member)| {
            let stays = self.nodes.get(&member.node).is_some_and(|node| !node.draining);
            member.role == Role::Voter && Some(**id) != group.writer && stays
        });
        let voters = voters.filter(|(_, member)| self.is_up(member.node));
        voters.min_by_key(|(id, member)| (zone(member.node) != home, **id)).map(|(id, _)| *id)
    }

    pub(super) fn settle_switch(&mut self, id: OperationId, one: Switch) -> bool {
        let group = self.groups.get(&one.group);
        let may_lead = |group: &LogGroup| {
            let member = group.members.get(&one.to);
            member.is_some_and(|member| self.is_up(member.node))
        };
        let outcome = match group.map(|group| group.writer) {
            Some(Some(writer)) if writer == one.to => Outcome::Done,
            Some(Some(writer)) if writer != one.from => Outcome::Failed,
            _ if !group.is_some_and(may_lead) => Outcome::Failed,
            _ => return false,
        };
        self.end(id, outcome);
        true
    }
}
