//! Which version of a record a reader sees.
//!
//! ```text
//!   leaf            undo                    undo
//!   trx 9, v3  ──►  update: trx 7, v2  ──►  update: trx 4, v1  ──►  (no earlier version)
//!
//!   snapshot sees 4 and 7, not 9:  v2
//! ```
//!
//! The look at the version in the leaf is taken with the leaf latched; the walk back through the undo
//! records is not. Meanwhile the newest writer may roll back and leave the transaction table, so what was
//! found not to be visible at first is not asked again.

use std::cell::Cell;

use firn_base::{Cts, Lsn, TrxId};
use firn_format::tree::RecordVersion;
use firn_format::undo::{UndoOperation, UndoPage};

use crate::error::EngineError;
use crate::pages::Restart;
use crate::transaction::active_list::ActiveListView;
use crate::transaction::system::TransactionSystem;
use crate::transaction::table::Outcome;
use crate::transaction::undo::not_undo;

/// What a consistent read sees.
#[derive(Debug, Clone)]
pub(crate) enum ReadView {
    /// Everything committed up to a timestamp.
    Timestamp(Cts),
    /// Everything that was not on a list (baseline).
    ActiveList(ActiveListView),
}

/// A reader: its own writes, its view, and how far the log has to be durable for what it saw to last.
pub(crate) struct Reader<'a> {
    pub(crate) own: TrxId,
    pub(crate) view: &'a ReadView,
    pub(crate) observed: &'a Cell<Lsn>,
}

impl TransactionSystem {
    /// Whether `reader` sees what `trx` wrote.
    ///
    /// # Errors
    /// [`Restart::Undecided`] while the transaction's timestamp is being decided.
    #[inline]
    pub(crate) fn sees(&self, reader: &Reader<'_>, trx: TrxId) -> Result<bool, Restart> {
        if trx == reader.own || trx == TrxId::NONE {
            return Ok(true);
        }
        match self.table().outcome(trx) {
            Outcome::Settled => Ok(true),
            Outcome::Active => Ok(false),
            Outcome::Committing => Err(self.table().undecided()),
            Outcome::Committed(cts, lsn) => {
                let sees = match reader.view {
                    ReadView::Timestamp(snapshot) => cts <= *snapshot,
                    ReadView::ActiveList(view) => view.sees(trx),
                };
                if sees && lsn > reader.observed.get() {
                    reader.observed.set(lsn);
                }
                Ok(sees)
            }
        }
    }

    /// Goes back from a version that `reader` does not see to the newest one that it does; `payload` is
    /// that of the given version and becomes that of the found one. `None` if there is none. Blocks.
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

    /// One step back: the version before `version`, and its payload.
    fn previous_version(
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
