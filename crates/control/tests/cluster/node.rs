//! A simulated node: it carries orders out, and knows of chunks only which it has.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::{Lsn, PageNo};
use firn_consensus::MemberId;
use firn_control::{
    Action, ChunkId, ChunkRange, Epoch, Fence, GroupId, NodeId, OperationId, Order, OrderNumber,
    Progress, Release,
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
        let fetch =
            self.fetches.entry(chunk).or_insert(Fetch { number, sources: Vec::new(), progress });
        fetch.number = number;
        fetch.sources = sources.to_vec();
        Done::Later
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
