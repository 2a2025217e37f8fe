//! What a peer and the owner of regions say to each other over UCX, and how an owner is found.
//! `docs/formats/rdma.md` describes the bytes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the messages.
pub const VERSION: u8 = 1;
/// The longest name of a region in bytes.
pub const MAX_NAME_BYTES: usize = 250;

/// Where the owner of an epoch is reached. The order of fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerAddress {
    pub epoch: u64,
    /// The address of the owner's worker, as UCX writes it.
    pub worker: Vec<u8>,
}

/// What a peer tells the owner. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToOwner {
    /// Asks for the memory of a region.
    Connect(Connect),
    /// The peer, by its number, asks no more.
    Leave { epoch: u64, peer: u64 },
}

/// The order of fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connect {
    /// The epoch that the peer believes the owner to be in.
    pub epoch: u64,
    /// The peer, by a number drawn at random.
    pub peer: u64,
    /// Which of the peer's questions this is.
    pub question: u64,
    /// The address of the peer's worker, as UCX writes it.
    pub worker: Vec<u8>,
    pub name: String,
}

/// What the owner tells a peer. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToPeer {
    /// The memory of the region.
    Region(Memory),
    /// There is no region of this name.
    Unknown { epoch: u64, question: u64 },
    /// The epoch of the question is not the owner's.
    Stale { epoch: u64, question: u64 },
    /// The owner ends this epoch.
    Ended { epoch: u64 },
}

/// Memory of a region. The order of fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub epoch: u64,
    pub question: u64,
    /// Where its header begins, in the owner's process.
    pub address: u64,
    /// How many words follow the header.
    pub length_words: u64,
    /// The key of the memory, as UCX writes it.
    pub key: Vec<u8>,
}

/// The bytes are not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bytes that are no message of this version about RDMA; update the older node")]
pub struct NotAMessage;

pub fn encode(message: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(message, vec![VERSION]).expect("a message is encodable")
}

/// # Errors
/// If the bytes are not a message of this version.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NotAMessage> {
    let [VERSION, rest @ ..] = bytes else { return Err(NotAMessage) };
    match postcard::take_from_bytes(rest) {
        Ok((message, [])) => Ok(message),
        _ => Err(NotAMessage),
    }
}

#[cfg(test)]
mod tests;
