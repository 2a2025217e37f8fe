//! The one primitive that a task waits on: an event count.
//!
//! A waiter takes a ticket, looks whether what it wants has happened, and only then waits; a
//! notification between the look and the wait is not lost, because the ticket is then out of date and
//! the wait returns at once:
//!
//! ```text
//!   waiter                           notifier
//!   ticket = event.listen()
//!   if done() { return }             make done() true
//!   event.wait(ticket, None)         event.notify_all()
//! ```
//!
//! In production the wait is a futex on the count. Under simulation it is a hand-over to the scheduler.
//!
//! Why no wake-up is lost: the waiter first adds itself to `waiters` and then has the kernel compare
//! the count; the notifier first moves the count and then looks at `waiters`. All four are
//! sequentially consistent, so at least one of the two sees the other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::task;

/// An event count. See the module's page for the protocol.
#[derive(Debug, Default)]
pub struct Event {
    count: AtomicU32,
    waiters: AtomicU32,
}

/// What the count was when the waiter began to look.
#[derive(Debug, Clone, Copy)]
pub struct Ticket(u32);

impl Event {
    /// An event that nobody waits for.
    #[must_use]
    pub const fn new() -> Event {
        Event { count: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// Call before looking at the condition.
    #[must_use]
    pub fn listen(&self) -> Ticket {
        Ticket(self.count.load(Ordering::SeqCst))
    }

    /// Blocks until a notification after `ticket` was taken, or until `timeout` has passed; may also
    /// return early for no reason. False if the time ran out. Never call it with a latch held.
    pub fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
        if let Some(scheduler) = task::scheduler() {
            if self.count.load(Ordering::SeqCst) != ticket.0 {
                return true;
            }
            return scheduler.wait(self.key(), timeout);
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let woken = self.futex_wait(ticket, timeout);
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    /// Waits until `condition` holds or `timeout` has passed since the call, however often it was
    /// woken in between; returns the condition's last value. Looks at the condition at least once.
    pub fn wait_until(
        &self,
        timeout: Option<Duration>,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        // A deadline beyond what a duration can hold is none.
        let deadline = timeout.and_then(|timeout| task::monotonic().checked_add(timeout));
        loop {
            let ticket = self.listen();
            if condition() {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(task::monotonic()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            // Without a deadline no time can run out, whatever a task hears that is being torn down.
            if !self.wait(ticket, left) && left.is_some() {
                return condition();
            }
        }
    }

    fn futex_wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
        let timeout = timeout.map(|duration| Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(duration.subsec_nanos()),
        });
        let waited = futex::wait(&self.count, futex::Flags::PRIVATE, ticket.0, timeout.as_ref());
        !matches!(waited, Err(Errno::TIMEDOUT))
    }

    /// Ends the wait of everybody who listens now. Costs one atomic add when nobody waits.
    pub fn notify_all(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(scheduler) = task::scheduler() {
            scheduler.wake_all(self.key());
            return;
        }
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // A failed wake has no meaning for the caller: the count has moved, so nobody can miss it.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    /// Ends the wait of one of those who listen now, and perhaps of more. For when what happened is of use to
    /// one alone: whoever is woken and does not take it has to see to it that another one is.
    pub fn notify_one(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(scheduler) = task::scheduler() {
            scheduler.wake_one(self.key());
            return;
        }
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // As above; those who have listened and do not wait yet go on without being woken.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, 1);
        }
    }

    /// Whether anybody waits at this moment. Says nothing under a scheduler.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// What the scheduler knows this event by: its address, which does not change while somebody waits.
    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

#[cfg(test)]
mod tests;
