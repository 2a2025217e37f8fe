//! Inserts, updates and deletes of records.
//!
//! ```text
//!   with the leaf latched exclusively:
//!     1. who wrote the current version?  an active transaction: wait for it (rule 7 of the locks)
//!                                        newer than the snapshot: conflict, first updater wins
//!     2. a conflicting explicit lock or request?   queue behind it
//!     3. room in leaf and undo page?     if not, make room with nothing held, and start again
//!     4. undo record, then the new version that points to it: one log group
//! ```
//!
//! The new version carries the transaction's id, which locks the record until the transaction ends.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_api::rows::IsolationLevel;
use firn_base::{IndexId, Lsn, TrxId};
use firn_format::undo::{
    OldPayload, RECORD_VERSION_BYTES, RecordVersion, UNDO_RECORD_HEADER_BYTES, UndoOperation,
    UndoPointer, common_prefix_length, common_suffix_length,
};

use crate::error::EngineError;
use crate::lock::{LockMode, LockTarget, Outcome as LockOutcome, Wait};
use crate::pages::Restart;
use crate::transaction::handle::{Transaction, Writer};
use crate::transaction::system::TransactionSystem;
use crate::transaction::table::Outcome;
use crate::tree::LeafWrite;

/// The result of one attempt.
pub(super) enum Step<R> {
    Done(R),
    Wait(Wait),
    /// The undo page is full.
    ExtendUndo,
}

impl<R> Step<R> {
    pub(super) fn map<T>(self, f: impl FnOnce(R) -> T) -> Step<T> {
        match self {
            Step::Done(result) => Step::Done(f(result)),
            Step::Wait(wait) => Step::Wait(wait),
            Step::ExtendUndo => Step::ExtendUndo,
        }
    }
}

/// What a write does with the record that it finds. Updates and deletes may name the payload that
/// they are based on; they do not change a record with another payload.
#[derive(Clone, Copy)]
enum Change<'a> {
    Insert(&'a [u8]),
    Update(&'a [u8], Option<&'a [u8]>),
    Delete(Option<&'a [u8]>),
}

impl Change<'_> {
    /// Whether the change is based on another payload than the current one.
    fn is_stale(&self, present: &[u8]) -> bool {
        match self {
            Change::Insert(_) => false,
            Change::Update(_, base) | Change::Delete(base) => {
                base.is_some_and(|base| base != present)
            }
        }
    }
}

/// The most bytes of an update's undo record besides key and old payload.
const UPDATE_UNDO_BYTES: usize = UNDO_RECORD_HEADER_BYTES + 8 + RECORD_VERSION_BYTES + 2;

impl Transaction {
    /// Inserts a record. Blocks for locks and I/O.
    ///
    /// # Errors
    /// [`EngineError::DuplicateKey`], a lock that was not granted, a conflict with the snapshot, or
    /// an error of the page store or the log.
    pub fn insert(
        &mut self,
        index: IndexId,
        key: &[u8],
        payload: &[u8],
    ) -> Result<(), EngineError> {
        self.change(index, key, Change::Insert(payload)).map(|_| ())
    }

    /// Replaces a record's payload. False if the record does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Transaction::insert`], except for the duplicate key.
    pub fn update(
        &mut self,
        index: IndexId,
        key: &[u8],
        payload: &[u8],
    ) -> Result<bool, EngineError> {
        self.change(index, key, Change::Update(payload, None))
    }

    /// Replaces the payload `old` of a record. False if the record does not exist or has another
    /// payload. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Transaction::update`].
    pub(crate) fn replace(
        &mut self,
        index: IndexId,
        key: &[u8],
        old: &[u8],
        payload: &[u8],
    ) -> Result<bool, EngineError> {
        self.change(index, key, Change::Update(payload, Some(old)))
    }

    /// Deletes a record. False if the record does not exist. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Transaction::insert`], except for the duplicate key.
    pub fn delete(&mut self, index: IndexId, key: &[u8]) -> Result<bool, EngineError> {
        self.change(index, key, Change::Delete(None))
    }

