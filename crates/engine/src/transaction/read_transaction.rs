//! The part of a transaction that reads from a snapshot, which is all of it on a node that follows
//! another one's log.
//!
//! ```text
//!   Transaction       locks, writes, commits         a node that writes
//!     └─ ReadTransaction   snapshot, consistent reads  every node
//!          └─ Versions          table, trees, undo
//! ```
//!
//! Consistent reads take no locks and wait for nobody. They change no page either: if this node
//! writes, a split that a read finds half done is completed once nothing is latched; otherwise the
//! split is left to the node that writes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::rows::{Fetched, HeldLeaves, IsolationLevel, ReadMode};
use firn_base::{Cts, IndexId, Lsn, TrxId};
use firn_format::tree::TreePage;
use firn_format::undo::RecordVersion;

use crate::error::EngineError;
use crate::lock::LockError;
use crate::pages::Restart;
use crate::transaction::cursor::Cursor;
use crate::transaction::read::no_version;
use crate::transaction::renewal::Reads;
use crate::transaction::snapshots::SnapshotSlot;
use crate::transaction::versions::{ReadView, Reader, Versions};
use crate::tree::Target;

/// A transaction that reads from a snapshot.
pub struct ReadTransaction {
    pub(super) versions: Arc<Versions>,
    pub(crate) isolation: IsolationLevel,
    pub(super) slot: Option<SnapshotSlot>,
    pub(super) view: Option<ReadView>,
    pub(super) reads: Reads,
    /// Whose uncommitted writes it sees.
    pub(super) own: Option<TrxId>,
    pub(crate) observed: Cell<Lsn>,
    pub(super) cancelled: Option<Arc<AtomicBool>>,
    pub(super) ended: bool,
}

/// A transaction that records are read in: one that can lock what it reads, or one that only reads.
pub trait RecordReader {
    /// The snapshot that it reads from.
    fn snapshot_reader(&mut self) -> &mut ReadTransaction;

    /// Whether a read in `mode` locks what it reads.
    fn locks(&self, mode: ReadMode) -> bool;

    /// Reads a record's payload into `payload`; false if there is no such record. Blocks for locks
    /// and I/O.
    ///
    /// # Errors
    /// A lock that was not granted, a conflict with the snapshot, [`EngineError::ReadOnly`], or why
    /// a page could not be had.
    fn get(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError>;

    /// Fetches a cursor's next batch; see [`Cursor::fetch_unless_held`].
    ///
    /// # Errors
    /// As [`RecordReader::get`].
    fn fetch(
        &mut self,
        cursor: &mut Cursor,
        held: Option<HeldLeaves<'_>>,
    ) -> Result<Fetched, EngineError>;
}

/// What a look at a leaf's record came to.
enum Look {
    Absent,
    /// The payload was copied.
    Present,
    /// The payload was copied, but the reader sees an older version than this one.
    Older(RecordVersion),
}

impl ReadTransaction {
    /// Begins a transaction. Does not block.
    ///
    /// # Errors
    /// If as many transactions are open as the node was set up for.
    pub fn begin(
        versions: &Arc<Versions>,
        isolation: IsolationLevel,
    ) -> Result<ReadTransaction, EngineError> {
        let slot = versions.snapshots().take()?;
        Ok(ReadTransaction {
            versions: Arc::clone(versions),
            isolation,
            slot: Some(slot),
            view: None,
            reads: Reads::default(),
            own: None,
            observed: Cell::new(Lsn::default()),
            cancelled: None,
            ended: false,
        })
    }

    /// Takes a snapshot that was decided elsewhere. What it sees is visible on this node already.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if what it sees may have been purged.
    pub(crate) fn open_at(&mut self, snapshot: Cts) -> Result<(), EngineError> {
        let slot = self.slot.as_ref().expect("an open transaction has a slot");
        self.versions.snapshots().open_at(slot, snapshot)?;
        self.view = Some(ReadView::Timestamp(snapshot));
        Ok(())
    }

    /// Another reader of the same snapshot. It has no slot in the registry of snapshots: this
    /// transaction's slot keeps what both read. Dropped before the snapshot is closed.
    pub(crate) fn open_sibling(&mut self) -> ReadTransaction {
        self.ensure_snapshot();
        self.reads.lose();
        ReadTransaction {
            versions: Arc::clone(&self.versions),
            isolation: self.isolation,
            slot: None,
            view: self.view.clone(),
            reads: Reads::default(),
            own: self.own,
            observed: Cell::new(Lsn::default()),
            cancelled: self.cancelled.clone(),
            ended: false,
        }
    }

    /// The isolation level.
    #[must_use]
    pub fn isolation(&self) -> IsolationLevel {
        self.isolation
    }

    /// Which versions it sees.
    #[inline]
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// The flag by which others call off the transaction's waits for locks and its scans, with
    /// [`LockError::Cancelled`]; the transaction goes on once it is false again. A session has one
    /// for its life, so that a statement allocates nothing for it.
    pub fn set_cancelled(&mut self, flag: Arc<AtomicBool>) {
        self.cancelled = Some(flag);
    }

    /// Fails if the statement was cancelled. Long statements ask this now and then; cursors do so
    /// for each batch.
    ///
    /// # Errors
    /// [`LockError::Cancelled`].
    #[inline]
    pub fn check_cancelled(&self) -> Result<(), EngineError> {
        match &self.cancelled {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(LockError::Cancelled.into()),
            _ => Ok(()),
        }
    }

