//! Reading: from positions to bytes, each block verified.
//!
//! Blocks before the published tail's partly filled block are full and are never written again, so
//! reading them needs no latch. The partly filled block may be being written; its bytes come from
//! memory.

use std::sync::Arc;

use firn_api::LogError;
use firn_base::Lsn;
use firn_format::redo::group::MAX_GROUP_BYTES;
use firn_format::redo::{Group, GroupDamage};

use super::Shared;
use super::block::{self, BLOCK_BYTES, BLOCK_DATA_BYTES};
use super::segment::Segment;

/// The most log read from a file at once: 1 MiB.
const READ_BLOCKS: usize = 2148;

/// Reads the full blocks of `segment` that hold `from..to` and appends these bytes to `into`.
///
/// # Errors
/// [`LogError::Unreadable`] or [`LogError::Damaged`].
fn read_full_blocks(
    segment: &Segment,
    from: Lsn,
    to: Lsn,
    into: &mut Vec<u8>,
) -> Result<(), LogError> {
    let mut scratch = Vec::new();
    let mut position = from;
    while position < to {
        let mut lsn = segment.block_start(position);
        let blocks =
            to.since(lsn).div_ceil(BLOCK_DATA_BYTES as u64).min(READ_BLOCKS as u64) as usize;
        scratch.resize(blocks * BLOCK_BYTES, 0);
        segment
            .file
            .read_at(&mut scratch, segment.offset_of(lsn))
            .map_err(|error| segment.unreadable(lsn, &error))?;
        for bytes in scratch.chunks_exact(BLOCK_BYTES) {
            let block = open_full(bytes, lsn).map_err(|what| segment.damaged(lsn, what))?;
            let end = lsn.advance(BLOCK_DATA_BYTES as u64).min(to);
            into.extend_from_slice(&block[position.since(lsn) as usize..end.since(lsn) as usize]);
            lsn = lsn.advance(BLOCK_DATA_BYTES as u64);
            position = end;
        }
    }
    Ok(())
}

/// The data of the full block that begins at `lsn`.
fn open_full(bytes: &[u8], lsn: Lsn) -> Result<&[u8], &'static str> {
    let block = block::open(bytes)?;
    if block.header.lsn != lsn {
        return Err("a block of another place stands here");
    }
    if block.data.len() != BLOCK_DATA_BYTES {
        return Err("an old version of the block stands here: a write was lost");
    }
    Ok(block.data)
}

/// The length of the whole groups at the start of `bytes`.
///
/// # Errors
/// The offset in `bytes` of a group with a bad header, and what is wrong with it.
pub(super) fn whole_groups(bytes: &[u8]) -> Result<usize, (usize, GroupDamage)> {
    let mut position = 0;
    while position < bytes.len() {
        match Group::parse(&bytes[position..]) {
            Ok(group) => position += group.length_bytes() as usize,
            Err(GroupDamage::Incomplete) => break,
            Err(damage) => return Err((position, damage)),
        }
    }
    Ok(position)
}

impl Shared {
    /// Appends the log bytes `from..to` to `into`. Blocks for the read.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`], [`LogError::Unreadable`] or [`LogError::Damaged`].
    pub(super) fn read_bytes(
        &self,
        from: Lsn,
        to: Lsn,
        into: &mut Vec<u8>,
    ) -> Result<(), LogError> {
        let (partial_start, partial) = {
            let tail = self.tail.lock();
            // Reads of older log need no copy, and most reads are of older log.
            let partial = if to > tail.partial_start() { tail.partial.clone() } else { Vec::new() };
            (tail.partial_start(), partial)
        };
        let mut position = from;
        while position < to.min(partial_start) {
            let segment = self.find_segment(position)?;
            let end = to.min(partial_start).min(segment.end());
            let read = read_full_blocks(&segment, position, end, into);
            read.map_err(|error| self.instead_if_released(from, error))?;
            position = end;
        }
        if position < to {
            let range = position.since(partial_start) as usize..to.since(partial_start) as usize;
            let bytes = partial.get(range).ok_or_else(|| self.out_of_range(to))?;
            into.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// See [`firn_api::LogStore::read`].
    pub(super) fn read_groups(
        &self,
        from: Lsn,
        limit_bytes: usize,
        into: &mut Vec<u8>,
    ) -> Result<Lsn, LogError> {
        let durable = self.durable();
        if from < self.truncated() || from > durable {
            return Err(self.out_of_range(from));
        }
        let start = into.len();
        let read = self.read_some_groups(from, limit_bytes, durable, into);
        into.truncate(start + read.as_ref().map_or(0, |read| *read));
        Ok(from.advance(read? as u64))
    }

    /// Appends at least the requested groups to `into`; returns the length that counts.
    fn read_some_groups(
        &self,
        from: Lsn,
        limit_bytes: usize,
        durable: Lsn,
        into: &mut Vec<u8>,
    ) -> Result<usize, LogError> {
        let start = into.len();
        let to = Lsn(from.0.saturating_add(limit_bytes as u64)).min(durable);
        let read = self.read_whole_groups(from, to, start, into)?;
        if read > 0 || from == durable {
            return Ok(read);
        }
        // Not even the first group fits into the limit: then it alone is returned.
        into.truncate(start);
        let to = from.advance(MAX_GROUP_BYTES as u64).min(durable);
        self.read_whole_groups(from, to, start, into)?;
        let group = Group::parse(&into[start..]);
        let group = group.map_err(|damage| self.damaged_group(from, &damage))?;
        Ok(group.length_bytes() as usize)
    }

    fn read_whole_groups(
        &self,
        from: Lsn,
        to: Lsn,
        start: usize,
        into: &mut Vec<u8>,
    ) -> Result<usize, LogError> {
        self.read_bytes(from, to, into)?;
        whole_groups(&into[start..])
            .map_err(|(at, damage)| self.damaged_group(from.advance(at as u64), &damage))
    }

    /// The error for bytes at `lsn` that are not a group although their blocks are valid.
    pub(super) fn damaged_group(&self, lsn: Lsn, damage: &GroupDamage) -> LogError {
        match self.find_segment(lsn) {
            Ok(segment) => segment.damaged(lsn, format!("at log position {lsn}: {damage}")),
            Err(error) => error,
        }
    }

    /// The segment that holds `lsn`.
    pub(super) fn find_segment(&self, lsn: Lsn) -> Result<Arc<Segment>, LogError> {
        let segment = self.segments.lock().find(lsn);
        segment.ok_or_else(|| self.out_of_range(lsn))
    }

    /// The error for a position that is not kept.
    pub(super) fn out_of_range(&self, position: Lsn) -> LogError {
        LogError::OutOfRange { position, from: self.truncated(), to: self.durable() }
    }

    /// A file that was released during the read may have been reused: that is no damage.
    pub(super) fn instead_if_released(&self, from: Lsn, error: LogError) -> LogError {
        if from < self.truncated() { self.out_of_range(from) } else { error }
    }
}
