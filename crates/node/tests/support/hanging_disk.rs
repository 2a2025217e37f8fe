//! The system's disk, whose syncs can hang or fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode, SystemDisk};
use firn_base::event::Event;

/// The least time of a sync: a directory in memory would have none.
const SYNC: Duration = Duration::from_micros(200);

/// Whether the disk hangs, or fails.
#[derive(Default)]
pub(crate) struct Hang {
    hangs: AtomicBool,
    fails: AtomicBool,
    /// How many syncs hang.
    waiting: AtomicUsize,
    changed: Event,
}

impl Hang {
    pub(crate) fn begin(&self) {
        self.hangs.store(true, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.hangs.store(false, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Syncs fail from now on, as soon as the disk does not hang.
    pub(crate) fn fail(&self) {
        self.fails.store(true, Ordering::SeqCst);
    }

    /// Waits until a sync hangs.
    pub(crate) fn wait_until_met(&self) {
        self.changed.wait_until(None, || self.waiting.load(Ordering::SeqCst) > 0);
    }

    fn wait(&self) {
        if !self.hangs.load(Ordering::SeqCst) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.changed.notify_all();
        self.changed.wait_until(None, || !self.hangs.load(Ordering::SeqCst));
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The system's disk, whose syncs can hang.
pub(crate) struct HangingDisk(pub(crate) Arc<Hang>);

struct HangingFile(Arc<dyn File>, Arc<Hang>);

impl File for HangingFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.1.wait();
        if self.1.fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("the disk is broken"));
        }
        firn_base::task::sleep(SYNC);
        self.0.sync_data()
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.0.allocate(length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
}

impl Disk for HangingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = SystemDisk.open(path, mode)?;
        Ok(Arc::new(HangingFile(file, Arc::clone(&self.0))))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        SystemDisk.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        SystemDisk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.wait();
        SystemDisk.sync_directory(path)
    }

    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        SystemDisk.lock_directory(path)
    }
}
