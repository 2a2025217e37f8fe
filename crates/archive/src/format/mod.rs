//! The objects of an archive, as bytes. `docs/formats/archive.md` describes them.
//!
//! Every object begins with a frame: magic, version, length and checksum of the head. The head says
//! what is in the body. Decoders take any bytes and return an error for all that are not whole.

mod fields;
mod log_object;
mod manifest;
mod page_object;
mod set_object;
#[cfg(test)]
mod tests;

pub use log_object::{LogHead, LogObject, Mark};
pub use manifest::{Gap, LogEntry, Manifest, SetEntry};
pub(crate) use page_object::decompress;
pub use page_object::{ImageEntry, PageHead, PagePacker};
pub use set_object::{ImageSet, PackEntry};

use firn_storage::local::DatabaseId;

use fields::{FieldReader, FieldWriter};

/// The version that this build writes, of all kinds of objects but one.
pub const ARCHIVE_VERSION: u16 = 1;
/// The version of the manifest of a cluster, which has an epoch.
pub const CLUSTER_MANIFEST_VERSION: u16 = 2;
/// Bytes of the frame before the head.
pub const FRAME_BYTES: usize = 20;
/// No head is longer, in bytes: what a reader believes before it has checked anything.
const MAX_HEAD_BYTES: usize = 256 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Manifest,
    Log,
    Pages,
    Set,
}

impl ObjectKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            ObjectKind::Manifest => b"FIRNARCH",
            ObjectKind::Log => b"FIRNALOG",
            ObjectKind::Pages => b"FIRNAPAG",
            ObjectKind::Set => b"FIRNASET",
        }
    }

    /// The newest version that this build reads.
    fn newest_version(self) -> u16 {
        match self {
            ObjectKind::Manifest => CLUSTER_MANIFEST_VERSION,
            _ => ARCHIVE_VERSION,
        }
    }
}

/// Why bytes are not an object of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    #[error("it does not begin as such an object does")]
    Magic,
    #[error("it has version {found}, this build reads versions up to {newest}")]
    Version { found: u16, newest: u16 },
    #[error("it is cut short")]
    Short,
    #[error("its checksum does not match")]
    Checksum,
    #[error("its fields contradict each other")]
    Invalid,
}

/// Puts a head into its frame.
fn framed(kind: ObjectKind, head: &[u8]) -> Vec<u8> {
    framed_as(kind, ARCHIVE_VERSION, head)
}

/// Puts a head of a version into its frame.
fn framed_as(kind: ObjectKind, version: u16, head: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FRAME_BYTES + head.len());
    bytes.extend_from_slice(kind.magic());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(head).to_le_bytes());
    bytes.extend_from_slice(head);
    bytes
}

/// The length of the head, in bytes, that a frame announces.
///
/// # Errors
/// If it is not the frame of such an object.
pub fn head_length(kind: ObjectKind, frame: &[u8]) -> Result<usize, FormatError> {
    let frame = frame.first_chunk::<FRAME_BYTES>().ok_or(FormatError::Short)?;
    if &frame[..8] != kind.magic() {
        return Err(FormatError::Magic);
    }
    let (found, newest) = (version(frame), kind.newest_version());
    if !(ARCHIVE_VERSION..=newest).contains(&found) {
        return Err(FormatError::Version { found, newest });
    }
    let length = u32::from_le_bytes([frame[12], frame[13], frame[14], frame[15]]) as usize;
    if length > MAX_HEAD_BYTES || frame[10..12] != [0; 2] {
        return Err(FormatError::Invalid);
    }
    Ok(length)
}

/// The version that a frame names.
fn version(frame: &[u8; FRAME_BYTES]) -> u16 {
    u16::from_le_bytes([frame[8], frame[9]])
}

/// The head and the body of an object.
fn unframed(kind: ObjectKind, bytes: &[u8]) -> Result<(&[u8], &[u8]), FormatError> {
    let length = head_length(kind, bytes)?;
    let rest = &bytes[FRAME_BYTES..];
    let (head, body) = rest.split_at_checked(length).ok_or(FormatError::Short)?;
    let checksum = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
    if crc32c::crc32c(head) != checksum {
        return Err(FormatError::Checksum);
    }
    Ok((head, body))
}

/// Arbitrary bytes as each kind of object: refused, or read and written back unchanged. For the
/// fuzzer and for tests.
///
/// # Panics
/// If a decoder accepts bytes that it would not write.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(manifest.encode(), bytes);
    }
    if let Ok(set) = ImageSet::decode(bytes) {
        assert_eq!(set.encode(), bytes);
    }
    let _ = LogObject::decode(bytes);
    let _ = LogHead::decode(bytes);
    if let Ok(head) = PageHead::decode(bytes) {
        let mut page = firn_format::page::PageBuf::boxed();
        for entry in head.images() {
            if let Some(image) = head.image_range(entry).and_then(|range| bytes.get(range)) {
                let _ = page_object::decompress(image, entry.page, &mut page);
            }
        }
    }
}

fn read_database(reader: &mut FieldReader<'_>) -> Result<DatabaseId, FormatError> {
    Ok(DatabaseId(reader.array()?))
}
