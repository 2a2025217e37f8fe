//! A simulated node: it carries orders out, and knows of chunks only which it has.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::{Lsn, PageNo};
use firn_consensus::MemberId;
use firn_control::{
    Action, Catalog, Chunk, ChunkId, ChunkRange, EVERY_SPACE, Epoch, Fence, GroupId, NodeId,
    OperationId, Order, OrderNumber, Progress, Release, ReplicaState, narrowed,
};

/// What the disk of a node has of a chunk.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) epoch: Epoch,
    pub(crate) range: ChunkRange,
    /// Whether all pages are there.
    pub(crate) is_whole: bool,
    pub(crate) is_served: bool,
}

/// A copy that is being fetched. It is forgotten when the node stops, and ordered again.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) number: OrderNumber,
    pub(crate) sources: Vec<NodeId>,
    /// The chunk of the node itself that it is a part of, if it is not fetched from others.
    pub(crate) part_of: Option<ChunkId>,
    pub(crate) progress: Progress,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) number: u8,
    pub(crate) release: Release,
    pub(crate) incarnation: u64,
    pub(crate) is_alive: bool,
    /// Its disk is gone for good.
    pub(crate) is_destroyed: bool,
    /// No message of it arrives, nor does one to it.
    pub(crate) is_cut: bool,
    /// Others cannot reach it, though control can.
    pub(crate) is_isolated: bool,
    pub(crate) fence: Fence,
    /// The highest number of entries that control has told.
    pub(crate) entries: u64,
    pub(crate) copies: BTreeMap<ChunkId, Copy>,
    pub(crate) fetches: BTreeMap<ChunkId, Fetch>,
    pub(crate) members: BTreeMap<GroupId, MemberId>,
    /// Ticks until the node starts by itself, after an upgrade.
    pub(crate) starts_in: Option<u64>,
}

/// What becomes of an order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// To be acknowledged.
    Yes,
    /// It takes time, or is not possible now. It will be sent again.
    Later,
    /// A chunk was deleted.
    Deleted(ChunkId),
    /// The world has to do it: it concerns a group.
    Group,
}

impl Node {
    pub(crate) fn new(id: NodeId, number: u8, release: Release) -> Node {
        Node {
            id,
            number,
            release,
            incarnation: 0,
            is_alive: true,
            is_destroyed: false,
            is_cut: false,
            is_isolated: false,
            fence: Fence::default(),
            entries: 0,
            copies: BTreeMap::new(),
            fetches: BTreeMap::new(),
            members: BTreeMap::new(),
            starts_in: None,
        }
    }

    /// Whether others can fetch from it.
    pub(crate) fn is_reachable(&self) -> bool {
        self.is_alive && !self.is_cut && !self.is_isolated
    }

    pub(crate) fn has_whole(&self, chunk: ChunkId) -> bool {
        !self.is_destroyed && self.copies.get(&chunk).is_some_and(|copy| copy.is_whole)
    }

    /// Loses what is only in memory.
    pub(crate) fn stop(&mut self) {
        (self.is_alive, self.starts_in) = (false, None);
        self.entries = 0;
        self.fetches.clear();
        self.fence = Fence::default();
    }

    pub(crate) fn start(&mut self) {
        self.is_alive = true;
        self.incarnation += 1;
        self.starts_in = None;
        for (chunk, copy) in &self.copies {
            self.fence.has_chunk(*chunk, copy.epoch);
        }
    }

    /// Carries an admitted order out.
    pub(crate) fn carry_out(&mut self, order: &Order) -> Done {
        match &order.action {
            Action::CreateChunk { chunk, epoch, range, .. } => {
                let fresh = Copy { epoch: *epoch, range: *range, is_whole: true, is_served: true };
                let copy = self.copies.entry(*chunk).or_insert(fresh);
                copy.epoch = *epoch;
                Done::Yes
            }
            Action::CopyChunk { chunk, epoch, range, sources } => {
                self.fetch(order.number, *chunk, *epoch, *range, sources)
            }
            Action::CopyPart { of, chunk, epoch, range, .. } => {
                self.copy_part(order.number, (*of, *chunk), *epoch, *range)
            }
            Action::ServeChunk { chunk, epoch } => {
                let Some(copy) = self.copies.get_mut(chunk).filter(|copy| copy.is_whole) else {
                    return Done::Later;
                };
                (copy.epoch, copy.is_served) = (*epoch, true);
                Done::Yes
            }
            Action::RetireChunk { chunk, .. } => {
                self.fetches.remove(chunk);
                match self.copies.remove(chunk) {
                    Some(copy) if copy.is_whole => Done::Deleted(*chunk),
                    _ => Done::Yes,
                }
            }
            Action::SplitChunk { chunk, upper, at, epoch } => {
                self.split(*chunk, *upper, *at, *epoch)
            }
            Action::LeaveGroup { group, member } => {
                if self.members.get(group) == Some(member) {
                    self.members.remove(group);
                }
                Done::Yes
            }
            Action::JoinGroup { group, member, .. } => {
                self.members.insert(*group, *member);
                Done::Yes
            }
            Action::Upgrade { release } => {
                if self.release != *release {
                    self.release = *release;
                    self.stop();
                    self.starts_in = Some(7);
                }
                Done::Later
            }
            Action::FoundGroup { .. }
            | Action::SetMembers { .. }
            | Action::CatchUp { .. }
            | Action::HandOver { .. }
            | Action::Switch { .. } => Done::Group,
        }
    }

