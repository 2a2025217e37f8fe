//! A disk in memory that keeps exactly the contract of [`firn_base::disk`]. The seed decides
//! everything that the contract leaves open.
//!
//! Every call is a switch point, and takes effect after it. A disk outlives the processes that
//! [mount](SimulatedDisk::mount) it. When the power fails, each sector of a file that was written
//! since the last sync independently takes one of the states that it has had, and so do the names.
//! Unlike a real disk, it never loses synced data, unless a test [flips
//! bits](SimulatedDisk::flip_bit) on the medium.
//!
//! Rule: the one mutex is held only for the effect of a call, never across its switch point.

mod inode;
mod names;
mod sparse;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::disk::{DirectoryLock, Disk, File, OpenMode, SECTOR_BYTES};
use parking_lot::{Mutex, MutexGuard};

use self::inode::Inode;
use self::names::{InodeId, Names};
use crate::random::Random;

/// The name of the lock file in a locked directory.
const LOCK_NAME: &str = "LOCK";
/// The operating system's number for "input/output error".
const INPUT_OUTPUT_ERROR: i32 = 5;

/// Chooses files by their path.
pub type FileFilter = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// Frequencies of faults. Probabilities are per call; the default is a disk without faults.
#[derive(Clone, Default)]
pub struct Faults {
    /// Probability that a sync fails: some of what it covered is lost, and no later sync brings it
    /// back.
    pub sync_failure: f64,
    /// Probability that a write fails, possibly after it was made in part.
    pub write_failure: f64,
    /// Probability that a name cannot be created, renamed or removed.
    pub name_failure: f64,
    /// Probability that a read fails.
    pub read_failure: f64,
    /// Probability that one bit of a read's result is wrong, this time.
    pub read_bit_flip: f64,
    /// The longest time of a call.
    pub max_latency: Duration,
    /// The files that these faults affect; `None`: all. Latency affects every file.
    pub files: Option<FileFilter>,
}

impl Faults {
    fn concern(&self, path: &Path) -> bool {
        self.files.as_ref().is_none_or(|files| files(path))
    }
}

/// Operations on a disk, and faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Successful reads.
    pub reads: u64,
    /// Writes that were made in full.
    pub writes: u64,
    pub written_bytes: u64,
    /// Syncs of files that succeeded.
    pub syncs: u64,
    /// Syncs of directories that succeeded.
    pub directory_syncs: u64,
    /// Faults that were injected, bit flips included.
    pub faults: u64,
    /// Calls refused for lack of space.
    pub refused_for_space: u64,
    pub power_losses: u64,
}

struct State {
    random: Random,
    faults: Faults,
    names: Names,
    inodes: Vec<Inode>,
    locks: BTreeMap<PathBuf, LockOwner>,
    next_owner: u64,
    space_bytes: Option<u64>,
    counters: Counters,
}

/// Owner of a lock: a mount, and the number of the lock.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LockOwner {
    mount: u64,
    lock: u64,
}

/// A simulated disk. All clones refer to the same disk.
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
}

impl SimulatedDisk {
    /// An empty disk without faults, whose choices come from `random`.
    #[must_use]
    pub fn new(random: Random) -> SimulatedDisk {
        let state = State {
            random,
            faults: Faults::default(),
            names: Names::default(),
            inodes: Vec::new(),
            locks: BTreeMap::new(),
            next_owner: 0,
            space_bytes: None,
            counters: Counters::default(),
        };
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// A process's access to the disk.
    #[must_use]
    pub fn mount(&self) -> Mount {
        let mut state = self.state.lock();
        state.next_owner += 1;
        Mount { disk: self.clone(), id: state.next_owner, is_cut: Arc::new(AtomicBool::new(false)) }
    }

    /// Sets the faults of all later calls.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// Limits the size of all files together from now on; existing bytes stay. `None`: no limit.
    pub fn set_space_bytes(&self, bytes: Option<u64>) {
        self.state.lock().space_bytes = bytes;
    }

    /// Bytes that all files take.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Operations since the disk was created.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.state.lock().counters
    }

