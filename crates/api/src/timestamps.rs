//! The seam to the source of commit timestamps: the node itself, an oracle that a cluster shares,
//! or a hybrid logical clock (papers 000 §4.3, 002 §IV).

use std::sync::Arc;

use firn_base::Cts;

/// Why there is no timestamp. Nothing was committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// The source cannot be reached. Try again.
    #[error("the source of commit timestamps cannot be reached: {reason}")]
    Unavailable {
        /// What the transport reports.
        reason: String,
    },
    /// A timestamp from elsewhere is further ahead than clocks may differ.
    #[error("timestamp {cts} is further ahead of this node's clock than clocks may differ")]
    TooFarAhead { cts: Cts },
}

/// Numbers the commits of several nodes. The numbers grow and may have gaps.
pub trait TimestampSource: Send + Sync {
    /// A timestamp above all that this source had handed out to this node, or had observed through
    /// it, before the call began. May block for a round trip.
    ///
    /// # Errors
    /// [`TimestampError::Unavailable`]
    fn next(&self) -> Result<Cts, TimestampError>;

    /// Ensures that all later timestamps are above this one, which came from elsewhere. May block
    /// for a round trip.
    ///
    /// # Errors
    /// All of [`TimestampError`].
    fn observe(&self, cts: Cts) -> Result<(), TimestampError>;

    /// Roughly how much timestamps grow in a second; the log reserves this much at once.
    fn growth_per_second(&self) -> u64;
}

/// What numbers a node's commits.
#[derive(Clone, Default)]
pub enum Timestamps {
    /// The node itself, without gaps.
    #[default]
    Local,
    /// A source that other nodes share.
    Shared(Arc<dyn TimestampSource>),
}
