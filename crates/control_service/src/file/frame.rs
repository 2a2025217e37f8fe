//! Frames: what is synced as one.

use firn_base::disk::SECTOR_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::saved::StoredWrite;

const MAGIC: [u8; 4] = *b"FnCt";
const VERSION: u16 = 1;
const HEADER_BYTES: usize = 24;
const CHECKED_BYTES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Whole = 1,
    Writes = 2,
}

/// A frame as it is read.
pub(super) struct Frame<'a> {
    pub(super) kind: FrameKind,
    pub(super) sequence: u64,
    pub(super) payload: &'a [u8],
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoFrame {
    /// It was never written, or only in part.
    Torn,
    Version(u16),
}

impl Frame<'_> {
    /// The bytes of a frame, padded to whole sectors.
    pub(super) fn of(kind: FrameKind, sequence: u64, payload: &impl Serialize) -> Vec<u8> {
        let payload = postcard::to_allocvec(payload).expect("plain fields can always be encoded");
        let length = u32::try_from(payload.len()).expect("a catalog is far below 4 GiB");
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[kind as u8, 0]);
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes), &payload);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes.resize(bytes.len().next_multiple_of(SECTOR_BYTES), 0);
        bytes
    }

    /// Reads the frame at the beginning of `bytes`. Returns it with its length.
    pub(super) fn read(bytes: &[u8]) -> Result<(Frame<'_>, usize), NoFrame> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(NoFrame::Torn)?;
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let length = word(16) as usize;
        let payload = rest.get(..length).ok_or(NoFrame::Torn)?;
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKED_BYTES]), payload);
        if header[..4] != MAGIC || word(20) != checksum {
            return Err(NoFrame::Torn);
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(NoFrame::Version(version));
        }
        let kind = match header[6..8] {
            [1, 0] => FrameKind::Whole,
            [2, 0] => FrameKind::Writes,
            _ => return Err(NoFrame::Torn),
        };
        let sequence = u64::from(word(8)) | u64::from(word(12)) << 32;
        let end = (HEADER_BYTES + length).next_multiple_of(SECTOR_BYTES);
        Ok((Frame { kind, sequence, payload }, end))
    }

    /// The payload, if its bytes are just those of a value.
    pub(super) fn value<T: Serialize + DeserializeOwned>(&self) -> Option<T> {
        let value = postcard::from_bytes(self.payload).ok()?;
        let again = postcard::to_allocvec(&value).expect("plain fields can always be encoded");
        (again == self.payload).then_some(value)
    }
}

/// Whether a whole frame begins at a sector of `bytes`.
pub(super) fn has_frame(bytes: &[u8]) -> bool {
    bytes.chunks(SECTOR_BYTES).enumerate().any(|(sector, start)| {
        start.starts_with(&MAGIC)
            && !matches!(Frame::read(&bytes[sector * SECTOR_BYTES..]), Err(NoFrame::Torn))
    })
}

/// The writes in a frame as [`super::MemberFile::append`] hands it to the disk, for tests that look
/// at what is written. `None` for other bytes.
#[must_use]
pub fn written_writes(bytes: &[u8]) -> Option<Vec<StoredWrite>> {
    let (frame, _) = Frame::read(bytes).ok()?;
    (frame.kind == FrameKind::Writes).then(|| frame.value())?
}
