//! Writing: groups into blocks, blocks into files, and syncs.
//!
//! An append formats its bytes into whole blocks, together with the bytes that are already in the
//! partly filled last block, and writes them in pieces of up to [`PIECE_BYTES`]. Each piece is
//! padded with zeros to a page of memory, so that the kernel never has to read a page of a reused
//! file from the disk to change a part of it.
//!
//! ```text
//!   file before   │ 488 │ 488 │ 120 │  ?  │  ?  │ …          written = block 2 + 120
//!   append of 600 │     │     │ 488 │ 232 │ 0 0 │ …          one write at block 2
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use firn_api::{LogEpoch, LogError, Tail, WriterEpoch};
use firn_base::Lsn;
use firn_format::redo::Group;

use super::Shared;
use super::block::{self, BLOCK_BYTES, BLOCK_DATA_BYTES, BLOCK_HEADER_BYTES, BlockHeader};
use super::segment::Segment;

/// The most that is formatted before it is written.
const PIECE_BYTES: usize = 512 * 1024;
const MEMORY_PAGE_BYTES: usize = 4096;

/// Where the log ends, for readers and for sync. Full blocks before it never change in the files;
/// the remaining bytes are here.
pub(super) struct PublishedTail {
    /// The end of the appended log.
    pub(super) written: Lsn,
    /// The segment that was last written to.
    pub(super) segment: Arc<Segment>,
    /// The data of the block in which the log ends, if it is partly filled.
    pub(super) partial: Vec<u8>,
}

impl PublishedTail {
    /// Where the partly filled block begins; everything before it is final in the files.
    pub(super) fn partial_start(&self) -> Lsn {
        Lsn(self.written.0 - self.partial.len() as u64)
    }
}

/// The appender's own state. There is one; its owner may write.
pub(super) struct Writer {
    segment: Arc<Segment>,
    position: Lsn,
    partial: Vec<u8>,
    first_group: Option<u16>,
    /// Also the epoch, once a writer has opened the stream.
    incarnation: u32,
    is_opened: bool,
    buffer: Vec<u8>,
}

/// Finds where groups begin, in one pass through bytes known to be whole groups.
struct GroupStarts<'a> {
    bytes: &'a [u8],
    start: Lsn,
    next: Lsn,
}

impl GroupStarts<'_> {
    /// The first group that begins in `from..to`; positions must increase between calls.
    fn first_in(&mut self, from: Lsn, to: Lsn) -> Option<Lsn> {
        let mut found = None;
        while self.next < to && self.next.since(self.start) < self.bytes.len() as u64 {
            if self.next >= from && found.is_none() {
                found = Some(self.next);
            }
            let at = self.next.since(self.start) as usize;
            self.next = self.next.advance(group_length(&self.bytes[at..]));
        }
        found
    }
}

/// The length of the group at the start of `bytes`, which must be a valid group.
fn group_length(bytes: &[u8]) -> u64 {
    Group::parse(bytes).expect("an append takes whole log groups").length_bytes()
}

impl Writer {
    /// A writer that continues at `position`, after `partial` in the same block.
    pub(super) fn new(
        segment: Arc<Segment>,
        position: Lsn,
        partial: Vec<u8>,
        first_group: Option<u16>,
        incarnation: u32,
    ) -> Writer {
        assert_eq!(segment.block_start(position).advance(partial.len() as u64), position);
        Writer {
            segment,
            position,
            partial,
            first_group,
            incarnation,
            is_opened: false,
            buffer: Vec::new(),
        }
    }

    /// The end of the log, for readers and for sync.
    pub(super) fn published(&self) -> PublishedTail {
        PublishedTail {
            written: self.position,
            segment: self.segment.clone(),
            partial: self.partial.clone(),
        }
    }

    /// The end of the written log.
    pub(super) fn position(&self) -> Lsn {
        self.position
    }

    /// The segment that is being written.
    pub(super) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    pub(super) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Writes the block in which the log ends, with the statement that all of it is durable. Blocks
    /// for I/O.
    pub(super) fn write_last_block(&mut self) -> std::io::Result<()> {
        let offset = self.segment.offset_of(self.position);
        let mut block = [0; BLOCK_BYTES];
        block[BLOCK_HEADER_BYTES..][..self.partial.len()].copy_from_slice(&self.partial);
        block::seal(&mut block, &self.header(self.position));
        self.segment.file.write_at(&block, offset)?;
        self.segment.file.sync_data()
    }

