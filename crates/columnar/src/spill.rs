//! Spilled data: batches that the library's sorts write to disk, in its own encoding.
//!
//! ```text
//!   library ──bytes──► buffer ──chunk──► file of the statement's spill area
//!           ◄──chunk, if its checksum is right──┘
//! ```
//!
//! The library does not check what it decodes; the area's files do
//! ([`firn_base::disk::SpilledFile`]). The row executor spills into the same area, so a statement
//! has one limit.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use datafusion_common::{DataFusionError, Result as LibraryResult};
use datafusion_execution::disk_manager::DiskManagerBuilder;
use datafusion_execution::{SpillFile, SpillWriter, TempFileFactory};
use firn_base::disk::{SpillArea, SpilledFile};
use futures::Stream;

/// Bytes that are written or read in one call.
const CHUNK_BYTES: usize = 128 << 10;

/// The files of a statement, for the library.
pub(crate) fn files(area: &SpillArea) -> DiskManagerBuilder {
    DiskManagerBuilder::default().with_temp_file_factory(Arc::new(Files(area.clone())))
}

struct Files(SpillArea);

impl TempFileFactory for Files {
    fn create_temp_file(&self, _: &str) -> LibraryResult<Arc<dyn SpillFile>> {
        Ok(Arc::new(Spilled(Arc::new(self.0.create()?))))
    }
}

/// A file, as the library knows it.
struct Spilled(Arc<SpilledFile>);

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.0.length())
    }

    fn read_stream(
        &self,
    ) -> LibraryResult<Pin<Box<dyn Stream<Item = LibraryResult<Bytes>> + Send>>> {
        let file = Arc::clone(&self.0);
        let read = move |number: usize| {
            let mut bytes = Vec::new();
            match file.read(number, &mut bytes) {
                Ok(true) => Some(Ok(Bytes::from(bytes))),
                Ok(false) => None,
                Err(error) => Some(Err(DataFusionError::IoError(error))),
            }
        };
        Ok(Box::pin(futures::stream::iter((0..).map_while(read))))
    }

    /// The writer appends; a file has one at a time.
    fn open_writer(&self) -> LibraryResult<Box<dyn SpillWriter>> {
        let buffer = Vec::with_capacity(CHUNK_BYTES);
        Ok(Box::new(Writer { file: Arc::clone(&self.0), buffer }))
    }
}

/// Gathers the library's many small writes.
struct Writer {
    file: Arc<SpilledFile>,
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
            self.file.append(&self.buffer)?;
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
