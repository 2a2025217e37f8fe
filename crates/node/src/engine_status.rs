//! `SHOW ENGINE INNODB STATUS`: the current state of a node, as a text for people.

use std::fmt::Write;

use firn_api::report::{ArchiveReport, NodeReport, PageStoreReport};
use firn_engine::lock::DeadlockReport;

use crate::node::Node;
use crate::report;

/// Locks that are listed individually.
const LISTED_WAITS: usize = 50;

/// The text for a node. Reads all locks; too slow for every statement.
#[must_use]
pub fn of(node: &Node) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_all(node, &mut text);
    text
}

fn write_all(node: &Node, out: &mut String) -> std::fmt::Result {
    let report = report::of(node);
    title(out, "FIRN STATUS")?;
    write_deadlock(node, out)?;
    write_transactions(node, out)?;
    write_pool(&report, out)?;
    write_log(&report, out)?;
    write_pages(&report.pages, out)?;
    if let Some(archive) = &report.archive {
        write_archive(archive, out)?;
    }
    title(out, "END OF FIRN STATUS")
}

fn title(out: &mut String, title: &str) -> std::fmt::Result {
    let line = "-".repeat(title.len());
    writeln!(out, "{line}\n{title}\n{line}")
}

fn write_deadlock(node: &Node, out: &mut String) -> std::fmt::Result {
    let Some(DeadlockReport { parties, victim, at }) =
        node.engine().system().locks().latest_deadlock()
    else {
        return Ok(());
    };
    title(out, "LATEST DETECTED DEADLOCK")?;
    writeln!(out, "{:.1} s after the machine's start", at.as_secs_f64())?;
    for party in parties {
        writeln!(
            out,
            "transaction {} waits for {} on {}; undo records {}",
            party.owner, party.mode, party.wanted, party.weight
        )?;
    }
    writeln!(out, "transaction {victim} was rolled back")
}

fn write_transactions(node: &Node, out: &mut String) -> std::fmt::Result {
    let system = node.engine().system();
    title(out, "TRANSACTIONS")?;
    writeln!(
        out,
        "Snapshots open {}, oldest {}",
        system.snapshots().open_count(),
        system.snapshots().horizon()
    )?;
    writeln!(
        out,
        "Prepared (XA) {}, left to roll back after the start {}",
        system.prepared_transactions().len(),
        node.engine().losers_left()
    )?;
    let locks = system.locks().snapshot();
    let waits: Vec<_> = locks.iter().filter(|lock| lock.wait.is_some()).collect();
    let statistics = system.locks().statistics();
    writeln!(
        out,
        "Locks {}, of which wait {}; waits so far {}, deadlocks {}, timeouts {}",
        locks.len(),
        waits.len(),
        statistics.waits,
        statistics.deadlocks,
        statistics.timeouts
    )?;
    for lock in waits.iter().take(LISTED_WAITS) {
        let Some(wait) = &lock.wait else { continue };
        let blockers: Vec<String> = wait.blockers.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "transaction {} has waited {:.1} s for {} on {}, held by {}",
            lock.owner,
            wait.waited.as_secs_f64(),
            lock.mode,
            lock.locked,
            blockers.join(", ")
        )?;
    }
    Ok(())
}

fn write_pool(report: &NodeReport, out: &mut String) -> std::fmt::Result {
    let (pool, memory) = (&report.pool, &report.memory);
    title(out, "BUFFER POOL AND MEMORY")?;
    writeln!(out, "Memory resident {} bytes of a budget of {}", memory.resident, memory.budget)?;
    for (part, bytes) in memory.parts() {
        writeln!(out, "  {part} {bytes}")?;
    }
    writeln!(out, "Pages: room for {}, withheld {} bytes", pool.frames, memory.withheld)?;
    let asked = pool.hits + pool.misses;
    let rate = if asked == 0 { 1.0 } else { pool.hits as f64 / asked as f64 };
    writeln!(
        out,
        "Pages asked for {asked}, hit rate {rate:.4}, read {}, prefetched {}",
        pool.misses, pool.prefetches
    )?;
    writeln!(
        out,
        "Pages dropped {} that storage had, {} after it took them; waits {}",
        pool.evictions_clean, pool.evictions_offered, pool.eviction_waits
    )
}

fn write_log(report: &NodeReport, out: &mut String) -> std::fmt::Result {
    let log = &report.log;
    title(out, "LOG")?;
    writeln!(out, "Log sequence number          {}", log.end)?;
    writeln!(out, "Log durable up to            {}", log.durable)?;
    writeln!(out, "Pages materialised up to     {}", report.pages.applied)?;
    writeln!(out, "Log kept from                {}", log.truncated)?;
    writeln!(out, "Made durable {} times", log.syncs)
}

fn write_archive(archive: &ArchiveReport, out: &mut String) -> std::fmt::Result {
    title(out, "ARCHIVE")?;
    if !archive.node.is_empty() {
        writeln!(out, "Written by {}", archive.node)?;
    }
    writeln!(
        out,
        "Archived up to {}, {} bytes and {:.1} s behind",
        archive.archived,
        archive.progress.behind_bytes,
        archive.progress.behind_ms as f64 / 1e3
    )?;
    writeln!(
        out,
        "Objects of log {}, sets of images {}, {} bytes; {} bytes sent",
        archive.progress.log_objects,
        archive.progress.sets,
        archive.progress.size_bytes,
        archive.progress.sent_bytes
    )?;
    match &archive.progress.error {
        Some(error) => writeln!(out, "Failed {} times; now: {error}", archive.progress.failures),
        None => Ok(()),
    }
}

fn write_pages(pages: &PageStoreReport, out: &mut String) -> std::fmt::Result {
    title(out, "PAGE STORE")?;
    writeln!(
        out,
        "Pages with log to apply {}, log to apply {} bytes",
        pages.pending_pages, pages.behind_bytes
    )?;
    writeln!(
        out,
        "Images copied {}, built {}, repaired {}, {} a second; {} bytes written",
        pages.images_copied,
        pages.images_built,
        pages.images_repaired,
        pages.images_per_second,
        pages.bytes_written
    )?;
    match &pages.last_error {
        Some(error) => writeln!(out, "Refused {} times, last: {error}", pages.failures),
        None => Ok(()),
    }
}
