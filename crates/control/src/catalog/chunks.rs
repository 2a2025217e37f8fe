//! Chunks: ranges of pages that get nodes, grow and are dropped.

use std::collections::BTreeSet;

use firn_base::{Lsn, SpaceId};

use super::{Catalog, Pages, overlap};
use crate::chunk::{Chunk, EVERY_SPACE, Replica, ReplicaState};
use crate::identifiers::{ChunkId, FIRST_EPOCH, GroupId, NodeId};
use crate::node::NodeRole;
use crate::operation::{OperationKind, Reason};
use crate::refusal::Refusal;

impl Catalog {
    pub(super) fn create_chunk(
        &mut self,
        space: SpaceId,
        pages: Pages,
        group: GroupId,
        position: Lsn,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<ChunkId, Refusal> {
        let replica = Replica { state: ReplicaState::Copying, since: self.entries, position };
        let id = self.add_chunk(space, pages, group, replica, nodes)?;
        let kind = OperationKind::CreateChunk { chunk: id, waiting: nodes.clone() };
        let operation = self.begin(kind, Reason::Asked);
        self.chunks.get_mut(&id).expect("just added").operation = Some(operation);
        Ok(id)
    }

    /// A chunk more, with the same replica on each node.
    pub(super) fn add_chunk(
        &mut self,
        space: SpaceId,
        pages: Pages,
        group: GroupId,
        replica: Replica,
        nodes: &BTreeSet<NodeId>,
    ) -> Result<ChunkId, Refusal> {
        self.group(group)?;
        if pages.is_empty() || nodes.is_empty() {
            return Err(Refusal::EmptyChunk);
        }
        for node in nodes {
            self.node_with(*node, NodeRole::Page)?;
        }
        if let Some((id, _)) = self.chunks.iter().find(|(_, one)| overlap(one, space, &pages)) {
            return Err(Refusal::PagesTaken { space, chunk: *id });
        }
        let chunk = Chunk {
            space,
            first: pages.start,
            end: pages.end,
            group,
            epoch: FIRST_EPOCH,
            bytes: 0,
            pages: 0,
            replicas: nodes.iter().map(|node| (*node, replica)).collect(),
            operation: None,
        };
        let id = ChunkId(self.next_chunk);
        self.next_chunk += 1;
        self.chunks.insert(id, chunk);
        Ok(id)
    }

    /// What the nodes still have of the chunks they report, and are told to delete.
    pub(super) fn drop_space(&mut self, space: SpaceId) {
        self.chunks.retain(|_, chunk| chunk.space != space);
    }

    pub(super) fn measured(&mut self, id: ChunkId, bytes: u64, pages: u32) -> Result<(), Refusal> {
        let chunk = self.chunks.get_mut(&id).ok_or(Refusal::NoChunk(id))?;
        (chunk.bytes, chunk.pages) = (bytes, pages.min(chunk.most_pages()));
        Ok(())
    }

    pub(crate) fn chunk(&self, id: ChunkId) -> Result<&Chunk, Refusal> {
        self.chunks.get(&id).ok_or(Refusal::NoChunk(id))
    }

    /// Whether the number was that of a chunk that is gone, or of one that was never finished.
    pub(crate) fn was_chunk(&self, id: ChunkId) -> bool {
        let was_given = (1..self.next_chunk).contains(&id.0);
        was_given && !self.chunks.contains_key(&id) && !self.is_being_made(id)
    }

    /// The chunks that have a replica on `node`.
    pub fn chunks_on(&self, node: NodeId) -> impl Iterator<Item = (ChunkId, &Chunk)> + '_ {
        self.chunks
            .iter()
            .filter(move |(_, chunk)| chunk.replicas.contains_key(&node))
            .map(|(id, chunk)| (*id, chunk))
    }

    pub(super) fn check_chunks(&self) -> Option<&'static str> {
        let sound = self.chunks.values().all(|chunk| {
            chunk.first < chunk.end
                && chunk.pages <= chunk.most_pages()
                && !chunk.replicas.is_empty()
                && chunk.replicas.keys().all(|node| self.nodes.contains_key(node))
                && self.groups.contains_key(&chunk.group)
                && chunk.epoch.0 < u64::MAX / 2
        });
        let mut ranges: Vec<_> =
            self.chunks.values().map(|chunk| (chunk.space, chunk.first, chunk.end)).collect();
        ranges.sort_unstable();
        let apart = ranges.windows(2).all(|two| two[0].0 != two[1].0 || two[0].2 <= two[1].1);
        // Beside parts of all spaces there are no others.
        let mut spread = ranges.iter().map(|range| range.0 == EVERY_SPACE);
        let first = spread.next();
        let apart = apart && spread.all(|other| Some(other) == first);
        (!(sound && apart)).then_some("a chunk has pages or nodes that cannot be")
    }
}
