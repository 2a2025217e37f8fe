//! The transaction system of a node: ids, timestamps, snapshots, undo and locks together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_api::rows::DetachedLocks;
use firn_api::{LogEpoch, Timestamps};
use firn_base::{Cts, Environment, Lsn, PageId, PageNo, TrxId};
use firn_fabric::Fabric;
use firn_format::overflow::OverflowPage;
use firn_format::page::PageKind;
use firn_format::redo::Change;
use firn_format::space::UNDO_SPACE;
use firn_format::undo::UndoPointer;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::error::EngineError;
use crate::lock::LockManager;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::pages::Pages;
use crate::transaction::active_list::ActiveList;
use crate::transaction::commit_order::{CommitOrder, CommitTicket};
use crate::transaction::handover::CommitGate;
use crate::transaction::snapshots::Snapshots;
use crate::transaction::table::TransactionTable;
use crate::transaction::undo::{Finished, Segment, UndoLog, UndoSegments, Work};
use crate::transaction::versions::Versions;
use crate::tree::Forest;

/// How a snapshot decides which transactions it sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotKind {
    /// By one timestamp (PolarTrans).
    #[default]
    Timestamp,
    /// By a copy of the list of active transactions, taken under a global mutex. This is the
    /// baseline for measurements of PolarTrans; InnoDB's read view works this way.
    ActiveList,
}

/// The settings of the transaction system.
#[derive(Debug, Clone, Copy)]
pub struct TransactionOptions {
    /// The most transactions that may be open at once.
    pub transactions: usize,
    /// Slots of the transaction table, a power of two.
    pub table_slots: usize,
    /// The longest wait for a lock, unless a transaction sets another limit.
    pub lock_wait_timeout: Duration,
    /// Whether to refuse a write to a row that has changed since the transaction's snapshot.
    pub first_updater_wins: bool,
    pub snapshots: SnapshotKind,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            transactions: 16 * 1024,
            table_slots: 64 * 1024,
            lock_wait_timeout: Duration::from_secs(50),
            first_updater_wins: true,
            snapshots: SnapshotKind::Timestamp,
        }
    }
}

/// The limits of ids and timestamps that may have been handed out before the last restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdLimits {
    /// The next transaction gets this id.
    pub trx: TrxId,
    /// All commits have timestamps up to this one.
    pub cts: Cts,
    /// No snapshot is older than this, which is at most `cts`.
    pub horizon: Cts,
}

/// Ids that one watermark record reserves.
const IDS_PER_WATERMARK: u64 = 1 << 20;
/// If fewer reserved timestamps than this are left, a watermark is written.
const TIMESTAMPS_LOW: u64 = 1 << 16;

/// A prepared transaction without a session.
pub(crate) struct PreparedTransaction {
    pub(crate) undo: UndoLog,
    pub(crate) locks: DetachedLocks,
    /// Snapshots below this timestamp may have read without the transaction. Zero after a restart:
    /// since then nobody has.
    pub(crate) lowest: Cts,
}

/// A transaction whose identifier is in use.
pub(crate) struct NamedTransaction {
    pub(crate) trx: TrxId,
    /// `None` while the transaction is being prepared or ended.
    pub(crate) prepared: Option<PreparedTransaction>,
}

/// By identifier.
pub(crate) type PreparedTransactions = FxHashMap<Box<[u8]>, NamedTransaction>;

pub struct TransactionSystem {
    forest: Arc<Forest>,
    locks: LockManager,
    versions: Arc<Versions>,
    order: CommitOrder,
    undo: UndoSegments,
    next_trx: AtomicU64,
    /// The limits of the watermarks in the log.
    trx_limit: AtomicU64,
    cts_limit: AtomicU64,
    watermark: Mutex<()>,
    prepared: Mutex<PreparedTransactions>,
    gate: CommitGate,
    options: TransactionOptions,
}

impl TransactionSystem {
    /// A system without transactions, whose ids begin at `limits`. Registers the transaction table,
    /// the timestamps and the registry of snapshots with `fabric`.
    ///
    /// # Errors
    /// If the fabric has regions with these names already, or the source of timestamps does not
    /// answer.
    pub fn new(
        environment: &Environment,
        fabric: &Arc<dyn Fabric>,
        forest: Arc<Forest>,
        limits: IdLimits,
        timestamps: &Timestamps,
        options: TransactionOptions,
    ) -> Result<TransactionSystem, EngineError> {
        let (readers, writer) = (Arc::clone(forest.reader()), Some(Arc::clone(&forest)));
        let versions = Versions::register(fabric, readers, writer, limits.horizon, &options)?;
        let undo = UndoSegments::new(forest.pages().clone(), Arc::clone(forest.spaces()));
        Ok(TransactionSystem {
            locks: LockManager::new(Arc::clone(&environment.clock)),
            order: CommitOrder::new(versions.timestamps().clone(), limits.cts, timestamps)?,
            versions: Arc::new(versions),
            undo,
            next_trx: AtomicU64::new(limits.trx.0.max(1)),
            trx_limit: AtomicU64::new(limits.trx.0),
            cts_limit: AtomicU64::new(limits.cts.0),
            watermark: Mutex::new(()),
            prepared: Mutex::default(),
            gate: CommitGate::default(),
            forest,
            options,
        })
    }

