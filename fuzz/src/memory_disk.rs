//! A file system in memory, for targets that damage the files of a whole directory. It never fails
//! by itself, and everything on it is durable at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode};

type Bytes = Arc<Mutex<Vec<u8>>>;

/// Files by their paths.
#[derive(Default)]
pub struct MemoryDisk {
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
    directories: Mutex<BTreeSet<PathBuf>>,
}

/// What is in the files of a disk.
pub type Contents = BTreeMap<PathBuf, Vec<u8>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl MemoryDisk {
    /// A disk with these files.
    pub fn with(contents: Contents) -> MemoryDisk {
        let disk = MemoryDisk::default();
        for path in contents.keys() {
            let parents = path.ancestors().skip(1).map(Path::to_owned);
            lock(&disk.directories).extend(parents);
        }
        let files = contents.into_iter().map(|(path, bytes)| (path, Arc::new(Mutex::new(bytes))));
        *lock(&disk.files) = files.collect();
        disk
    }

    /// A copy of all files.
    pub fn contents(&self) -> Contents {
        lock(&self.files).iter().map(|(path, bytes)| (path.clone(), lock(bytes).clone())).collect()
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut files = lock(&self.files);
        if mode == OpenMode::CreateNew {
            if files.contains_key(path) {
                return Err(ErrorKind::AlreadyExists.into());
            }
            files.insert(path.to_owned(), Bytes::default());
        }
        let bytes = files.get(path).ok_or(ErrorKind::NotFound)?.clone();
        Ok(Arc::new(MemoryFile { bytes }))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        lock(&self.directories).extend(path.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let directories = lock(&self.directories);
        if !directories.contains(path) {
            return Err(ErrorKind::NotFound.into());
        }
        let files = lock(&self.files);
        let all = files.keys().chain(directories.iter());
        let names: BTreeSet<PathBuf> =
            all.filter(|name| name.parent() == Some(path)).cloned().collect();
        Ok(names.into_iter().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = lock(&self.files);
        let bytes = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        lock(&self.files).remove(path).map(|_| ()).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_directory(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn lock_directory(&self, _path: &Path) -> Result<Box<dyn DirectoryLock>> {
        struct Unlocked;
        impl DirectoryLock for Unlocked {}
        Ok(Box::new(Unlocked))
    }
}

struct MemoryFile {
    bytes: Bytes,
}

/// Larger than any file that a target makes: a greater length came from damaged bytes.
const FILE_LIMIT_BYTES: u64 = 64 << 20;

impl MemoryFile {
    fn grow(&self, length: u64) -> Result<MutexGuard<'_, Vec<u8>>> {
        if length > FILE_LIMIT_BYTES {
            return Err(Error::from(ErrorKind::StorageFull));
        }
        let mut bytes = lock(&self.bytes);
        let length = (length as usize).max(bytes.len());
        bytes.resize(length, 0);
        Ok(bytes)
    }
}

impl File for MemoryFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<()> {
        let bytes = lock(&self.bytes);
        let start = usize::try_from(offset).map_err(|_| ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(into.len()).ok_or(ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes.get(start..end).ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        let mut target = self.grow(end)?;
        target[offset as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, length: u64) -> Result<()> {
        self.grow(length).map(|_| ())
    }

    fn set_length(&self, length: u64) -> Result<()> {
        self.grow(length)?.truncate(length as usize);
        Ok(())
    }

    fn length(&self) -> Result<u64> {
        Ok(lock(&self.bytes).len() as u64)
    }
}
