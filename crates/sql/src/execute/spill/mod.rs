//! Rows that a statement writes to disk because its memory is exhausted.
//!
//! ```text
//!   append(values) ─► buffer ─► chunk      length ‖ values, length ‖ values, …
//!   SpillReader    ◄─ buffer ◄─ chunk
//! ```
//!
//! A chunk has whole rows. Files, checksums and the statement's limit are those of
//! [`firn_base::disk::SpillArea`], as for the vectorised engine.

mod codec;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use firn_base::disk::{SpillArea, SpilledFile};

use crate::error::{Result, SqlError};
use crate::types::Datum;

use codec::{read_values, write_values};

/// A chunk is written once it has this many bytes.
const BUFFER_BYTES: usize = 64 << 10;
const LENGTH_BYTES: usize = 4;

/// Rows that are being written.
pub(crate) struct SpillFile {
    file: Arc<SpilledFile>,
    buffer: Vec<u8>,
    rows: u64,
}

impl SpillFile {
    /// An empty file.
    ///
    /// # Errors
    /// 1 if it cannot be created.
    pub(crate) fn create(area: &SpillArea) -> Result<SpillFile> {
        let file = area.create().map_err(|error| failed(area.path(), &error))?;
        Ok(SpillFile { file: Arc::new(file), buffer: Vec::new(), rows: 0 })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 3 if the disk, or the statement's limit, refuses more.
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
        self.file.length() + self.buffer.len() as u64
    }

    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.append(&self.buffer);
        written.map_err(|error| {
            SqlError::new(
                3,
                format!("Error writing file '{}' ({error})", self.file.path().display()),
            )
        })?;
        self.buffer.clear();
        Ok(())
    }

    /// Reads the rows from the beginning.
    ///
    /// # Errors
    /// 3 if the last rows cannot be written.
    pub(crate) fn into_reader(mut self) -> Result<SpillReader> {
        self.flush()?;
        Ok(SpillReader::of(self.file))
    }
}

/// Reads a file's rows in the order in which they were added.
pub(crate) struct SpillReader {
    file: Arc<SpilledFile>,
    /// The chunk after the one in the buffer.
    next_chunk: usize,
    buffer: Vec<u8>,
    position: usize,
}

impl SpillReader {
    fn of(file: Arc<SpilledFile>) -> SpillReader {
        SpillReader { file, next_chunk: 0, buffer: Vec::new(), position: 0 }
    }

    /// A reader of the same rows, from the beginning.
    #[must_use]
    pub(crate) fn again(&self) -> SpillReader {
        SpillReader::of(Arc::clone(&self.file))
    }

    /// Continues with the row at a place returned by [`SpillFile::end`].
    ///
    /// # Errors
    /// 2 if the file cannot be read or is damaged.
    pub(crate) fn seek(&mut self, place: u64) -> Result<()> {
        let (chunk, within) = self.file.chunk_at(place);
        self.buffer.clear();
        self.position = 0;
        self.next_chunk = chunk;
        if within > 0 && self.load()? {
            self.position = within;
        }
        Ok(())
    }

    /// Replaces `values` by the next row; false at the end.
    ///
    /// # Errors
    /// 2 if the file cannot be read or is damaged.
    pub(crate) fn next(&mut self, values: &mut Vec<Datum>) -> Result<bool> {
        if self.position == self.buffer.len() && !self.load()? {
            return Ok(false);
        }
        let rest = &self.buffer[self.position..];
        let (length, rest) = rest.split_first_chunk().ok_or_else(|| self.damaged())?;
        let length = u32::from_le_bytes(*length) as usize;
        let row = rest.get(..length).ok_or_else(|| self.damaged())?;
        read_values(row, values).ok_or_else(|| self.damaged())?;
        self.position += LENGTH_BYTES + length;
        Ok(true)
    }

    /// Reads the next chunk; false if there is none.
    fn load(&mut self) -> Result<bool> {
        let read = self.file.read(self.next_chunk, &mut self.buffer);
        let is_there = read.map_err(|error| {
            SqlError::new(
                2,
                format!("Error reading file '{}' ({error})", self.file.path().display()),
            )
        })?;
        if is_there {
            self.next_chunk += 1;
            self.position = 0;
        }
        Ok(is_there)
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
