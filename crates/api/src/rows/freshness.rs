//! How new the reads of a node are: of one that follows another one, and of one that may have been
//! replaced as the writer without knowing it yet.

use std::time::Duration;

use firn_base::{Cts, Lsn};

use super::{Cancellation, RowsResult};

/// What a read has to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadConsistency {
    /// Every commit that was acknowledged anywhere before the read arrived.
    Strong {
        /// Whether reads that arrive together share one question to the node that writes.
        shares: bool,
        /// Whether a read waits only if what it reads has changed, where the node knows that.
        by_page: bool,
        /// Whether log is taken from the memory of the node that writes, where that can be read.
        /// The last read decides for the node, whose task takes log for all.
        log_tail: bool,
    },
    /// All commits up to a timestamp.
    Position(Cts),
    /// Every commit that was acknowledged longer than this ago.
    Bounded(Duration),
    /// What the node has.
    Stale,
}

/// Commits that a read has to see and its node has not applied yet. The read waits for them once it
/// meets something that they may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// Commits up to this timestamp had changed their pages when the read arrived.
    pub commits: Cts,
    /// Those of them that the read has to see are in the log before this position.
    pub position: Lsn,
    /// How long the read waits for them.
    pub patience: Duration,
}

/// A node that follows another one, and waits for it.
pub trait Freshness: Send + Sync {
    /// Blocks until definitions that are looked up are as new as wanted, and snapshots that are
    /// opened from now on too; unless it returns what the node does not have yet. The transaction
    /// that reads must be told of that ([`super::Transaction::must_see`]).
    ///
    /// # Errors
    /// [`super::RowsError::Unavailable`] after `patience`, never something older;
    /// [`super::RowsError::Cancelled`].
    fn catch_up(
        &self,
        wanted: ReadConsistency,
        patience: Duration,
        cancelled: &Cancellation,
    ) -> RowsResult<Option<Awaited>>;
}

/// The promise of the other nodes not to let one of them write for a while.
pub trait WriterLease: Send + Sync {
    /// Until when, on the monotonic clock, no commit can be acknowledged by another node; zero:
    /// that is not sure now. Does not block.
    fn lasts_until(&self) -> Duration;
}
