//! The list of a member's entries, in the sectors of its segments.
//!
//! ```text
//!   segment   A: blocks │ 91 … 109 │ 110 … 128 │ 129 131 ─┐     B: blocks │ 132 … 140 │
//!                         sector 0   sector 1   sector 2              ▲     sector 0
//!                                               └ written again       └ 132 ends in B
//! ```

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use firn_api::LogError;
use firn_base::Lsn;
use firn_base::disk::SECTOR_BYTES;
use firn_consensus::{Base, Entry, Index, Saved};

use super::sector::EntrySector;
use super::state::{GroupState, StateFile};
use crate::local::directory::OpenError;
use crate::local::log::recovery;
use crate::local::log::segment::{self, Segment};

/// How many sectors are read at once.
const PIECE_SECTORS: usize = 256;
/// How many sectors behind the end of the list are searched for signs of more.
const SEARCHED_SECTORS: usize = 2048;

/// Where a sector is.
#[derive(Clone)]
struct Placed {
    first: Index,
    segment: Arc<Segment>,
    number: u32,
}

impl Placed {
    fn read(&self) -> Result<EntrySector, LogError> {
        let offset = self.segment.sector_offset(self.number);
        let at = || segment::place(&self.segment.path, offset);
        let mut bytes = [0; SECTOR_BYTES];
        self.segment
            .file
            .read_at(&mut bytes, offset)
            .map_err(|error| LogError::Unreadable { at: at(), reason: error.to_string() })?;
        let sector = EntrySector::decode(&bytes).filter(|sector| sector.first == self.first);
        let what = "the list of the group's entries is not valid here".to_owned();
        sector.ok_or_else(|| LogError::Damaged { at: at(), what })
    }

    fn write(&self, sector: &EntrySector) -> io::Result<()> {
        self.segment.file.write_at(&sector.encode(), self.segment.sector_offset(self.number))
    }
}

/// The list, in the hands of the thread that writes.
pub(super) struct EntryList {
    file: StateFile,
    placed: VecDeque<Placed>,
    /// The last of the placed sectors.
    last: Option<EntrySector>,
    next: Index,
    end: Lsn,
    synced: Index,
    durable: Index,
}

impl EntryList {
    /// The empty list of a log that begins at its base.
    pub(super) fn empty(file: StateFile) -> EntryList {
        let base = &file.state().base;
        let next = Index(base.index.0 + 1);
        let (end, synced, durable) = (base.lsn.max(Lsn::FIRST), base.index, base.index);
        EntryList { placed: VecDeque::new(), last: None, next, end, synced, durable, file }
    }

    pub(super) fn state(&self) -> &GroupState {
        self.file.state()
    }

    /// Index of the entry behind the last one.
    pub(super) fn next(&self) -> Index {
        self.next
    }

    /// Where the log is after the last entry.
    pub(super) fn end(&self) -> Lsn {
        self.end
    }

    /// What the list says as it is. `entries` are those behind the base.
    pub(super) fn saved(&self, entries: Vec<Entry>) -> Saved {
        let GroupState { vote, base, .. } = self.state().clone();
        Saved { vote, base, entries, durable: self.durable() }
    }

    /// The last entry known to be durable in the group, of those that are here.
    pub(super) fn durable(&self) -> Index {
        let known = self.durable.max(self.state().durable);
        known.min(Index(self.next.0 - 1)).max(self.state().base.index)
    }

    /// Notes that `durable` is durable in the group. It is written with the next entries.
    pub(super) fn raise_durable(&mut self, durable: Index) {
        self.durable = self.durable.max(durable);
    }

    /// Notes that all entries are synced.
    pub(super) fn note_synced(&mut self) {
        self.synced = Index(self.next.0 - 1);
    }

    /// Makes a change of the state durable. Blocks for I/O.
    ///
    /// # Errors
    /// The file, and the disk's error.
    pub(super) fn save(&mut self, change: impl FnOnce(&mut GroupState)) -> Result<(), OpenError> {
        let mut state = self.state().clone();
        state.durable = state.durable.max(self.durable);
        change(&mut state);
        self.file.write(state).map_err(|error| OpenError::Io {
            place: self.file.path().display().to_string(),
            reason: error.to_string(),
        })
    }

