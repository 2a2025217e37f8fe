//! Control: who is in the cluster, and who does what.
//!
//! The control nodes are a separate log group. What they replicate is the [`Catalog`]: nodes, log
//! groups, page chunks, settings. Its changes are [`Proposal`]s, the entries of the group's log.
//! Each control node applies them in order and has the same catalog, byte for byte.
//!
//! ```text
//!     tick · receive(heartbeat, acknowledgement) · apply(proposal) · lead(term) · follow
//!                                     │
//!                             ┌───────▼───────┐
//!                             │  Controller   │   no clock, no disk, no network
//!                             └───────┬───────┘
//!                      Propose(proposal) · Send(node, order)
//! ```
//!
//! The leader of the group decides. It hears the nodes ([`Heartbeat`]), finds out which are down,
//! [`plan`]s what is wanting, and sends [`orders`]. What takes several steps is an [`Operation`]
//! in the catalog, so that another leader goes on with it. A node judges the orders that it gets by
//! a [`Fence`], which makes late and repeated ones harmless.

pub mod catalog;
mod chunk;
mod controller;
mod detector;
pub mod elastic;
mod encoding;
mod fence;
mod group;
mod identifiers;
mod message;
mod node;
mod operation;
mod order;
pub mod pause;
mod placement;
mod planner;
mod proposal;
mod refusal;
mod settings;

pub use catalog::{Applied, Catalog};
pub use chunk::{Chunk, EVERY_SPACE, MOST_CHUNKS, Replica, ReplicaState, SPLIT_ABOVE, narrowed};
pub use controller::{Command, Controller, OperationStatus, ReceiveError};
pub use encoding::{EncodingError, VERSION, check_any_bytes};
pub use fence::Fence;
pub use group::{GroupMember, LogGroup, OrderedMembers};
pub use identifiers::{ChunkId, ClusterId, DirectoryId, Epoch, GroupId, NodeId, OperationId};
pub use message::{
    ChunkReport, ControlMessage, Heartbeat, NodeMessage, Progress, ToControl, ToNode,
};
pub use node::{Health, Node, NodeRole, NodeState, Protocols, Release};
pub use operation::{
    Division, Ended, MemberMove, MemberPhase, MovePhase, NewMember, Operation, OperationKind,
    Outcome, Reason, ReplicaMove, Upgrade,
};
pub use order::{Action, ChunkRange, Order, OrderNumber, orders, retire_stray};
pub use placement::{can_leave, equal_parts, place_chunk, spread};
pub use planner::plan;
pub use proposal::{FoundedChunk, Founding, Join, Proposal, Started};
pub use refusal::{NextStep, Refusal};
pub use settings::Settings;
