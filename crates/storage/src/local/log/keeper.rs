//! The keeper: a background task that makes segment files ahead of the writer, completes full ones
//! with their footer, and recycles released ones. One task does all three, so a footer never ends
//! up in a recycled file.
//!
//! Making a file takes room, time and directory changes, and no commit should meet any of them. A
//! file is therefore allocated, filled with zeros and synced before the log reaches it; `fdatasync`
//! of a block in it then has no metadata to write. A full disk shows up here first, while an empty
//! segment is still left.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_api::{LogError, Room};
use firn_base::Lsn;
use firn_base::disk::{Disk, File, OpenMode};

use super::Shared;
use super::segment::{self, Segment, SegmentHeader, SegmentIndex};

const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// How long an appender waits before it looks again; changes wake it earlier.
const ROOM_WAIT: Duration = Duration::from_secs(1);
/// How many bytes of zeros are written before the task yields its core.
const ZEROS_BYTES: usize = 128 << 10;
/// How many bytes of zeros are written before they are synced: a commit's sync waits behind
/// everything that the disk was given at once.
const ZEROS_SYNC_BYTES: u64 = 4 << 20;
/// The suffix of a file that is being made; opening the log removes such files.
pub(super) const NEW_SUFFIX: &str = ".new";
/// The suffix of a released file that waits to be reused.
pub(super) const SPARE_SUFFIX: &str = ".spare";

/// The keeper's state, which other threads may read.
#[derive(Default)]
pub(super) struct KeeperState {
    /// Why the last attempt to make a segment failed.
    pub(super) stuck: Option<String>,
    /// Files that wait to become segments.
    pub(super) spares: Vec<PathBuf>,
    /// The number in the name of the next spare file.
    pub(super) next_spare: u64,
}

/// Why there is no new segment file.
#[derive(Debug)]
pub(super) enum MakeError {
    /// Nothing has changed; a later attempt may succeed.
    Retry(io::Error),
    /// It is unknown which names are durable.
    Fatal(PathBuf, io::Error),
}

impl From<io::Error> for MakeError {
    fn from(error: io::Error) -> MakeError {
        MakeError::Retry(error)
    }
}

/// The result of one of the keeper's kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Something was done, and there may be more.
    Done,
    /// There is nothing to do.
    Nothing,
    /// The attempt failed; try again later.
    Stuck,
}

/// Makes segments ahead until the log is closed or has failed.
pub(super) fn run(shared: &Shared) {
    loop {
        let ticket = shared.keeper_wake.listen();
        if shared.is_stopping() || shared.check_alive().is_err() {
            return;
        }
        let steps = [Shared::recycle_one, Shared::add_segment, Shared::write_footer];
        let steps = steps.map(|step| step(shared));
        if steps.contains(&Step::Done) {
            continue;
        }
        let retry = steps.contains(&Step::Stuck).then_some(RETRY_INTERVAL);
        shared.keeper_wake.wait(ticket, retry);
    }
}

impl Shared {
    /// Blocks until a whole empty segment is left after `end`. If the keeper has reported that
    /// there will be none, the files must at least reach past `end` (D3). A caller that listens
    /// thus knows that room is low before the last segment is begun.
    pub(super) fn wait_for_room(&self, end: Lsn) -> Result<(), LogError> {
        loop {
            let ticket = self.room.listen();
            let (last, files_end) = {
                let segments = self.segments.lock();
                (segments.last_first(), segments.end())
            };
            if end < last {
                return Ok(());
            }
            self.check_open()?;
            let stuck = self.keeper.lock().stuck.clone();
            if let Some(reason) = stuck {
                if end < files_end {
                    return Ok(());
                }
                self.wanted_end.store(0, Ordering::Release);
                return Err(LogError::NoRoom { place: self.folder.display().to_string(), reason });
            }
            self.wanted_end.store(end.0, Ordering::Release);
            self.keeper_wake.notify_all();
            self.room.wait(ticket, Some(ROOM_WAIT));
        }
    }

    /// See [`firn_api::LogWriter::room`]. Takes a mutex only when segments cannot be made.
    pub(super) fn room_left(&self) -> Room {
        if !self.is_stuck.load(Ordering::Acquire) {
            return Room::Plenty;
        }
        match self.segments.lock().ahead() {
            0 => Room::Scarce,
            1 => Room::Low,
            _ => Room::Plenty,
        }
    }

    fn needs_segment(&self) -> bool {
        let wanted_end = Lsn(self.wanted_end.load(Ordering::Acquire));
        let segments = self.segments.lock();
        segments.ahead() < self.options.segments_ahead.max(2) || segments.last_first() <= wanted_end
    }

