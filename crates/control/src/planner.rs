//! The planner: which operations should begin now.
//!
//! [`plan`] reads the catalog alone and proposes what is wanting, the most urgent first. A proposal
//! names the epoch in which the planner saw a chunk or a group, so one that comes late is refused.
//!
//! Rules, in the order of their urgency:
//!
//! 1. Members of log groups whose node is down are replaced; missing ones are added. Where a zone
//!    follows the others, one member of it learns.
//! 2. Replicas of chunks on nodes that are down are copied elsewhere, those with the fewest copies
//!    left first; missing ones are added.
//! 3. Replicas and members above the wanted number are given up, and others leave nodes that are
//!    drained. A chunk moves only while all its replicas are in service on nodes that are up, so a
//!    move never makes it less safe.
//! 4. Copies in one zone move to zones that have none. Chunks that have grown are split, as many at
//!    a time as may be copied at a node.
//! 5. Chunks move from full nodes to empty ones, if nothing of the above is under way.
//!
//! While most nodes are down, nothing begins: either control is cut off, or there is nowhere to
//! copy to. While an upgrade runs, the node that restarts is not down, and 3 to 5 wait.

use firn_base::PageNo;
use firn_consensus::{MemberId, Role};

use crate::catalog::{Catalog, may_be_member};
use crate::chunk::{Chunk, EVERY_SPACE, MOST_CHUNKS, ReplicaState};
use crate::group::{GroupMember, LogGroup};
use crate::identifiers::{ChunkId, GroupId, NodeId};
use crate::node::{Health, NodeRole};
use crate::operation::{OperationKind, Reason};
use crate::placement::{Placement, idle_chunks, place_member};
use crate::proposal::Proposal;

/// The operations that should begin.
#[must_use]
pub fn plan(catalog: &Catalog) -> Vec<Proposal> {
    let mut planner = Planner::new(catalog);
    if planner.most_are_down() {
        return Vec::new();
    }
    planner.members();
    planner.replicas();
    if planner.upgrading.is_none() {
        planner.splits();
        planner.divisions();
        planner.balance();
    }
    planner.proposals
}

/// An upgrade that is under way.
#[derive(Debug, Clone, Copy)]
struct Upgrading {
    restarting: Option<NodeId>,
}

struct Planner<'a> {
    catalog: &'a Catalog,
    placement: Placement<'a>,
    upgrading: Option<Upgrading>,
    proposals: Vec<Proposal>,
}

