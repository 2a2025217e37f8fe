//! Errors of workloads.

use std::io;
use std::path::PathBuf;

/// Why a workload ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file of the user, or standard output.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The URL of a server is malformed.
    #[error("{url} is not mysql://user:password@host:port/schema: {reason}")]
    Url {
        url: String,
        /// Which part is wrong.
        reason: String,
    },
    /// The server refused, or the connection broke.
    #[error("{statement}: {}", message_of(error))]
    Server {
        /// The beginning of the statement.
        statement: String,
        error: Box<mysql::Error>,
    },
    /// An answer that a correct server would not give.
    #[error("the server's answer is wrong: {0}")]
    Wrong(String),
    /// The request cannot be met.
    #[error("{0}")]
    Usage(String),
    /// Conditions that the data must fulfil are violated.
    #[error("{0} of the conditions do not hold")]
    Inconsistent(usize),
    /// A plot could not be drawn.
    #[error("the plot could not be drawn: {0}")]
    Plot(String),
    /// A result file is missing or malformed.
    #[error("{}: {reason}; docs/performance-method.md describes result files", file.display())]
    Figure {
        file: PathBuf,
        /// The first field that is missing or wrong, or why the file cannot be read.
        reason: String,
    },
}

/// An error of the client library in one line, as MySQL's own clients write it: code and SQLSTATE
/// if the server sent them, without the library's type names.
#[must_use]
pub fn message_of(error: &mysql::Error) -> String {
    use mysql::{DriverError, Error};
    match error {
        Error::MySqlError(error) => {
            format!("ERROR {} ({}): {}", error.code, error.state, one_line(&error.message))
        }
        Error::IoError(error) => format!("ERROR 2013 (HY000): lost the server: {error}"),
        Error::DriverError(DriverError::CouldNotConnect(Some((place, why, _)))) => {
            format!("ERROR 2003 (HY000): cannot connect to {place}: {}", bare(why))
        }
        other => format!("ERROR 2000 (HY000): {}", bare(&other.to_string())),
    }
}

/// The library's text without its type's name: `DriverError { reason }` becomes `reason`.
pub(crate) fn bare(text: &str) -> String {
    let text = one_line(text);
    let inner = text.split_once(" { ").and_then(|(name, rest)| {
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ');
        rest.strip_suffix(" }").filter(|_| is_name)
    });
    match inner {
        Some(inner) => bare(inner),
        None => text,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why the server rolled back a transaction that is worth another attempt.
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
    /// All conflicts, in the order of [`Conflict::index`].
    pub const ALL: [Conflict; 3] = [Conflict::Deadlock, Conflict::LockWait, Conflict::Changed];

    /// Its place in an array of counts.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// MySQL's error number.
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
    /// The server's error number; `None` for other errors.
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

    /// The conflict, if the transaction is worth another attempt.
    #[must_use]
    pub fn conflict(&self) -> Option<Conflict> {
        let code = self.code()?;
        Conflict::ALL.into_iter().find(|conflict| conflict.code() == code)
    }
}
