//! The durable page map: a file with a snapshot of the whole map and the changes since.
//!
//! ```text
//!   DIR/pages/map-0000000007    header | snapshot parts … end | change | change | zeros
//!   DIR/pages/map-new           the next generation, while its snapshot is being written
//! ```
//!
//! * A change is appended and synced before the next one is appended: at most the last one is torn.
//!   An invalid batch followed by a valid one is therefore damage, and is refused.
//! * A generation gets its name when its snapshot is durable, and the previous one is removed after
//!   that. After a failed append or sync, the end of the file is unknown, so the next change goes
//!   to a new generation.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::Lsn;
use firn_base::disk::{Disk, File, OpenMode, SECTOR_BYTES};

use super::super::directory::DatabaseId;
use super::map_format::{
    Batch, BatchKind, BatchPosition, HEADER_BYTES, check_header, claimed_number, encode_header,
    encoded_length,
};
use super::slots::io_error;

const PREFIX: &str = "map-";
const NEW_NAME: &str = "map-new";
/// Space is reserved ahead in these steps, so that a sync need not write the file's length.
const RESERVE_BYTES: u64 = 1024 * 1024;
/// As much as this is reserved after the end while the disk has room: on a full disk, some ten
/// thousand pages can still be entered.
const KEPT_BYTES: u64 = 1024 * 1024;
/// How much of a snapshot is written at once.
const SNAPSHOT_WRITE_BYTES: usize = 1024 * 1024;

/// The map's file, open for appending.
pub(super) struct MapFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    database: DatabaseId,
    generation: u64,
    tail: Option<Tail>,
    /// Bytes of the last snapshot.
    snapshot_bytes: u64,
    /// Where the valid batches ended when the file was opened.
    loaded_bytes: u64,
}

/// The end of a file whose every byte is known.
struct Tail {
    file: Arc<dyn File>,
    next_number: u64,
    end: u64,
    reserved: u64,
}

