//! The seam to the log.
//!
//! ```text
//!   truncated ≤ durable ≤ taken ≤ appended     (all LSNs; log groups lie in [truncated, appended))
//!               └─ rounds in flight ─┘
//! ```
//!
//! A stream has one writer at a time. The writer *opens* the stream with an *epoch*. From then on
//! the store makes nothing of older epochs durable, wherever their writers run. The store then
//! *takes* log from the writer in rounds, with as many rounds in flight as it likes.
//!
//! The store pulls and the writer does not push, so the store alone decides which thread writes,
//! when, and how much at once:
//!
//! * over a local disk, a thread that waits for its commit leads a round itself. No hand-over to
//!   another thread is needed, and the round takes everything that was appended by the time the
//!   disk is free;
//! * over a network, the store takes a round whenever it has credit, straight into the message.
//!
//! What the store does not take stays in the writer's buffer, and a full buffer is the
//! back-pressure.

use std::fmt;

use firn_base::{Cts, Lsn, PageNo, TrxId};
use firn_format::redo::{Change, Group};

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod follow;
mod writer;

pub use error::LogError;
pub use follow::{FollowOptions, Followed, FollowedGroup, LogFollower, LogPiece, PageFilter};
pub use writer::{LogSource, LogWriter, OpenedLog, Room};

/// Numbers the writers of a stream: a later writer has a higher one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogEpoch(pub u64);

impl fmt::Display for LogEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The epoch with which a writer opens a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterEpoch {
    /// Above every epoch that the store knows: for a node that decides alone to write.
    Next,
    /// Exactly this one, as decided by an election or a control plane. Refused unless it is above
    /// every epoch that the store knows.
    Exactly(LogEpoch),
}

/// Upper bounds of the ids that may have been handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// The first transaction id that was not handed out.
    pub trx_id_limit: TrxId,
    /// The first commit timestamp that was not handed out.
    pub cts_limit: Cts,
}

impl Watermarks {
    /// Takes the higher value of each.
    pub fn raise(&mut self, other: Watermarks) {
        self.trx_id_limit = self.trx_id_limit.max(other.trx_id_limit);
        self.cts_limit = self.cts_limit.max(other.cts_limit);
    }

    /// Raises to the values of the watermark records in `group`.
    ///
    /// # Errors
    /// If a record is not valid.
    pub fn raise_by_group(&mut self, group: &Group<'_>) -> Result<(), String> {
        for record in group.records() {
            let record = record.map_err(|damage| damage.to_string())?;
            if record.page.page_no != PageNo::NONE {
                continue;
            }
            let change = Change::decode(&record).map_err(|damage| damage.to_string())?;
            if let Change::Watermark { trx_id_limit, cts_limit } = change {
                self.raise(Watermarks { trx_id_limit, cts_limit });
            }
        }
        Ok(())
    }
}

/// Where a new writer continues the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The writer's epoch. No earlier writer of the stream had it.
    pub epoch: LogEpoch,
    /// The end of the log: everything before it is durable, and nothing of older epochs will
    /// follow.
    pub end: Lsn,
    /// The highest watermarks in the log, including parts that were truncated.
    pub watermarks: Watermarks,
}

/// A log stream. One task writes; any number reads.
pub trait LogStore: Send + Sync {
    /// Makes the caller the stream's only writer and fences all earlier ones. Blocks until the fate
    /// of their log is settled: it is either durable and before the tail's end, or never part of
    /// the log.
    ///
    /// # Errors
    /// [`LogError::Fenced`] if the epoch is not above all others; [`LogError::NotLeader`],
    /// [`LogError::Unavailable`] or [`LogError::Failed`].
    fn open(&self, epoch: WriterEpoch) -> Result<OpenedLog, LogError>;

    /// The end of the durable log. Does not block.
    fn durable_lsn(&self) -> Lsn;

    /// The start of the log that is kept. Does not block.
    fn truncated_lsn(&self) -> Lsn;

    /// Where a reader of this name goes on that may have been registered before: the start of the
    /// log that is kept for it. Without a registration, the start of the log that is kept. Does
    /// not block.
    fn kept_for(&self, reader: &str) -> Lsn {
        let _ = reader;
        self.truncated_lsn()
    }

    /// Appends log bytes to `into`, from the group boundary `from` up to a group boundary about
    /// `limit_bytes` later and not past `durable_lsn` (at least one group if there is one). Returns
    /// the position after the last byte read. Blocks for the read.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`], [`LogError::Unavailable`], [`LogError::Unreadable`] or
    /// [`LogError::Damaged`].
    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError>;

    /// Registers a reader, which gets the durable log from a position on. The log from there on is
    /// kept until the reader releases it. Blocks like a read.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] if the log from there on is not kept or the position is not
    /// durable; [`LogError::Unavailable`].
    fn follow(&self, options: FollowOptions) -> Result<Box<dyn LogFollower>, LogError>;
}
