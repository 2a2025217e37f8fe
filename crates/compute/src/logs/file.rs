//! A file to which many threads append entries at once.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::disk::{Disk, File, OpenMode};

pub(super) struct LogFile {
    path: PathBuf,
    file: Arc<dyn File>,
    /// Where the next entry begins.
    end: AtomicU64,
}

impl LogFile {
    /// Opens a file, and creates it if it does not exist. Blocks.
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> io::Result<LogFile> {
        let file = match disk.open(path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                disk.open(path, OpenMode::CreateNew)?
            }
            opened => opened?,
        };
        let end = AtomicU64::new(file.length()?);
        Ok(LogFile { path: path.to_owned(), file, end })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an entry after all others. Blocks.
    pub(super) fn append(&self, entry: &[u8]) -> io::Result<()> {
        let at = self.end.fetch_add(entry.len() as u64, Ordering::Relaxed);
        self.file.write_at(entry, at)
    }
}
