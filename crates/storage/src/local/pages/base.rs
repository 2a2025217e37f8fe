//! Pages that a directory began with and that are somewhere else: those of the database that this
//! one was cloned or restored from.
//!
//! ```text
//!   base images            log of this directory
//!   … ──────────┬─────────┬────────────────────────► LSN
//!             start      end
//!               │         └ no base image is newer
//!               └ every log group that ends here or before is in the base images
//! ```
//!
//! A page without a stored image begins with its base image, and with zeros if it has none. The
//! first read of a page, or the materialiser in the background, copies the page to the directory.
//! Once every page is there, the base is released, and the directory stands alone.
//!
//! Base images may be newer than `start`, each as its LSN says; log that an image includes is not
//! applied to it again. So versions before `end` are never served.

use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::{Lsn, PageId};
use firn_format::page::PageBuf;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;

/// Images of pages as of a stretch of log, which never change.
pub trait BasePages: Send + Sync {
    /// Every log group that ends here or before is in the images. The directory's log begins here.
    fn start(&self) -> Lsn;

    /// No image is newer.
    fn end(&self) -> Lsn;

    /// Reads a page's image; false if the page has none. Blocks for I/O.
    ///
    /// # Errors
    /// [`PageStoreError::Unavailable`] if a later read may succeed, or damage.
    fn read(&self, page: PageId, into: &mut PageBuf) -> Result<bool, PageStoreError>;

    /// About `limit` pages that have images and come after `after`, sorted; none: there are no
    /// more. Blocks for I/O.
    ///
    /// # Errors
    /// As [`BasePages::read`].
    fn pages_after(
        &self,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError>;

    /// The directory has every page now, durably. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the disk; the call is repeated at the next start.
    fn release(&self) -> Result<(), PageStoreError>;
}

/// How far the copying has come.
#[derive(Default)]
struct Progress {
    /// Pages before it are in the directory; those in `copying` are on their way.
    at: Option<PageId>,
    copying: Vec<PageId>,
    copied: u64,
    is_done: bool,
}

/// The base of a directory, and how much of it has been copied.
pub(super) struct Base {
    pub(super) pages: Arc<dyn BasePages>,
    progress: Mutex<Progress>,
    /// Pages that were read, and are copied before others.
    read: Mutex<FxHashSet<PageId>>,
}

/// Pages that were read and are not copied yet; others are copied when their turn comes.
const MAX_READ: usize = 4096;

impl Base {
    pub(super) fn new(pages: Arc<dyn BasePages>) -> Base {
        Base { pages, progress: Mutex::default(), read: Mutex::default() }
    }

    /// The number of pages that are known to be in the directory, and whether they are all.
    pub(super) fn progress(&self) -> (u64, bool) {
        let progress = self.progress.lock();
        (progress.copied, progress.is_done)
    }

    /// A page was read from the base, and should be copied soon.
    pub(super) fn note_read(&self, page: PageId) {
        let mut read = self.read.lock();
        if read.len() < MAX_READ {
            read.insert(page);
        }
    }

    /// Up to `limit` pages to copy. `is_stored` says which ones are in the directory. Blocks for
    /// I/O.
    pub(super) fn pages_to_copy(
        &self,
        limit: usize,
        is_stored: impl Fn(PageId) -> bool,
    ) -> Result<Vec<PageId>, PageStoreError> {
        let mut pages: Vec<PageId> = {
            let mut read = self.read.lock();
            let taken: Vec<PageId> = read.iter().copied().take(limit).collect();
            read.retain(|page| !taken.contains(page));
            taken
        };
        pages.retain(|page| !is_stored(*page));
        let (at, is_done, mut copying) = {
            let progress = self.progress.lock();
            (progress.at, progress.is_done, progress.copying.clone())
        };
        if is_done || pages.len() >= limit {
            return Ok(pages);
        }
        // A page stays in the list until it is durable, so one that could not be copied is tried
        // again.
        copying.retain(|page| !is_stored(*page));
        if copying.is_empty() {
            copying = self.next_pages(at, limit)?;
            copying.retain(|page| !is_stored(*page));
        }
        pages.extend(copying.iter().take(limit - pages.len()));
        self.progress.lock().copying = copying;
        Ok(pages)
    }

    /// Goes on to the next pages; without any, everything is copied.
    fn next_pages(&self, at: Option<PageId>, limit: usize) -> Result<Vec<PageId>, PageStoreError> {
        let next = self.pages.pages_after(at, limit)?;
        if next.is_empty() {
            self.pages.release()?;
        }
        let mut progress = self.progress.lock();
        progress.is_done = next.is_empty();
        progress.at = next.last().copied().or(at);
        progress.copied += next.len() as u64;
        Ok(next)
    }
}
