//! A database node's report as figures: `SHOW STATUS` and `/metrics`.
//!
//! Numbers with the same meaning as in MySQL have MySQL's names; they are InnoDB's names, because
//! monitors know those.

use firn_api::report::{
    ArchiveReport, LockReport, LogReport, MemoryReport, NodeReport, PageStoreReport, PoolReport,
    TransactionReport,
};
use firn_format::page::PAGE_SIZE;

use super::figure::Figure;

const PAGE_BYTES: u64 = PAGE_SIZE as u64;
const MICROSECONDS: u32 = 1_000_000;
const MILLISECONDS: u32 = 1_000;

pub(crate) fn node_figures(report: &NodeReport) -> Vec<Figure> {
    let mut figures = memory(&report.memory);
    figures.extend(pool(&report.pool, &report.memory, &report.pages));
    figures.extend(locks(&report.locks));
    figures.extend(log(&report.log, &report.pages));
    figures.extend(pages(&report.pages, &report.log));
    figures.extend(transactions(&report.transactions));
    figures.extend(report.archive.iter().flat_map(archive));
    figures
}

fn memory(memory: &MemoryReport) -> Vec<Figure> {
    let part = |name: &'static str, label: &'static str, value: u64| {
        Figure::gauge(name, value, "firn_memory_part_bytes", "Memory of the node's parts")
            .with_label("part", label)
    };
    vec![
        Figure::gauge(
            "Firn_memory_budget",
            memory.budget,
            "firn_memory_budget_bytes",
            "What the process may take",
        ),
        Figure::gauge(
            "Firn_memory_resident",
            memory.resident,
            "firn_memory_resident_bytes",
            "What the process takes",
        ),
        part("Firn_memory_buffer_pool", "buffer_pool", memory.buffer_pool),
        part("Firn_memory_log_buffer", "log_buffer", memory.log_buffer),
        part("Firn_memory_log_index", "log_index", memory.log_index),
        part("Firn_memory_log_index_cache", "log_index_cache", memory.log_index_cache),
        part("Firn_memory_page_images", "page_images", memory.page_images),
        part("Firn_memory_page_map", "page_map", memory.page_map),
        part("Firn_memory_transactions", "transactions", memory.transactions),
        part("Firn_memory_locks", "locks", memory.locks),
        part("Firn_memory_column_cache", "column_cache", memory.column_cache),
        Figure::gauge(
            "Firn_memory_promised",
            memory.promised,
            "firn_memory_promised_bytes",
            "Memory that was granted and is not filled yet",
        ),
        Figure::counter(
            "Firn_memory_refusals",
            memory.refusals,
            "firn_memory_refusals",
            "Times that the memory budget had no room",
        ),
        Figure::shown("Innodb_buffer_pool_bytes_data", memory.buffer_pool),
    ]
}

