//! Commit timestamps, and the number that is a snapshot (paper 000 §4.2).
//!
//! ```text
//!   CTS handed out:      1   2   3   4   5
//!   slot is filled:      ✓   ✓   –   ✓   –
//!                            ▲ max_committed: every timestamp up to here can be looked up
//! ```
//!
//! In the paper, one step under a lock hands out a timestamp and fills the transaction's slot, so
//! that `CTS_max_committed` never passes a slot that is not filled. Here both steps are lock-free.
//! How `max_committed` advances depends on the source of timestamps: the node itself, without gaps
//! ([`dense`]), or a source that nodes share, with gaps ([`sparse`]). The counters lie in a fabric
//! region, for nodes that take snapshots remotely; those see durable commits only.
//!
//! Invariant: `durable ≤ max_committed ≤ last`, and every transaction with `cts ≤ max_committed`
//! has its slot filled.

mod dense;
mod sparse;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_api::{TimestampError, Timestamps};
use firn_base::Cts;
use firn_fabric::OwnedRegion;

use self::dense::Dense;
use self::sparse::Sparse;
use crate::pages::{Restart, UnfinishedCommit};
use crate::sync::{AtomicU64, Ordering, yield_now};

/// The name of the counters' region.
pub(super) const REGION: &str = "timestamps";
/// Word of the region: the last timestamp that was handed out.
pub const LAST_WORD: usize = 0;
/// Word of the region: the snapshot that a reader would take now. On a separate cache line.
pub const MAX_COMMITTED_WORD: usize = 8;
/// Word of the region: the timestamp up to which all commits are durable, and so visible to other
/// nodes.
pub(super) const DURABLE_WORD: usize = 16;
/// Words that the region needs.
pub const REGION_WORDS: usize = 24;

/// Timestamps that one watermark reserves if they have no gaps.
const DENSE_AHEAD: u64 = 1 << 20;

pub struct CommitOrder {
    counters: Counters,
    kind: Kind,
}

enum Kind {
    Dense(Dense),
    Sparse(Sparse),
}

struct Counters(OwnedRegion);

/// A timestamp whose transaction is being committed. Until it is [published](CommitOrder::publish),
/// no later commit becomes visible.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitTicket {
    cts: Cts,
    /// The commit's place in the sparse order.
    place: usize,
}

impl CommitTicket {
    #[must_use]
    pub fn cts(self) -> Cts {
        self.cts
    }
}

impl Counters {
    fn last(&self) -> &AtomicU64 {
        &self.0.words()[LAST_WORD]
    }

    fn max_committed(&self) -> &AtomicU64 {
        &self.0.words()[MAX_COMMITTED_WORD]
    }
}

impl std::fmt::Debug for CommitOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommitOrder")
            .field("last", &self.last())
            .field("max_committed", &self.max_committed())
            .finish_non_exhaustive()
    }
}

impl CommitOrder {
    /// Continues after `last`. All timestamps up to `last` are committed.
    ///
    /// # Errors
    /// If a shared source cannot be informed of `last`.
    ///
    /// # Panics
    /// If the region is too small.
    pub fn new(
        region: OwnedRegion,
        last: Cts,
        timestamps: &Timestamps,
    ) -> Result<CommitOrder, TimestampError> {
        assert!(region.words().len() >= REGION_WORDS, "the region holds the counters");
        for word in [LAST_WORD, MAX_COMMITTED_WORD, DURABLE_WORD] {
            region.words()[word].store(last.0, Ordering::Release);
        }
        let kind = match timestamps {
            Timestamps::Local => Kind::Dense(Dense::new()),
            Timestamps::Shared(source) => {
                source.observe(last)?;
                Kind::Sparse(Sparse::new(Arc::clone(source)))
            }
        };
        Ok(CommitOrder { counters: Counters(region), kind })
    }

    /// The snapshot that a reader would take now.
    #[inline]
    #[must_use]
    pub fn max_committed(&self) -> Cts {
        Cts(self.counters.max_committed().load(Ordering::SeqCst))
    }

    /// The timestamp up to which all commits are durable, as other nodes see it.
    #[must_use]
    pub fn durable(&self) -> Cts {
        Cts(self.counters.0.words()[DURABLE_WORD].load(Ordering::SeqCst))
    }

    /// Publishes to other nodes that all commits up to `cts` are durable. Never goes back.
    pub fn publish_durable(&self, cts: Cts) {
        self.counters.0.words()[DURABLE_WORD].fetch_max(cts.0, Ordering::SeqCst);
    }

