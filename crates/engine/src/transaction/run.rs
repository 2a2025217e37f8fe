//! Inserts of many records at once: records that are adjacent in key order go into a leaf together.
//!
//! ```text
//!   to insert    7 8 9 12 15        leaf  … 5 │ 11 14 …        high fence 20
//!
//!   run 1        7 8 9              between 5 and 11: one undo record, one redo record
//!   run 2        12                 between 11 and 14
//!   run 3        15                 after 14
//! ```
//!
//! A run ends before an existing record, where the leaf or the group is full, and before a key that
//! is locked or not greater than the one before. So loading rows in key order costs one descent,
//! one latch and one log group for each page instead of for each row. A run of one record is an
//! ordinary insert.
//!
//! The paper (000 §4) logs record by record; this is the only departure.

use firn_base::IndexId;
use firn_format::tree::EntryList;
use firn_format::undo::{
    RECORD_VERSION_BYTES, RecordVersion, UNDO_RECORD_HEADER_BYTES, UndoOperation,
};

use crate::error::EngineError;
use crate::lock::LockManager;
use crate::log::writer::Purpose;
use crate::pages::Restart;
use crate::transaction::handle::{Transaction, Writer};
use crate::transaction::write::{Step, WriteGuard};
use crate::tree::LeafWrite;

/// The most bytes of a run in its log group, without its undo record.
const MAX_RUN_BYTES: usize = 16 * 1024;
/// Bytes of a run's undo record besides its header and two keys.
const RUN_UNDO_BYTES: usize = 8 + 2;

/// Records to insert: keys and payloads, one after the other in one piece of memory.
#[derive(Debug, Default)]
pub struct RecordRun {
    bytes: Vec<u8>,
    records: Vec<Place>,
    /// The part of the records that goes to a leaf.
    entries: EntryList,
}

/// The place of a record: its key, followed by its payload.
#[derive(Debug, Clone, Copy)]
struct Place {
    start: usize,
    key_end: usize,
    end: usize,
}

impl RecordRun {
    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
    }

    pub fn push(&mut self, key: &[u8], payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        let key_end = start + key.len();
        self.records.push(Place { start, key_end, end: self.bytes.len() });
    }

    /// Sorts the records by key.
    pub fn sort(&mut self) {
        let bytes = &self.bytes;
        let key = |place: &Place| &bytes[place.start..place.key_end];
        self.records.sort_unstable_by(|left, right| key(left).cmp(key(right)));
    }

    /// The memory of the records in bytes, including what earlier records have reserved.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.records.capacity() * size_of::<Place>()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    #[must_use]
    pub fn key(&self, number: usize) -> &[u8] {
        let place = self.records[number];
        &self.bytes[place.start..place.key_end]
    }

    /// The payload of a record.
    ///
    /// # Panics
    /// If the run has fewer records.
    #[must_use]
    pub fn payload(&self, number: usize) -> &[u8] {
        let place = self.records[number];
        &self.bytes[place.key_end..place.end]
    }

    /// How many records from `from` on belong between the first one's slot and the next existing
    /// entry of its leaf.
    fn count_in_gap(
        &self,
        from: usize,
        leaf: &LeafWrite<'_, '_>,
        is_free: impl Fn(&[u8]) -> bool,
    ) -> usize {
        let page = leaf.page();
        let slot = leaf.slot.expect_err("a run goes between two entries");
        let mut room_bytes = page.free_bytes().min(MAX_RUN_BYTES);
        let mut last: Option<&[u8]> = None;
        let mut count = 0;
        for number in from..self.len() {
            let (key, payload) = (self.key(number), self.payload(number));
            let bytes = page.needed_bytes(key.len(), RECORD_VERSION_BYTES + payload.len());
            let is_below = |key: &[u8]| {
                key.strip_prefix(page.prefix()).is_some_and(|suffix| page.is_below(slot, suffix))
            };
            let follows = last.is_none_or(|last| last < key && is_below(key));
            if bytes > room_bytes || !follows || !is_free(key) {
                break;
            }
            room_bytes -= bytes;
            last = Some(key);
            count += 1;
        }
        count
    }

    /// Makes a list of records for a leaf whose keys begin with `prefix`, with the version before
    /// each payload.
    fn list(&mut self, records: std::ops::Range<usize>, prefix: &[u8], version: &RecordVersion) {
        let head = version.encode();
        let mut entries = std::mem::take(&mut self.entries);
        entries.restart(prefix);
        for number in records {
            let suffix = &self.key(number)[prefix.len()..];
            entries.push_parts(suffix, &head, self.payload(number));
        }
        self.entries = entries;
    }
}