impl MapFile {
    /// Opens the newest generation and passes its batches to `accept`; `None` if there is none.
    /// Blocks for I/O.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
        database: DatabaseId,
        accept: &mut dyn FnMut(Batch) -> Result<(), String>,
    ) -> Result<Option<MapFile>, PageStoreError> {
        let names = disk.list(directory).map_err(|error| io_error(directory.display(), &error))?;
        let Some(generation) = names.iter().filter_map(|path| generation_of(path)).max() else {
            return Ok(None);
        };
        let mut this = MapFile { generation, ..MapFile::new(disk, directory, database) };
        this.load(accept)?;
        this.remove_others(&names);
        Ok(Some(this))
    }

    /// The file of a directory that has none yet; it begins with the first snapshot.
    pub(super) fn new(disk: Arc<dyn Disk>, directory: &Path, database: DatabaseId) -> MapFile {
        let directory = directory.to_owned();
        let (generation, tail, snapshot_bytes, loaded_bytes) = (0, None, 0, 0);
        MapFile { disk, directory, database, generation, tail, snapshot_bytes, loaded_bytes }
    }

    /// Whether a new snapshot must come before the next change.
    pub(super) fn needs_snapshot(&self) -> bool {
        self.tail.is_none()
    }

    /// Bytes of changes after the snapshot.
    pub(super) fn change_bytes(&self) -> u64 {
        self.tail.as_ref().map_or(0, |tail| tail.end - self.snapshot_bytes)
    }

    /// How much of the reserve after the file's end is left: from 0, nothing, to 1.
    pub(super) fn kept_share(&self) -> f64 {
        let kept = |tail: &Tail| tail.reserved.saturating_sub(tail.end) as f64 / KEPT_BYTES as f64;
        self.tail.as_ref().map_or(1.0, kept).min(1.0)
    }

    pub(super) fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes
    }

    /// The error for a map without the batch for which log was released: that batch was durable
    /// once.
    pub(super) fn lost_its_end(&self, applied: Lsn, log_start: Lsn) -> PageStoreError {
        let reason = format!(
            "the map ends here, with what was applied up to log position {applied}, but the log begins at \
             {log_start}: entries that were durable are lost"
        );
        map_damaged(&self.path(self.generation), self.loaded_bytes, reason)
    }

    /// The error for a map that names log that is gone: the log would reuse these positions, and
    /// new log would be mistaken for log that the images already include.
    pub(super) fn outlived_the_log(&self, named: Lsn, log_end: Lsn) -> PageStoreError {
        let reason = format!(
            "the map names log position {named}, but the log ends at {log_end}: log that was durable is lost, or \
             the map is not this log's"
        );
        map_damaged(&self.path(self.generation), self.loaded_bytes, reason)
    }

    fn path(&self, generation: u64) -> PathBuf {
        self.directory.join(format!("{PREFIX}{generation:010}"))
    }

    /// Appends a change and makes it durable. After a write error, the map needs a snapshot. Blocks
    /// for I/O.
    pub(super) fn append(&mut self, batch: &Batch) -> Result<(), PageStoreError> {
        let path = self.path(self.generation);
        let generation = self.generation;
        let tail = self.tail.as_mut().expect("a change follows a snapshot");
        let mut bytes = Vec::new();
        batch.encode(BatchPosition { generation, number: tail.next_number }, &mut bytes);
        let refused = |error: io::Error| io_error(path.display(), &error);
        tail.reserve(bytes.len()).map_err(refused)?;
        let written = tail.write(&bytes);
        if written.is_err() {
            self.tail = None;
        }
        written.map_err(refused)
    }

    /// Writes the whole map as a new generation and continues after it. Blocks for I/O.
    pub(super) fn write_snapshot(
        &mut self,
        parts: &mut dyn Iterator<Item = Batch>,
    ) -> Result<(), PageStoreError> {
        let generation = self.generation + 1;
        let written = self.write_new(generation, parts).and_then(|tail| {
            // From here on, a restart may find either generation.
            self.tail = None;
            self.disk.rename(&self.directory.join(NEW_NAME), &self.path(generation))?;
            let previous = std::mem::replace(&mut self.generation, generation);
            self.disk.sync_directory(&self.directory)?;
            Ok((tail, previous))
        });
        let (tail, previous) =
            written.map_err(|error| io_error(self.path(generation).display(), &error))?;
        self.snapshot_bytes = tail.end;
        self.tail = Some(tail);
        // The next start removes a generation that stays behind.
        let _ = self.disk.remove(&self.path(previous));
        Ok(())
    }

    fn write_new(
        &self,
        generation: u64,
        parts: &mut dyn Iterator<Item = Batch>,
    ) -> io::Result<Tail> {
        let path = self.directory.join(NEW_NAME);
        let _ = self.disk.remove(&path);
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        let written = self.write_parts(file, generation, parts);
        if written.is_err() {
            // The next attempt would remove it, but the disk may have no room for it until then.
            let _ = self.disk.remove(&path);
        }
        written
    }

    fn write_parts(
        &self,
        file: Arc<dyn File>,
        generation: u64,
        parts: &mut dyn Iterator<Item = Batch>,
    ) -> io::Result<Tail> {
        let mut tail = Tail { file, next_number: 0, end: 0, reserved: 0 };
        let mut bytes = encode_header(self.database, generation);
        for part in parts {
            part.encode(BatchPosition { generation, number: tail.next_number }, &mut bytes);
            tail.next_number += 1;
            if bytes.len() >= SNAPSHOT_WRITE_BYTES {
                tail.write_unsynced(&bytes)?;
                bytes.clear();
            }
        }
        tail.write_unsynced(&bytes)?;
        tail.reserve(1)?;
        tail.file.sync_data()?;
        Ok(tail)
    }

    fn load(
        &mut self,
        accept: &mut dyn FnMut(Batch) -> Result<(), String>,
    ) -> Result<(), PageStoreError> {
        let path = self.path(self.generation);
        let file = self
            .disk
            .open(&path, OpenMode::ReadWrite)
            .map_err(|error| io_error(path.display(), &error))?;
        let length = file.length().map_err(|error| io_error(path.display(), &error))?;
        let generation = self.generation;
        let mut loader = Loader { file, path, length, offset: 0, generation, last_change: 0..0 };
        loader.header(self.database)?;
        self.tail = loader.batches(accept, &mut self.snapshot_bytes)?;
        self.loaded_bytes = loader.offset;
        loader.settle()
    }

    fn remove_others(&self, names: &[PathBuf]) {
        let current = self.path(self.generation);
        for path in names {
            let is_map = path
                .file_name()
                .is_some_and(|name| name.to_str().is_some_and(|name| name.starts_with(PREFIX)));
            if is_map && path.file_name() != current.file_name() {
                // Left behind by a crash; it only costs space.
                let _ = self.disk.remove(path);
            }
        }
    }
}

impl Tail {
    fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        let needed = self.end + bytes as u64;
        if needed + KEPT_BYTES <= self.reserved {
            return Ok(());
        }
        let reserved = (needed + KEPT_BYTES).next_multiple_of(RESERVE_BYTES);
        match self.file.allocate(reserved) {
            Ok(()) => self.reserved = reserved,
            Err(_) if needed <= self.reserved => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_unsynced(bytes)?;
        self.file.sync_data()?;
        self.next_number += 1;
        Ok(())
    }