    /// Cuts the power: the seed decides which unsynced writes survive. The processes that have
    /// mounted the disk must be dead, which [`super::Process::crash`] ensures.
    pub fn lose_power(&self) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.counters.power_losses += 1;
        state.names.lose_power(&state.random);
        let named: BTreeSet<InodeId> = state.names.files().map(|(_, inode)| inode).collect();
        for (id, inode) in state.inodes.iter_mut().enumerate() {
            match named.contains(&id) {
                true => inode.lose_power(&state.random),
                false => *inode = Inode::default(),
            }
        }
        state.locks.clear();
    }

    /// Flips a bit of a file on the medium; false if there is no such byte.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> bool {
        let mut state = self.state.lock();
        let inode = state.names.file(path);
        inode.is_ok_and(|inode| state.inodes[inode].flip_bit(offset, bit))
    }

    /// The bytes of a file that would certainly survive a power loss; `None` if not even its name
    /// would.
    #[must_use]
    pub fn durable_bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state.lock();
        state.names.durable_file(path).map(|inode| state.inodes[inode].durable_bytes())
    }

    /// The paths of all files, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.state.lock().names.files().map(|(path, _)| path.to_owned()).collect()
    }
}

impl State {
    fn used_bytes(&self) -> u64 {
        self.names.files().map(|(_, inode)| self.inodes[inode].reserved_bytes()).sum()
    }

    /// The length up to which a file may grow on its way to `end`.
    fn reach(&self, inode: InodeId, end: u64) -> u64 {
        let Some(space) = self.space_bytes else { return end };
        let own = self.inodes[inode].reserved_bytes();
        let free = space.saturating_sub(self.used_bytes());
        end.min(own + free)
    }

    fn strikes(&mut self, path: &Path, probability: impl Fn(&Faults) -> f64) -> bool {
        let struck = self.faults.concern(path) && self.random.chance(probability(&self.faults));
        self.counters.faults += u64::from(struck);
        struck
    }
}

/// A process's access to the disk, until the process dies.
pub struct Mount {
    disk: SimulatedDisk,
    id: u64,
    is_cut: Arc<AtomicBool>,
}

impl Mount {
    /// Unmounts the disk: every later call fails, and locks are released.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.disk.state.lock().locks.retain(|_, owner| owner.mount != self.id);
    }

    fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        enter(&self.disk, &self.is_cut)
    }

    /// Like [`Mount::enter`], for a call that changes the name `path`.
    fn enter_to_name(&self, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.enter()?;
        match state.strikes(path, |faults| faults.name_failure) {
            true => Err(input_output_error()),
            false => Ok(state),
        }
    }

    fn file(&self, path: &Path, inode: InodeId, writable: bool) -> Arc<dyn File> {
        Arc::new(SimulatedFile {
            disk: self.disk.clone(),
            is_cut: Arc::clone(&self.is_cut),
            path: path.to_owned(),
            inode,
            writable,
        })
    }
}

/// The switch point of every call; after it the call takes effect, unless the process has died.
fn enter<'a>(disk: &'a SimulatedDisk, is_cut: &AtomicBool) -> io::Result<MutexGuard<'a, State>> {
    let latency = {
        let state = disk.state.lock();
        let max_ns = state.faults.max_latency.as_nanos() as u64;
        Duration::from_nanos(if max_ns == 0 { 0 } else { state.random.between(0, max_ns) })
    };
    if latency.is_zero() {
        firn_base::task::yield_now();
    } else {
        firn_base::task::sleep(latency);
    }
    if is_cut.load(Ordering::SeqCst) {
        return Err(io::Error::other("the process that had the disk mounted is dead"));
    }
    Ok(disk.state.lock())
}

fn input_output_error() -> io::Error {
    io::Error::from_raw_os_error(INPUT_OUTPUT_ERROR)
}

