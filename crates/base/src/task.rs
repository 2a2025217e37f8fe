//! Tasks: the threads that the process starts for itself, and the points where one yields to
//! another.
//!
//! In production a task is a thread of the operating system. Under simulation it is a thread too,
//! but only one runs at a time. It yields its turn in [`crate::event::Event::wait`], [`sleep`],
//! [`yield_now`] and every disk call, and a seeded scheduler chooses the next task. No latch is
//! held across any of these calls, so a simulated task never meets a latch that another task holds.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, SystemClock};
use crate::event::Event;
use crate::stack;

/// A started task. Dropping the handle detaches it.
pub trait TaskHandle: Send {
    /// Blocks until the task has ended. True if it ended without a panic.
    fn join(self: Box<Self>) -> bool;
}

pub trait Spawner: Send + Sync {
    /// Starts `body` as a task. Logs and debuggers show `name` (at most 15 bytes of it).
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Box<dyn TaskHandle>;
}

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

/// Lets other tasks run.
pub fn yield_now() {
    match scheduler() {
        Some(scheduler) => scheduler.yield_now(),
        None => std::thread::yield_now(),
    }
}

/// Blocks for `duration` of the environment's time.
pub fn sleep(duration: Duration) {
    // A single wait may end early, when a signal arrives; the deadline as a whole does not.
    Event::new().wait_until(Some(duration), || false);
}

/// The time base of wait deadlines.
#[must_use]
pub fn monotonic() -> Duration {
    match scheduler() {
        Some(scheduler) => scheduler.monotonic(),
        None => SystemClock.monotonic(),
    }
}

/// Runs `body` on its own thread, without waiting for it. Runs it here and now under simulation, or
/// if no thread can be started.
pub fn run_aside(name: &str, body: impl FnOnce() + Send + 'static) {
    if scheduler().is_some() {
        return body();
    }
    let body = Arc::new(Mutex::new(Some(body)));
    let taken = Arc::clone(&body);
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&taken));
    if started.is_err() {
        run(&body);
    }
}

fn run(body: &Mutex<Option<impl FnOnce()>>) {
    let body = body.lock().take();
    if let Some(body) = body {
        body();
    }
}

/// Starts threads of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct ThreadSpawner;

struct ThreadHandle(std::thread::JoinHandle<()>);

impl TaskHandle for ThreadHandle {
    fn join(self: Box<Self>) -> bool {
        self.0.join().is_ok()
    }
}

impl Spawner for ThreadSpawner {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Box<dyn TaskHandle> {
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(stack::THREAD_STACK_BYTES)
            .spawn(move || {
                stack::begin(stack::THREAD_STACK_BYTES);
                body();
            })
            .unwrap_or_else(|error| panic!("cannot start the thread {name}: {error}"));
        Box::new(ThreadHandle(thread))
    }
}

#[cfg(test)]
mod tests;
