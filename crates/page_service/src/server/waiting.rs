//! Batches that wait for log, and the tasks that attend to them.

use std::collections::VecDeque;
use std::time::Duration;

use firn_api::PageRequest;
use firn_base::event::{Event, Ticket};
use parking_lot::Mutex;

use super::Shared;
use super::batch::{Advanced, Batch};

/// The longest that an attendant waits for the log of one page before it looks at all that wait.
const TICK: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Waiting {
    batches: Mutex<VecDeque<Batch>>,
    /// Notified of new batches, of new leases, and at the end.
    changed: Event,
}

impl Waiting {
    pub(super) fn put(&self, batch: Batch) {
        self.batches.lock().push_back(batch);
        self.changed.notify_all();
    }

    pub(super) fn count(&self) -> usize {
        self.batches.lock().len()
    }

    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Removes all batches. The caller drops them without the mutex: that answers their clients.
    pub(super) fn take_all(&self) -> VecDeque<Batch> {
        std::mem::take(&mut *self.batches.lock())
    }

    fn next(&self) -> Option<Batch> {
        self.batches.lock().pop_front()
    }

    /// Puts a batch back that was taken by [`Waiting::next`].
    fn put_back(&self, batch: Batch) {
        self.batches.lock().push_back(batch);
    }

    /// The request whose log will arrive first.
    fn earliest(&self) -> Option<PageRequest> {
        let batches = self.batches.lock();
        let earliest = batches.iter().filter_map(Batch::earliest);
        earliest.min_by_key(|request| request.version.position())
    }
}

impl Shared {
    /// The body of an attendant.
    pub(super) fn attend(&self) {
        while !self.is_closing() {
            let ticket = self.waiting.changed.listen();
            let next_end = self.leases.end_overdue(self.now());
            if !self.look_at_all() && !self.is_closing() {
                self.pause(ticket, next_end);
            }
        }
        drop(self.waiting.take_all());
    }

    /// Looks at each batch once; returns whether some of it was ready.
    fn look_at_all(&self) -> bool {
        let mut has_advanced = false;
        for _ in 0..self.waiting.count() {
            let Some(batch) = self.waiting.next() else { break };
            match self.advance(batch) {
                Advanced::Over => has_advanced = true,
                Advanced::Further(batch) => {
                    has_advanced = true;
                    self.waiting.put_back(batch);
                }
                Advanced::Not(batch) => self.waiting.put_back(batch),
            }
        }
        has_advanced
    }

    fn pause(&self, ticket: Ticket, next_end: Option<Duration>) {
        match self.waiting.earliest() {
            Some(PageRequest { page, version }) => {
                self.store.wait_until_ready(page, version, TICK);
            }
            None => {
                let left = next_end.map(|end| end.saturating_sub(self.now()));
                self.waiting.changed.wait(ticket, left);
            }
        }
    }
}
