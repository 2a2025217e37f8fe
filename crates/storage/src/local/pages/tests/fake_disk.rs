//! A file system in memory that loses unsynced data, fills up and fails syncs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode, SECTOR_BYTES};
use firn_base::random::{RandomSource, SplitMix};
use parking_lot::Mutex;

type Names = BTreeMap<PathBuf, Arc<FakeFile>>;

#[derive(Default)]
struct Bytes {
    current: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync: offset and bytes.
    unsynced: Vec<(usize, Vec<u8>)>,
}

#[derive(Default)]
pub(super) struct FakeFile {
    bytes: Mutex<Bytes>,
    faults: Arc<Faults>,
}

pub(super) struct Faults {
    /// Number of syncs that fail, after `good_syncs`.
    pub(super) failing_syncs: AtomicU32,
    /// Number of syncs that succeed before one fails.
    pub(super) good_syncs: AtomicU32,
    /// Most bytes of all files together.
    pub(super) capacity: AtomicU64,
    pub(super) used: AtomicU64,
}

impl Default for Faults {
    fn default() -> Faults {
        Faults {
            failing_syncs: AtomicU32::new(0),
            good_syncs: AtomicU32::new(0),
            capacity: AtomicU64::new(u64::MAX),
            used: AtomicU64::new(0),
        }
    }
}

#[derive(Default)]
pub(super) struct FakeDisk {
    names: Mutex<Names>,
    durable_names: Mutex<Names>,
    pub(super) faults: Arc<Faults>,
}

impl FakeDisk {
    /// The disk after a power loss: each sector of an unsynced write is there or not.
    pub(super) fn after_power_loss(&self, random: &SplitMix) -> FakeDisk {
        let (names, durable) = (self.names.lock(), self.durable_names.lock());
        let mut left = Names::new();
        let mut all: Vec<&PathBuf> = names.keys().chain(durable.keys()).collect();
        all.sort();
        all.dedup();
        for path in all {
            let found = if coin(random) { names.get(path) } else { durable.get(path) };
            if let Some(file) = found {
                left.insert(path.clone(), Arc::new(file.after_power_loss(random)));
            }
        }
        let disk = FakeDisk::default();
        for file in left.values() {
            disk.faults.used.fetch_add(file.bytes.lock().current.len() as u64, Ordering::Relaxed);
        }
        let rehomed = left.into_iter().map(|(path, file)| {
            let bytes = Mutex::new(std::mem::take(&mut *file.bytes.lock()));
            (path, Arc::new(FakeFile { bytes, faults: Arc::clone(&disk.faults) }))
        });
        let rehomed: Names = rehomed.collect();
        *disk.names.lock() = rehomed.clone();
        *disk.durable_names.lock() = rehomed;
        disk
    }

    /// Changes existing bytes.
    pub(super) fn damage(&self, path: &Path, offset: usize, length: usize) {
        let names = self.names.lock();
        let mut bytes = names[path].bytes.lock();
        bytes.current[offset..offset + length].iter_mut().for_each(|byte| *byte ^= 0xff);
        let end = (offset + length).min(bytes.durable.len());
        if offset < end {
            bytes.durable[offset..end].iter_mut().for_each(|byte| *byte ^= 0xff);
        }
    }

    /// Where the zeros at the end of a file begin.
    pub(super) fn contents_end(&self, path: &Path) -> usize {
        let names = self.names.lock();
        let bytes = names[path].bytes.lock();
        bytes.current.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.names.lock().keys().cloned().collect()
    }
}

pub(super) fn coin(random: &SplitMix) -> bool {
    random.next_u64().is_multiple_of(2)
}

