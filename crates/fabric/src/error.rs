//! Why a one-sided access failed.

use std::time::Duration;

use crate::epoch::Epoch;

/// Why a one-sided access did not happen, or may not have happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    #[error("no region named {0} is registered")]
    Unknown(String),
    /// The name is taken.
    #[error("a region named {0} is already registered")]
    Registered(String),
    /// The access goes beyond the region's end. No operation of its batch was done.
    #[error("words {start}..{end} are beyond the end of a region of {length} words")]
    OutOfBounds {
        /// First word.
        start: usize,
        /// One past the last word.
        end: usize,
        length: usize,
    },
    /// The batch carries more than the way to its owner takes at once. No operation of it was done.
    #[error("the batch carries more than {most} words, the most that its owner takes at once")]
    TooLarge { most: usize },
    /// The owner's epoch has ended: connect again, to whatever it has registered since.
    #[error("epoch {epoch} of the region's owner has ended")]
    Stale {
        /// The epoch that the peer had connected to.
        epoch: Epoch,
    },
    /// The owner cannot be reached. Operations that were under way may or may not have been done.
    #[error("the owner of the regions at {owner} cannot be reached: {reason}")]
    Unreachable { owner: String, reason: String },
    /// The time ran out. Operations that were under way may still be done.
    #[error("one-sided access took longer than {timeout:?}")]
    TimedOut {
        /// How long the peer was willing to wait.
        timeout: Duration,
    },
    /// The owner uses another version of the fabric's protocol, or another protocol.
    #[error("{owner} does not serve regions that this process can read: {reason}")]
    Incompatible { owner: String, reason: String },
}
