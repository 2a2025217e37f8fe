//! Changes of the catalog, as they stand in the control group's log.

use std::collections::BTreeSet;

use firn_base::{Lsn, PageNo, SpaceId};
use firn_consensus::{MemberId, Role, Term};
use serde::{Deserialize, Serialize};

use crate::group::OrderedMembers;
use crate::identifiers::{ChunkId, ClusterId, DirectoryId, Epoch, GroupId, NodeId, OperationId};
use crate::node::{Health, NodeRole, Release};
use crate::operation::Reason;
use crate::settings::Settings;

/// An entry of the control group's log. The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proposal {
    /// A node asks to be in the cluster.
    Join(Join),
    /// A node of the cluster has started.
    Started(Started),
    /// What failure detection found out about a node.
    Health { node: NodeId, incarnation: u64, health: Health, flaps: u8 },
    /// Somebody asks to forget a node.
    Remove { node: NodeId },
    /// Replaces the settings.
    Configure(Settings),
    /// A log group begins. Its members are numbered from 1 on, in this order.
    FoundGroup { members: Vec<(NodeId, Role)>, wanted_voters: u8, wanted_loggers: u8 },
    /// A member was elected.
    Led { group: GroupId, term: Term, member: MemberId },
    /// A range of pages gets its nodes. The pages are as the log makes them from `position` on.
    CreateChunk {
        space: SpaceId,
        first: PageNo,
        end: PageNo,
        group: GroupId,
        position: Lsn,
        nodes: BTreeSet<NodeId>,
    },
    /// A space is gone, and so are its chunks.
    DropSpace { space: SpaceId },
    /// A chunk has grown or shrunk.
    Measured { chunk: ChunkId, bytes: u64, pages: u32 },
    /// A chunk, which was seen in that epoch, gets a replica in the place of another, or one more.
    MoveReplica { chunk: ChunkId, epoch: Epoch, from: Option<NodeId>, to: NodeId, reason: Reason },
    /// A node does not have a replica that it should have.
    Lost { chunk: ChunkId, node: NodeId, epoch: Epoch },
    /// The pages of a chunk from `at` on become another chunk.
    Split { chunk: ChunkId, epoch: Epoch, at: PageNo },
    /// A log group gets a member, loses one, or both.
    ChangeMember {
        group: GroupId,
        epoch: Epoch,
        add: Option<(NodeId, Role)>,
        remove: Option<MemberId>,
        reason: Reason,
    },
    /// A node gives away all that it has, or takes again.
    Drain { node: NodeId, on: bool },
    /// All nodes get another release.
    Upgrade { release: Release },
    /// A node did not come back from its upgrade.
    StopUpgrade { operation: OperationId },
    /// Somebody wants an operation to stop.
    Cancel { operation: OperationId },
    /// A node has carried out the order of a step, and is at that position of the log.
    Acknowledge { operation: OperationId, step: u32, node: NodeId, position: Lsn },
    /// The cluster begins with these nodes and groups. It is taken while there are none.
    Found(Founding),
    /// Somebody asks that another member of a log group leads: the one on that node, or any that
    /// can.
    Switch { group: GroupId, to: Option<NodeId> },
    /// A log group gets these numbers of voters and loggers.
    Resize { group: GroupId, voters: u8, loggers: u8 },
    /// A chunk of all spaces, which was seen in that epoch, is cut in the middle of its places.
    Divide { chunk: ChunkId, epoch: Epoch, reason: Reason },
    /// Chunks of all spaces that have more bytes than this are cut in two.
    SplitAbove { bytes: u64 },
    /// As [`Proposal::Found`], with the numbers of its chunks, in order: those that they have on
    /// the nodes' disks.
    FoundNumbered { founding: Founding, chunks: Vec<ChunkId> },
}

/// What a cluster begins with. The leader of the control group proposes it, so that founders whose
/// texts differ agree on one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Founding {
    /// Each with its number, and with [`DirectoryId::UNKNOWN`] until it starts.
    pub nodes: Vec<Join>,
    /// The members of the control group, then those of the others.
    pub groups: Vec<OrderedMembers>,
    /// What page nodes make from the beginning of the log on.
    pub chunks: Vec<FoundedChunk>,
}

/// A chunk that a cluster begins with. All of its nodes have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundedChunk {
    pub space: SpaceId,
    pub first: PageNo,
    pub end: PageNo,
    pub group: GroupId,
    pub nodes: BTreeSet<NodeId>,
}

/// What a node says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The cluster that the node was told to join, or that it was in. `None`: whichever answers.
    pub cluster: Option<ClusterId>,
    pub name: String,
    pub directory: DirectoryId,
    pub address: String,
    pub client_address: Option<String>,
    pub roles: BTreeSet<NodeRole>,
    pub zone: String,
    pub capacity: u64,
    pub release: Release,
    /// The number that the node wants, for instance because its certificate has it. `None`: the
    /// next one.
    pub number: Option<NodeId>,
}

/// What a node says of itself when it starts again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub cluster: ClusterId,
    pub node: NodeId,
    pub directory: DirectoryId,
    /// Higher than in each life before.
    pub incarnation: u64,
    pub address: String,
    pub client_address: Option<String>,
    pub release: Release,
}
