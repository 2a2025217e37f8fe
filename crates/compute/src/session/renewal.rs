//! Statements that are run again, invisibly to the client, with a newer snapshot.
//!
//! ```text
//!   run ─► a row has changed since the snapshot (1020)
//!           └─► undone ─► could the transaction just as well have begun now? ─┬─ yes: run again
//!                                                                             └─ no: 1020
//! ```
//!
//! The node decides ([`Transaction::renew_snapshot`]). A statement is run again only if its first
//! run has left nothing: no row was sent, no user variable set, no named lock taken.
//! `LAST_INSERT_ID()` goes back to its old value; numbers of `AUTO_INCREMENT` stay used, as after
//! every rollback.
//!
//! [`Transaction::renew_snapshot`]: firn_api::rows::Transaction::renew_snapshot

use std::sync::atomic::Ordering;

use firn_sql::error::{ErrorKind, Result};
use firn_sql::execute::{GivenRows, Outcome, ResultSink};

use super::execution::Input;
use super::runner::StatementRunner;

/// How often a statement is run again. Each time, one more conflicting row is locked.
const MOST_RENEWALS: usize = 32;

impl StatementRunner {
    /// Runs a statement in the session's transaction, and runs it again with a newer snapshot where
    /// that is allowed.
    ///
    /// # Errors
    /// Errors of the statement or the node.
    pub(super) fn execute_renewing(
        &mut self,
        input: &Input<'_>,
        mut given: Option<&mut dyn GivenRows>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome> {
        let before = self.transactions.read_mark();
        let told = self.evaluation.warning_count();
        let id_before = self.facts.last_insert_id.load(Ordering::Relaxed);
        for _ in 0..MOST_RENEWALS {
            let ran = self.execute_in_transaction(input, again(&mut given), sink);
            let Err(refused) = &ran else { return ran };
            let may_renew = refused.kind == ErrorKind::Conflict
                && input.plan.is_repeatable
                && sink.restart()
                && given.as_mut().is_none_or(|rows| rows.rewind());
            if !may_renew || !self.transactions.renew_snapshot(before)? {
                return ran;
            }
            crate::status::count(&self.facts.status.snapshot_renewals);
            self.evaluation.forget_conditions_after(told);
            self.facts.last_insert_id.store(id_before, Ordering::Relaxed);
            self.facts.has_given_id.store(false, Ordering::Relaxed);
        }
        self.execute_in_transaction(input, given, sink)
    }
}

/// The rows for one more run.
fn again<'r>(given: &'r mut Option<&mut dyn GivenRows>) -> Option<&'r mut dyn GivenRows> {
    let rows = given.as_mut()?;
    Some(&mut **rows)
}
