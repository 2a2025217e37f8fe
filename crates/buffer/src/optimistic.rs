//! Reading inner tree nodes without a latch.
//!
//! A descent through a B-link tree reads one inner node per level and writes nothing that other
//! threads write. It reads the node's *published image*, an immutable copy that is replaced after
//! each change and freed by epochs. The copy is a version that really existed, at most slightly
//! old. A B-link tree tolerates that: a reader that lands too far left moves right.
//!
//! PolarIndex (000 §4.1) reads the page itself and then checks whether its version moved. In Rust,
//! a read that races with a write is undefined behaviour, and every decoder would have to survive
//! torn bytes. Inner nodes are few and change rarely, so a copy per change is cheap
//! (docs/decisions/2026-11-21-published-images-of-inner-nodes.md).

use std::fmt;
use std::ops::Deref;

use crossbeam_epoch::Guard as EpochGuard;
use firn_base::PageId;
use firn_format::page::{PageBuf, PageKind};

use crate::frame::{Access, Frame};
use crate::guard::Miss;
use crate::memory::image::PublishedImage;
use crate::pool::BufferPool;
use crate::statistics::Counter;

/// An image of an inner node, readable as long as the epoch guard is held.
#[derive(Clone, Copy)]
pub struct OptimisticGuard<'g> {
    frame: &'g Frame,
    image: &'g PublishedImage,
}

impl OptimisticGuard<'_> {
    /// Whether no change was completed after this version. A change may be in progress.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.frame.version() == self.image.version
    }

    /// The version of this image, counted as in [`crate::SharedGuard::version`].
    #[must_use]
    pub fn version(&self) -> u64 {
        self.image.version
    }
}

impl Deref for OptimisticGuard<'_> {
    type Target = PageBuf;

    fn deref(&self) -> &PageBuf {
        &self.image.content
    }
}

impl fmt::Debug for OptimisticGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OptimisticGuard").field(&**self).finish()
    }
}

impl BufferPool {
    /// Reads an inner tree node without a latch. `None` if the page has no published image: it is
    /// not an inner node, or it is being changed for the first time, or there are too many images.
    /// Take a [`BufferPool::shared`] guard then. Does not block.
    ///
    /// # Errors
    /// [`Miss`] if the page is not cached.
    pub fn optimistic<'g>(
        &'g self,
        page: PageId,
        epoch: &'g EpochGuard,
    ) -> Result<Option<OptimisticGuard<'g>>, Miss> {
        let frame = self.frame_of(page).ok_or(Miss(page))?.1;
        let image = match frame.image.load(epoch) {
            Some(image) => Some(image),
            None => self.publish_first(frame, page, epoch),
        };
        // The frame may have gone to another page meanwhile (rule 2).
        let Some(image) = image.filter(|image| image.page == page) else { return Ok(None) };
        frame.touch(Access::Normal);
        self.counters.count(Counter::OptimisticHits);
        Ok(Some(OptimisticGuard { frame, image }))
    }

    fn publish_first<'g>(
        &self,
        frame: &'g Frame,
        page: PageId,
        epoch: &'g EpochGuard,
    ) -> Option<&'g PublishedImage> {
        let latch = frame.latch.try_read()?;
        let content = latch.as_deref().filter(|_| frame.caches(page))?;
        if content.kind() != Some(PageKind::TreeInner) {
            return None;
        }
        // No change completes while the latch is held, so the version is the content's (rule 7).
        let image = self.copy_for_publication(page, frame.version(), content)?;
        frame.image.publish_first(image, epoch)
    }

    /// An image of `content`, unless there are too many.
    pub(crate) fn copy_for_publication(
        &self,
        page: PageId,
        version: u64,
        content: &PageBuf,
    ) -> Option<PublishedImage> {
        let image = PublishedImage::copy(&self.images, page, version, content);
        let counter = if image.is_some() { Counter::ImagesCopied } else { Counter::ImagesRefused };
        self.counters.count(counter);
        image
    }
}