impl Disk for Mount {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if mode != OpenMode::CreateNew {
            let inode = self.enter()?.names.file(path)?;
            return Ok(self.file(path, inode, mode == OpenMode::ReadWrite));
        }
        let inode = {
            let mut state = self.enter_to_name(path)?;
            let inode = state.inodes.len();
            state.names.create(path, inode)?;
            state.inodes.push(Inode::default());
            inode
        };
        Ok(self.file(path, inode, true))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.enter_to_name(path)?.names.create_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.enter()?.names.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.enter_to_name(from)?.names.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.enter_to_name(path)?.names.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        let mark = self.disk.state.lock().names.mark();
        let mut state = self.enter()?;
        state.names.check_directory(path)?;
        if state.strikes(path, |faults| faults.sync_failure) {
            return Err(input_output_error());
        }
        state.names.sync(path, mark);
        state.counters.directory_syncs += 1;
        Ok(())
    }

    fn lock_directory(&self, path: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let mut state = self.enter()?;
        state.names.check_directory(path)?;
        if state.locks.contains_key(path) {
            return Err(ErrorKind::WouldBlock.into());
        }
        let inode = state.inodes.len();
        if state.names.create(&path.join(LOCK_NAME), inode).is_ok() {
            state.inodes.push(Inode::default());
        }
        state.next_owner += 1;
        let owner = LockOwner { mount: self.id, lock: state.next_owner };
        state.locks.insert(path.to_owned(), owner);
        Ok(Box::new(SimulatedLock { disk: self.disk.clone(), path: path.to_owned(), owner }))
    }
}

struct SimulatedLock {
    disk: SimulatedDisk,
    path: PathBuf,
    owner: LockOwner,
}

impl DirectoryLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let mut state = self.disk.state.lock();
        if state.locks.get(&self.path) == Some(&self.owner) {
            state.locks.remove(&self.path);
        }
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    is_cut: Arc<AtomicBool>,
    path: PathBuf,
    inode: InodeId,
    writable: bool,
}

impl SimulatedFile {
    fn enter(&self) -> io::Result<MutexGuard<'_, State>> {
        enter(&self.disk, &self.is_cut)
    }

    fn enter_to_write(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.writable { self.enter() } else { Err(ErrorKind::PermissionDenied.into()) }
    }

    /// Writes the bytes before `limit`, where the room ends or the fault strikes. A sector is
    /// written as a whole or not at all.
    fn write_part(&self, state: &mut State, bytes: &[u8], offset: u64, limit: u64) {
        let end = offset + bytes.len() as u64;
        let limit = if limit >= end { end } else { limit - limit % SECTOR_BYTES as u64 };
        let part = limit.saturating_sub(offset) as usize;
        if part > 0 {
            state.inodes[self.inode].write(&bytes[..part], offset);
        }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.enter()?;
        if state.strikes(&self.path, |faults| faults.read_failure) {
            return Err(input_output_error());
        }
        if !state.inodes[self.inode].read(into, offset) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if !into.is_empty() && state.strikes(&self.path, |faults| faults.read_bit_flip) {
            into[state.random.index(into.len())] ^= 1 << state.random.below(8);
        }
        state.counters.reads += 1;
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.enter_to_write()?;
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorKind::FileTooLarge)?;
        if state.strikes(&self.path, |faults| faults.write_failure) {
            let room = state.random.between(offset, end);
            self.write_part(&mut state, bytes, offset, room);
            return Err(input_output_error());
        }
        let room = state.reach(self.inode, end);
        self.write_part(&mut state, bytes, offset, room);
        if room < end {
            state.counters.refused_for_space += 1;
            return Err(ErrorKind::StorageFull.into());
        }
        state.counters.writes += 1;
        state.counters.written_bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mark = self.disk.state.lock().inodes[self.inode].mark();
        let mut state = self.enter()?;
        let struck = state.strikes(&self.path, |faults| faults.sync_failure);
        let state = &mut *state;
        let inode = &mut state.inodes[self.inode];
        if struck {
            inode.fail_sync(mark, &state.random);
            return Err(input_output_error());
        }
        inode.sync(mark);
        state.counters.syncs += 1;
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut state = self.enter_to_write()?;
        if state.reach(self.inode, length) < length {
            state.counters.refused_for_space += 1;
            return Err(ErrorKind::StorageFull.into());
        }
        state.inodes[self.inode].allocate(length);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.enter_to_write()?.inodes[self.inode].set_length(length);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.enter()?.inodes[self.inode].length())
    }
}

#[cfg(test)]
mod tests;
