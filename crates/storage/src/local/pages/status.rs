//! The store's status.

use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::Lsn;

/// The state of a local page store. Counters start when it is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageStoreStatus {
    /// Everything that ends here or before is in stored images.
    pub applied_lsn: Lsn,
    /// Reads of versions from here on are served.
    pub horizon_lsn: Lsn,
    /// The reader that holds the oldest position, and that position: the horizon waits for it.
    pub oldest_lease: Option<(String, Lsn)>,
    /// Pages with log that no stored image includes.
    pub pending_pages: u64,
    /// Durable log that is not applied, in bytes.
    pub behind_bytes: u64,
    /// Offered images that are not written yet, in bytes.
    pub queued_bytes: u64,
    /// Memory for images on their way to the disk, in bytes; kept for reuse.
    pub image_memory_bytes: u64,
    /// Approximate memory of the page map, in bytes.
    pub map_memory_bytes: u64,
    /// Slots of all page files.
    pub slots: u64,
    pub free_slots: u64,
    /// Batches of images made durable.
    pub batches: u64,
    pub images_offered: u64,
    /// Images that were copied from the attached cache.
    pub images_copied: u64,
    /// Images that were built from older ones and the log.
    pub images_built: u64,
    /// Images that replaced damaged ones.
    pub images_repaired: u64,
    /// Images written in the last full second.
    pub images_per_second: u64,
    /// Bytes of images written.
    pub bytes_written: u64,
    /// Snapshots of the page map written.
    pub map_snapshots: u64,
    /// Pages that currently cannot be brought up to date; their log is kept.
    pub stuck_pages: u64,
    /// How often an operation failed.
    pub failures: u64,
    /// Whether the store waits before it retries a failed operation.
    pub is_paused: bool,
    pub last_error: Option<String>,
}

/// The counters behind [`PageStoreStatus`], set by the materialiser.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) slots: AtomicU64,
    pub(super) free_slots: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) offered: AtomicU64,
    pub(super) copied: AtomicU64,
    pub(super) built: AtomicU64,
    pub(super) repaired: AtomicU64,
    pub(super) per_second: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    pub(super) map_snapshots: AtomicU64,
    pub(super) stuck_pages: AtomicU64,
}

/// Adds to a counter.
pub(super) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

pub(super) fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
