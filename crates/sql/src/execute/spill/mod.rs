//! Rows that a statement writes to disk because its memory is exhausted.
//!
//! ```text
//!   append(values) ─► buffer ─► file      length ‖ values, length ‖ values, …
//!   SpillReader    ◄─ buffer ◄─ file
//! ```
//!
//! A file belongs to the operator that made it and is removed when that is dropped. Files left by a
//! crash are removed when a node starts, because nothing in the directory outlives its statement.
//! The format is private to one process, so it has no version.

mod codec;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use firn_base::disk::{Disk, TemporaryDirectory, TemporaryFile};

use crate::error::{Result, SqlError};
use crate::types::Datum;

use codec::{read_values, write_values};

const BUFFER_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

/// The directory where statements put rows for which they have no memory.
#[derive(Debug, Clone)]
pub struct SpillDirectory(TemporaryDirectory);

impl SpillDirectory {
    /// A directory that is used for nothing else.
    ///
    /// # Errors
    /// 1 if it cannot be made.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<SpillDirectory> {
        let directory = TemporaryDirectory::open(disk, path);
        directory.map(SpillDirectory).map_err(|error| failed(path, &error))
    }

    /// Removes files left by an earlier life of the process.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn clear(&self) -> Result<()> {
        self.0.clear().map_err(|error| failed(self.0.path(), &error))
    }

    /// An empty file.
    ///
    /// # Errors
    /// 1 if it cannot be created.
    pub(crate) fn create(&self) -> Result<SpillFile> {
        let file = self.0.create().map_err(|error| failed(self.0.path(), &error))?;
        Ok(SpillFile { file: Arc::new(file), length: 0, buffer: Vec::new(), rows: 0 })
    }
}

/// Rows that are being written.
pub(crate) struct SpillFile {
    file: Arc<TemporaryFile>,
    length: u64,
    buffer: Vec<u8>,
    rows: u64,
}

impl SpillFile {
    /// Adds a row.
    ///
    /// # Errors
    /// 3 if the disk refuses more.
    pub(crate) fn append(&mut self, values: &[Datum]) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; LENGTH_BYTES]);
        write_values(values, &mut self.buffer);
        let length = (self.buffer.len() - start - LENGTH_BYTES) as u32;
        self.buffer[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.rows += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Rows added so far.
    #[must_use]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Where the next row will be.
    #[must_use]
    pub(crate) fn end(&self) -> u64 {
        self.length + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.write_at(&self.buffer, self.length);
        written.map_err(|error| {
            SqlError::new(
                3,
                format!("Error writing file '{}' ({error})", self.file.path().display()),
            )
        })?;
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Reads the rows from the beginning.
    ///
    /// # Errors
    /// 3 if the last rows cannot be written.
    pub(crate) fn into_reader(mut self) -> Result<SpillReader> {
        self.flush()?;
        let SpillFile { file, length, .. } = self;
        Ok(SpillReader { file, length, offset: 0, buffer: Vec::new(), position: 0 })
    }
}

/// Reads a file's rows in the order in which they were added.
pub(crate) struct SpillReader {
    file: Arc<TemporaryFile>,
    length: u64,
    /// Up to where the buffer has been filled.
    offset: u64,
    buffer: Vec<u8>,
    position: usize,
}

impl SpillReader {
    /// A reader of the same rows, from the beginning.
    #[must_use]
    pub(crate) fn again(&self) -> SpillReader {
        let (file, length) = (Arc::clone(&self.file), self.length);
        SpillReader { file, length, offset: 0, buffer: Vec::new(), position: 0 }
    }

    /// Continues with the row at a place returned by [`SpillFile::end`].
    pub(crate) fn seek(&mut self, place: u64) {
        self.buffer.clear();
        self.position = 0;
        self.offset = place;
    }

    /// Replaces `values` by the next row; false at the end.
    ///
    /// # Errors
    /// 2 if the file cannot be read or is damaged.
    pub(crate) fn next(&mut self, values: &mut Vec<Datum>) -> Result<bool> {
        if !self.fill(LENGTH_BYTES)? {
            return Ok(false);
        }
        let length = self.buffer[self.position..].first_chunk().copied().unwrap_or_default();
        let length = u32::from_le_bytes(length) as usize;
        if !self.fill(LENGTH_BYTES + length)? {
            return Err(self.damaged());
        }
        let start = self.position + LENGTH_BYTES;
        let row = &self.buffer[start..start + length];
        read_values(row, values).ok_or_else(|| self.damaged())?;
        self.position = start + length;
        Ok(true)
    }

    /// Fills the buffer with this many bytes from its position on; false if there are none left at
    /// all.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        let present = self.buffer.len() - self.position;
        if present >= wanted {
            return Ok(true);
        }
        let left = self.length - self.offset;
        if left < (wanted - present) as u64 {
            return if present == 0 { Ok(false) } else { Err(self.damaged()) };
        }
        self.buffer.drain(..self.position);
        self.position = 0;
        let more = left.min(BUFFER_BYTES.max(wanted - present) as u64) as usize;
        self.buffer.resize(present + more, 0);
        let read = self.file.read_at(&mut self.buffer[present..], self.offset);
        read.map_err(|error| {
            SqlError::new(
                2,
                format!("Error reading file '{}' ({error})", self.file.path().display()),
            )
        })?;
        self.offset += more as u64;
        Ok(true)
    }

    /// The error of a file whose rows differ from those that were written.
    pub(crate) fn damaged(&self) -> SqlError {
        let path = self.file.path().display();
        SqlError::new(2, format!("Error reading file '{path}' (its rows are damaged)"))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> SqlError {
    SqlError::new(1, format!("Can't create/write to file '{}' ({error})", path.display()))
}
