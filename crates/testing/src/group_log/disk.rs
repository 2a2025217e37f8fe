//! The disk of one member: what is synced survives a loss of power, what is only written may not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use firn_api::{LogError, Room, Watermarks};
use firn_base::{Lsn, task};
use firn_consensus::{Base, Entry, Saved, Write};
use firn_format::redo::Group;
use firn_storage::group::MemberLog;
use parking_lot::Mutex;

use crate::random::Random;

/// How long a disk that is stalled waits before it looks again.
const STALL: Duration = Duration::from_micros(500);

/// A promise that a disk breaks on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// A sync returns, and nothing is synced.
    NotSynced,
}

/// A disk, which outlives the processes that use it. Clones are the same disk.
#[derive(Clone)]
pub struct MemberDisk {
    state: Arc<Mutex<State>>,
}

struct State {
    random: Random,
    max_delay: Duration,
    fault: Option<DiskFault>,
    synced: Image,
    written: Image,
    /// Writes that `written` has and `synced` has not, in order.
    unsynced: VecDeque<Unsynced>,
    /// Watermarks of log that the member did not get. A restart writes them.
    foreign: Watermarks,
    durable: Lsn,
    /// The highest durable position that any life of the member has reported.
    reported: Lsn,
    is_stalled: bool,
    is_full: bool,
}

struct Unsynced {
    write: Write,
    bytes: Vec<u8>,
    /// What a restart writes besides.
    watermarks: Watermarks,
}

/// What is on the disk.
#[derive(Clone)]
struct Image {
    saved: Saved,
    /// The log from the base on.
    bytes: Vec<u8>,
    /// Of the released log.
    watermarks: Watermarks,
}

impl MemberDisk {
    /// An empty disk of a founder of the group, whose syncs take up to `max_delay`.
    #[must_use]
    pub fn new(base: Base, random: Random, max_delay: Duration) -> MemberDisk {
        let image = Image {
            saved: Saved::empty(base),
            bytes: Vec::new(),
            watermarks: Watermarks::default(),
        };
        let state = State {
            random,
            max_delay,
            fault: None,
            synced: image.clone(),
            written: image,
            unsynced: VecDeque::new(),
            foreign: Watermarks::default(),
            durable: Lsn(0),
            reported: Lsn::FIRST,
            is_stalled: false,
            is_full: false,
        };
        MemberDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The disk breaks this promise from now on.
    pub fn set_fault(&self, fault: Option<DiskFault>) {
        self.state.lock().fault = fault;
    }

    /// Syncs do not end until they may again.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.state.lock().is_stalled = is_stalled;
    }

    /// The disk has no room for log until it has again.
    pub fn set_full(&self, is_full: bool) {
        self.state.lock().is_full = is_full;
    }

    /// The machine has lost power: of the writes that were not synced, a beginning may be there.
    pub fn lose_power(&self) {
        let mut state = self.state.lock();
        let surviving = state.random.index(state.unsynced.len() + 1);
        state.sync(surviving);
        state.unsynced.clear();
        state.written = state.synced.clone();
        state.foreign = Watermarks::default();
        state.durable = Lsn(0);
        (state.is_stalled, state.is_full) = (false, false);
    }

    pub(super) fn reported(&self) -> Lsn {
        self.state.lock().reported
    }

    /// The kept log from `from` up to the highest position that was reported as durable.
    pub(super) fn reported_log(&self, from: Lsn) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let begin = state.written.saved.base.lsn;
        let end = state.reported.min(state.written.end());
        if from < begin {
            return None;
        }
        let range = from.since(begin) as usize..end.max(from).since(begin) as usize;
        Some(state.written.bytes.get(range).map_or_else(Vec::new, <[u8]>::to_vec))
    }

    /// The synced entries with the base before them, to compare members.
    #[must_use]
    pub fn synced(&self) -> Saved {
        self.state.lock().synced.saved.clone()
    }
}

impl State {
    /// The first `count` of the unsynced writes are on the disk for good.
    fn sync(&mut self, count: usize) {
        for _ in 0..count {
            let Some(one) = self.unsynced.pop_front() else { return };
            self.synced.put(&one.write, &one.bytes, one.watermarks);
        }
    }
}

impl Image {
    fn end(&self) -> Lsn {
        self.saved.base.lsn.advance(self.bytes.len() as u64)
    }

