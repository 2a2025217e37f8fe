//! Where a node's log and pages are, as the node needs it.

use std::sync::Arc;

use firn_api::report::{ArchiveReport, LogReport, MemoryReport, PageStoreReport};
use firn_api::{LogStore, PageStore};
use firn_storage::local::LocalStorage;
use firn_storage::local::pages::PageStoreStatus;

/// Log and pages of one node, wherever they are.
pub trait NodeStorage: Send + Sync {
    fn log(&self) -> Arc<dyn LogStore>;

    fn pages(&self) -> Arc<dyn PageStore>;

    /// The state of log and pages. Does not block.
    fn figures(&self) -> StorageFigures;

    /// Stops the background tasks. Blocks until their I/O is done.
    fn close(&self);
}

/// What log and pages tell of themselves.
#[derive(Debug, Clone, Default)]
pub struct StorageFigures {
    /// Where the kept log begins and ends; the rest is the writer's to tell.
    pub log: LogReport,
    pub pages: PageStoreReport,
    /// What log and pages take of this process's memory; the other parts are 0.
    pub memory: MemoryReport,
    pub archive: Option<ArchiveReport>,
}

impl NodeStorage for LocalStorage {
    fn log(&self) -> Arc<dyn LogStore> {
        Arc::clone(&self.log) as Arc<dyn LogStore>
    }

    fn pages(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.pages) as Arc<dyn PageStore>
    }

    fn figures(&self) -> StorageFigures {
        let (memory, store) = (self.log.memory(), self.pages.status());
        StorageFigures {
            log: LogReport {
                end: self.log.end_lsn(),
                truncated: self.log.truncated_lsn(),
                ..LogReport::default()
            },
            memory: MemoryReport {
                log_buffer: memory.round_bytes,
                log_index: memory.open_index_bytes,
                log_index_cache: memory.index_cache_bytes,
                page_images: store.image_memory_bytes,
                page_map: store.map_memory_bytes,
                ..MemoryReport::default()
            },
            pages: page_report(store),
            archive: None,
        }
    }

    fn close(&self) {
        LocalStorage::close(self);
    }
}

/// The report of a page store of this process.
#[must_use]
pub fn page_report(status: PageStoreStatus) -> PageStoreReport {
    PageStoreReport {
        applied: status.applied_lsn,
        pending_pages: status.pending_pages,
        behind_bytes: status.behind_bytes,
        images_copied: status.images_copied,
        images_built: status.images_built,
        images_repaired: status.images_repaired,
        images_per_second: status.images_per_second,
        bytes_written: status.bytes_written,
        batches: status.batches,
        queued_bytes: status.queued_bytes,
        failures: status.failures,
        last_error: status.last_error.map(|error| error.to_string()),
        slots: status.slots,
        free_slots: status.free_slots,
    }
}
