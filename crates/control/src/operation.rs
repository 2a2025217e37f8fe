//! Operations: changes of the cluster that take several steps.
//!
//! An operation is in the catalog, so it survives each control node. It waits for one thing at a
//! time: an acknowledgement of an order, or a fact about a node. Which orders are outstanding
//! follows from the catalog alone ([`crate::orders`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use firn_base::{Lsn, PageNo};
use firn_consensus::{MemberId, Role};
use serde::{Deserialize, Serialize};

use crate::identifiers::{ChunkId, GroupId, NodeId, OperationId};
use crate::node::Release;

/// Why an operation was begun. The order of the variants is part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Somebody asked for it.
    Asked,
    /// A node is down, and what it had is copied elsewhere.
    NodeDown,
    /// There are fewer copies than the settings ask for.
    TooFew,
    /// A node leaves.
    Draining,
    /// Two copies are in one zone, and another zone has none.
    Zones,
    /// A node has more than others.
    Balance,
    /// A chunk has grown.
    Growth,
}

/// A change that takes several steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub kind: OperationKind,
    pub reason: Reason,
    /// Counts the steps. An acknowledgement of an earlier step is ignored.
    pub step: u32,
}

/// What an operation changes, and how far it is. The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationKind {
    /// Founders of a log group make its log.
    FoundGroup {
        group: GroupId,
        waiting: BTreeSet<NodeId>,
    },
    /// Nodes make a new chunk.
    CreateChunk {
        chunk: ChunkId,
        waiting: BTreeSet<NodeId>,
    },
    MoveReplica(ReplicaMove),
    /// Nodes cut a chunk in two. In the catalog it is cut already.
    SplitChunk {
        chunk: ChunkId,
        upper: ChunkId,
        waiting: BTreeSet<NodeId>,
    },
    ChangeMember(MemberMove),
    /// Everything is moved away from a node, by further operations.
    Drain {
        node: NodeId,
    },
    Upgrade(Upgrade),
    Switch(Switch),
    DivideChunk(Division),
}

/// A chunk of all spaces is cut in two.
///
/// Every node of the chunk makes a copy of its upper part from the pages that it has, while the
/// chunk serves all of its places as before. Once all have it, the catalog cuts the chunk, in one
/// step. Until then the upper chunk is in the operation alone, so that giving the operation up
/// leaves nothing in the catalog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    pub chunk: ChunkId,
    /// The chunk of the places from `at` on.
    pub upper: ChunkId,
    pub at: PageNo,
    /// The nodes that do not have the upper chunk yet.
    pub waiting: BTreeSet<NodeId>,
    /// Those that have it, and the position that it had reached there.
    pub ready: BTreeMap<NodeId, Lsn>,
}

/// A replica of a chunk on one node more, and on another one less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaMove {
    pub chunk: ChunkId,
    /// `None`: the chunk gets one replica more.
    pub from: Option<NodeId>,
    pub to: NodeId,
    pub phase: MovePhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MovePhase {
    /// The node fetches the pages, and applies log until it is near the end.
    Copy,
    /// The node is told to answer readers.
    Serve,
    /// The node that had the replica before deletes it.
    Retire,
}

/// A member more in a log group, and another one less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberMove {
    pub group: GroupId,
    pub add: Option<NewMember>,
    pub remove: Option<MemberId>,
    pub phase: MemberPhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMember {
    pub member: MemberId,
    pub node: NodeId,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemberPhase {
    /// The newcomer becomes a learner.
    Learn,
    /// The newcomer gets the log.
    CatchUp,
    /// In one step, the newcomer gets its role and the other member leaves the group.
    Change,
    /// The group is made again as it was before.
    Undo,
    /// The member that is not in the group any more deletes its log.
    Leave { member: MemberId, node: NodeId },
}

/// All nodes get another release, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upgrade {
    pub release: Release,
    /// The node whose turn it is.
    pub node: Option<NodeId>,
    /// Whether the node has been told to start the other release. Before, it hands over.
    pub restarting: bool,
    /// A node did not come back. Nothing more is upgraded.
    pub stopped: bool,
}

