//! Metadata locks: a statement holds them on the tables that it uses until its transaction ends,
//! and a change of definitions waits for them.
//!
//! ```text
//!   Read, Write   put into a place of the context's slot ─► no stronger request? ──► granted
//!                                                               └─ no: taken back, and as below
//!   the others    counted, then decided under the mutex: the queue of the table, and all slots
//! ```
//!
//! Rules, cited by number:
//!
//! 1. A request for a stronger lock than `Write` is counted in the table's stripe before it reads
//!    the slots. A request for `Read` or `Write` fills a place of its slot before it reads the
//!    stripe. Both are sequentially consistent, so at least one of the two sees the other.
//! 2. A request is counted for as long as it waits, and its lock for as long as it is held.
//! 3. A context that frees a place then reads the stripe, and re-examines the requests if one is
//!    counted there.
//! 4. Every change of a queue re-examines its waiting requests under the mutex, in their order,
//!    except for those that yield ([`mode`]).
//! 5. No wait, no I/O and no notification with the mutex held.
//! 6. A wait searches for a cycle of waits when it begins, and periodically while it lasts, because
//!    row locks may close one. The cheapest request of the cycle is refused.

mod deadlock;
mod mode;
mod queue;
mod slot;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use firn_api::rows::{
    Cancellation, DetachedLocks, LockDuration, LockMark, LockPatience, MetadataContext,
    MetadataLock, MetadataLocks, RowsError, RowsResult,
};
use firn_base::TableId;
use firn_base::clock::Clock;

use crate::sync::{AtomicU32, Mutex, Ordering};
use deadlock::RowWaits;
use queue::{ContextId, Decided, Requests, Verdict};
use slot::{PLACES, Slot};

/// Stripes of the count of strong requests.
const STRIPES: usize = if cfg!(feature = "shuttle") { 1 } else { 256 };
/// How often a wait checks whether it was cancelled.
const CANCELLED_INTERVAL: Duration = Duration::from_millis(10);
/// Delay of the first search for a cycle through row locks; the delay doubles for each further
/// search.
const FIRST_SEARCH: Duration = Duration::from_millis(20);
const LONGEST_SEARCH: Duration = Duration::from_millis(500);

/// The metadata locks of a node.
pub struct MetadataLockTable {
    requests: Mutex<Requests>,
    strong: Box<[AtomicU32]>,
    row_waits: Box<RowWaits>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for MetadataLockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetadataLockTable").finish_non_exhaustive()
    }
}

/// The locks of one session.
#[derive(Debug)]
pub struct LockContext {
    locks: Arc<MetadataLockTable>,
    id: ContextId,
    slot: Arc<Slot>,
}

impl MetadataLockTable {
    /// A table without locks. `row_waits` returns the transactions that a transaction waits for at
    /// a row.
    #[must_use]
    pub fn new(
        clock: Arc<dyn Clock>,
        row_waits: impl Fn(u64) -> Vec<u64> + Send + Sync + 'static,
    ) -> Arc<MetadataLockTable> {
        Arc::new(MetadataLockTable {
            requests: Mutex::new(Requests::default()),
            strong: (0..STRIPES).map(|_| AtomicU32::new(0)).collect(),
            row_waits: Box::new(row_waits),
            clock,
        })
    }

    #[must_use]
    pub fn open_context(self: &Arc<Self>) -> Arc<LockContext> {
        let slot = Arc::new(Slot::new());
        let id = self.requests.lock().add_context(Arc::clone(&slot));
        Arc::new(LockContext { locks: Arc::clone(self), id, slot })
    }

    #[inline]
    fn stripe(&self, table: TableId) -> &AtomicU32 {
        &self.strong[table.0 as usize % STRIPES]
    }

    /// Notifies contexts whose waits were decided (rule 5).
    fn tell(&self, decided: &Decided) {
        if decided.contexts.is_empty() {
            return;
        }
        let slots: Vec<Arc<Slot>> = {
            let requests = self.requests.lock();
            decided.contexts.iter().filter_map(|one| requests.slot(*one).cloned()).collect()
        };
        slots.iter().for_each(|slot| slot.decided.notify_all());
    }

    fn reexamine(&self, tables: &[TableId]) {
        let mut decided = Decided::default();
        {
            let mut requests = self.requests.lock();
            tables.iter().for_each(|table| requests.reexamine(*table, &mut decided));
        }
        self.tell(&decided);
    }