    /// Adds one segment at the end if there are too few.
    fn add_segment(&self) -> Step {
        if !self.needs_segment() {
            return Step::Nothing;
        }
        let first = self.segments.lock().end();
        let made = self.make_segment(first);
        let stuck = match made {
            Ok(segment) => {
                self.segments.lock().push_ahead(Arc::new(segment));
                None
            }
            Err(MakeError::Retry(error)) => Some(error.to_string()),
            Err(MakeError::Fatal(place, error)) => {
                self.fail(&place, error);
                return Step::Stuck;
            }
        };
        let step = if stuck.is_none() { Step::Done } else { Step::Stuck };
        self.tell_stuck(stuck);
        self.room.notify_all();
        step
    }

    fn tell_stuck(&self, stuck: Option<String>) {
        let is_stuck = stuck.is_some();
        let reason = stuck.clone().unwrap_or_default();
        let was_stuck = std::mem::replace(&mut self.keeper.lock().stuck, stuck).is_some();
        self.is_stuck.store(is_stuck, Ordering::Release);
        match (was_stuck, is_stuck) {
            (false, true) => tracing::warn!(%reason, "no room for another log segment"),
            (true, false) => tracing::info!("there is room for the log again"),
            _ => {}
        }
    }

    fn header(&self, first: Lsn) -> SegmentHeader {
        let blocks = segment::blocks_in(self.options.segment_size_bytes);
        SegmentHeader {
            stream: self.options.stream,
            database: self.directory.database(),
            blocks,
            first,
            incarnation: self.incarnation.load(Ordering::Acquire),
            watermarks: *self.watermarks.lock(),
            entry_sectors: if self.group.is_some() { segment::entry_sectors_in(blocks) } else { 0 },
        }
    }

    fn make_segment(&self, first: Lsn) -> Result<Segment, MakeError> {
        let (spare, number) = {
            let mut keeper = self.keeper.lock();
            keeper.next_spare += 1;
            (keeper.spares.pop(), keeper.next_spare)
        };
        let maker = Maker {
            disk: self.directory.environment().disk.as_ref(),
            folder: &self.folder,
            header: self.header(first),
        };
        let made = maker.make(spare.as_deref(), number);
        if let (Err(MakeError::Retry(_)), Some(spare)) = (&made, spare) {
            self.keeper.lock().spares.push(spare);
        }
        made
    }
}

impl Shared {
    /// See [`crate::local::page_log::PageLog::release_before`]. The files follow in the background.
    pub(super) fn release_before(&self, lsn: Lsn) {
        match &self.group {
            // The group's base goes first.
            Some(group) => group.release_pages(lsn),
            None => self.release_segments(lsn, |_, _| Some(())),
        }
    }

    /// Releases the segments before the newest one that may be the oldest, as far as the log ends
    /// before `lsn` and nobody holds it. `may_begin` gets a segment and how far the log may be
    /// released, and says whether the log may begin with the segment.
    pub(super) fn release_segments(
        &self,
        lsn: Lsn,
        mut may_begin: impl FnMut(&Segment, Lsn) -> Option<()>,
    ) {
        // Readers hold it too, beside the page store, which asks.
        let limit = self.leases.raise_floor(lsn.min(self.indexer.told()), self.durable());
        let begun = self.segments.lock().begun();
        // The oldest kept segment must have a group that begins in it, at or before the limit: that
        // group's start then becomes the start of the log, and everything before it has ended.
        let kept = begun.iter().skip(1).rev().find_map(|segment| {
            let start = segment.index.lock().first_group();
            let start = start.filter(|start| *start <= limit)?;
            may_begin(segment, limit).map(|()| (segment.first, start))
        });
        let Some((first, start)) = kept else { return };
        self.truncated.fetch_max(start.0, Ordering::AcqRel);
        let released = self.segments.lock().release_before(first);
        released.iter().for_each(|segment| self.index_cache.remove(segment.first));
        self.keeper_wake.notify_all();
    }

    /// Removes the oldest released segment from the log: its file becomes a spare one or is
    /// deleted.
    fn recycle_one(&self) -> Step {
        let released = self.segments.lock().next_released();
        let Some(segment) = released else { return Step::Nothing };
        match self.recycle(&segment) {
            Ok(()) => {
                self.segments.lock().drop_released();
                Step::Done
            }
            Err(MakeError::Retry(error)) => {
                tracing::warn!(%error, file = %segment.path.display(), "a log file cannot be reused");
                Step::Stuck
            }
            Err(MakeError::Fatal(place, error)) => {
                self.fail(&place, error);
                Step::Stuck
            }
        }
    }