/// Makes another member of a log group lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    pub group: GroupId,
    pub from: MemberId,
    pub to: MemberId,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    Done,
    Cancelled,
    /// A node that it needs went down, or what it changes is gone.
    Failed,
}

/// An operation that is over. The catalog keeps the last of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub operation: OperationId,
    pub kind: OperationKind,
    pub reason: Reason,
    pub outcome: Outcome,
}

impl OperationKind {
    /// The move of a replica, if it is one.
    #[must_use]
    pub fn replica_move(&self) -> Option<&ReplicaMove> {
        match self {
            OperationKind::MoveReplica(one) => Some(one),
            _ => None,
        }
    }

    /// The division of a chunk, if it is one.
    #[must_use]
    pub fn division(&self) -> Option<&Division> {
        match self {
            OperationKind::DivideChunk(one) => Some(one),
            _ => None,
        }
    }

    /// Whether the operation brings something to `node`.
    #[must_use]
    pub fn brings_to(&self, node: NodeId) -> bool {
        match self {
            OperationKind::FoundGroup { waiting, .. }
            | OperationKind::CreateChunk { waiting, .. }
            | OperationKind::DivideChunk(Division { waiting, .. }) => waiting.contains(&node),
            OperationKind::MoveReplica(one) => one.to == node && one.phase != MovePhase::Retire,
            OperationKind::ChangeMember(one) => one.add.is_some_and(|new| new.node == node),
            OperationKind::SplitChunk { .. }
            | OperationKind::Drain { .. }
            | OperationKind::Upgrade(_)
            | OperationKind::Switch(_) => false,
        }
    }
}

fn list(nodes: &BTreeSet<NodeId>) -> String {
    nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(", ")
}

/// What the operation does and what it waits for, for people.
impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationKind::FoundGroup { group, waiting } => {
                write!(f, "found group {group}: waits for {}", list(waiting))
            }
            OperationKind::CreateChunk { chunk, waiting } => {
                write!(f, "create chunk {chunk}: waits for {}", list(waiting))
            }
            OperationKind::MoveReplica(one) => one.fmt(f),
            OperationKind::SplitChunk { chunk, upper, waiting } => {
                write!(f, "split chunk {chunk}, new {upper}: waits for {}", list(waiting))
            }
            OperationKind::ChangeMember(one) => one.fmt(f),
            OperationKind::Drain { node } => write!(f, "drain node {node}"),
            OperationKind::Upgrade(one) => one.fmt(f),
            OperationKind::Switch(one) => {
                write!(f, "group {}: {} leads instead of {}", one.group, one.to, one.from)
            }
            OperationKind::DivideChunk(one) => one.fmt(f),
        }
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Division { chunk, upper, waiting, .. } = self;
        write!(f, "split chunk {chunk}, new {upper}: copying on {}", list(waiting))
    }
}

impl fmt::Display for ReplicaMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            Some(from) => write!(f, "chunk {} from {from} to {}: ", self.chunk, self.to)?,
            None => write!(f, "chunk {} to {} too: ", self.chunk, self.to)?,
        }
        f.write_str(match self.phase {
            MovePhase::Copy => "copying",
            MovePhase::Serve => "taking up service",
            MovePhase::Retire => "deleting the old one",
        })
    }
}

impl fmt::Display for MemberMove {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "group {}:", self.group)?;
        if let Some(new) = self.add {
            write!(f, " add {} on {}", new.member, new.node)?;
        }
        if let Some(member) = self.remove {
            write!(f, " remove {member}")?;
        }
        match self.phase {
            MemberPhase::Learn => write!(f, ": becomes a learner"),
            MemberPhase::CatchUp => write!(f, ": catches up"),
            MemberPhase::Change => write!(f, ": changes the members"),
            MemberPhase::Undo => write!(f, ": undoes the change"),
            MemberPhase::Leave { member, .. } => write!(f, ": {member} leaves"),
        }
    }
}

impl fmt::Display for Upgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "upgrade to {}: ", self.release)?;
        match self.node {
            _ if self.stopped => write!(f, "stopped"),
            None => write!(f, "waits until all is healthy"),
            Some(node) if self.restarting => write!(f, "node {node} restarts"),
            Some(node) => write!(f, "node {node} hands over"),
        }
    }
}
