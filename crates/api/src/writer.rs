//! The seam from a replica to the node that writes.
//!
//! ```text
//!   replica                              node that writes
//!   take_place ────────────────────────► a place: nothing that it sees is purged
//!   look(needed), again and again ─────► the place moves on · positions
//!   newest, for a strong read ─────────► positions, and the node surely led meanwhile
//!   modifications, for each leaf read ─► where the log last changed the page
//!   log tail, while log comes ─────────► the newest durable log, if the writer's memory can be read
//! ```
//!
//! The log and the pages come from elsewhere ([`LogStore`](crate::LogStore),
//! [`PageStore`](crate::PageStore)). This seam has what those do not know: what is visible at the
//! writer, and what it may purge. It also has the end of the log, which reaches a replica sooner
//! from the writer's memory than from the store.

use std::sync::Arc;
use std::time::Duration;

use firn_base::{Cts, Lsn, PageId, TrxId};

use crate::{LogEpoch, LogPiece};

/// What a writer says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriterPositions {
    /// The epoch in which it writes the log.
    pub epoch: LogEpoch,
    /// All commits up to this timestamp are in the log before `durable_lsn`.
    pub durable_commits: Cts,
    /// The end of its durable log. Every commit that was acknowledged, or shown by a replica,
    /// before the question is in the log before it.
    pub durable_lsn: Lsn,
    /// A snapshot that is taken at the writer sees commits up to this timestamp. Every commit that
    /// was acknowledged before the question is among them.
    pub visible: Cts,
    /// The last timestamp that was handed out to a commit.
    pub handed_out: Cts,
}

/// Why a writer has not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriterError {
    /// It may answer later. A place that was held may still be there.
    #[error("the node that writes does not answer: {reason}")]
    Unreachable { reason: String },
    /// The writer has been replaced, or it has let the place go. Nothing more will come from it.
    #[error("the replica has lost the node that writes: {reason}")]
    Ended { reason: String },
    /// It has as many replicas as it can have.
    #[error("the node that writes has no place for another replica")]
    NoPlace,
}

/// The node that writes, in one epoch.
pub trait WriterNode: Send + Sync {
    /// Whether it numbers its commits itself, so that timestamps have no gaps.
    fn is_dense(&self) -> bool;

    /// Takes a place for a replica of this name. Nothing that a snapshot at or above the place sees
    /// is purged. Blocks for a few round trips.
    ///
    /// # Errors
    /// [`WriterError`]; no place is held then for longer than its lease.
    fn take_place(&self, replica: &str) -> Result<Box<dyn WriterPlace>, WriterError>;

    /// Its positions, at some moment between the call and its return at which it surely led: no
    /// other writer had begun. Blocks for a round trip.
    ///
    /// # Errors
    /// [`WriterError::Unreachable`], also if it is not sure that it leads; [`WriterError::Ended`].
    fn newest(&self) -> Result<WriterPositions, WriterError>;

    /// Whether [`WriterNode::newest`] and [`WriterNode::modifications`] answer without a message,
    /// so that reads ask for themselves instead of sharing an answer.
    fn answers_at_once(&self) -> bool {
        false
    }

    /// What has changed there, if the writer tells of it by page.
    fn modifications(&self) -> Option<Arc<dyn Modifications>> {
        None
    }

    /// The newest log there, if the writer's memory can be read.
    fn log_tail(&self) -> Option<Arc<dyn LogTail>> {
        None
    }

    /// Whether the commit of a transaction is being decided by a coordinator elsewhere. Never, if
    /// timestamps are dense. Blocks for a round trip.
    ///
    /// # Errors
    /// [`WriterError`].
    fn is_committing(&self, trx: TrxId) -> Result<bool, WriterError>;
}

/// Where the writer's log last changed what a replica reads (003 §4.2). A position may be too high,
/// never too low: every change is included that was made before any commit which was acknowledged
/// before the question.
pub trait Modifications: Send + Sync {
    /// The end of the last group of log that changed a page. Blocks for a round trip.
    ///
    /// # Errors
    /// If the writer's memory cannot be read; the page may have changed then.
    fn of_page(&self, page: PageId) -> Result<Lsn, WriterError>;

    /// The end of the last group of log that changed a definition. Blocks for a round trip.
    ///
    /// # Errors
    /// As [`Modifications::of_page`].
    fn of_definitions(&self) -> Result<Lsn, WriterError>;

    /// How long an answer takes about, if it takes a message; log that is under way to the replica
    /// arrives in that time. `None`: the writer's memory is at hand, so a latch may be held during
    /// a question.
    fn round_trip(&self) -> Option<Duration> {
        None
    }
}

/// The newest log of a writer, in its memory (003 §4.3). Only durable log is read there, so nothing
/// has to be taken back.
pub trait LogTail: Send + Sync {
    /// Durable groups from the group boundary `from` on: about `most_bytes`, at least one group.
    /// Blocks for a few round trips.
    ///
    /// # Errors
    /// If the writer's memory cannot be read. The log store has the log.
    fn read(&self, from: Lsn, most_bytes: usize) -> Result<TailRead, WriterError>;
}

/// What was read of a writer's newest log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailRead {
    /// Whole groups, from the position that was asked for.
    Piece(LogPiece),
    /// No more log is durable.
    Nothing,
    /// Later log has taken the place; the log store has it.
    Overwritten,
}

/// A replica's place at the writer. Dropping it gives it back.
pub trait WriterPlace: Send {
    /// The oldest snapshot that the place keeps readable.
    fn snapshot(&self) -> Cts;

    /// How long the place is surely kept after the beginning of a successful
    /// [`WriterPlace::look`].
    fn lease(&self) -> Duration;

    /// Moves the place up to `needed`, and returns the writer's positions after that. Never goes
    /// back. Blocks for a round trip.
    ///
    /// # Errors
    /// [`WriterError::Unreachable`] or [`WriterError::Ended`]. The place may have moved.
    fn look(&mut self, needed: Cts) -> Result<WriterPositions, WriterError>;
}
