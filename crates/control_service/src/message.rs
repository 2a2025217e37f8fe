//! What nodes ask of control nodes, with
//! [its bytes](../../../docs/formats/control_service.md): one byte of version, then the message as
//! `postcard` encodes it. Each request is one call of a link, each reply its answer.

use firn_consensus::{MemberId, Term};
use firn_control::{Applied, NodeId, OperationId, Progress, Proposal, Reason, ToControl, ToNode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of requests and replies.
pub const VERSION: u8 = 1;

/// From a node, or from somebody who administers the cluster. The order of the variants is part of
/// the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Change the catalog. Answered once the change is durable, or refused.
    Propose(Proposal),
    /// A heartbeat is answered with what the leader has heard; an acknowledgement with nothing.
    Tell(ToControl),
    /// Answered once the catalog has more than `entries`, or there are orders for the node, or
    /// `patience` has passed.
    Watch {
        watcher: Option<Watcher>,
        entries: u64,
        /// In milliseconds.
        patience: u32,
    },
    /// Answered by each control node.
    Status,
}

/// The node that watches. It gets its orders, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watcher {
    pub node: NodeId,
    /// Which start of the node this is.
    pub incarnation: u64,
}

/// From a control node. The order of the variants is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// Another control node leads, at that address if it is known. Nothing has happened.
    NotLeader {
        leader: Option<String>,
    },
    /// The proposal is in the catalog for good.
    Applied(Applied),
    /// The proposal changes nothing. For people.
    Refused(String),
    /// The node stopped leading; the proposal may be in the catalog or come into it.
    Unknown,
    /// The leader does not listen to the node.
    Unheard {
        why: Unheard,
        text: String,
    },
    /// The answer to [`Request::Tell`] and [`Request::Watch`].
    News {
        /// A snapshot, if it is newer than what the watcher has.
        catalog: Option<Vec<u8>>,
        messages: Vec<ToNode>,
    },
    Status(Box<StatusReply>),
    /// The control node cannot do it at the moment, or ever. For people.
    Failed(String),
}

/// Why a leader does not listen to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unheard {
    /// The node has to register its start.
    Unregistered,
    /// It was removed from the cluster.
    Removed,
    /// It speaks for a node that it is not, or for another cluster.
    Stranger,
}

/// How a control node is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    pub member: MemberId,
    pub term: Term,
    /// Whether it leads, and may act.
    pub leads: bool,
    /// Where the leader is, as far as the node knows.
    pub leader: Option<String>,
    /// How many entries its catalog has taken.
    pub entries: u64,
    /// The operations under way. What they wait for is known to the leader alone.
    pub operations: Vec<OperationLine>,
}

/// An operation under way, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationLine {
    pub operation: OperationId,
    pub text: String,
    pub reason: Reason,
    pub progress: Option<Progress>,
    pub waits_for: Option<String>,
}

/// The bytes are not a message of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error(
        "the message to or from control has version {0}, and this build knows {VERSION}; update the older node"
    )]
    Version(u8),
    #[error("the bytes are not a message to or from control")]
    Malformed,
}

macro_rules! versioned {
    ($type:ident) => {
        impl $type {
            /// The bytes of the message.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                encode(self)
            }

            /// Reads a message.
            ///
            /// # Errors
            /// If the bytes are not exactly those of one of this version.
            pub fn decode(bytes: &[u8]) -> Result<$type, MessageError> {
                decode(bytes)
            }
        }
    };
}

versioned!(Request);
versioned!(Reply);

fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("plain fields can always be encoded")
}

fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    let (version, rest) = bytes.split_first().ok_or(MessageError::Malformed)?;
    if *version != VERSION {
        return Err(MessageError::Version(*version));
    }
    let message = postcard::from_bytes(rest).map_err(|_| MessageError::Malformed)?;
    if encode(&message) == bytes { Ok(message) } else { Err(MessageError::Malformed) }
}

/// For the fuzz target: any bytes are refused, or are read and written back unchanged.
///
/// # Panics
/// If that does not hold.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok(reply) = Reply::decode(bytes) {
        assert_eq!(reply.encode(), bytes);
    }
    crate::file::check_any_bytes(bytes);
}

#[cfg(test)]
mod tests;
