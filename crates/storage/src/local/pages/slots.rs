//! Page files: arrays of page-sized slots.
//!
//! ```text
//!   DIR/pages/0000.pages   slots      0 ..  65,535     1 GiB
//!   DIR/pages/0001.pages   slots 65,536 .. 131,071     1 GiB, grown in steps
//! ```
//!
//! Every file except the last one has its full length.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::disk::{Disk, File, OpenMode};
use firn_format::page::{PAGE_SIZE, PageBuf};
use parking_lot::RwLock;

/// Slots of a full page file, 1 GiB.
pub(super) const SLOTS_PER_FILE: u32 = 1 << 16;

const SUFFIX: &str = "pages";

/// The number of a slot, counted over all page files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SlotNo(pub(super) u32);

impl SlotNo {
    /// The number of the file that the slot is in.
    pub(super) fn file(self) -> usize {
        (self.0 / SLOTS_PER_FILE) as usize
    }

    fn offset_bytes(self) -> u64 {
        u64::from(self.0 % SLOTS_PER_FILE) * PAGE_SIZE as u64
    }
}

/// The open page files.
pub(super) struct SlotFiles {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    files: RwLock<Vec<Arc<dyn File>>>,
}

impl SlotFiles {
    /// Opens the files in `directory`; also returns the number of slots. Blocks for I/O.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        directory: &Path,
    ) -> Result<(SlotFiles, u32), PageStoreError> {
        let this =
            SlotFiles { disk, directory: directory.to_owned(), files: RwLock::new(Vec::new()) };
        let mut total = 0;
        for number in 0..this.count_files()? {
            // If a file before the last one is too short, the write that needs it extends it.
            total = number as u32 * SLOTS_PER_FILE + this.open_file(number)?;
        }
        Ok((this, total))
    }

    fn count_files(&self) -> Result<usize, PageStoreError> {
        let names = self
            .disk
            .list(&self.directory)
            .map_err(|error| io_error(self.directory.display(), &error))?;
        let is_page_file = |path: &PathBuf| path.extension().is_some_and(|end| end == SUFFIX);
        let names: Vec<PathBuf> = names.into_iter().filter(is_page_file).collect();
        for (number, path) in names.iter().enumerate() {
            if path.file_name() != self.path(number).file_name() {
                return Err(PageStoreError::StoreDamaged {
                    place: self.path(number).display().to_string(),
                    reason: format!("the file is missing, but {} is there", path.display()),
                });
            }
        }
        Ok(names.len())
    }

    fn open_file(&self, number: usize) -> Result<u32, PageStoreError> {
        let path = self.path(number);
        let open = || -> io::Result<u32> {
            let file = self.disk.open(&path, OpenMode::ReadWrite)?;
            let slots = file.length()? / PAGE_SIZE as u64;
            self.files.write().push(file);
            Ok(u32::try_from(slots).unwrap_or(u32::MAX).min(SLOTS_PER_FILE))
        };
        open().map_err(|error| io_error(path.display(), &error))
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.join(format!("{number:04}.{SUFFIX}"))
    }

    fn file(&self, number: usize) -> io::Result<Arc<dyn File>> {
        let file = self.files.read().get(number).cloned();
        file.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such page file"))
    }

    /// Where a slot is, for people.
    pub(super) fn place(&self, slot: SlotNo) -> String {
        format!("{} at byte {}", self.path(slot.file()).display(), slot.offset_bytes())
    }

    /// Reads a slot, whatever its content. Blocks for I/O.
    pub(super) fn read(&self, slot: SlotNo, into: &mut PageBuf) -> io::Result<()> {
        self.file(slot.file())?.read_at(into.bytes_mut(), slot.offset_bytes())
    }

    /// Lets the disk begin to read a slot. Does not wait for it.
    pub(super) fn begin_read(&self, slot: SlotNo) {
        if let Ok(file) = self.file(slot.file()) {
            file.begin_read(slot.offset_bytes(), PAGE_SIZE as u64);
        }
    }

    /// Writes images into adjacent slots of one file. Blocks for I/O.
    pub(super) fn write(&self, first: SlotNo, images: &[u8]) -> Result<(), PageStoreError> {
        self.file(first.file())
            .and_then(|file| file.write_at(images, first.offset_bytes()))
            .map_err(|error| io_error(self.place(first), &error))
    }

    /// Makes everything written into a file durable. Blocks for I/O.
    pub(super) fn sync(&self, number: usize) -> Result<(), PageStoreError> {
        self.file(number)
            .and_then(|file| file.sync_data())
            .map_err(|error| io_error(self.path(number).display(), &error))
    }

    /// Adds about `step` slots after the existing `total`, and returns the new total. Blocks for
    /// I/O.
    pub(super) fn grow(&self, total: u32, step: u32) -> Result<u32, PageStoreError> {
        let number = (total / SLOTS_PER_FILE) as usize;
        let slots = (total % SLOTS_PER_FILE).saturating_add(step).min(SLOTS_PER_FILE);
        let new_total = u32::try_from(number as u64 * u64::from(SLOTS_PER_FILE) + u64::from(slots))
            .map_err(|_| io_error(self.directory.display(), &io::ErrorKind::FileTooLarge.into()))?;
        self.lengthen(number, u64::from(slots) * PAGE_SIZE as u64)
            .map_err(|error| io_error(self.path(number).display(), &error))?;
        Ok(new_total)
    }

    fn lengthen(&self, number: usize, length: u64) -> io::Result<()> {
        if number == self.files.read().len() {
            let file = self.disk.open(&self.path(number), OpenMode::CreateNew)?;
            self.files.write().push(file);
        }
        let file = self.file(number)?;
        file.allocate(length)?;
        file.sync_data()?;
        self.disk.sync_directory(&self.directory)
    }
}

/// The error for a call that the operating system refused.
pub(super) fn io_error(place: impl std::fmt::Display, error: &io::Error) -> PageStoreError {
    PageStoreError::Io { place: place.to_string(), reason: error.to_string() }
}
