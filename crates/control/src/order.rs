//! Orders: what control tells nodes to do.
//!
//! [`orders`] reads the outstanding orders from the catalog, so a new leader of the control group
//! sends the same ones. An order is sent until its acknowledgement is in the catalog, so nodes get
//! it more than once, and late. This does no harm:
//!
//! 1. An order about a chunk or about members carries an [`Epoch`]. A node that has seen a later
//!    epoch of it refuses the order.
//! 2. An order says how things should be, not what to change. A node that is there already
//!    acknowledges it again.
//! 3. An acknowledgement names the operation and its step. It counts while the operation is at that
//!    step.

use firn_base::{Extents, Lsn, PageNo, SpaceId};
use firn_consensus::{MemberId, Role, Term};
use serde::{Deserialize, Serialize};

use crate::catalog::Catalog;
use crate::chunk::{Chunk, ReplicaState};
use crate::group::{GroupMember, LogGroup, OrderedMembers};
use crate::identifiers::{ChunkId, Epoch, FIRST_EPOCH, GroupId, NodeId, OperationId};
use crate::node::Release;
use crate::operation::{
    Division, MemberMove, MemberPhase, MovePhase, Operation, OperationKind, ReplicaMove, Upgrade,
};

/// Identifies an order to a node.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct OrderNumber {
    /// 0 for orders that wait for no acknowledgement.
    pub operation: OperationId,
    pub step: u32,
    /// 0 for the order that ends the step, others for those that help it.
    pub part: u8,
}

/// Something for one node to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub number: OrderNumber,
    pub node: NodeId,
    pub action: Action,
}

/// What a node does. The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Make the log of a new group, as `member`.
    FoundGroup { group: GroupId, member: MemberId, members: OrderedMembers },
    /// Make an empty log, and wait for the group's leader.
    JoinGroup { group: GroupId, member: MemberId, members: OrderedMembers },
    /// To the leader of `term`: make the group's members these. Done when the change is durable.
    SetMembers { group: GroupId, term: Term, epoch: Epoch, members: OrderedMembers },
    /// Done when the member's log is near the durable position.
    CatchUp { group: GroupId, member: MemberId },
    /// To the leader of `term`: let another member lead. The catalog hears of it from that one.
    HandOver { group: GroupId, term: Term, to: MemberId },
    /// Delete the log of a member that is in the group no more.
    LeaveGroup { group: GroupId, member: MemberId },
    /// Make a chunk that has no pages before `position`.
    CreateChunk { chunk: ChunkId, epoch: Epoch, range: ChunkRange, position: Lsn },
    /// Fetch a chunk from one of these nodes, the first if it answers, or from the object store if
    /// there is none. Done when the log has been applied until near the durable position.
    CopyChunk { chunk: ChunkId, epoch: Epoch, range: ChunkRange, sources: Vec<NodeId> },
    /// Answer readers.
    ServeChunk { chunk: ChunkId, epoch: Epoch },
    /// Delete a chunk.
    RetireChunk { chunk: ChunkId, epoch: Epoch },
    /// From the page `at` on, the chunk's pages are those of another chunk.
    SplitChunk { chunk: ChunkId, upper: ChunkId, at: PageNo, epoch: Epoch },
    /// Start this release.
    Upgrade { release: Release },
    /// To the leader of `term`: let another member lead, once transactions have ended. The catalog
    /// hears of it from that one. An acknowledgement says that it does not.
    Switch { group: GroupId, term: Term, to: MemberId },
    /// Copy a part of the chunk `of`, which the node has, as a separate chunk. Done as a copy.
    CopyPart { of: ChunkId, chunk: ChunkId, epoch: Epoch, range: ChunkRange, extents: Extents },
}

impl Action {
    /// The group that it is about, if it is about one.
    #[must_use]
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Action::FoundGroup { group, .. }
            | Action::JoinGroup { group, .. }
            | Action::SetMembers { group, .. }
            | Action::CatchUp { group, .. }
            | Action::HandOver { group, .. }
            | Action::LeaveGroup { group, .. }
            | Action::Switch { group, .. } => Some(*group),
            Action::CreateChunk { .. }
            | Action::CopyChunk { .. }
            | Action::ServeChunk { .. }
            | Action::RetireChunk { .. }
            | Action::SplitChunk { .. }
            | Action::CopyPart { .. }
            | Action::Upgrade { .. } => None,
        }
    }
}

