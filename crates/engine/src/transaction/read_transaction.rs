//! The part of a transaction that reads from a snapshot. On a node that follows another node's log,
//! this is the whole transaction.
//!
//! ```text
//!   Transaction       locks, writes, commits         a node that writes
//!     └─ ReadTransaction   snapshot, consistent reads  every node
//!          └─ Versions          table, trees, undo
//! ```
//!
//! Consistent reads take no locks and wait for no other transaction. They change no page either. If
//! this node writes, it completes a half-done split that a read has met, after all latches were
//! released; otherwise the split is left to the node that writes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::rows::{Fetched, HeldLeaves, IsolationLevel, ReadMode};
use firn_base::{Cts, IndexId, Lsn, PageId, TrxId};
use firn_format::tree::TreePage;
use firn_format::undo::RecordVersion;

use crate::error::EngineError;
use crate::lock::LockError;
use crate::pages::Restart;
use crate::transaction::behind::Behind;
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
    /// What the snapshot must see beyond its view, on a node that follows another one. Set before
    /// the snapshot is opened.
    pub(super) behind: Option<Box<Behind>>,
    pub(super) reads: Reads,
    /// The transaction whose uncommitted writes this one sees.
    pub(super) own: Option<TrxId>,
    pub(crate) observed: Cell<Lsn>,
    pub(super) cancelled: Option<Arc<AtomicBool>>,
    pub(super) ended: bool,
}

/// A transaction that reads records: with or without locks.
pub trait RecordReader {
    /// The snapshot that it reads from.
    fn snapshot_reader(&mut self) -> &mut ReadTransaction;

    /// Whether a read in `mode` takes locks.
    fn locks(&self, mode: ReadMode) -> bool;