    /// The second step of G2: from now on nothing of a lower incarnation is behind the end.
    pub(super) fn begin_incarnation(&mut self, incarnation: u32) -> Result<(), OpenError> {
        let (end, is_empty) = ((self.next, self.end), self.placed.is_empty());
        self.save(|state| {
            (state.incarnation, state.end) = (incarnation, end);
            state.is_restarting = false;
            if is_empty {
                state.base_incarnation = incarnation;
            }
        })
    }

    /// The third step of G2, for sectors: makes the last one durable as it is now. Blocks for I/O.
    pub(super) fn rewrite_last(&mut self, incarnation: u32) -> Result<(), OpenError> {
        let (Some(placed), Some(last)) = (self.placed.back(), &mut self.last) else {
            return Ok(());
        };
        (last.incarnation, last.synced) = (incarnation, Index(self.next.0 - 1));
        placed.write(last).and_then(|()| placed.segment.file.sync_data()).map_err(|error| {
            OpenError::Io {
                place: placed.segment.path.display().to_string(),
                reason: error.to_string(),
            }
        })
    }

    /// Adds entries, whose sectors are in `segment`. Blocks for the write.
    pub(super) fn append(
        &mut self,
        segment: &Arc<Segment>,
        incarnation: u32,
        entries: &[Entry],
    ) -> io::Result<()> {
        let (mut bytes, mut from) = (Vec::new(), None);
        for entry in entries {
            let fits =
                |last: &EntrySector| last.segment == segment.first && last.has_room_for(entry);
            if !self.last.as_ref().is_some_and(fits) {
                if let (Some(last), true) = (&self.last, from.is_some()) {
                    bytes.extend_from_slice(&last.encode());
                }
                self.begin_sector(segment, entry);
            }
            let (synced, durable) = (self.synced, self.durable);
            let last = self.last.as_mut().expect("it was begun");
            (last.incarnation, last.synced, last.durable) = (incarnation, synced, durable);
            last.entries.push(entry.clone());
            (self.next, self.end) = (last.next(), last.end());
            from = from.or(self.placed.back().map(|placed| placed.number));
        }
        if let (Some(last), Some(from)) = (&self.last, from) {
            bytes.extend_from_slice(&last.encode());
            segment.file.write_at(&bytes, segment.sector_offset(from))?;
        }
        Ok(())
    }

    fn begin_sector(&mut self, segment: &Arc<Segment>, entry: &Entry) {
        let number = segment.used_sectors();
        segment.set_used_sectors(number + 1);
        self.placed.push_back(Placed { first: entry.index, segment: segment.clone(), number });
        self.last = Some(EntrySector {
            segment: segment.first,
            incarnation: 0,
            first: entry.index,
            start: entry.start,
            synced: self.synced,
            durable: self.durable,
            entries: Vec::new(),
        });
    }

    /// Forgets the entries from `first`, which begins at `start`, on. Changes nothing on the disk.
    pub(super) fn cut(&mut self, first: Index, start: Lsn) -> Result<(), LogError> {
        while let Some(gone) = self.placed.pop_back_if(|placed| placed.first >= first) {
            gone.segment.set_used_sectors(gone.number);
        }
        self.last = match self.placed.back() {
            Some(placed) => {
                let mut sector = placed.read()?;
                sector.entries.truncate((first.0 - placed.first.0) as usize);
                Some(sector)
            }
            None => None,
        };
        (self.next, self.end) = (first, start);
        self.synced = self.synced.min(Index(first.0 - 1));
        Ok(())
    }

