//! Transactions from the log: which transactions each group begins, commits and rolls back.
//!
//! ```text
//!   log group         before its pages change    after
//!   undo of trx 7     7 is in the table as active
//!   committed 7 @ 44                             the table says 44; new definitions; 44 is visible
//!   rolled back 7                                7 leaves the table
//! ```
//!
//! The order matters to readers that look at a page in between. A record written by an unknown
//! transaction counts as settled, so the transaction is known before its first record is. A commit
//! is visible only once the records, the table and the definitions include it.

use std::collections::hash_map::Entry;

use firn_api::{LogEpoch, WriterError};
use firn_base::{Cts, Lsn, PageNo, TrxId};
use firn_format::redo::{Change, Group};
use firn_format::space::UNDO_SPACE;
use firn_format::undo::{UndoOperation, UndoRecord};
use rustc_hash::FxHashMap;

use crate::dictionary::SystemTrees;
use crate::dictionary::follow::Touched;
use crate::error::EngineError;
use crate::space::DroppedSpaces;
use crate::transaction::Versions;

use super::by_page::OpenChanges;

/// What a group says about a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Committed(TrxId, Cts),
    RolledBack(TrxId),
}

/// A commit in a group.
#[derive(Debug)]
pub(crate) struct ReplayedCommit {
    pub(crate) cts: Cts,
    /// Which definitions the transaction has changed.
    pub(crate) touched: Touched,
}

pub(crate) struct Replay {
    trees: SystemTrees,
    /// The writer's epoch.
    epoch: LogEpoch,
    /// Transactions that have not ended, with the definitions they have changed so far.
    open: FxHashMap<TrxId, Touched>,
    said: Vec<Said>,
    /// Transactions of `open` that have changed definitions.
    open_changes: OpenChanges,
}

impl Replay {
    /// A replay of the log of one epoch, which knows the transactions that are open where it
    /// starts. It is unknown which definitions these have changed.
    pub(crate) fn new(
        trees: SystemTrees,
        epoch: LogEpoch,
        open: impl IntoIterator<Item = TrxId>,
        open_changes: OpenChanges,
    ) -> Replay {
        let open: FxHashMap<_, _> = open.into_iter().map(|trx| (trx, Touched::All)).collect();
        open.iter().for_each(|_| open_changes.begin());
        Replay { trees, epoch, open, said: Vec::new(), open_changes }
    }

    /// Notes what the group says, before its pages change.
    ///
    /// # Errors
    /// If the group is damaged, or the fabric has no memory for the transaction table;
    /// [`WriterError::Ended`] if another writer has begun. Nothing of its log is applied: it has
    /// never seen the replica's place, and may have purged what snapshots see here.
    pub(crate) fn begin_group(
        &mut self,
        versions: &Versions,
        dropped: &DroppedSpaces,
        group: &Group<'_>,
    ) -> Result<(), EngineError> {
        self.said.clear();
        for record in group.records() {
            let record = record.map_err(|damage| EngineError::Invalid(damage.to_string()))?;
            if record.page.space != UNDO_SPACE && record.page.page_no != PageNo::NONE {
                continue;
            }
            let change = Change::decode(&record);
            match change.map_err(|damage| EngineError::Invalid(damage.to_string()))? {
                Change::UndoAppend { record: bytes } => {
                    let undo = UndoRecord::parse(bytes);
                    let undo = undo.map_err(|damage| EngineError::Corrupt {
                        page: record.page,
                        what: damage.to_string(),
                    })?;
                    self.note(versions, &undo)?;
                }
                Change::SpaceDropped => dropped.note(record.page.space),
                Change::WriterBegins { epoch } if epoch > self.epoch.0 => {
                    let reason = format!("another node writes the log, in epoch {epoch}");
                    return Err(WriterError::Ended { reason }.into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn note(&mut self, versions: &Versions, undo: &UndoRecord<'_>) -> Result<(), EngineError> {
        let trx = undo.trx;
        let touched = match self.open.entry(trx) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                versions.table().begin(trx, versions.snapshots().horizon())?;
                place.insert(Touched::default())
            }
        };
        let was_nothing = touched.is_nothing();
        match undo.operation {
            UndoOperation::Committed { cts } => self.said.push(Said::Committed(trx, cts)),
            UndoOperation::RolledBack => self.said.push(Said::RolledBack(trx)),
            UndoOperation::Insert { index, key } | UndoOperation::Update { index, key, .. } => {
                touched.note(&self.trees, index, key);
            }
            UndoOperation::InsertRun { index, .. } => touched.note_run(&self.trees, index),
            _ => {}
        }
        if was_nothing && !touched.is_nothing() {
            self.open_changes.begin();
        }
        Ok(())
    }

    /// Enters the group's news into the transaction table, now that its pages have changed and end
    /// at `end`. Returns the commits; they are not visible yet, and what they have changed in
    /// definitions is open until it is followed.
    pub(crate) fn end_group(&mut self, versions: &Versions, end: Lsn) -> Vec<ReplayedCommit> {
        let mut commits = Vec::new();
        for said in self.said.drain(..) {
            match said {
                Said::Committed(trx, cts) => {
                    versions.table().commit(trx, cts, end);
                    let touched = self.open.remove(&trx).unwrap_or_default();
                    commits.push(ReplayedCommit { cts, touched });
                }
                Said::RolledBack(trx) => {
                    versions.table().remove(trx);
                    if self.open.remove(&trx).is_some_and(|touched| !touched.is_nothing()) {
                        self.open_changes.end();
                    }
                }
            }
        }
        commits
    }
}
