//! The bytes of proposals and of snapshots of the catalog, with
//! [their description](../../../docs/formats/control.md).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::catalog::Catalog;
use crate::chunk::SPLIT_ABOVE;
use crate::message::{ToControl, ToNode};
use crate::proposal::Proposal;

/// The first bytes of a snapshot.
const MAGIC: [u8; 8] = *b"FIRNCTRL";
/// The version of the encoding of proposals and messages, and of snapshots that earlier releases
/// read.
pub const VERSION: u8 = 1;
/// In snapshots of this version, it is said from which size on chunks are cut. In those of the
/// version before, it is [`SPLIT_ABOVE`].
const SNAPSHOT_VERSION: u8 = 2;
/// Magic, version, three zeros, length, checksum.
const HEADER_BYTES: usize = 20;

/// The bytes are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    #[error(
        "the {what} has version {found}, which this build does not know; update the older control node"
    )]
    Version { what: &'static str, found: u8 },
    #[error("the bytes are not a {0}")]
    Malformed(&'static str),
    #[error("the snapshot of the catalog is damaged; take it again from another control node")]
    Damaged,
    #[error("the snapshot of the catalog contradicts itself: {0}")]
    Contradiction(&'static str),
}

/// What stands in a log or travels in a message: one byte of version, then the value.
macro_rules! versioned {
    ($type:ident, $what:literal) => {
        impl $type {
            #[doc = concat!("The bytes of the ", $what, ".")]
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                let mut bytes = vec![VERSION];
                bytes.extend_from_slice(&plain(self));
                bytes
            }

            #[doc = concat!("Reads a ", $what, ".")]
            ///
            /// # Errors
            /// If the bytes are not exactly those of one of this version.
            pub fn decode(bytes: &[u8]) -> Result<$type, EncodingError> {
                let (version, rest) = bytes.split_first().ok_or(EncodingError::Malformed($what))?;
                check_version($what, *version)?;
                exact(rest).ok_or(EncodingError::Malformed($what))
            }
        }
    };
}

versioned!(Proposal, "proposal to the control group");
versioned!(ToControl, "message of a node to control");
versioned!(ToNode, "message of control to a node");

impl Catalog {
    const WHAT: &str = "snapshot of the catalog";

    /// All of the catalog, for a control node that joins or starts. Equal catalogs have equal
    /// bytes.
    ///
    /// # Panics
    /// If the catalog takes more than 4 GiB.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        let mut payload = plain(self);
        let version = match self.split_above {
            SPLIT_ABOVE => {
                payload.truncate(payload.len() - plain(&SPLIT_ABOVE).len());
                VERSION
            }
            _ => SNAPSHOT_VERSION,
        };
        let length = u32::try_from(payload.len()).expect("a catalog is far below 4 GiB");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[version, 0, 0, 0]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// If the bytes are not exactly a snapshot of a known version, are damaged, or contradict
    /// themselves.
    pub fn restore(bytes: &[u8]) -> Result<Catalog, EncodingError> {
        let malformed = EncodingError::Malformed(Self::WHAT);
        let rest = bytes.strip_prefix(&MAGIC).ok_or(malformed.clone())?;
        let (head, payload) = rest.split_at_checked(HEADER_BYTES - 8).ok_or(malformed.clone())?;
        let version = head[0];
        if version != SNAPSHOT_VERSION {
            check_version(Self::WHAT, version)?;
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[at + byte]));
        if head[1..4] != [0; 3] || word(4) as usize != payload.len() {
            return Err(malformed);
        }
        if word(8) != crc32c::crc32c(payload) {
            return Err(EncodingError::Damaged);
        }
        let catalog: Option<Catalog> = match version {
            VERSION => exact(&[payload, &plain(&SPLIT_ABOVE)].concat()),
            // The usual size is left out.
            _ => exact(payload).filter(|catalog: &Catalog| catalog.split_above != SPLIT_ABOVE),
        };
        let catalog = catalog.ok_or(malformed)?;
        match catalog.check() {
            Some(problem) => Err(EncodingError::Contradiction(problem)),
            None => Ok(catalog),
        }
    }
}

fn check_version(what: &'static str, found: u8) -> Result<(), EncodingError> {
    if found == VERSION { Ok(()) } else { Err(EncodingError::Version { what, found }) }
}

fn plain<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("plain fields can always be encoded")
}

/// Reads a value whose encoding is just `bytes`. Others, with a key that is there twice or a number
/// with needless bytes, would give two control nodes with one state different bytes.
fn exact<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let value = postcard::from_bytes(bytes).ok()?;
    (plain(&value) == bytes).then_some(value)
}

/// For the fuzz target: any bytes are refused, or are written back unchanged.
///
/// # Panics
/// If what was read is written differently.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(proposal) = Proposal::decode(bytes) {
        assert_eq!(proposal.encode(), bytes);
    }
    if let Ok(message) = ToControl::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    if let Ok(message) = ToNode::decode(bytes) {
        assert_eq!(message.encode(), bytes);
    }
    if let Ok(catalog) = Catalog::restore(bytes) {
        assert_eq!(catalog.snapshot(), bytes);
    }
    if let Some(catalog) = exact::<Catalog>(bytes)
        && catalog.check().is_none()
    {
        assert_eq!(Catalog::restore(&catalog.snapshot()), Ok(catalog));
    }
}

#[cfg(test)]
mod tests;
