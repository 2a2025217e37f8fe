//! What a replica and the node that writes say to each other. `docs/formats/writer_service.md`
//! describes the bytes.

use std::time::Duration;

use firn_api::{LogEpoch, WriterPositions};
use firn_base::{Cts, Lsn};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the messages.
pub const VERSION: u8 = 2;
/// The longest name of a replica in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// What a replica asks for. The order of variants and fields is part of the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// A place for a replica of this name.
    TakePlace { replica: String },
    /// Moves a place up to a snapshot.
    Look { place: u64, needed: Cts },
    /// Ends a place.
    GiveBack { place: u64 },
    /// The positions, from a node that surely leads.
    Newest,
    /// Where processes of the same machine find the writer's regions.
    Regions,
}

/// What the node that writes answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// A place was taken.
    Place {
        place: u64,
        /// What the place keeps readable.
        snapshot: Cts,
        /// How long the place lasts without a look.
        lease_ms: u64,
        epoch: u64,
    },
    Positions(Positions),
    /// The place was given back.
    GivenBack,
    /// The node does not write, or is not sure that it leads.
    NotHere {
        reason: String,
    },
    /// The place is gone.
    Gone {
        reason: String,
    },
    /// All places are taken.
    NoPlace,
    Regions(SharedRegions),
}

/// Regions that processes of the writer's machine can map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRegions {
    /// The path of their socket.
    pub socket: String,
    /// Their epoch, a number drawn at random: another machine may have the same path.
    pub epoch: u64,
    /// What the words mean: [`SharedRegions::LAYOUT`] of the writer.
    pub layout: u32,
}

impl SharedRegions {
    /// The version of the regions' layouts. Processes of another one do not read them.
    pub const LAYOUT: u32 = 1;
}

/// [`WriterPositions`] as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions {
    pub epoch: u64,
    pub durable_commits: Cts,
    pub durable_lsn: Lsn,
    pub visible: Cts,
    pub handed_out: Cts,
}

/// The bytes are not a message of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("bytes that are no message between a replica and its writer; update the older node")]
pub struct NotAMessage;

impl From<WriterPositions> for Positions {
    fn from(positions: WriterPositions) -> Positions {
        let WriterPositions { epoch, durable_commits, durable_lsn, visible, handed_out } =
            positions;
        Positions { epoch: epoch.0, durable_commits, durable_lsn, visible, handed_out }
    }
}

impl From<Positions> for WriterPositions {
    fn from(positions: Positions) -> WriterPositions {
        let Positions { epoch, durable_commits, durable_lsn, visible, handed_out } = positions;
        let epoch = LogEpoch(epoch);
        WriterPositions { epoch, durable_commits, durable_lsn, visible, handed_out }
    }
}

impl Answer {
    /// The lease of a place, without what clocks of two machines may differ by.
    #[must_use]
    pub fn sure_lease(lease_ms: u64) -> Duration {
        Duration::from_millis(lease_ms) * 9 / 10
    }
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
