//! Opening: which files there are, where the log ends, and whether anything is missing.
//!
//! The end of the log is the end of the last whole group before the first invalid block. A block is
//! invalid if its checksum or position is wrong, or if its incarnation is lower than the previous
//! block's.
//!
//! ```text
//!   incarnation   4     4     4     5      5       4      ─
//!   blocks      │ 488 │ 488 │ 488 │ 488 │ 120 │ │ 488 │ zeros …
//!                                            ▲     └ unsynced tail of an earlier life
//!                                            └ partly filled: the blocks end here
//! ```
//!
//! Everything after that place was never acknowledged, unless a later block of the same or a higher
//! incarnation says that the log was durable beyond it (D5). In that case the file was damaged
//! after it was written, and opening refuses. One loss looks the same as a torn tail: the very last
//! synced blocks, if nothing was written after them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use firn_api::{LogError, Room, Watermarks};
use firn_base::Lsn;
use firn_base::disk::{Disk, OpenMode};
use firn_base::event::Event;
use firn_format::redo::{Group, GroupDamage};
use parking_lot::Mutex;

use super::block::{self, BLOCK_BYTES, BLOCK_DATA_BYTES, Block};
use super::group::Membership;
use super::indexer::{IndexerState, Pace};
use super::keeper::{KeeperState, MakeError, Maker, NEW_SUFFIX, SPARE_SUFFIX};
use super::lookup::IndexCache;
use super::segment::{self, HEADER_BYTES, Segment, SegmentHeader, SegmentIndex};
use super::segments::Segments;
use super::writer::Writer;
use super::{LogOptions, Shared};
use crate::leases::Leases;
use crate::local::directory::{At, LocalDirectory, OpenError};

const PIECE_BLOCKS: usize = 2048;
const INDEX_PIECE_BYTES: u64 = 1 << 20;
/// How many blocks of the segments after the log's end are searched for signs of more log.
const SEARCHED_BLOCKS_OF_LATER_SEGMENTS: u32 = 2048;

/// The name of a file in the log's directory that says that the log is that of a group's member.
pub(super) const GROUP_FILE: &str = "group.state";

/// The files in the log's directory.
pub(super) struct Files {
    pub(super) segments: Vec<(Lsn, PathBuf)>,
    spares: Vec<PathBuf>,
    next_spare: u64,
    pub(super) has_group: bool,
}

/// Opens or makes the log of a directory. A new log begins at `origin`.
pub(super) fn open(
    directory: &Arc<LocalDirectory>,
    options: LogOptions,
    origin: Lsn,
) -> Result<Shared, OpenError> {
    let folder = open_folder(directory)?;
    let mut files = list_files(directory, &folder)?;
    if files.has_group {
        return Err(OpenError::OfGroup { directory: directory.path().display().to_string() });
    }
    if !directory.is_log_created() {
        let header = first_header(directory, &options, origin);
        create_first(directory, &files, &folder, header)?;
        files = list_files(directory, &folder)?;
    }
    let (segments, headers) = open_segments(directory, &options, &folder, &files.segments)?;
    if headers.iter().any(|header| header.entry_sectors > 0) {
        return Err(damaged(&folder.join(GROUP_FILE), 0, "the file is missing").into());
    }
    segments.iter().for_each(|segment| segment.load_footer());
    let scan = match directory.is_log_created() {
        true => find_end(&segments, Lsn::FIRST)?,
        false => Scan::new(segments[0].first, origin),
    };
    let incarnation = next_incarnation(&segments, &headers, scan.incarnation)?;
    make_durable(&segments, &scan)?;
    let mut writer = writer_at(&segments, scan.end(), incarnation)?;
    writer.write_last_block().at(&writer.segment().path)?;
    if !directory.is_log_created() {
        directory.mark_log_created()?;
    }
    let place = Place { directory, folder, options, files };
    let shared = place.shared(segments, &headers, scan.first_group, writer, None);
    shared.index_kept()?;
    Ok(shared)
}