fn pool(pool: &PoolReport, memory: &MemoryReport, pages: &PageStoreReport) -> Vec<Figure> {
    let total = pool.frames;
    let used = (memory.buffer_pool / PAGE_BYTES).min(total);
    let dirty = pages.pending_pages.min(used);
    let requests = pool.hits + pool.misses;
    let read = |source: &'static str, name: &'static str, value: u64| {
        Figure::counter(name, value, "firn_buffer_pool_reads", "Pages asked of the buffer pool")
            .with_label("from", source)
    };
    let evicted = |way: &'static str, value: u64| {
        Figure::counter("", value, "firn_buffer_pool_evictions", "Pages dropped from memory")
            .with_label("way", way)
    };
    vec![
        Figure::gauge(
            "Innodb_buffer_pool_pages_total",
            total,
            "firn_buffer_pool_pages",
            "Pages that the buffer pool has room for",
        ),
        Figure::gauge(
            "Innodb_buffer_pool_pages_data",
            used,
            "firn_buffer_pool_pages_used",
            "Pages in the buffer pool",
        ),
        Figure::shown("Innodb_buffer_pool_pages_free", total - used),
        Figure::shown("Innodb_buffer_pool_pages_misc", 0),
        Figure::gauge(
            "Innodb_buffer_pool_pages_dirty",
            dirty,
            "firn_buffer_pool_pages_pending",
            "Pages with log that is in no stored image",
        ),
        Figure::shown("Innodb_buffer_pool_bytes_dirty", dirty * PAGE_BYTES),
        Figure::shown("Innodb_buffer_pool_read_requests", requests),
        read("memory", "", pool.hits),
        read("storage", "Innodb_buffer_pool_reads", pool.misses),
        Figure::counter(
            "Innodb_buffer_pool_read_ahead",
            pool.prefetches,
            "firn_buffer_pool_prefetches",
            "Pages read before they were asked for",
        ),
        Figure::shown("Innodb_buffer_pool_read_ahead_rnd", 0),
        Figure::shown("Innodb_buffer_pool_read_ahead_evicted", 0),
        Figure::counter(
            "Innodb_buffer_pool_wait_free",
            pool.eviction_waits,
            "firn_buffer_pool_waits",
            "Waits because no page could go",
        ),
        evicted("dropped", pool.evictions_clean),
        evicted("offered", pool.evictions_offered),
        Figure::gauge(
            "Innodb_data_pending_reads",
            pool.reads_in_flight,
            "firn_page_reads_pending",
            "Page reads that go on now",
        ),
        Figure::shown("Innodb_data_reads", pool.misses + pool.prefetches),
        Figure::shown("Innodb_data_read", (pool.misses + pool.prefetches) * PAGE_BYTES),
        Figure::shown("Innodb_pages_read", pool.misses + pool.prefetches),
        Figure::shown("Innodb_page_size", PAGE_BYTES),
    ]
}

fn locks(locks: &LockReport) -> Vec<Figure> {
    let average = locks.wait_time_us.checked_div(locks.waits).unwrap_or(0);
    vec![
        Figure::gauge(
            "Innodb_row_lock_current_waits",
            locks.current_waits,
            "firn_lock_waits_pending",
            "Waits for locks that go on now",
        ),
        Figure::counter("Innodb_row_lock_waits", locks.waits, "firn_lock_waits", "Waits for locks"),
        Figure::counter(
            "",
            locks.wait_time_us,
            "firn_lock_wait_seconds",
            "Time spent in waits for locks that have ended",
        )
        .divided(MICROSECONDS),
        Figure::shown("Innodb_row_lock_time", locks.wait_time_us / 1000),
        Figure::shown("Innodb_row_lock_time_avg", average / 1000),
        Figure::shown("Innodb_row_lock_time_max", locks.longest_wait_us / 1000),
        Figure::counter(
            "Innodb_deadlocks",
            locks.deadlocks,
            "firn_deadlocks",
            "Transactions that were ended to break a deadlock",
        ),
        Figure::counter(
            "",
            locks.timeouts,
            "firn_lock_timeouts",
            "Waits for locks whose time ran out",
        ),
    ]
}

fn log(log: &LogReport, pages: &PageStoreReport) -> Vec<Figure> {
    let (end, truncated, syncs) = (log.end.0, log.truncated.0, log.syncs);
    let written = end.saturating_sub(log.opened.0);
    let behind = pages.behind_bytes;
    vec![
        Figure::gauge("Firn_log_end_lsn", end, "firn_log_end_lsn", "Where the log ends"),
        Figure::gauge(
            "Firn_log_truncated_lsn",
            truncated,
            "firn_log_truncated_lsn",
            "Where the log that is kept begins",
        ),
        Figure::gauge("", end.saturating_sub(truncated), "firn_log_kept_bytes", "Log that is kept"),
        Figure::gauge(
            "Innodb_checkpoint_age",
            behind,
            "firn_log_behind_bytes",
            "Durable log that is in no stored page image",
        ),
        Figure::counter(
            "Innodb_os_log_written",
            written,
            "firn_log_written_bytes",
            "Log written since the start",
        ),
        Figure::counter(
            "Innodb_os_log_fsyncs",
            syncs,
            "firn_log_syncs",
            "Times that log was made durable",
        ),
        Figure::shown("Innodb_log_writes", syncs),
        Figure::shown("Innodb_log_write_requests", written / 512),
        Figure::shown("Innodb_log_waits", 0),
    ]
}