    /// Deletes a record with the payload `old`. False if the record does not exist or has another
    /// payload. Blocks for locks and I/O.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub(crate) fn remove(
        &mut self,
        index: IndexId,
        key: &[u8],
        old: &[u8],
    ) -> Result<bool, EngineError> {
        self.change(index, key, Change::Delete(Some(old)))
    }

    fn change(
        &mut self,
        index: IndexId,
        key: &[u8],
        change: Change<'_>,
    ) -> Result<bool, EngineError> {
        self.until_done(|trx| trx.try_change(index, key, change))
    }

    /// Repeats `attempt` until nothing is left to wait for. Blocks for locks and I/O.
    pub(super) fn until_done<R>(
        &mut self,
        mut attempt: impl FnMut(&mut Transaction) -> Result<Step<R>, EngineError>,
    ) -> Result<R, EngineError> {
        self.check_open()?;
        self.ensure_writer()?;
        loop {
            match attempt(self)? {
                Step::Done(result) => return Ok(result),
                Step::Wait(wait) => self.wait(wait)?,
                Step::ExtendUndo => self.extend_undo()?,
            }
        }
    }

    pub(crate) fn extend_undo(&mut self) -> Result<(), EngineError> {
        let writer = self.writer.as_ref().expect("a transaction that writes");
        self.system.undo().extend(&writer.undo.segment)
    }

    fn try_change(
        &mut self,
        index: IndexId,
        key: &[u8],
        change: Change<'_>,
    ) -> Result<Step<bool>, EngineError> {
        let guard = self.write_guard(index, key);
        let purpose = self.purpose(matches!(change, Change::Delete(_)));
        let (system, writer) = (&self.system, self.writer.as_mut().expect("just ensured"));
        let cancelled = self.read.cancelled.as_ref();
        let tree = system.forest().tree(index);
        let written = tree.write(key, purpose, |leaf| {
            if let Some(wait) = system.admit_write(leaf.value(), &guard, cancelled)? {
                return Ok(Step::Wait(wait));
            }
            match (leaf.value().and_then(RecordVersion::parse), change) {
                (None, Change::Insert(payload)) => writer.insert_new(leaf, &guard, payload),
                (Some((version, _)), Change::Insert(payload)) if version.deleted => {
                    writer.put_version(leaf, &guard, Some(payload))
                }
                (Some(_), Change::Insert(_)) => {
                    Err(EngineError::DuplicateKey { index, key: key.into() }.into())
                }
                (Some((version, present)), Change::Update(..) | Change::Delete(_))
                    if version.deleted || change.is_stale(present) =>
                {
                    Ok(Step::Done(false))
                }
                (Some(_), Change::Update(payload, _)) => {
                    writer.put_version(leaf, &guard, Some(payload))
                }
                (Some(_), Change::Delete(_)) => writer.put_version(leaf, &guard, None),
                (None, Change::Update(..) | Change::Delete(_)) => Ok(Step::Done(false)),
            }
        });
        writer.publish_weight();
        match written {
            Ok(written) => {
                if matches!(written.result, Step::Done(false)) {
                    self.keep_record(index, key);
                }
                Ok(written.result)
            }
            Err(error) => Err(self.not_written(error, &guard)),
        }
    }

    /// Records the conflict of a refused write, if a newer snapshot could resolve it.
    #[cold]
    fn not_written(&mut self, error: EngineError, guard: &WriteGuard<'_>) -> EngineError {
        match error {
            EngineError::WriteConflict => self.reads.note_conflict(guard),
            EngineError::DuplicateKey { .. } => self.keep_record(guard.index, guard.key),
            _ => {}
        }
        error
    }

    pub(crate) fn write_guard<'k>(&self, index: IndexId, key: &'k [u8]) -> WriteGuard<'k> {
        let checks_snapshot =
            self.isolation == IsolationLevel::RepeatableRead && self.first_updater_wins;
        WriteGuard {
            trx: self.id().expect("a transaction that writes has an id"),
            index,
            key,
            snapshot: self.snapshot().filter(|_| checks_snapshot),
            mode: LockMode::Exclusive,
            observed: Cell::new(Lsn::default()),
        }
    }

    /// Writes an undo record that does not concern a tree's record. Blocks.
    pub(crate) fn note_undo(&mut self, operation: UndoOperation<'_>) -> Result<(), EngineError> {
        self.check_open()?;
        self.ensure_writer()?;
        let gives_up = matches!(
            operation,
            UndoOperation::OverflowReplaced { .. } | UndoOperation::SpaceAbandoned { .. }
        );
        let purpose = self.purpose(gives_up);
        loop {
            let (system, writer) = (&self.system, self.writer.as_mut().expect("just ensured"));
            let noted = system.pages().run(|| {
                let mut mtr =
                    crate::mini_transaction::MiniTransaction::begin(system.pages(), purpose)?;
                let Some(held) = writer.undo.latch(&mut mtr, NOTE_BYTES)? else {
                    return Ok(false);
                };
                writer.undo.append(&mut mtr, held, operation);
                let _ = mtr.commit();
                Ok(true)
            })?;
            if noted {
                if gives_up {
                    writer.undo.note_work();
                }
                writer.publish_weight();
                return Ok(());
            }
            self.extend_undo()?;
        }
    }
}

