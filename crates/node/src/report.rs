//! A node's report: this module alone knows which part counts what.

use firn_api::report::{LockReport, LogReport, NodeReport, PoolReport, TransactionReport};
use firn_engine::Engine;

use crate::node::Node;

/// The report of a node. Reads figures of the system; too slow for every statement.
#[must_use]
pub fn of(node: &Node) -> NodeReport {
    let (engine, storage) = (node.engine(), node.storage().figures());
    NodeReport {
        memory: node.memory(),
        pool: pool(engine),
        locks: locks(engine),
        log: LogReport { opened: node.opened_at(), ..log(engine, storage.log) },
        pages: storage.pages,
        transactions: transactions(engine),
        archive: storage.archive,
    }
}

fn pool(engine: &Engine) -> PoolReport {
    let pool = &engine.system().pages().pool;
    let counted = pool.statistics();
    PoolReport {
        frames: pool.frame_count() as u64,
        hits: counted.hits + counted.optimistic_hits,
        misses: counted.misses,
        prefetches: counted.prefetches,
        evictions_clean: counted.evictions_clean,
        evictions_offered: counted.evictions_offered,
        eviction_waits: counted.eviction_waits,
        reads_in_flight: counted.reads_in_flight,
    }
}

fn locks(engine: &Engine) -> LockReport {
    let counted = engine.system().locks().statistics();
    LockReport {
        waits: counted.waits,
        current_waits: counted.current_waits,
        timeouts: counted.timeouts,
        deadlocks: counted.deadlocks,
        wait_time_us: counted.wait_time_us,
        longest_wait_us: counted.longest_wait_us,
    }
}

fn log(engine: &Engine, stored: LogReport) -> LogReport {
    let writer = &engine.system().pages().log;
    LogReport { durable: writer.durable_lsn(), syncs: writer.round_count(), ..stored }
}

fn transactions(engine: &Engine) -> TransactionReport {
    let system = engine.system();
    let trees = system.forest().statistics();
    TransactionReport {
        splits: trees.splits.get(),
        merges: trees.merges.get(),
        restarts: trees.restarts.get(),
        open_snapshots: system.snapshots().open_count() as u64,
        losers_left: engine.losers_left(),
    }
}
