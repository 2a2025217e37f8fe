//! The frame of a message on a stream of bytes.
//!
//! ```text
//!   offset  0     2        3       4          8             12             16
//!           "Fn"  version  zero    length     payload's     header's       payload
//!                                  in bytes   CRC-32C       CRC-32C
//! ```
//!
//! The header has its own checksum, so that a damaged length is found before a receiver waits for
//! that many bytes. `docs/formats/network-frame.md` describes the frame for other programs.

/// The version that this process writes, and the only one that it reads.
pub const FRAME_VERSION: u8 = 1;
/// The length of a header in bytes.
pub const HEADER_BYTES: usize = 16;
/// The length of the longest message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

const MAGIC: [u8; 2] = *b"Fn";
/// What the header's checksum covers.
const CHECKED_BYTES: usize = 12;

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not begin like a frame of Firn.
    #[error("the bytes are not a frame")]
    Foreign,
    /// The peer uses another version.
    #[error(
        "it uses frame version {theirs}, this process uses version {FRAME_VERSION}; run the same release on both"
    )]
    Version { theirs: u8 },
    /// The header's checksum does not match.
    #[error("the checksum of a frame's header does not match")]
    HeaderChecksum,
    /// The length is out of bounds.
    #[error("a message of {bytes} bytes exceeds the limit of {MAX_MESSAGE_BYTES} bytes")]
    TooLong {
        /// The length in the header.
        bytes: u32,
    },
    /// The payload's checksum does not match.
    #[error("the checksum of a message does not match")]
    PayloadChecksum,
    /// The stream ended within a frame.
    #[error("the stream ended within a message")]
    Incomplete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The payload's length in bytes, at most [`MAX_MESSAGE_BYTES`].
    pub length: usize,
    checksum: u32,
}

impl FrameHeader {
    /// The header of a message that is the concatenation of `parts`; `None` if it is too long.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Option<FrameHeader> {
        let length = parts.iter().map(|part| part.len()).sum();
        let checksum = parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part));
        (length <= MAX_MESSAGE_BYTES).then_some(FrameHeader { length, checksum })
    }

    /// The bytes of the header.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[2] = FRAME_VERSION;
        bytes[4..8].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.checksum.to_le_bytes());
        let own = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[12..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// All of [`FrameError`] that a header can show.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<FrameHeader, FrameError> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..2] != MAGIC {
            return Err(FrameError::Foreign);
        }
        // Checked before the checksum, which another version may place elsewhere.
        if bytes[2] != FRAME_VERSION {
            return Err(FrameError::Version { theirs: bytes[2] });
        }
        if crc32c::crc32c(&bytes[..CHECKED_BYTES]) != word(12) {
            return Err(FrameError::HeaderChecksum);
        }
        if bytes[3] != 0 {
            return Err(FrameError::Foreign);
        }
        let length = word(4);
        if length as usize > MAX_MESSAGE_BYTES {
            return Err(FrameError::TooLong { bytes: length });
        }
        Ok(FrameHeader { length: length as usize, checksum: word(8) })
    }

    /// Checks the payload that followed the header.
    ///
    /// # Errors
    /// [`FrameError::PayloadChecksum`]
    pub fn check(self, payload: &[u8]) -> Result<(), FrameError> {
        match payload.len() == self.length && crc32c::crc32c(payload) == self.checksum {
            true => Ok(()),
            false => Err(FrameError::PayloadChecksum),
        }
    }
}
