//! Finding the records of a page: index first, then the groups that it names.

use std::sync::Arc;

use firn_api::LogError;
use firn_base::{Lsn, PageId};
use firn_format::redo::{Group, GroupDamage};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::Shared;
use super::footer::{FooterHead, StoredIndex};
use super::index::from_units;
use super::segment::{Segment, SegmentIndex};
use crate::local::page_log::RecordVisitor;

/// How much is read of a group of unknown length; most groups are smaller.
const GROUP_GUESS_BYTES: u64 = 1024;
/// Groups this close to each other are read together.
const GAP_BYTES: u64 = 4096;
/// The most that is read together.
const WINDOW_BYTES: u64 = 256 * 1024;

/// Footers that were read: the most recently used ones, up to a limit in bytes.
pub(super) struct IndexCache {
    limit_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    indexes: FxHashMap<Lsn, (Arc<StoredIndex>, u64)>,
    size_bytes: usize,
    clock: u64,
}

impl IndexCache {
    pub(super) fn new(limit_bytes: usize) -> IndexCache {
        IndexCache { limit_bytes, kept: Mutex::default() }
    }

    fn get(&self, first: Lsn) -> Option<Arc<StoredIndex>> {
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let now = kept.clock;
        let (index, used) = kept.indexes.get_mut(&first)?;
        *used = now;
        Some(index.clone())
    }

    fn put(&self, first: Lsn, index: Arc<StoredIndex>) {
        let mut kept = self.kept.lock();
        kept.clock += 1;
        let now = kept.clock;
        kept.size_bytes += index.size_bytes();
        if let Some((before, _)) = kept.indexes.insert(first, (index, now)) {
            kept.size_bytes -= before.size_bytes();
        }
        while kept.size_bytes > self.limit_bytes {
            let oldest = kept.indexes.iter().min_by_key(|(_, (_, used))| *used);
            let Some(oldest) = oldest.map(|(first, _)| *first) else { break };
            kept.remove(oldest);
        }
    }

    /// Bytes that the footers take in memory.
    pub(super) fn size_bytes(&self) -> usize {
        self.kept.lock().size_bytes
    }

    /// Drops the footer of a released segment.
    pub(super) fn remove(&self, first: Lsn) {
        self.kept.lock().remove(first);
    }
}

impl Kept {
    fn remove(&mut self, first: Lsn) {
        if let Some((index, _)) = self.indexes.remove(&first) {
            self.size_bytes -= index.size_bytes();
        }
    }
}

impl Shared {
    /// See [`crate::local::page_log::PageLog::visit_records`].
    pub(super) fn visit_records(
        &self,
        page: PageId,
        from: Lsn,
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        if from < self.truncated() {
            return Err(self.out_of_range(from));
        }
        if to > self.indexer.index_end() {
            return Err(self.out_of_range(to));
        }
        let segments = self.segments.lock().overlapping(from, to);
        for segment in segments {
            let starts = self.starts_in(&segment, page);
            let starts = starts.map_err(|error| self.instead_if_released(from, error))?;
            let starts: Vec<Lsn> = starts
                .into_iter()
                .map(|units| from_units(segment.first, units))
                .filter(|start| *start >= from && *start < to)
                .collect();
            self.visit_groups(page, &starts, to, visit)?;
        }
        Ok(())
    }

    fn starts_in(&self, segment: &Segment, page: PageId) -> Result<Vec<u32>, LogError> {
        loop {
            let head = match &*segment.index.lock() {
                SegmentIndex::Memory(index) => return Ok(index.starts(page.to_u64())),
                SegmentIndex::Footer(head) => *head,
            };
            let stored = self.stored_index(segment, &head);
            match stored.and_then(|index| index.starts(page.to_u64())) {
                Some(starts) => return Ok(starts),
                None => self.rebuild_index(segment)?,
            }
        }
    }

    fn stored_index(&self, segment: &Segment, head: &FooterHead) -> Option<Arc<StoredIndex>> {
        if let Some(index) = self.index_cache.get(segment.first) {
            return Some(index);
        }
        let index = Arc::new(segment.read_index(head)?);
        self.index_cache.put(segment.first, index.clone());
        Some(index)
    }

    /// Reads the groups that begin at `starts` and visits their records about `page`.
    fn visit_groups(
        &self,
        page: PageId,
        mut starts: &[Lsn],
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<(), LogError> {
        let mut bytes = Vec::new();
        while let Some(&first) = starts.first() {
            let (window, behind) = starts.split_at(window_length(starts));
            let last = window[window.len() - 1];
            bytes.clear();
            self.read_bytes(first, last.advance(GROUP_GUESS_BYTES).min(to), &mut bytes)?;
            for &start in window {
                let known = &bytes[start.since(first) as usize..];
                if !self.visit_group(page, start, known, to, visit)? {
                    return Ok(());
                }
            }
            starts = behind;
        }
        Ok(())
    }

    /// Visits the records about `page` of one group; false if the group ends after `to`.
    fn visit_group(
        &self,
        page: PageId,
        start: Lsn,
        known: &[u8],
        to: Lsn,
        visit: &mut RecordVisitor<'_>,
    ) -> Result<bool, LogError> {
        let mut whole = Vec::new();
        let group = match Group::parse(known) {
            Err(GroupDamage::Incomplete) => {
                let length =
                    known.first_chunk::<4>().map_or(0, |length| u32::from_le_bytes(*length));
                let end = start.advance(u64::from(length));
                if end > to {
                    return Ok(false);
                }
                self.read_bytes(start, end, &mut whole)?;
                Group::parse(&whole)
            }
            parsed => parsed,
        };
        let group = group.map_err(|damage| self.damaged_group(start, &damage))?;
        let end = start.advance(group.length_bytes());
        if end > to {
            return Ok(false);
        }
        for record in group.records() {
            let record = record.map_err(|damage| self.damaged_group(start, &damage))?;
            if record.page == page {
                visit(start, end, record)?;
            }
        }
        Ok(true)
    }
}

/// How many of the groups are read together; there is at least one.
fn window_length(starts: &[Lsn]) -> usize {
    let is_near = |pair: &[Lsn]| {
        pair[1].since(pair[0]) <= GAP_BYTES && pair[1].since(starts[0]) <= WINDOW_BYTES
    };
    1 + starts.windows(2).take_while(|pair| is_near(pair)).count()
}
