//! Which version of a record a reader sees.
//!
//! ```text
//!   leaf            undo                    undo
//!   trx 9, v3  ──►  update: trx 7, v2  ──►  update: trx 4, v1  ──►  (no earlier version)
//!
//!   snapshot sees 4 and 7, not 9:  v2
//! ```
//!
//! The version in the leaf is read with the leaf latched; the undo records are read without that
//! latch. Meanwhile the newest writer may roll back and leave the transaction table. So a version
//! that was not visible at first is not checked again.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_base::{Cts, Lsn, TrxId};
use firn_fabric::{Fabric, FabricError, OwnedRegion};
use firn_format::undo::{RecordVersion, UndoOperation, UndoPage};

use crate::error::EngineError;
use crate::pages::{ReadPages, Restart};
use crate::sync::Ordering;
use crate::transaction::active_list::{ActiveList, ActiveListView};
use crate::transaction::behind::Behind;
use crate::transaction::commit_order::{self, MAX_COMMITTED_WORD};
use crate::transaction::snapshots::{self, SnapshotSlot, Snapshots};
use crate::transaction::system::{SnapshotKind, TransactionOptions};
use crate::transaction::table::{Outcome, TransactionTable};
use crate::transaction::undo::not_undo;
use crate::tree::{Forest, ForestReader};

/// The commits that a consistent read sees.
#[derive(Debug, Clone)]
pub(crate) enum ReadView {
    /// All commits up to a timestamp.
    Timestamp(Cts),
    /// All commits of transactions that were not on the list (baseline).
    ActiveList(ActiveListView),
}

/// A reader: its transaction, its view, and the latest commit that it saw, which must be durable
/// before the reader's result is final.
pub(crate) struct Reader<'a> {
    pub(crate) own: TrxId,
    pub(crate) view: &'a ReadView,
    pub(crate) observed: &'a Cell<Lsn>,
    /// Set when the reader's statement is killed.
    pub(crate) cancelled: Option<&'a Arc<AtomicBool>>,
    /// What the reader must see beyond its view.
    pub(crate) behind: Option<&'a Behind>,
}

impl Reader<'_> {
    /// Whether a version is seen that the view does not see. It was committed at `cts`, or is not
    /// committed as far as this node knows.
    fn sees_beyond(&self, cts: Option<Cts>) -> Result<bool, Restart> {
        let Some(behind) = self.behind else { return Ok(false) };
        #[cfg(test)]
        if behind.ignores_unseen() {
            return Ok(false);
        }
        match behind.newer() {
            Some(newer) => Ok(cts.is_some_and(|cts| cts <= newer)),
            None => Err(behind.wait(self.cancelled)),
        }
    }
}

/// Decides which versions a transaction sees, and finds them. A node that writes and a node that
/// follows its log share this code; they differ only in how the transaction table is filled.
pub struct Versions {
    forest: Arc<ForestReader>,
    table: TransactionTable,
    snapshots: Snapshots,
    /// The counters of the commit order.
    timestamps: OwnedRegion,
    /// The trees for writing, on a node that writes.
    writer: Option<Arc<Forest>>,
    active_list: Option<ActiveList>,
}

impl Versions {
    /// An empty transaction table. No snapshot older than `horizon` will be requested. Registers
    /// the transaction table, the timestamps and the registry of snapshots with `fabric`.
    ///
    /// # Errors
    /// If the fabric has regions with these names already.
    pub(crate) fn register(
        fabric: &Arc<dyn Fabric>,
        forest: Arc<ForestReader>,
        writer: Option<Arc<Forest>>,
        horizon: Cts,
        options: &TransactionOptions,
    ) -> Result<Versions, FabricError> {
        let table = TransactionTable::register(Arc::clone(fabric), options.table_slots)?;
        let timestamps = fabric.register(commit_order::REGION, commit_order::REGION_WORDS)?;
        let snapshot_words = Snapshots::region_words(options.transactions);
        let snapshots = fabric.register(snapshots::REGION, snapshot_words)?;
        Ok(Versions {
            forest,
            table,
            snapshots: Snapshots::new(snapshots, horizon),
            timestamps,
            writer,
            active_list: (options.snapshots == SnapshotKind::ActiveList).then(ActiveList::default),
        })
    }

    #[must_use]
    #[inline]
    pub fn forest(&self) -> &ForestReader {
        &self.forest
    }

    #[must_use]
    #[inline]
    pub fn pages(&self) -> &ReadPages {
        self.forest.pages()
    }

