//! Commits that are left to the log: the session makes its answer and takes the next command, and
//! the log's thread has the answer sent when the commit is durable.
//!
//! Only the last commit of a command is left, and only if its answer is one OK ([`firn_wire`] says
//! when it can be late). Nothing of the session depends on the outcome: every later snapshot sees
//! the transaction, and no later command runs before the answer is confirmed. If the log fails, the
//! client gets the error in place of the OK.

use std::sync::Arc;

use firn_api::rows::{CommitListener, Confirmation, RowsResult, Transaction};
use firn_sql::execute::error::from_rows;
use firn_wire::{ConnectionControl, ServerError};

/// Has the answers to a connection's commands sent.
struct Answerer(Arc<ConnectionControl>);

impl CommitListener for Answerer {
    fn commit_ended(&self, outcome: RowsResult<()>) {
        self.0.confirm(outcome.map_err(|error| {
            let error = from_rows(error);
            ServerError::new(error.code, &error.state, error.message)
        }));
    }
}

pub(super) struct LateCommits {
    control: Arc<ConnectionControl>,
    answerer: Arc<dyn CommitListener>,
    /// Whether the running statement's commit may be left.
    pub(super) may_leave: bool,
}

impl LateCommits {
    pub(super) fn new(control: &Arc<ConnectionControl>) -> LateCommits {
        let answerer = Arc::new(Answerer(Arc::clone(control)));
        LateCommits { control: Arc::clone(control), answerer, may_leave: false }
    }

    /// Commits. Blocks until the commit is durable, unless it is left.
    ///
    /// # Errors
    /// If the log has failed.
    pub(super) fn commit(&mut self, transaction: Box<dyn Transaction>) -> RowsResult<()> {
        let may_leave = std::mem::take(&mut self.may_leave);
        if !may_leave || !self.control.promise_confirmation() {
            return transaction.commit();
        }
        let committed = transaction.commit_or_leave(&self.answerer);
        if !matches!(committed, Ok(Confirmation::Left)) {
            self.control.withdraw_promise();
        }
        committed.map(drop)
    }
}
