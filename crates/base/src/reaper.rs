//! The one thread that drops large objects, one after the other.
//!
//! Freeing millions of small allocations takes a while. No client should wait for it, least of all
//! one whose statement was killed, and a thread for each object would compete with the statements
//! of others.
//!
//! ```text
//!   statement ends ─► drop_aside(object) ─► at most 64 wait ─► thread "reaper" drops them in turn
//!                          └─ more wait, or simulated ─► the caller drops it
//! ```
//!
//! Invariants:
//! * a process has one such thread, from its first large object to its end;
//! * memory that nobody accounts for is bounded: by the objects that may wait;
//! * under simulation the caller drops, so that a run depends on its seed alone.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::event::Event;
use crate::task::is_simulated;

const MOST_WAITING: usize = 64;

static REAPER: Reaper = Reaper::new();

/// Has an object dropped by the reaper. The caller drops it if too many wait, if no thread can be
/// started, or under simulation. Does not block otherwise.
pub fn drop_aside(object: impl Send + 'static) {
    if !is_simulated() {
        REAPER.take(Box::new(object));
    }
}

struct Reaper {
    waiting: Mutex<Waiting>,
    arrived: Event,
}

struct Waiting {
    /// The thread has been started.
    is_served: bool,
    objects: VecDeque<Box<dyn Send>>,
}

impl Reaper {
    const fn new() -> Reaper {
        let waiting = Waiting { is_served: false, objects: VecDeque::new() };
        Reaper { waiting: Mutex::new(waiting), arrived: Event::new() }
    }

    fn take(&'static self, object: Box<dyn Send>) {
        if let Some(refused) = self.offer(object) {
            // Without the lock: other objects may be dropped with it.
            drop(refused);
        }
    }

    /// Queues an object; returns one that the caller has to drop.
    fn offer(&'static self, object: Box<dyn Send>) -> Option<Box<dyn Send>> {
        let mut waiting = self.waiting.lock();
        if waiting.objects.len() >= MOST_WAITING || !(waiting.is_served || self.start()) {
            return Some(object);
        }
        waiting.is_served = true;
        waiting.objects.push_back(object);
        drop(waiting);
        self.arrived.notify_one();
        None
    }

    /// Starts the thread; false if there is none to be had.
    fn start(&'static self) -> bool {
        let thread = std::thread::Builder::new().name("reaper".to_owned());
        thread.spawn(|| self.serve()).is_ok()
    }

    fn serve(&self) {
        loop {
            let mut next = None;
            self.arrived.wait_until(None, || {
                next = self.waiting.lock().objects.pop_front();
                next.is_some()
            });
            drop(next);
        }
    }
}

#[cfg(test)]
mod tests;