    /// The epoch for a writer that requests `epoch`.
    ///
    /// # Errors
    /// [`LogError::Fenced`] if it is not above all others.
    fn grant(&self, epoch: WriterEpoch) -> Result<u32, LogError> {
        // The incarnation is unused until the first writer comes.
        let lowest = self.incarnation.saturating_add(u32::from(self.is_opened));
        let wanted = match epoch {
            WriterEpoch::Next => u64::from(lowest),
            WriterEpoch::Exactly(LogEpoch(epoch)) => epoch,
        };
        match u32::try_from(wanted) {
            Ok(granted) if granted >= lowest && granted > 0 => Ok(granted),
            _ => Err(self.fenced()),
        }
    }

    fn fenced(&self) -> LogError {
        LogError::Fenced { by: LogEpoch(u64::from(self.incarnation)) }
    }

    /// Makes `epoch` the one that may write, durably (D4). Blocks for I/O.
    fn begin_epoch(&mut self, shared: &Shared, epoch: u32) -> Result<(), LogError> {
        if self.position == self.segment.end() {
            self.cross(shared)?;
        }
        if epoch != self.incarnation {
            self.incarnation = epoch;
            self.write_last_block().map_err(|error| shared.fail(&self.segment.path, error))?;
            shared.incarnation.store(epoch, Ordering::Release);
        }
        self.is_opened = true;
        Ok(())
    }

    fn header(&self, durable: Lsn) -> BlockHeader {
        BlockHeader {
            lsn: Lsn(self.position.0 - self.partial.len() as u64),
            length: self.partial.len() as u16,
            first_group: self.first_group,
            incarnation: self.incarnation,
            durable,
        }
    }

    /// Writes whole groups. Blocks for I/O.
    pub(super) fn write(&mut self, shared: &Shared, groups: &[u8]) -> Result<(), LogError> {
        let mut starts = GroupStarts { bytes: groups, start: self.position, next: self.position };
        let mut rest = groups;
        while !rest.is_empty() {
            if self.position == self.segment.end() {
                self.cross(shared)?;
            }
            let piece_limit = PIECE_BYTES / BLOCK_BYTES * BLOCK_DATA_BYTES - self.partial.len();
            let room = self.segment.end().since(self.position);
            let length =
                rest.len().min(piece_limit).min(usize::try_from(room).unwrap_or(usize::MAX));
            let (piece, behind) = rest.split_at(length);
            self.write_piece(shared, piece, &mut starts)?;
            rest = behind;
        }
        Ok(())
    }

    fn write_piece(
        &mut self,
        shared: &Shared,
        piece: &[u8],
        starts: &mut GroupStarts<'_>,
    ) -> Result<(), LogError> {
        let offset = self.segment.offset_of(self.position);
        // Log in earlier segments is durable, by D2.
        let synced = shared.synced().max(self.segment.first);
        self.format(piece, starts, synced);
        let end = offset as usize + self.buffer.len();
        let padding = end.next_multiple_of(MEMORY_PAGE_BYTES) - end;
        self.buffer.resize(self.buffer.len() + padding, 0);
        self.segment
            .file
            .write_at(&self.buffer, offset)
            .map_err(|error| shared.fail(&self.segment.path, error))
    }

    /// Fills the buffer with the blocks from the partly filled one on.
    fn format(&mut self, mut piece: &[u8], starts: &mut GroupStarts<'_>, durable: Lsn) {
        self.buffer.clear();
        while !piece.is_empty() {
            let length = piece.len().min(BLOCK_DATA_BYTES - self.partial.len());
            let (data, behind) = piece.split_at(length);
            let end = self.position.advance(length as u64);
            if let Some(start) = starts.first_in(self.position, end) {
                let offset = self.partial.len() as u64 + start.since(self.position);
                self.first_group = self.first_group.or(Some(offset as u16));
            }
            self.partial.extend_from_slice(data);
            self.position = end;
            let base = self.buffer.len();
            self.buffer.resize(base + BLOCK_BYTES, 0);
            let header = self.header(durable);
            let block = &mut self.buffer[base..];
            block[BLOCK_HEADER_BYTES..][..self.partial.len()].copy_from_slice(&self.partial);
            block::seal(block, &header);
            if self.partial.len() == BLOCK_DATA_BYTES {
                self.partial.clear();
                self.first_group = None;
            }
            piece = behind;
        }
    }