    /// The last timestamp that was handed out.
    #[must_use]
    pub fn last(&self) -> Cts {
        Cts(self.counters.last().load(Ordering::Acquire))
    }

    /// Whether a source that nodes share numbers the commits.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Sparse(_))
    }

    /// The number of timestamps that one watermark in the log reserves.
    #[must_use]
    pub fn set_aside(&self) -> u64 {
        match &self.kind {
            Kind::Dense(_) => DENSE_AHEAD,
            Kind::Sparse(sparse) => sparse.source().growth_per_second(),
        }
    }

    /// Reserves the timestamp of a commit that is about to be written, if a shared source numbers
    /// commits. That may take a round trip, so call it with nothing latched. `None`:
    /// [`CommitOrder::allocate`] hands out the timestamp.
    ///
    /// # Errors
    /// If the source cannot be reached.
    pub fn reserve(&self) -> Result<Option<CommitTicket>, TimestampError> {
        match &self.kind {
            Kind::Dense(_) => Ok(None),
            Kind::Sparse(sparse) => sparse.reserve(&self.counters).map(Some),
        }
    }

    /// Takes a timestamp that another node has chosen for a commit of this node. Later commits of
    /// this node get later timestamps. The caller has ensured, before the timestamp was chosen,
    /// that readers with a later snapshot wait for this commit. Call it with nothing latched.
    ///
    /// # Errors
    /// If the source cannot be informed; [`TimestampError::Unavailable`] if the node numbers
    /// commits itself.
    pub fn adopt(&self, cts: Cts) -> Result<CommitTicket, TimestampError> {
        match &self.kind {
            Kind::Dense(_) => Err(no_shared_source()),
            Kind::Sparse(sparse) => sparse.adopt(&self.counters, cts),
        }
    }

    /// Makes `cts` usable as a snapshot of this node: no later commit of this node gets a timestamp
    /// up to `cts`, and the commits that have one are visible. Blocks for a round trip and for
    /// commits that are being written.
    ///
    /// # Errors
    /// As [`CommitOrder::adopt`].
    pub fn close_up_to(&self, cts: Cts) -> Result<(), TimestampError> {
        match &self.kind {
            Kind::Dense(_) if cts <= self.last() => {}
            Kind::Dense(_) => return Err(no_shared_source()),
            Kind::Sparse(sparse) => sparse.close_up_to(&self.counters, cts)?,
        }
        self.wait_visible(cts);
        Ok(())
    }

    /// Hands out the next timestamp if the node numbers commits itself. The caller must soon fill
    /// the transaction's slot and call [`CommitOrder::publish`].
    ///
    /// # Panics
    /// If a shared source numbers commits.
    pub fn allocate(&self) -> CommitTicket {
        match &self.kind {
            Kind::Dense(dense) => CommitTicket { cts: dense.allocate(&self.counters), place: 0 },
            Kind::Sparse(_) => panic!("timestamps of a shared source are reserved first"),
        }
    }

    /// Declares that the slot of the ticket's transaction is filled, or that the timestamp stays
    /// unused.
    pub fn publish(&self, ticket: CommitTicket) {
        match &self.kind {
            Kind::Dense(dense) => dense.publish(&self.counters, ticket.cts),
            Kind::Sparse(sparse) => sparse.publish(&self.counters, ticket.place),
        }
    }

    /// Blocks until a snapshot that is taken now sees `cts`: for a moment, or, with a shared
    /// source, until earlier commits have got their timestamps from it.
    pub fn wait_visible(&self, cts: Cts) {
        match &self.kind {
            Kind::Dense(_) => {
                while self.max_committed() < cts {
                    yield_now();
                }
            }
            Kind::Sparse(sparse) => {
                sparse.moved().wait_until(None, || self.max_committed() >= cts);
            }
        }
    }

    /// The reason to interrupt an operation that depends on a commit which snapshots do not see
    /// yet. `cancelled` ends its wait.
    #[cold]
    pub(crate) fn held_back(&self, cancelled: Option<&Arc<AtomicBool>>) -> Restart {
        match &self.kind {
            // The commits before it are within a few instructions of being published.
            Kind::Dense(_) => Restart::Again,
            Kind::Sparse(sparse) => Restart::Unfinished(UnfinishedCommit {
                changed: Arc::clone(sparse.moved()),
                cancelled: cancelled.cloned(),
            }),
        }
    }
}

fn no_shared_source() -> TimestampError {
    TimestampError::Unavailable { reason: "this node numbers its commits itself".to_owned() }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
