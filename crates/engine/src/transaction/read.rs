//! Reads of one record.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use firn_api::rows::{Fetched, HeldLeaves, IsolationLevel, ReadMode, WaitPolicy};
use firn_base::IndexId;
use firn_format::undo::RecordVersion;

use crate::error::EngineError;
use crate::lock::{LockMode, LockTarget, Outcome as LockOutcome, TryOutcome, Wait};
use crate::pages::Restart;
use crate::transaction::cursor::Cursor;
use crate::transaction::handle::Transaction;
use crate::transaction::read_transaction::{ReadTransaction, RecordReader};
use crate::transaction::system::TransactionSystem;
use crate::transaction::write::WriteGuard;
use crate::tree::Target;

/// How a read mode locks.
pub(crate) trait LockingRead {
    /// The lock that the read takes in a transaction of `isolation`, if any.
    fn lock(self, isolation: IsolationLevel) -> Option<(LockMode, WaitPolicy)>;
}

impl LockingRead for ReadMode {
    fn lock(self, isolation: IsolationLevel) -> Option<(LockMode, WaitPolicy)> {
        match self {
            ReadMode::Consistent if isolation == IsolationLevel::Serializable => {
                Some((LockMode::Shared, WaitPolicy::Wait))
            }
            ReadMode::Consistent => None,
            ReadMode::Share(policy) => Some((LockMode::Shared, policy)),
            ReadMode::Update(policy) => Some((LockMode::Exclusive, policy)),
        }
    }
}

/// The result of an attempt to lock a record.
pub(crate) enum Locking {
    Locked,
    Wait(Wait),
    /// Another transaction has the lock, and the reader skips the record.
    Skip,
}

impl RecordReader for Transaction {
    fn snapshot_reader(&mut self) -> &mut ReadTransaction {
        self
    }

    fn locks(&self, mode: ReadMode) -> bool {
        mode.locks(self.isolation)
    }

    #[inline]
    fn get(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        Transaction::get(self, index, key, mode, payload)
    }

    fn fetch(
        &mut self,
        cursor: &mut Cursor,
        held: Option<HeldLeaves<'_>>,
    ) -> Result<Fetched, EngineError> {
        cursor.fetch_next(self, held)
    }
}

impl Transaction {
    /// Reads a record's payload into `payload`. False if the record does not exist. Blocks for
    /// locks and I/O.
    ///
    /// # Errors
    /// A lock that was not granted, a conflict with the snapshot, or an error of the page store.
    pub fn get(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: ReadMode,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        self.check_open()?;
        match mode.lock(self.isolation) {
            None => self.get_consistent(index, key, payload),
            Some((lock, policy)) => self.get_locking(index, key, lock, policy, payload),
        }
    }

    pub(super) fn get_locking(
        &mut self,
        index: IndexId,
        key: &[u8],
        mode: LockMode,
        policy: WaitPolicy,
        payload: &mut Vec<u8>,
    ) -> Result<bool, EngineError> {
        self.ensure_writer()?;
        self.keep_record(index, key);
        loop {
            let guard = WriteGuard { mode, ..self.write_guard(index, key) };
            let locks_absent = self.isolation == IsolationLevel::Serializable;
            let (system, cancelled) = (&self.system, self.read.cancelled.as_ref());
            let locked = system.forest().tree(index).read(Target::At(key), |leaf| {
                payload.clear();
                let value = leaf.search(key).ok().map(|slot| leaf.value(slot));
                if value.is_none() && !locks_absent {
                    return Ok((Locking::Locked, false));
                }
                let locking = system.lock_record(value, &guard, policy, cancelled)?;
                let live =
                    value.and_then(RecordVersion::parse).filter(|(version, _)| !version.deleted);
                if let (Locking::Locked, Some((_, bytes))) = (&locking, live) {
                    payload.extend_from_slice(bytes);
                }
                Ok((locking, live.is_some()))
            });
            let met = guard.observed.get();
            self.note_observed(met);
            if let Err(EngineError::WriteConflict) = &locked {
                self.reads.note_conflict(&guard);
            }
            match locked? {
                (Locking::Locked, is_present) => return Ok(is_present),
                (Locking::Skip, _) => return Ok(false),
                (Locking::Wait(wait), _) => self.wait(wait)?,
            }
        }
    }

    /// Releases the lock of a locking read on a record that the statement then did not select (READ
    /// COMMITTED). The caller knows that the transaction did not have the lock before.
    pub fn unlock(&mut self, index: IndexId, key: &[u8]) {
        if let Some(trx) = self.id() {
            self.system.locks().release(trx, LockTarget::Record { index, key });
        }
    }
}

impl TransactionSystem {
    /// Locks a record for a reader. The leaf is latched. `cancelled` ends a wait for another node's
    /// decision.
    pub(crate) fn lock_record(
        &self,
        value: Option<&[u8]>,
        guard: &WriteGuard<'_>,
        policy: WaitPolicy,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Result<Locking, Restart> {
        if policy != WaitPolicy::Wait {
            return self.try_lock_record(value, guard, policy, cancelled);
        }
        if let Some(wait) = self.admit_write(value, guard, cancelled)? {
            return Ok(Locking::Wait(wait));
        }
        let target = LockTarget::Record { index: guard.index, key: guard.key };
        Ok(match self.locks().request(guard.trx, target, guard.mode) {
            LockOutcome::Granted | LockOutcome::Held => Locking::Locked,
            LockOutcome::Queued(wait) => Locking::Wait(wait),
        })
    }

    fn try_lock_record(
        &self,
        value: Option<&[u8]>,
        guard: &WriteGuard<'_>,
        policy: WaitPolicy,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Result<Locking, Restart> {
        let version = value.and_then(RecordVersion::parse).map(|(version, _)| version);
        let is_held = version
            .is_some_and(|version| version.trx != guard.trx && self.table().is_active(version.trx));
        let target = LockTarget::Record { index: guard.index, key: guard.key };
        let is_blocked = is_held
            || matches!(
                self.locks().try_request(guard.trx, target, guard.mode),
                TryOutcome::Blocked(_)
            );
        match (is_blocked, policy) {
            (false, _) => {
                // The lock is granted; the check against the snapshot remains.
                let _ = self.admit_write(value, guard, cancelled)?;
                Ok(Locking::Locked)
            }
            (true, WaitPolicy::SkipLocked) => Ok(Locking::Skip),
            (true, _) => Err(EngineError::LockedNoWait.into()),
        }
    }
}

/// The error for a leaf's value that has no version.
pub(crate) fn no_version(page: firn_base::PageId) -> Restart {
    let what = "a record is too short for its version".to_owned();
    Restart::Fail(EngineError::Corrupt { page, what })
}
