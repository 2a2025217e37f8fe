//! Interrupting a statement: what a session offers to the other threads, which call it for a
//! `KILL`, for a client that has gone, and at the end of the server.

/// Why a statement is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// `KILL QUERY`: the statement ends with error 1317, the session continues.
    KillQuery,
    /// `KILL`: the connection will be closed.
    KillConnection,
    Disconnected,
    /// The server is shutting down and has waited long enough.
    Shutdown,
}

/// Interrupts a session's statement.
pub trait Canceller: Send + Sync {
    /// Makes the running statement end soon, wherever it waits. Has no effect if none is running:
    /// it must not hit a later statement (except for reasons other than `KillQuery`, after which no
    /// statement follows). Does not block.
    fn cancel(&self, reason: CancelReason);

    /// Makes the running statement end soon as if it had not been run, so that its session can go
    /// on elsewhere and run it there; see [`Session::was_cut`](crate::Session::was_cut). Has no
    /// effect where that is not possible: if no statement is running, if a part of its answer may
    /// be on its way to the client, if it leaves something that the session does not carry. Does
    /// not block.
    fn cut(&self) {}

    /// Whether the statement waits until its effects are confirmed, as a commit does, so that
    /// [`Canceller::cancel`] cannot end it without leaving its outcome unknown. If that lasts, the
    /// server closes the connection without an answer; the statement continues. Does not block.
    fn is_confirming(&self) -> bool {
        false
    }
}
