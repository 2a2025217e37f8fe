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
//!
//! The commit of a transaction that other nodes take part in (paper 000 §4.3):
//!
//! ```text
//!   coordinator                      this node
//!   prepare ───────────────────────► marker in the log, durable        ACTIVE
//!   set COMMITTING ────────────────► or by itself in the region        COMMITTING, readers wait
//!           ◄─────────────── lowest: above each snapshot that has read without the transaction
//!   takes a timestamp ≥ lowest
//!   commit at the timestamp ───────► marker in the log                 committed, readers go on
//! ```
//!
//! COMMITTING is not logged. After a restart, a node whose commits a shared source numbers finds
//! each of its prepared transactions in doubt: the coordinator may have chosen a timestamp that new
//! snapshots are above. So they are COMMITTING from the start. Until the coordinator decides,
//! readers of their rows wait, and the horizon of durable commits stands still.

use std::collections::hash_map::Entry;

use firn_api::rows::DetachedLocks;
use firn_base::{Cts, Lsn, SpaceId, TrxId};
use firn_format::undo::{UndoOperation, UndoPointer, UndoRecord};
use rustc_hash::FxHashSet;

use crate::error::EngineError;
use crate::log::writer::Purpose;
use crate::mini_transaction::MiniTransaction;
use crate::transaction::system::{NamedTransaction, PreparedTransaction, TransactionSystem};
use crate::transaction::table::Outcome;
use crate::transaction::undo::{MAX_XID_BYTES, UndoLog};

impl TransactionSystem {
    pub(crate) fn prepare_writer(&self, undo: &UndoLog, xid: &[u8]) -> Result<Lsn, EngineError> {
        if xid.len() > MAX_XID_BYTES {
            return Err(EngineError::Invalid(format!(
                "a transaction identifier of {} bytes is longer than {MAX_XID_BYTES}",
                xid.len()
            )));
        }
        self.take_name(xid, undo.trx)?;
        let prepared = self.write_prepared(undo, xid);
        if prepared.is_err() {
            self.prepared().lock().remove(xid);
        }
        prepared
    }

    fn take_name(&self, xid: &[u8], trx: TrxId) -> Result<(), EngineError> {
        match self.prepared().lock().entry(xid.into()) {
            Entry::Occupied(_) => {
                Err(EngineError::Invalid("the transaction identifier is in use".to_owned()))
            }
            Entry::Vacant(free) => {
                free.insert(NamedTransaction { trx, prepared: None });
                Ok(())
            }
        }
    }

