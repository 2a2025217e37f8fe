//! Before a statement runs over a node that follows another one: the wait until it sees what
//! `firn_read_consistency` wants.
//!
//! The wait comes before names are looked up, so that the statement sees definitions as new as its
//! rows. A transaction with a snapshot keeps it, so REPEATABLE READ waits once.

use firn_api::rows::ReadConsistency;
use firn_sql::error::Result;
use firn_sql::execute::error::from_rows;

use super::runner::StatementRunner;

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

    /// Makes a schema the current one, as a command of its own. One that is not known is looked for
    /// again when the node has caught up.
    ///
    /// # Errors
    /// As [`StatementRunner::use_schema`] and [`StatementRunner::catch_up`].
    pub(super) fn use_fresh_schema(&mut self, schema: &str) -> Result<()> {
        match self.use_schema(schema) {
            Err(unknown) if unknown.code == 1049 && self.instance.freshness.is_some() => {
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
