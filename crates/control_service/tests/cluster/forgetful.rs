//! A disk that breaks its promise for some writes of a control node, on purpose.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode};
use firn_control_service::file::{StoredWrite, written_writes};

/// A bug that is put in on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// What has no entries is not synced.
    VoteNotSynced,
    /// What has entries is not synced.
    EntriesNotSynced,
}

impl Bug {
    fn forgets(self, writes: &[StoredWrite]) -> bool {
        let has_entries = writes.iter().any(|write| !write.append.is_empty());
        match self {
            Bug::None => false,
            Bug::VoteNotSynced => !has_entries,
            Bug::EntriesNotSynced => has_entries,
        }
    }
}

pub(crate) struct ForgetfulDisk {
    pub(crate) inner: Arc<dyn Disk>,
    pub(crate) bug: Bug,
}

struct ForgetfulFile {
    inner: Arc<dyn File>,
    bug: Bug,
    /// The last write is not to be synced.
    forgets: AtomicBool,
}

impl Disk for ForgetfulDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        Ok(Arc::new(ForgetfulFile { inner, bug: self.bug, forgets: AtomicBool::new(false) }))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_directory(path)
    }

    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.inner.lock_directory(path)
    }
}

impl File for ForgetfulFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let forgets = written_writes(bytes).is_some_and(|writes| self.bug.forgets(&writes));
        self.forgets.store(forgets, Ordering::SeqCst);
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.forgets.load(Ordering::SeqCst) {
            true => Ok(()),
            false => self.inner.sync_data(),
        }
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.inner.set_length(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }
}
