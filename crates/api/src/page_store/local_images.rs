//! What a page store and a page cache in one address space do for each other: the cache has images
//! that the store would otherwise build from the log.

use std::sync::Arc;

use firn_base::PageId;
use firn_format::page::PageBuf;

/// The result of offering an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// Reads return it from now on, and the caller may drop the page.
    Taken,
    /// The store already has this version; the caller may drop the page.
    NotNeeded,
    /// The queue is full; wait with [`LocalImages::wait_for_room`] (holding nothing) and offer
    /// again.
    Full,
}

/// A page store that takes images from a cache in its own address space.
pub trait LocalImages: Send + Sync {
    /// Offers the newest image of a page whose log is durable. Copies the image, does not block on
    /// I/O, and may be called with the page latched.
    fn offer(&self, image: &PageBuf) -> Offer;

    /// Blocks until an offer may succeed again, or a moment has passed.
    fn wait_for_room(&self);

    /// Registers the cache that may have newer images than the store. The store asks it in the
    /// background.
    fn attach(&self, source: Arc<dyn ImageSource>);
}

/// A cache of pages, as the store sees it.
pub trait ImageSource: Send + Sync {
    /// Copies the page into `into` if it is cached and its log is durable up to its LSN. Does not
    /// block.
    fn copy_image(&self, page: PageId, into: &mut PageBuf) -> bool;
}
