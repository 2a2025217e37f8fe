//! What a peer and the owner of regions say to each other. `docs/formats/region_service.md`
//! describes the bytes.

use firn_fabric::Batch;
use firn_fabric::batch::Act;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the messages.
pub const VERSION: u8 = 1;
/// The longest name of a region in bytes.
pub const MAX_NAME_BYTES: usize = 250;
/// How many words a batch carries at most, there or back.
pub const MOST_WORDS: usize = 1 << 20;

/// What a peer asks for. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// A handle on a region of the owner in this epoch.
    Connect { epoch: u64, peer: u64, name: String },
    /// To run a batch.
    Run(Run),
    /// Where the owner's memory is reached without messages.
    MemoryAddress { epoch: u64 },
}

/// A batch on its way. The order of fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub epoch: u64,
    /// What the owner called the region when the peer connected.
    pub region: u32,
    /// If the batch changes words.
    pub change: Option<Change>,
    pub acts: Vec<SentAct>,
}

/// Which of its peer's changing batches this is (R2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The peer, by a number drawn at random.
    pub peer: u64,
    pub number: u64,
}

/// [`Act`] as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SentAct {
    Read { start: u64, length: u64 },
    Write { start: u64, words: Vec<u64> },
    CompareAndSwap { word: u64, expected: u64, new: u64 },
    FetchAdd { word: u64, amount: u64 },
}

/// What the owner answers. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The peer is connected.
    Region { region: u32, length_words: u64 },
    /// The answers of all acts of the batch, one behind the other.
    Words(Vec<u64>),
    /// There is no region of this name; the memory is reached by messages alone.
    Unknown,
    /// The owner's epoch has ended, or it has forgotten the peer (R1, R4).
    Stale,
    /// A later batch of the same peer was run (R2).
    Superseded,
    /// An act goes beyond the region's end; none was done.
    OutOfBounds { start: u64, end: u64, length: u64 },
    /// The batch carries more than [`MOST_WORDS`].
    TooLarge,
    /// Where the owner's memory is reached, as the fabric that reaches it says.
    MemoryAddress(Vec<u8>),
}

/// The bytes are not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bytes that are no message about regions; update the older node")]
pub struct NotAMessage;

/// The acts of a batch as bytes.
#[must_use]
pub fn sent(batch: &Batch) -> Vec<SentAct> {
    let act = |act: &Act| match act {
        Act::Read { start, length } => {
            SentAct::Read { start: *start as u64, length: *length as u64 }
        }
        Act::Write { start, words } => {
            SentAct::Write { start: *start as u64, words: words.clone() }
        }
        Act::CompareAndSwap { word, expected, new } => {
            SentAct::CompareAndSwap { word: *word as u64, expected: *expected, new: *new }
        }
        Act::FetchAdd { word, amount } => SentAct::FetchAdd { word: *word as u64, amount: *amount },
    };
    batch.acts().iter().map(act).collect()
}

/// The batch of acts that came; `None` if it carries too much.
#[must_use]
pub fn received(acts: Vec<SentAct>) -> Option<Batch> {
    let mut batch = Batch::new();
    // A position that this process cannot address is beyond the end of every region.
    let place = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
    let mut room = MOST_WORDS;
    for act in acts {
        match act {
            SentAct::Read { start, length } => {
                room = room.checked_sub(place(length))?;
                batch.read(place(start), place(length));
            }
            SentAct::Write { start, words } => batch.write(place(start), words),
            SentAct::CompareAndSwap { word, expected, new } => {
                room = room.checked_sub(1)?;
                batch.compare_and_swap(place(word), expected, new);
            }
            SentAct::FetchAdd { word, amount } => {
                room = room.checked_sub(1)?;
                batch.fetch_add(place(word), amount);
            }
        }
    }
    Some(batch)
}

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
