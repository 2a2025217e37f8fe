//! Opening the log of a group's member: what was synced, and as much of the rest as is whole.
//!
//! The log ends where its blocks end, where its list of entries ends, or, if a new incarnation was
//! begun and not finished, where the state says, whichever is first.

use std::path::Path;
use std::sync::Arc;

use firn_api::{LogError, Watermarks};
use firn_base::Lsn;
use firn_consensus::{Base, Content, Entry, Index, Saved};

use super::Membership;
use super::list::EntryList;
use super::state::{GroupState, StateFile};
use crate::local::directory::{At, LocalDirectory, OpenError};
use crate::local::log::block::{self, BLOCK_DATA_BYTES};
use crate::local::log::recovery::{
    self, Files, GROUP_FILE, Place, Scan, create_first, damaged, find_end, list_files,
    make_durable, next_incarnation, open_folder, open_segments, writer_at,
};
use crate::local::log::segment::{self, Segment, SegmentHeader, SegmentIndex};
use crate::local::log::{LogOptions, Shared};

/// Opens the log of a group's member. In a new directory, makes one that begins at `founding`, and
/// has these watermarks of the time before. Blocks for I/O.
pub(in crate::local::log) fn open_member(
    directory: &Arc<LocalDirectory>,
    options: LogOptions,
    founding: Option<(Base, Watermarks)>,
) -> Result<(Shared, Saved), OpenError> {
    let folder = open_folder(directory)?;
    let mut files = list_files(directory, &folder)?;
    let mut file = open_state(directory, &options, &folder, &files, founding)?;
    let is_new = file.state().is_restarting;
    if is_new {
        // A failed sync may have left the state in the kernel's memory only (G6).
        let state = file.state().clone();
        file.write(state).at(file.path())?;
        create_first(directory, &files, &folder, first_header(&options, file.state()))?;
        files = list_files(directory, &folder)?;
    }
    let (segments, headers) = open_segments(directory, &options, &folder, &files.segments)?;
    let found = match is_new {
        true => Found::new(file, &segments),
        false => Found::read(file, &segments)?,
    };
    let Found { mut list, entries, scan, durable } = found;
    let highest = scan.incarnation.max(list.state().incarnation);
    let incarnation = next_incarnation(&segments, &headers, highest)?;
    let mut writer = writer_at(&segments, list.end(), incarnation)?;
    if is_new {
        // Until the first block is there, the log is made again at every start.
        writer.write_last_block().at(&writer.segment().path)?;
        if !directory.is_log_created() {
            directory.mark_log_created()?;
        }
        list.begin_incarnation(incarnation)?;
    } else {
        list.begin_incarnation(incarnation)?;
        list.rewrite_last(incarnation)?;
        writer.write_last_block().at(&writer.segment().path)?;
    }
    list.note_synced();
    let saved = list.saved(entries);
    let first_group = scan.first_group;
    let place = Place { directory, folder, options, files };
    let watermarks = list.state().watermarks;
    let group = Membership::new(list, durable);
    let shared = place.shared(segments, &headers, first_group, writer, Some(group));
    shared.watermarks.lock().raise(watermarks);
    shared.index_kept()?;
    Ok((shared, saved))
}

fn open_state(
    directory: &LocalDirectory,
    options: &LogOptions,
    folder: &Path,
    files: &Files,
    founding: Option<(Base, Watermarks)>,
) -> Result<StateFile, OpenError> {
    let disk = directory.environment().disk.as_ref();
    let path = folder.join(GROUP_FILE);
    if files.has_group {
        let file = StateFile::open(disk, &path).at(&path)?;
        let file = file.map_err(|what| damaged(&path, 0, what))?;
        let state = file.state();
        if (state.database, state.stream) != (directory.database(), options.stream) {
            let what = format!("it belongs to stream {} of {}", state.stream, state.database);
            return Err(damaged(&path, 0, what).into());
        }
        return Ok(file);
    }
    if directory.is_log_created() {
        return Err(OpenError::NotOfGroup { directory: directory.path().display().to_string() });
    }
    let missing = || damaged(&path, 0, "the file is missing");
    let (base, watermarks) = founding.ok_or_else(missing)?;
    let saved = Saved::empty(base);
    let state = GroupState {
        stream: options.stream,
        database: directory.database(),
        incarnation: 0,
        vote: saved.vote,
        end: (Index(saved.base.index.0 + 1), saved.base.lsn),
        durable: saved.durable,
        base: saved.base,
        base_incarnation: 0,
        is_restarting: true,
        watermarks,
    };
    StateFile::create(disk, folder, state).at(&path)
}

/// The header of the segment in which a log begins at its base.
fn first_header(options: &LogOptions, state: &GroupState) -> SegmentHeader {
    let blocks = segment::blocks_in(options.segment_size_bytes);
    SegmentHeader {
        stream: options.stream,
        database: state.database,
        blocks,
        first: state.base.lsn.max(Lsn::FIRST),
        incarnation: state.incarnation,
        watermarks: state.watermarks,
        entry_sectors: segment::entry_sectors_in(blocks),
    }
}

