//! Log and pages of a database node, as the node sees them.

use std::sync::Arc;

use firn_api::report::{LogReport, MemoryReport};
use firn_api::{LogStore, PageStore};
use firn_node::storage::{NodeStorage, StorageFigures, page_report};
use firn_storage::group::{GroupLog, GroupStore};

use crate::page_role::OwnPages;

/// The log group, through this process's member, and the pages.
pub(crate) struct ClusterStorage {
    pub(crate) group: Arc<GroupStore>,
    pub(crate) log: Arc<GroupLog>,
    pub(crate) pages: Arc<dyn PageStore>,
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
            ..StorageFigures::default()
        };
        if let Some(node) = &self.page_node {
            let status = node.node.status();
            figures.memory.page_images = status.pages.image_memory_bytes;
            figures.memory.page_map =
                status.pages.map_memory_bytes + status.log.memory_bytes as u64;
            figures.pages = page_report(status.pages);
        }
        figures
    }

    /// Does nothing: the member and the page node outlive the engine.
    fn close(&self) {}
}
