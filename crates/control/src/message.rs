//! What nodes and the leader of the control group send each other.

use std::collections::{BTreeMap, BTreeSet};

use firn_base::Lsn;
use firn_consensus::{MemberId, Term};
use serde::{Deserialize, Serialize};

use crate::identifiers::{ChunkId, ClusterId, Epoch, GroupId, NodeId, OperationId};
use crate::order::{Order, OrderNumber};

/// From a node to the leader of the control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToControl {
    pub cluster: ClusterId,
    pub node: NodeId,
    /// Which start of the node speaks.
    pub incarnation: u64,
    pub body: NodeMessage,
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NodeMessage {
    Heartbeat(Heartbeat),
    /// The order has been carried out. `position` is that of the log, where the order is about one.
    Acknowledgement {
        number: OrderNumber,
        position: Lsn,
    },
}

/// What a node says of itself at a steady rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The highest [`ToNode::Heard`] that has arrived. The node has done all that it acknowledged
    /// before it heard this, so that its report counts against what the catalog knew then.
    pub entries: u64,
    /// The nodes that it cannot reach.
    pub unreachable: BTreeSet<NodeId>,
    /// The chunks that it has, served or not.
    pub chunks: BTreeMap<ChunkId, ChunkReport>,
    /// The groups that it leads.
    pub leads: BTreeMap<GroupId, (Term, MemberId)>,
    /// How far its copies are.
    pub copies: BTreeMap<OperationId, Progress>,
}

/// What a node has of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkReport {
    pub epoch: Epoch,
    pub position: Lsn,
    pub bytes: u64,
    pub pages: u32,
}

/// How far something is, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// From the leader of the control group to a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToNode {
    pub cluster: ClusterId,
    /// The leader's term. A node refuses those of an earlier one.
    pub term: Term,
    pub body: ControlMessage,
}

/// The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlMessage {
    Order(Order),
    /// The answer to a heartbeat: how many entries the leader's catalog has taken.
    Heard {
        entries: u64,
    },
}
