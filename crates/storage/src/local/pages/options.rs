//! The settings of a local page store.

use firn_api::PageFilter;
use firn_format::page::PAGE_SIZE;

/// A batch of the page map holds this many images, beside dropped spaces.
const MAX_BATCH_PAGES: usize = 2048;

/// Settings of a local page store.
#[derive(Debug, Clone)]
pub struct PageStoreOptions {
    /// Memory for offered images before they are written, in bytes.
    pub queue_bytes: usize,
    /// The most images that are written and made durable at once.
    pub batch_pages: usize,
    /// Page files grow by this much, in bytes.
    pub grow_bytes: u64,
    /// Free space in the page files beyond their content and the pages that pending log will add,
    /// in bytes. With it, log can be applied, and its files reused, on a full disk.
    pub reserve_bytes: u64,
    /// How much log the store may be behind, in bytes. From half of it on, the store works as fast
    /// as it can.
    pub behind_limit_bytes: u64,
    /// Pages per second that the store brings up to date while it is less behind than that.
    pub idle_pages_per_second: u32,
    /// How far back a read of an old version may reach, in milliseconds.
    pub history_window_ms: u64,
    /// How long the store waits after an error of the disk, in milliseconds.
    pub retry_delay_ms: u64,
    /// The pages that the store keeps. Others that are found in the directory are dropped.
    pub kept: PageFilter,
}

impl Default for PageStoreOptions {
    fn default() -> PageStoreOptions {
        PageStoreOptions {
            queue_bytes: 16 << 20,
            batch_pages: 256,
            grow_bytes: 64 << 20,
            reserve_bytes: 32 << 20,
            behind_limit_bytes: 512 << 20,
            idle_pages_per_second: 256,
            history_window_ms: 0,
            retry_delay_ms: 1000,
            kept: PageFilter::All,
        }
    }
}

impl PageStoreOptions {
    /// These settings, with sizes adjusted to what the store can work with.
    pub(super) fn within_bounds(mut self) -> PageStoreOptions {
        self.batch_pages = self.batch_pages.clamp(1, MAX_BATCH_PAGES);
        self.queue_bytes = self.queue_bytes.max(PAGE_SIZE);
        self
    }
}
