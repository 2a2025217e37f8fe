//! The seam to the pages.
//!
//! A page store holds, for each page, images as of some positions of the log, and finds newer versions
//! by applying the log. It follows the log by itself; nobody flushes a page into it to make it durable.
//!
//! ```text
//!   page      lsn ........ as_of           the reply to a read: no log group that ends between the two
//!              └─ no change ─┘             changes the page
//!   chunk     applied ≤ durable            a range of pages that lie together has one applied position
//! ```
//!
//! What a caller may rely on:
//!
//! * a read never gives less than was asked for: it waits until the log up to there is applied, or fails;
//! * any page whose log is durable can be dropped by whoever caches it. The store gives it back;
//! * versions of the past are readable for as long as somebody holds a lease on their position. Without
//!   one they may be gone at any time.
//!
//! A store in the caller's own address space may spare itself work by taking images from there
//! ([`LocalImages`]). A store elsewhere has no such thing.

mod batch;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod lease;
mod local_images;
#[cfg(feature = "conformance")]
pub mod simulated;
mod tier;

use std::sync::Arc;

use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;

pub use batch::{PageRequest, PageSink, read_in_turn};
pub use error::PageStoreError;
pub use lease::PageLease;
pub use local_images::{ImageSource, LocalImages, Offer};
pub use tier::{PageTier, TierLatch, TierLatchMode};

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

/// Which version of a page was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageVersion {
    /// The end of the last log group that changed the page, as the page itself says.
    pub lsn: Lsn,
    /// The page is this version at every position from `lsn` up to here, at least. Not before the
    /// position that was asked for; exactly that one for [`PageRead::AsOf`].
    pub as_of: Lsn,
}

/// The pages of a node.
pub trait PageStore: Send + Sync {
    /// Reads a page into `into` and says which version it is. Blocks for I/O, and until the log is applied
    /// as far as `version` asks.
    ///
    /// # Errors
    /// Why there is no such version. `into` then holds anything.
    fn read(
        &self,
        page: PageId,
        version: PageRead,
        into: &mut PageBuf,
    ) -> Result<PageVersion, PageStoreError>;

    /// Reads many pages, each into the buffer that `sink` has for it, and completes them one by one in
    /// whatever order they arrive. Blocks until all are completed; a slow page does not hold up those
    /// that arrive before it.
    fn read_many(&self, requests: &[PageRequest], sink: &mut dyn PageSink) {
        read_in_turn(self, requests, sink);
    }

    /// Keeps every version from `position` on readable by [`PageRead::AsOf`] until the lease is dropped or
    /// moved forward. `reader` names the holder for people. May block for a round trip.
    ///
    /// # Errors
    /// [`PageStoreError::NotKept`] if versions from there on are already given up.
    fn hold(&self, reader: &str, position: Lsn) -> Result<Arc<dyn PageLease>, PageStoreError>;

    /// The applied position of the chunk that `page` lies in: every log group about one of its pages
    /// that ends at or before this position is in a durable image, so the chunk needs no log before it.
    /// Never goes back, may be lower than what the store has reached by now. Does not block.
    fn applied_lsn(&self, page: PageId) -> Lsn;

    /// Whether the version `lsn` of `page` is in a durable image. Does not block.
    fn is_covered(&self, page: PageId, lsn: Lsn) -> bool {
        lsn <= self.applied_lsn(page)
    }

    /// The spaces that have pages, sorted. For checks.
    fn spaces(&self) -> Vec<SpaceId>;

    /// What the store does for a cache of pages in its own address space. The buffer pool asks once.
    fn local_images(self: Arc<Self>) -> Option<Arc<dyn LocalImages>> {
        None
    }

    /// What has to be told of the pages that a pool caches, if this is a tier before other stores. The
    /// buffer pool asks once.
    fn tier(self: Arc<Self>) -> Option<Arc<dyn PageTier>> {
        None
    }
}
