//! Guards: a latched page, and a pinned one.
//!
//! ```text
//!   SharedGuard      any number of readers       &PageBuf
//!   ExclusiveGuard   one writer                  &PageBuf, page_mut(), mark_changed(lsn)
//!   PagePin          no latch, the page stays    nothing to read: take a guard
//! ```
//!
//! A guard must be released before anything that waits, except another latch in the order of rule
//! 5.

use std::fmt;
use std::ops::Deref;

use firn_base::{Lsn, PageId};
use firn_format::page::{PageBuf, PageKind};

use crate::frame::{ExclusiveLatch, Frame, SharedLatch};
use crate::memory::slots::PageSlot;
use crate::pool::BufferPool;

/// The page is not cached: release every guard, [`BufferPool::load`] it, and run the operation
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not cached")]
pub struct Miss(pub PageId);

fn content(latch: &Option<PageSlot>) -> &PageBuf {
    latch.as_deref().expect("a latched page has its bytes")
}

/// A page that is latched shared.
#[must_use]
pub struct SharedGuard<'a> {
    frame: &'a Frame,
    latch: SharedLatch<'a>,
}

impl<'a> SharedGuard<'a> {
    pub(crate) fn new(frame: &'a Frame, latch: SharedLatch<'a>) -> SharedGuard<'a> {
        SharedGuard { frame, latch }
    }

    /// Counts the changes of the page since it was cached, for comparison with
    /// [`crate::OptimisticGuard::version`]. To find out whether a page changed while no guard was
    /// held, compare its LSN: the page may have been dropped and loaded in between.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.frame.version()
    }
}

impl Deref for SharedGuard<'_> {
    type Target = PageBuf;

    fn deref(&self) -> &PageBuf {
        content(&self.latch)
    }
}

impl fmt::Debug for SharedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedGuard").field(&**self).finish()
    }
}

/// What happened to the page under an exclusive guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    /// The page was zeroed for a new life and is not logged yet, or its content must not be kept.
    Created,
    /// Bytes were written and not logged.
    Written,
    /// Everything written is in the log.
    Logged,
}

/// A page that is latched exclusively.
///
/// A mini-transaction changes the page through [`ExclusiveGuard::page_mut`], appends its group to
/// the log, and passes the group's end to [`ExclusiveGuard::mark_changed`] before it releases the
/// guard. Other uses:
///
/// * bytes written without `mark_changed` are a hint: others see them, but they are lost with the
///   cached page, and the page store does not learn of them;
/// * a created page that is released without `mark_changed` is dropped, as if it had not been
///   created;
/// * a panic between a write and `mark_changed` ends the process: a half-changed page must not be
///   read, and the log does not know of it.
#[must_use]
pub struct ExclusiveGuard<'a> {
    pool: &'a BufferPool,
    number: u32,
    frame: &'a Frame,
    page: PageId,
    latch: ExclusiveLatch<'a>,
    change: Change,
    /// Declared after the latch, so it is dropped after it.
    images: ImagesToFree,
}

/// Frees a replaced image soon: images are large and count against the pool's budget until then. It
/// may also free images of other pages, so it runs with nothing latched.
#[derive(Debug, Default)]
struct ImagesToFree {
    are_there: bool,
}

impl Drop for ImagesToFree {
    fn drop(&mut self) {
        if self.are_there {
            crossbeam_epoch::pin().flush();
        }
    }
}

impl<'a> ExclusiveGuard<'a> {
    pub(crate) fn new(
        pool: &'a BufferPool,
        number: u32,
        page: PageId,
        latch: ExclusiveLatch<'a>,
    ) -> ExclusiveGuard<'a> {
        let frame = pool.frame(number);
        let images = ImagesToFree::default();
        ExclusiveGuard { pool, number, frame, page, latch, change: Change::None, images }
    }

    /// As [`ExclusiveGuard::new`] for a page that begins a new life: zeroed.
    pub(crate) fn created(
        pool: &'a BufferPool,
        number: u32,
        page: PageId,
        latch: ExclusiveLatch<'a>,
    ) -> ExclusiveGuard<'a> {
        let mut guard = ExclusiveGuard::new(pool, number, page, latch);
        guard.page_mut().bytes_mut().fill(0);
        guard.change = Change::Created;
        guard
    }

    /// The page's id, whatever its bytes say.
    #[must_use]
    pub fn id(&self) -> PageId {
        self.page
    }

    /// The bytes, to be changed.
    pub fn page_mut(&mut self) -> &mut PageBuf {
        if matches!(self.change, Change::None | Change::Logged) {
            self.pool.tell_changing(self.page);
            self.change = Change::Written;
        }
        self.latch.as_deref_mut().expect("a latched page has its bytes")
    }

    /// Stamps the page: everything written so far is in the log, in a group that ends at `end`. The
    /// page is dirty until the page store is known to have this version.
    ///
    /// # Panics
    /// If the page has a later LSN: the log could not reproduce this page.
    pub fn mark_changed(&mut self, end: Lsn) {
        let page = self.latch.as_deref_mut().expect("a latched page has its bytes");
        let last = self.frame.lsn();
        assert!(last <= end, "{} changed at {end} after {last}", self.page);
        page.set_lsn(end);
        self.frame.set_lsn(end);
        self.change = Change::Logged;
    }

    /// Whether bytes were written since the guard was taken.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.change != Change::None
    }

    /// As [`SharedGuard::version`]; advances when a guard that changed the page is released.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.frame.version()
    }

    /// Releases the page and drops it from the pool, with everything written to it.
    pub(crate) fn discard(mut self) {
        self.change = Change::Created;
    }

    fn publish(&mut self) {
        let version = self.frame.bump_version();
        if !self.frame.image.is_empty() {
            let page = content(&self.latch);
            let inner = page.kind() == Some(PageKind::TreeInner);
            let image =
                if inner { self.pool.copy_for_publication(self.page, version, page) } else { None };
            self.images.are_there = self.frame.image.replace(image, &crossbeam_epoch::pin());
        }
    }
}

impl Deref for ExclusiveGuard<'_> {
    type Target = PageBuf;

    fn deref(&self) -> &PageBuf {
        content(&self.latch)
    }
}

impl fmt::Debug for ExclusiveGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveGuard")
            .field("id", &self.page)
            .field("page", &**self)
            .field("change", &self.change)
            .finish()
    }
}

impl Drop for ExclusiveGuard<'_> {
    fn drop(&mut self) {
        match self.change {
            Change::None => {}
            Change::Created => {
                self.pool.flights.note_dropped(self.page, self.frame.lsn());
                self.pool.drop_page(self.number, self.page, &mut self.latch);
            }
            Change::Written if std::thread::panicking() => std::process::abort(),
            Change::Written | Change::Logged => self.publish(),
        }
    }
}

/// Keeps a page cached, without a latch. For short periods: from a load to the rerun of the
/// operation.
#[must_use]
pub struct PagePin<'a> {
    frame: &'a Frame,
    page: PageId,
}

impl<'a> PagePin<'a> {
    /// Takes over a pin that was already counted.
    pub(crate) fn adopt(frame: &'a Frame, page: PageId) -> PagePin<'a> {
        PagePin { frame, page }
    }

    #[must_use]
    pub fn id(&self) -> PageId {
        self.page
    }
}

impl fmt::Debug for PagePin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PagePin").field(&self.page).finish()
    }
}

impl Drop for PagePin<'_> {
    fn drop(&mut self) {
        self.frame.unpin();
    }
}
