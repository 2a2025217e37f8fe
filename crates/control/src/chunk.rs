//! A page chunk: a range of pages of a space, or a part of the pages of all spaces, and the nodes
//! that keep it.

use std::collections::BTreeMap;

use firn_base::{Extents, Lsn, PageId, PageNo, SpaceId};
use serde::{Deserialize, Serialize};

use crate::identifiers::{Epoch, GroupId, NodeId, OperationId};

/// The space of a chunk that has pages of all spaces: those of the extents whose places
/// ([`Extents::place`]) lie within the chunk's range.
pub const EVERY_SPACE: SpaceId = SpaceId(u32::MAX);

/// How far a replica is. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReplicaState {
    /// The node fetches the chunk. Nobody reads there.
    Copying,
    /// The node applies the log and answers readers.
    InService,
    /// Another replica has taken its place, and it is to be deleted. It may be gone already.
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
}