    fn put(&mut self, write: &Write, bytes: &[u8], watermarks: Watermarks) {
        let saved = &mut self.saved;
        saved.vote = write.vote.unwrap_or(saved.vote);
        saved.durable = write.durable;
        if let Some(base) = &write.restart {
            raise(&mut self.watermarks, &self.bytes);
            self.watermarks.raise(watermarks);
            saved.base = base.clone();
            saved.entries.clear();
            self.bytes.clear();
        }
        if let Some((first, start)) = write.truncate {
            saved.entries.retain(|entry| entry.index < first);
            self.bytes.truncate(start.since(saved.base.lsn) as usize);
        }
        saved.entries.extend(write.append.iter().cloned());
        self.bytes.extend_from_slice(bytes);
        let end = self.saved.entries.last().map_or(self.saved.base.lsn, Entry::end);
        assert_eq!(self.end(), end, "the bytes are those of the entries");
    }

    /// Forgets entries that end before `lsn`.
    fn release(&mut self, lsn: Lsn) {
        let gone = self.saved.entries.iter().take_while(|entry| entry.end() < lsn).count();
        let before = self.saved.base.lsn;
        for entry in self.saved.entries.drain(..gone) {
            self.saved.base.pass(&entry);
        }
        let length = self.saved.base.lsn.since(before) as usize;
        raise(&mut self.watermarks, &self.bytes[..length]);
        self.bytes.drain(..length);
        self.saved.durable = self.saved.durable.max(self.saved.base.index);
    }
}

fn raise(watermarks: &mut Watermarks, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let group = Group::parse(bytes).expect("entries are whole groups");
        watermarks.raise_by_group(&group).expect("the groups are good");
        bytes = &bytes[group.length_bytes() as usize..];
    }
}

impl MemberLog for MemberDisk {
    fn saved(&self) -> Saved {
        self.state.lock().written.saved.clone()
    }

    fn write(&self, write: &Write, bytes: &[u8]) -> Result<(), LogError> {
        task::yield_now();
        let mut state = self.state.lock();
        if state.is_full && !write.append.is_empty() {
            let (place, reason) = ("a simulated disk".to_owned(), "it is full".to_owned());
            return Err(LogError::NoRoom { place, reason });
        }
        let watermarks = state.foreign;
        state.written.put(write, bytes, watermarks);
        state.unsynced.push_back(Unsynced {
            write: write.clone(),
            bytes: bytes.to_vec(),
            watermarks,
        });
        Ok(())
    }

    fn sync(&self) -> Result<(), LogError> {
        let (count, delay) = {
            let state = self.state.lock();
            let most = state.max_delay.as_nanos() as u64;
            (state.unsynced.len(), Duration::from_nanos(state.random.below(most + 1)))
        };
        task::sleep(delay);
        while self.state.lock().is_stalled {
            task::sleep(STALL);
        }
        let mut state = self.state.lock();
        if state.fault != Some(DiskFault::NotSynced) {
            state.sync(count);
        }
        Ok(())
    }

    fn read(&self, from: Lsn, to: Lsn, into: &mut Vec<u8>) -> Result<(), LogError> {
        task::yield_now();
        let state = self.state.lock();
        let (begin, end) = (state.written.saved.base.lsn, state.written.end());
        if from < begin || to > end {
            return Err(LogError::OutOfRange { position: from, from: begin, to: end });
        }
        let range = from.since(begin) as usize..to.since(begin) as usize;
        into.extend_from_slice(&state.written.bytes[range]);
        Ok(())
    }

    fn set_durable(&self, lsn: Lsn) {
        let mut state = self.state.lock();
        assert!(lsn >= state.durable, "the durable position goes back");
        state.durable = lsn;
        state.reported = state.reported.max(lsn);
    }

    fn release(&self, lsn: Lsn) -> Lsn {
        task::yield_now();
        let mut state = self.state.lock();
        let lsn = lsn.min(state.durable);
        state.written.release(lsn);
        state.synced.release(lsn);
        state.written.saved.base.lsn
    }

    fn raise_watermarks(&self, watermarks: Watermarks) {
        self.state.lock().foreign.raise(watermarks);
    }

    fn watermarks(&self) -> Result<Watermarks, LogError> {
        let state = self.state.lock();
        let mut watermarks = state.written.watermarks;
        raise(&mut watermarks, &state.written.bytes);
        Ok(watermarks)
    }

    fn room(&self) -> Result<Room, LogError> {
        Ok(if self.state.lock().is_full { Room::Scarce } else { Room::Plenty })
    }

    fn close(&self) {}
}
