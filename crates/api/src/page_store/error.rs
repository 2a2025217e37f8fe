//! Why a page could not be read.

use firn_base::{Lsn, PageId};

use crate::log_store::LogError;

/// Why a page could not be read. Places are texts for people: a file and offset, or a node's
/// address.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PageStoreError {
    /// The page was never written, or its space was dropped.
    #[error("{0} does not exist")]
    Absent(PageId),
    /// No good image and not enough log to build one.
    #[error("{page} is damaged in {place}: {reason}; restore it from a backup or a replica")]
    Damaged {
        page: PageId,
        /// Where the image is.
        place: String,
        reason: String,
    },
    /// The page has changes that the log of this node does not have. Another node writes, or the
    /// log has lost its end: this node must write nothing over that page.
    #[error(
        "{page} is as of log position {lsn}, and the log of this node ends at {end}; it was replaced, or its log has lost its end: start it again"
    )]
    AheadOfLog {
        page: PageId,
        /// The version of the page.
        lsn: Lsn,
        /// The end of the log that this node has written.
        end: Lsn,
    },
    /// The version is older than what is kept.
    #[error("{page} at log position {wanted} is older than the history that is kept, {kept_from}")]
    TooOld {
        page: PageId,
        /// The requested version.
        wanted: Lsn,
        /// The oldest version that is served.
        kept_from: Lsn,
    },
    /// Versions from the position on can no longer be held.
    #[error("log position {position} is older than the history that is kept, {kept_from}")]
    NotKept {
        /// The position to hold.
        position: Lsn,
        /// The oldest position that can be held.
        kept_from: Lsn,
    },
    /// The operating system refused.
    #[error("{place}: {reason}")]
    Io {
        /// The file.
        place: String,
        /// What the operating system said.
        reason: String,
    },
    /// No node that has the page answers in time. A later try may succeed.
    #[error("{page} cannot be read at present, {place}: {reason}; the read can be repeated")]
    Unavailable {
        page: PageId,
        /// The nodes that were asked.
        place: String,
        /// What the last one reported.
        reason: String,
    },
    /// The page's chunk is not at the node that was asked. The caller finds its place and asks
    /// there.
    #[error(
        "{page} does not lie at {place}; the chunk was moved, and the read is repeated elsewhere"
    )]
    WrongChunk {
        page: PageId,
        /// The node that was asked.
        place: String,
    },
    /// The caller belongs to an epoch that has ended: another node writes now. The caller must
    /// stop.
    #[error(
        "{place} serves epoch {current}, this node asks in epoch {epoch}; it was replaced and has to stop"
    )]
    OldEpoch {
        /// The node that was asked.
        place: String,
        /// The caller's epoch.
        epoch: u64,
        /// The epoch that the store serves.
        current: u64,
    },
    /// The store's own metadata cannot be read, so no page can be found.
    #[error(
        "the page store is damaged in {place}: {reason}; restore it from a backup or a replica"
    )]
    StoreDamaged {
        /// Where the metadata is.
        place: String,
        reason: String,
    },
    /// The log behind the page could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl PageStoreError {
    /// Whether the same read may succeed if it is simply repeated.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, PageStoreError::Unavailable { .. } | PageStoreError::WrongChunk { .. })
    }
}
