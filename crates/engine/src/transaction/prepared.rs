//! Prepared transactions. They survive their session and a crash, and end when their coordinator
//! decides.
//!
//! A commit writes one marker. A rollback has many steps, and a crash may come between any two of
//! them. So it begins with a marker as well, and a restart treats a transaction with that marker as
//! a loser, not as prepared:
//!
//! ```text
//!   trx 7 changes … │ prepared │ committed
//!   trx 7 changes … │ prepared │ rolling back │ (steps in the trees) │ rolled back
//! ```
//!
//! An identifier stays in use from before its marker is written until after its end is in the log,
//! so that no restart finds two transactions with the same identifier.

use std::collections::hash_map::Entry;

use firn_api::rows::DetachedLocks;
use firn_base::{Cts, Lsn, SpaceId, TrxId};
use firn_format::undo::{UndoOperation, UndoPointer, UndoRecord};
use rustc_hash::FxHashSet;

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
        self.take_name(xid)?;
        let prepared = self.write_prepared(undo, xid);
        if prepared.is_err() {
            self.prepared().lock().remove(xid);
        }
        prepared
    }

    fn take_name(&self, xid: &[u8]) -> Result<(), EngineError> {
        match self.prepared().lock().entry(xid.into()) {
            Entry::Occupied(_) => {
                Err(EngineError::Invalid("the transaction identifier is in use".to_owned()))
            }
            Entry::Vacant(free) => {
                free.insert(None);
                Ok(())
            }
        }
    }

    fn write_prepared(&self, undo: &UndoLog, xid: &[u8]) -> Result<Lsn, EngineError> {
        loop {
            // A transaction without changes has not reserved room: other transactions' markers may
            // have filled the page.
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

    /// Records that a prepared transaction can no longer commit, before its first change is undone.
    fn begin_rollback(&self, undo: &UndoLog) -> Result<(), EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = undo.latch_marker(&mut mtr)?;
            undo.append_marker(&mut mtr, held, UndoOperation::RollingBack);
            let _ = mtr.commit();
            Ok(())
        })
    }

    pub(crate) fn add_prepared(&self, xid: &[u8], undo: UndoLog, locks: DetachedLocks) {
        self.prepared().lock().insert(xid.into(), Some(PreparedTransaction { undo, locks }));
    }

    /// Gives a prepared transaction that a restart found its locks on definitions.
    pub(crate) fn keep_with_prepared(&self, trx: TrxId, locks: DetachedLocks) {
        let mut prepared = self.prepared().lock();
        let found = prepared.values_mut().flatten().find(|one| one.undo.trx == trx);
        if let Some(one) = found {
            one.locks = locks;
        }
    }

    /// The identifiers of the transactions that wait for their coordinator (`XA RECOVER`).
    #[must_use]
    pub fn prepared_transactions(&self) -> Vec<Box<[u8]>> {
        let prepared = self.prepared().lock();
        let complete = prepared.iter().filter(|(_, transaction)| transaction.is_some());
        let mut xids: Vec<_> = complete.map(|(xid, _)| xid.clone()).collect();
        drop(prepared);
        xids.sort();
        xids
    }

    /// The spaces that each prepared transaction has changed, according to its undo log. Blocks.
    pub(crate) fn spaces_of_prepared(
        &self,
    ) -> Result<Vec<(TrxId, FxHashSet<SpaceId>)>, EngineError> {
        let prepared: Vec<_> = {
            let prepared = self.prepared().lock();
            let logs = prepared.values().flatten();
            logs.map(|transaction| (transaction.undo.trx, transaction.undo.last)).collect()
        };
        let spaces = |(trx, last)| Ok((trx, self.spaces_behind(last)?));
        prepared.into_iter().map(spaces).collect()
    }

    fn spaces_behind(&self, last: UndoPointer) -> Result<FxHashSet<SpaceId>, EngineError> {
        let (mut spaces, mut next) = (FxHashSet::default(), last);
        while !next.is_none() {
            let record = self.undo_record(next)?;
            let parsed = UndoRecord::parse(&record).map_err(|damage| EngineError::Corrupt {
                page: next.page_id(),
                what: damage.to_string(),
            })?;
            if let UndoOperation::Insert { index, .. }
            | UndoOperation::InsertRun { index, .. }
            | UndoOperation::Update { index, .. } = parsed.operation
            {
                spaces.insert(index.root().space);
            }
            next = parsed.previous_in_trx;
        }
        Ok(spaces)
    }

    /// Takes a prepared transaction out of the list. Its identifier stays in use until
    /// [`TransactionSystem::end_prepared`].
    fn take_prepared(&self, xid: &[u8]) -> Result<(UndoLog, DetachedLocks), EngineError> {
        let prepared = self.prepared().lock().get_mut(xid).and_then(Option::take);
        let prepared = prepared.ok_or_else(|| {
            EngineError::Invalid("no prepared transaction has this identifier".to_owned())
        })?;
        let mut undo = prepared.undo;
        // The prepared marker needs an end marker, even if there are no other records.
        undo.records = undo.records.max(1);
        Ok((undo, prepared.locks))
    }

    /// Frees the identifier of a prepared transaction whose end is in the log.
    fn end_prepared(&self, xid: &[u8]) {
        self.prepared().lock().remove(xid);
    }

    /// Commits a prepared transaction, at the coordinator's timestamp if one is given. Blocks until
    /// the commit is durable.
    ///
    /// # Errors
    /// If no prepared transaction has this identifier; [`EngineError::OutcomeUnknown`] if the log
    /// does not confirm the commit; or the source of timestamps does not answer, and then the
    /// transaction stays prepared.
    pub fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> Result<(), EngineError> {
        let reserved = self.prepare_commit(at)?;
        let taken = self.take_prepared(xid).inspect_err(|_| self.abandon(reserved));
        let (undo, _locks) = taken?;
        let (cts, lsn) = self.commit_writer(undo, reserved)?;
        self.end_prepared(xid);
        let waited = self.pages().log.wait_durable(lsn);
        self.order().wait_visible(cts);
        waited.map_err(EngineError::OutcomeUnknown)
    }

    /// Rolls a prepared transaction back. Blocks until the rollback is durable: after that no
    /// restart finds the transaction as prepared.
    ///
    /// # Errors
    /// If no prepared transaction has this identifier, or an error of the page store or the log.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<(), EngineError> {
        let (undo, locks) = self.take_prepared(xid)?;
        if let Err(error) = self.begin_rollback(&undo) {
            self.add_prepared(xid, undo, locks);
            return Err(error);
        }
        self.rollback_writer(undo)?;
        self.end_prepared(xid);
        Ok(self.pages().log.wait_durable(self.pages().log.end_lsn())?)
    }
}
