//! The disk of one member: writes become durable in order, and a loss of power forgets the rest.

use std::collections::VecDeque;

use firn_consensus::{Base, Entry, Index, Saved, Write, WriteNumber};

pub(crate) struct Disk {
    saved: Saved,
    unsynced: VecDeque<Write>,
}

impl Disk {
    pub(crate) fn new(base: Base) -> Disk {
        Disk { saved: Saved::empty(base), unsynced: VecDeque::new() }
    }

    pub(crate) fn write(&mut self, write: Write) {
        self.unsynced.push_back(write);
    }

    /// Makes the oldest write durable.
    pub(crate) fn sync_one(&mut self) -> Option<WriteNumber> {
        let write = self.unsynced.pop_front()?;
        let number = write.number;
        put(&mut self.saved, write);
        Some(number)
    }

    /// Loses power: the first `surviving` of the writes that were not synced are there all the
    /// same, the others are gone.
    pub(crate) fn crash(&mut self, surviving: usize) {
        for _ in 0..surviving {
            self.sync_one();
        }
        self.unsynced.clear();
    }

    pub(crate) fn unsynced(&self) -> usize {
        self.unsynced.len()
    }

    pub(crate) fn saved(&self) -> &Saved {
        &self.saved
    }

    /// The synced entry at `index`.
    pub(crate) fn entry(&self, index: Index) -> Option<&Entry> {
        let place = index.0.checked_sub(self.saved.base.index.0 + 1)?;
        self.saved.entries.get(place as usize)
    }

    pub(crate) fn last(&self) -> Index {
        Index(self.saved.base.index.0 + self.saved.entries.len() as u64)
    }
}

/// Changes the durable state as a write says.
fn put(saved: &mut Saved, write: Write) {
    saved.vote = write.vote.unwrap_or(saved.vote);
    saved.durable = write.durable;
    if let Some(base) = write.restart {
        saved.base = base;
        saved.entries.clear();
    }
    if let Some((first, start)) = write.truncate {
        let place = (first.0 - saved.base.index.0 - 1) as usize;
        assert_eq!(saved.entries[place].start, start, "the cut is where the entry begins");
        saved.entries.truncate(place);
    }
    for entry in write.append {
        let end = saved.entries.last().map_or(saved.base.lsn, Entry::end);
        assert_eq!(entry.start, end, "entries follow each other");
        saved.entries.push(entry);
    }
}