    fn write_unsynced(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

fn generation_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Reads a file from its start.
struct Loader {
    file: Arc<dyn File>,
    path: PathBuf,
    length: u64,
    offset: u64,
    generation: u64,
    /// The position of the last change.
    last_change: Range<u64>,
}

impl Loader {
    /// Writes the last change once more and makes it durable. The life that appended it may have
    /// ended before its sync, or because its sync failed: the bytes read here may be only in the
    /// kernel's memory.
    fn settle(&self) -> Result<(), PageStoreError> {
        let Range { start, end } = self.last_change;
        if start == end {
            return Ok(());
        }
        let bytes = self.read(start, (end - start) as usize)?;
        let settled = self.file.write_at(&bytes, start).and_then(|()| self.file.sync_data());
        settled.map_err(|error| io_error(self.path.display(), &error))
    }

    fn damaged(&self, offset: u64, reason: impl Into<String>) -> PageStoreError {
        map_damaged(&self.path, offset, reason.into())
    }

    fn header(&mut self, database: DatabaseId) -> Result<(), PageStoreError> {
        let header = self.read(0, HEADER_BYTES)?;
        let header = header.first_chunk().ok_or_else(|| self.damaged(0, "the file is empty"))?;
        check_header(header, database, self.generation)
            .map_err(|reason| self.damaged(0, reason))?;
        self.offset = HEADER_BYTES as u64;
        Ok(())
    }

    /// Reads up to `length` bytes, fewer only where the file ends.
    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, PageStoreError> {
        let rest = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length.min(rest)];
        self.file
            .read_at(&mut bytes, offset)
            .map_err(|error| io_error(self.path.display(), &error))?;
        Ok(bytes)
    }

    /// Passes every batch to `accept`. Returns the end, or `None` if a torn batch there must not be
    /// overwritten.
    fn batches(
        &mut self,
        accept: &mut dyn FnMut(Batch) -> Result<(), String>,
        snapshot_bytes: &mut u64,
    ) -> Result<Option<Tail>, PageStoreError> {
        let (mut number, mut in_snapshot) = (0, true);
        loop {
            let at = BatchPosition { generation: self.generation, number };
            let (batch, bytes) = match self.batch(at)? {
                Ok(found) => found,
                Err(reason) if in_snapshot => return Err(self.damaged(self.offset, reason)),
                Err(reason) => return self.end(number, reason),
            };
            let kind = batch.kind;
            if (kind == BatchKind::Change) == in_snapshot {
                return Err(self.damaged(self.offset, "a batch of the wrong kind stands here"));
            }
            accept(batch).map_err(|reason| self.damaged(self.offset, reason))?;
            let start = self.offset;
            self.offset += bytes as u64;
            if kind == BatchKind::Change {
                self.last_change = start..self.offset;
            }
            number += 1;
            if kind == BatchKind::SnapshotEnd {
                in_snapshot = false;
                *snapshot_bytes = self.offset;
            }
        }
    }

    /// The batch at the current offset with its length in the file, or why there is none.
    #[allow(clippy::type_complexity)]
    fn batch(
        &self,
        at: BatchPosition,
    ) -> Result<Result<(Batch, usize), &'static str>, PageStoreError> {
        let sector = self.read(self.offset, SECTOR_BYTES)?;
        let length = match encoded_length(&sector, at) {
            Ok(length) => length,
            Err(reason) => return Ok(Err(reason)),
        };
        let bytes = self.read(self.offset, length)?;
        Ok(Batch::decode(&bytes, at).map(|batch| (batch, length.next_multiple_of(SECTOR_BYTES))))
    }

    /// Decides whether the bytes at the current offset are the end of the file's contents: clean,
    /// torn (`None`), or neither.
    fn end(&self, number: u64, reason: &'static str) -> Result<Option<Tail>, PageStoreError> {
        let rest = self.read(self.offset, usize::MAX)?;
        for (index, sector) in rest.chunks(SECTOR_BYTES).enumerate().skip(1) {
            let Some(later) = claimed_number(sector, self.generation) else { continue };
            let at = BatchPosition { generation: self.generation, number: later };
            if later > number && Batch::decode(&rest[index * SECTOR_BYTES..], at).is_ok() {
                return Err(self.damaged(self.offset, reason));
            }
        }
        if rest.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        let (file, end) = (Arc::clone(&self.file), self.offset);
        Ok(Some(Tail { file, next_number: number, end, reserved: self.length }))
    }
}

fn map_damaged(path: &Path, offset: u64, reason: String) -> PageStoreError {
    let place = format!("{} at byte {offset}", path.display());
    PageStoreError::StoreDamaged { place, reason }
}

#[cfg(test)]
mod tests;
