//! What a statement writes to disk because it has no memory for it, whichever executor runs it.
//!
//! ```text
//!   append(bytes) ─► chunk ─► temporary file       one call of the disk for each chunk
//!   read(number)  ◄─ chunk, if its checksum is right ◄─┘
//! ```
//!
//! Checksums stay in memory: nothing in a file outlives its statement, so the bytes have no format
//! that anybody else reads. The files of a statement share what it may take of the disk. A file is
//! removed with its last user, and those of a crashed process when the directory is opened again.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Disk;
use super::temporary::{TemporaryDirectory, TemporaryFile};

/// The directory where statements spill. Holds nothing else.
#[derive(Debug, Clone)]
pub struct SpillDirectory {
    directory: TemporaryDirectory,
    limit_bytes: u64,
}

/// What a statement may take of the disk, and has taken.
struct Quota {
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

/// Where one statement spills.
#[derive(Clone)]
pub struct SpillArea {
    directory: TemporaryDirectory,
    quota: Arc<Quota>,
}

/// A file with what was written to it.
pub struct SpilledFile {
    file: TemporaryFile,
    /// In the file's order, without gaps.
    chunks: Mutex<Vec<Chunk>>,
    quota: Arc<Quota>,
}

/// A part of a file that was written in one call.
#[derive(Clone, Copy)]
struct Chunk {
    offset: u64,
    length: usize,
    checksum: u32,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }
}

impl SpillDirectory {
    /// Makes the directory if need be, and removes what a former process left in it. Each statement
    /// may use `limit_bytes`. Blocks.
    ///
    /// # Errors
    /// If the directory can be neither made nor emptied.
    pub fn open(disk: Arc<dyn Disk>, path: &Path, limit_bytes: u64) -> io::Result<SpillDirectory> {
        let directory = TemporaryDirectory::open(disk, path)?;
        directory.clear()?;
        Ok(SpillDirectory { directory, limit_bytes })
    }

    /// A statement's share.
    #[must_use]
    pub fn of_statement(&self) -> SpillArea {
        let quota = Quota { limit_bytes: self.limit_bytes, used_bytes: AtomicU64::new(0) };
        SpillArea { directory: self.directory.clone(), quota: Arc::new(quota) }
    }
}

impl Quota {
    fn take(&self, bytes: u64) -> io::Result<()> {
        let used_bytes = self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if used_bytes <= self.limit_bytes {
            return Ok(());
        }
        self.give_back(bytes);
        let limit_bytes = self.limit_bytes;
        let refused = format!("a statement may spill at most {limit_bytes} bytes");
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, refused))
    }

    fn give_back(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl SpillArea {
    /// An empty file. Blocks.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub fn create(&self) -> io::Result<SpilledFile> {
        let file = self.directory.create()?;
        Ok(SpilledFile { file, chunks: Mutex::default(), quota: Arc::clone(&self.quota) })
    }

    /// The directory's path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl SpilledFile {
    /// The file's path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes written so far.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.chunks.lock().last().map_or(0, Chunk::end)
    }

    /// Writes a chunk at the file's end. A file has one writer at a time. Blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::QuotaExceeded`] if the statement may take no more, or the disk's error.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let (offset, length) = (self.length(), bytes.len());
        self.quota.take(length as u64)?;
        if let Err(error) = self.file.write_at(bytes, offset) {
            self.quota.give_back(length as u64);
            return Err(error);
        }
        self.chunks.lock().push(Chunk { offset, length, checksum: crc32c::crc32c(bytes) });
        Ok(())
    }

    /// Replaces `into` by the chunk with this number, counted from 0; false if there is none.
    /// Blocks.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the bytes are not those that were written, or the disk's
    /// error.
    pub fn read(&self, number: usize, into: &mut Vec<u8>) -> io::Result<bool> {
        let Some(chunk) = self.chunks.lock().get(number).copied() else { return Ok(false) };
        into.clear();
        into.resize(chunk.length, 0);
        self.file.read_at(into, chunk.offset)?;
        if crc32c::crc32c(into) == chunk.checksum {
            return Ok(true);
        }
        let (path, offset) = (self.path().display(), chunk.offset);
        let damaged = format!("spilled rows in {path} at {offset} are damaged");
        Err(io::Error::new(io::ErrorKind::InvalidData, damaged))
    }

    /// The number of the chunk that has the byte at `offset`, and where in it; behind the last
    /// chunk if the file ends there.
    #[must_use]
    pub fn chunk_at(&self, offset: u64) -> (usize, usize) {
        let chunks = self.chunks.lock();
        let number = chunks.partition_point(|chunk| chunk.end() <= offset);
        let within = chunks.get(number).map_or(0, |chunk| offset - chunk.offset);
        (number, within as usize)
    }
}

impl Drop for SpilledFile {
    fn drop(&mut self) {
        self.quota.give_back(self.length());
    }
}

#[cfg(test)]
mod tests;