    #[must_use]
    pub fn forest(&self) -> &Arc<Forest> {
        &self.forest
    }

    #[must_use]
    pub fn pages(&self) -> &Pages {
        self.forest.pages()
    }

    #[must_use]
    pub fn locks(&self) -> &LockManager {
        &self.locks
    }

    #[must_use]
    pub fn versions(&self) -> &Arc<Versions> {
        &self.versions
    }

    #[must_use]
    pub fn table(&self) -> &TransactionTable {
        self.versions.table()
    }

    #[must_use]
    pub fn order(&self) -> &CommitOrder {
        &self.order
    }

    #[must_use]
    pub fn snapshots(&self) -> &Snapshots {
        self.versions.snapshots()
    }

    #[must_use]
    pub fn options(&self) -> &TransactionOptions {
        &self.options
    }

    /// The memory of the transaction table and the registry of snapshots, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.table().size_bytes() + Snapshots::size_bytes(self.options.transactions)) as u64
    }

    pub(crate) fn undo(&self) -> &UndoSegments {
        &self.undo
    }

    /// How often a thread waited for the list of active transactions (baseline only).
    #[must_use]
    pub fn active_list_waits(&self) -> u64 {
        self.active_list().map_or(0, ActiveList::waits)
    }

    fn active_list(&self) -> Option<&ActiveList> {
        self.versions.active_list()
    }

    pub(super) fn gate(&self) -> &CommitGate {
        &self.gate
    }

    pub(crate) fn prepared(&self) -> &Mutex<PreparedTransactions> {
        &self.prepared
    }

    /// Whether every snapshot, open now or later, sees the changes of `trx`.
    pub(crate) fn is_settled(&self, trx: TrxId) -> bool {
        self.versions.is_settled(trx)
    }

    /// Hands out a transaction id and enters it into the table. May write to the log: call it with
    /// nothing latched.
    ///
    /// # Errors
    /// If the log has no room or has failed.
    pub(crate) fn begin_trx(&self) -> Result<TrxId, EngineError> {
        let trx = TrxId(self.next_trx.fetch_add(1, Ordering::AcqRel));
        while trx.0 >= self.trx_limit.load(Ordering::Acquire) {
            self.raise_watermark(Purpose::Completion)?;
        }
        self.table().begin(trx, self.snapshots().horizon())?;
        if let Some(list) = self.active_list() {
            list.add(trx);
        }
        Ok(trx)
    }

    /// Ensures that a timestamp can be handed out. Returns the timestamp if a shared source numbers
    /// commits, or if another node has chosen it (`at`). May write to the log and wait for the
    /// source: call it with nothing latched, and commit soon.
    ///
    /// # Errors
    /// If the log or the source refuses; the transaction is unchanged.
    pub(crate) fn prepare_commit(
        &self,
        at: Option<Cts>,
    ) -> Result<Option<CommitTicket>, EngineError> {
        let reserved = loop {
            self.wait_for_gate()?;
            let reserved = match at {
                Some(cts) => Some(self.order.adopt(cts)?),
                None => self.order.reserve()?,
            };
            // A handover that closes the gate after this waits for the commit.
            if reserved.is_none() || !self.gate.is_closed() {
                break reserved;
            }
            self.abandon(reserved);
        };
        let set_aside = match reserved {
            Some(ticket) => self.set_aside_timestamp(ticket.cts()),
            None => self.set_aside_timestamps(),
        };
        set_aside.inspect_err(|_| self.abandon(reserved))?;
        Ok(reserved)
    }

    /// Releases a reserved timestamp that stays unused.
    pub(crate) fn abandon(&self, reserved: Option<CommitTicket>) {
        if let Some(ticket) = reserved {
            self.order.publish(ticket);
        }
    }

    /// Ensures that a watermark in the log covers `cts`.
    fn set_aside_timestamp(&self, cts: Cts) -> Result<(), EngineError> {
        while cts.0 > self.cts_limit.load(Ordering::Acquire) {
            self.raise_watermark(Purpose::Completion)?;
        }
        Ok(())
    }

    fn set_aside_timestamps(&self) -> Result<(), EngineError> {
        let left = || self.cts_limit.load(Ordering::Acquire).saturating_sub(self.order.last().0);
        while left() < TIMESTAMPS_LOW {
            self.raise_watermark(Purpose::Completion)?;
        }
        Ok(())
    }

    /// Writes a watermark with higher limits, so that ids up to them are never handed out again
    /// after a crash.
    fn raise_watermark(&self, purpose: Purpose) -> Result<(), EngineError> {
        let admission = MiniTransaction::begin(self.pages(), purpose)?;
        let _raising = self.watermark.lock();
        let mut mtr = admission;
        let trx = self.next_trx.load(Ordering::Acquire) + IDS_PER_WATERMARK;
        let cts = self.order.last().0 + self.order.set_aside();
        let about = PageId::new(UNDO_SPACE, PageNo::NONE);
        mtr.note(about, &Change::Watermark { trx_id_limit: TrxId(trx), cts_limit: Cts(cts) });
        let _ = mtr.commit();
        self.trx_limit.store(trx, Ordering::Release);
        self.cts_limit.store(cts, Ordering::Release);
        Ok(())
    }

    /// Writes the first record of this node's epoch to the log: readers of the log learn by it that
    /// the writers before have ended.
    ///
    /// # Errors
    /// If the log has failed.
    pub(crate) fn begin_epoch(&self, epoch: LogEpoch) -> Result<(), EngineError> {
        let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
        let about = PageId::new(UNDO_SPACE, PageNo::NONE);
        mtr.note(about, &Change::WriterBegins { epoch: epoch.0 });
        let _ = mtr.commit();
        Ok(())
    }

    /// Writes the commit marker, makes the transaction visible and releases its locks. The commit
    /// is durable when the log is durable up to the returned position.
    pub(crate) fn commit_writer(
        &self,
        undo: UndoLog,
        reserved: Option<CommitTicket>,
    ) -> Result<(Cts, Lsn), EngineError> {
        let trx = undo.trx;
        if undo.records == 0 {
            self.abandon(reserved);
            self.end_without_changes(undo);
            return Ok((self.order.max_committed(), Lsn::default()));
        }
        let (ticket, lsn, end) = loop {
            let written = self.pages().run(|| {
                let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
                let held = undo.latch_marker(&mut mtr)?;
                let ticket = reserved.unwrap_or_else(|| self.order.allocate());
                if reserved.is_none() && self.gate.is_closed() {
                    return Ok(Err(ticket));
                }
                let end = undo.append_committed(&mut mtr, held, ticket.cts());
                Ok(Ok((ticket, mtr.commit(), end)))
            });
            match written.inspect_err(|_| self.abandon(reserved))? {
                Ok(written) => break written,
                Err(unused) => {
                    self.order.publish(unused);
                    self.wait_for_gate()?;
                }
            }
        };
        let cts = ticket.cts();
        self.table().commit(trx, cts, lsn);
        self.order.publish(ticket);
        let work = undo.work;
        self.end_writer(undo, Finished { cts, end, work });
        Ok((cts, lsn))
    }

    /// Undoes all changes, writes the marker and releases the locks. Blocks.
    pub(crate) fn rollback_writer(&self, undo: UndoLog) -> Result<(), EngineError> {
        if undo.records == 0 {
            self.end_without_changes(undo);
            return Ok(());
        }
        self.undo_back_to(undo.last, UndoPointer::NONE)?;
        let end = self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = undo.latch_marker(&mut mtr)?;
            let end = undo.append_rolled_back(&mut mtr, held);
            let _ = mtr.commit();
            Ok(end)
        })?;
        self.table().remove(undo.trx);
        // A reader that follows a version chain through these records has an older snapshot than
        // this.
        let cts = Cts(self.order.last().0 + 1);
        // The transaction's own changes are undone and leave nothing to purge. But after a restart,
        // the segment may hold earlier transactions that purge has not reached.
        let work = if undo.work == Work::AllBefore { Work::AllBefore } else { Work::None };
        self.end_writer(undo, Finished { cts, end, work });
        Ok(())
    }

    fn end_without_changes(&self, undo: UndoLog) {
        self.table().remove(undo.trx);
        self.leave(undo.trx, undo.segment);
    }

    fn end_writer(&self, undo: UndoLog, finished: Finished) {
        undo.segment.stream.lock().finished.push_back(finished);
        self.leave(undo.trx, undo.segment);
    }

    fn leave(&self, trx: TrxId, segment: Arc<Segment>) {
        if let Some(list) = self.active_list() {
            list.remove(trx);
        }
        self.locks.release_all(trx);
        self.undo.release(segment);
    }

    /// Frees a chain of overflow pages that `owner` wrote. May be repeated after a crash: pages
    /// that were freed already, and perhaps reused, have another kind or owner. The last page is
    /// freed first, so that the remaining ones can be found. Blocks.
    pub(crate) fn free_overflow(&self, first: PageId, owner: TrxId) -> Result<(), EngineError> {
        let mut chain = Vec::new();
        let mut next = first.page_no;
        while next != PageNo::NONE {
            let page = PageId::new(first.space, next);
            let following = self.pages().run(|| {
                let guard = self.pages().pool.shared(page)?;
                Ok(OverflowPage::new(&guard)
                    .filter(|part| part.owner == owner)
                    .map(|part| part.next))
            });
            match following {
                Ok(Some(following)) => next = following,
                Ok(None) => break,
                Err(error) if error.is_absent_page() => break,
                Err(error) => return Err(error),
            }
            chain.push(page);
        }
        chain.into_iter().rev().try_for_each(|page| self.free_page(page))
    }

    fn free_page(&self, page: PageId) -> Result<(), EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = mtr.exclusive(page)?;
            self.forest.spaces().free(&mut mtr, page)?;
            mtr.change(held, &Change::Format { kind: PageKind::Free });
            let _ = mtr.commit();
            Ok(())
        })
    }
}
