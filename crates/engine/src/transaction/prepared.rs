//! Prepared transactions: they outlive their session and a crash, and end when a coordinator says so.

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
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = undo.latch_marker(&mut mtr)?;
            undo.append_marker(&mut mtr, held, UndoOperation::Prepared { xid });
            Ok(mtr.commit())
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

    /// Rolls a prepared transaction back. Blocks.
    ///
    /// # Errors
    /// If there is none of that identifier, or a page or the log could not be had.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<(), EngineError> {
        let undo = self.take_prepared(xid)?;
        self.rollback_writer(undo)
    }
}
