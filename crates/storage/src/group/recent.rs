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

    /// The log that goes with a message of these entries.
    pub(super) fn of(&self, entries: &[Entry]) -> EntryLog {
        let with_log = || entries.iter().filter(|entry| entry.end() > entry.start);
        let kept: Option<Vec<_>> = with_log().map(|entry| self.get(entry.start)).collect();
        match (kept, with_log().next(), with_log().next_back()) {
            (None, Some(first), Some(last)) => {
                EntryLog::Stored { from: first.start, to: last.end() }
            }
            (kept, ..) => EntryLog::Kept(kept.unwrap_or_default()),
        }
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
        let EntryLog::Kept(kept) = recent.of(&entries) else { panic!("it is in memory") };
        assert_eq!(kept.iter().map(|bytes| bytes[0]).collect::<Vec<_>>(), [1, 2]);
        let EntryLog::Kept(kept) = recent.of(&entries[1..2]) else { panic!("there is none") };
        assert!(kept.is_empty());
        let older = [entry(2, 8, 80), entry(3, 88, 80), entry(4, 168, 0)];
        let EntryLog::Stored { from, to } = recent.of(&older) else { panic!("it is not kept") };
        assert_eq!((from, to), (Lsn(8), Lsn(168)));
        recent.truncate(Lsn(168));
        assert!(recent.get(Lsn(168)).is_none() && recent.get(Lsn(88)).is_some());
    }
}
