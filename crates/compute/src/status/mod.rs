//! The server's counters: `SHOW STATUS`, the slow-query log and scraped metrics, from one place.
//!
//! ```text
//!   a session's thread ──► its own Status (plain adds)  ──┐
//!   sessions that have ended ──► the instance's Status  ──┼─► sum ─► figures ─► SHOW GLOBAL STATUS
//!   wire: connections   node: pool, log, locks, pages   ──┘              └────► /metrics
//! ```
//!
//! Invariants:
//! * only the thread that uses a session adds to the session's counters, so counting takes no
//!   locked instruction; others read them, relaxed, since they order nothing;
//! * a session's counts are added to the instance's when the session ends, so totals never go back.

mod command;
mod figure;
mod node;

use std::sync::atomic::{AtomicU64, Ordering};

pub use command::Command;
pub use figure::{Figure, Kind, Metric};
pub(crate) use node::node_figures;

/// Bounds of the buckets of durations, in microseconds; the last bucket has none.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];
const BUCKETS: usize = DURATION_BOUNDS_US.len() + 1;

/// Durations by their length.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BUCKETS],
    sum_us: AtomicU64,
}

/// A reading of [`Durations`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DurationCounts {
    /// How many fall into each bucket and not into an earlier one; the last has no bound.
    pub buckets: [u64; BUCKETS],
    /// Their sum, in microseconds.
    pub sum_us: u64,
}

impl Durations {
    /// Adds one.
    #[inline]
    fn count(&self, took_us: u64) {
        let bucket = DURATION_BOUNDS_US.iter().position(|bound| took_us <= *bound);
        count(&self.buckets[bucket.unwrap_or(BUCKETS - 1)]);
        add(&self.sum_us, took_us);
    }

    fn read(&self) -> DurationCounts {
        DurationCounts {
            buckets: std::array::from_fn(|number| self.buckets[number].load(Ordering::Relaxed)),
            sum_us: self.sum_us.load(Ordering::Relaxed),
        }
    }

    fn take_from(&self, other: &Durations) {
        let pairs = self.buckets.iter().zip(&other.buckets);
        pairs.for_each(|(mine, theirs)| take(mine, theirs));
        take(&self.sum_us, &other.sum_us);
    }
}