    /// Opens the snapshot now instead of with the first read. Under READ COMMITTED a statement
    /// calls this first, so that all of it sees the same. A snapshot that was opened this way stays:
    /// it is not renewed after the first read from it.
    pub fn open_snapshot(&mut self) {
        self.open_view();
        self.reads.lose();
    }

    fn open_view(&mut self) {
        if let Some(slot) = &self.slot {
            let snapshot = self.versions.open(slot);
            self.view = Some(match self.versions.active_list() {
                None => ReadView::Timestamp(snapshot),
                Some(list) => ReadView::ActiveList(list.copy()),
            });
        }
    }

    /// Ends a statement: READ COMMITTED lets go of its snapshot.
    pub fn end_statement(&mut self) {
        if self.isolation == IsolationLevel::ReadCommitted {
            self.close_snapshot();
        }
    }

    pub(super) fn close_snapshot(&mut self) {
        self.reads.clear();
        if self.view.take().is_some()
            && let Some(slot) = &self.slot
        {
            self.versions.snapshots().close(slot);
        }
    }

    pub(crate) fn ensure_snapshot(&mut self) {
        if self.view.is_none() {
            self.open_view();
        }
    }

    /// Whether rows may be this transaction's own, or those of the one which it reads for.
    pub(crate) fn has_written(&self) -> bool {
        self.own.is_some()
    }

    /// The snapshot's timestamp, if a snapshot is open.
    #[must_use]
    pub fn snapshot(&self) -> Option<Cts> {
        match &self.view {
            Some(ReadView::Timestamp(snapshot)) => Some(*snapshot),
            _ => None,
        }
    }

    /// A consistent reader.
    ///
    /// # Panics
    /// If no snapshot is open.
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            own: self.own.unwrap_or(TrxId(u64::MAX)),
            view: self.view.as_ref().expect("a consistent read has a snapshot"),
            observed: &self.observed,
            cancelled: self.cancelled.as_ref(),
        }
    }

    /// Remembers that a commit at this place in the log was seen.
    pub(crate) fn note_observed(&self, commit: Lsn) {
        self.observed.set(self.observed.get().max(commit));
    }

    /// Remembers that anything may have been seen that is in the log by now. What a follower sees
    /// is durable already.
    pub(crate) fn note_observed_all(&self) {
        if let Some(forest) = self.versions.writer() {
            self.note_observed(forest.pages().log.end_lsn());
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        if self.ended { Err(EngineError::TransactionEnded) } else { Ok(()) }
    }

    /// Shows `look` the leaf for `target`, latched shared. `look` may be called again; it must not
    /// wait. Blocks for I/O.
    ///
    /// # Errors
    /// Why a page could not be had, or what `look` failed with.
    #[inline]
    pub(crate) fn read_leaf<R>(
        &self,
        index: IndexId,
        target: Target<'_>,
        look: impl FnMut(&TreePage<'_>) -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        let (result, half_done) = self.versions.forest().tree(index).read(target, look)?;
        if let Some(split) = half_done
            && let Some(forest) = self.versions.writer()
        {
            forest.complete(split)?;
        }
        Ok(result)
    }

    /// Reads a record's payload into `payload` as the snapshot sees it; false if there is no such
    /// record. Blocks for I/O.
    ///
    /// # Errors
    /// Why a page could not be had.
    pub fn get_consistent(
        &mut self,
        index: IndexId,
        key: &[u8],
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        self.check_open()?;
        self.ensure_snapshot();
        self.keep_record(index, key);
        let (versions, reader) = (&self.versions, self.reader());
        let look = self.read_leaf(index, Target::At(key), |leaf| {
            payload.clear();
            let Ok(slot) = leaf.search(key) else { return Ok(Look::Absent) };
            let Some((version, bytes)) = RecordVersion::parse(leaf.value(slot)) else {
                return Err(no_version(leaf.page_id()));
            };
            if versions.sees(&reader, version.trx)? {
                if version.deleted {
                    return Ok(Look::Absent);
                }
                payload.extend_from_slice(bytes);
                return Ok(Look::Present);
            }
            payload.extend_from_slice(bytes);
            Ok(Look::Older(version))
        })?;
        match look {
            Look::Absent => Ok(false),
            Look::Present => Ok(true),
            Look::Older(version) => {
                let found = versions.older_version(&reader, version, payload)?;
                Ok(found.is_some_and(|version| !version.deleted))
            }
        }
    }

    /// Closes the snapshot. Nothing can be read afterwards.
    pub(super) fn finish(&mut self) {
        self.view = None;
        if let Some(slot) = self.slot.take() {
            self.versions.snapshots().give_back(slot);
        }
        self.ended = true;
    }
}

impl RecordReader for ReadTransaction {
    fn snapshot_reader(&mut self) -> &mut ReadTransaction {
        self
    }

    fn locks(&self, mode: ReadMode) -> bool {
        mode != ReadMode::Consistent
    }

    #[inline]
    fn get(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        if self.locks(mode) {
            return Err(EngineError::ReadOnly);
        }
        self.get_consistent(index, key, payload)
    }

    fn fetch(
        &mut self,
        cursor: &mut Cursor,
        held: Option<HeldLeaves<'_>>,
    ) -> Result<Fetched, EngineError> {
        if self.locks(cursor.mode()) {
            return Err(EngineError::ReadOnly);
        }
        cursor.fetch_consistent(self, held)
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        if !self.ended {
            self.finish();
        }
    }
}
