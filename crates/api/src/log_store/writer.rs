//! The two sides of writing a stream: where log comes from, and what makes it durable.
//!
//! ```text
//!   committer          source                          writer, of the store
//!   append ──────────► buffer
//!   wait_durable(lsn) ───────────────────────────────► leads a round, or waits for one
//!                      take ◄───────────────────────── round begins
//!                                                      … written, synced, acknowledged …
//!                      advance(durable) ◄───────────── round is durable
//!   ◄──────────────────────────────────────────────── wait_durable returns
//!                      tell(durable) ◄──────────────── on a task of the store, if submit asked for it
//! ```

use std::sync::Arc;

use firn_base::Lsn;

use super::{LogError, Tail};

/// Log that was appended and that the store has not taken yet, and who hears of what is durable.
pub trait LogSource: Send + Sync {
    /// Moves whole groups to the end of `into`, in order, up to the first group that is not complete
    /// yet or until `into` has about `limit_bytes`. Returns where the first one begins. Does not
    /// block. A store never makes two of these calls at a time.
    fn take(&self, into: &mut Vec<u8>, limit_bytes: usize) -> Lsn;

    /// Everything before `durable` is durable now. Called once for each round that ends, by the
    /// thread that found it so, before any waiter returns; positions may come out of order. Must be
    /// as quick as a store of a word.
    fn advance(&self, durable: Lsn);

    /// As [`LogSource::advance`], but late, several rounds at once, and on a task of the store: for
    /// work that must not hold up a round. An error is the last call, and means that nothing more
    /// will be durable.
    fn tell(&self, outcome: Result<Lsn, &LogError>);
}

/// How much log a store can still keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Enough.
    Plenty,
    /// About to run out. What is left is kept for commits, rollbacks, the log's own upkeep, and for
    /// what frees room.
    Low,
    /// For commits and rollbacks alone; even what frees room has to stop.
    Scarce,
}

/// The one writer of a stream. Dropping it ends it, and what the store has not taken is lost.
pub trait LogWriter: Send + Sync {
    /// Asks for everything up to `lsn` to become durable although no thread waits for it, and for
    /// [`LogSource::tell`] to be called then. Does not block.
    fn submit(&self, lsn: Lsn);

    /// Blocks until everything up to `lsn`, the end of an appended group, is durable. The store may
    /// have the caller do the work of a round.
    ///
    /// # Errors
    /// [`LogError::Unavailable`]: it may still become durable. An error that
    /// [ends the writer](LogError::ends_writer): whether it is durable shows when the stream is
    /// opened again.
    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError>;

    /// How much more log the store can keep. Does not block; asked before each group.
    ///
    /// # Errors
    /// Why the store takes nothing at all: [`LogError::Unavailable`], or what has ended the writer.
    fn room(&self) -> Result<Room, LogError>;

    /// What has ended the writer, if it has ended. Does not block.
    fn failure(&self) -> Option<LogError>;

    /// Makes durable what was submitted and ends the writer; later calls find that it has failed.
    /// Blocks. A second call does nothing.
    fn close(&self);
}

/// Makes the writer that takes from a source.
type StartWriter = dyn FnOnce(Arc<dyn LogSource>) -> Box<dyn LogWriter> + Send;

/// A stream that was opened for a writer.
pub struct OpenedLog {
    /// Where the writer goes on.
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

    /// Begins to take log from `source`, whose first group begins at the tail's end.
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
