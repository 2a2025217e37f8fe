//! Files that nothing outlives: each is removed when its last user drops it, and those of a crashed
//! process when their directory is opened again.

use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Disk, File, OpenMode};

/// A directory that holds temporary files and nothing else.
#[derive(Clone)]
pub(super) struct TemporaryDirectory {
    disk: Arc<dyn Disk>,
    path: Arc<Path>,
}

impl TemporaryDirectory {
    /// Makes the directory unless it exists. Files in it stay. Blocks.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path) -> io::Result<TemporaryDirectory> {
        disk.create_directory(path)?;
        Ok(TemporaryDirectory { disk, path: path.into() })
    }

    /// Removes the files of a former process. Blocks.
    ///
    /// # Errors
    /// If the directory cannot be listed or a file in it cannot be removed.
    pub(super) fn clear(&self) -> io::Result<()> {
        self.disk.list(&self.path)?.iter().try_for_each(|name| self.disk.remove(name))
    }

    /// Creates an empty file. Blocks.
    ///
    /// # Errors
    /// If the disk refuses it.
    pub(super) fn create(&self) -> io::Result<TemporaryFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{}-{number}", std::process::id()));
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        Ok(TemporaryFile { disk: Arc::clone(&self.disk), path, file })
    }

    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl std::fmt::Debug for TemporaryDirectory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TemporaryDirectory").field(&self.path).finish()
    }
}

/// An open file that is removed when this is dropped.
pub(super) struct TemporaryFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn File>,
}

impl TemporaryFile {
    /// The file's path, for messages.
    #[must_use]
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for TemporaryFile {
    type Target = dyn File;

    fn deref(&self) -> &(dyn File + 'static) {
        &*self.file
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that stays behind is removed when the node starts again.
        let _ = self.disk.remove(&self.path);
    }
}