    /// D1: one name after the other, each change durable before the next.
    fn recycle(&self, segment: &Segment) -> Result<(), MakeError> {
        self.save_watermarks()?;
        // The next segments reuse files that the log already has: on a full disk, others would take
        // the room of a deleted file.
        let missing =
            self.options.segments_ahead.max(2).saturating_sub(self.segments.lock().ahead());
        let wanted = self.options.spare_limit.max(missing);
        let disk = self.directory.environment().disk.as_ref();
        let spare = {
            let mut keeper = self.keeper.lock();
            keeper.next_spare += 1;
            let spare = self.folder.join(format!("{}{SPARE_SUFFIX}", keeper.next_spare));
            (keeper.spares.len() < wanted).then_some(spare)
        };
        match &spare {
            Some(spare) => disk.rename(&segment.path, spare)?,
            None => disk.remove(&segment.path)?,
        }
        let fatal = |error| MakeError::Fatal(self.folder.clone(), error);
        disk.sync_directory(&self.folder).map_err(fatal)?;
        self.keeper.lock().spares.extend(spare);
        Ok(())
    }

    /// Writes the watermarks of the released log into the oldest kept segment.
    fn save_watermarks(&self) -> io::Result<()> {
        let oldest = self.segments.lock().oldest();
        let header = SegmentHeader {
            blocks: oldest.blocks,
            first: oldest.first,
            entry_sectors: oldest.reserved_sectors,
            ..self.header(oldest.first)
        };
        oldest.file.write_at(&header.encode(), 0)?;
        oldest.file.sync_data()
    }

    /// Writes the footer of the oldest full segment that has none.
    fn write_footer(&self) -> Step {
        let index_end = self.indexer.index_end();
        let begun = self.segments.lock().begun();
        let unfinished = begun.iter().find(|segment| {
            segment.end() <= index_end && matches!(*segment.index.lock(), SegmentIndex::Memory(_))
        });
        let Some(segment) = unfinished else { return Step::Nothing };
        match segment.write_footer() {
            Ok(()) => Step::Done,
            Err(error) => {
                tracing::warn!(%error, file = %segment.path.display(), "cannot write the footer");
                Step::Stuck
            }
        }
    }
}

/// Makes one segment file.
pub(super) struct Maker<'a> {
    /// Where files are.
    pub(super) disk: &'a dyn Disk,
    /// The log's directory.
    pub(super) folder: &'a Path,
    /// The new segment's header.
    pub(super) header: SegmentHeader,
}

impl Maker<'_> {
    /// Makes the segment from a fitting spare file if there is one, else from a new file whose
    /// temporary name has `number`. Durable when it returns. Blocks for I/O.
    pub(super) fn make(&self, spare: Option<&Path>, number: u64) -> Result<Segment, MakeError> {
        let new_path = self.folder.join(format!("{number}{NEW_SUFFIX}"));
        let (file, made_of) = match self.open_spare(spare)? {
            Some((file, spare)) => (file, spare),
            None => (self.create(&new_path)?, new_path.as_path()),
        };
        let path = self.folder.join(segment::file_name(self.header.first));
        file.write_at(&self.header.encode(), 0)?;
        file.sync_data()?;
        self.disk.rename(made_of, &path)?;
        let fatal = |error| MakeError::Fatal(path.clone(), error);
        self.disk.sync_directory(self.folder).map_err(fatal)?;
        Ok(Segment::new(&self.header, path, file))
    }

    fn open_spare<'s>(
        &self,
        spare: Option<&'s Path>,
    ) -> io::Result<Option<(Arc<dyn File>, &'s Path)>> {
        let Some(spare) = spare else { return Ok(None) };
        let file = match self.disk.open(spare, OpenMode::ReadWrite) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if file.length()? >= self.header.file_bytes() {
            return Ok(Some((file, spare)));
        }
        self.disk.remove(spare)?;
        Ok(None)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.disk.open(path, OpenMode::CreateNew)?;
        let filled = fill_with_zeros(file.as_ref(), self.header.file_bytes());
        if let Err(error) = filled {
            // The file is useless; if it cannot be removed either, opening the log removes it.
            let _ = self.disk.remove(path);
            return Err(error);
        }
        Ok(file)
    }
}

/// Reserves and writes every byte, so that later writes change no metadata.
fn fill_with_zeros(file: &dyn File, length: u64) -> io::Result<()> {
    file.allocate(length)?;
    let zeros = vec![0; ZEROS_BYTES.min(usize::try_from(length).unwrap_or(usize::MAX))];
    let mut offset = 0;
    while offset < length {
        let piece = zeros.len().min(usize::try_from(length - offset).unwrap_or(usize::MAX));
        file.write_at(&zeros[..piece], offset)?;
        offset += piece as u64;
        if offset.is_multiple_of(ZEROS_SYNC_BYTES) {
            file.sync_data()?;
        }
        firn_base::task::yield_now();
    }
    file.sync_data()
}