/// What is there of the log.
struct Found {
    list: EntryList,
    entries: Vec<Entry>,
    scan: Scan,
    /// The log before it is durable in the group.
    durable: Lsn,
}

impl Found {
    /// A log that begins at its base.
    fn new(file: StateFile, segments: &[Arc<Segment>]) -> Found {
        let first = segments[0].first;
        let list = EntryList::empty(file);
        Found { list, entries: Vec::new(), scan: Scan::new(first, first), durable: first }
    }

    fn read(file: StateFile, segments: &[Arc<Segment>]) -> Result<Found, OpenError> {
        let begin = file.state().base.lsn.max(Lsn::FIRST);
        let (mut list, mut entries) = EntryList::read(file, segments)?;
        segments.iter().for_each(|segment| segment.load_footer());
        let scan = find_end(segments, begin)?;
        let (state_end, is_unfinished) =
            (list.state().end.1, scan.incarnation < list.state().incarnation);
        let end = if is_unfinished { scan.end().min(state_end) } else { scan.end() };
        entries.truncate(whole_entries(segments, &entries, scan.durable, end)?);
        let log_end = entries.last().map_or(begin, Entry::end);
        let least = synced_entries(segments, &scan).min(end).max(begin).max(state_end);
        let next = Index(list.state().base.index.0 + 1 + entries.len() as u64);
        if log_end < least || next < list.state().end.0 {
            let what = format!(
                "the log was synced up to position {least}, but its entries end at {log_end}"
            );
            return Err(damaged_at(segments, log_end, what).into());
        }
        list.rewrite_unsynced()?;
        make_durable(segments, &scan)?;
        list.cut(next, log_end)?;
        let durable_index = list.durable();
        let durable = entries.iter().take_while(|entry| entry.index <= durable_index).last();
        let durable = durable.map_or(begin, Entry::end);
        // Only log that is durable in the group is indexed and gets a footer (G7).
        let indexed = segments.iter().filter_map(|segment| match &*segment.index.lock() {
            SegmentIndex::Footer(head) => Some(head.next_group),
            SegmentIndex::Memory(_) => None,
        });
        let durable = indexed.fold(durable, Lsn::max).min(log_end);
        Ok(Found { list, entries, scan, durable })
    }
}

/// Entries that end at or before this position are synced, if the log goes that far.
fn synced_entries(segments: &[Arc<Segment>], scan: &Scan) -> Lsn {
    // All before a segment is durable (D2), but an entry may go through the border.
    let is_border = segments.iter().any(|segment| segment.first == scan.durable);
    if is_border { Lsn::FIRST } else { scan.durable }
}

fn damaged_at(segments: &[Arc<Segment>], lsn: Lsn, what: String) -> LogError {
    match segments.iter().find(|segment| segment.contains(lsn)) {
        Some(segment) => segment.damaged(lsn, what),
        None => damaged(&segments[0].path, 0, what),
    }
}

/// How many of the entries have all their bytes before `end`. Compares the bytes behind `synced`
/// with their checksums.
fn whole_entries(
    segments: &[Arc<Segment>],
    entries: &[Entry],
    synced: Lsn,
    end: Lsn,
) -> Result<usize, OpenError> {
    let fitting = entries.iter().take_while(|entry| entry.end() <= end).count();
    let first = entries[..fitting].partition_point(|entry| entry.end() <= synced);
    let Some(start) = entries[..fitting].get(first).map(|entry| entry.start) else {
        return Ok(fitting);
    };
    let bytes = read_blocks(segments, start, end)?;
    let fits = |entry: &&Entry| match entry.content {
        Content::Log { checksum, .. } => {
            let range = entry.start.since(start) as usize..entry.end().since(start) as usize;
            bytes.get(range).is_some_and(|bytes| crc32c::crc32c(bytes) == checksum)
        }
        Content::Mark | Content::Members(_) => true,
    };
    Ok(first + entries[first..fitting].iter().take_while(fits).count())
}

/// The log bytes `from..to`, which are in valid blocks; fewer if they are not.
fn read_blocks(segments: &[Arc<Segment>], from: Lsn, to: Lsn) -> Result<Vec<u8>, OpenError> {
    let mut found = Vec::new();
    for segment in segments.iter().filter(|segment| segment.end() > from && segment.first < to) {
        let number = |lsn: Lsn| lsn.since(segment.first).div_ceil(BLOCK_DATA_BYTES as u64) as u32;
        let first = number(segment.block_start(from.max(segment.first)));
        let last = number(to.min(segment.end()));
        recovery::for_each_block(segment, first, last, |lsn, bytes| {
            let Ok(block) = block::open(bytes) else { return Ok(false) };
            let skipped = from.max(lsn).since(lsn) as usize;
            found.extend_from_slice(block.data.get(skipped..).unwrap_or(&[]));
            Ok(true)
        })?;
    }
    found.truncate(to.since(from) as usize);
    Ok(found)
}