/// The log's directory, made if it is not there.
pub(super) fn open_folder(directory: &LocalDirectory) -> Result<PathBuf, OpenError> {
    let disk = directory.environment().disk.as_ref();
    let folder = directory.path().join("log");
    disk.create_directory(&folder).at(&folder)?;
    // A killed process may have left names that are only in the kernel's memory.
    disk.sync_directory(&folder).at(&folder)?;
    Ok(folder)
}

/// An incarnation above `highest` and those in the headers.
pub(super) fn next_incarnation(
    segments: &[Arc<Segment>],
    headers: &[SegmentHeader],
    highest: u32,
) -> Result<u32, LogError> {
    let highest = headers.iter().map(|header| header.incarnation).fold(highest, u32::max);
    let next = highest.checked_add(1);
    next.ok_or_else(|| segments[0].damaged(segments[0].first, "the log was opened too often"))
}

/// Where a log is, and how it is used.
pub(super) struct Place<'a> {
    pub(super) directory: &'a Arc<LocalDirectory>,
    pub(super) folder: PathBuf,
    pub(super) options: LogOptions,
    pub(super) files: Files,
}

impl Place<'_> {
    /// The state of an open log, not indexed yet. All log is durable, as far as one member knows.
    pub(super) fn shared(
        self,
        segments: Vec<Arc<Segment>>,
        headers: &[SegmentHeader],
        first_group: Lsn,
        writer: Writer,
        group: Option<Membership>,
    ) -> Shared {
        let mut watermarks = Watermarks::default();
        headers.iter().for_each(|header| watermarks.raise(header.watermarks));
        let published = writer.published();
        let (end, current) = (published.written, published.segment.clone());
        let durable = group.as_ref().map_or(end, Membership::durable_at_open);
        Shared {
            directory: self.directory.clone(),
            folder: self.folder,
            options: self.options,
            incarnation: AtomicU32::new(writer.incarnation()),
            segments: Mutex::new(Segments::new(VecDeque::from(segments), &current)),
            room: Event::new(),
            keeper: Mutex::new(KeeperState {
                stuck: None,
                spares: self.files.spares,
                next_spare: self.files.next_spare,
            }),
            is_stuck: AtomicBool::new(false),
            keeper_wake: Event::new(),
            wanted_end: AtomicU64::new(0),
            writer: Mutex::new(Some(Box::new(writer))),
            writer_back: Event::new(),
            tail: Mutex::new(published),
            longest_round: AtomicU64::new(0),
            watermarks: Mutex::new(watermarks),
            indexer: IndexerState::new(first_group),
            index_cache: IndexCache::new(self.options.index_cache_bytes),
            durable: AtomicU64::new(durable.0),
            advanced: Event::new(),
            truncated: AtomicU64::new(first_group.0),
            leases: Leases::new(first_group),
            page_room: AtomicU8::new(Room::Plenty as u8),
            group,
            failed: OnceLock::new(),
            stopping: AtomicBool::new(false),
        }
    }
}

impl Shared {
    /// Completes the index: loads the footers, and reads the log of segments that have none.
    pub(super) fn index_kept(&self) -> Result<(), LogError> {
        let mut position = self.truncated();
        let segments = self.segments.lock().begun();
        for segment in segments {
            let head = match &mut *segment.index.lock() {
                SegmentIndex::Footer(head) => Some(*head),
                SegmentIndex::Memory(index) => {
                    Arc::make_mut(index).next_group =
                        (position > segment.first).then_some(position);
                    None
                }
            };
            if let Some(head) = head {
                if head.first_group.unwrap_or(head.next_group) != position {
                    let what = "its footer does not go on where the segment before ends";
                    return Err(segment.damaged(segment.first, what));
                }
                self.watermarks.lock().raise(head.watermarks);
                position = head.next_group;
                self.indexer.advance(position);
                continue;
            }
            while segment.contains(position) && position < self.durable() {
                let left = segment.end().since(position).min(INDEX_PIECE_BYTES) as usize;
                position = self.index_piece(position, left, Pace::Hurried, &mut Vec::new())?;
                self.indexer.advance(position);
            }
        }
        Ok(())
    }
}

