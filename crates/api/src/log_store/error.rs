//! Why a log store refuses.
//!
//! | error | try again? | the writer |
//! |---|---|---|
//! | `NoRoom` | once there is room | goes on |
//! | `Unavailable` | yes; a commit that waited may still become durable | goes on |
//! | `Fenced`, `NotLeader` | at the writer of the newer epoch, at the leader | has ended |
//! | `Failed` | after a restart of the node | has ended |
//! | `OutOfRange`, `ReaderDropped` | no: read pages, then follow from their position | is not concerned |
//! | `Unreadable`, `Damaged` | maybe; after a repair | is not concerned |

use firn_base::Lsn;

use super::LogEpoch;

/// Why the log did not take or return log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LogError {
    /// There is no room for more log. Nothing was taken; a later try may succeed.
    #[error(
        "The log has no room ({place}: {reason}). Free space there; writes resume on their own"
    )]
    NoRoom {
        /// What is full, for a person to find.
        place: String,
        reason: String,
    },
    /// The log cannot be made durable any more. The node must stop: what was written since the last
    /// good sync may or may not be there.
    #[error("The log failed ({place}: {reason}). The node stops; restart it to recover")]
    Failed {
        /// What failed, for a person to find.
        place: String,
        reason: String,
    },
    /// Another writer has opened the stream with a higher epoch. Log that was not reported to this
    /// writer as durable may or may not be in the stream. This writer has ended for good.
    #[error(
        "Another node writes this log now, with epoch {by}. This one stops; connect to the other one"
    )]
    Fenced {
        /// The epoch that the store follows.
        by: LogEpoch,
    },
    /// The store takes log only at another node.
    #[error("This log is written elsewhere{}", at(.hint.as_deref()))]
    NotLeader {
        /// The node to try, if known.
        hint: Option<String>,
    },
    /// Too few copies of the log answer. Nothing is lost; log that waited may still become durable.
    #[error(
        "The log does not answer ({reason}). It is not known whether the commit happened; writes resume once it answers"
    )]
    Unavailable {
        /// What is missing.
        reason: String,
    },
    /// The position is not in the log, or not any more.
    #[error("Log position {position} is outside of what is kept, {from} to {to}")]
    OutOfRange {
        /// The requested position.
        position: Lsn,
        /// The first position that is kept.
        from: Lsn,
        /// The end of what can be read.
        to: Lsn,
    },
    /// A reader held back more log than its limit, and its lease has ended.
    #[error(
        "Reader {name} of the log is at {held}, more than {limit_bytes} bytes behind, and was dropped. Take pages from a page store and follow from their position"
    )]
    ReaderDropped {
        /// The reader's name.
        name: String,
        /// The position that it held last.
        held: Lsn,
        /// The most that the reader may hold back, in bytes.
        limit_bytes: u64,
    },
    /// The store could not read its log. The log may be good: a later try may succeed.
    #[error("The log cannot be read at {at}: {reason}. Check the disk")]
    Unreadable {
        /// The place, for a person to find.
        at: String,
        reason: String,
    },
    /// The log was damaged after it was written.
    #[error("The log is damaged at {at}: {what}. Restore it from a backup or a replica")]
    Damaged {
        /// The place, for a person to find.
        at: String,
        what: String,
    },
}

fn at(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!(", at {hint}"))
}

impl LogError {
    /// Whether this error has ended the writer: nothing more of its log becomes durable.
    #[must_use]
    pub fn ends_writer(&self) -> bool {
        matches!(
            self,
            LogError::Failed { .. } | LogError::Fenced { .. } | LogError::NotLeader { .. }
        )
    }
}
