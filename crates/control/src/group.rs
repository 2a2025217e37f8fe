//! A log group: who keeps the log, and who writes it.

use std::collections::BTreeMap;

use firn_consensus::{MemberId, Role, Term};
use serde::{Deserialize, Serialize};

use crate::identifiers::{Epoch, NodeId, OperationId};

/// A member of a group. A node that joins a group again is another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    pub node: NodeId,
    pub role: Role,
}

/// The members of a group, as orders and a founding have them.
pub type OrderedMembers = BTreeMap<MemberId, GroupMember>;

/// A log group as the catalog has it. Consensus elects its leader; the catalog only records who it
/// is, and the newest term wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogGroup {
    pub members: BTreeMap<MemberId, GroupMember>,
    pub next_member: u64,
    /// How many voters with pages, and how many loggers, the group should have.
    pub wanted_voters: u8,
    pub wanted_loggers: u8,
    /// The newest term that was heard of. It fences the writers of all others.
    pub term: Term,
    /// The member that leads in `term`.
    pub writer: Option<MemberId>,
    /// Counts the changes of members.
    pub epoch: Epoch,
    /// The operation that changes the members. There is one at a time.
    pub operation: Option<OperationId>,
}

impl LogGroup {
    /// The member that runs on `node`.
    #[must_use]
    pub fn member_on(&self, node: NodeId) -> Option<MemberId> {
        self.members.iter().find(|(_, member)| member.node == node).map(|(id, _)| *id)
    }

    /// The node of the member that leads.
    #[must_use]
    pub fn writer_node(&self) -> Option<NodeId> {
        Some(self.members.get(&self.writer?)?.node)
    }

    /// The nodes of the members that vote.
    pub fn voting_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.members.values().filter(|member| member.role.votes()).map(|member| member.node)
    }

    /// How many members have `role`.
    #[must_use]
    pub fn count(&self, role: Role) -> usize {
        self.members.values().filter(|member| member.role == role).count()
    }

    /// How many members should have `role`.
    #[must_use]
    pub fn wanted(&self, role: Role) -> usize {
        match role {
            Role::Voter => usize::from(self.wanted_voters),
            Role::Logger => usize::from(self.wanted_loggers),
            Role::Learner => 0,
        }
    }
}
