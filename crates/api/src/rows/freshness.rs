//! How new the reads of a node are that follows another one.

use std::time::Duration;

use firn_base::Cts;

use super::{Cancellation, RowsResult};

/// What a read has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadConsistency {
    /// Every commit that was acknowledged anywhere before the read arrived.
    Strong {
        /// Whether reads that arrive together share one question to the node that writes.
        shares: bool,
    },
    /// All commits up to a timestamp.
    Position(Cts),
    /// Every commit that was acknowledged longer than this ago.
    Bounded(Duration),
    /// What the node has.
    Stale,
}

/// A node that follows another one, and waits for it.
pub trait Freshness: Send + Sync {
    /// Blocks until snapshots that are opened from now on, and definitions that are looked up, are
    /// as new as wanted.
    ///
    /// # Errors
    /// [`super::RowsError::Unavailable`] after `patience`, never something older;
    /// [`super::RowsError::Cancelled`].
    fn catch_up(
        &self,
        wanted: ReadConsistency,
        patience: Duration,
        cancelled: &Cancellation,
    ) -> RowsResult<()>;
}
