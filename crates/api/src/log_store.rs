//! The seam to the log.
//!
//! ```text
//!   truncated ≤ durable ≤ written          (all LSNs; log groups lie in [truncated, written))
//! ```

use firn_base::Lsn;

/// Why the log did not take or give what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// There is no room for more log. Nothing was written; a later try may succeed.
    #[error(
        "no room for the log in {place}: {reason}; free disk space, and writes go on by themselves"
    )]
    NoRoom {
        /// The file or directory.
        place: String,
        /// What the operating system said.
        reason: String,
    },
    /// The log cannot be made durable any more. The node has to stop: what was written since the last
    /// good sync may or may not be there.
    #[error("the log at {place} failed: {reason}; the node stops, restart it to recover")]
    Failed {
        /// The file.
        place: String,
        /// What the operating system said.
        reason: String,
    },
    /// The position is not in the log (any more).
    #[error("log position {position} is outside of what is kept, {from} to {to}")]
    OutOfRange {
        /// What was asked for.
        position: Lsn,
        /// The first position that is kept.
        from: Lsn,
        /// The end of what can be read.
        to: Lsn,
    },
    /// The disk would not give what is in the log. What is there may be good: a later try may succeed.
    #[error("the log file {file} cannot be read at byte {offset}: {reason}; look after the disk")]
    Unreadable {
        /// The file.
        file: String,
        /// Where in the file.
        offset: u64,
        /// What the operating system said.
        reason: String,
    },
    /// The log was damaged after it was written.
    #[error(
        "the log file {file} is damaged at byte {offset}: {what}; restore the file from a backup or a replica"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where in the file.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// A log stream. One task writes; any number reads.
pub trait LogStore: Send + Sync {
    /// Writes whole groups that begin at `start`, the end of what was written before. Not durable until
    /// [`LogStore::sync`]. Blocks for the write.
    ///
    /// # Errors
    /// [`LogError::NoRoom`] (nothing was taken) or [`LogError::Failed`].
    fn append(&self, start: Lsn, groups: &[u8]) -> Result<(), LogError>;

    /// Says that a sync follows soon and that its caller has something else to do first: what the sync would wait for may
    /// begin. Does not wait for it.
    fn begin_sync(&self) {}

    /// Makes durable all that was appended and returns the end of it. Blocks for the sync.
    ///
    /// # Errors
    /// [`LogError::Failed`]; the stream is then unusable.
    fn sync(&self) -> Result<Lsn, LogError>;

    /// The end of what is durable. Does not block.
    fn durable_lsn(&self) -> Lsn;

    /// The start of what is kept. Does not block.
    fn truncated_lsn(&self) -> Lsn;

    /// Appends to `into` log bytes from the group boundary `from`, ending at a group boundary not past
    /// `durable_lsn` and about `limit_bytes` later (at least one group if there is one). Returns the
    /// position after what was read. Blocks for the read.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`], [`LogError::Unreadable`] or [`LogError::Damaged`].
    fn read(&self, from: Lsn, limit_bytes: usize, into: &mut Vec<u8>) -> Result<Lsn, LogError>;

    /// Whether writers should be told that the log is about to run out of room: what is left is kept for
    /// commits, rollbacks and the log's own upkeep. Does not block.
    fn is_room_low(&self) -> bool;

    /// Whether even what frees room has to stop, for commits and rollbacks alone. Between the two
    /// limits rows are deleted. Does not block.
    fn is_room_scarce(&self) -> bool {
        self.is_room_low()
    }
}
