//! The seam to the pages.
//!
//! A page store holds, for each page, images as of some LSNs, and finds newer versions by applying the
//! log. It follows the log by itself; nobody flushes a page into it to make it durable.

use std::sync::Arc;

use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;

use crate::log_store::LogError;

/// Why a page could not be given.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PageStoreError {
    /// The page was never written, or its space was dropped.
    #[error("{0} does not exist")]
    Absent(PageId),
    /// No good image and not enough log to build one.
    #[error("{page} is damaged in {place}: {reason}; restore it from a backup or a replica")]
    Damaged {
        /// The page.
        page: PageId,
        /// File and offset.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The version is older than what is kept.
    #[error("{page} at log position {wanted} is older than the history that is kept, {kept_from}")]
    TooOld {
        /// The page.
        page: PageId,
        /// The version that was asked for.
        wanted: Lsn,
        /// The oldest version that is served.
        kept_from: Lsn,
    },
    /// The disk said no.
    #[error("{place}: {reason}")]
    Io {
        /// The file.
        place: String,
        /// What the operating system said.
        reason: String,
    },
    /// The store's own books cannot be read, so that no page can be found.
    #[error(
        "{file} is damaged at byte {offset}: {reason}; restore the directory from a backup or a replica"
    )]
    StoreDamaged {
        /// The file.
        file: String,
        /// Where in the file.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
    /// The log behind the page could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Which version of a page is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRead {
    /// The newest; it must include every log group that ends at or before this position.
    Latest {
        /// Where the caller knows that the page may have been changed last.
        at_least: Lsn,
    },
    /// As it was when the log ended here.
    AsOf(Lsn),
}

impl PageRead {
    /// What is read includes every log group about the page that ends at or before this position.
    #[must_use]
    pub fn position(self) -> Lsn {
        match self {
            PageRead::Latest { at_least: position } | PageRead::AsOf(position) => position,
        }
    }
}

/// What became of an offered image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Taken; reads see it from now on, and the caller may forget the page.
    Taken,
    /// The store has this version already; the caller may forget the page.
    NotNeeded,
    /// No room in the queue; wait with [`PageStore::wait_for_room`] (holding nothing) and offer again.
    Full,
}

/// The pages of a node.
pub trait PageStore: Send + Sync {
    /// Reads a page into `into`. Blocks for I/O.
    ///
    /// # Errors
    /// Why there is no such version.
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<(), PageStoreError>;

    /// Offers the newest image of a page whose log is durable, so that the store need not apply the log
    /// itself. Copies; does not block on I/O and may be called with the page latched shared.
    fn offer(&self, image: &PageBuf) -> Offer;

    /// Blocks until an offer has a chance again, or a moment has passed.
    fn wait_for_room(&self);

    /// Names who may have newer images in memory than the store, asked in the background.
    fn attach_images(&self, source: Arc<dyn ImageSource>);

    /// Every log group that ends at or before this position is in some stored image. Does not block.
    fn applied_lsn(&self) -> Lsn;

    /// Blocks until `applied_lsn() >= lsn`; the store hurries meanwhile. For a clean shutdown and tests.
    ///
    /// # Errors
    /// What the disk or the log said.
    fn materialise_up_to(&self, lsn: Lsn) -> Result<(), PageStoreError>;

    /// The spaces that have pages, sorted. For checks.
    fn spaces(&self) -> Vec<SpaceId>;
}

/// Whoever caches pages: gives the store images that it would otherwise build from the log.
pub trait ImageSource: Send + Sync {
    /// Copies the page into `into` if it is cached and its log is durable up to its LSN. Does not block.
    fn copy_image(&self, page: PageId, into: &mut PageBuf) -> bool;
}
