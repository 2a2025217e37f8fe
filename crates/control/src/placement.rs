//! Placement: on which node a replica or a member should be.
//!
//! Zones come first: copies of one thing are in as many zones as there are. Then load: the node
//! with the least of what its disk holds gets the next replica. The weight of a replica is its
//! bytes and a share that is the same for all, so that empty chunks spread too.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::PageNo;
use firn_consensus::{MemberId, Role};

use crate::catalog::{Catalog, may_be_member};
use crate::chunk::{Chunk, EVERY_SPACE, ReplicaState};
use crate::group::LogGroup;
use crate::identifiers::{ChunkId, GroupId, NodeId};
use crate::node::{Node, NodeRole};
use crate::operation::{MovePhase, OperationKind};

/// The least that a replica of a part of all spaces weighs, as a part of a node's capacity: in a
/// cluster that is nearly empty, nodes have as many chunks each, and do not exchange them as tables
/// come and go.
const LEAST_PARTS: u64 = 1 << 14;

/// Where everything will be when all operations are done, and what nodes are busy with.
pub(crate) struct Placement<'a> {
    catalog: &'a Catalog,
    /// The share of a replica's weight that does not depend on its bytes.
    base: u64,
    /// The weight on each page node.
    load: BTreeMap<NodeId, u64>,
    /// How many copies go to a node or come from it.
    moves: BTreeMap<NodeId, u32>,
}

