//! The packets between owner and peer.

use crate::epoch::Epoch;

const MAGIC: [u8; 4] = *b"FnSM";
const VERSION: u8 = 1;
/// Most bytes of a request. A longer name names no region.
pub(super) const REQUEST_BYTES: usize = 6 + 250;
/// The length of a reply in bytes.
pub(super) const REPLY_BYTES: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// The epoch. The connection stays open, so that its end reports the owner's.
    Watch,
    /// The memory of the region with this name.
    Region(String),
}

/// The owner's answer. A region's memory travels with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) epoch: Epoch,
    pub(super) is_known: bool,
}

/// Bytes that are no packet of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PacketError {
    #[error("the packet does not belong to this protocol")]
    Foreign,
    #[error(
        "it uses version {theirs}, this process uses version {VERSION}; run the same release on both"
    )]
    Version { theirs: u8 },
}

/// Checks the head that all packets share. Returns the packet's kind and the rest.
fn begin(bytes: &[u8]) -> Result<(u8, &[u8]), PacketError> {
    match bytes {
        [a, b, c, d, version, kind, rest @ ..] if [*a, *b, *c, *d] == MAGIC => match *version {
            VERSION => Ok((*kind, rest)),
            theirs => Err(PacketError::Version { theirs }),
        },
        _ => Err(PacketError::Foreign),
    }
}

fn packet(kind: u8) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, kind]);
    bytes
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Request::Watch => packet(0),
            Request::Region(name) => [&packet(1)[..], name.as_bytes()].concat(),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Request, PacketError> {
        match begin(bytes)? {
            (0, []) => Ok(Request::Watch),
            (1, name) => {
                let name = std::str::from_utf8(name).map_err(|_| PacketError::Foreign)?;
                Ok(Request::Region(name.to_owned()))
            }
            _ => Err(PacketError::Foreign),
        }
    }
}

impl Reply {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = packet(u8::from(self.is_known));
        bytes.extend([0, 0]);
        bytes.extend(self.epoch.0.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Reply, PacketError> {
        match begin(bytes)? {
            (kind @ (0 | 1), [0, 0, epoch @ ..]) => {
                let epoch = epoch.try_into().map_err(|_| PacketError::Foreign)?;
                Ok(Reply { epoch: Epoch(u64::from_le_bytes(epoch)), is_known: kind == 1 })
            }
            _ => Err(PacketError::Foreign),
        }
    }
}
