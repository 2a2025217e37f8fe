//! What stands before the words of a region that other processes reach as memory.
//! `docs/formats/shared-region.md` describes it for other programs.

use crate::epoch::Epoch;

/// Offset of the first word.
pub const HEADER_BYTES: usize = 4096;
/// How many words of the header are used, from its start.
pub const USED_WORDS: usize = 5;

pub(crate) const MAGIC: [u8; 8] = *b"FnRegion";
pub(crate) const VERSION: u64 = 1;

pub(crate) const MAGIC_WORD: usize = 0;
pub(crate) const VERSION_WORD: usize = 1;
pub(crate) const EPOCH_WORD: usize = 2;
pub(crate) const LENGTH_WORD: usize = 3;
pub(crate) const ENDED_WORD: usize = 4;

/// The header of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub epoch: Epoch,
    pub length_words: u64,
    /// Whether the owner has ended the epoch itself.
    pub has_ended: bool,
}

/// Why words are no header of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the memory is not a region")]
    Foreign,
    #[error(
        "the region has version {theirs}, this process uses version {VERSION}; run the same release on both"
    )]
    Version { theirs: u64 },
}

impl Header {
    /// Reads the first words of a region's memory.
    ///
    /// # Errors
    /// Why they are no header of this version.
    pub fn parse(words: &[u64; USED_WORDS]) -> Result<Header, HeaderError> {
        if words[MAGIC_WORD] != u64::from_le_bytes(MAGIC) {
            return Err(HeaderError::Foreign);
        }
        if words[VERSION_WORD] != VERSION {
            return Err(HeaderError::Version { theirs: words[VERSION_WORD] });
        }
        Ok(Header {
            epoch: Epoch(words[EPOCH_WORD]),
            length_words: words[LENGTH_WORD],
            has_ended: words[ENDED_WORD] != 0,
        })
    }
}
