//! Messages of this crate's small services: a version, and the fields as `postcard` writes them.

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) fn encode(version: u8, message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, vec![version]).expect("plain fields can always be encoded")
}

/// `None` if the bytes are of another version, or are no such message as a whole.
pub(crate) fn decode<T: DeserializeOwned>(version: u8, bytes: &[u8]) -> Option<T> {
    let (found, rest) = bytes.split_first()?;
    match postcard::take_from_bytes(rest) {
        Ok((message, [])) if *found == version => Some(message),
        _ => None,
    }
}