    /// Appends the marker; the transaction in memory is as before. Blocks for I/O.
    pub(super) fn write_prepared(&self, undo: &UndoLog, xid: &[u8]) -> Result<Lsn, EngineError> {
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

    /// Records that a transaction is not prepared any more: a restart will roll it back. Call it
    /// before its first change is undone.
    pub(super) fn begin_rollback(&self, undo: &UndoLog) -> Result<(), EngineError> {
        self.pages().run(|| {
            let mut mtr = MiniTransaction::begin(self.pages(), Purpose::Completion)?;
            let held = undo.latch_marker(&mut mtr)?;
            undo.append_marker(&mut mtr, held, UndoOperation::RollingBack);
            let _ = mtr.commit();
            Ok(())
        })
    }

    /// Adds a transaction that has prepared in this run.
    pub(crate) fn add_prepared(&self, xid: &[u8], undo: UndoLog, locks: DetachedLocks) -> Cts {
        let lowest = self.lowest_for_open();
        self.put_prepared(xid, PreparedTransaction { undo, locks, lowest });
        lowest
    }

    /// Adds a prepared transaction that a restart found, and enters it into the table.
    pub(crate) fn add_recovered(&self, xid: &[u8], undo: UndoLog) -> Result<(), EngineError> {
        self.table().begin(undo.trx, self.snapshots().horizon())?;
        if self.order().is_shared() {
            self.table().set_committing(undo.trx);
        }
        self.put_prepared(xid, PreparedTransaction { undo, locks: None, lowest: Cts(0) });
        Ok(())
    }

    fn put_prepared(&self, xid: &[u8], transaction: PreparedTransaction) {
        let trx = transaction.undo.trx;
        let named = NamedTransaction { trx, prepared: Some(transaction) };
        self.prepared().lock().insert(xid.into(), named);
    }

    /// The lowest timestamp that a transaction may commit at which snapshots may have met as ACTIVE
    /// until now.
    fn lowest_for_open(&self) -> Cts {
        Cts(self.order().last().0 + 1)
    }

    /// Sets a prepared transaction to COMMITTING, before its coordinator chooses the timestamp:
    /// from now on readers wait for the outcome. Returns the lowest timestamp that the coordinator
    /// may choose. Another call returns a later one, and the first stays valid. Does not block.
    ///
    /// # Errors
    /// [`EngineError::NoSuchPrepared`].
    pub fn set_committing(&self, xid: &[u8]) -> Result<Cts, EngineError> {
        let mut prepared = self.prepared().lock();
        let found = prepared.get_mut(xid).and_then(|named| named.prepared.as_mut());
        let found = found.ok_or(EngineError::NoSuchPrepared)?;
        let was_active = self.table().set_committing(found.undo.trx);
        // Only now: a snapshot that has met the transaction as ACTIVE was handed out before.
        let lowest = self.lowest_for_open();
        if was_active {
            found.lowest = lowest;
        }
        Ok(lowest)
    }

    /// The transactions that are COMMITTING.
    pub(crate) fn committing(&self) -> Vec<TrxId> {
        let prepared = self.prepared().lock();
        let all = prepared.values().map(|named| named.trx);
        all.filter(|trx| self.table().outcome(*trx) == Outcome::Committing).collect()
    }

    /// Gives a prepared transaction that a restart found its locks on definitions.
    pub(crate) fn keep_with_prepared(&self, trx: TrxId, locks: DetachedLocks) {
        let mut prepared = self.prepared().lock();
        let found = prepared.values_mut().find(|named| named.trx == trx);
        if let Some(one) = found.and_then(|named| named.prepared.as_mut()) {
            one.locks = locks;
        }
    }

    /// The identifiers of the transactions that wait for their coordinator (`XA RECOVER`).
    #[must_use]
    pub fn prepared_transactions(&self) -> Vec<Box<[u8]>> {
        let prepared = self.prepared().lock();
        let complete = prepared.iter().filter(|(_, named)| named.prepared.is_some());
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
            let logs = prepared.values().filter_map(|named| named.prepared.as_ref());
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
    fn take_prepared(&self, xid: &[u8]) -> Result<PreparedTransaction, EngineError> {
        let mut prepared = self.prepared().lock();
        let taken = prepared.get_mut(xid).and_then(|named| named.prepared.take());
        let mut taken = taken.ok_or(EngineError::NoSuchPrepared)?;
        // The prepared marker needs an end marker, even if there are no other records.
        taken.undo.records = taken.undo.records.max(1);
        Ok(taken)
    }

    /// Checks whether a prepared transaction may commit at the coordinator's timestamp.
    fn check_decision(&self, xid: &[u8], at: Cts) -> Result<(), EngineError> {
        let prepared = self.prepared().lock();
        let found = prepared.get(xid).and_then(|named| named.prepared.as_ref());
        let found = found.ok_or(EngineError::NoSuchPrepared)?;
        if self.table().outcome(found.undo.trx) != Outcome::Committing {
            return Err(EngineError::NotCommitting { at });
        }
        match at < found.lowest {
            true => Err(EngineError::CommitTooEarly { at, lowest: found.lowest }),
            false => Ok(()),
        }
    }

    /// Frees the identifier of a prepared transaction whose end is in the log.
    fn end_prepared(&self, xid: &[u8]) {
        self.prepared().lock().remove(xid);
    }

    /// Commits a prepared transaction: at the coordinator's timestamp, for which it must be
    /// COMMITTING, or at the next one of this node. Blocks until the commit is durable.
    ///
    /// # Errors
    /// [`EngineError::NoSuchPrepared`], [`EngineError::NotCommitting`] and
    /// [`EngineError::CommitTooEarly`]: nothing has changed. [`EngineError::OutcomeUnknown`] if the
    /// log does not confirm the commit; or the source of timestamps does not answer, and then the
    /// transaction stays prepared.
    pub fn commit_prepared(&self, xid: &[u8], at: Option<Cts>) -> Result<(), EngineError> {
        if let Some(at) = at {
            self.check_decision(xid, at)?;
        }
        let reserved = self.prepare_commit(at)?;
        let taken = self.take_prepared(xid).inspect_err(|_| self.abandon(reserved))?;
        let (cts, lsn) = self.commit_writer(taken.undo, reserved)?;
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
        let taken = self.take_prepared(xid)?;
        if let Err(error) = self.begin_rollback(&taken.undo) {
            self.put_prepared(xid, taken);
            return Err(error);
        }
        // The locks on definitions are dropped last.
        let PreparedTransaction { undo, locks: _locks, .. } = taken;
        self.rollback_writer(undo)?;
        self.end_prepared(xid);
        Ok(self.pages().log.wait_durable(self.pages().log.end_lsn())?)
    }
}