impl<'a> Planner<'a> {
    fn new(catalog: &'a Catalog) -> Planner<'a> {
        let upgrading = catalog.operations().values().find_map(|operation| match &operation.kind {
            OperationKind::Upgrade(one) if !one.stopped => {
                Some(Upgrading { restarting: one.node.filter(|_| one.restarting) })
            }
            _ => None,
        });
        let placement = Placement::new(catalog);
        Planner { catalog, placement, upgrading, proposals: Vec::new() }
    }

    fn most_are_down(&self) -> bool {
        let nodes = self.catalog.nodes();
        let down = nodes.values().filter(|node| node.health == Health::Down).count();
        down * 2 > nodes.len()
    }

    /// Whether the node counts as lost, so that others copy what it had.
    fn is_dead(&self, node: NodeId) -> bool {
        let restarts = self.upgrading.is_some_and(|one| one.restarting == Some(node));
        self.catalog.is_down(node) && !restarts
    }

    fn drains(&self, node: NodeId) -> bool {
        self.catalog.nodes().get(&node).is_some_and(|node| node.draining)
    }

    fn members(&mut self) {
        for (id, group) in self.catalog.groups() {
            if group.operation.is_none() && group.writer.is_some() {
                self.member(*id, group);
            }
        }
    }

    fn member(&mut self, id: GroupId, group: &LogGroup) {
        let on = |test: &dyn Fn(NodeId) -> bool| {
            group.members.iter().find(|(_, member)| test(member.node)).map(|(id, _)| *id)
        };
        let surplus = self.surplus_member(group);
        if let Some(dead) = on(&|node| self.is_dead(node)) {
            // One too many anyway: nobody has to take its place.
            if surplus.is_some() && surplus_role(group) == Some(group.members[&dead].role) {
                return self.change_member(id, group, None, Some(dead), Reason::NodeDown);
            }
            return self.replace(id, group, dead, Reason::NodeDown);
        }
        for role in [Role::Voter, Role::Logger] {
            if group.count(role) < group.wanted(role)
                && let Some(node) = place_member(self.catalog, id, group, role, None)
            {
                return self.change_member(id, group, Some((node, role)), None, Reason::TooFew);
            }
        }
        if let Some(node) = self.standby_without_log(id, group) {
            let add = Some((node, Role::Learner));
            return self.change_member(id, group, add, None, Reason::TooFew);
        }
        if self.upgrading.is_some() {
            return;
        }
        if surplus.is_some() {
            return self.change_member(id, group, None, surplus, Reason::Asked);
        }
        if let Some(draining) = on(&|node| self.drains(node)) {
            self.replace(id, group, draining, Reason::Draining);
        }
    }

    fn replace(&mut self, id: GroupId, group: &LogGroup, member: MemberId, reason: Reason) {
        let role = group.members[&member].role;
        match place_member(self.catalog, id, group, role, Some(member)) {
            Some(node) => self.change_member(id, group, Some((node, role)), Some(member), reason),
            // Nobody waits for a learner, so its place may stay empty.
            None if role == Role::Learner && reason == Reason::Draining => {
                self.change_member(id, group, None, Some(member), reason);
            }
            None => {}
        }
    }

    /// A node for a member in a standby in which the group has none.
    fn standby_without_log(&self, id: GroupId, group: &LogGroup) -> Option<NodeId> {
        if id == GroupId::CONTROL {
            return None;
        }
        let nodes = self.catalog.nodes();
        let zone_of = |member: &GroupMember| nodes.get(&member.node).map(|node| &node.zone);
        let lacks = |zone: &String| !group.members.values().any(|one| zone_of(one) == Some(zone));
        let mut candidates = nodes.iter().filter(|(_, node)| {
            node.takes_more() && may_be_member(node, id, Role::Learner) && lacks(&node.zone)
        });
        candidates.next().map(|(node, _)| *node)
    }

    fn change_member(
        &mut self,
        id: GroupId,
        group: &LogGroup,
        add: Option<(NodeId, Role)>,
        remove: Option<MemberId>,
        reason: Reason,
    ) {
        let epoch = group.epoch;
        self.proposals.push(Proposal::ChangeMember { group: id, epoch, add, remove, reason });
    }

    /// A member that the group does not need, on a node that shares its zone with most others.
    fn surplus_member(&self, group: &LogGroup) -> Option<MemberId> {
        let role = surplus_role(group)?;
        let zone = |node: NodeId| self.catalog.nodes().get(&node).map(|node| &node.zone);
        let crowd = |node: NodeId| {
            group.members.values().filter(|other| zone(other.node) == zone(node)).count()
        };
        let members = group.members.iter();
        members
            .filter(|(id, member)| member.role == role && group.writer != Some(**id))
            .max_by_key(|(id, member)| (self.drains(member.node), crowd(member.node), **id))
            .map(|(id, _)| *id)
    }

    fn replicas(&mut self) {
        let catalog = self.catalog;
        let idle = catalog.chunks().iter().filter(|(_, chunk)| chunk.operation.is_none());
        let mut urgent: Vec<_> = idle.map(|(id, chunk)| (self.living(chunk), *id, chunk)).collect();
        urgent.sort_by_key(|(living, id, _)| (*living, *id));
        for (living, id, chunk) in urgent {
            if living > 0 {
                self.replica(id, chunk);
            }
        }
    }

    /// On how many nodes that are up the chunk is in service.
    fn living(&self, chunk: &Chunk) -> usize {
        let nodes = chunk.nodes_in(ReplicaState::InService);
        nodes.filter(|node| self.catalog.is_up(*node)).count()
    }

    fn replica(&mut self, id: ChunkId, chunk: &Chunk) {
        let wanted = self.catalog.replicas();
        let nodes: Vec<NodeId> = chunk.replicas.keys().copied().collect();
        if let Some(dead) = nodes.iter().find(|node| self.is_dead(**node)) {
            // One too many anyway: nobody has to take its place.
            let other = nodes.iter().find(|node| self.catalog.is_up(**node));
            match other.filter(|_| nodes.len() > wanted) {
                Some(other) => self.give_up(id, chunk, *dead, *other),
                None => self.move_replica(id, chunk, Some(*dead), Reason::NodeDown),
            }
            return;
        }
        if nodes.len() < wanted {
            return self.move_replica(id, chunk, None, Reason::TooFew);
        }
        if self.living(chunk) < nodes.len() || self.upgrading.is_some() {
            return;
        }
        if nodes.len() > wanted {
            return self.give_up_one(id, chunk, &nodes);
        }
        if let Some(draining) = nodes.iter().find(|node| self.drains(**node)) {
            return self.move_replica(id, chunk, Some(*draining), Reason::Draining);
        }
        self.spread(id, chunk, &nodes);
    }

    fn move_replica(&mut self, id: ChunkId, chunk: &Chunk, from: Option<NodeId>, reason: Reason) {
        let may_give = from.is_none_or(|from| self.is_dead(from) || self.placement.may_move(from));
        // The last copy that is left does not wait.
        let urgent = self.living(chunk) == 1 && self.catalog.replicas() > 1;
        if let Some(to) = self.placement.choose(chunk, from, urgent).filter(|_| may_give) {
            self.decide(id, chunk, from, to, reason);
        }
    }

    fn decide(
        &mut self,
        id: ChunkId,
        chunk: &Chunk,
        from: Option<NodeId>,
        to: NodeId,
        reason: Reason,
    ) {
        self.placement.decided(chunk, from, to);
        let epoch = chunk.epoch;
        self.proposals.push(Proposal::MoveReplica { chunk: id, epoch, from, to, reason });
    }

    /// Gives up the replica of a node that is drained, in the most crowded zone, on the fullest
    /// node.
    fn give_up_one(&mut self, id: ChunkId, chunk: &Chunk, nodes: &[NodeId]) {
        let rank = |node: &&NodeId| {
            let crowd = self.placement.crowd(nodes, **node, None);
            (self.drains(**node), crowd, self.placement.fill(**node))
        };
        // The zones that vote keep a copy: those that follow are behind.
        let follows = |node: &NodeId| self.catalog.nodes()[node].has(NodeRole::Standby);
        let is_last = nodes.iter().filter(|node| !follows(node)).count() == 1;
        let may_go = |node: &&NodeId| !is_last || follows(node);
        let leaving = nodes.iter().filter(may_go).max_by_key(rank).copied();
        let Some(from) = leaving else { return };
        if let Some(to) = nodes.iter().find(|node| **node != from) {
            self.give_up(id, chunk, from, *to);
        }
    }

    fn give_up(&mut self, id: ChunkId, chunk: &Chunk, from: NodeId, to: NodeId) {
        let (epoch, from, reason) = (chunk.epoch, Some(from), Reason::Asked);
        self.proposals.push(Proposal::MoveReplica { chunk: id, epoch, from, to, reason });
    }

    /// Moves a replica whose zone has another one, if a zone has fewer.
    fn spread(&mut self, id: ChunkId, chunk: &Chunk, nodes: &[NodeId]) {
        let crowd = |node: NodeId, except| self.placement.crowd(nodes, node, except);
        let Some(from) = nodes.iter().copied().max_by_key(|node| crowd(*node, None)) else {
            return;
        };
        if crowd(from, None) == 0 {
            return;
        }
        let better = self.placement.choose(chunk, Some(from), false).filter(|to| {
            crowd(*to, Some(from)) < crowd(from, None) && self.placement.may_move(from)
        });
        if let Some(to) = better {
            self.decide(id, chunk, Some(from), to, Reason::Zones);
        }
    }

    fn splits(&mut self) {
        let most = self.catalog.settings().chunk_pages;
        for (id, chunk) in self.catalog.chunks() {
            let whole = self.living(chunk) == chunk.replicas.len();
            let may_split = chunk.space != EVERY_SPACE && chunk.operation.is_none();
            if may_split && chunk.pages > most && whole {
                let (at, epoch) = (PageNo(chunk.first.0 + most), chunk.epoch);
                self.proposals.push(Proposal::Split { chunk: *id, epoch, at });
            }
        }
    }

    /// Cuts the largest of the chunks of all spaces that have too many bytes.
    fn divisions(&mut self) {
        let (catalog, limit) = (self.catalog, self.catalog.split_above());
        let is_large = |(_, chunk): &(&ChunkId, &Chunk)| {
            let is_whole = self.living(chunk) == chunk.replicas.len();
            let is_idle = chunk.operation.is_none() && chunk.middle().is_some();
            chunk.space == EVERY_SPACE && chunk.bytes > limit && is_whole && is_idle
        };
        let mut large: Vec<_> = catalog.chunks().iter().filter(is_large).collect();
        large.sort_by_key(|(id, chunk)| (std::cmp::Reverse(chunk.bytes), **id));
        let room = MOST_CHUNKS.saturating_sub(catalog.chunks().len() + catalog.divisions().count());
        for (id, chunk) in large.into_iter().take(room) {
            let nodes = || chunk.replicas.keys().copied();
            if self.is_decided(*id) || !nodes().all(|node| self.placement.may_move(node)) {
                continue;
            }
            self.placement.divided(nodes());
            let (epoch, reason) = (chunk.epoch, Reason::Growth);
            self.proposals.push(Proposal::Divide { chunk: *id, epoch, reason });
        }
    }

    /// Moves chunks from the fullest nodes to the emptiest.
    fn balance(&mut self) {
        let urgent = |reason| !matches!(reason, Reason::Balance | Reason::Asked | Reason::Growth);
        let busy = self.catalog.operations().values().any(|one| urgent(one.reason));
        if busy || !self.proposals.is_empty() {
            return;
        }
        while let Some((id, chunk, from, to)) = self.next_to_balance() {
            self.decide(id, chunk, Some(from), to, Reason::Balance);
        }
    }

    fn next_to_balance(&self) -> Option<(ChunkId, &'a Chunk, NodeId, NodeId)> {
        let average = self.placement.average_fill();
        let tolerance = average * u128::from(self.catalog.settings().tolerance_percent) / 100;
        let fill = |node: NodeId| self.placement.fill(node);
        let mut nodes: Vec<NodeId> =
            self.placement.takers().filter(|node| self.placement.may_move(*node)).collect();
        nodes.sort_by_key(|node| (fill(*node), *node));
        for from in nodes.iter().rev() {
            for to in &nodes {
                let far = fill(*from) > average + tolerance || fill(*to) + tolerance < average;
                if !far || fill(*from) <= fill(*to) {
                    break;
                }
                if let Some((id, chunk)) = self.best_to_move(*from, *to) {
                    return Some((id, chunk, *from, *to));
                }
            }
        }
        None
    }

    /// The largest chunk that makes the two nodes more alike.
    fn best_to_move(&self, from: NodeId, to: NodeId) -> Option<(ChunkId, &'a Chunk)> {
        let fits = |(id, chunk): &(ChunkId, &Chunk)| {
            let nodes: Vec<NodeId> = chunk.replicas.keys().copied().collect();
            let crowd = |node| self.placement.crowd(&nodes, node, Some(from));
            !self.is_decided(*id)
                && !chunk.replicas.contains_key(&to)
                && self.living(chunk) == chunk.replicas.len()
                && crowd(to) <= crowd(from)
                && self.placement.evens_out(chunk, from, to)
        };
        let movable = idle_chunks(self.catalog, from).filter(fits);
        movable.max_by_key(|(id, chunk)| (self.placement.weight(chunk), std::cmp::Reverse(*id)))
    }

    fn is_decided(&self, id: ChunkId) -> bool {
        let about = |proposal: &Proposal| matches!(proposal, Proposal::MoveReplica { chunk, .. } if *chunk == id);
        self.proposals.iter().any(about)
    }
}

/// The role that the group has more often than it wants.
fn surplus_role(group: &LogGroup) -> Option<Role> {
    [Role::Voter, Role::Logger].into_iter().find(|role| group.count(*role) > group.wanted(*role))
}
