//! Renewing a snapshot.
//!
//! A write to a record that has changed since the snapshot is refused, because it would overwrite
//! that change. But the transaction need not fail if it could as well have begun later: that is so
//! if a newer snapshot shows the same content for everything that the transaction has read:
//!
//! ```text
//!   S1: read a ─ read b…d ─ write e, which has changed since S1: refused, the statement is taken back
//!                              └─► lock e ─► S2 ─► are a and b…d the same in S2?
//!                                                   ├─ yes: S2 is the snapshot, and the statement is run again
//!                                                   └─ no:  S1 stays, and the refusal
//! ```
//!
//! If nothing was read from S1 before the statement, any newer snapshot is valid. CockroachDB moves
//! the timestamps of its transactions in the same way.
//!
//! Rules, cited by number:
//!
//! 1. S1 stays registered until all reads have been checked, so that no record that was deleted
//!    since has been purged.
//! 2. The record is locked before S2 is opened, so that no other transaction changes it before the
//!    statement reaches it again.
//! 3. Since S1, no other transaction has changed a record that this transaction has written:
//!    otherwise the write would have been refused, and from the write on the record is locked.
//! 4. Reads are recorded up to a limit. Beyond it, or after reads that are not recorded, the
//!    snapshot is not renewed.
//! 5. A node that follows records reads too, for the node at which the transaction goes on
//!    ([`super::described`]).

use std::cell::Cell;
use std::ops::Bound;

use firn_api::rows::{ReadMark, ReadSpan, WaitPolicy};
use firn_base::{Cts, IndexId, TrxId};
use firn_format::tree::TreePage;
use firn_format::undo::RecordVersion;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::lock::LockMode;
use crate::pages::Restart;
use crate::transaction::cursor::KeyRange;
use crate::transaction::handle::Transaction;
use crate::transaction::read::no_version;
use crate::transaction::read_transaction::ReadTransaction;
use crate::transaction::snapshots::SnapshotSlot;
use crate::transaction::table::Outcome;
use crate::transaction::versions::{ReadView, Reader};
use crate::transaction::write::WriteGuard;
use crate::tree::Target;

/// The most reads that a transaction records.
const MOST_READS: usize = 256;
/// The most records that one renewal checks.
const MOST_RECORDS: usize = 4096;
/// The mark of a transaction that has not recorded all of its reads.
const UNKNOWN: ReadMark = ReadMark(u32::MAX);
/// The most bytes of keys in the description of what was read.
const MOST_DESCRIBED_BYTES: usize = 64 << 10;

/// The reads from a transaction's snapshot, and the record that it could not write.
#[derive(Default)]
pub(crate) struct Reads {
    spans: Vec<Span>,
    keeps: bool,
    /// Whether a read is missing among the spans (rule 4).
    is_lost: bool,
    conflict: Cell<Option<Box<Conflict>>>,
}

/// A record, whether or not it exists, or a range of keys.
enum Span {
    Record(IndexId, SmallVec<[u8; 24]>),
    Range(IndexId, KeyRange),
}

impl Span {
    fn key_bytes(&self) -> usize {
        let length = |bound: &Bound<Vec<u8>>| match bound {
            Bound::Included(key) | Bound::Excluded(key) => key.len(),
            Bound::Unbounded => 0,
        };
        match self {
            Span::Record(_, key) => key.len(),
            Span::Range(_, range) => length(&range.low) + length(&range.high),
        }
    }

    fn described(&self) -> ReadSpan {
        match self {
            Span::Record(index, key) => ReadSpan::Record(*index, key.to_vec()),
            Span::Range(index, KeyRange { low, high }) => {
                ReadSpan::Range(*index, low.clone(), high.clone())
            }
        }
    }

    fn of_described(described: &ReadSpan) -> Span {
        match described {
            ReadSpan::Record(index, key) => Span::Record(*index, SmallVec::from_slice(key)),
            ReadSpan::Range(index, low, high) => {
                Span::Range(*index, KeyRange { low: low.clone(), high: high.clone() })
            }
        }
    }
}

/// A record that has changed since the snapshot, and the requested lock on it.
struct Conflict {
    index: IndexId,
    key: Box<[u8]>,
    mode: LockMode,
}

impl Reads {
    /// From now on, reads are not recorded (rule 4).
    pub(super) fn lose(&mut self) {
        self.spans.clear();
        self.is_lost = true;
    }

    /// Forgets the reads, because the snapshot is closed.
    pub(super) fn clear(&mut self) {
        self.spans.clear();
        self.is_lost = false;
    }