    fn fetch(
        &mut self,
        number: OrderNumber,
        chunk: ChunkId,
        epoch: Epoch,
        range: ChunkRange,
        sources: &[NodeId],
    ) -> Done {
        if range.space == EVERY_SPACE && self.copies.get(&chunk).is_some_and(|copy| copy.is_whole) {
            // A late order may be about places that the chunk had before it was cut.
            return if self.has_part(chunk, &range) { Done::Yes } else { Done::Later };
        }
        let fresh = Copy { epoch, range, is_whole: false, is_served: false };
        let copy = self.copies.entry(chunk).or_insert(fresh);
        copy.epoch = epoch;
        if copy.range != range {
            // It is a copy of before a split.
            (copy.range, copy.is_whole) = (range, false);
        }
        if copy.is_whole {
            return Done::Yes;
        }
        let progress = Progress::default();
        let fresh = Fetch { number, sources: Vec::new(), part_of: None, progress };
        let fetch = self.fetches.entry(chunk).or_insert(fresh);
        (fetch.number, fetch.part_of) = (number, None);
        fetch.sources = sources.to_vec();
        Done::Later
    }

    fn copy_part(
        &mut self,
        number: OrderNumber,
        (of, chunk): (ChunkId, ChunkId),
        epoch: Epoch,
        range: ChunkRange,
    ) -> Done {
        if self.copies.get(&chunk).is_some_and(|copy| copy.is_whole) {
            // If it has less, it has been cut since, and the order is late.
            return if self.has_part(chunk, &range) { Done::Yes } else { Done::Later };
        }
        if !self.has_part(of, &range) {
            return Done::Later;
        }
        self.copies.insert(chunk, Copy { epoch, range, is_whole: false, is_served: false });
        let fresh =
            Fetch { number, sources: Vec::new(), part_of: Some(of), progress: Progress::default() };
        let fetch = self.fetches.entry(chunk).or_insert(fresh);
        fetch.number = number;
        Done::Later
    }

    /// Whether all pages of the range are in what the node has of a chunk.
    pub(crate) fn has_part(&self, of: ChunkId, range: &ChunkRange) -> bool {
        self.copies.get(&of).is_some_and(|copy| {
            copy.is_whole && copy.range.first <= range.first && range.end <= copy.range.end
        })
    }

    /// What it would have of a chunk without what it has as other chunks.
    pub(crate) fn own_range(&self, chunk: ChunkId) -> ChunkRange {
        let range = self.copies[&chunk].range;
        let others = self.copies.iter().filter(|(id, copy)| **id != chunk && copy.is_whole);
        let firsts = others.filter(|(_, copy)| copy.range.space == range.space);
        let firsts = firsts.map(|(_, copy)| copy.range.first);
        let behind = firsts.filter(|first| range.first < *first && *first < range.end).min();
        ChunkRange { end: behind.unwrap_or(range.end), ..range }
    }

    /// Drops the pages that chunks have no more, as a catalog says that the node has heard of.
    pub(crate) fn narrow(&mut self, catalog: &Catalog) {
        let is_narrowed = |copy: &Copy| copy.is_whole && copy.range.space == EVERY_SPACE;
        for (id, copy) in self.copies.iter_mut().filter(|(_, copy)| is_narrowed(copy)) {
            let Some(chunk) = catalog.chunks().get(id) else { continue };
            let is_served = |(other, one): &(&ChunkId, &Chunk)| {
                *other != id && one.nodes_in(ReplicaState::InService).next().is_some()
            };
            let served = catalog.chunks().iter().filter(is_served);
            let served = served.map(|(_, one)| one.first..one.end);
            let held = copy.range.first..copy.range.end;
            if let Some(kept) = narrowed(&held, &(chunk.first..chunk.end), served) {
                (copy.range.first, copy.range.end) = (kept.start, kept.end);
            }
        }
    }

    fn split(&mut self, chunk: ChunkId, upper: ChunkId, at: PageNo, epoch: Epoch) -> Done {
        let Some(copy) = self.copies.get_mut(&chunk).filter(|copy| copy.is_whole) else {
            return Done::Later;
        };
        copy.epoch = epoch;
        if copy.range.end > at {
            let range = ChunkRange { first: at, ..copy.range };
            copy.range.end = at;
            let above = Copy { range, ..copy.clone() };
            self.copies.insert(upper, above);
        }
        Done::Yes
    }

    /// The operations that it fetches for.
    pub(crate) fn fetching(&self) -> BTreeMap<OperationId, Progress> {
        self.fetches.values().map(|fetch| (fetch.number.operation, fetch.progress)).collect()
    }
}

/// The position that every acknowledgement names: the log does not matter here.
pub(crate) const POSITION: Lsn = Lsn(8);

/// The nodes that cannot be reached.
pub(crate) fn unreachable(nodes: &BTreeMap<NodeId, Node>, from: NodeId) -> BTreeSet<NodeId> {
    let from_outside = nodes[&from].is_isolated;
    let others = nodes.values().filter(|node| node.id != from);
    others.filter(|node| from_outside || !node.is_reachable()).map(|node| node.id).collect()
}