/// More than the length of any undo record without a key.
const NOTE_BYTES: usize = 64;

/// A request to lock a record, and what conflicts with it.
pub(crate) struct WriteGuard<'k> {
    pub(crate) trx: TrxId,
    pub(crate) index: IndexId,
    pub(crate) key: &'k [u8],
    /// Versions newer than this snapshot are a conflict.
    pub(crate) snapshot: Option<firn_base::Cts>,
    pub(crate) mode: LockMode,
    /// The latest commit that was seen. A transaction that only locks must wait until it is
    /// durable.
    pub(crate) observed: Cell<Lsn>,
}

impl WriteGuard<'_> {
    /// The version of a new record; `pointer` names the undo record that removes it.
    pub(super) fn first_version(&self, pointer: UndoPointer) -> RecordVersion {
        let page_no = pointer.page_id().page_no;
        let undo = UndoPointer::new(page_no, pointer.offset(), UndoPointer::NO_EARLIER_VERSION);
        RecordVersion { trx: self.trx, undo, deleted: false }
    }
}

impl TransactionSystem {
    /// Checks whether the record with this value may be written or locked now. If not, returns the
    /// wait. The leaf is latched. `cancelled` ends a wait for a commit.
    pub(crate) fn admit_write(
        &self,
        value: Option<&[u8]>,
        guard: &WriteGuard<'_>,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Result<Option<Wait>, Restart> {
        if let Some((version, _)) = value.and_then(RecordVersion::parse)
            && version.trx != guard.trx
        {
            match self.table().outcome(version.trx) {
                Outcome::Active => return self.queue_behind(version.trx, guard),
                Outcome::Committing => return Err(self.table().undecided(cancelled)),
                Outcome::Committed(cts, _)
                    if guard.snapshot.is_some_and(|snapshot| cts > snapshot) =>
                {
                    return Err(EngineError::WriteConflict.into());
                }
                // The writer may open a snapshot next, and that snapshot must see this commit.
                Outcome::Committed(cts, _) if cts > self.order().max_committed() => {
                    return Err(self.order().held_back(cancelled));
                }
                Outcome::Committed(_, lsn) => guard.observed.set(guard.observed.get().max(lsn)),
                Outcome::Settled => {}
            }
        }
        if !self.locks().has_conflict(guard.trx, guard.index, guard.key, guard.mode) {
            return Ok(None);
        }
        Ok(self.request(guard))
    }

    fn request(&self, guard: &WriteGuard<'_>) -> Option<Wait> {
        let target = LockTarget::Record { index: guard.index, key: guard.key };
        match self.locks().request(guard.trx, target, guard.mode) {
            LockOutcome::Granted | LockOutcome::Held => None,
            LockOutcome::Queued(wait) => Some(wait),
        }
    }