    /// What was read, if that is known and not too long to be told.
    pub(super) fn described(&self) -> Option<Vec<ReadSpan>> {
        if !self.keeps || self.is_lost {
            return None;
        }
        let bytes: usize = self.spans.iter().map(Span::key_bytes).sum();
        (bytes <= MOST_DESCRIBED_BYTES).then(|| self.spans.iter().map(Span::described).collect())
    }

    /// These were the reads from the snapshot so far, and more will be recorded.
    pub(super) fn go_on_from(&mut self, described: &[ReadSpan]) {
        self.is_lost = described.len() > MOST_READS;
        self.keeps = true;
        let known = if self.is_lost { &[] } else { described };
        self.spans = known.iter().map(Span::of_described).collect();
    }

    pub(super) fn note_conflict(&self, guard: &WriteGuard<'_>) {
        let (index, key, mode) = (guard.index, guard.key.into(), guard.mode);
        self.conflict.set(Some(Box::new(Conflict { index, key, mode })));
    }

    #[inline]
    fn keep(&mut self, span: impl FnOnce() -> Span) {
        if !self.keeps || self.is_lost {
            return;
        }
        if self.spans.len() == MOST_READS {
            return self.lose();
        }
        self.spans.push(span());
    }
}

/// The result of checking records.
struct Looked {
    /// Whether all records checked so far have the same content in both snapshots.
    is_same: bool,
    /// Records whose newest version is in neither snapshot, with their payloads.
    newer: Vec<(RecordVersion, Vec<u8>)>,
    records: usize,
}

/// The age of a version relative to two snapshots.
enum Age {
    Old,
    Between,
    Newer,
}

impl ReadTransaction {
    /// Starts to record reads from the snapshot, so that it can be renewed later.
    pub fn keep_reads(&mut self) {
        self.reads.keeps = true;
    }

    /// Closes the snapshot, from which nothing was read that anybody knows.
    pub fn forget_snapshot(&mut self) {
        self.close_snapshot();
    }

    /// A mark of the reads so far.
    #[must_use]
    pub fn read_mark(&self) -> ReadMark {
        match &self.view {
            None => ReadMark::default(),
            Some(_) if !self.reads.keeps || self.reads.is_lost => UNKNOWN,
            Some(_) => ReadMark(self.reads.spans.len() as u32),
        }
    }

    #[inline]
    pub(super) fn keep_record(&mut self, index: IndexId, key: &[u8]) {
        if self.view.is_some() {
            self.reads.keep(|| Span::Record(index, SmallVec::from_slice(key)));
        }
    }

    #[inline]
    pub(super) fn keep_range(&mut self, index: IndexId, range: &KeyRange) {
        if self.view.is_some() {
            self.reads.keep(|| Span::Range(index, range.clone()));
        }
    }
}

impl Transaction {
    /// Called after [`EngineError::WriteConflict`] and a rollback to the mark `before`. Locks the
    /// record of the conflict and opens a newer snapshot, if that shows the same content for all
    /// reads before the mark. Returns whether it does. Blocks for locks and I/O.
    ///
    /// # Errors
    /// A lock that was not granted, or an error of the page store.
    pub fn renew_snapshot(&mut self, before: ReadMark) -> Result<bool, EngineError> {
        self.check_open()?;
        let Some(conflict) = self.reads.conflict.take() else { return Ok(false) };
        if before == UNKNOWN {
            return Ok(false);
        }
        self.lock_conflict(&conflict)?;
        self.reads.spans.truncate(before.0 as usize);
        if before == ReadMark::default() {
            self.close_snapshot();
            return Ok(true);
        }
        let Some(ReadView::Timestamp(old)) = self.view else { return Ok(false) };
        let slot = self.system.snapshots().take()?;
        let new = self.system.versions().open(&slot);
        match self.are_reads_same(old, new) {
            Ok(true) => {
                self.replace_snapshot(slot, new);
                Ok(true)
            }
            other => {
                self.system.snapshots().give_back(slot);
                other
            }
        }
    }

    fn replace_snapshot(&mut self, slot: SnapshotSlot, new: Cts) {
        self.view = Some(ReadView::Timestamp(new));
        if let Some(old) = self.read.slot.replace(slot) {
            self.system.snapshots().give_back(old);
        }
    }

    /// Locks the record (rule 2). Works without the snapshot, which would refuse the lock, but the
    /// snapshot stays registered (rule 1).
    fn lock_conflict(&mut self, conflict: &Conflict) -> Result<(), EngineError> {
        let view = self.view.take();
        let Conflict { index, key, mode } = conflict;
        let locked = self.get_locking(*index, key, *mode, WaitPolicy::Wait, &mut Vec::new());
        // The transaction may have been rolled back to break a deadlock.
        if self.check_open().is_ok() {
            self.view = view;
        }
        locked.map(|_| ())
    }

