//! Published images: immutable heap copies of inner tree nodes, read without a latch.
//!
//! ```text
//!   frame ──► image (version 7)          readers hold an epoch guard, not a latch
//!         ╲
//!          ╲  after a change: swap to image (version 8); image 7 is freed when the last
//!           ► epoch guard that could have seen it is gone
//! ```
//!
//! An [`ImageBudget`] bounds the number of images of a pool, including images that wait to be
//! freed.

use std::sync::Arc;

use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use firn_base::PageId;
use firn_format::page::PageBuf;

// Not shuttle's: the budget decides only how many copies there are.
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many images a pool may have.
pub(crate) struct ImageBudget {
    live: AtomicUsize,
    limit: usize,
}

impl ImageBudget {
    /// At most `limit` images.
    pub(crate) fn new(limit: usize) -> Arc<ImageBudget> {
        Arc::new(ImageBudget { live: AtomicUsize::new(0), limit })
    }

    /// Images that are published or wait to be freed.
    pub(crate) fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    fn try_take(&self) -> bool {
        let taken = self.live.fetch_add(1, Ordering::Relaxed) < self.limit;
        if !taken {
            self.live.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }
}

/// A copy of an inner node at one version of its frame.
pub(crate) struct PublishedImage {
    pub(crate) page: PageId,
    pub(crate) version: u64,
    pub(crate) content: Box<PageBuf>,
    budget: Arc<ImageBudget>,
}

impl PublishedImage {
    /// Copies `content`, unless the budget is exhausted.
    pub(crate) fn copy(
        budget: &Arc<ImageBudget>,
        page: PageId,
        version: u64,
        content: &PageBuf,
    ) -> Option<PublishedImage> {
        budget.try_take().then(|| {
            let mut copy = PageBuf::boxed();
            copy.bytes_mut().copy_from_slice(content.bytes());
            PublishedImage { page, version, content: copy, budget: Arc::clone(budget) }
        })
    }
}

impl Drop for PublishedImage {
    fn drop(&mut self) {
        self.budget.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place where a frame publishes its image.
pub(crate) struct ImageSlot(Atomic<PublishedImage>);

impl ImageSlot {
    pub(crate) fn empty() -> ImageSlot {
        ImageSlot(Atomic::null())
    }

    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: the pointer is compared with null and never dereferenced.
        let guard = unsafe { crossbeam_epoch::unprotected() };
        self.0.load(std::sync::atomic::Ordering::Relaxed, guard).is_null()
    }

    /// The published image; it stays readable as long as `guard` is held, even if it is replaced.
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> Option<&'g PublishedImage> {
        let image = self.0.load(std::sync::atomic::Ordering::Acquire, guard);
        // SAFETY: an image is freed through `defer_destroy` after it was unlinked, so an image
        // loaded under `guard` lives as long as `guard`; it never changes after it was published.
        unsafe { image.as_ref() }
    }

    /// Publishes `image` if nothing is published; returns the image that is published then.
    pub(crate) fn publish_first<'g>(
        &self,
        image: PublishedImage,
        guard: &'g Guard,
    ) -> Option<&'g PublishedImage> {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        // A refused image is dropped here: another thread's is in place.
        let _ = self.0.compare_exchange(Shared::null(), Owned::new(image), order.0, order.1, guard);
        self.load(guard)
    }

    /// Replaces the published image by `image`, or by nothing. The old image is freed soon after
    /// the caller has called [`crossbeam_epoch::Guard::flush`]; true if there was one.
    pub(crate) fn replace(&self, image: Option<PublishedImage>, guard: &Guard) -> bool {
        let next = image.map_or_else(Shared::null, |image| Owned::new(image).into_shared(guard));
        let previous = self.0.swap(next, Ordering::AcqRel, guard);
        if !previous.is_null() {
            // SAFETY: the swap has unlinked `previous`, and only one swap sees each unlinked
            // pointer.
            unsafe { guard.defer_destroy(previous) };
        }
        !previous.is_null()
    }
}

impl Drop for ImageSlot {
    fn drop(&mut self) {
        let image = std::mem::replace(&mut self.0, Atomic::null());
        // SAFETY: `&mut self` ensures that no other thread can load this pointer any more.
        drop(unsafe { image.try_into_owned() });
    }
}
