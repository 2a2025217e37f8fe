//! Commit timestamps, and the number that a snapshot is (paper 000 §4.2).
//!
//! ```text
//!   CTS handed out:      1   2   3   4   5
//!   slot is filled:      ✓   ✓   –   ✓   –
//!                            ▲ max_committed: every timestamp up to here can be looked up
//! ```
//!
//! The paper makes handing out a timestamp and filling the transaction's slot one step under a
//! lock, so that `CTS_max_committed` never passes a slot that is not filled. Here both are free of
//! locks. How `max_committed` is found depends on who numbers the commits: the node itself, without
//! gaps ([`dense`]), or a source that other nodes share, with gaps ([`sparse`]). The counters lie
//! in a fabric region, for nodes that take snapshots from afar; what those may see is durable.
//!
//! Invariant: `durable ≤ max_committed ≤ last`, and every transaction with `cts ≤ max_committed`
//! has its slot filled.

mod dense;
mod sparse;

use std::sync::Arc;

use firn_api::{TimestampError, Timestamps};
use firn_base::Cts;
use firn_fabric::OwnedRegion;

use self::dense::Dense;
use self::sparse::Sparse;
use crate::sync::{AtomicU64, Ordering, yield_now};

/// The region of the counters.
pub(super) const REGION: &str = "timestamps";
/// Word of the region: the last timestamp that was handed out.
pub const LAST_WORD: usize = 0;
/// Word of the region: what a snapshot taken now sees. On a cache line of its own.
pub const MAX_COMMITTED_WORD: usize = 8;
/// Word of the region: up to which timestamp all commits are durable, which is what other nodes may
/// see.
pub(super) const DURABLE_WORD: usize = 16;
/// Words that the region needs.
pub const REGION_WORDS: usize = 24;

/// Timestamps that a watermark sets aside where they have no gaps.
const DENSE_AHEAD: u64 = 1 << 20;

/// See the module's page.
pub struct CommitOrder {
    counters: Counters,
    kind: Kind,
}

enum Kind {
    Dense(Dense),
    Sparse(Sparse),
}

/// The words of the region.
struct Counters(OwnedRegion);

/// A timestamp whose transaction is being committed. Until it is [published](CommitOrder::publish)
/// no later commit becomes visible.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitTicket {
    cts: Cts,
    /// Where the sparse order knows it by.
    place: usize,
}

impl CommitTicket {
    /// The timestamp.
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
    /// Continues after `last`, of which everything is committed.
    ///
    /// # Errors
    /// If a shared source cannot be told of `last`.
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

    /// What a snapshot taken now sees.
    #[inline]
    #[must_use]
    pub fn max_committed(&self) -> Cts {
        Cts(self.counters.max_committed().load(Ordering::SeqCst))
    }

    /// The timestamp up to which all commits are durable, as far as other nodes know.
    #[must_use]
    pub fn durable(&self) -> Cts {
        Cts(self.counters.0.words()[DURABLE_WORD].load(Ordering::SeqCst))
    }

    /// Tells other nodes that all commits up to `cts` are durable. Never goes back.
    pub fn publish_durable(&self, cts: Cts) {
        self.counters.0.words()[DURABLE_WORD].fetch_max(cts.0, Ordering::SeqCst);
    }

    /// The last timestamp that was handed out.
    #[must_use]
    pub fn last(&self) -> Cts {
        Cts(self.counters.last().load(Ordering::Acquire))
    }

    /// How many timestamps a watermark in the log sets aside.
    #[must_use]
    pub fn set_aside(&self) -> u64 {
        match &self.kind {
            Kind::Dense(_) => DENSE_AHEAD,
            Kind::Sparse(sparse) => sparse.source().growth_per_second(),
        }
    }

    /// The timestamp of a commit that is about to be written, if it comes from a shared source:
    /// asking that may take a round trip, so this is called with nothing latched. `None`: it is
    /// handed out by [`CommitOrder::allocate`].
    ///
    /// # Errors
    /// If the source cannot be reached.
    pub fn reserve(&self) -> Result<Option<CommitTicket>, TimestampError> {
        match &self.kind {
            Kind::Dense(_) => Ok(None),
            Kind::Sparse(sparse) => sparse.reserve(&self.counters).map(Some),
        }
    }

    /// A commit at a timestamp that was decided elsewhere, with nothing latched. Later commits of
    /// this node have later timestamps; readers that have a later snapshot already must have been
    /// made to wait before the timestamp was decided.
    ///
    /// # Errors
    /// If the source cannot be told; [`TimestampError::Unavailable`] if the node numbers commits
    /// itself.
    pub fn adopt(&self, cts: Cts) -> Result<CommitTicket, TimestampError> {
        match &self.kind {
            Kind::Dense(_) => Err(no_shared_source()),
            Kind::Sparse(sparse) => sparse.adopt(&self.counters, cts),
        }
    }

    /// Makes `cts` a timestamp that a snapshot can have here: no commit of this node gets one up to
    /// it any more, and those that have one are visible. Blocks for a round trip and for commits
    /// that are being written.
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

    /// Hands out the next timestamp where the node numbers commits itself. The caller fills its
    /// slot soon and calls [`CommitOrder::publish`].
    ///
    /// # Panics
    /// If a shared source numbers them.
    pub fn allocate(&self) -> CommitTicket {
        match &self.kind {
            Kind::Dense(dense) => CommitTicket { cts: dense.allocate(&self.counters), place: 0 },
            Kind::Sparse(_) => panic!("timestamps of a shared source are reserved first"),
        }
    }

    /// The slot of the ticket's transaction is filled, or nobody will ever have its timestamp.
    pub fn publish(&self, ticket: CommitTicket) {
        match &self.kind {
            Kind::Dense(dense) => dense.publish(&self.counters, ticket.cts),
            Kind::Sparse(sparse) => sparse.publish(&self.counters, ticket.place),
        }
    }

    /// Blocks until a snapshot taken from now on sees `cts`: a moment, if at all.
    pub fn wait_visible(&self, cts: Cts) {
        while self.max_committed() < cts {
            yield_now();
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
