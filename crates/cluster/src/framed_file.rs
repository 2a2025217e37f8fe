//! Small files of a node that are there as a whole or not at all.
//!
//! ```text
//!   0  magic, four bytes      5  u32  crc32c of what follows
//!   4  u8  version            9  the value, as `postcard` writes it
//! ```
//!
//! A file is written under another name, synced and renamed.

use std::io;
use std::path::Path;

use firn_base::disk::{Disk, OpenMode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Magic, version and checksum.
pub(crate) const HEADER_BYTES: usize = 9;

/// The bytes of a file with this value.
pub(crate) fn frame(magic: [u8; 4], version: u8, value: &impl Serialize) -> Vec<u8> {
    let body = postcard::to_allocvec(value).expect("plain fields can always be encoded");
    let mut bytes = magic.to_vec();
    bytes.push(version);
    bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
    bytes.extend_from_slice(&body);
    bytes
}

/// The version of a file, and its value's bytes. `None` if the file is another one, or damaged.
pub(crate) fn unframe(magic: [u8; 4], bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (head, body) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let checksum = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
    (head[..4] == magic && checksum == crc32c::crc32c(body)).then_some((head[4], body))
}

/// A value that is all of the bytes.
pub(crate) fn exact<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Some(value),
        _ => None,
    }
}

/// The bytes of a file; `None` if it is not there. Blocks for I/O.
pub(crate) fn read(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = vec![0; usize::try_from(file.length()?).expect("a file that fits")];
    file.read_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

/// Writes a file of a directory, durably. Blocks for I/O.
pub(crate) fn write(disk: &dyn Disk, directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let new = directory.join(format!("{name}.new"));
    remove(disk, &new)?;
    let file = disk.open(&new, OpenMode::CreateNew)?;
    file.write_at(bytes, 0)?;
    file.sync_data()?;
    disk.rename(&new, &directory.join(name))?;
    disk.sync_directory(directory)
}

/// Removes a file, if it is there. Blocks for I/O.
pub(crate) fn remove(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Deletes the files of a directory and of those in it. What cannot be deleted stays.
pub(crate) fn delete_below(disk: &dyn Disk, directory: &Path) {
    for name in disk.list(directory).unwrap_or_default() {
        if disk.remove(&name).is_err() {
            delete_below(disk, &name);
        }
    }
}
