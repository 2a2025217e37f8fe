//! What `firn_read_consistency` wants is waited for.
//!
//! Over a node that follows another one, the wait comes before names are looked up, so that the
//! statement sees definitions as new as its rows. A transaction with a snapshot keeps it, so
//! REPEATABLE READ waits once.
//!
//! A node that writes has what is newest, unless it was replaced and does not know it yet: cut off,
//! or stopped and continued. So it looks *after* a statement has read from a new snapshot: as long
//! as the other nodes have promised to let none of them write, none has acknowledged a commit that
//! the snapshot lacks.

use std::time::Duration;

use firn_api::rows::{ReadConsistency, RowsError, WriterLease};
use firn_sql::error::{ErrorKind, Result, SqlError};
use firn_sql::execute::error::from_rows;

use crate::plan_cache::CachedPlan;

use super::runner::StatementRunner;

/// How often a node that is not sure that it still writes looks again.
const LOOK: Duration = Duration::from_millis(1);
const NOT_SURE: &str = "this node does not hear from enough others to be sure that none of them \
                        writes by now; try again, or read what it has with \
                        firn_read_consistency = 'STALE'";

/// Statements that begin with these words read nothing, unless they have a subquery or open a
/// snapshot.
const READ_NOTHING: [&str; 8] =
    ["BEGIN", "START", "COMMIT", "ROLLBACK", "SET", "SAVEPOINT", "RELEASE", "DEALLOCATE"];

impl StatementRunner {
    /// Waits until the node is as new as the statement wants. Over a node that writes there is
    /// nothing to wait for.
    ///
    /// # Errors
    /// If the node does not become so new in time; the statement must not run.
    #[inline]
    pub(super) fn catch_up(&mut self, text: &str) -> Result<()> {
        if self.instance.freshness.is_none() { Ok(()) } else { self.wait_to_be_fresh(text) }
    }

    /// Whether the answer of a plan that is about to run has to be confirmed.
    #[inline]
    pub(super) fn has_to_confirm(&self, plan: &CachedPlan) -> bool {
        self.instance.lease.is_some() && self.opens_snapshot(plan)
    }

    fn opens_snapshot(&self, plan: &CachedPlan) -> bool {
        let open = self.transactions.open.as_ref();
        !plan.plan.locks.is_empty() && open.is_none_or(|open| open.inner.snapshot().is_none())
    }

    /// Waits until it is sure that what was read was newest when it was read.
    ///
    /// # Errors
    /// 1429 if that does not come to be sure in time, 1317; the answer must not be given.
    pub(super) fn confirm(&self) -> Result<()> {
        let Some(lease) = &self.instance.lease else { return Ok(()) };
        let tolerance = match self.settings.read_consistency {
            ReadConsistency::Strong { .. } => Duration::ZERO,
            ReadConsistency::Bounded(age) => age,
            ReadConsistency::Position(_) | ReadConsistency::Stale => return Ok(()),
        };
        let clock = &self.instance.facts.environment.clock;
        // The clock is read after the lease.
        let is_sure = |lease: &dyn WriterLease| {
            lease.lasts_until().saturating_add(tolerance) > clock.monotonic()
        };
        let end = clock.monotonic().saturating_add(self.settings.read_wait);
        while !is_sure(&**lease) {
            if self.facts.cancelled.is_cancelled() {
                return Err(SqlError::interrupted());
            }
            if clock.monotonic() >= end {
                return Err(from_rows(RowsError::Unavailable { reason: NOT_SURE.into() }));
            }
            firn_base::task::sleep(LOOK);
        }
        Ok(())
    }

    /// Makes a schema the current one, as a command, not a statement. One that is not known is
    /// looked for again when the node has caught up.
    ///
    /// # Errors
    /// As [`StatementRunner::use_schema`] and [`StatementRunner::catch_up`].
    pub(super) fn use_fresh_schema(&mut self, schema: &str) -> Result<()> {
        match self.use_schema(schema) {
            Err(error)
                if error.kind == ErrorKind::UnknownName && self.instance.freshness.is_some() =>
            {
                self.catch_up("")?;
                self.use_schema(schema)
            }
            done => done,
        }
    }

    #[cold]
    fn wait_to_be_fresh(&mut self, text: &str) -> Result<()> {
        let Some(freshness) = &self.instance.freshness else { return Ok(()) };
        let open = self.transactions.open.as_ref();
        if open.is_some_and(|open| open.inner.snapshot().is_some()) || reads_nothing(text) {
            return Ok(());
        }
        let wanted = match self.settings.read_consistency {
            ReadConsistency::Position(position) => {
                ReadConsistency::Position(position.max(self.written))
            }
            other => other,
        };
        let patience = self.settings.read_wait;
        let caught_up = freshness.catch_up(wanted, patience, &self.facts.cancelled);
        self.transactions.must_see(caught_up.map_err(from_rows)?);
        Ok(())
    }
}

fn reads_nothing(text: &str) -> bool {
    let word = text.trim_start();
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let has = |wanted: &str| {
        let mut parts = text.as_bytes().windows(wanted.len());
        parts.any(|part| part.eq_ignore_ascii_case(wanted.as_bytes()))
    };
    READ_NOTHING.iter().any(|other| other.eq_ignore_ascii_case(&word[..end]))
        && !has("select")
        && !has("snapshot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_read_nothing_are_known_by_their_first_word() {
        for text in ["begin", "  COMMIT;", "SET x = 1", "start transaction", "ROLLBACK TO a"] {
            assert!(reads_nothing(text), "{text}");
        }
        for text in [
            "SET @a = (Select 1)",
            "SELECT 1",
            "(SELECT 1)",
            "/* SET */ SELECT 1",
            "SETTLE",
            "START TRANSACTION WITH consistent SNAPSHOT",
            "",
            "WITH a AS",
        ] {
            assert!(!reads_nothing(text), "{text}");
        }
    }
}
