//! Chunks of all spaces that are cut in two: how a division begins, is cut, and is given up.
//!
//! ```text
//!   catalog    chunk 1: places 0 ‥ 8                    ┃ chunk 1: 0 ‥ 4    chunk 2: 4 ‥ 8
//!   a node     has 1: 0 ‥ 8 ── copies 4 ‥ 8 as 2 ── ack ┃ has 2 as well ── drops 4 ‥ 8 of 1
//!                                                       ┃ cut, once all nodes have acknowledged
//! ```
//!
//! 1. Before the cut, readers see chunk 1 alone, and its nodes have all of its places.
//! 2. At the cut, every node that has chunk 1 in service has chunk 2 as well.
//! 3. A division whose nodes are not those of the chunk any more, or of which one is down, is given
//!    up. What nodes have of the upper chunk is then a chunk that is none, which they are told to
//!    delete.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::{Extents, Lsn, PageNo};

use super::Catalog;
use crate::chunk::{Chunk, EVERY_SPACE, MOST_CHUNKS, Replica, ReplicaState};
use crate::identifiers::{ChunkId, Epoch, FIRST_EPOCH, NodeId, OperationId};
use crate::operation::{Division, OperationKind, Outcome, Reason};
use crate::refusal::Refusal;

/// In catalogs with one chunk, how many pages lie together could be left open.
const ALL_TOGETHER: u32 = u32::MAX / 2;

/// The fewest extents that a chunk has room for.
const LEAST_EXTENTS: u64 = 4;
const PAGE_BYTES: u64 = 16 << 10;

impl Catalog {
    pub(super) fn split_chunks_above(&mut self, bytes: u64) -> Result<(), Refusal> {
        let pages = match self.settings.chunk_pages {
            ALL_TOGETHER => Extents::DEFAULT.pages,
            pages => pages,
        };
        // What lies together is not cut, however large it is.
        if bytes < LEAST_EXTENTS * u64::from(pages) * PAGE_BYTES {
            return Err(Refusal::Setting("a chunk has room for at least four extents"));
        }
        self.split_above = bytes;
        Ok(())
    }

    /// Has the nodes of a chunk copy its upper part.
    pub(super) fn divide(
        &mut self,
        id: ChunkId,
        epoch: Epoch,
        reason: Reason,
    ) -> Result<OperationId, Refusal> {
        let chunk = self.idle_chunk(id, epoch)?;
        if chunk.space != EVERY_SPACE {
            return Err(Refusal::NotSpread(id));
        }
        let at = chunk.middle().ok_or(Refusal::TooNarrow(id))?;
        if chunk.replicas.values().any(|replica| replica.state != ReplicaState::InService) {
            return Err(Refusal::NotComplete(id));
        }
        if !self.may_have_more_chunks() {
            return Err(Refusal::TooManyChunks);
        }
        let waiting: BTreeSet<NodeId> = chunk.replicas.keys().copied().collect();
        if let Some(node) = waiting.iter().find(|node| self.is_down(**node)) {
            let node = self.node(*node)?;
            return Err(Refusal::NotReady { name: node.name.clone(), state: node.state() });
        }
        if chunk.is_everything() && self.settings.chunk_pages == ALL_TOGETHER {
            self.settings.chunk_pages = Extents::DEFAULT.pages;
        }
        let upper = ChunkId(self.next_chunk);
        self.next_chunk += 1;
        let one = Division { chunk: id, upper, at, waiting, ready: BTreeMap::new() };
        let operation = self.begin(OperationKind::DivideChunk(one), reason);
        self.chunks.get_mut(&id).expect("looked up above").operation = Some(operation);
        Ok(operation)
    }

    /// Whether a chunk more is possible, those included that are being made.
    pub(crate) fn may_have_more_chunks(&self) -> bool {
        self.chunks.len() + self.divisions().count() < MOST_CHUNKS
    }

    /// The divisions under way.
    pub(crate) fn divisions(&self) -> impl Iterator<Item = &Division> + '_ {
        self.operations.values().filter_map(|one| one.kind.division())
    }

    /// A node has the upper chunk.
    pub(super) fn has_upper(
        &mut self,
        id: OperationId,
        mut one: Division,
        node: NodeId,
        position: Lsn,
    ) {
        if one.waiting.remove(&node) {
            one.ready.insert(node, position);
        }
        self.replace_kind(id, OperationKind::DivideChunk(one));
    }

    /// Cuts the chunk if all of its nodes have the upper one. Whether something has changed.
    pub(super) fn settle_division(&mut self, id: OperationId, one: &Division) -> bool {
        let nodes = one.waiting.iter().chain(one.ready.keys());
        let are_there = self.chunks.get(&one.chunk).is_some_and(|chunk| {
            let mut nodes: Vec<NodeId> = nodes.copied().collect();
            nodes.sort_unstable();
            chunk.replicas.keys().eq(&nodes) && !nodes.iter().any(|node| self.is_down(*node))
        });
        if !are_there {
            self.end(id, Outcome::Failed);
            return true;
        }
        if !one.waiting.is_empty() {
            return false;
        }
        self.cut(one);
        self.end(id, Outcome::Done);
        true
    }

    fn cut(&mut self, one: &Division) {
        let since = self.entries;
        let Some(lower) = self.chunks.get_mut(&one.chunk) else { return };
        let upper = lower.cut_at(one.at, &one.ready, since);
        self.chunks.insert(one.upper, upper);
    }

    /// Whether the chunk is one that a division makes.
    pub(crate) fn is_being_made(&self, chunk: ChunkId) -> bool {
        self.divisions().any(|one| one.upper == chunk)
    }

    /// Whether a division can be what it says.
    pub(super) fn is_possible(&self, id: OperationId, one: &Division) -> bool {
        let is_new = one.upper.0 < self.next_chunk && !self.chunks.contains_key(&one.upper);
        let nodes: BTreeSet<NodeId> = one.waiting.iter().chain(one.ready.keys()).copied().collect();
        let is_within = self.chunks.get(&one.chunk).is_some_and(|chunk| {
            chunk.space == EVERY_SPACE && chunk.first < one.at && one.at < chunk.end
        });
        is_new && is_within && self.works_on_chunk(id, one.chunk, &nodes)
    }
}

impl Chunk {
    /// Leaves the places from `at` on to a new chunk, and returns it. What nodes said of this one
    /// before says nothing about its new size.
    fn cut_at(&mut self, at: PageNo, nodes: &BTreeMap<NodeId, Lsn>, since: u64) -> Chunk {
        let replica =
            |position: &Lsn| Replica { state: ReplicaState::InService, since, position: *position };
        let upper = Chunk {
            space: self.space,
            first: at,
            end: self.end,
            group: self.group,
            epoch: FIRST_EPOCH,
            bytes: self.bytes / 2,
            pages: self.pages / 2,
            replicas: nodes.iter().map(|(node, position)| (*node, replica(position))).collect(),
            operation: None,
        };
        self.end = at;
        self.epoch = self.epoch.next();
        (self.bytes, self.pages) = (self.bytes - upper.bytes, self.pages - upper.pages);
        self.replicas.values_mut().for_each(|replica| replica.since = since);
        upper
    }
}

#[cfg(test)]
mod tests;
