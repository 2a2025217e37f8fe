//! Spilled data: batches that the library's sorts write to disk, in its own encoding.
//!
//! ```text
//!   library ──bytes──► buffer ──chunk──► temporary file of the environment's disk
//!           ◄──chunk, if its checksum is right──┘
//! ```
//!
//! The library does not check what it decodes, so each chunk has a checksum, which stays in memory.
//! A file is removed with its last reader, and those of a crashed process when the engine starts
//! again.

use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result as LibraryResult};
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::{SpillFile, SpillWriter, TempFileFactory};
use firn_base::disk::{Disk, TemporaryDirectory, TemporaryFile};
use futures::Stream;
use parking_lot::Mutex;

/// Bytes that are written or read in one call.
const CHUNK_BYTES: usize = 128 << 10;

/// The place for spilled data.
#[derive(Debug)]
pub(crate) struct Spill {
    directory: TemporaryDirectory,
    limit_bytes: u64,
}

impl Spill {
    /// Empties the directory. Each statement may use `limit_bytes` of it.
    pub(crate) fn open(disk: Arc<dyn Disk>, path: &Path, limit_bytes: u64) -> io::Result<Spill> {
        let directory = TemporaryDirectory::open(disk, path)?;
        directory.clear()?;
        Ok(Spill { directory, limit_bytes })
    }

    /// The files of a run.
    pub(crate) fn files(&self) -> DiskManagerBuilder {
        DiskManagerBuilder::default().with_temp_file_factory(Arc::new(self.of_run()))
    }

    fn of_run(&self) -> RunFiles {
        let quota = Quota { limit_bytes: self.limit_bytes, used_bytes: AtomicU64::new(0) };
        RunFiles { directory: self.directory.clone(), quota: Arc::new(quota) }
    }
}

/// What the files of a run may take together.
struct Quota {
    limit_bytes: u64,
    used_bytes: AtomicU64,
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

/// Makes the files of a run.
struct RunFiles {
    directory: TemporaryDirectory,
    quota: Arc<Quota>,
}

impl TempFileFactory for RunFiles {
    fn create_temp_file(&self, _: &str) -> LibraryResult<Arc<dyn SpillFile>> {
        let content = Content {
            file: self.directory.create()?,
            chunks: Mutex::default(),
            quota: Arc::clone(&self.quota),
        };
        Ok(Arc::new(Spilled(Arc::new(content))))
    }
}

/// A file, as the library knows it.
struct Spilled(Arc<Content>);

/// A file with what was written to it.
struct Content {
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

impl Content {
    fn length(&self) -> u64 {
        self.chunks.lock().last().map_or(0, |last| last.offset + last.length as u64)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let (offset, length) = (self.length(), bytes.len());
        self.quota.take(length as u64)?;
        if let Err(error) = self.file.write_at(bytes, offset) {
            self.quota.give_back(length as u64);
            return Err(error);
        }
        self.chunks.lock().push(Chunk { offset, length, checksum: crc32c::crc32c(bytes) });
        Ok(())
    }

    fn read(&self, chunk: Chunk) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; chunk.length];
        self.file.read_at(&mut bytes, chunk.offset)?;
        if crc32c::crc32c(&bytes) != chunk.checksum {
            let (path, offset) = (self.file.path().display(), chunk.offset);
            let damaged = format!("spilled rows in {path} at {offset} are damaged");
            return Err(io::Error::new(io::ErrorKind::InvalidData, damaged));
        }
        Ok(bytes)
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        self.quota.give_back(self.length());
    }
}

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.0.length())
    }

    fn read_stream(
        &self,
    ) -> LibraryResult<Pin<Box<dyn Stream<Item = LibraryResult<Bytes>> + Send>>> {
        let content = Arc::clone(&self.0);
        let read = move |number: usize| {
            let chunk = content.chunks.lock().get(number).copied()?;
            Some(content.read(chunk).map(Bytes::from).map_err(DataFusionError::IoError))
        };
        Ok(Box::pin(futures::stream::iter((0..).map_while(read))))
    }

    /// The writer appends; a file has one at a time.
    fn open_writer(&self) -> LibraryResult<Box<dyn SpillWriter>> {
        let buffer = Vec::with_capacity(CHUNK_BYTES);
        Ok(Box::new(Writer { content: Arc::clone(&self.0), buffer }))
    }
}

/// Gathers the library's many small writes.
struct Writer {
    content: Arc<Content>,
    buffer: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = CHUNK_BYTES - self.buffer.len();
        let taken = bytes.len().min(room);
        self.buffer.extend_from_slice(&bytes[..taken]);
        if self.buffer.len() == CHUNK_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.content.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> LibraryResult<()> {
        Ok(self.flush()?)
    }
}

#[cfg(test)]
mod tests;
