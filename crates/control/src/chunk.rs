//! A page chunk: a range of pages of a space, or a part of the pages of all spaces, and the nodes
//! that keep it.

use std::collections::BTreeMap;
use std::ops::Range;

use firn_base::{Extents, Lsn, PageId, PageNo, SpaceId};
use serde::{Deserialize, Serialize};

use crate::identifiers::{Epoch, GroupId, NodeId, OperationId};

/// The space of a chunk that has pages of all spaces: those of the extents whose places
/// ([`Extents::place`]) lie within the chunk's range.
pub const EVERY_SPACE: SpaceId = SpaceId(u32::MAX);

/// The most chunks of all spaces. Each costs every node that has it a store and a registration at
/// the log's members.
pub const MOST_CHUNKS: usize = 256;

/// The bytes above which a chunk of all spaces is cut in two, unless somebody says otherwise.
pub const SPLIT_ABOVE: u64 = 10 << 30;

/// How far a replica is. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReplicaState {
    /// The node fetches the chunk. Nobody reads there.
    Copying,
    /// The node applies the log and answers readers.
    InService,
    /// Another replica has taken its place, and the node deletes it. It may be gone already.
    Leaving,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    pub state: ReplicaState,
    /// The entry of the control group's log that gave the replica this state. What the node says
    /// of itself counts if it has heard of this entry.
    pub since: u64,
    /// The position that the replica had reached when it last changed its state. It has reached
    /// more since.
    pub position: Lsn,
}

/// A page chunk as the catalog has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub space: SpaceId,
    /// The first page; the first place in a chunk of [`EVERY_SPACE`].
    pub first: PageNo,
    /// The page behind the last one. [`PageNo::NONE`] for the last chunk of a space, which grows,
    /// and for the last chunk of all spaces.
    pub end: PageNo,
    /// The group whose log makes the pages.
    pub group: GroupId,
    /// Counts the changes of range and replicas. A node refuses orders of an older epoch.
    pub epoch: Epoch,
    /// About how many bytes each replica takes.
    pub bytes: u64,
    /// How many pages are in use: in a range of one space, from the first one on.
    pub pages: u32,
    pub replicas: BTreeMap<NodeId, Replica>,
    /// The operation that changes the chunk. There is one at a time.
    pub operation: Option<OperationId>,
}

/// What a node keeps of a chunk of which it has the places `held`, while the catalog gives it the
/// places `own`. `served` has the places of other chunks that are in service somewhere. `None`: the
/// node keeps what it has.
///
/// A chunk is cut in the catalog first. So its nodes have more than it for a while, and drop the
/// rest once other chunks have it.
#[must_use]
pub fn narrowed(
    held: &Range<PageNo>,
    own: &Range<PageNo>,
    served: impl IntoIterator<Item = Range<PageNo>>,
) -> Option<Range<PageNo>> {
    let is_within = held.start <= own.start && own.end <= held.end && own.start < own.end;
    if !is_within || held == own {
        return None;
    }
    let mut ranges: Vec<_> = served.into_iter().chain([own.clone()]).collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    let join = |reached: PageNo, range: &Range<PageNo>| match range.start <= reached {
        true => reached.max(range.end),
        false => reached,
    };
    let reached = ranges.iter().fold(held.start, join);
    (reached >= held.end).then(|| own.clone())
}

impl Chunk {
    /// The nodes whose replicas are in `state`, in the order of their ids.
    pub fn nodes_in(&self, state: ReplicaState) -> impl Iterator<Item = NodeId> + '_ {
        self.replicas
            .iter()
            .filter(move |(_, replica)| replica.state == state)
            .map(|(node, _)| *node)
    }

    /// Whether the chunk has the page.
    #[must_use]
    pub fn contains(&self, extents: Extents, page: PageId) -> bool {
        match self.space {
            EVERY_SPACE => (self.first.0..self.end.0).contains(&extents.place(page)),
            space => space == page.space && (self.first..self.end).contains(&page.page_no),
        }
    }

    /// How many pages the chunk can have at most.
    pub(crate) fn most_pages(&self) -> u32 {
        match self.space {
            EVERY_SPACE => u32::MAX,
            _ => self.end.0 - self.first.0,
        }
    }

    /// The middle of its places, if it can be cut there.
    #[must_use]
    pub(crate) fn middle(&self) -> Option<PageNo> {
        let middle = PageNo(self.first.0 + (self.end.0 - self.first.0) / 2);
        (middle > self.first).then_some(middle)
    }

    /// Whether it has all places, so that how pages lie together does not matter.
    pub(crate) fn is_everything(&self) -> bool {
        self.space == EVERY_SPACE && self.first.0 == 0 && self.end == PageNo::NONE
    }
}

#[cfg(test)]
mod tests;
