//! The one primitive that a task waits on: an event count.
//!
//! A waiter takes a ticket, checks whether the awaited condition holds, and only then waits. A
//! notification between the check and the wait is not lost: it makes the ticket out of date, so the
//! wait returns at once:
//!
//! ```text
//!   waiter                           notifier
//!   ticket = event.listen()
//!   if done() { return }             make done() true
//!   event.wait(ticket, None)         event.notify_all()
//! ```
//!
//! In production the wait is a futex on the count. Under simulation the waiter yields to the
//! scheduler.
//!
//! Why no wake-up is lost: the waiter first increments `waiters` and then has the kernel compare
//! the count. The notifier first increments the count and then reads `waiters`. All four accesses
//! are sequentially consistent, so at least one side sees the other.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::fs::Timespec;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::pool_thread;
use crate::scheduler::{monotonic, scheduler};

/// An event count.
#[derive(Debug, Default)]
pub struct Event {
    count: AtomicU32,
    waiters: AtomicU32,
}

/// The count when the waiter took the ticket.
#[derive(Debug, Clone, Copy)]
pub struct Ticket(u32);

impl Event {
    #[must_use]
    pub const fn new() -> Event {
        Event { count: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// Takes a ticket. Call it before checking the condition.
    #[must_use]
    pub fn listen(&self) -> Ticket {
        Ticket(self.count.load(Ordering::SeqCst))
    }

    /// Blocks until a notification after `ticket` was taken, or until `timeout` has passed. May
    /// return early without a reason. False if the time ran out. Never call it with a latch held.
    pub fn wait(&self, ticket: Ticket, timeout: Option<Duration>) -> bool {
        if self.count.load(Ordering::SeqCst) != ticket.0 {
            return true;
        }
        if let Some(scheduler) = scheduler() {
            return scheduler.wait(self.key(), timeout);
        }
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let woken = pool_thread::wait(|| self.futex_wait(ticket, timeout));
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    /// Waits until `condition` holds or `timeout` has passed since the call, across any number of
    /// wake-ups. Returns the last value of the condition, and evaluates it at least once.
    pub fn wait_until(
        &self,
        timeout: Option<Duration>,
        mut condition: impl FnMut() -> bool,
    ) -> bool {
        // A deadline that a duration cannot hold counts as none.
        let deadline = timeout.and_then(|timeout| monotonic().checked_add(timeout));
        loop {
            let ticket = self.listen();
            if condition() {
                return true;
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(monotonic()));
            if left == Some(Duration::ZERO) {
                return false;
            }
            // Without a deadline the time cannot run out, even if a task that is being torn down
            // reports so.
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

    /// Ends the wait of every current listener. Costs one atomic add when there is no waiter.
    pub fn notify_all(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(scheduler) = scheduler() {
            scheduler.wake_all(self.key());
            return;
        }
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // The caller can ignore a failed wake: the count has changed, so no waiter misses it.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    /// Ends the wait of one current listener, and perhaps of more. For events that only one waiter
    /// can use: a woken waiter that does not use the event must notify another one.
    pub fn notify_one(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
        if let Some(scheduler) = scheduler() {
            scheduler.wake_one(self.key());
            return;
        }
        if self.waiters.load(Ordering::SeqCst) > 0 {
            // As above. A thread that has listened and does not wait yet continues without a wake.
            let _ = futex::wake(&self.count, futex::Flags::PRIVATE, 1);
        }
    }

    /// Whether a thread waits at this moment. Meaningless under a scheduler.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0
    }

    /// The scheduler's key for this event: its address, which does not change while a task waits.
    fn key(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

#[cfg(test)]
mod tests;
