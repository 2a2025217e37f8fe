//! Mini-transactions: the only way in which a page changes (design rule 1).
//!
//! ```text
//!   begin       room in the log is admitted; may wait, so nothing is latched yet
//!   exclusive   pages are latched, in latch order
//!   change      the change is applied to the page by the one pure function, and encoded
//!   commit      the group is appended, the pages are stamped with its end, latches are released
//! ```
//!
//! Until its first change, a mini-transaction can be dropped at any point; operations that restart
//! do so. After the first change it must commit, because a changed page must have its record in the
//! log. Dropping it then panics.
//!
//! Latch order, for every thread: tree pages first, a lower level before a higher one and on one
//! level left before right; then undo pages; allocation maps and space headers last.

use std::cell::RefCell;

use firn_base::{Lsn, PageId};
use firn_buffer::{ExclusiveGuard, FrameReservation};
use firn_format::page::PageBuf;
use firn_format::redo::group::MAX_GROUP_BYTES;
use firn_format::redo::{Change, GroupBuilder, apply};
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::log::Admission;
use crate::log::writer::Purpose;
use crate::pages::{Pages, Restart};

/// A page that the mini-transaction holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held(usize);

pub struct MiniTransaction<'p> {
    pages: &'p Pages,
    admission: Option<Admission<'p>>,
    held: SmallVec<[ExclusiveGuard<'p>; 6]>,
    group: GroupBuilder,
}

thread_local! {
    /// The record builder of this thread's last mini-transaction, kept for its memory.
    static SPARE: RefCell<Option<GroupBuilder>> = const { RefCell::new(None) };
}

/// Most groups are shorter than this: an undo record and a leaf record of full size fit.
pub const USUAL_GROUP_BYTES: usize = 32 * 1024;

impl<'p> MiniTransaction<'p> {
    /// Admits a group of at most [`USUAL_GROUP_BYTES`]. May block; call it with nothing latched.
    ///
    /// # Errors
    /// If the log has no room for more or has failed.
    pub fn begin(pages: &'p Pages, purpose: Purpose) -> Result<MiniTransaction<'p>, EngineError> {
        MiniTransaction::with_room(pages, purpose, USUAL_GROUP_BYTES)
    }

    /// Admits a group of the maximum size, for structure changes.
    ///
    /// # Errors
    /// If the log has no room for more or has failed.
    pub fn begin_large(
        pages: &'p Pages,
        purpose: Purpose,
    ) -> Result<MiniTransaction<'p>, EngineError> {
        MiniTransaction::with_room(pages, purpose, MAX_GROUP_BYTES)
    }

    fn with_room(
        pages: &'p Pages,
        purpose: Purpose,
        bytes: usize,
    ) -> Result<MiniTransaction<'p>, EngineError> {
        let admission = pages.log.admit(bytes, purpose)?;
        let mut group = SPARE.take().unwrap_or_default();
        group.clear();
        Ok(MiniTransaction { pages, admission: Some(admission), held: SmallVec::new(), group })
    }

    #[must_use]
    pub fn pages(&self) -> &'p Pages {
        self.pages
    }

    /// Latches `page`, unless the mini-transaction holds it already.
    ///
    /// # Errors
    /// [`Restart::Need`] if it is not cached.
    pub fn exclusive(&mut self, page: PageId) -> Result<Held, Restart> {
        if let Some(held) = self.find(page) {
            return Ok(held);
        }
        let guard = self.pages.pool.exclusive(page)?;
        Ok(self.hold(guard))
    }

    /// Adds a page that is latched already.
    pub fn hold(&mut self, guard: ExclusiveGuard<'p>) -> Held {
        self.held.push(guard);
        Held(self.held.len() - 1)
    }

    /// Adds a page without content. Its first change must format it.
    pub fn create(&mut self, frames: &mut FrameReservation<'p>, page: PageId) -> Held {
        let guard = self.pages.pool.create(frames, page);
        self.hold(guard)
    }

    fn find(&self, page: PageId) -> Option<Held> {
        self.held.iter().position(|guard| guard.id() == page).map(Held)
    }

    #[must_use]
    pub fn page(&self, held: Held) -> &PageBuf {
        &self.held[held.0]
    }

    /// Whether a page was changed, so that the mini-transaction must commit.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.group.is_empty()
    }

    /// Changes a held page.
    ///
    /// # Panics
    /// If the change does not fit the page. The caller has checked the page before it builds a
    /// change.
    pub fn change(&mut self, held: Held, change: &Change<'_>) {
        let guard = &mut self.held[held.0];
        let page = guard.id();
        if let Err(error) = apply(guard.page_mut(), page, change) {
            panic!("a change does not fit {page}: {error}");
        }
        change.encode(page, &mut self.group);
    }

    /// Writes a record that is not about one page.
    pub fn note(&mut self, about: PageId, change: &Change<'_>) {
        change.encode(about, &mut self.group);
    }

    /// Appends the group, stamps the pages with its end and releases all latches. Returns the
    /// group's end, or the current end of the log if nothing was changed. Does not block.
    #[must_use = "whoever acknowledges the change waits until this position is durable"]
    pub fn commit(mut self) -> Lsn {
        let admission = self.admission.take().expect("a mini-transaction commits once");
        if self.group.is_empty() {
            return self.pages.log.durable_lsn();
        }
        let placed = self.pages.log.append(admission, self.group.finish());
        for guard in &mut self.held {
            if guard.is_changed() {
                guard.mark_changed(placed.end);
                // The page is still latched, so its next writer finds the change noted.
                if let Some(modifications) = self.pages.modifications() {
                    modifications.note(guard.id(), guard, placed.end);
                }
            }
        }
        self.group.clear();
        placed.end
    }
}

impl Drop for MiniTransaction<'_> {
    fn drop(&mut self) {
        let clean = self.group.is_empty();
        SPARE.set(Some(std::mem::take(&mut self.group)));
        assert!(
            clean || std::thread::panicking(),
            "a mini-transaction that changed a page was dropped instead of committed"
        );
    }
}
