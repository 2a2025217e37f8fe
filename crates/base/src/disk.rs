//! Files, injected into the process.
//!
//! A caller may rely on these rules. The simulated disk exercises everything that they leave open:
//!
//! * a write is durable only after [`File::sync_data`] returned `Ok`; until then it may survive, be
//!   lost, or survive in part (whole sectors of [`SECTOR_BYTES`]), in any order with other writes;
//! * one sector is written as a whole or not at all;
//! * a created, renamed or removed name is durable only after [`Disk::sync_directory`] of its
//!   parent;
//! * a sync covers what was written before it was called, no more;
//! * after a failed `sync_data` nothing is known about what was written since the last good one,
//!   and a later sync that succeeds says nothing about it either: the operating system may have
//!   dropped it.

mod spill;
mod temporary;
mod write_back;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::pool_thread;

pub use spill::{SpillArea, SpillDirectory, SpilledFile};

/// The unit that a disk writes as a whole.
pub const SECTOR_BYTES: usize = 512;

/// Whether a file must exist when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist. Reads only.
    Read,
    /// The file must exist.
    ReadWrite,
    /// The file must not exist.
    CreateNew,
}

/// An open file. All calls block; none moves a shared position.
pub trait File: Send + Sync {
    /// Reads exactly `into.len()` bytes at `offset`; `UnexpectedEof` if the file is shorter.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;

    /// Asks that `length` bytes at `offset` be read into the operating system's memory soon, so
    /// that a read finds them there. Reports no error, and does not wait for the disk.
    fn begin_read(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written so far durable (`fdatasync`).
    fn sync_data(&self) -> io::Result<()>;

    /// Asks the disk to start writing `length` bytes at `offset`, so that a later sync finds less
    /// to do. Promises no durability, reports no error, and does not wait for the disk.
    fn begin_write_back(&self, offset: u64, length: u64) {
        let _ = (offset, length);
    }

    /// Reserves room for the first `length` bytes, extends the file with zeros if it is shorter,
    /// and never shortens it. `StorageFull` if there is no room.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Cuts the file to `length` bytes or extends it with a hole.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// The file's length in bytes.
    fn length(&self) -> io::Result<u64>;
}

/// A held lock on a directory. Dropping it releases the lock.
pub trait DirectoryLock: Send + Sync {}

pub trait Disk: Send + Sync {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// Creates a directory and its parents; no error if it exists.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, sorted.
    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>>;

    /// Renames a file, replacing what was there.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Locks the directory for this process; `WouldBlock` if another process holds the lock.
    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>>;
}

/// Makes a directory, if it is missing, with a durable name: a power cut does not take it away with
/// what was synced in it. Its parent is durable, unless it is made as well. Blocks for I/O.
///
/// # Errors
/// If the directory cannot be made, or its name not be synced.
pub fn create_durable_directory(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    disk.create_directory(directory)?;
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => disk.sync_directory(parent),
        _ => Ok(()),
    }
}

/// The operating system's file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemDisk;

struct SystemFile(fs::File);

impl File for SystemFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        pool_thread::wait(|| self.0.read_exact_at(into, offset))
    }

    fn begin_read(&self, offset: u64, length: u64) {
        let length = std::num::NonZeroU64::new(length);
        // A hint: a file system that ignores it reads when the caller reads.
        let _ = rustix::fs::fadvise(&self.0, offset, length, rustix::fs::Advice::WillNeed);
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        pool_thread::wait(|| self.0.write_all_at(bytes, offset))
    }

    fn sync_data(&self) -> io::Result<()> {
        pool_thread::wait(|| self.0.sync_data())
    }

    fn begin_write_back(&self, offset: u64, length: u64) {
        write_back::begin(&self.0, offset, length);
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(()); // the system call refuses an empty range
        }
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.0, flags, 0, length)) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                allocate_by_writing(&self.0, length)
            }
            done => Ok(done?),
        }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// Only the owner writes files and the group reads them; others have no access.
const FILE_MODE: u32 = 0o640;
/// As [`FILE_MODE`], for directories.
const DIRECTORY_MODE: u32 = 0o750;

/// Bytes in one write of zeros.
const ZEROS_BYTES: u64 = 1 << 20;

/// Reserves room on a file system without `fallocate`, by writing zeros after the file's end. On
/// failure the file returns to its former length, which frees the zeros that were written.
fn allocate_by_writing(file: &fs::File, length: u64) -> io::Result<()> {
    let start = file.metadata()?.len();
    let zeros = vec![0; length.saturating_sub(start).min(ZEROS_BYTES) as usize];
    let mut end = start;
    while end < length {
        let piece = (length - end).min(ZEROS_BYTES);
        if let Err(error) = file.write_all_at(&zeros[..piece as usize], end) {
            // The first error is more useful than a failed clean-up's.
            let _ = file.set_len(start);
            return Err(error);
        }
        end += piece;
    }
    Ok(())
}

struct SystemDirectoryLock {
    _locked: fs::File,
}

impl DirectoryLock for SystemDirectoryLock {}

impl Disk for SystemDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(mode != OpenMode::Read).create_new(mode == OpenMode::CreateNew);
        options.mode(FILE_MODE);
        let mut silent = options.clone();
        // Without this, a read updates the access time, and the next sync writes the inode too.
        silent.custom_flags(rustix::fs::OFlags::NOATIME.bits() as i32);
        let file = match silent.open(path) {
            // Only the file's owner may set this flag.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path)?,
            file => file?,
        };
        Ok(Arc::new(SystemFile(file)))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let mut names = fs::read_dir(path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(FILE_MODE)
            .open(path.join("LOCK"))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        Ok(Box::new(SystemDirectoryLock { _locked: file }))
    }
}

#[cfg(test)]
mod tests;