    #[must_use]
    #[inline]
    pub fn table(&self) -> &TransactionTable {
        &self.table
    }

    #[must_use]
    #[inline]
    pub fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    pub(crate) fn timestamps(&self) -> &OwnedRegion {
        &self.timestamps
    }

    /// The trees for writing, if this node writes.
    #[inline]
    pub(crate) fn writer(&self) -> Option<&Arc<Forest>> {
        self.writer.as_ref()
    }

    pub(crate) fn active_list(&self) -> Option<&ActiveList> {
        self.active_list.as_ref()
    }

    /// The snapshot that a reader would take now.
    #[inline]
    pub(crate) fn newest(&self) -> Cts {
        Cts(self.timestamps.words()[MAX_COMMITTED_WORD].load(Ordering::SeqCst))
    }

    /// Opens a snapshot of everything committed so far.
    pub(crate) fn open(&self, slot: &SnapshotSlot) -> Cts {
        self.snapshots.open(slot, || self.newest())
    }

    /// Whether every snapshot, open now or later, sees the changes of `trx`.
    pub(crate) fn is_settled(&self, trx: TrxId) -> bool {
        match self.table.outcome(trx) {
            Outcome::Settled => true,
            Outcome::Committed(cts, _) => cts <= self.snapshots.horizon(),
            Outcome::Active | Outcome::Committing => false,
        }
    }

    /// Whether `reader` sees the changes of `trx`.
    ///
    /// # Errors
    /// [`Restart::Unfinished`] while another node is choosing the transaction's timestamp;
    /// [`Restart::Behind`] if the transaction may have committed where the reader must see it.
    #[inline]
    pub(crate) fn sees(&self, reader: &Reader<'_>, trx: TrxId) -> Result<bool, Restart> {
        if trx == reader.own || trx == TrxId::NONE {
            return Ok(true);
        }
        match self.table().outcome(trx) {
            Outcome::Settled => Ok(true),
            Outcome::Active => reader.sees_beyond(None),
            Outcome::Committing => Err(self.table().undecided(reader.cancelled)),
            Outcome::Committed(cts, lsn) => {
                let sees = match reader.view {
                    ReadView::Timestamp(snapshot) => cts <= *snapshot,
                    ReadView::ActiveList(view) => view.sees(trx),
                };
                let sees = sees || reader.sees_beyond(Some(cts))?;
                if sees && lsn > reader.observed.get() {
                    reader.observed.set(lsn);
                }
                Ok(sees)
            }
        }
    }

    /// Follows the version chain from a version that `reader` does not see to the newest one that
    /// it sees. `payload` is the payload of the given version and becomes that of the found one.
    /// `None` if the reader sees no version. Blocks.
    pub(crate) fn older_version(
        &self,
        reader: &Reader<'_>,
        newest: RecordVersion,
        payload: &mut Vec<u8>,
    ) -> Result<Option<RecordVersion>, EngineError> {
        let mut version = newest;
        let mut older = Vec::new();
        loop {
            match self.previous_version(version, payload, &mut older)? {
                None => return Ok(None),
                Some(previous) => version = previous,
            }
            std::mem::swap(payload, &mut older);
            if version.trx != newest.trx && self.pages().run(|| self.sees(reader, version.trx))? {
                return Ok(Some(version));
            }
        }
    }

    /// One step back: the version before `version`, and its payload, which is made from the present
    /// one. Blocks for I/O.
    pub(super) fn previous_version(
        &self,
        version: RecordVersion,
        payload: &[u8],
        older: &mut Vec<u8>,
    ) -> Result<Option<RecordVersion>, EngineError> {
        if version.undo.is_none() || version.undo.has_no_earlier_version() {
            return Ok(None);
        }
        let page = version.undo.page_id();
        self.pages().run(|| {
            let guard = self.pages().pool.shared(page)?;
            let undo = UndoPage::new(&guard).ok_or_else(|| not_undo(page))?;
            let corrupt = |what: String| Restart::Fail(EngineError::Corrupt { page, what });
            let record = undo
                .record_at(version.undo.offset())
                .map_err(|damage| corrupt(damage.to_string()))?;
            match record.operation {
                UndoOperation::Update { previous, payload: form, .. } => {
                    form.restore(payload, older).map_err(|damage| corrupt(damage.to_string()))?;
                    Ok(Some(previous))
                }
                UndoOperation::Insert { .. } | UndoOperation::InsertRun { .. } => Ok(None),
                _ => Err(corrupt("a version leads to a record that is no change".to_owned())),
            }
        })
    }
}
