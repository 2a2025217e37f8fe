//! What has to hold after every step, whatever fails.
//!
//! 1. Control nodes that have applied the same entries have the same catalog, byte for byte.
//! 2. The catalog's own invariants hold.
//! 3. A node that has a replica in service according to the catalog has all of its pages, unless
//!    its disk has lost them. Readers that the catalog sends there find them. It may have more:
//!    those of a chunk that was cut in two.
//! 4. Each chunk has a replica in service, and no deletion takes the last copy, nor one in service.
//! 5. A member that votes had caught up before. Members change one at a time, and votes do not
//!    become fewer than the group wants.

use std::collections::{BTreeMap, BTreeSet};

use firn_consensus::MemberId;
use firn_control::{
    Catalog, Chunk, ChunkId, EVERY_SPACE, GroupId, GroupMember, LogGroup, NodeId, OperationKind,
    ReplicaState,
};

use crate::node::Node;
use crate::world::Group;

/// What went wrong.
pub(crate) type Violation = String;

type Outcome = Result<(), Violation>;

#[derive(Default)]
pub(crate) struct Checker {
    /// Number of entries to the checksum of the catalog after them, at the first control node.
    catalogs: BTreeMap<usize, u32>,
    difference: Option<usize>,
    /// Replicas that a disk has lost, until the catalog knows.
    lost: BTreeSet<(ChunkId, NodeId)>,
    pub(crate) deletions: u64,
    pub(crate) member_changes: u64,
}

impl Checker {
    pub(crate) fn note_catalog(&mut self, applied: usize, bytes: &[u8]) {
        let sum = crc32c::crc32c(bytes);
        if *self.catalogs.entry(applied).or_insert(sum) != sum {
            self.difference.get_or_insert(applied);
        }
    }

    pub(crate) fn loses(&mut self, chunk: ChunkId, node: NodeId) {
        self.lost.insert((chunk, node));
    }

    pub(crate) fn check(&mut self, catalog: &Catalog, nodes: &BTreeMap<NodeId, Node>) -> Outcome {
        if let Some(applied) = self.difference {
            return Err(format!("control nodes differ after {applied} entries"));
        }
        if let Some(problem) = catalog.check() {
            return Err(format!("the catalog contradicts itself: {problem}"));
        }
        self.lost.retain(|(chunk, node)| {
            let is_being_made = catalog
                .operations()
                .values()
                .any(|one| one.kind.division().is_some_and(|one| one.upper == *chunk));
            let chunk = catalog.chunks().get(chunk);
            let is_served = |one: &Chunk| one.nodes_in(ReplicaState::InService).any(|n| n == *node);
            is_being_made || chunk.is_some_and(is_served)
        });
        for (id, chunk) in catalog.chunks() {
            self.check_chunk(*id, chunk, catalog, nodes)?;
        }
        Ok(())
    }

    fn check_chunk(
        &self,
        id: ChunkId,
        chunk: &Chunk,
        catalog: &Catalog,
        nodes: &BTreeMap<NodeId, Node>,
    ) -> Outcome {
        let operation = chunk.operation.map(|operation| &catalog.operations()[&operation].kind);
        let waiting = match operation {
            Some(OperationKind::CreateChunk { .. }) => return Ok(()),
            Some(OperationKind::SplitChunk { waiting, .. }) => waiting.clone(),
            _ => BTreeSet::new(),
        };
        let mut served = chunk.nodes_in(ReplicaState::InService).peekable();
        if served.peek().is_none() {
            return Err(format!("chunk {id} is in service nowhere"));
        }
        for node in served.filter(|node| !waiting.contains(node)) {
            let there = &nodes[&node];
            if there.is_destroyed || self.lost.contains(&(id, node)) {
                continue;
            }
            let copy = there.copies.get(&id).filter(|copy| copy.is_whole && copy.is_served);
            let fits = copy.is_some_and(|copy| match chunk.space {
                EVERY_SPACE => copy.range.first <= chunk.first && chunk.end <= copy.range.end,
                _ => (copy.range.first, copy.range.end) == (chunk.first, chunk.end),
            });
            if !fits {
                return Err(format!("node {node} should serve chunk {id}, and has {copy:?}"));
            }
        }
        Ok(())
    }

    /// A node has deleted a whole copy.
    pub(crate) fn deleted(
        &mut self,
        id: ChunkId,
        node: NodeId,
        catalog: &Catalog,
        nodes: &BTreeMap<NodeId, Node>,
    ) -> Outcome {
        self.deletions += 1;
        let Some(chunk) = catalog.chunks().get(&id) else { return Ok(()) };
        if chunk.nodes_in(ReplicaState::InService).any(|served| served == node) {
            return Err(format!("node {node} deletes chunk {id}, which is in service there"));
        }
        if !nodes.values().any(|other| other.has_whole(id)) {
            return Err(format!("node {node} deletes the last copy of chunk {id}"));
        }
        Ok(())
    }

    pub(crate) fn members_change(
        &mut self,
        id: GroupId,
        group: &Group,
        members: &BTreeMap<MemberId, GroupMember>,
        wanted: Option<&LogGroup>,
    ) -> Outcome {
        self.member_changes += 1;
        let votes = |members: &BTreeMap<MemberId, GroupMember>| -> BTreeSet<MemberId> {
            let voting = members.iter().filter(|(_, member)| member.role.votes());
            voting.map(|(id, _)| *id).collect()
        };
        let (before, after) = (votes(&group.members), votes(members));
        if let Some(early) = after.difference(&before).find(|new| !group.caught_up.contains(new)) {
            return Err(format!("member {early} of group {id} votes before it has caught up"));
        }
        if after.difference(&before).count() > 1 || before.difference(&after).count() > 1 {
            return Err(format!("group {id} changes from {before:?} to {after:?} at once"));
        }
        let wanted = wanted
            .map_or(0, |one| usize::from(one.wanted_voters) + usize::from(one.wanted_loggers));
        if after.len() < before.len() && after.len() < wanted {
            return Err(format!("group {id} has {} votes of {wanted} left", after.len()));
        }
        Ok(())
    }
}