    /// Releases the grants of a context that `which` selects.
    fn release(&self, context: ContextId, which: impl Fn(TableId, &queue::Grant) -> bool) {
        let mut decided = Decided::default();
        let released = {
            let mut requests = self.requests.lock();
            let released = requests.release(context, which);
            for (table, _) in &released {
                requests.reexamine(*table, &mut decided);
            }
            released
        };
        for (table, lock) in released {
            if mode::is_obtrusive(lock) {
                self.stripe(table).fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.tell(&decided);
    }

    /// Searches for a cycle through a waiting context, and breaks it.
    fn break_circle(&self, context: ContextId) {
        let mut decided = Decided::default();
        {
            let mut requests = self.requests.lock();
            while let Some(circle) = deadlock::circle(&requests, &*self.row_waits, context) {
                let Some(victim) = requests.victim(&circle) else { break };
                tracing::debug!(?circle, victim, "a deadlock of metadata locks is broken");
                requests.refuse(victim, &mut decided);
            }
        }
        self.tell(&decided);
    }
}

impl MetadataLocks for MetadataLockTable {
    fn open(self: Arc<Self>) -> Arc<dyn MetadataContext> {
        self.open_context()
    }
}

impl LockContext {
    /// Sets the id under which the context's transaction waits for a row lock; `None`: it does not
    /// wait.
    pub(crate) fn waits_at_rows(&self, transaction: Option<u64>) {
        self.slot.transaction.store(transaction.unwrap_or(0), Ordering::SeqCst);
    }

    fn acquire_fast(
        &self,
        table: TableId,
        lock: MetadataLock,
        patience: &LockPatience<'_>,
    ) -> RowsResult<()> {
        let found = self.slot.find(table);
        if found.is_some_and(|(_, held)| mode::covers(held, lock)) {
            return Ok(());
        }
        let is_held = || self.locks.requests.lock().has(self.id, table, lock, None);
        if self.slot.slow.load(Ordering::Relaxed) > 0 && is_held() {
            return Ok(());
        }
        let place = found.map_or(self.slot.taken(), |(place, _)| place);
        if place >= PLACES {
            return self.acquire_slow(table, lock, LockDuration::Transaction, patience, || {});
        }
        // Rule 1.
        self.slot.put(place, table, lock);
        if self.locks.stripe(table).load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let take_back = || match found {
            Some((place, held)) => self.slot.put(place, table, held),
            None => self.slot.free_from(place, |_| {}),
        };
        self.acquire_slow(table, lock, LockDuration::Transaction, patience, take_back)
    }

    fn acquire_slow(
        &self,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
        patience: &LockPatience<'_>,
        before: impl FnOnce(),
    ) -> RowsResult<()> {
        let mut decided = Decided::default();
        let is_granted = {
            let mut requests = self.locks.requests.lock();
            before();
            let is_granted = requests.try_grant(self.id, table, lock, duration);
            if !is_granted {
                requests.begin_wait(self.id, table, lock, duration);
                requests.reexamine(table, &mut decided);
            }
            is_granted
        };
        self.locks.tell(&decided);
        if is_granted {
            return Ok(());
        }
        self.slot.transaction.store(patience.transaction.unwrap_or(0), Ordering::SeqCst);
        let waited = patience.while_waiting(|| self.wait(patience));
        self.slot.transaction.store(0, Ordering::SeqCst);
        waited
    }

    fn wait(&self, patience: &LockPatience<'_>) -> RowsResult<()> {
        self.locks.break_circle(self.id);
        let now = || self.locks.clock.monotonic();
        let began = now();
        let mut search = FIRST_SEARCH;
        let mut next_search = began.saturating_add(search);
        let refused = loop {
            let ticket = self.slot.decided.listen();
            let verdict = self.locks.requests.lock().wait_of(self.id).map(|wait| wait.verdict);
            if verdict.is_none_or(|verdict| verdict.is_some()) {
                break RowsError::Cancelled;
            }
            if patience.cancelled.is_some_and(Cancellation::is_cancelled) {
                break RowsError::Cancelled;
            }
            let waited = now().saturating_sub(began);
            if waited >= patience.timeout {
                break RowsError::LockWaitTimeout;
            }
            if now() >= next_search {
                self.locks.break_circle(self.id);
                search = (search * 2).min(LONGEST_SEARCH);
                next_search = now().saturating_add(search);
                continue;
            }
            let left = patience.timeout.saturating_sub(waited);
            self.slot.decided.wait(ticket, Some(left.min(CANCELLED_INTERVAL)));
        };
        let mut decided = Decided::default();
        let verdict = self.locks.requests.lock().end_wait(self.id, &mut decided);
        self.locks.tell(&decided);
        match verdict {
            Some(Verdict::Granted) => Ok(()),
            Some(Verdict::Deadlock) => Err(RowsError::Deadlock),
            None => Err(refused),
        }
    }

    /// The other context holds what the transaction has locked, in its order.
    fn move_transaction_to(&self, other: &LockContext) {
        {
            let mut requests = self.locks.requests.lock();
            for (place, (table, lock)) in self.slot.locks().into_iter().enumerate() {
                other.slot.put(place, table, lock);
            }
            requests.move_transaction(self.id, other.id);
        }
        self.free_places_from(0);
    }

    fn free_places_from(&self, first: usize) {
        if first >= self.slot.taken() {
            return;
        }
        let mut wanted: smallvec::SmallVec<[TableId; 4]> = smallvec::SmallVec::new();
        self.slot.free_from(first, |table| {
            // Rule 3.
            if self.locks.stripe(table).load(Ordering::SeqCst) > 0 {
                wanted.push(table);
            }
        });
        if !wanted.is_empty() {
            self.locks.reexamine(&wanted);
        }
    }
}

impl MetadataContext for LockContext {
    fn acquire(
        &self,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
        patience: &LockPatience<'_>,
    ) -> RowsResult<()> {
        let is_strong = mode::is_obtrusive(lock);
        let is_fast = matches!(lock, MetadataLock::Read | MetadataLock::Write);
        if is_fast && duration == LockDuration::Transaction {
            return self.acquire_fast(table, lock, patience);
        }
        if self.locks.requests.lock().has(self.id, table, lock, Some(duration)) {
            return Ok(());
        }
        if is_strong {
            // Rules 1 and 2.
            self.locks.stripe(table).fetch_add(1, Ordering::SeqCst);
        }
        let acquired = self.acquire_slow(table, lock, duration, patience, || {});
        if is_strong && acquired.is_err() {
            self.locks.stripe(table).fetch_sub(1, Ordering::SeqCst);
        }
        acquired
    }

    fn holds(&self, table: TableId, lock: MetadataLock) -> bool {
        self.slot.find(table).is_some_and(|(_, held)| mode::covers(held, lock))
            || self.slot.slow.load(Ordering::Relaxed) > 0
                && self.locks.requests.lock().has(self.id, table, lock, None)
    }

    fn mark(&self) -> LockMark {
        let is_slow = self.slot.slow.load(Ordering::Relaxed) > 0;
        let slow = if is_slow { self.locks.requests.lock().last_sequence() } else { 0 };
        LockMark { fast: self.slot.taken(), slow }
    }

    fn release_to(&self, mark: LockMark) {
        self.free_places_from(mark.fast);
        if self.slot.slow.load(Ordering::Relaxed) > 0 {
            self.locks.release(self.id, |_, grant| {
                grant.duration == LockDuration::Transaction && grant.sequence > mark.slow
            });
        }
    }

    #[inline]
    fn release_transaction(&self) {
        self.release_to(LockMark::default());
    }

    fn release_explicit(&self, table: Option<TableId>) {
        self.locks.release(self.id, |of, grant| {
            grant.duration == LockDuration::Explicit && table.is_none_or(|table| table == of)
        });
    }

    fn downgrade(&self, table: TableId, to: MetadataLock) {
        let mut decided = Decided::default();
        let before = {
            let mut requests = self.locks.requests.lock();
            let before = requests.downgrade(self.id, table, to);
            requests.reexamine(table, &mut decided);
            before
        };
        if !mode::is_obtrusive(to) {
            self.locks.stripe(table).fetch_sub(before.len() as u32, Ordering::SeqCst);
        }
        self.locks.tell(&decided);
    }

    fn is_wanted(&self, table: TableId) -> bool {
        self.locks.stripe(table).load(Ordering::SeqCst) > 0
            && self.locks.requests.lock().is_wanted(self.id, table)
    }

    fn detach(&self) -> DetachedLocks {
        let other = self.locks.open_context();
        self.move_transaction_to(&other);
        Some(Box::new(other))
    }

    fn attach(&self, locks: DetachedLocks) {
        let Some(detached) = context_of(&locks) else { return };
        debug_assert_eq!(self.slot.taken(), 0, "the context has no transaction's locks");
        detached.move_transaction_to(self);
    }
}

/// The context that keeps detached locks.
fn context_of(locks: &DetachedLocks) -> Option<&LockContext> {
    locks.as_ref()?.downcast_ref::<Arc<LockContext>>().map(|context| &**context)
}

/// The locks that were detached.
pub(crate) fn locks_of(locks: &DetachedLocks) -> Vec<(TableId, MetadataLock)> {
    let Some(context) = context_of(locks) else { return Vec::new() };
    let mut found = context.slot.locks();
    found.extend(context.locks.requests.lock().granted_to(context.id));
    found
}

impl Drop for LockContext {
    fn drop(&mut self) {
        self.free_places_from(0);
        self.locks.release(self.id, |_, _| true);
        self.locks.requests.lock().remove_context(self.id);
    }
}
