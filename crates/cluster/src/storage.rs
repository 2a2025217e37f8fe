//! Log and pages of a database node, as the node sees them.

use std::sync::Arc;

use firn_api::report::{LogReport, MemoryReport, PageStoreReport};
use firn_api::{LogStore, PageStore};
use firn_node::storage::{NodeStorage, StorageFigures, page_report};
use firn_storage::group::{GroupLog, GroupStore};

use crate::page_role::OwnPages;
use crate::view::View;

/// The log group, through this process's member, and the pages.
pub(crate) struct ClusterStorage {
    pub(crate) group: Arc<GroupStore>,
    pub(crate) log: Arc<GroupLog>,
    pub(crate) pages: Arc<dyn PageStore>,
    pub(crate) view: Arc<View>,
    /// The page node of this process, if it has one.
    pub(crate) page_node: Option<OwnPages>,
}

impl NodeStorage for ClusterStorage {
    fn log(&self) -> Arc<dyn LogStore> {
        Arc::clone(&self.group) as Arc<dyn LogStore>
    }

    fn pages(&self) -> Arc<dyn PageStore> {
        Arc::clone(&self.pages)
    }

    fn figures(&self) -> StorageFigures {
        let log = self.log.log().memory();
        let mut figures = StorageFigures {
            log: LogReport {
                end: self.group.durable_lsn(),
                truncated: self.group.truncated_lsn(),
                ..LogReport::default()
            },
            memory: MemoryReport {
                log_buffer: log.round_bytes,
                log_index: log.open_index_bytes,
                log_index_cache: log.index_cache_bytes,
                ..MemoryReport::default()
            },
            archive: self.view.archive_report(),
            ..StorageFigures::default()
        };
        if let Some(node) = &self.page_node {
            let mut reports = Vec::new();
            for status in node.statuses() {
                figures.memory.page_images += status.pages.image_memory_bytes;
                figures.memory.page_map +=
                    status.pages.map_memory_bytes + status.log.memory_bytes as u64;
                reports.push(page_report(status.pages));
            }
            figures.pages = reports.into_iter().reduce(together).unwrap_or_default();
        }
        figures
    }

    /// Does nothing: the member and the page node outlive the engine.
    fn close(&self) {}
}

/// The figures of two chunks.
fn together(one: PageStoreReport, other: PageStoreReport) -> PageStoreReport {
    PageStoreReport {
        applied: one.applied.min(other.applied),
        pending_pages: one.pending_pages + other.pending_pages,
        behind_bytes: one.behind_bytes.max(other.behind_bytes),
        images_copied: one.images_copied + other.images_copied,
        images_built: one.images_built + other.images_built,
        images_repaired: one.images_repaired + other.images_repaired,
        images_per_second: one.images_per_second + other.images_per_second,
        bytes_written: one.bytes_written + other.bytes_written,
        batches: one.batches + other.batches,
        queued_bytes: one.queued_bytes + other.queued_bytes,
        failures: one.failures + other.failures,
        last_error: one.last_error.or(other.last_error),
        slots: one.slots + other.slots,
        free_slots: one.free_slots + other.free_slots,
    }
}