impl<'a> Placement<'a> {
    pub(crate) fn new(catalog: &'a Catalog) -> Placement<'a> {
        let chunks = catalog.chunks();
        let bytes: u64 = chunks.values().fold(0, |sum, chunk| sum.saturating_add(chunk.bytes));
        let pages = || catalog.nodes().iter().filter(|(_, node)| node.has(NodeRole::Page));
        let is_spread = chunks.values().any(|chunk| chunk.space == EVERY_SPACE);
        let room = pages().map(|(_, node)| node.capacity).max().filter(|_| is_spread);
        let least = room.unwrap_or(0) / LEAST_PARTS + 1;
        let base = bytes / (chunks.len() as u64).max(1) / 8 + least;
        let load = pages().map(|(id, _)| (*id, 0)).collect();
        let mut placement = Placement { catalog, base, load, moves: BTreeMap::new() };
        for chunk in chunks.values() {
            for node in placement.staying(chunk) {
                placement.add_load(node, chunk);
            }
        }
        for division in catalog.divisions() {
            placement.divided(division.waiting.iter().copied());
        }
        for operation in catalog.operations().values() {
            if let OperationKind::MoveReplica(one) = &operation.kind
                && one.phase != MovePhase::Retire
            {
                placement.count_move(one.from, one.to);
            }
        }
        placement
    }

    /// The nodes that will have the chunk when its operation is done.
    pub(crate) fn staying(&self, chunk: &Chunk) -> Vec<NodeId> {
        let operation = chunk.operation.and_then(|id| self.catalog.operations().get(&id));
        let from = operation.and_then(|one| one.kind.replica_move()).and_then(|one| one.from);
        let replicas = chunk.replicas.iter();
        replicas
            .filter(|(node, one)| one.state != ReplicaState::Leaving && Some(**node) != from)
            .map(|(node, _)| *node)
            .collect()
    }

    pub(crate) fn weight(&self, chunk: &Chunk) -> u64 {
        chunk.bytes.saturating_add(self.base)
    }

    fn add_load(&mut self, node: NodeId, chunk: &Chunk) {
        let weight = self.weight(chunk);
        if let Some(load) = self.load.get_mut(&node) {
            *load = load.saturating_add(weight);
        }
    }

    fn count_move(&mut self, from: Option<NodeId>, to: NodeId) {
        for node in [from, Some(to)].into_iter().flatten() {
            *self.moves.entry(node).or_default() += 1;
        }
    }

    /// These nodes copy a part of a chunk that they have.
    pub(crate) fn divided(&mut self, nodes: impl IntoIterator<Item = NodeId>) {
        nodes.into_iter().for_each(|node| *self.moves.entry(node).or_default() += 1);
    }

    /// A move has been decided.
    pub(crate) fn decided(&mut self, chunk: &Chunk, from: Option<NodeId>, to: NodeId) {
        let weight = self.weight(chunk);
        if let Some(load) = from.and_then(|from| self.load.get_mut(&from)) {
            *load = load.saturating_sub(weight);
        }
        self.add_load(to, chunk);
        self.count_move(from, to);
    }

    pub(crate) fn may_move(&self, node: NodeId) -> bool {
        let most = self.catalog.settings().moves_per_node;
        self.moves.get(&node).is_none_or(|moves| *moves < most)
    }

    /// What the node has, in millionths of its capacity.
    pub(crate) fn fill(&self, node: NodeId) -> u128 {
        self.fill_with(node, self.load.get(&node).copied().unwrap_or(0))
    }

    fn fill_with(&self, node: NodeId, load: u64) -> u128 {
        let capacity = self.catalog.nodes().get(&node).map_or(1, |node| node.capacity.max(1));
        u128::from(load) * 1_000_000 / u128::from(capacity)
    }

    /// What all nodes that take more have, in millionths of their capacity.
    pub(crate) fn average_fill(&self) -> u128 {
        let takers = || self.takers();
        let load: u128 = takers().map(|node| u128::from(self.load[&node])).sum();
        let capacity: u128 =
            takers().map(|node| u128::from(self.catalog.nodes()[&node].capacity)).sum();
        load * 1_000_000 / capacity.max(1)
    }

    /// The page nodes on which something new may be placed.
    pub(crate) fn takers(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.load.keys().copied();
        nodes.filter(|node| self.catalog.nodes()[node].takes_more())
    }

    /// How many of the nodes, but for `except`, are in the zone of `node`.
    pub(crate) fn crowd(&self, nodes: &[NodeId], node: NodeId, except: Option<NodeId>) -> usize {
        let zone = |node: &NodeId| self.catalog.nodes().get(node).map(|node| &node.zone);
        let others = nodes.iter().filter(|other| Some(**other) != except && **other != node);
        others.filter(|other| zone(other) == zone(&node)).count()
    }

    /// The best node for a replica of the chunk in the place of `from`, or for one more. If all
    /// nodes of the best zones are busy with other moves, the chunk waits for them, unless it is
    /// urgent: it would move twice otherwise.
    pub(crate) fn choose(
        &self,
        chunk: &Chunk,
        from: Option<NodeId>,
        urgent: bool,
    ) -> Option<NodeId> {
        let staying = self.staying(chunk);
        let weight = self.weight(chunk);
        let fits = |node: &NodeId| {
            let after = self.load[node].saturating_add(weight);
            !chunk.replicas.contains_key(node) && after <= self.catalog.nodes()[node].capacity
        };
        let rank = |node: NodeId| {
            let after = self.load[&node].saturating_add(weight);
            (self.crowd(&staying, node, from), self.fill_with(node, after), node)
        };
        let ranked: Vec<_> = self.takers().filter(fits).map(rank).collect();
        let least = ranked.iter().map(|(crowd, _, _)| *crowd).min()?;
        let idle = ranked.into_iter().filter(|(_, _, node)| urgent || self.may_move(*node));
        let best = idle.filter(|(crowd, _, _)| urgent || *crowd == least).min();
        best.map(|(_, _, node)| node)
    }

    /// Whether moving the chunk makes the two nodes more alike, and not the other way round.
    pub(crate) fn evens_out(&self, chunk: &Chunk, from: NodeId, to: NodeId) -> bool {
        let weight = self.weight(chunk);
        let (giver, taker) = (self.load[&from], self.load[&to]);
        let (Some(giver), Some(taker)) = (giver.checked_sub(weight), taker.checked_add(weight))
        else {
            return false;
        };
        taker <= self.catalog.nodes()[&to].capacity
            && self.fill_with(from, giver) >= self.fill_with(to, taker)
    }
}

/// The nodes for a new chunk that is empty. Fewer than asked for if there are not as many.
#[must_use]
pub fn place_chunk(catalog: &Catalog) -> Vec<NodeId> {
    let placement = Placement::new(catalog);
    let mut chosen: Vec<NodeId> = Vec::new();
    while chosen.len() < catalog.replicas() {
        let free = placement.takers().filter(|node| !chosen.contains(node));
        let rank =
            |node: &NodeId| (placement.crowd(&chosen, *node, None), placement.fill(*node), *node);
        let Some(best) = free.min_by_key(rank) else { break };
        chosen.push(best);
    }
    chosen
}

/// The parts of all places, as equal as can be: the ranges of `count` chunks of all spaces.
#[must_use]
pub fn equal_parts(count: u32) -> Vec<(PageNo, PageNo)> {
    let count = count.max(1);
    let bound = |part: u32| {
        let at = u64::from(PageNo::NONE.0) * u64::from(part) / u64::from(count);
        PageNo(at as u32)
    };
    (0..count).map(|part| (bound(part), bound(part + 1))).collect()
}

/// The nodes of the chunks that a cluster begins with, `copies` for each, or all if there are not
/// as many. All nodes have as many chunks, give or take one for each copy, and the chunks of a node
/// have their other copies on many nodes.
#[must_use]
pub fn spread(nodes: &BTreeSet<NodeId>, chunks: usize, copies: usize) -> Vec<BTreeSet<NodeId>> {
    let nodes: Vec<NodeId> = nodes.iter().copied().collect();
    let count = nodes.len().max(1);
    let of_chunk = |chunk: usize| {
        // Each round over the nodes has another distance between copies.
        let distance = 1 + (chunk / count) % count.saturating_sub(1).max(1);
        let mut places: Vec<usize> = Vec::new();
        let mut at = chunk % count;
        while places.len() < copies.min(nodes.len()) {
            while places.contains(&at) {
                at = (at + 1) % count;
            }
            places.push(at);
            at = (at + distance) % count;
        }
        places.into_iter().map(|place| nodes[place]).collect()
    };
    (0..chunks).map(of_chunk).collect()
}

/// The best node for a member with `role`, in the place of `remove` if that is a member.
pub(crate) fn place_member(
    catalog: &Catalog,
    id: GroupId,
    group: &LogGroup,
    role: Role,
    remove: Option<MemberId>,
) -> Option<NodeId> {
    let others: Vec<&Node> = group
        .members
        .iter()
        .filter(|(member, _)| Some(**member) != remove)
        .filter_map(|(_, member)| catalog.nodes().get(&member.node))
        .collect();
    let groups_of = |node: NodeId| {
        let groups = catalog.groups().values();
        groups.filter(|group| group.member_on(node).is_some()).count()
    };
    let removed = remove.and_then(|member| catalog.nodes().get(&group.members.get(&member)?.node));
    // Who learns, learns for its zone.
    let is_elsewhere =
        |node: &Node| role == Role::Learner && removed.is_some_and(|old| old.zone != node.zone);
    let coming =
        |node: NodeId| catalog.operations().values().filter(|one| one.kind.brings_to(node)).count();
    catalog
        .nodes()
        .iter()
        .filter(|(node, known)| {
            known.takes_more()
                && may_be_member(known, id, role)
                && group.member_on(**node).is_none()
                && !is_elsewhere(known)
        })
        .map(|(node, known)| {
            let crowd = others.iter().filter(|other| other.zone == known.zone).count();
            // A node with pages is better kept for members that may lead.
            let spare = role == Role::Logger && may_be_member(known, id, Role::Voter);
            (crowd, spare, groups_of(*node) + coming(*node), *node)
        })
        .min()
        .map(|(_, _, _, node)| node)
}

/// Whether a group can do without its member on a node, if it has one there: it is one too many, or
/// another node can take its place.
#[must_use]
pub fn can_leave(catalog: &Catalog, id: GroupId, node: NodeId) -> bool {
    let Some(group) = catalog.groups().get(&id) else { return true };
    let Some(member) = group.member_on(node) else { return true };
    let role = group.members[&member].role;
    group.count(role) > group.wanted(role)
        || place_member(catalog, id, group, role, Some(member)).is_some()
}

/// The chunks of a node that move easily: whole, and not changing.
pub(crate) fn idle_chunks(
    catalog: &Catalog,
    node: NodeId,
) -> impl Iterator<Item = (ChunkId, &Chunk)> + '_ {
    catalog.chunks_on(node).filter(|(_, chunk)| chunk.operation.is_none())
}
