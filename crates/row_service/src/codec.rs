//! Messages as bytes: a version, then the message as `postcard` encodes it.
//!
//! ```text
//!   04 │ message
//! ```
//!
//! The network's frame around them has the length and the checksum
//! (`docs/formats/network-frame.md`).

use firn_api::rows::RowsError;
use firn_format::definition::DefinitionError;
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub(crate) const VERSION: u8 = 4;

/// The bytes are not a message of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The other side speaks another version.
    #[error("the other node speaks version {0} of row messages, this one speaks {VERSION}")]
    Version(u8),
    /// The bytes end early, continue after the message, or say something impossible.
    #[error("a row message is damaged: {0}")]
    Message(String),
}

impl From<Damage> for RowsError {
    fn from(damage: Damage) -> RowsError {
        RowsError::Unavailable { reason: damage.to_string().into() }
    }
}

/// A message as bytes.
///
/// # Errors
/// [`Damage::Message`] if it is larger than memory.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, Damage> {
    postcard::to_extend(message, vec![VERSION]).map_err(|error| Damage::Message(error.to_string()))
}

/// The message in `bytes`, which are untrusted.
///
/// # Errors
/// [`Damage`].
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Damage> {
    let damaged = |error: postcard::Error| Damage::Message(error.to_string());
    match bytes.split_first() {
        Some((&VERSION, rest)) => match postcard::take_from_bytes(rest).map_err(damaged)? {
            (message, []) => Ok(message),
            (_, more) => Err(Damage::Message(format!("{} bytes too many", more.len()))),
        },
        Some((&version, _)) => Err(Damage::Version(version)),
        None => Err(Damage::Message("it is empty".to_owned())),
    }
}

/// A definition in a message that cannot be read or written.
pub(crate) fn damaged_definition(error: DefinitionError) -> RowsError {
    RowsError::Other { code: 1030, message: error.to_string() }
}
