//! Writing what a member asks for, in an order that keeps the invariants.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::LogError;
use firn_base::Lsn;
use firn_consensus::{Base, Entry, Index, Vote, Write};

use super::Membership;
use super::list::EntryList;
use super::sector;
use crate::local::directory::{At, OpenError};
use crate::local::log::Shared;
use crate::local::log::reader::whole_groups;
use crate::local::log::recovery::writer_at;
use crate::local::log::segment::Segment;
use crate::local::log::writer::Writer;

/// Entries whose sectors are in one segment.
struct Run {
    entries: Range<usize>,
    segment: Arc<Segment>,
}

impl Shared {
    fn membership(&self) -> &Membership {
        self.group.as_ref().expect("the log was opened as that of a group's member")
    }

    /// Carries out all of a write but its restart. See [`crate::group::MemberLog::write`].
    pub(in crate::local::log) fn write_entries(
        &self,
        write: &Write,
        bytes: &[u8],
    ) -> Result<(), LogError> {
        self.check_open()?;
        self.check_entries(&write.append, bytes)?;
        let membership = self.membership();
        let mut token = self.take_writer();
        let mut held = membership.take_list();
        let (writer, list) = (token.writer(), held.get());
        if let Some(last) = write.append.last() {
            self.wait_for_room(last.end())?;
        }
        if !membership.is_dirty.load(Ordering::Acquire) {
            list.note_synced();
        }
        let says_more = write.append.is_empty() && write.durable > list.durable();
        list.raise_durable(write.durable);
        if write.vote.is_some() || says_more {
            self.save_vote(list, write.vote)?;
        }
        if let Some((first, start)) = write.truncate.filter(|(first, _)| *first < list.next()) {
            self.cut(writer, list, (first, start))?;
        }
        self.append_entries(writer, list, &write.append, bytes)
    }

    /// Refuses bytes that are not those of the entries: the writer of blocks relies on it.
    fn check_entries(&self, entries: &[Entry], bytes: &[u8]) -> Result<(), LogError> {
        let mut rest = bytes;
        for entry in entries {
            let length = entry.end().since(entry.start) as usize;
            let split = rest.split_at_checked(length);
            let split =
                split.filter(|(own, _)| whole_groups(own).is_ok_and(|whole| whole == length));
            let Some((_, behind)) = split.filter(|_| sector::can_be_written(entry)) else {
                let what = format!("entry {} is not made of whole log groups", entry.index);
                return Err(LogError::Damaged { at: "a write of the group".to_owned(), what });
            };
            rest = behind;
        }
        Ok(())
    }

    /// G5.
    fn save_vote(&self, list: &mut EntryList, vote: Option<Vote>) -> Result<(), LogError> {
        self.sync_entries()?;
        list.note_synced();
        list.save(|state| state.vote = vote.unwrap_or(state.vote))
            .map_err(|error| self.fail_open(error))
    }

    /// Ends the log before the entry `first`, which begins at `start` (G2).
    fn cut(
        &self,
        writer: &mut Writer,
        list: &mut EntryList,
        (first, start): (Index, Lsn),
    ) -> Result<(), LogError> {
        if start < self.durable() {
            let reason = format!("a truncation to {start} would reach into durable log");
            return Err(self.fail(&self.folder, reason));
        }
        self.sync_entries()?;
        let cut = self.cut_synced(writer, list, (first, start));
        cut.map_err(|error| self.fail_open(error))
    }

    fn cut_synced(
        &self,
        writer: &mut Writer,
        list: &mut EntryList,
        (first, start): (Index, Lsn),
    ) -> Result<(), OpenError> {
        let segment = self.find_segment(start)?;
        let incarnation = writer.incarnation().checked_add(1);
        let incarnation =
            incarnation.ok_or_else(|| segment.damaged(start, "the log was cut too often"))?;
        list.cut(first, start)?;
        list.begin_incarnation(incarnation)?;
        list.rewrite_last(incarnation)?;
        let mut cut = writer_at(&[segment], start, incarnation)?;
        cut.write_last_block().at(&cut.segment().path)?;
        *writer = cut;
        self.incarnation.store(incarnation, Ordering::Release);
        self.segments.lock().cut(writer.segment());
        list.note_synced();
        let membership = self.membership();
        membership.synced.store(start.0, Ordering::Release);
        membership.is_dirty.store(false, Ordering::Release);
        let published = writer.published();
        *self.tail.lock() = published;
        Ok(())
    }

    fn append_entries(
        &self,
        writer: &mut Writer,
        list: &mut EntryList,
        entries: &[Entry],
        mut bytes: &[u8],
    ) -> Result<(), LogError> {
        let Some(first) = entries.first() else { return Ok(()) };
        let at = (first.index, first.start.max(Lsn::FIRST));
        assert_eq!(at, (list.next(), writer.position()), "entries go on where the log ends");
        let runs = self.runs(writer.segment(), entries)?;
        for run in runs.iter().filter(|run| !run.entries.is_empty()) {
            self.make_room_for(run, &entries[run.entries.clone()])?;
        }
        self.membership().is_dirty.store(true, Ordering::Release);
        for run in runs {
            let own = &entries[run.entries];
            let is_over = writer.position() == writer.segment().end();
            if is_over && writer.segment().first != run.segment.first {
                writer.cross(self)?;
            }
            let length: u64 = own.iter().map(|entry| entry.end().since(entry.start)).sum();
            let (piece, behind) = bytes.split_at(length as usize);
            writer.write(self, piece)?;
            let written = list.append(&run.segment, writer.incarnation(), own);
            written.map_err(|error| self.fail(&run.segment.path, error))?;
            bytes = behind;
        }
        let published = writer.published();
        *self.tail.lock() = published;
        Ok(())
    }

