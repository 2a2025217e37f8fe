//! Why a workload did not come to its end.

use std::io;

/// See the module's page.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file of the user's, or standard output.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The address is none.
    #[error("{url} is not mysql://user:password@host:port/schema: {reason}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server refused, or the connection broke.
    #[error("{statement}: {error}")]
    Server {
        /// The beginning of the statement.
        statement: String,
        /// What the client library says.
        error: Box<mysql::Error>,
    },
    /// An answer that cannot be.
    #[error("the server answered wrongly: {0}")]
    Wrong(String),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Usage(String),
    /// Conditions that the data must fulfil are violated.
    #[error("{0} of the conditions do not hold")]
    Inconsistent(usize),
    /// A plot could not be drawn.
    #[error("cannot draw: {0}")]
    Plot(String),
}

/// Why a transaction was taken back by the server and is worth trying again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// 1213: chosen as a deadlock's victim.
    Deadlock,
    /// 1205: waited too long for a lock.
    LockWait,
    /// 1020: the row has changed since the transaction's snapshot.
    Changed,
}

impl Conflict {
    /// All of them, in the order of [`Conflict::index`].
    pub const ALL: [Conflict; 3] = [Conflict::Deadlock, Conflict::LockWait, Conflict::Changed];

    /// Its place in an array of counts.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// MySQL's number.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Conflict::Deadlock => 1213,
            Conflict::LockWait => 1205,
            Conflict::Changed => 1020,
        }
    }
}

impl BenchError {
    /// The server's error number, if it is the server's error.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            BenchError::Server { error, .. } => match &**error {
                mysql::Error::MySqlError(error) => Some(error.code),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the transaction is worth trying again.
    #[must_use]
    pub fn conflict(&self) -> Option<Conflict> {
        let code = self.code()?;
        Conflict::ALL.into_iter().find(|conflict| conflict.code() == code)
    }
}
