//! What became of a request.

use std::fmt;
use std::sync::Arc;

use firn_base::network::NetworkError;

use crate::hello::{NotAHello, Refusal};

/// Codes below this are the link's, the others are the services'.
pub const FIRST_SERVICE_CODE: u16 = 256;

/// Why a request has no reply. The kinds answer whether it may be sent again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The peer never got the request, so it was not executed.
    #[error("the request was not sent to {peer}: {reason}")]
    NotSent { peer: Arc<str>, reason: Arc<str> },
    /// The request left, and no answer came: it was executed, or not, or will be.
    #[error("it is unknown whether {peer} executed the request: {reason}")]
    Unknown { peer: Arc<str>, reason: Arc<str> },
    /// The peer says why it did not do it.
    #[error("{peer} refused the request: {refused}")]
    Refused { peer: Arc<str>, refused: Refused },
}

impl CallError {
    /// Whether it is certain that no service saw the request.
    #[must_use]
    pub fn was_not_executed(&self) -> bool {
        match self {
            CallError::NotSent { .. } => true,
            CallError::Unknown { .. } => false,
            CallError::Refused { refused, .. } => refused.code < FIRST_SERVICE_CODE,
        }
    }
}

/// A peer's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// One of this module, or a service's at and above [`FIRST_SERVICE_CODE`].
    pub code: u16,
    /// For people.
    pub text: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The node does not have the service.
pub const NO_SUCH_SERVICE: u16 = 1;
/// The deadline had passed before a service saw the request.
pub const TOO_LATE: u16 = 2;
/// The client cancelled before a service saw the request.
pub const CANCELLED: u16 = 3;
/// The server closes, or the epoch of the connection has ended.
pub const CLOSING: u16 = 4;
/// The service ended without an answer. The client makes [`CallError::Unknown`] of it.
pub(crate) const UNANSWERED: u16 = 5;

/// Why a link is down.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    NotAHello(#[from] NotAHello),
    /// Does not change until a person or another node changes something. Callers are told at once.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
}