/// Sorts the names, and removes files that were unfinished when the process ended.
pub(super) fn list_files(directory: &LocalDirectory, folder: &Path) -> Result<Files, OpenError> {
    let disk = directory.environment().disk.as_ref();
    let mut files =
        Files { segments: Vec::new(), spares: Vec::new(), next_spare: 0, has_group: false };
    for path in disk.list(folder).at(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(first) = segment::parse_file_name(&path) {
            files.segments.push((first, path));
        } else if let Some(number) = name.strip_suffix(SPARE_SUFFIX) {
            files.next_spare = files.next_spare.max(number.parse().map_or(0, |last: u64| last + 1));
            files.spares.push(path);
        } else if name.ends_with(NEW_SUFFIX) {
            disk.remove(&path).at(&path)?;
        } else if name == GROUP_FILE {
            files.has_group = true;
        }
    }
    files.segments.sort();
    Ok(files)
}

/// The header of the first segment of a log without a group.
fn first_header(directory: &LocalDirectory, options: &LogOptions, first: Lsn) -> SegmentHeader {
    SegmentHeader {
        stream: options.stream,
        database: directory.database(),
        blocks: segment::blocks_in(options.segment_size_bytes),
        first,
        incarnation: 0,
        watermarks: Watermarks::default(),
        entry_sectors: 0,
    }
}

/// Makes the first segment. Existing files come from an earlier attempt that did not finish, or of
/// a log that a member of a group has thrown away.
pub(super) fn create_first(
    directory: &LocalDirectory,
    files: &Files,
    folder: &Path,
    header: SegmentHeader,
) -> Result<(), OpenError> {
    let disk = directory.environment().disk.as_ref();
    for (_, path) in &files.segments {
        disk.remove(path).at(path)?;
    }
    // A name that is still there may be that of the new segment.
    disk.sync_directory(folder).at(folder)?;
    let made = Maker { disk, folder, header }.make(None, 0);
    made.map_err(|error| match error {
        MakeError::Retry(error) => (folder.to_owned(), error),
        MakeError::Fatal(place, error) => (place, error),
    })
    .or_else(|(place, error)| Err(error).at(&place))?;
    disk.sync_directory(directory.path()).at(directory.path())
}

/// Opens all segments and checks that they belong to this log and have no gap.
pub(super) fn open_segments(
    directory: &LocalDirectory,
    options: &LogOptions,
    folder: &Path,
    files: &[(Lsn, PathBuf)],
) -> Result<(Vec<Arc<Segment>>, Vec<SegmentHeader>), OpenError> {
    let (mut segments, mut headers) = (Vec::<Arc<Segment>>::new(), Vec::new());
    for (first, path) in files {
        let disk = directory.environment().disk.as_ref();
        let (segment, header) = open_segment(disk, path)?;
        let fault = header_fault(&header, *first, directory, options);
        if let Some(what) = fault {
            return Err(damaged(path, 0, what).into());
        }
        if let Some(before) = segments.last()
            && before.end() != *first
        {
            return Err(missing(folder, before.end()).into());
        }
        segments.push(Arc::new(segment));
        headers.push(header);
    }
    if segments.is_empty() {
        return Err(damaged(folder, 0, "all log segments are missing").into());
    }
    Ok((segments, headers))
}

