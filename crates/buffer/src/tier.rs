//! What the pool reports to a tier before the page stores. Without a tier, which is the default,
//! nothing is called: this costs a look at an `Option` on the way to a change or to the page store,
//! and nothing on the way to a cached page.

use firn_api::{PageStoreError, TierLatch, TierLatchMode};
use firn_base::PageId;
use firn_format::page::PageBuf;

use crate::pool::BufferPool;

impl BufferPool {
    /// Whether this node shares a memory pool with others.
    #[must_use]
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.tier.is_some()
    }

    /// Latches a page across all nodes that share a memory pool; `None` if this node shares none.
    /// Blocks; called with no guard held.
    ///
    /// # Errors
    /// What the tier said.
    pub fn latch_among_nodes(
        &self,
        page: PageId,
        mode: TierLatchMode,
    ) -> Result<Option<Box<dyn TierLatch>>, PageStoreError> {
        self.tier.as_ref().map(|tier| tier.latch(page, mode)).transpose()
    }

    /// A page came into the pool without being read. Under its exclusive latch.
    pub(crate) fn tell_created(&self, page: PageId) {
        if let Some(tier) = &self.tier {
            tier.created(page);
        }
    }

    /// A cached page is about to change. Under its exclusive latch.
    pub(crate) fn tell_changing(&self, page: PageId) {
        if let Some(tier) = &self.tier {
            tier.changing(page);
        }
    }

    /// A page that was read or created is not cached, or no longer cached.
    pub(crate) fn tell_released(&self, page: PageId, image: Option<&PageBuf>) {
        if let Some(tier) = &self.tier {
            tier.released(page, image);
        }
    }
}

#[cfg(test)]
mod tests;
