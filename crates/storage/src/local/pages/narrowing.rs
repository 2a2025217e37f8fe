//! A store that keeps fewer pages from some moment on: its chunk was cut in two.
//!
//! ```text
//!   keep_only ──► log about other pages is ignored ──► they leave the table ──► a map without them
//!                                                                              ──► slots are free
//! ```
//!
//! The map that is written then is a whole one, so they are gone at once. After a crash before
//! that, the store is opened with the pages that it keeps, and drops the others again.

use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::PageFilter;
use firn_base::PageId;
use parking_lot::RwLock;

/// Which pages a store keeps.
pub(super) struct Narrowing {
    /// Held for reading while the log's report of a page is entered, so that none of another page
    /// comes after the table was cleaned.
    kept: RwLock<PageFilter>,
    /// The materialiser has to drop other pages.
    is_due: AtomicBool,
}

impl Narrowing {
    /// For a store that is opened: its directory may have other pages.
    pub(super) fn new(kept: &PageFilter) -> Narrowing {
        let is_due = AtomicBool::new(*kept != PageFilter::All);
        Narrowing { kept: RwLock::new(kept.clone()), is_due }
    }

    pub(super) fn begin(&self, kept: &PageFilter) {
        *self.kept.write() = kept.clone();
        self.is_due.store(true, Ordering::Release);
    }

    /// Enters the log's report of a page, unless the store does not keep it.
    pub(super) fn if_kept(&self, page: PageId, enter: impl FnOnce()) {
        let kept = self.kept.read();
        if kept.takes(page) {
            enter();
        }
    }

    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Acquire)
    }

    /// What the store keeps, as of now.
    pub(super) fn kept(&self) -> PageFilter {
        self.kept.read().clone()
    }

    /// All pages but those that `kept` takes are gone, durably.
    pub(super) fn end(&self, kept: &PageFilter) {
        let now = self.kept.write();
        if *now == *kept {
            self.is_due.store(false, Ordering::Release);
        }
    }
}