fn open_segment(disk: &dyn Disk, path: &Path) -> Result<(Segment, SegmentHeader), OpenError> {
    let file = disk.open(path, OpenMode::ReadWrite).at(path)?;
    let length = file.length().at(path)?;
    if length < HEADER_BYTES as u64 {
        return Err(damaged(path, length, "the file ends within its header").into());
    }
    let mut bytes = [0; HEADER_BYTES];
    file.read_at(&mut bytes, 0).at(path)?;
    let header = SegmentHeader::decode(&bytes).map_err(|what| damaged(path, 0, what))?;
    if length < segment::payload_end_offset(header.blocks) {
        return Err(damaged(path, length, "the file was cut off").into());
    }
    Ok((Segment::new(&header, path.to_owned(), file), header))
}

fn header_fault(
    header: &SegmentHeader,
    first: Lsn,
    directory: &LocalDirectory,
    options: &LogOptions,
) -> Option<String> {
    if header.database != directory.database() {
        return Some(format!(
            "it belongs to database {}, not to {}",
            header.database,
            directory.database()
        ));
    }
    if header.stream != options.stream {
        return Some(format!(
            "it belongs to log stream {}, not to {}",
            header.stream, options.stream
        ));
    }
    (header.first != first).then(|| format!("it begins at log position {}", header.first))
}

pub(super) fn damaged(path: &Path, offset: u64, what: impl Into<String>) -> LogError {
    LogError::Damaged { at: segment::place(path, offset), what: what.into() }
}

fn missing(folder: &Path, first: Lsn) -> LogError {
    let what = format!("the file is missing although the log goes on in it at {first}");
    damaged(&folder.join(segment::file_name(first)), 0, what)
}

/// What is known of the log after the blocks up to `valid_end`.
pub(super) struct Scan {
    pub(super) valid_end: Lsn,
    pub(super) incarnation: u32,
    /// The highest position that a block names as durable.
    pub(super) durable: Lsn,
    /// Where the first group begins.
    pub(super) first_group: Lsn,
    /// Where the last group that was begun starts, and where it ends.
    last_group: (Lsn, Lsn),
    is_synchronised: bool,
}

impl Scan {
    /// Before the first block of the oldest segment, which begins at `first`. A group is known to
    /// begin at `origin`.
    pub(super) fn new(first: Lsn, origin: Lsn) -> Scan {
        // The stream's very first segment begins with a group; any other may begin inside one.
        let is_synchronised = first == origin;
        Scan {
            valid_end: first,
            incarnation: 0,
            durable: first,
            first_group: first,
            last_group: (first, first),
            is_synchronised,
        }
    }

    /// The end of the last whole group.
    pub(super) fn end(&self) -> Lsn {
        let (start, end) = self.last_group;
        if end <= self.valid_end { end } else { start }
    }

    /// Whether the block continues the log where it has ended so far.
    fn is_next(&self, block: &Block<'_>) -> bool {
        block.header.lsn == self.valid_end && block.header.incarnation >= self.incarnation
    }

    /// Follows the groups through a valid block.
    fn take(&mut self, block: &Block<'_>) -> Result<(), String> {
        let start = block.header.lsn;
        let first = block.header.first_group.map(|offset| start.advance(u64::from(offset)));
        if let (false, Some(first)) = (self.is_synchronised, first) {
            self.is_synchronised = true;
            self.first_group = first;
            self.last_group = (first, first);
        }
        self.valid_end = block.header.end();
        self.incarnation = block.header.incarnation;
        self.durable = self.durable.max(block.header.durable);
        if !self.is_synchronised {
            return Ok(());
        }
        let expected = (self.last_group.1 < self.valid_end).then_some(self.last_group.1);
        if expected != first {
            return Err(format!("groups do not follow each other at log position {start}"));
        }
        while self.last_group.1 < self.valid_end {
            let group = self.last_group.1;
            let length = group_length(&block.data[group.since(start) as usize..])
                .map_err(|damage| format!("at log position {group}: {damage}"))?;
            self.last_group = (group, group.advance(length));
        }
        Ok(())
    }
}

