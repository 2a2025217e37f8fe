//! What a database node reports about itself as numbers.
//!
//! A report is a message: the process that serves clients asks for it
//! ([`DatabaseNode::report`](crate::rows::DatabaseNode::report)), shows it (`SHOW STATUS`, `SHOW
//! ENGINE … STATUS`, `/metrics`) and need not run where the node does. Counters start at zero with
//! the node. The order of the fields is part of the format of row messages.

use firn_base::Lsn;
use serde::{Deserialize, Serialize};

/// Counts what a node does, in the node's process.
pub trait Reporter: Send + Sync {
    /// The figures at this moment. Reads figures of the system; too slow for every statement.
    fn report(&self) -> NodeReport;

    /// The text of `SHOW ENGINE INNODB STATUS`. Reads all locks; too slow for every statement.
    fn status_text(&self) -> String;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReport {
    /// Memory of the process and of the node's parts.
    pub memory: MemoryReport,
    pub pool: PoolReport,
    pub locks: LockReport,
    pub log: LogReport,
    pub pages: PageStoreReport,
    pub transactions: TransactionReport,
    /// The archive, if the database is archived and somebody has said how far.
    pub archive: Option<ArchiveReport>,
}

/// Memory of the parts of a node, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// The limit of the process; 0: none is configured.
    pub budget: u64,
    /// What the process uses; 0: the system does not say.
    pub resident: u64,
    /// What the buffer pool gives up in favour of the other parts.
    pub withheld: u64,
    /// Pages, published images and their bookkeeping.
    pub buffer_pool: u64,
    /// The log buffer and the batch that is being written.
    pub log_buffer: u64,
    /// Indexes of log segments that are still written to.
    pub log_index: u64,
    /// Indexes of full log segments.
    pub log_index_cache: u64,
    /// Images of pages on their way to the disk.
    pub page_images: u64,
    /// The places of the pages, and the log that waits for each.
    pub page_map: u64,
    /// The transaction table and the open snapshots.
    pub transactions: u64,
    /// Row and table locks.
    pub locks: u64,
    /// Columns that are kept between analytic statements.
    pub column_cache: u64,
    /// Memory that was granted to statements and packets and that they have not used yet.
    pub promised: u64,
    /// How often a request was refused for lack of memory.
    pub refusals: u64,
}

impl MemoryReport {
    /// The parts with their names, for listings.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, u64); 9] {
        [
            ("buffer_pool", self.buffer_pool),
            ("log_buffer", self.log_buffer),
            ("log_index", self.log_index),
            ("log_index_cache", self.log_index_cache),
            ("page_images", self.page_images),
            ("page_map", self.page_map),
            ("transactions", self.transactions),
            ("locks", self.locks),
            ("column_cache", self.column_cache),
        ]
    }

    /// What the process uses beyond the parts: running statements, threads, the program, and memory
    /// that the allocator keeps.
    #[must_use]
    pub fn other(&self) -> u64 {
        self.resident.saturating_sub(self.parts().iter().map(|(_, bytes)| bytes).sum())
    }
}

/// The buffer pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolReport {
    /// Pages that it has room for.
    pub frames: u64,
    /// Pages that were found in memory.
    pub hits: u64,
    /// Pages that were read from the page store.
    pub misses: u64,
    /// Pages that were read before they were needed.
    pub prefetches: u64,
    /// Pages dropped because the page store had them.
    pub evictions_clean: u64,
    /// Pages dropped after the page store took them.
    pub evictions_offered: u64,
    /// Waits because no page could be evicted.
    pub eviction_waits: u64,
    pub reads_in_flight: u64,
}

/// Row and table locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReport {
    /// Requests that had to wait.
    pub waits: u64,
    pub current_waits: u64,
    /// Waits whose time ran out.
    pub timeouts: u64,
    /// Deadlocks that were broken.
    pub deadlocks: u64,
    /// Time spent in completed waits, in microseconds.
    pub wait_time_us: u64,
    /// The longest of them, in microseconds.
    pub longest_wait_us: u64,
}

/// The redo log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogReport {
    /// Where the log ended when the node was opened.
    pub opened: Lsn,
    pub end: Lsn,
    /// The end of the durable log.
    pub durable: Lsn,
    /// The start of the log that is kept.
    pub truncated: Lsn,
    pub syncs: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageStoreReport {
    /// All log before this is in page images.
    pub applied: Lsn,
    /// Pages with log that no stored image includes.
    pub pending_pages: u64,
    /// Bytes of that log.
    pub behind_bytes: u64,
    /// Images taken from the buffer pool.
    pub images_copied: u64,
    /// Images made from log.
    pub images_built: u64,
    /// Images rebuilt after damage.
    pub images_repaired: u64,
    /// Images built per second, recently.
    pub images_per_second: u64,
    /// Bytes of images written.
    pub bytes_written: u64,
    /// Batches of images written.
    pub batches: u64,
    /// Bytes of images that wait to be written.
    pub queued_bytes: u64,
    /// How often storage refused an image.
    pub failures: u64,
    pub last_error: Option<String>,
    /// Places for pages in page files.
    pub slots: u64,
    /// How many of them are free.
    pub free_slots: u64,
}

/// The archive of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveReport {
    /// The node of a cluster that writes it; empty for a standalone server.
    pub node: String,
    /// The archive does not need log before this.
    pub archived: Lsn,
    pub progress: ArchiveProgress,
}

/// How far an archiver has come, and what it has sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveProgress {
    /// Everything that was acknowledged by then is archived, in milliseconds since the Unix epoch;
    /// 0: nothing yet.
    pub as_of_ms: u64,
    /// Durable log that is not archived.
    pub behind_bytes: u64,
    /// For how long there has been some, in milliseconds.
    pub behind_ms: u64,
    pub log_objects: u64,
    /// Complete sets of page images.
    pub sets: u64,
    /// The bytes of the archive.
    pub size_bytes: u64,
    /// Bytes sent since the archiver has started.
    pub sent_bytes: u64,
    /// Attempts that failed since then.
    pub failures: u64,
    /// What is wrong now.
    pub error: Option<String>,
}

/// Transactions and trees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionReport {
    /// Splits of tree pages.
    pub splits: u64,
    /// Merges of tree pages.
    pub merges: u64,
    /// Tree descents that were restarted.
    pub restarts: u64,
    pub open_snapshots: u64,
    /// Transactions from before the start that are still being rolled back.
    pub losers_left: u64,
}