impl Transaction {
    /// Inserts the records in their current order. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Transaction::insert`]. The records before the refused one have been inserted; the
    /// caller rolls back to its savepoint.
    pub fn insert_run(&mut self, index: IndexId, run: &mut RecordRun) -> Result<(), EngineError> {
        let mut done = 0;
        while done < run.len() {
            self.check_cancelled()?;
            done += match self.insert_part(index, run, done)? {
                // The key exists, or a deleted record still has it.
                0 => {
                    self.insert(index, run.key(done), run.payload(done))?;
                    1
                }
                count => count,
            };
        }
        Ok(())
    }

    /// Inserts as many records as go into a leaf together; zero if a record with the first key
    /// exists.
    fn insert_part(
        &mut self,
        index: IndexId,
        run: &mut RecordRun,
        from: usize,
    ) -> Result<usize, EngineError> {
        self.until_done(|trx| trx.try_insert_part(index, run, from))
    }

    fn try_insert_part(
        &mut self,
        index: IndexId,
        run: &mut RecordRun,
        from: usize,
    ) -> Result<Step<usize>, EngineError> {
        let key = run.key(from).to_vec();
        let guard = self.write_guard(index, &key);
        let (system, writer) = (&self.system, self.writer.as_mut().expect("just ensured"));
        let cancelled = self.read.cancelled.as_ref();
        let tree = system.forest().tree(index);
        let written = tree.write(&key, Purpose::Forward, |leaf| {
            if leaf.slot.is_ok() {
                return Ok(Step::Done(0));
            }
            if let Some(wait) = system.admit_write(None, &guard, cancelled)? {
                return Ok(Step::Wait(wait));
            }
            writer.insert_part(leaf, system.locks(), &guard, run, from)
        })?;
        writer.publish_weight();
        Ok(written.result)
    }
}

impl Writer {
    fn insert_part(
        &mut self,
        leaf: &mut LeafWrite<'_, '_>,
        locks: &LockManager,
        guard: &WriteGuard<'_>,
        run: &mut RecordRun,
        from: usize,
    ) -> Result<Step<usize>, Restart> {
        leaf.require_room(RECORD_VERSION_BYTES + run.payload(from).len())?;
        let is_free = |key: &[u8]| !locks.has_conflict(guard.trx, guard.index, key, guard.mode);
        // The first record was admitted: the transaction's own lock is no obstacle.
        let count = run.count_in_gap(from, leaf, |key| key == guard.key || is_free(key));
        if count <= 1 {
            let step = self.insert_new(leaf, guard, run.payload(from))?;
            return Ok(step.map(|_| 1));
        }
        let last = run.key(from + count - 1);
        let undo_bytes = UNDO_RECORD_HEADER_BYTES + RUN_UNDO_BYTES + guard.key.len() + last.len();
        let Some(held) = self.undo.latch(leaf.mtr, undo_bytes)? else {
            return Ok(Step::ExtendUndo);
        };
        let operation = UndoOperation::InsertRun { index: guard.index, first: guard.key, last };
        let pointer = self.undo.append(leaf.mtr, held, operation);
        let version = guard.first_version(pointer);
        run.list(from..from + count, leaf.page().prefix(), &version);
        leaf.insert_run(run.entries.as_entries());
        Ok(Step::Done(count))
    }
}