    /// Reads a record's payload into `payload`. False if the record does not exist. Blocks for
    /// locks and I/O.
    ///
    /// # Errors
    /// A lock that was not granted, a conflict with the snapshot, [`EngineError::ReadOnly`], or an
    /// error of the page store.
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

/// The result of reading a leaf's record.
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
    /// If the number of open transactions has reached the limit.
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
            behind: None,
            reads: Reads::default(),
            own: None,
            observed: Cell::new(Lsn::default()),
            cancelled: None,
            ended: false,
        })
    }

    /// Opens a snapshot that another node has chosen, and that is never renewed. This node has all
    /// commits that the snapshot sees.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if versions that the snapshot sees may have been purged.
    pub(crate) fn open_at(&mut self, snapshot: Cts) -> Result<(), EngineError> {
        let slot = self.slot.as_ref().expect("an open transaction has a slot");
        self.versions.snapshots().open_at(slot, snapshot)?;
        self.view = Some(ReadView::Timestamp(snapshot));
        self.reads.lose();
        Ok(())
    }

    /// Another reader of the same snapshot. It has no slot in the registry of snapshots: this
    /// transaction's slot covers both. The caller drops it before the snapshot is closed.
    pub(crate) fn open_sibling(&mut self) -> ReadTransaction {
        self.ensure_snapshot();
        self.reads.lose();
        ReadTransaction {
            versions: Arc::clone(&self.versions),
            isolation: self.isolation,
            slot: None,
            view: self.view.clone(),
            behind: self.behind.clone(),
            reads: Reads::default(),
            own: self.own,
            observed: Cell::new(Lsn::default()),
            cancelled: self.cancelled.clone(),
            ended: false,
        }
    }

    #[must_use]
    pub fn isolation(&self) -> IsolationLevel {
        self.isolation
    }

    #[inline]
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Sets the flag that cancels the transaction's waits for locks and its scans with
    /// [`LockError::Cancelled`]. When the flag is false again, the transaction can continue. A
    /// session has one flag for its life, so that a statement allocates none.
    pub fn set_cancelled(&mut self, flag: Arc<AtomicBool>) {
        self.cancelled = Some(flag);
    }

    /// Fails if the statement was cancelled. Long statements call this periodically; cursors call
    /// it for each batch.
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

    /// Sets what the next snapshot must see. Without effect while one is open: it keeps its own.
    pub(crate) fn must_see(&mut self, behind: Option<Behind>) {
        if self.view.is_none() {
            self.behind = behind.map(Box::new);
        }
    }

    /// Opens the snapshot now instead of with the first read. Under READ COMMITTED a statement
    /// calls this first, so that all its reads see the same. Such a snapshot is never renewed after
    /// the first read from it.
    pub fn open_snapshot(&mut self) {
        self.open_view();
        self.reads.lose();
    }

    fn open_view(&mut self) {
        if let Some(slot) = &self.slot {
            // In this order: a snapshot that is opened afterwards sees what can be seen now.
            self.behind.take_if(|behind| behind.is_over());
            let snapshot = self.versions.open(slot);
            self.behind.take_if(|behind| behind.is_within(snapshot));
            self.view = Some(match self.versions.active_list() {
                None => ReadView::Timestamp(snapshot),
                Some(list) => ReadView::ActiveList(list.copy()),
            });
        }
    }

    /// Ends a statement. READ COMMITTED closes its snapshot.
    pub fn end_statement(&mut self) {
        if self.isolation == IsolationLevel::ReadCommitted {
            self.close_snapshot();
        }
    }

    pub(super) fn close_snapshot(&mut self) {
        self.reads.clear();
        self.behind = None;
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

    /// Whether records may be this transaction's own, or those of the transaction that it reads
    /// for.
    pub(crate) fn has_written(&self) -> bool {
        self.own.is_some()
    }

    /// The snapshot's timestamp, if a snapshot is open.
    #[must_use]
    pub fn snapshot(&self) -> Option<Cts> {
        match &self.view {
            Some(ReadView::Timestamp(snapshot)) => {
                Some(self.behind.as_deref().and_then(Behind::newer).unwrap_or(*snapshot))
            }
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
            behind: self.behind.as_deref(),
        }
    }

    /// Records that a commit at this position in the log was seen.
    pub(crate) fn note_observed(&self, commit: Lsn) {
        self.observed.set(self.observed.get().max(commit));
    }

    /// Records that any commit in the log may have been seen. On a follower all visible commits are
    /// durable already.
    pub(crate) fn note_observed_all(&self) {
        if let Some(forest) = self.versions.writer() {
            self.note_observed(forest.pages().log.end_lsn());
        }
    }

    pub(crate) fn check_open(&self) -> Result<(), EngineError> {
        if self.ended { Err(EngineError::TransactionEnded) } else { Ok(()) }
    }

    /// Passes the leaf for `target` to `look`, latched shared. `look` may be called again, and must
    /// not wait. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the page store, or the error of `look`.
    #[inline]
    pub(crate) fn read_leaf<R>(
        &self,
        index: IndexId,
        target: Target<'_>,
        mut look: impl FnMut(&TreePage<'_>) -> Result<R, Restart>,
    ) -> Result<R, EngineError> {
        let tree = self.versions.forest().tree(index);
        let (result, half_done) = match &self.behind {
            None => tree.read(target, look)?,
            Some(behind) => {
                behind.look();
                tree.read(target, |leaf| {
                    behind.must_cover(leaf.page_id(), self.cancelled.as_ref())?;
                    look(leaf)
                })?
            }
        };
        if let Some(split) = half_done
            && let Some(forest) = self.versions.writer()
        {
            forest.complete(split)?;
        }
        Ok(result)
    }

    /// Whether the snapshot is older than what it must see, and no difference was met.
    #[cfg(test)]
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.as_ref().is_some_and(|behind| behind.newer().is_none())
    }

    /// Called before a leaf is read by other means than [`ReadTransaction::read_leaf`].
    #[inline]
    pub(crate) fn look_behind(&self) {
        if let Some(behind) = &self.behind {
            behind.look();
        }
    }

    /// Whether the leaf that was read shows what the snapshot must see.
    #[inline]
    pub(crate) fn covers(&self, leaf: PageId) -> bool {
        self.behind.as_ref().is_none_or(|behind| behind.covers(leaf) == Some(true))
    }

    /// Reads a record's payload into `payload` as the snapshot sees it. False if the snapshot sees
    /// no such record. Blocks for I/O.
    ///
    /// # Errors
    /// Errors of the page store.
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

    /// Closes the snapshot. The transaction cannot read afterwards.
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