/// The pages of a chunk, and the log that makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkRange {
    pub space: SpaceId,
    pub first: PageNo,
    pub end: PageNo,
    pub group: GroupId,
}

impl Chunk {
    fn range(&self) -> ChunkRange {
        ChunkRange { space: self.space, first: self.first, end: self.end, group: self.group }
    }
}

/// All orders that are outstanding, in the order of their operations.
#[must_use]
pub fn orders(catalog: &Catalog) -> Vec<Order> {
    let mut all = Vec::new();
    for (id, operation) in catalog.operations() {
        let mut writer = OrderWriter { id: *id, step: operation.step, orders: &mut all };
        writer.write(catalog, operation);
    }
    all
}

/// The order to delete a chunk that a node has and should not have.
#[must_use]
pub fn retire_stray(node: NodeId, chunk: ChunkId, epoch: Epoch) -> Order {
    let number = OrderNumber { operation: OperationId(0), step: 0, part: 0 };
    Order { number, node, action: Action::RetireChunk { chunk, epoch } }
}

/// Adds the orders of one operation.
struct OrderWriter<'a> {
    id: OperationId,
    step: u32,
    orders: &'a mut Vec<Order>,
}

impl OrderWriter<'_> {
    fn add(&mut self, part: u8, node: NodeId, action: Action) {
        let number = OrderNumber { operation: self.id, step: self.step, part };
        self.orders.push(Order { number, node, action });
    }

    fn write(&mut self, catalog: &Catalog, operation: &Operation) {
        match &operation.kind {
            OperationKind::FoundGroup { group, waiting } => {
                let founded = &catalog.groups()[group];
                for node in waiting {
                    let Some(member) = founded.member_on(*node) else { continue };
                    let members = founded.members.clone();
                    self.add(0, *node, Action::FoundGroup { group: *group, member, members });
                }
            }
            OperationKind::CreateChunk { chunk: id, waiting } => {
                let chunk = &catalog.chunks()[id];
                for node in waiting {
                    let position = chunk.replicas[node].position;
                    let (epoch, range) = (chunk.epoch, chunk.range());
                    let action = Action::CreateChunk { chunk: *id, epoch, range, position };
                    self.add(0, *node, action);
                }
            }
            OperationKind::MoveReplica(one) => self.replica(catalog, one),
            OperationKind::SplitChunk { chunk, upper, waiting } => {
                let above = &catalog.chunks()[upper];
                let (at, epoch) = (above.first, above.epoch);
                for node in waiting {
                    let action = Action::SplitChunk { chunk: *chunk, upper: *upper, at, epoch };
                    self.add(0, *node, action);
                }
            }
            OperationKind::DivideChunk(one) => self.division(catalog, one),
            OperationKind::ChangeMember(one) => self.member(catalog, one),
            OperationKind::Drain { .. } => {}
            OperationKind::Upgrade(one) => self.upgrade(catalog, one),
            OperationKind::Switch(one) => {
                let group = &catalog.groups()[&one.group];
                if let Some(node) = group.writer_node() {
                    let (group, term, to) = (one.group, group.term, one.to);
                    self.add(0, node, Action::Switch { group, term, to });
                }
            }
        }
    }

    fn replica(&mut self, catalog: &Catalog, one: &ReplicaMove) {
        let chunk = &catalog.chunks()[&one.chunk];
        let (id, epoch) = (one.chunk, chunk.epoch);
        match one.phase {
            MovePhase::Copy => {
                let sources = sources(catalog, chunk, one.from);
                let action = Action::CopyChunk { chunk: id, epoch, range: chunk.range(), sources };
                self.add(0, one.to, action);
            }
            MovePhase::Serve => self.add(0, one.to, Action::ServeChunk { chunk: id, epoch }),
            MovePhase::Retire => {
                let Some(from) = one.from else { return };
                // Nothing is deleted while nobody else is known to have it.
                let mut others = chunk.nodes_in(ReplicaState::InService);
                if others.any(|node| node != from && catalog.nodes()[&node].is_up()) {
                    self.add(0, from, Action::RetireChunk { chunk: id, epoch });
                }
            }
        }
    }

    fn division(&mut self, catalog: &Catalog, one: &Division) {
        let range = ChunkRange { first: one.at, ..catalog.chunks()[&one.chunk].range() };
        let (of, chunk, epoch) = (one.chunk, one.upper, FIRST_EPOCH);
        for node in &one.waiting {
            let extents = catalog.extents();
            self.add(0, *node, Action::CopyPart { of, chunk, epoch, range, extents });
        }
    }

    fn member(&mut self, catalog: &Catalog, one: &MemberMove) {
        let (id, group) = (one.group, &catalog.groups()[&one.group]);
        match one.phase {
            MemberPhase::Learn => {
                let Some(new) = one.add else { return };
                let learner = GroupMember { node: new.node, role: Role::Learner };
                let mut members = group.members.clone();
                members.insert(new.member, learner);
                let (member, joined) = (new.member, members.clone());
                self.add(1, new.node, Action::JoinGroup { group: id, member, members: joined });
                self.set_members(id, group, members);
            }
            MemberPhase::CatchUp => {
                let Some(new) = one.add else { return };
                let (member, members) = (new.member, group.members.clone());
                self.add(1, new.node, Action::JoinGroup { group: id, member, members });
                self.add(0, new.node, Action::CatchUp { group: id, member });
            }
            MemberPhase::Change => self.change(catalog, one, group),
            MemberPhase::Undo => {
                let mut members = group.members.clone();
                if let Some(new) = one.add {
                    members.remove(&new.member);
                }
                self.set_members(id, group, members);
            }
            MemberPhase::Leave { member, node } => {
                self.add(0, node, Action::LeaveGroup { group: id, member });
            }
        }
    }

    /// A leader that leaves the group hands over first. A change after which no majority is heard
    /// waits.
    fn change(&mut self, catalog: &Catalog, one: &MemberMove, group: &LogGroup) {
        let up = |node: NodeId| catalog.nodes()[&node].is_up();
        if group.writer.is_some() && group.writer == one.remove {
            let successor = group.members.iter().find(|(id, member)| {
                Some(**id) != one.remove && member.role == Role::Voter && up(member.node)
            });
            if let Some((to, _)) = successor {
                return self.hand_over(one.group, group, *to);
            }
        }
        let members = one.members_after(group);
        let voters = || members.values().filter(|member| member.role.votes());
        let heard = voters().filter(|member| up(member.node)).count();
        if heard * 2 > voters().count() {
            self.set_members(one.group, group, members);
        }
    }

    fn hand_over(&mut self, id: GroupId, group: &LogGroup, to: MemberId) {
        if let Some(leader) = group.writer_node() {
            self.add(1, leader, Action::HandOver { group: id, term: group.term, to });
        }
    }

    fn set_members(&mut self, id: GroupId, group: &LogGroup, members: OrderedMembers) {
        if let Some(leader) = group.writer_node() {
            let (term, epoch) = (group.term, group.epoch);
            self.add(0, leader, Action::SetMembers { group: id, term, epoch, members });
        }
    }

    fn upgrade(&mut self, catalog: &Catalog, one: &Upgrade) {
        let Some(node) = one.node.filter(|_| !one.stopped) else { return };
        if one.restarting {
            return self.add(0, node, Action::Upgrade { release: one.release });
        }
        for (id, group) in catalog.groups() {
            if let Some(to) = catalog.successor(group, node, one.release) {
                self.hand_over(*id, group, to);
            }
        }
    }
}

impl MemberMove {
    /// The members of the group when the change is done.
    pub(crate) fn members_after(&self, group: &LogGroup) -> OrderedMembers {
        let mut members = group.members.clone();
        if let Some(new) = self.add {
            members.insert(new.member, GroupMember { node: new.node, role: new.role });
        }
        if let Some(member) = self.remove {
            members.remove(&member);
        }
        members
    }
}

/// The nodes that a copy can be fetched from: those that are up first, and the one that gives its
/// replica away before the others.
fn sources(catalog: &Catalog, chunk: &Chunk, from: Option<NodeId>) -> Vec<NodeId> {
    let mut nodes: Vec<_> = chunk.nodes_in(ReplicaState::InService).collect();
    nodes.sort_by_key(|node| (!catalog.nodes()[node].is_up(), Some(*node) != from, *node));
    nodes
}
