//! A file: the content of the medium, the content that the operating system shows, and the changes
//! between them.
//!
//! ```text
//!   durable  ──change──change──change──►  cached
//!               1         2        3
//!   sync called here ─────┘  (3 came later: not covered)
//!   power loss: every sector goes back to the state before some change that touched it,
//!               the length to the state before some change of the length
//! ```
//!
//! Invariant: `cached` is `durable` with all `changes` applied, except for what a failed sync
//! leaves behind: content that is shown, although no change will bring it to the medium.

use std::collections::{HashMap, VecDeque};

use firn_base::disk::SECTOR_BYTES;

use super::sparse::Sparse;
use crate::random::Random;

#[derive(Debug)]
enum Change {
    Write { offset: u64, bytes: Box<[u8]> },
    Length(u64),
}

/// Which of the unsynced changes survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Survival {
    Nothing,
    Everything,
    /// The first changes survive, the others do not.
    Prefix,
    /// Each sector survives or not, independently.
    Scattered,
}

impl Survival {
    pub(super) fn draw(random: &Random) -> Survival {
        use Survival::{Everything, Nothing, Prefix, Scattered};
        *random.pick(&[Nothing, Everything, Prefix, Scattered, Scattered])
    }
}

#[derive(Debug, Default)]
pub(super) struct Inode {
    durable: Sparse,
    cached: Sparse,
    changes: VecDeque<Change>,
    /// The number of changes that were removed from the front of `changes`.
    settled: u64,
    /// Bytes at the front for which the disk has reserved room.
    reserved_bytes: u64,
}

impl Inode {
    pub(super) fn length(&self) -> u64 {
        self.cached.length()
    }

    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    pub(super) fn durable_bytes(&self) -> Vec<u8> {
        self.durable.to_vec()
    }

    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> bool {
        self.cached.read(into, offset)
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        self.cached.write(bytes, offset);
        self.changes.push_back(Change::Write { offset, bytes: bytes.into() });
        self.reserve(offset + bytes.len() as u64);
    }

    pub(super) fn set_length(&mut self, length: u64) {
        self.cached.set_length(length);
        self.changes.push_back(Change::Length(length));
        self.reserved_bytes = self.reserved_bytes.min(length);
    }

    pub(super) fn allocate(&mut self, length: u64) {
        if length > self.length() {
            self.set_length(length);
        }
        self.reserve(length);
    }

    fn reserve(&mut self, end: u64) {
        self.reserved_bytes = self.reserved_bytes.max(end);
    }

    /// The number of changes so far, which a sync that is called now covers.
    pub(super) fn mark(&self) -> u64 {
        self.settled + self.changes.len() as u64
    }

    /// Brings the changes before `mark` to the medium.
    pub(super) fn sync(&mut self, mark: u64) {
        for change in self.take_changes(mark) {
            apply(&mut self.durable, &change);
        }
    }

    /// Fails a sync: some of the changes before `mark` reach the medium, and the system considers
    /// all of them saved. It may still show them, or the content of the medium.
    pub(super) fn fail_sync(&mut self, mark: u64, random: &Random) {
        let changes = self.take_changes(mark);
        survive(&mut self.durable, &changes, Survival::Scattered, random);
        if random.chance(0.5) {
            self.cached = self.durable.clone();
            for change in &self.changes {
                apply(&mut self.cached, change);
            }
        }
    }

    fn take_changes(&mut self, mark: u64) -> Vec<Change> {
        let count = mark.saturating_sub(self.settled).min(self.changes.len() as u64);
        self.settled += count;
        self.changes.drain(..count as usize).collect()
    }

    /// Cuts the power and restores it.
    pub(super) fn lose_power(&mut self, random: &Random) {
        let changes = self.take_changes(self.mark());
        survive(&mut self.durable, &changes, Survival::draw(random), random);
        self.cached = self.durable.clone();
        self.reserved_bytes = self.durable.length();
    }

    /// Flips one bit on the medium and in the cache; false if there is no such byte.
    pub(super) fn flip_bit(&mut self, offset: u64, bit: u8) -> bool {
        let mut found = false;
        for contents in [&mut self.durable, &mut self.cached] {
            let mut byte = [0];
            if contents.read(&mut byte, offset) {
                contents.write(&[byte[0] ^ (1 << bit)], offset);
                found = true;
            }
        }
        found
    }
}

fn apply(contents: &mut Sparse, change: &Change) {
    match change {
        Change::Write { offset, bytes } => contents.write(bytes, *offset),
        Change::Length(length) => contents.set_length(*length),
    }
}

fn survive(durable: &mut Sparse, changes: &[Change], survival: Survival, random: &Random) {
    match survival {
        Survival::Nothing => {}
        Survival::Everything => changes.iter().for_each(|change| apply(durable, change)),
        Survival::Prefix if changes.is_empty() => {}
        Survival::Prefix => {
            let whole = random.index(changes.len());
            changes[..whole].iter().for_each(|change| apply(durable, change));
            scatter(durable, &changes[whole..=whole], random);
        }
        Survival::Scattered => scatter(durable, changes, random),
    }
}

/// Sets every sector to a random one of its states, and the length likewise.
fn scatter(durable: &mut Sparse, changes: &[Change], random: &Random) {
    let lengths = lengths(durable.length(), changes);
    let length_changes = random.index(lengths.len());
    let mut surviving = surviving_writes(changes, random);
    for (index, change) in changes.iter().enumerate() {
        match change {
            Change::Length(length) if index < length_changes => durable.set_length(*length),
            Change::Length(_) => {}
            Change::Write { offset, bytes } => {
                for (sector, at, piece) in sectors(*offset, bytes) {
                    let left = surviving.get_mut(&sector).expect("every written sector is counted");
                    if *left > 0 {
                        *left -= 1;
                        durable.write(piece, at);
                    }
                }
            }
        }
    }
    durable.set_length(lengths[length_changes]);
}

/// The length before the first change and after each.
fn lengths(before: u64, changes: &[Change]) -> Vec<u64> {
    let mut lengths = vec![before];
    for change in changes {
        let last = lengths[lengths.len() - 1];
        lengths.push(match change {
            Change::Write { offset, bytes } => last.max(offset + bytes.len() as u64),
            Change::Length(length) => *length,
        });
    }
    lengths
}

/// For each sector, how many of the writes to it have reached the medium.
fn surviving_writes(changes: &[Change], random: &Random) -> HashMap<u64, u64> {
    let mut written: Vec<u64> = Vec::new();
    for change in changes {
        if let Change::Write { offset, bytes } = change {
            written.extend(sectors(*offset, bytes).map(|(sector, ..)| sector));
        }
    }
    written.sort_unstable();
    let runs = written.chunk_by(|a, b| a == b);
    runs.map(|run| (run[0], random.between(0, run.len() as u64))).collect()
}

/// Cuts a write at sector boundaries: sector, offset of the piece, piece.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, u64, &[u8])> {
    const SECTOR: u64 = SECTOR_BYTES as u64;
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let room = (SECTOR - at % SECTOR) as usize;
        let piece = &bytes[done..bytes.len().min(done + room)];
        done += piece.len();
        (!piece.is_empty()).then_some((at / SECTOR, at, piece))
    })
}

#[cfg(test)]
mod tests;