    /// Makes `kept` the oldest segment if all entries that begin before it end at or before
    /// `limit`: the last of them becomes the base, durably (G6). Blocks for I/O.
    pub(super) fn rebase(&mut self, kept: &Segment, limit: Lsn) -> Result<bool, OpenError> {
        let first = self.placed.iter().find(|placed| placed.segment.first >= kept.first);
        // A segment without sectors is within one entry.
        let Some(first) = first.filter(|placed| placed.segment.first == kept.first) else {
            return Ok(false);
        };
        let sector = first.read()?;
        let (index, end) = match sector.entries.first() {
            Some(entry) if sector.start < kept.first => (entry.index, entry.end()),
            _ => (Index(sector.first.0 - 1), sector.start),
        };
        let base = &self.state().base;
        if index <= base.index {
            // An earlier life may have ended before it removed the segments.
            return Ok(base.lsn <= limit);
        }
        if end > limit {
            return Ok(false);
        }
        let (base, incarnation) = self.base_at(index)?;
        self.raise_durable(index);
        self.save(|state| (state.base, state.base_incarnation) = (base, incarnation))?;
        while self.placed.pop_front_if(|placed| placed.segment.first < kept.first).is_some() {}
        Ok(true)
    }

    /// The base after an entry, and the incarnation of the sector in which it stands.
    fn base_at(&self, index: Index) -> Result<(Base, u32), LogError> {
        let mut base = self.state().base.clone();
        let mut incarnation = self.state().base_incarnation;
        for placed in self.placed.iter().take_while(|placed| placed.first <= index) {
            let sector = placed.read()?;
            incarnation = sector.incarnation;
            let from = base.index;
            let entries = sector.entries.iter();
            let entries = entries.filter(|entry| entry.index > from && entry.index <= index);
            entries.for_each(|entry| base.pass(entry));
        }
        Ok((base, incarnation))
    }

