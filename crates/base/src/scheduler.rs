//! Turns, time and numbers of threads. They come from the operating system, or from a simulation's
//! scheduler if one is installed for the thread.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::{Clock, SystemClock};

/// Replaces the operating system for a simulated thread. Installed per thread with
/// [`install_scheduler`].
pub trait Scheduler: Send + Sync {
    /// Yields the turn until [`Scheduler::wake_all`] is called with the same key or `timeout` has
    /// passed on the simulated clock. False if the time ran out.
    fn wait(&self, key: usize, timeout: Option<Duration>) -> bool;

    /// Makes every task that waits for `key` ready to run. The caller keeps its turn.
    fn wake_all(&self, key: usize);

    /// Makes one of the tasks that wait for `key` ready to run, if there is one. The caller keeps
    /// its turn.
    fn wake_one(&self, key: usize);

    /// Yields the turn and stays ready.
    fn yield_now(&self);

    /// The simulated clock's [`Clock::monotonic`].
    fn monotonic(&self) -> Duration;
}

/// Set by the first scheduler that is installed. Until then, which in production is always, no call
/// reads the thread-local slot.
static SIMULATED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static SCHEDULER: RefCell<Option<Arc<dyn Scheduler>>> = const { RefCell::new(None) };
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// A small number of this thread, assigned in turn. Structures that many threads write have several
/// copies, and each thread uses the copy of its number. All simulated threads have the same number,
/// because their behaviour must depend on the seed alone.
#[inline]
#[must_use]
pub fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            let is_simulated = scheduler().is_some();
            number.set(if is_simulated { 0 } else { NEXT.fetch_add(1, Ordering::Relaxed) });
        }
        number.get()
    })
}

/// Puts this thread under `scheduler`, or back under the operating system.
pub fn install_scheduler(scheduler: Option<Arc<dyn Scheduler>>) {
    if scheduler.is_some() {
        SIMULATED.store(true, Ordering::Relaxed);
    }
    SCHEDULER.with(|slot| *slot.borrow_mut() = scheduler);
}

/// The scheduler of this thread, if it is simulated.
pub(crate) fn scheduler() -> Option<Arc<dyn Scheduler>> {
    if !SIMULATED.load(Ordering::Relaxed) {
        return None;
    }
    // The slot no longer exists while the thread's other locals are dropped at its end.
    SCHEDULER.try_with(|slot| slot.borrow().clone()).ok().flatten()
}

/// Whether this thread runs under a scheduler instead of the operating system.
#[must_use]
pub fn is_simulated() -> bool {
    scheduler().is_some()
}

pub fn yield_now() {
    match scheduler() {
        Some(scheduler) => scheduler.yield_now(),
        None => std::thread::yield_now(),
    }
}

/// The time base of wait deadlines.
#[must_use]
pub fn monotonic() -> Duration {
    match scheduler() {
        Some(scheduler) => scheduler.monotonic(),
        None => SystemClock.monotonic(),
    }
}