impl DurationCounts {
    fn add(&mut self, other: &DurationCounts) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(mine, theirs)| *mine += theirs);
        self.sum_us += other.sum_us;
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $shown:literal $metric:expr;)*) => {
        /// Counters of a session, or of all sessions that have ended.
        #[derive(Debug)]
        pub struct Status {
            $($(#[$doc])* pub $name: AtomicU64,)*
            /// Statements by their kind.
            commands: [AtomicU64; Command::COUNT],
            /// Durations of statements that only read.
            pub reads: Durations,
            /// Durations of statements that wrote rows.
            pub writes: Durations,
            /// Durations of all other statements.
            pub others: Durations,
        }

        /// A reading of [`Status`], possibly of several together.
        #[derive(Debug, Clone)]
        pub struct StatusCounts {
            $($(#[$doc])* pub $name: u64,)*
            /// Statements by [`Command`].
            pub commands: [u64; Command::COUNT],
            /// Durations of statements: reads, writes, others.
            pub durations: [DurationCounts; 3],
        }

        impl Default for Status {
            fn default() -> Status {
                Status {
                    $($name: AtomicU64::new(0),)*
                    commands: std::array::from_fn(|_| AtomicU64::new(0)),
                    reads: Durations::default(),
                    writes: Durations::default(),
                    others: Durations::default(),
                }
            }
        }

        impl Status {
            /// A reading of the counters.
            #[must_use]
            pub fn read(&self) -> StatusCounts {
                StatusCounts {
                    $($name: self.$name.load(Ordering::Relaxed),)*
                    commands: std::array::from_fn(|at| self.commands[at].load(Ordering::Relaxed)),
                    durations: [self.reads.read(), self.writes.read(), self.others.read()],
                }
            }

            /// Moves the counts of another one here and sets them to zero. Only the thread that
            /// counts in `other` may call this: its session's.
            pub fn take_from(&self, other: &Status) {
                $(take(&self.$name, &other.$name);)*
                self.commands.iter().zip(&other.commands).for_each(|(mine, theirs)| take(mine, theirs));
                self.reads.take_from(&other.reads);
                self.writes.take_from(&other.writes);
                self.others.take_from(&other.others);
            }
        }

        impl StatusCounts {
            pub fn add(&mut self, other: &StatusCounts) {
                $(self.$name += other.$name;)*
                self.commands.iter_mut().zip(other.commands).for_each(|(mine, more)| *mine += more);
                self.durations.iter_mut().zip(&other.durations).for_each(|(mine, more)| mine.add(more));
            }

            fn counters(&self) -> Vec<Figure> {
                vec![$(Figure { name: $shown, value: self.$name, metric: $metric }),*]
            }
        }
    };
}

use figure::{counter, labelled};

const ASKED_OF_THE_NODE: &str = "What statements asked of the node";

counters! {
    /// Statements of clients, including those inside prepared ones.
    questions "Questions" counter("firn_questions", "Statements that clients sent");
    /// Statements that were refused.
    errors "Firn_statement_errors" counter("firn_statement_errors", "Statements that ended with an error");
    /// Statements slower than `long_query_time`.
    slow_queries "Slow_queries" counter("firn_slow_statements", "Statements slower than long_query_time");
    /// Prepared statements closed.
    closes "Com_stmt_close" None;
    /// Plans that were found in the cache.
    plan_cache_hits "Firn_plan_cache_hits" counter("firn_plan_cache_hits", "Plans found in the cache");
    /// Plans that had to be made.
    plan_cache_misses "Firn_plan_cache_misses" counter("firn_plan_cache_misses", "Plans that had to be made");
    /// Texts that were searched for literals, to look for their plans.
    texts_normalised "Firn_texts_normalised" None;
    /// Texts that were parsed.
    texts_parsed "Firn_texts_parsed" None;
    /// Runs of the binder and planner.
    statements_planned "Firn_statements_planned" None;
    /// Queries that the vectorised engine has answered.
    vectorised_queries "Firn_queries_vectorised"
        counter("firn_queries_vectorised", "Queries answered over columns");
    /// Queries that it has begun and left to the row executor.
    vectorised_declined "Firn_queries_vectorised_declined"
        counter("firn_queries_vectorised_declined", "Queries begun over columns and left to the row executor");
    /// Rows sent to clients.
    rows_sent "Firn_rows_sent" counter("firn_rows_sent", "Rows sent to clients");
    /// Look-ups by a full key.
    handler_read_key "Handler_read_key"
        labelled("firn_row_operations", "operation", "read_key", ASKED_OF_THE_NODE);
    /// Scans that were begun.
    handler_read_first "Handler_read_first"
        labelled("firn_row_operations", "operation", "begin_scan", ASKED_OF_THE_NODE);
    /// Rows read in the order of an index.
    handler_read_next "Handler_read_next"
        labelled("firn_row_operations", "operation", "read_next", ASKED_OF_THE_NODE);
    /// Rows read by scans of whole tables.
    handler_read_rnd_next "Handler_read_rnd_next"
        labelled("firn_row_operations", "operation", "read_scan", ASKED_OF_THE_NODE);
    /// Rows inserted.
    handler_write "Handler_write"
        labelled("firn_row_operations", "operation", "insert", ASKED_OF_THE_NODE);
    /// Rows updated.
    handler_update "Handler_update"
        labelled("firn_row_operations", "operation", "update", ASKED_OF_THE_NODE);
    /// Rows deleted.
    handler_delete "Handler_delete"
        labelled("firn_row_operations", "operation", "delete", ASKED_OF_THE_NODE);
    /// Transactions committed, including those of single statements.
    handler_commit "Handler_commit" counter("firn_commits", "Transactions committed, of single statements too");
    /// Transactions rolled back.
    handler_rollback "Handler_rollback" counter("firn_rollbacks", "Transactions rolled back");
    /// Statements that were run again with a newer snapshot.
    snapshot_renewals "Firn_snapshot_renewals"
        counter("firn_snapshot_renewals", "Statements run again with a newer snapshot, not refused with 1020");
    /// Joins whose first table was read whole.
    select_scan "Select_scan" None;
    /// Joins that read ranges of an index of the first table.
    select_range "Select_range" None;
    /// Tables read whole for each earlier row, or put into a hash table.
    select_full_join "Select_full_join" None;
    /// Ranges of an index read for each earlier row.
    select_full_range_join "Select_full_range_join" None;
    /// Rows that were sorted.
    sort_rows "Sort_rows" counter("firn_sorted_rows", "Rows that were sorted");
    /// Sorts of tables that were read whole.
    sort_scan "Sort_scan" None;
    /// Sorts of rows that came from an index.
    sort_range "Sort_range" None;
    /// Sorted runs that were written to disk and merged.
    sort_merge_passes "Sort_merge_passes"
        counter("firn_sort_runs", "Sorted runs put on the disk for want of memory");
    /// Tables that existed while a statement ran.
    created_tmp_tables "Created_tmp_tables" None;
}

impl Status {
    /// Counts a statement of a kind.
    #[inline]
    pub(crate) fn count_command(&self, command: Command) {
        count(&self.commands[command as usize]);
    }

    /// Counts how long a statement took.
    #[inline]
    pub(crate) fn count_duration(&self, kind: StatementClass, took_us: u64) {
        match kind {
            StatementClass::Read => self.reads.count(took_us),
            StatementClass::Write => self.writes.count(took_us),
            StatementClass::Other => self.others.count(took_us),
        }
    }
}

impl StatusCounts {
    /// How often statements of a kind were run.
    #[must_use]
    pub fn command(&self, command: Command) -> u64 {
        self.commands[command as usize]
    }

    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let mut figures = self.counters();
        figures.extend(Command::all().map(|command| Figure {
            name: command.status_name(),
            value: self.command(command),
            metric: labelled(
                "firn_statements",
                "command",
                command.label(),
                "Statements by their kind",
            ),
        }));
        figures
    }
}

/// The class of a statement's duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementClass {
    Read,
    Write,
    Other,
}

/// Adds one, in a session's own counters.
#[inline]
pub fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Adds, in a session's own counters.
#[inline]
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

fn take(mine: &AtomicU64, theirs: &AtomicU64) {
    mine.fetch_add(theirs.swap(0, Ordering::Relaxed), Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
