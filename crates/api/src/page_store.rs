//! The seam to the pages.
//!
//! For each page, a page store holds images as of some positions of the log, and finds newer
//! versions by applying the log. It follows the log on its own; no caller flushes a page into it to
//! make the page durable.
//!
//! ```text
//!   page      lsn ........ as_of       the reply to a read: no log group that ends between the two
//!              └─ no change ─┘         changes the page
//!   chunk     applied ≤ durable        a range of pages that lie together has one applied position
//! ```
//!
//! What a caller may rely on:
//!
//! * a read never returns an older version than requested: it waits until the log up to there is
//!   applied, or fails;
//! * a cache may drop any page whose log is durable. The store returns it again;
//! * old versions are readable while a lease holds their position. Without a lease they may
//!   disappear at any time.
//!
//! A store in the caller's own address space may save work by taking images from the caller's cache
//! ([`LocalImages`]). A remote store has no such thing.

mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod lease;
mod local_images;
#[cfg(feature = "conformance")]
pub mod page_service;
mod tier;

use std::sync::Arc;
use std::time::Duration;

use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;

pub use batch::{PageRequest, PageSink, read_in_turn};
pub use error::PageStoreError;
pub use lease::PageLease;
pub use local_images::{ImageSource, LocalImages, Offer};
pub use tier::{NoTier, PageTier, TierLatch, TierLatchMode};

/// The version of a page that a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageRead {
    /// The newest; it must include every log group that ends at or before this position.
    Latest {
        /// The last position at which the page may have changed, as far as the caller knows.
        at_least: Lsn,
    },
    /// As it was when the log ended here.
    AsOf(Lsn),
}

impl PageRead {
    /// The version read includes every log group about the page that ends at or before this
    /// position.
    #[must_use]
    pub fn position(self) -> Lsn {
        match self {
            PageRead::Latest { at_least: position } | PageRead::AsOf(position) => position,
        }
    }
}

/// The version of a page that a read returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageVersion {
    /// The end of the last log group that changed the page, as the page itself says.
    pub lsn: Lsn,
    /// The page is this version at every position from `lsn` up to at least here. Not before the
    /// requested position; exactly that position for [`PageRead::AsOf`].
    pub as_of: Lsn,
}

/// The pages of a node.
pub trait PageStore: Send + Sync {
    /// Reads a page into `into` and returns its version. Blocks for I/O, and until the log is
    /// applied as far as `version` asks.
    ///
    /// # Errors
    /// Why there is no such version. The content of `into` is then undefined.
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError>;

    /// Reads many pages, each into its buffer in `sink`, and completes them one by one in the order
    /// in which they arrive. Blocks until all are complete; a slow page does not delay those that
    /// arrive before it.
    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        read_in_turn(self, requests, sink);
    }

    /// Blocks until a read of this version would not wait for log that has not arrived, for
    /// `timeout` at most; with a timeout of zero it does not block. Returns whether that is so. A
    /// store that cannot tell returns true at once, and its reads wait themselves.
    fn wait_until_ready(&self, _page: PageId, _version: PageRead, _timeout: Duration) -> bool {
        true
    }

    /// Keeps every version from `position` on readable by [`PageRead::AsOf`] until the lease is
    /// dropped or moved forward. `reader` names the holder in listings. May block for a round trip.
    ///
    /// # Errors
    /// [`PageStoreError::NotKept`] if versions from there on are already gone.
    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError>;

    /// The applied position of `page`'s chunk: every log group about one of the chunk's pages that
    /// ends at or before this position is in a durable image, so the chunk needs no log before it.
    /// Never goes back; may be lower than what the store has reached by now. Does not block.
    fn applied_lsn(&self, page: PageId) -> Lsn;

    /// Whether the version `lsn` of `page` is in a durable image. Does not block.
    fn is_covered(&self, page: PageId, lsn: Lsn) -> bool {
        lsn <= self.applied_lsn(page)
    }

    /// The spaces that have pages, sorted. For checks.
    fn spaces(&self) -> Vec<SpaceId>;

    /// The interface through which a cache in the same address space hands images to the store, if
    /// there is one. The buffer pool asks once.
    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        None
    }

    /// The interface to report cached pages to, if this store is a tier before other stores. The
    /// buffer pool asks once.
    fn tier(self: Arc<Self>) -> Option<Arc<dyn PageTier>> {
        None
    }
}
