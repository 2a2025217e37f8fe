//! The newest log of a member, in memory: all of it that is not on the disk yet, and some more for
//! members that are a little behind.

use std::collections::VecDeque;
use std::sync::Arc;

use firn_base::Lsn;
use firn_consensus::Entry;

use super::peers::{EntryBytes, EntryLog};

/// The log of consecutive entries.
#[derive(Debug)]
pub(super) struct RecentLog {
    entries: VecDeque<(Lsn, EntryBytes)>,
    bytes: usize,
    /// How many bytes stay although they are on the disk.
    limit_bytes: usize,
}

impl RecentLog {
    pub(super) fn new(limit_bytes: usize) -> RecentLog {
        RecentLog { entries: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// Adds the log of the next entry.
    pub(super) fn push(&mut self, start: Lsn, bytes: EntryBytes) {
        debug_assert!(self.end().is_none_or(|end| end == start), "entries follow each other");
        self.bytes += bytes.len();
        self.entries.push_back((start, bytes));
    }

    fn end(&self) -> Option<Lsn> {
        self.entries.back().map(|(start, bytes)| start.advance(bytes.len() as u64))
    }

    /// Forgets entries that begin at or after `lsn`.
    pub(super) fn truncate(&mut self, lsn: Lsn) {
        while let Some((_, bytes)) = self.entries.pop_back_if(|(start, _)| *start >= lsn) {
            self.bytes -= bytes.len();
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Forgets the oldest entries beyond the limit that end at or before `stored`.
    pub(super) fn trim(&mut self, stored: Lsn) {
        let is_stored =
            |(start, bytes): &mut (Lsn, EntryBytes)| start.advance(bytes.len() as u64) <= stored;
        while self.bytes > self.limit_bytes
            && let Some((_, bytes)) = self.entries.pop_front_if(is_stored)
        {
            self.bytes -= bytes.len();
        }
    }

    /// The log of the entry that begins at `start`.
    pub(super) fn get(&self, start: Lsn) -> Option<EntryBytes> {
        let place = self.entries.binary_search_by_key(&start, |(start, _)| *start).ok()?;
        Some(Arc::clone(&self.entries[place].1))
    }

    /// The log that goes with a message of these entries. `newest` has log of entries by their
    /// starts that was not added yet.
    pub(super) fn of(&self, entries: &[Entry], newest: &[(Lsn, EntryBytes)]) -> EntryLog {
        let log = |entry: &Entry| {
            let added = newest.iter().find(|(start, _)| *start == entry.start);
            added.map(|(_, bytes)| Arc::clone(bytes)).or_else(|| self.get(entry.start))
        };
        let with_log = entries.iter().filter(|entry| entry.end() > entry.start);
        let mut found = EntryLog::default();
        // What is in memory is the end of the log, so what is not comes first.
        for entry in with_log {
            match (log(entry), &mut found.stored) {
                (Some(bytes), _) => found.kept.push(bytes),
                (None, Some((_, to))) => *to = entry.end(),
                (None, stored) => *stored = Some((entry.start, entry.end())),
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use firn_consensus::{Content, Index, Term};

    use super::*;

    fn entry(index: u64, start: u64, bytes: u64) -> Entry {
        let content = match bytes {
            0 => Content::Mark,
            _ => Content::Log { bytes, checksum: 0 },
        };
        Entry { index: Index(index), term: Term(1), start: Lsn(start), content }
    }

    #[test]
    fn what_is_stored_goes_and_what_is_not_stays() {
        let mut recent = RecentLog::new(100);
        for number in 0..4 {
            recent.push(Lsn(8 + 80 * number), Arc::new(vec![number as u8; 80]));
        }
        recent.trim(Lsn(8));
        assert!(recent.get(Lsn(8)).is_some(), "nothing is on the disk");
        recent.trim(Lsn(8 + 160));
        assert!(recent.get(Lsn(88)).is_none() && recent.get(Lsn(168)).is_some());
        recent.trim(Lsn(8 + 320));
        assert!(recent.get(Lsn(168)).is_none() && recent.get(Lsn(248)).is_some());
    }

    #[test]
    fn a_message_takes_its_log_from_memory_or_from_the_disk() {
        let mut recent = RecentLog::new(1_000);
        recent.push(Lsn(88), Arc::new(vec![1; 80]));
        recent.push(Lsn(168), Arc::new(vec![2; 40]));
        let entries = [entry(3, 88, 80), entry(4, 168, 0), entry(5, 168, 40)];
        let found = |entries: &[Entry], newest: &[_]| {
            let log = recent.of(entries, newest);
            (log.stored, log.kept.iter().map(|bytes| bytes[0]).collect::<Vec<_>>())
        };
        assert_eq!(found(&entries, &[]), (None, vec![1, 2]));
        assert_eq!(found(&entries[1..2], &[]), (None, vec![]), "an entry without log");
        let older = [entry(1, 0, 8), entry(2, 8, 80), entry(3, 88, 80), entry(4, 168, 0)];
        assert_eq!(found(&older, &[]), (Some((Lsn(0), Lsn(88))), vec![1]));
        let newer = [entry(3, 88, 80), entry(6, 208, 40)];
        let newest = [(Lsn(208), Arc::new(vec![7; 40]))];
        assert_eq!(found(&newer, &newest), (None, vec![1, 7]), "an entry that was just proposed");
        recent.truncate(Lsn(168));
        assert!(recent.get(Lsn(168)).is_none() && recent.get(Lsn(88)).is_some());
    }
}
