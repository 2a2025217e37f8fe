//! Log groups: their founding, and who leads them.

use std::collections::BTreeSet;

use firn_consensus::{MemberId, Members, Role, Term};

use super::Catalog;
use crate::group::{GroupMember, LogGroup, OrderedMembers};
use crate::identifiers::{Epoch, GroupId, NodeId};
use crate::node::{Node, NodeRole};
use crate::operation::{OperationKind, Reason};
use crate::refusal::Refusal;

/// The most members of a group.
const MOST_MEMBERS: usize = 15;
/// Numbers of members are below this one.
const MOST_NUMBER: u64 = 1 << 32;

impl Catalog {
    pub(super) fn found(
        &mut self,
        members: &[(NodeId, Role)],
        wanted_voters: u8,
        wanted_loggers: u8,
    ) -> Result<GroupId, Refusal> {
        let id = GroupId(self.next_group);
        let mut founders = std::collections::BTreeMap::new();
        for (place, (node, role)) in members.iter().enumerate() {
            self.check_may_be_member(id, *node, *role)?;
            if founders.values().any(|one: &GroupMember| one.node == *node) {
                return Err(Refusal::NodeTwice(*node));
            }
            founders.insert(MemberId(place as u64 + 1), GroupMember { node: *node, role: *role });
        }
        let group = new_group(founders, wanted_voters, wanted_loggers)?;
        self.next_group += 1;
        let waiting = group.members.values().map(|member| member.node).collect();
        self.groups.insert(id, group);
        let operation = self.begin(OperationKind::FoundGroup { group: id, waiting }, Reason::Asked);
        self.groups.get_mut(&id).expect("just added").operation = Some(operation);
        Ok(id)
    }

    /// Has the group grow or shrink, one member at a time, as nodes allow it.
    pub(super) fn resize(&mut self, id: GroupId, voters: u8, loggers: u8) -> Result<(), Refusal> {
        if id == GroupId::CONTROL && loggers > 0 {
            return Err(Refusal::Setting("control nodes all vote and may lead"));
        }
        check_size(usize::from(voters), usize::from(voters) + usize::from(loggers))?;
        let group = self.groups.get_mut(&id).ok_or(Refusal::NoGroup(id))?;
        (group.wanted_voters, group.wanted_loggers) = (voters, loggers);
        Ok(())
    }

    /// Whether a node has what a member of the group with that role needs.
    pub(super) fn check_may_be_member(
        &self,
        group: GroupId,
        node: NodeId,
        role: Role,
    ) -> Result<(), Refusal> {
        let known = self.node(node)?;
        if may_be_member(known, group, role) {
            return Ok(());
        }
        let lacks = match role {
            Role::Learner if !known.has(NodeRole::Standby) => NodeRole::Standby,
            _ if role.votes() && known.has(NodeRole::Standby) => {
                return Err(Refusal::StandbyVotes { name: known.name.clone() });
            }
            _ if group == GroupId::CONTROL => NodeRole::Control,
            Role::Logger => NodeRole::Logger,
            Role::Voter | Role::Learner => NodeRole::LogMember,
        };
        Err(Refusal::LacksRole { name: known.name.clone(), role: lacks })
    }

    pub(super) fn led(&mut self, id: GroupId, term: Term, member: MemberId) -> Result<(), Refusal> {
        let group = self.groups.get_mut(&id).ok_or(Refusal::NoGroup(id))?;
        if term < group.term || (term == group.term && group.writer.is_some_and(|w| w != member)) {
            return Err(Refusal::OldTerm { term, newest: group.term });
        }
        // A newcomer may lead before the catalog hears that it votes.
        let becomes = group.operation.and_then(|operation| self.operations.get(&operation));
        let becomes_voter = becomes.is_some_and(|operation| match &operation.kind {
            OperationKind::ChangeMember(one) => {
                one.add.is_some_and(|new| new.member == member && new.role == Role::Voter)
            }
            _ => false,
        });
        let known = group.members.get(&member);
        if known.is_none_or(|known| known.role != Role::Voter && !becomes_voter) {
            return Err(Refusal::CannotLead(id));
        }
        (group.term, group.writer) = (term, Some(member));
        Ok(())
    }

    pub(crate) fn group(&self, id: GroupId) -> Result<&LogGroup, Refusal> {
        self.groups.get(&id).ok_or(Refusal::NoGroup(id))
    }

    pub(super) fn check_groups(&self) -> Option<&'static str> {
        let mut groups = self.groups.values();
        let all = groups.all(|group| {
            let nodes: BTreeSet<_> = group.members.values().map(|member| member.node).collect();
            nodes.len() == group.members.len()
                && nodes.iter().all(|node| self.nodes.contains_key(node))
                && group.members.keys().all(|id| (1..group.next_member).contains(&id.0))
                && group.writer.is_none_or(|writer| group.members.contains_key(&writer))
                && group.count(Role::Voter) > 0
                && group.members.len() <= 2 * MOST_MEMBERS
                && group.next_member < u64::MAX / 2
                && group.epoch.0 < u64::MAX / 2
        });
        (!all).then_some("a group has members that cannot be")
    }
}

/// A group that nobody leads yet.
pub(super) fn new_group(
    members: OrderedMembers,
    wanted_voters: u8,
    wanted_loggers: u8,
) -> Result<LogGroup, Refusal> {
    Members::new(members.iter().map(|(id, member)| (*id, member.role)))?;
    let wanted = usize::from(wanted_voters) + usize::from(wanted_loggers);
    let last = members.keys().next_back().map_or(0, |member| member.0);
    check_size(usize::from(wanted_voters), wanted.max(members.len()))?;
    if last >= MOST_NUMBER {
        return Err(Refusal::Setting("members have numbers below 2^32"));
    }
    Ok(LogGroup {
        next_member: last + 1,
        members,
        wanted_voters,
        wanted_loggers,
        term: Term(0),
        writer: None,
        epoch: Epoch(1),
        operation: None,
    })
}

fn check_size(voters: usize, members: usize) -> Result<(), Refusal> {
    match voters == 0 || members > MOST_MEMBERS {
        true => Err(Refusal::Setting("a group has 1 to 15 members, one of them a voter")),
        false => Ok(()),
    }
}

/// Whether a node has what a member of the group with that role needs.
pub(crate) fn may_be_member(node: &Node, group: GroupId, role: Role) -> bool {
    let has_engine = node.has(NodeRole::Database) || node.has(NodeRole::LogMember);
    match role {
        Role::Learner => node.has(NodeRole::Standby) && (has_engine || node.has(NodeRole::Logger)),
        // No commit and no election waits for a standby.
        _ if node.has(NodeRole::Standby) => false,
        _ if group == GroupId::CONTROL => node.has(NodeRole::Control),
        Role::Logger => node.has(NodeRole::Logger),
        Role::Voter => has_engine,
    }
}