    /// Whether the recorded reads have the same result in the snapshots `old` and `new`.
    fn are_reads_same(&self, old: Cts, new: Cts) -> Result<bool, EngineError> {
        let mut looked = Looked { is_same: true, newer: Vec::new(), records: 0 };
        for span in &self.reads.spans {
            match span {
                Span::Record(index, key) => {
                    self.look_at_record(*index, key, (old, new), &mut looked)?
                }
                Span::Range(index, range) => {
                    self.look_at_range(*index, range, (old, new), &mut looked)?
                }
            }
            if !looked.is_same || looked.records > MOST_RECORDS {
                return Ok(false);
            }
        }
        self.are_older_same(looked.newer, (old, new))
    }

    fn look_at_record(
        &self,
        index: IndexId,
        key: &[u8],
        between: (Cts, Cts),
        looked: &mut Looked,
    ) -> Result<(), EngineError> {
        self.system.forest().tree(index).read(Target::At(key), |leaf| match leaf.search(key) {
            Ok(slot) => self.look_at_slot(leaf, slot, between, looked),
            // A record that S1 saw here would not have been purged (rule 1).
            Err(_) => Ok(()),
        })
    }

    fn look_at_range(
        &self,
        index: IndexId,
        range: &KeyRange,
        between: (Cts, Cts),
        looked: &mut Looked,
    ) -> Result<(), EngineError> {
        let mut next = match &range.low {
            Bound::Unbounded => Some(Vec::new()),
            Bound::Included(low) | Bound::Excluded(low) => Some(low.clone()),
        };
        while let Some(from) = next.take() {
            let tree = self.system.forest().tree(index);
            next = tree.read(Target::At(&from), |leaf| {
                let mut key = Vec::new();
                for slot in leaf.lower_bound(&from)..leaf.slot_count() {
                    leaf.key_into(slot, &mut key);
                    if is_beyond(range, &key) || looked.records > MOST_RECORDS {
                        return Ok(None);
                    }
                    self.look_at_slot(leaf, slot, between, looked)?;
                }
                Ok(leaf.high_fence().filter(|fence| !is_beyond(range, fence)).map(<[u8]>::to_vec))
            })?;
        }
        Ok(())
    }

    fn look_at_slot(
        &self,
        leaf: &TreePage<'_>,
        slot: usize,
        between: (Cts, Cts),
        looked: &mut Looked,
    ) -> Result<(), Restart> {
        looked.records += 1;
        let Some((version, payload)) = RecordVersion::parse(leaf.value(slot)) else {
            return Err(no_version(leaf.page_id()));
        };
        match self.age(version.trx, between)? {
            Age::Old => {}
            Age::Between => looked.is_same = false,
            Age::Newer => looked.newer.push((version, payload.to_vec())),
        }
        Ok(())
    }

    fn age(&self, trx: TrxId, (old, new): (Cts, Cts)) -> Result<Age, Restart> {
        // Rule 3.
        if trx == TrxId::NONE || Some(trx) == self.id() {
            return Ok(Age::Old);
        }
        Ok(match self.system.table().outcome(trx) {
            Outcome::Settled => Age::Old,
            Outcome::Committing => {
                return Err(self.system.table().undecided(self.cancelled.as_ref()));
            }
            Outcome::Committed(cts, _) if cts <= old => Age::Old,
            Outcome::Committed(cts, _) if cts <= new => Age::Between,
            Outcome::Committed(..) | Outcome::Active => Age::Newer,
        })
    }

    /// For records whose newest version neither snapshot sees: whether both see the same older
    /// version.
    fn are_older_same(
        &self,
        records: Vec<(RecordVersion, Vec<u8>)>,
        between: (Cts, Cts),
    ) -> Result<bool, EngineError> {
        let view = ReadView::Timestamp(between.1);
        let own = self.id().unwrap_or(TrxId(u64::MAX));
        let cancelled = self.cancelled.as_ref();
        let observed = &self.observed;
        let reader = Reader { own, view: &view, observed, cancelled, behind: None };
        for (version, mut payload) in records {
            let Some(seen) = self.versions.older_version(&reader, version, &mut payload)? else {
                continue;
            };
            let is_old =
                self.system.pages().run(|| Ok(matches!(self.age(seen.trx, between)?, Age::Old)));
            if !is_old? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn is_beyond(range: &KeyRange, key: &[u8]) -> bool {
    match &range.high {
        Bound::Unbounded => false,
        Bound::Included(high) => key > &high[..],
        Bound::Excluded(high) => key >= &high[..],
    }
}

#[cfg(test)]
mod tests;
