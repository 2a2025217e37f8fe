//! Tasks: the threads that the process starts for itself, and the points where one yields to
//! another.
//!
//! In production a task is a thread of the operating system. Under simulation it is a thread too,
//! but only one runs at a time. It yields its turn in [`crate::event::Event::wait`], [`sleep`],
//! [`yield_now`] and every disk call, and a seeded scheduler chooses the next task. No latch is
//! held across any of these calls, so a simulated task never meets a latch that another task holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::event::Event;
use crate::stack;

pub use crate::scheduler::{
    Scheduler, install_scheduler, is_simulated, monotonic, thread_number, yield_now,
};

/// A started task. Dropping the handle detaches it.
pub trait TaskHandle: Send {
    /// Blocks until the task has ended. True if it ended without a panic.
    fn join(self: Box<Self>) -> bool;
}

pub trait Spawner: Send + Sync {
    /// Starts `body` as a task. Logs and debuggers show `name` (at most 15 bytes of it).
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Box<dyn TaskHandle>;
}

/// Raises a flag when it is dropped, which includes a panic: tasks that run until then end, and so
/// does the scope that waits for them.
pub struct StopAtEnd<'a>(pub &'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Blocks for `duration` of the environment's time.
pub fn sleep(duration: Duration) {
    // A single wait may end early, when a signal arrives; the deadline as a whole does not.
    Event::new().wait_until(Some(duration), || false);
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
