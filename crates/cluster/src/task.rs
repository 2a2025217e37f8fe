//! A background task of a process, and how it is told to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::task::TaskHandle;
use parking_lot::Mutex;

/// Says that a task must end.
#[derive(Default)]
pub(crate) struct Stop {
    is_set: AtomicBool,
    wake: Event,
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }

    /// Waits, but not longer than until the task must end; returns whether it must.
    pub(crate) fn pause(&self, duration: Duration) -> bool {
        self.wake.wait_until(Some(duration), || self.is_set())
    }

    /// Waits, but not longer than until somebody wakes the task.
    pub(crate) fn pause_or_wake(&self, duration: Duration) {
        let ticket = self.wake.listen();
        if !self.is_set() {
            self.wake.wait(ticket, Some(duration));
        }
    }
}

pub(crate) struct Task {
    stop: Arc<Stop>,
    handle: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl Task {
    /// Starts `body`, which ends soon after its [`Stop`] is set.
    pub(crate) fn start(
        environment: &Environment,
        name: &str,
        body: impl FnOnce(&Stop) + Send + 'static,
    ) -> Task {
        let stop = Arc::<Stop>::default();
        let own = Arc::clone(&stop);
        let handle = environment.spawner.spawn(name, Box::new(move || body(&own)));
        Task { stop, handle: Mutex::new(Some(handle)) }
    }

    /// Has the task look around, if it pauses.
    pub(crate) fn wake(&self) {
        self.stop.wake.notify_all();
    }

    /// Tells the task to end, and waits until it has.
    pub(crate) fn close(&self) {
        self.stop.is_set.store(true, Ordering::SeqCst);
        self.stop.wake.notify_all();
        let handle = self.handle.lock().take();
        if let Some(handle) = handle {
            handle.join();
        }
    }
}
