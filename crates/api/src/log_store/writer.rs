//! The two sides of writing a stream: the source of the log, and the writer that makes it durable.
//!
//! ```text
//!   committer          source                       writer, of the store
//!   append ──────────► buffer
//!   wait_durable(lsn) ────────────────────────────► leads a round, or waits for one
//!                      take ◄────────────────────── round begins
//!                                                   … written, synced, acknowledged …
//!                      advance(durable) ◄────────── round is durable
//!   ◄───────────────────────────────────────────── wait_durable returns
//!                      tell(durable) ◄───────────── on a task of the store, if submit asked for it
//!                      answer(durable) ◄─────────── on the thread that noticed it, if a committer
//!                                                   has left
//! ```

use std::sync::Arc;

use firn_base::Lsn;

use super::{LogError, Tail};

/// Log that was appended and that the store has not taken yet. The store reports to it what is
/// durable.
pub trait LogSource: Send + Sync {
    /// Moves whole groups to the end of `into`, in order, until the first incomplete group or until
    /// `into` has about `limit_bytes`. Returns where the first group begins. Does not block. A
    /// store never runs two of these calls at a time.
    fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn;

    /// Reports that everything before `durable` is durable. Called once for each round that ends,
    /// by the thread that noticed it, before any waiter returns; positions may come out of order.
    /// Must be as quick as a store of a word.
    fn advance(&self, durable: Lsn);

    /// Like [`LogSource::advance`], but later, for several rounds at once and on a task of the
    /// store: for work that must not delay a round. An error is the last call: nothing more will be
    /// durable.
    fn tell(&self, outcome: Result<Lsn, &LogError>);

    /// Answers the committers that have [left](LogWriter::wait_or_leave) and whose positions are
    /// not after `durable`. Called for each round after [`LogSource::advance`], when the next round
    /// may begin; several threads may be in it at once. [`LogSource::tell`] does the same, and is
    /// the call for an error.
    fn answer(&self, _durable: Lsn) {}

    /// Answers all committers that have left with an error that does not end the writer: their log
    /// may still become durable. On a task of the store.
    fn refuse(&self, _error: &LogError) {}

    /// The highest position of a committer that has left and was not answered; 0 if there is none.
    fn left(&self) -> Lsn {
        Lsn(0)
    }
}

/// How much log a store can still keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    Plenty,
    /// Nearly full. The rest is kept for commits, rollbacks, the log's own upkeep, and work that
    /// frees room.
    Low,
    /// Only commits and rollbacks may write; even work that frees room must stop.
    Scarce,
}

/// The stream's only writer. Dropping it ends it, and log that the store has not taken is lost.
pub trait LogWriter: Send + Sync {
    /// Asks the store to make everything up to `lsn` durable although no thread waits for it, and
    /// then to call [`LogSource::tell`]. Does not block.
    fn submit(&self, lsn: Lsn);

    /// Blocks until everything up to `lsn`, the end of an appended group, is durable. The store may
    /// let the caller do the work of a round.
    ///
    /// # Errors
    /// [`LogError::Unavailable`]: it may still become durable. An error that
    /// [ends the writer](LogError::ends_writer): whether it is durable shows when the stream is
    /// opened again.
    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError>;

    /// How many commits the last round covered; 0 if the store lets no committer leave. Does not
    /// block.
    fn group_size(&self) -> u64 {
        0
    }

    /// As [`LogWriter::wait_durable`] for a committer that [`LogSource::left`] reports already. If
    /// another thread makes `lsn` durable, or will, the call returns `false` at once: then the
    /// store calls [`LogSource::answer`], or [`LogSource::refuse`] or [`LogSource::tell`] with an
    /// error.
    ///
    /// # Errors
    /// As [`LogWriter::wait_durable`].
    fn wait_or_leave(&self, lsn: Lsn) -> Result<bool, LogError> {
        self.wait_durable(lsn).map(|()| true)
    }

    /// How much more log the store can keep. Does not block; checked before each group.
    ///
    /// # Errors
    /// Why the store takes nothing at all: [`LogError::Unavailable`], or the error that ended the
    /// writer.
    fn room(&self) -> Result<Room, LogError>;

    /// The error that ended the writer, if it has ended. Does not block.
    fn failure(&self) -> Option<LogError>;

    /// Makes submitted log durable and ends the writer; later calls return an error. Blocks. A
    /// second call does nothing.
    fn close(&self);
}

/// Makes the writer that takes log from a source.
type StartWriter = dyn FnOnce(Arc<dyn LogSource>) -> Box<dyn LogWriter> + Send;

/// A stream that is opened for a writer.
pub struct OpenedLog {
    /// Where the writer continues.
    pub tail: Tail,
    start: Box<StartWriter>,
}

impl OpenedLog {
    /// For stores: a stream that ends with `tail`; `start` makes its writer.
    pub fn new(
        tail: Tail,
        start: impl FnOnce(Arc<dyn LogSource>) -> Box<dyn LogWriter> + Send + 'static,
    ) -> OpenedLog {
        OpenedLog { tail, start: Box::new(start) }
    }

    /// Starts to take log from `source`, whose first group begins at the tail's end.
    #[must_use]
    pub fn start(self, source: Arc<dyn LogSource>) -> Box<dyn LogWriter> {
        (self.start)(source)
    }
}

impl std::fmt::Debug for OpenedLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tail.fmt(f)
    }
}
