//! Holders and waiters of metadata locks: decisions without waiting.
//!
//! The locks of the fast path are in the contexts' slots and not here. The caller passes the slots
//! to a request ([`Requests::blockers`] reads them).

use std::sync::Arc;

use firn_api::rows::{LockDuration, MetadataLock};
use firn_base::TableId;
use rustc_hash::FxHashMap;

use super::mode::{conflicts, covers, is_obtrusive, stands_back, weight};
use super::slot::{PLACES, Slot};

/// A context, by its number.
pub(super) type ContextId = u64;

/// A lock that is in no slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    pub(super) context: ContextId,
    pub(super) lock: MetadataLock,
    pub(super) duration: LockDuration,
    /// Ascends with each grant.
    pub(super) sequence: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Granted,
    Deadlock,
}

/// The waiting request of a context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) table: TableId,
    pub(super) lock: MetadataLock,
    duration: LockDuration,
    /// Ascends with each wait.
    pub(super) sequence: u64,
    pub(super) verdict: Option<Verdict>,
}

/// The locks on a table and the requests for it.
#[derive(Debug, Default)]
struct Queue {
    granted: Vec<Grant>,
    /// In the order of arrival.
    waiting: Vec<(ContextId, MetadataLock)>,
}

/// The effects of a release.
#[derive(Debug, Default)]
pub(super) struct Decided {
    /// Contexts whose waits have ended.
    pub(super) contexts: Vec<ContextId>,
}

/// The granted and waiting requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    queues: FxHashMap<TableId, Queue>,
    waits: FxHashMap<ContextId, Wait>,
    slots: FxHashMap<ContextId, Arc<Slot>>,
    last_context: ContextId,
    last_sequence: u64,
}

impl Requests {
    pub(super) fn add_context(&mut self, slot: Arc<Slot>) -> ContextId {
        self.last_context += 1;
        self.slots.insert(self.last_context, slot);
        self.last_context
    }

    pub(super) fn remove_context(&mut self, context: ContextId) {
        self.slots.remove(&context);
        self.waits.remove(&context);
    }

    fn next_sequence(&mut self) -> u64 {
        self.last_sequence += 1;
        self.last_sequence
    }

    /// The number of the last grant.
    pub(super) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Whether a context has a lock as strong outside its slot.
    pub(super) fn has(
        &self,
        context: ContextId,
        table: TableId,
        lock: MetadataLock,
        duration: Option<LockDuration>,
    ) -> bool {
        let queue = self.queues.get(&table);
        queue.is_some_and(|queue| {
            queue.granted.iter().any(|grant| {
                grant.context == context
                    && covers(grant.lock, lock)
                    && duration.is_none_or(|duration| duration == grant.duration)
            })
        })
    }

    /// Whether a context has any lock on a table.
    fn uses(&self, context: ContextId, table: TableId) -> bool {
        let has_place = |slot: &Arc<Slot>| slot.lock_on(table).is_some();
        self.slots.get(&context).is_some_and(has_place)
            || self
                .queues
                .get(&table)
                .is_some_and(|queue| queue.granted.iter().any(|grant| grant.context == context))
    }