/// The length in the group header at the start of `bytes`; the group may continue after them.
fn group_length(bytes: &[u8]) -> Result<u64, GroupDamage> {
    match Group::parse(bytes) {
        Ok(group) => Ok(group.length_bytes()),
        Err(GroupDamage::Incomplete) => {
            let length = bytes.first_chunk::<4>().ok_or(GroupDamage::Incomplete)?;
            Ok(u64::from(u32::from_le_bytes(*length)))
        }
        Err(damage) => Err(damage),
    }
}

/// Calls `visit` with the number and bytes of blocks `from..to` of a segment until it returns
/// false.
pub(super) fn for_each_block(
    segment: &Segment,
    from: u32,
    to: u32,
    mut visit: impl FnMut(Lsn, &[u8]) -> Result<bool, OpenError>,
) -> Result<bool, OpenError> {
    let mut bytes = Vec::new();
    let mut number = from;
    while number < to {
        let lsn = |number: u32| segment.first.advance(u64::from(number) * BLOCK_DATA_BYTES as u64);
        let blocks = ((to - number) as usize).min(PIECE_BLOCKS);
        bytes.resize(blocks * BLOCK_BYTES, 0);
        segment.file.read_at(&mut bytes, segment.offset_of(lsn(number))).at(&segment.path)?;
        for block in bytes.chunks_exact(BLOCK_BYTES) {
            if !visit(lsn(number), block)? {
                return Ok(false);
            }
            number += 1;
        }
    }
    Ok(true)
}