    /// Which entries have their sectors in which segments.
    fn runs(&self, current: &Arc<Segment>, entries: &[Entry]) -> Result<Vec<Run>, LogError> {
        let mut runs = vec![Run { entries: 0..0, segment: current.clone() }];
        for (number, entry) in entries.iter().enumerate() {
            let has_bytes = entry.end() > entry.start;
            let place = if has_bytes { Lsn(entry.end().0 - 1) } else { entry.start };
            let last = runs.last_mut().expect("there is one from the start");
            if last.segment.contains(place) {
                last.entries.end = number + 1;
            } else {
                let segment = self.find_segment(place)?;
                runs.push(Run { entries: number..number + 1, segment });
            }
        }
        Ok(runs)
    }

    /// Makes sure that the run's segment has enough sectors. A longer file is synced, so that syncs
    /// of entries have no metadata to write.
    fn make_room_for(&self, run: &Run, entries: &[Entry]) -> Result<(), LogError> {
        let segment = &run.segment;
        let wanted = segment.used_sectors() + sector::sectors_for(entries);
        if wanted <= segment.reserved_sectors {
            return Ok(());
        }
        let end = segment.sector_offset(segment.sectors_for(wanted));
        let extend = || -> std::io::Result<()> {
            let length = segment.file.length()?;
            if length < end {
                let from = length.max(segment.sector_offset(0));
                segment.file.allocate(end)?;
                segment.file.write_at(&vec![0; (end - from) as usize], from)?;
                segment.file.sync_data()?;
            }
            Ok(())
        };
        extend().map_err(|error| match error.kind() {
            std::io::ErrorKind::StorageFull => LogError::NoRoom {
                place: self.folder.display().to_string(),
                reason: error.to_string(),
            },
            _ => self.fail(&segment.path, error),
        })
    }

    /// See [`crate::group::MemberLog::sync`].
    pub(in crate::local::log) fn sync_entries(&self) -> Result<(), LogError> {
        self.check_alive()?;
        let membership = self.membership();
        if !membership.is_dirty.load(Ordering::Acquire) {
            return Ok(());
        }
        let (written, segment) = self.written();
        segment.file.sync_data().map_err(|error| self.fail(&segment.path, error))?;
        self.check_alive()?;
        membership.synced.store(written.0, Ordering::Release);
        membership.is_dirty.store(false, Ordering::Release);
        Ok(())
    }

    /// See [`crate::group::MemberLog::set_durable`].
    pub(in crate::local::log) fn set_durable(&self, lsn: Lsn) {
        let lsn = lsn.min(self.synced());
        if self.durable.fetch_max(lsn.0, Ordering::SeqCst) < lsn.0 {
            self.advanced.notify_all();
            self.indexer.notify_durable();
        }
    }

    /// See [`crate::group::MemberLog::release`].
    pub(in crate::local::log) fn release_entries(&self, lsn: Lsn) -> Lsn {
        let membership = self.membership();
        let _token = self.take_writer();
        let mut held = membership.take_list();
        let list = held.get();
        if self.check_open().is_ok() {
            self.release_segments(lsn.min(membership.pages_hold()), |segment, limit| {
                match list.rebase(segment, limit) {
                    Ok(true) => Some(()),
                    Ok(false) => None,
                    Err(error) => {
                        self.fail_open(error);
                        None
                    }
                }
            });
        }
        list.state().base.lsn
    }

    /// Throws the log away: from now on the directory is opened with a log that begins at `base`.
    /// Nothing more is written here. False: the log begins there already, and is empty.
    pub(in crate::local::log) fn begin_restart(
        &self,
        vote: Option<Vote>,
        base: &Base,
    ) -> Result<bool, LogError> {
        self.check_open()?;
        let _token = self.take_writer();
        let mut held = self.membership().take_list();
        let list = held.get();
        if list.state().base == *base && list.next().0 == base.index.0 + 1 {
            return Ok(false);
        }
        self.sync_entries()?;
        let watermarks = *self.watermarks.lock();
        let saved = list.save(|state| {
            state.vote = vote.unwrap_or(state.vote);
            state.base = base.clone();
            state.durable = base.index;
            state.end = (Index(base.index.0 + 1), base.lsn);
            state.is_restarting = true;
            state.watermarks.raise(watermarks);
        });
        saved.map_err(|error| self.fail_open(error))?;
        Ok(true)
    }

    /// Fails for good, because of an error of the kind that opening has.
    fn fail_open(&self, error: OpenError) -> LogError {
        match error {
            OpenError::Io { place, reason } => self.fail_with(LogError::Failed { place, reason }),
            OpenError::Log(error) => self.fail_with(error),
            error => self.fail(&self.folder, error),
        }
    }
}