    /// Queues behind the transaction whose id the record carries.
    fn queue_behind(&self, holder: TrxId, guard: &WriteGuard<'_>) -> Result<Option<Wait>, Restart> {
        let is_active = || self.table().is_active(holder);
        if self.locks().make_explicit(holder, guard.index, guard.key, is_active)
            && let Some(wait) = self.request(guard)
        {
            return Ok(Some(wait));
        }
        // The holder has ended in the meantime.
        Err(Restart::Again)
    }
}

impl Writer {
    pub(super) fn insert_new(
        &mut self,
        leaf: &mut LeafWrite<'_, '_>,
        guard: &WriteGuard<'_>,
        payload: &[u8],
    ) -> Result<Step<bool>, Restart> {
        leaf.require_room(RECORD_VERSION_BYTES + payload.len())?;
        let undo_bytes = UNDO_RECORD_HEADER_BYTES + 8 + guard.key.len();
        let Some(held) = self.undo.latch(leaf.mtr, undo_bytes)? else {
            return Ok(Step::ExtendUndo);
        };
        let operation = UndoOperation::Insert { index: guard.index, key: guard.key };
        let pointer = self.undo.append(leaf.mtr, held, operation);
        self.scratch.clear();
        self.scratch.extend_from_slice(&guard.first_version(pointer).encode());
        self.scratch.extend_from_slice(payload);
        leaf.set(&self.scratch);
        Ok(Step::Done(true))
    }

    /// Writes a new version over the current one. Without a payload, the new version is deleted.
    fn put_version(
        &mut self,
        leaf: &mut LeafWrite<'_, '_>,
        guard: &WriteGuard<'_>,
        payload: Option<&[u8]>,
    ) -> Result<Step<bool>, Restart> {
        let value = leaf.value().expect("a record with a version");
        let (previous, old) = RecordVersion::parse(value).expect("a record with a version");
        let old = old.to_vec();
        if let Some(payload) = payload {
            leaf.require_room(RECORD_VERSION_BYTES + payload.len())?;
        }
        let undo_bytes = UPDATE_UNDO_BYTES + guard.key.len() + old.len();
        let Some(held) = self.undo.latch(leaf.mtr, undo_bytes)? else {
            return Ok(Step::ExtendUndo);
        };
        self.scratch.clear();
        let new = payload.unwrap_or(&old);
        let operation = UndoOperation::Update {
            index: guard.index,
            key: guard.key,
            previous,
            payload: OldPayload::smallest(&old, new, &mut self.scratch),
            deletes: payload.is_none(),
        };
        let pointer = self.undo.append(leaf.mtr, held, operation);
        if payload.is_none() {
            self.undo.note_work();
        }
        let version = RecordVersion { trx: guard.trx, undo: pointer, deleted: payload.is_none() };
        self.write_value(leaf, version, &old, new);
        Ok(Step::Done(true))
    }

    /// Writes version and payload, as a patch if little of the payload has changed.
    fn write_value(
        &mut self,
        leaf: &mut LeafWrite<'_, '_>,
        version: RecordVersion,
        old: &[u8],
        new: &[u8],
    ) {
        let head = version.encode();
        let changed = changed_range(old, new);
        match changed {
            Some(range) if range.len() * 2 <= new.len() || range.is_empty() => {
                leaf.patch(0, &head);
                if !range.is_empty() {
                    leaf.patch(RECORD_VERSION_BYTES + range.start, &new[range]);
                }
            }
            _ => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&head);
                self.scratch.extend_from_slice(new);
                leaf.set(&self.scratch);
            }
        }
    }
}

/// The range of bytes that differ; `None` if the lengths do.
fn changed_range(old: &[u8], new: &[u8]) -> Option<std::ops::Range<usize>> {
    if old.len() != new.len() {
        return None;
    }
    let first = common_prefix_length(old, new);
    let last = new.len() - common_suffix_length(&old[first..], &new[first..]);
    Some(first..last)
}
