//! Commits that are not waited for: the session goes on, and a listener gets the outcome.

use super::RowsResult;

/// Gets the outcome of a commit for which its session does not wait.
pub trait CommitListener: Send + Sync {
    /// The commit is durable, or the log cannot say whether it is
    /// ([`super::RowsError::OutcomeUnknown`]). Called once, on a thread that works for the log and
    /// has other listeners to call: it must not block.
    fn commit_ended(&self, outcome: RowsResult<()>);
}

/// What a session knows of its commit when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// It is durable. The listener is not called.
    Durable,
    /// The listener gets the outcome, or has got it already.
    Left,
}
