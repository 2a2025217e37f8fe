//! Control: who is in the cluster, and who does what.
//!
//! The control nodes are a log group of their own. What they replicate is the [`Catalog`]: nodes,
//! log groups, page chunks, settings. Its changes are [`Proposal`]s, the entries of the group's
//! log. Each control node applies them in order and has the same catalog, byte for byte.

pub mod catalog;
mod chunk;
mod encoding;
mod group;
mod identifiers;
mod node;
mod proposal;
mod refusal;
mod settings;

pub use catalog::{Applied, Catalog};
pub use chunk::{Chunk, Replica, ReplicaState};
pub use encoding::{EncodingError, VERSION, check_any_bytes};
pub use group::{GroupMember, LogGroup};
pub use identifiers::{ChunkId, ClusterId, DirectoryId, Epoch, GroupId, NodeId, OperationId};
pub use node::{Health, Node, NodeRole, NodeState, Protocols, Release};
pub use proposal::{Join, Proposal, Started};
pub use refusal::{NextStep, Refusal};
pub use settings::Settings;
