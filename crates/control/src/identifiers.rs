//! The numbers by which the cluster names its parts. None is ever used again for another part.

use std::fmt;

pub use firn_base::network::identity::{ClusterId, NodeId};
use serde::{Deserialize, Serialize};

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize,
            Deserialize,
        )]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

identifier! {
    /// A replicated log group. Group 0 is that of the control nodes.
    GroupId(u32)
}
identifier! {
    /// A range of pages of a space, kept on several page nodes.
    ChunkId(u64)
}
identifier! {
    /// A change of the cluster that takes several steps.
    OperationId(u64)
}
identifier! {
    /// Counts the changes of where a chunk lies, or of who is in a group. What carries an older
    /// epoch is refused.
    Epoch(u64)
}

/// Drawn at random by a node when it makes its directory, so that a repeated request to join is
/// known from another node that wants the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DirectoryId(pub u128);

impl DirectoryId {
    /// The directory of a node that has not started yet.
    pub const UNKNOWN: DirectoryId = DirectoryId(0);
}

impl GroupId {
    /// The group of the control nodes, which replicates the catalog.
    pub const CONTROL: GroupId = GroupId(0);
}

/// The epoch of a chunk or of a group that is new.
pub(crate) const FIRST_EPOCH: Epoch = Epoch(1);

impl Epoch {
    /// The epoch after this one.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}