fn pages(status: &PageStoreReport, log: &LogReport) -> Vec<Figure> {
    let written = status.images_copied + status.images_built + status.images_repaired;
    let image = |way: &'static str, value: u64| {
        Figure::counter("", value, "firn_page_images", "Page images made for storage")
            .with_label("way", way)
    };
    vec![
        image("copied", status.images_copied),
        image("built", status.images_built),
        image("repaired", status.images_repaired),
        Figure::counter(
            "Innodb_data_written",
            status.bytes_written,
            "firn_page_written_bytes",
            "Page images written to storage",
        ),
        Figure::shown("Innodb_data_writes", written),
        Figure::shown("Innodb_pages_written", written),
        Figure::shown("Innodb_buffer_pool_pages_flushed", written),
        Figure::shown("Innodb_data_fsyncs", status.batches + log.syncs),
        Figure::shown("Innodb_data_pending_writes", status.queued_bytes / PAGE_BYTES),
        Figure::shown("Innodb_data_pending_fsyncs", 0),
        Figure::counter(
            "",
            status.failures,
            "firn_page_store_failures",
            "Times that storage refused a page image",
        ),
        Figure::gauge("", status.slots, "firn_page_slots", "Places for pages in page files"),
        Figure::gauge("", status.free_slots, "firn_page_slots_free", "Of those, how many are free"),
    ]
}

fn archive(archive: &ArchiveReport) -> Vec<Figure> {
    vec![
        Figure::gauge(
            "Firn_archive_lsn",
            archive.archived.0,
            "firn_archive_lsn",
            "The archive does not need log before this",
        ),
        Figure::gauge(
            "Firn_archive_unix_time_ms",
            archive.progress.as_of_ms,
            "firn_archive_time_seconds",
            "Everything acknowledged by this time is archived",
        )
        .divided(MILLISECONDS),
        Figure::gauge(
            "Firn_archive_behind_bytes",
            archive.progress.behind_bytes,
            "firn_archive_behind_bytes",
            "Durable log that is not archived",
        ),
        Figure::gauge(
            "Firn_archive_behind_ms",
            archive.progress.behind_ms,
            "firn_archive_behind_seconds",
            "For how long there has been log that is not archived",
        )
        .divided(MILLISECONDS),
        Figure::gauge(
            "Firn_archive_log_objects",
            archive.progress.log_objects,
            "firn_archive_log_objects",
            "Objects of log in the archive",
        ),
        Figure::gauge(
            "Firn_archive_sets",
            archive.progress.sets,
            "firn_archive_sets",
            "Sets of page images in the archive",
        ),
        Figure::gauge(
            "Firn_archive_bytes",
            archive.progress.size_bytes,
            "firn_archive_size_bytes",
            "The size of the archive",
        ),
        Figure::counter(
            "Firn_archive_sent_bytes",
            archive.progress.sent_bytes,
            "firn_archive_sent_bytes",
            "Sent to the archive since the archiver has started",
        ),
        Figure::counter(
            "Firn_archive_failures",
            archive.progress.failures,
            "firn_archive_failures",
            "Attempts to archive that failed since the archiver has started",
        ),
    ]
}

fn transactions(report: &TransactionReport) -> Vec<Figure> {
    let change = |what: &'static str, value: u64| {
        Figure::counter("", value, "firn_tree_structure_changes", "Splits and merges of tree pages")
            .with_label("change", what)
    };
    vec![
        change("split", report.splits),
        change("merge", report.merges),
        Figure::counter(
            "",
            report.restarts,
            "firn_tree_restarts",
            "Descents into trees that began again",
        ),
        Figure::gauge(
            "",
            report.open_snapshots,
            "firn_snapshots_open",
            "Snapshots that keep old versions of rows",
        ),
        Figure::gauge(
            "",
            report.losers_left,
            "firn_recovery_rollbacks_pending",
            "Transactions of before the start that are still rolled back",
        ),
    ]
}