impl FakeFile {
    fn after_power_loss(&self, random: &SplitMix) -> FakeFile {
        let bytes = self.bytes.lock();
        let mut left = bytes.durable.clone();
        let all_or_nothing = [Some(true), Some(false), None][(random.next_u64() % 3) as usize];
        for (offset, written) in &bytes.unsynced {
            let mut position = *offset;
            for sector in sectors(*offset, written) {
                if all_or_nothing.unwrap_or_else(|| coin(random)) {
                    put(&mut left, position, sector);
                }
                position += sector.len();
            }
        }
        let (current, durable) = (left.clone(), left);
        let bytes = Mutex::new(Bytes { current, durable, unsynced: Vec::new() });
        FakeFile { bytes, faults: Arc::default() }
    }

    fn claim(&self, bytes: &Bytes, length: usize) -> io::Result<()> {
        let more = length.saturating_sub(bytes.current.len()) as u64;
        let used = self.faults.used.load(Ordering::Relaxed);
        if more > 0 && used + more > self.faults.capacity.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.faults.used.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }
}

fn sectors(offset: usize, bytes: &[u8]) -> Vec<&[u8]> {
    let head = (SECTOR_BYTES - offset % SECTOR_BYTES).min(bytes.len());
    let (head, rest) = bytes.split_at(head);
    std::iter::once(head).chain(rest.chunks(SECTOR_BYTES)).collect()
}

fn put(into: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if into.len() < end {
        into.resize(end, 0);
    }
    into[offset..end].copy_from_slice(bytes);
}

struct Handle(Arc<FakeFile>);

impl File for Handle {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.bytes.lock();
        let offset = offset as usize;
        let found = bytes.current.get(offset..offset + into.len());
        into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, written: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.0.bytes.lock();
        self.0.claim(&bytes, offset as usize + written.len())?;
        put(&mut bytes.current, offset as usize, written);
        bytes.unsynced.push((offset as usize, written.to_vec()));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut bytes = self.0.bytes.lock();
        let failing = &self.0.faults.failing_syncs;
        let good = &self.0.faults.good_syncs;
        if good.load(Ordering::Relaxed) > 0 {
            good.fetch_sub(1, Ordering::Relaxed);
        } else if failing.load(Ordering::Relaxed) > 0 {
            let left = failing.fetch_sub(1, Ordering::Relaxed);
            // Written data stays visible. It may be durable by chance, but no later sync makes it
            // durable.
            for (offset, written) in std::mem::take(&mut bytes.unsynced) {
                if left.is_multiple_of(2) {
                    put(&mut bytes.durable, offset, &written);
                }
            }
            return Err(io::Error::other("input/output error"));
        }
        for (offset, written) in std::mem::take(&mut bytes.unsynced) {
            put(&mut bytes.durable, offset, &written);
        }
        let length = bytes.current.len().max(bytes.durable.len());
        bytes.durable.resize(length, 0);
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut bytes = self.0.bytes.lock();
        self.0.claim(&bytes, length as usize)?;
        let length = bytes.current.len().max(length as usize);
        bytes.current.resize(length, 0);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.bytes.lock().current.resize(length as usize, 0);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.bytes.lock().current.len() as u64)
    }
}

struct NoLock;

impl DirectoryLock for NoLock {}

impl Disk for FakeDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut names = self.names.lock();
        let file = match (names.get(path), mode) {
            (Some(_), OpenMode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Arc::clone(file),
            (None, OpenMode::CreateNew) => {
                let faults = Arc::clone(&self.faults);
                let file = Arc::new(FakeFile { bytes: Mutex::default(), faults });
                names.insert(path.to_owned(), Arc::clone(&file));
                file
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(Handle(file)))
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let names = self.names.lock();
        Ok(names.keys().filter(|name| name.parent() == Some(path)).cloned().collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut names = self.names.lock();
        let file = names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let file = self.names.lock().remove(path).ok_or(io::ErrorKind::NotFound)?;
        let length = file.bytes.lock().current.len() as u64;
        self.faults.used.fetch_sub(length, Ordering::Relaxed);
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        *self.durable_names.lock() = self.names.lock().clone();
        Ok(())
    }

    fn lock_directory(&self, _: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        Ok(Box::new(NoLock))
    }
}