    /// Moves on to the next segment, which exists because the appender waited for room. D2: syncs
    /// the full one first.
    pub(super) fn cross(&mut self, shared: &Shared) -> Result<(), LogError> {
        if shared.synced() < self.position {
            self.segment
                .file
                .sync_data()
                .map_err(|error| shared.fail(&self.segment.path, error))?;
        }
        self.segment = shared.segments.lock().begin_next();
        shared.keeper_wake.notify_all();
        Ok(())
    }
}

/// Holds the writer token (rule 3) and returns it.
pub(super) struct Token<'a> {
    shared: &'a Shared,
    writer: Option<Box<Writer>>,
}

impl Token<'_> {
    /// The writer, which is the caller's until the token is dropped.
    pub(super) fn writer(&mut self) -> &mut Writer {
        self.writer.as_mut().expect("the token was awaited")
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        *self.shared.writer.lock() = self.writer.take();
        self.shared.writer_back.notify_all();
    }
}

impl Shared {
    pub(super) fn take_writer(&self) -> Token<'_> {
        let mut writer = None;
        self.writer_back.wait_until(None, || {
            writer = self.writer.lock().take();
            writer.is_some()
        });
        Token { shared: self, writer }
    }

    /// See [`firn_api::LogStore::open`].
    pub(super) fn open_writer(&self, epoch: WriterEpoch) -> Result<Tail, LogError> {
        self.check_open()?;
        if self.group.is_some() {
            return Err(LogError::NotLeader { hint: None });
        }
        let mut token = self.take_writer();
        let writer = token.writer();
        let epoch = writer.grant(epoch)?;
        // Log written by an older writer may be acknowledged at any moment: it is part of the log.
        let end = self.sync_written()?;
        writer.begin_epoch(self, epoch)?;
        *self.tail.lock() = writer.published();
        self.wait_until_indexed(end)?;
        let watermarks = *self.watermarks.lock();
        Ok(Tail { epoch: LogEpoch(u64::from(epoch)), end, watermarks })
    }

    pub(super) fn append_groups(
        &self,
        epoch: LogEpoch,
        start: Lsn,
        groups: &[u8],
    ) -> Result<(), LogError> {
        self.check_open()?;
        let mut token = self.take_writer();
        let writer = token.writer();
        if epoch.0 != u64::from(writer.incarnation) || !writer.is_opened {
            return Err(writer.fenced());
        }
        assert_eq!(start, writer.position, "an append begins where the last one ended");
        self.wait_for_room(start.advance(groups.len() as u64))?;
        writer.write(self, groups)?;
        // From here on, the partial block in memory and the full blocks in the files make up the
        // whole log again.
        let published = writer.published();
        *self.tail.lock() = published;
        Ok(())
    }

    /// The end of the written log, and its segment.
    pub(super) fn written(&self) -> (Lsn, Arc<Segment>) {
        let tail = self.tail.lock();
        (tail.written, tail.segment.clone())
    }

    /// Starts writing back log that is written but not durable.
    pub(super) fn begin_write_back(&self) {
        let (written, segment) = self.written();
        // Log in earlier segments is durable, by D2.
        let from = segment.offset_of(self.durable().max(segment.first));
        let end = segment.offset_of(written) + BLOCK_BYTES as u64;
        segment.file.begin_write_back(from, end.saturating_sub(from));
    }

    pub(super) fn sync_written(&self) -> Result<Lsn, LogError> {
        self.check_alive()?;
        let (written, segment) = self.written();
        if written > self.durable() {
            segment.file.sync_data().map_err(|error| self.fail(&segment.path, error))?;
            self.check_alive()?;
            self.durable.fetch_max(written.0, Ordering::SeqCst);
            self.advanced.notify_all();
            self.indexer.notify_durable();
        }
        Ok(self.durable())
    }
}