    /// The contexts that a request must wait for.
    pub(super) fn blockers(
        &self,
        context: ContextId,
        table: TableId,
        lock: MetadataLock,
    ) -> Vec<ContextId> {
        let mut found = Vec::new();
        let queue = self.queues.get(&table);
        if let Some(queue) = queue {
            let held = queue.granted.iter().filter(|grant| conflicts(lock, grant.lock));
            found.extend(held.map(|grant| grant.context));
            let before = queue.waiting.iter().filter(|(_, other)| stands_back(lock, *other));
            found.extend(before.map(|(other, _)| *other));
            // Of two conflicting requests that do not yield to each other, the earlier one goes
            // first. But a context that already has a lock would otherwise wait for the waiters of
            // its own lock.
            let own = queue.waiting.iter().position(|(other, _)| *other == context);
            let end = match self.uses(context, table) {
                true => 0,
                false => own.unwrap_or(queue.waiting.len()),
            };
            let earlier = queue.waiting[..end].iter();
            let earlier =
                earlier.filter(|(_, other)| conflicts(lock, *other) && !stands_back(*other, lock));
            found.extend(earlier.map(|(other, _)| *other));
        }
        if is_obtrusive(lock) {
            let slots = self.slots.iter();
            let holders = slots
                .filter(|(_, slot)| slot.lock_on(table).is_some_and(|held| conflicts(lock, held)));
            found.extend(holders.map(|(other, _)| *other));
        }
        found.retain(|other| *other != context);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Grants a request if no conflicting request or lock prevents it.
    pub(super) fn try_grant(
        &mut self,
        context: ContextId,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
    ) -> bool {
        if !self.blockers(context, table, lock).is_empty() {
            return false;
        }
        self.grant(context, table, lock, duration);
        true
    }

    fn grant(
        &mut self,
        context: ContextId,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
    ) {
        let Some(slot) = self.slots.get(&context).map(Arc::clone) else { return };
        let is_fast = matches!(lock, MetadataLock::Read | MetadataLock::Write);
        if is_fast && duration == LockDuration::Transaction {
            let place = slot.find(table).map_or(slot.taken(), |(place, _)| place);
            if place < PLACES {
                slot.put(place, table, lock);
                return;
            }
        }
        let sequence = self.next_sequence();
        slot.slow.fetch_add(1, crate::sync::Ordering::Relaxed);
        let queue = self.queues.entry(table).or_default();
        queue.granted.push(Grant { context, lock, duration, sequence });
    }

    /// Puts a request at the end of the queue.
    pub(super) fn begin_wait(
        &mut self,
        context: ContextId,
        table: TableId,
        lock: MetadataLock,
        duration: LockDuration,
    ) {
        let sequence = self.next_sequence();
        self.waits.insert(context, Wait { table, lock, duration, sequence, verdict: None });
        self.queues.entry(table).or_default().waiting.push((context, lock));
    }

    /// The waiting request of a context, with its verdict once there is one.
    pub(super) fn wait_of(&self, context: ContextId) -> Option<&Wait> {
        self.waits.get(&context)
    }

    /// Ends a context's wait: its verdict, if it has one by now.
    pub(super) fn end_wait(
        &mut self,
        context: ContextId,
        decided: &mut Decided,
    ) -> Option<Verdict> {
        let wait = self.waits.remove(&context)?;
        if wait.verdict.is_none() {
            self.leave_queue(context, wait.table);
            self.reexamine(wait.table, decided);
        }
        wait.verdict
    }

    /// Decides a wait against its context.
    pub(super) fn refuse(&mut self, context: ContextId, decided: &mut Decided) {
        let Some(wait) = self.waits.get_mut(&context).filter(|wait| wait.verdict.is_none()) else {
            return;
        };
        wait.verdict = Some(Verdict::Deadlock);
        let table = wait.table;
        decided.contexts.push(context);
        self.leave_queue(context, table);
        self.reexamine(table, decided);
    }

    fn leave_queue(&mut self, context: ContextId, table: TableId) {
        if let Some(queue) = self.queues.get_mut(&table) {
            queue.waiting.retain(|(other, _)| *other != context);
        }
    }

    /// Grants those requests for a table that can be granted now, in their order.
    pub(super) fn reexamine(&mut self, table: TableId, decided: &mut Decided) {
        let Some(queue) = self.queues.get(&table) else { return };
        let waiting: Vec<ContextId> = queue.waiting.iter().map(|(context, _)| *context).collect();
        for context in waiting {
            let Some(wait) = self.waits.get(&context).copied() else { continue };
            if !self.try_grant(context, table, wait.lock, wait.duration) {
                continue;
            }
            self.leave_queue(context, table);
            if let Some(wait) = self.waits.get_mut(&context) {
                wait.verdict = Some(Verdict::Granted);
            }
            decided.contexts.push(context);
        }
        let is_idle = |queue: &Queue| queue.granted.is_empty() && queue.waiting.is_empty();
        if self.queues.get(&table).is_some_and(is_idle) {
            self.queues.remove(&table);
        }
    }

    /// Removes the context's grants that `which` selects, and returns them.
    pub(super) fn release(
        &mut self,
        context: ContextId,
        which: impl Fn(TableId, &Grant) -> bool,
    ) -> Vec<(TableId, MetadataLock)> {
        let mut released = Vec::new();
        for (table, queue) in &mut self.queues {
            queue.granted.retain(|grant| {
                let goes = grant.context == context && which(*table, grant);
                if goes {
                    released.push((*table, grant.lock));
                }
                !goes
            });
        }
        if let Some(slot) = self.slots.get(&context) {
            slot.slow.fetch_sub(released.len(), crate::sync::Ordering::Relaxed);
        }
        released
    }

    /// Downgrades a context's transaction locks on a table to this one, where they are stronger.
    /// Returns how many were.
    pub(super) fn downgrade(
        &mut self,
        context: ContextId,
        table: TableId,
        to: MetadataLock,
    ) -> Vec<MetadataLock> {
        let Some(queue) = self.queues.get_mut(&table) else { return Vec::new() };
        let mut before = Vec::new();
        for grant in &mut queue.granted {
            let is_own = grant.context == context && grant.duration == LockDuration::Transaction;
            if is_own && is_obtrusive(grant.lock) && grant.lock != to && covers(grant.lock, to) {
                before.push(std::mem::replace(&mut grant.lock, to));
            }
        }
        before
    }

    /// Moves a context's transaction grants to another context.
    pub(super) fn move_transaction(&mut self, from: ContextId, to: ContextId) {
        let mut moved = 0;
        for grant in self.queues.values_mut().flat_map(|queue| &mut queue.granted) {
            if grant.context == from && grant.duration == LockDuration::Transaction {
                grant.context = to;
                moved += 1;
            }
        }
        let count = |context: ContextId| self.slots.get(&context).map(|slot| &slot.slow);
        if let (Some(from), Some(to)) = (count(from), count(to)) {
            from.fetch_sub(moved, crate::sync::Ordering::Relaxed);
            to.fetch_add(moved, crate::sync::Ordering::Relaxed);
        }
    }

    /// The locks that are granted to a context here.
    pub(super) fn granted_to(&self, context: ContextId) -> Vec<(TableId, MetadataLock)> {
        let of_table = |(table, queue): (&TableId, &Queue)| {
            let own = queue.granted.iter().filter(|grant| grant.context == context);
            own.map(|grant| (*table, grant.lock)).collect::<Vec<_>>()
        };
        self.queues.iter().flat_map(of_table).collect()
    }

    /// Whether a request waits for a lock that the context holds on the table.
    pub(super) fn is_wanted(&self, context: ContextId, table: TableId) -> bool {
        let Some(queue) = self.queues.get(&table) else { return false };
        queue.waiting.iter().any(|(other, lock)| {
            *other != context && self.blockers(*other, table, *lock).contains(&context)
        })
    }

    /// The context that is cheapest to refuse; among equals, the latest.
    pub(super) fn victim(&self, contexts: &[ContextId]) -> Option<ContextId> {
        let waiting = contexts.iter().filter_map(|context| {
            let wait = self.waits.get(context).filter(|wait| wait.verdict.is_none())?;
            Some((weight(wait.lock), std::cmp::Reverse(wait.sequence), *context))
        });
        waiting.min().map(|(_, _, context)| context)
    }

    /// The waiting context of the transaction with this id.
    pub(super) fn context_of(&self, transaction: u64) -> Option<ContextId> {
        let of = |slot: &Slot| slot.transaction.load(crate::sync::Ordering::Relaxed);
        let found = self.slots.iter().find(|(_, slot)| of(slot) == transaction);
        found.map(|(context, _)| *context)
    }

    /// The id of a context's transaction, if it waits somewhere.
    pub(super) fn transaction_of(&self, context: ContextId) -> Option<u64> {
        let slot = self.slots.get(&context)?;
        let id = slot.transaction.load(crate::sync::Ordering::Relaxed);
        (id != 0).then_some(id)
    }

    /// The slot of a context, whose event it waits on.
    pub(super) fn slot(&self, context: ContextId) -> Option<&Arc<Slot>> {
        self.slots.get(&context)
    }

    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn waiting_count(&self) -> usize {
        self.waits.values().filter(|wait| wait.verdict.is_none()).count()
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.waits.is_empty()
    }
}
