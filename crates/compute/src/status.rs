//! Counters of what the server does: `SHOW STATUS`, and the metrics that are scraped.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $shown:literal;)*) => {
        /// Counters of one server. Relaxed: they order nothing.
        #[derive(Debug, Default)]
        pub struct Status {
            $($(#[$doc])* pub $name: AtomicU64,)*
        }

        impl Status {
            /// Every counter by MySQL's name for it.
            #[must_use]
            pub fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$(($shown, self.$name.load(Ordering::Relaxed))),*]
            }
        }
    };
}

counters! {
    /// Statements of clients, those inside prepared ones included.
    questions "Questions";
    /// Connections that tried.
    connections "Connections";
    /// Connections that failed to log in.
    aborted_connects "Aborted_connects";
    /// Bytes received.
    bytes_received "Bytes_received";
    /// Bytes sent.
    bytes_sent "Bytes_sent";
    /// `SELECT`s.
    selects "Com_select";
    /// `INSERT`s.
    inserts "Com_insert";
    /// `REPLACE`s.
    replaces "Com_replace";
    /// `UPDATE`s.
    updates "Com_update";
    /// `DELETE`s.
    deletes "Com_delete";
    /// `BEGIN`s.
    begins "Com_begin";
    /// `COMMIT`s.
    commits "Com_commit";
    /// `ROLLBACK`s.
    rollbacks "Com_rollback";
    /// Statements prepared.
    prepares "Com_stmt_prepare";
    /// Prepared statements executed.
    executes "Com_stmt_execute";
    /// Statements slower than `long_query_time`.
    slow_queries "Slow_queries";
    /// Plans that were found in the cache.
    plan_cache_hits "Firn_plan_cache_hits";
    /// Plans that had to be made.
    plan_cache_misses "Firn_plan_cache_misses";
}

/// Adds one.
#[inline]
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