/// Where the first group of the kept log begins.
fn find_first_group(segments: &[Arc<Segment>]) -> Result<Option<Lsn>, OpenError> {
    for segment in segments {
        let footer = match &*segment.index.lock() {
            SegmentIndex::Footer(head) => Some(head.first_group),
            SegmentIndex::Memory(_) => None,
        };
        let mut found = footer.flatten();
        let to = if footer.is_some() { 0 } else { segment.blocks };
        for_each_block(segment, 0, to, |lsn, bytes| {
            let block = block::open(bytes).map_err(|what| segment.damaged(lsn, what))?;
            found = block.header.first_group.map(|offset| lsn.advance(u64::from(offset)));
            Ok(found.is_none())
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Where to begin: after the newest segment that has its footer, because everything before it is
/// durable.
fn find_start(segments: &[Arc<Segment>], origin: Lsn) -> Result<(usize, Scan), OpenError> {
    let footer = |segment: &Arc<Segment>| match &*segment.index.lock() {
        SegmentIndex::Footer(head) => Some(*head),
        SegmentIndex::Memory(_) => None,
    };
    let newest = segments
        .iter()
        .enumerate()
        .rev()
        .find_map(|(number, segment)| footer(segment).map(|head| (number, head)));
    let Some((number, head)) = newest else { return Ok((0, Scan::new(segments[0].first, origin))) };
    let first_group = find_first_group(&segments[..=number])?;
    let scan = Scan {
        valid_end: segments[number].end(),
        incarnation: head.incarnation,
        durable: segments[number].end(),
        first_group: first_group.unwrap_or(head.next_group),
        last_group: (head.next_group, head.next_group),
        is_synchronised: true,
    };
    Ok((number + 1, scan))
}

/// Follows the log from the newest footer to its end. A group begins at `origin`, if that is kept.
pub(super) fn find_end(segments: &[Arc<Segment>], origin: Lsn) -> Result<Scan, OpenError> {
    let (start, mut scan) = find_start(segments, origin)?;
    for (number, segment) in segments.iter().enumerate().skip(start) {
        let is_full = for_each_block(segment, 0, segment.blocks, |lsn, bytes| {
            let Ok(block) = block::open(bytes) else { return Ok(false) };
            if !scan.is_next(&block) {
                return Ok(false);
            }
            scan.take(&block).map_err(|what| segment.damaged(lsn, what))?;
            Ok(block.data.len() == BLOCK_DATA_BYTES)
        })?;
        if !is_full {
            refuse_if_more_was_durable(&segments[number..], &scan)?;
            return Ok(scan);
        }
    }
    // D3: the last file is never filled to its end.
    let last = &segments[segments.len() - 1];
    Err(missing(last.path.parent().unwrap_or(Path::new("")), last.end()).into())
}

/// Refuses a log that was cut or damaged at `scan.valid_end`, which is in the first of `segments`.
fn refuse_if_more_was_durable(segments: &[Arc<Segment>], scan: &Scan) -> Result<(), OpenError> {
    let broken = &segments[0];
    let at = scan.valid_end;
    if scan.end() > at {
        return Err(broken
            .damaged(at, "the segment before says that more of the log was durable")
            .into());
    }
    if !scan.is_synchronised || scan.incarnation == 0 {
        return Err(broken.damaged(at, "the log's first block is not valid").into());
    }
    for segment in segments {
        let is_first = segment.first == broken.first;
        let from = if is_first { at.since(segment.first) / BLOCK_DATA_BYTES as u64 + 1 } else { 0 };
        let searched = SEARCHED_BLOCKS_OF_LATER_SEGMENTS.min(segment.blocks);
        let to = if is_first { segment.blocks } else { searched };
        for_each_block(segment, from as u32, to, |lsn, bytes| match block::open(bytes) {
            Ok(Block { header, .. })
                if header.lsn == lsn
                    && header.incarnation >= scan.incarnation
                    && header.durable > at =>
            {
                let what = format!(
                    "log from position {at} on is not valid, but the block at {lsn} says that it was durable up to {}",
                    header.durable
                );
                Err(broken.damaged(at, what).into())
            }
            _ => Ok(true),
        })?;
    }
    Ok(())
}

/// Makes the recovered log durable. It may be only in the kernel's memory, left there by a process
/// that was killed or that ended because a sync failed. In that case the kernel considers it
/// written, and only writing the same bytes again makes it write them.
pub(super) fn make_durable(segments: &[Arc<Segment>], scan: &Scan) -> Result<(), OpenError> {
    for segment in segments.iter().filter(|segment| segment.first <= scan.valid_end) {
        let from = scan.durable.max(segment.first);
        let to = scan.valid_end.min(segment.end());
        if from < to {
            let number =
                |lsn: Lsn| lsn.since(segment.first).div_ceil(BLOCK_DATA_BYTES as u64) as u32;
            let first = number(segment.block_start(from));
            for_each_block(segment, first, number(to), |lsn, bytes| {
                segment.file.write_at(bytes, segment.offset_of(lsn)).at(&segment.path)?;
                Ok(true)
            })?;
        }
        segment.file.sync_data().at(&segment.path)?;
    }
    Ok(())
}

/// A writer that goes on at `end`. Its first act has to be the block in which the log ends, with
/// the new incarnation: that cuts off the rest (D4).
pub(super) fn writer_at(
    segments: &[Arc<Segment>],
    end: Lsn,
    incarnation: u32,
) -> Result<Writer, OpenError> {
    let current = segments.iter().find(|segment| segment.contains(end));
    let current = current.expect("the last segment is not full").clone();
    let block_start = current.block_start(end);
    let (mut partial, mut first_group) = (Vec::new(), None);
    if block_start < end {
        let mut bytes = [0; BLOCK_BYTES];
        current.file.read_at(&mut bytes, current.offset_of(end)).at(&current.path)?;
        let block = block::open(&bytes).map_err(|what| current.damaged(end, what))?;
        let kept = end.since(block_start) as usize;
        let data = block.data.get(..kept);
        partial.extend_from_slice(data.ok_or_else(|| current.damaged(end, "the block changed"))?);
        first_group = block.header.first_group.filter(|offset| usize::from(*offset) < kept);
    }
    Ok(Writer::new(current, end, partial, first_group, incarnation))
}

#[cfg(test)]
mod tests;
