//! Makes the pages of a directory from images of another store.
//!
//! A page node that is new, or was away for too long, cannot make its pages from the log, which
//! begins later. It gets images as of one position from another node, and follows the log from
//! there.
//!
//! ```text
//!   begin ──► add, add, … ──► finish: files synced, then the map
//! ```
//!
//! The map is written last, and at once. Without it the directory has no pages, whatever is in its
//! files: a copy that was interrupted begins again.

use std::path::PathBuf;
use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::disk::Disk;
use firn_base::{Lsn, PageId};
use firn_format::page::{PAGE_SIZE, PageBuf};

use super::map_file::MapFile;
use super::map_format::{Batch, BatchKind, MAX_BATCH_ENTRIES};
use super::slots::{SLOTS_PER_FILE, SlotFiles, SlotNo, io_error};
use super::version::Version;
use crate::local::LocalDirectory;

/// Images that are written with one call.
const WRITE_PAGES: usize = 64;
/// How many slots the files grow by.
const GROW_SLOTS: u32 = 4096;

/// The pages of a directory that is being filled. The directory is of no other use meanwhile.
pub struct PageCopy {
    directory: Arc<LocalDirectory>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    files: SlotFiles,
    /// How many slots the files have.
    total: u32,
    position: Lsn,
    puts: Vec<(PageId, Version)>,
    /// Images that are not written yet. They belong into the slots of the last puts.
    waiting: Vec<u8>,
    sealed: Box<PageBuf>,
}

impl PageCopy {
    /// Begins to fill a directory with pages as of `position`. What is in it is removed. Blocks for
    /// I/O.
    ///
    /// # Errors
    /// An error of the disk.
    pub fn begin(
        directory: &Arc<LocalDirectory>,
        position: Lsn,
    ) -> Result<PageCopy, PageStoreError> {
        let disk = Arc::clone(&directory.environment().disk);
        let path = directory.path().join("pages");
        let failed = |error| io_error(path.display(), &error);
        disk.create_directory(&path).map_err(failed)?;
        // The map goes first: page files without it are no pages.
        let mut names = disk.list(&path).map_err(failed)?;
        names.sort_by_key(|name| name.extension().is_some());
        names.iter().try_for_each(|name| disk.remove(name)).map_err(failed)?;
        disk.sync_directory(&path).map_err(failed)?;
        disk.sync_directory(directory.path()).map_err(failed)?;
        let (files, total) = SlotFiles::open(Arc::clone(&disk), &path)?;
        Ok(PageCopy {
            directory: Arc::clone(directory),
            disk,
            path,
            files,
            total,
            position,
            puts: Vec::new(),
            waiting: Vec::new(),
            sealed: PageBuf::boxed(),
        })
    }

    /// Adds a page as it was at the copy's position. Each page comes once. Blocks for I/O now and
    /// then.
    ///
    /// # Errors
    /// An error of the disk, or an image that is newer than the position.
    pub fn add(&mut self, page: PageId, image: &PageBuf) -> Result<(), PageStoreError> {
        let lsn = image.lsn();
        if lsn > self.position {
            let reason = format!("an image as of {lsn} is no page as of {}", self.position);
            let place = self.path.display().to_string();
            return Err(PageStoreError::Damaged { page, place, reason });
        }
        let slot = SlotNo(self.puts.len() as u32);
        if slot.0.is_multiple_of(SLOTS_PER_FILE) {
            self.write()?;
        }
        self.sealed.bytes_mut().copy_from_slice(image.bytes());
        self.sealed.seal();
        self.waiting.extend_from_slice(self.sealed.bytes());
        self.puts.push((page, Version { lsn, since: lsn, slot, is_first: false }));
        if self.waiting.len() >= WRITE_PAGES * PAGE_SIZE {
            self.write()?;
        }
        Ok(())
    }

    /// How many pages were added.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.puts.len()
    }

    /// Makes the pages durable. The directory can be opened after that, over a log that is kept
    /// from the copy's position on. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the disk. Then the directory has no pages.
    pub fn finish(mut self) -> Result<(), PageStoreError> {
        self.write()?;
        let files = self.puts.len().div_ceil(SLOTS_PER_FILE as usize);
        (0..files).try_for_each(|file| self.files.sync(file))?;
        let database = self.directory.database();
        let mut map = MapFile::new(Arc::clone(&self.disk), &self.path, database);
        let (applied, horizon) = (self.position, self.position);
        let batch = |kind, puts| Batch { kind, applied, horizon, puts, drops: Vec::new() };
        let parts = self.puts.chunks(MAX_BATCH_ENTRIES);
        let parts = parts.map(|puts| batch(BatchKind::SnapshotPart, puts.to_vec()));
        map.write_snapshot(&mut parts.chain([batch(BatchKind::SnapshotEnd, Vec::new())]))
    }

    /// Writes the images that wait. They go into one file.
    fn write(&mut self) -> Result<(), PageStoreError> {
        let count = (self.waiting.len() / PAGE_SIZE) as u32;
        let first = self.puts.len() as u32 - count;
        while self.total < first + count {
            self.total = self.files.grow(self.total, GROW_SLOTS)?;
        }
        if count > 0 {
            self.files.write(SlotNo(first), &self.waiting)?;
        }
        self.waiting.clear();
        Ok(())
    }
}
