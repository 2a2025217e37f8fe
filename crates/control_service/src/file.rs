//! What a control node has on its disk: vote, snapshot of the catalog, entries.
//!
//! ```text
//!   control.group:  whole │ writes │ writes │ …         frames, each at a multiple of 512 bytes
//!
//!   a frame
//!     0  magic "FnCt"                    8  u64  sequence, 1 for the first frame
//!     4  u16  version                   16  u32  length of the payload
//!     6  u8   1: whole, 2: writes       20  u32  crc32c of bytes 0..20 and of the payload
//!     7  zero                           24  payload, then zeros
//! ```
//!
//! The first frame has everything as of when the file was made; each later one has the writes that
//! were synced together. A file is made under another name, synced, and renamed, so its first frame
//! is always whole. `docs/formats/control_service.md` describes the payloads.
//!
//! Rules:
//!
//! 1. [`MemberFile::append`] and [`MemberFile::replace`] return after the sync. Nothing may be
//!    answered to other members before.
//! 2. What ends the file may be torn, because it was not synced: it is cut off. A torn frame before
//!    a whole one was synced, so the file is damaged, and the node does not start.
//! 3. Each opening makes the file again, so that nothing torn is left behind new frames.
//! 4. After an error other than a full disk nothing is known of the file: the process opens it
//!    again.

mod frame;
mod saved;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode, create_durable_directory};

use frame::{Frame, FrameKind};

pub use frame::written_writes;
pub(crate) use saved::check_any_bytes;
pub use saved::{StoredEntry, StoredWrite, Whole};

/// The file's name in the directory of a control node.
pub const FILE_NAME: &str = "control.group";
const NEW_NAME: &str = "control.group.new";

/// Why the file of a control node cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("another process uses {}; stop it first", path.display())]
    Locked { path: PathBuf },
    #[error(
        "{} has no control node. If it had one, its votes are lost: do not found it again, restore the directory, or let a new node with the role control join",
        path.display()
    )]
    Missing { path: PathBuf },
    #[error(
        "{} is damaged: {what}. Restore it from a copy that is not older, or replace the control node",
        path.display()
    )]
    Damaged { path: PathBuf, what: String },
}

/// The open file of a control node.
pub struct MemberFile {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    file: Arc<dyn File>,
    end: u64,
    sequence: u64,
    /// The bytes of the first frame.
    whole_bytes: u64,
    _lock: Box<dyn DirectoryLock>,
}

impl MemberFile {
    /// Opens the file in a directory, which is made if it is missing. Without a file, begins with
    /// `founding`. Blocks for I/O.
    ///
    /// # Errors
    /// [`FileError`]
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        founding: Option<Whole>,
    ) -> Result<(MemberFile, Whole), FileError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| FileError::Io { path, source }
        };
        create_durable_directory(&**disk, directory).map_err(at(directory))?;
        let lock = disk.lock_directory(directory).map_err(|source| match source.kind() {
            io::ErrorKind::WouldBlock => FileError::Locked { path: directory.to_owned() },
            _ => FileError::Io { path: directory.to_owned(), source },
        })?;
        let path = directory.join(FILE_NAME);
        let whole = match read_all(&**disk, &path).map_err(at(&path))? {
            Some(bytes) => Whole::of_frames(&bytes)
                .map_err(|what| FileError::Damaged { path: path.clone(), what })?,
            None => founding.ok_or_else(|| FileError::Missing { path: directory.to_owned() })?,
        };
        let (file, end) = make(&**disk, directory, &whole).map_err(at(&path))?;
        let (disk, directory) = (Arc::clone(disk), directory.to_owned());
        let file =
            MemberFile { disk, directory, file, end, sequence: 1, whole_bytes: end, _lock: lock };
        Ok((file, whole))
    }

    /// Adds writes, and syncs them. Blocks for I/O.
    ///
    /// # Errors
    /// If the disk is full, nothing was added, and the same call may be repeated. See rule 4.
    pub fn append(&mut self, writes: &[StoredWrite]) -> io::Result<()> {
        let frame = Frame::of(FrameKind::Writes, self.sequence + 1, &writes);
        self.file.write_at(&frame, self.end)?;
        self.file.sync_data()?;
        self.end += frame.len() as u64;
        self.sequence += 1;
        Ok(())
    }

    /// Makes the file again. Blocks for I/O.
    ///
    /// # Errors
    /// As [`MemberFile::append`].
    pub fn replace(&mut self, whole: &Whole) -> io::Result<()> {
        let (file, end) = make(&*self.disk, &self.directory, whole)?;
        (self.file, self.end, self.sequence, self.whole_bytes) = (file, end, 1, end);
        Ok(())
    }

    /// Whether the file has more than `least` bytes, and is mostly writes.
    #[must_use]
    pub fn is_long(&self, least: u64) -> bool {
        self.end > least.max(4 * self.whole_bytes)
    }
}

/// Deletes the file of a member that is in the group no more. Blocks for I/O.
///
/// # Errors
/// If it may still be there.
pub fn forget(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    for name in [NEW_NAME, FILE_NAME] {
        match disk.remove(&directory.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    match disk.sync_directory(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the file with one frame. Returns it with its length.
fn make(disk: &dyn Disk, directory: &Path, whole: &Whole) -> io::Result<(Arc<dyn File>, u64)> {
    let (path, new) = (directory.join(FILE_NAME), directory.join(NEW_NAME));
    match disk.remove(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let frame = Frame::of(FrameKind::Whole, 1, whole);
    let file = disk.open(&new, OpenMode::CreateNew)?;
    file.write_at(&frame, 0)?;
    file.sync_data()?;
    disk.rename(&new, &path)?;
    disk.sync_directory(directory)?;
    Ok((file, frame.len() as u64))
}

/// The bytes of a file; `None` if there is none.
fn read_all(disk: &dyn Disk, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; usize::try_from(file.length()?).expect("a file that fits")];
    file.read_at(&mut bytes, 0)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests;
