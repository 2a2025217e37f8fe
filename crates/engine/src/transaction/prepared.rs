//! Prepared transactions: they outlive their session and a crash, and end when a coordinator says so.
//!
//! Commit is one marker. Rollback is many steps, each of which a crash may leave behind without the next;
//! so it begins with a marker too, and whatever a restart finds behind that one is a loser, not prepared:
//!
//! ```text
//!   trx 7 changes … │ prepared │ committed
//!   trx 7 changes … │ prepared │ rolling back │ (steps in the trees) │ rolled back
//! ```

use firn_base::Lsn;
use firn_format::undo::UndoOperation;

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::transaction::system::{PreparedTransaction, TransactionSystem};
use crate::transaction::undo::{MAX_XID_BYTES, UndoLog};

impl TransactionSystem {
    pub(crate) fn prepare_writer(&self, undo: &UndoLog, xid: &[u8]) -> Result<Lsn, EngineError> {
        if xid.len() > MAX_XID_BYTES {
            return Err(EngineError::Invalid(format!(
                "a transaction identifier of {} bytes is longer than {MAX_XID_BYTES}",
                xid.len()
            )));
        }
        if self.prepared().lock().contains_key(xid) {
            return Err(EngineError::Invalid("the transaction identifier is in use".to_owned()));
        }
        loop {
            // One that has changed nothing yet may have found the page filled up with others' markers.
            let prepared = self.pages().run(|| {
                let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
                let Some(held) = undo.latch(&mut mtr, 0)? else { return Ok(None) };
                undo.append_marker(&mut mtr, held, UndoOperation::Prepared { xid });
                Ok(Some(mtr.commit()))
            })?;
            match prepared {
                Some(lsn) => return Ok(lsn),
                None => self.undo().extend(&undo.segment)?,
            }
        }
    }

    /// Says that a prepared transaction cannot be committed any more, before its first change is undone.
    fn begin_rollback(&self, undo: &UndoLog) -> Result<(), EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = undo.latch_marker(&mut mtr)?;
            undo.append_marker(&mut mtr, held, UndoOperation::RollingBack);
            let _ = mtr.commit();
            Ok(())
        })
    }

    pub(crate) fn add_prepared(&self, xid: &[u8], undo: UndoLog) {
        self.prepared().lock().insert(xid.into(), PreparedTransaction { undo });
    }

    /// The identifiers of the transactions that wait for their coordinator (`XA RECOVER`).
    #[must_use]
    pub fn prepared_transactions(&self) -> Vec<Box<[u8]>> {
        let mut xids: Vec<_> = self.prepared().lock().keys().cloned().collect();
        xids.sort();
        xids
    }

    fn take_prepared(&self, xid: &[u8]) -> Result<UndoLog, EngineError> {
        let prepared = self.prepared().lock().remove(xid).ok_or_else(|| {
            EngineError::Invalid("no prepared transaction has this identifier".to_owned())
        })?;
        let mut undo = prepared.undo;
        // The marker alone is a reason to write another one.
        undo.records = undo.records.max(1);
        Ok(undo)
    }

    /// Commits a prepared transaction, and blocks until that is durable.
    ///
    /// # Errors
    /// If there is none of that identifier, or the log has failed.
    pub fn commit_prepared(&self, xid: &[u8]) -> Result<(), EngineError> {
        let undo = self.take_prepared(xid)?;
        let (cts, lsn) = self.commit_writer(undo)?;
        self.pages().log.wait_durable(lsn)?;
        self.order().wait_visible(cts);
        Ok(())
    }

    /// Rolls a prepared transaction back, and blocks until that is durable: it never comes back as a
    /// prepared one.
    ///
    /// # Errors
    /// If there is none of that identifier, or a page or the log could not be had.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<(), EngineError> {
        let undo = self.take_prepared(xid)?;
        self.begin_rollback(&undo)?;
        self.rollback_writer(undo)?;
        Ok(self.pages().log.wait_durable(self.pages().log.end_lsn())?)
    }
}