    /// Writes the sectors again that have entries which no sector names as synced: a failed sync
    /// may have left them in the kernel's memory only. Does not sync.
    pub(super) fn rewrite_unsynced(&self) -> Result<(), OpenError> {
        let synced = self.synced.max(Index(self.state().end.0.0 - 1));
        let from = self.placed.partition_point(|placed| placed.first <= synced).saturating_sub(1);
        for placed in self.placed.range(from..) {
            let written = placed.write(&placed.read()?);
            written.map_err(|error| OpenError::Io {
                place: placed.segment.path.display().to_string(),
                reason: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Follows the list through the segments. Returns it with the entries behind the base; the log
    /// may end before them. Blocks for I/O.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if synced entries are missing.
    pub(super) fn read(
        file: StateFile,
        segments: &[Arc<Segment>],
    ) -> Result<(EntryList, Vec<Entry>), OpenError> {
        let mut walk = Walk {
            incarnation: file.state().base_incarnation,
            list: EntryList::empty(file),
            entries: Vec::new(),
            more_synced: Vec::new(),
        };
        for segment in segments {
            walk.follow(segment)?;
        }
        walk.refuse_if_more_was_synced()?;
        Ok((walk.list, walk.entries))
    }
}

/// The list up to some sector.
struct Walk {
    list: EntryList,
    /// Of the last sector, or of the base.
    incarnation: u32,
    entries: Vec<Entry>,
    /// Sectors that do not go on with the list, and say that more of it was synced.
    more_synced: Vec<(Placed, EntrySector)>,
}

impl Walk {
    /// Takes the sectors of one segment that go on with the list.
    fn follow(&mut self, segment: &Arc<Segment>) -> Result<(), OpenError> {
        let length = segment.file.length().map_err(|error| OpenError::Io {
            place: segment.path.display().to_string(),
            reason: error.to_string(),
        })?;
        let count = length.saturating_sub(segment.sector_offset(0)) / SECTOR_BYTES as u64;
        let (mut is_over, mut searched) = (false, 0);
        let mut bytes = Vec::new();
        for number in 0..count as u32 {
            let place = number as usize % PIECE_SECTORS * SECTOR_BYTES;
            if place == 0 {
                let left = (count as usize - number as usize).min(PIECE_SECTORS);
                bytes.resize(left * SECTOR_BYTES, 0);
                let offset = segment.sector_offset(number);
                segment.file.read_at(&mut bytes, offset).map_err(|error| {
                    let at = segment::place(&segment.path, offset);
                    LogError::Unreadable { at, reason: error.to_string() }
                })?;
            }
            let sector = bytes[place..place + SECTOR_BYTES].try_into().expect("one sector");
            let sector = EntrySector::decode(sector);
            let sector = sector.filter(|sector| sector.segment == segment.first);
            if !is_over {
                is_over = !sector.as_ref().is_some_and(|sector| self.take(segment, number, sector));
            }
            if is_over {
                let first = sector.as_ref().map_or(Index(0), |sector| sector.first);
                let placed = Placed { first, segment: segment.clone(), number };
                let more = sector.filter(|sector| sector.synced >= self.list.next);
                self.more_synced.extend(more.map(|sector| (placed, sector)));
                searched += 1;
                if searched > SEARCHED_SECTORS {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes a sector if it goes on with the list. False: the list does not go on behind it in this
    /// segment.
    fn take(&mut self, segment: &Arc<Segment>, number: u32, sector: &EntrySector) -> bool {
        let base = &self.list.state().base;
        let (base_index, base_end) = (base.index, (base.term, base.lsn));
        let is_first = self.list.placed.is_empty();
        if is_first && sector.next().0 <= base_index.0 + 1 {
            // Of log before the base, which is still to be removed.
            segment.set_used_sectors(number + 1);
            return true;
        }
        // Where the base is among the entries, it has to be the same.
        let fits =
            |entry: &Entry| entry.index != base_index || (entry.term, entry.end()) == base_end;
        let goes_on = match is_first {
            true => sector.first <= self.list.next && sector.entries.iter().all(fits),
            false => sector.first == self.list.next,
        };
        let mut sector = sector.clone();
        let kept = self.count_of_this_log(&sector);
        sector.entries.truncate(kept);
        let next = sector.entries.iter().find(|entry| entry.index == self.list.next);
        let starts = next.is_some_and(|entry| entry.start == self.list.end);
        if !goes_on || !starts || sector.incarnation < self.incarnation {
            return false;
        }
        let list = &mut self.list;
        list.placed.push_back(Placed { first: sector.first, segment: segment.clone(), number });
        segment.set_used_sectors(number + 1);
        let new = sector.entries.iter().filter(|entry| entry.index >= list.next);
        self.entries.extend(new.cloned());
        (list.next, list.end) = (sector.next(), sector.end());
        self.incarnation = sector.incarnation;
        list.synced = list.synced.max(sector.synced);
        list.durable = list.durable.max(sector.durable);
        list.last = Some(sector);
        true
    }

    /// How many of the sector's entries are not behind the end of the log in the state (G2).
    fn count_of_this_log(&self, sector: &EntrySector) -> usize {
        let state = self.list.state();
        let is_old = sector.incarnation < state.incarnation;
        let is_kept = |entry: &&Entry| !is_old || entry.index < state.end.0;
        sector.entries.iter().take_while(is_kept).count()
    }

    fn refuse_if_more_was_synced(&self) -> Result<(), OpenError> {
        let list = &self.list;
        // What older sectors say may have been cut since; the end in the state counts for them.
        let incarnation = self.incarnation.max(list.state().incarnation);
        let says = |(_, sector): &&(Placed, EntrySector)| {
            sector.incarnation >= incarnation && sector.synced >= list.next
        };
        if let Some((placed, sector)) = self.more_synced.iter().find(says) {
            let what = format!(
                "the list of entries ends before entry {}, but this sector says that entry {} was synced",
                list.next, sector.synced
            );
            let offset = placed.segment.sector_offset(placed.number);
            return Err(recovery::damaged(&placed.segment.path, offset, what).into());
        }
        let (end, lsn) = list.state().end;
        if list.next < end {
            let what = format!(
                "entries {} to {}, which end at log position {lsn}, are missing",
                list.next,
                end.0 - 1
            );
            return Err(recovery::damaged(list.file.path(), 0, what).into());
        }
        Ok(())
    }
}
