//! Threads that run commands: as many as commands run at the same time. A thread that has ended its
//! command waits for the next one for a while, and then ends.
//!
//! Latch rule: the mutex of the queue is a leaf, held for a few instructions.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::stack;
use parking_lot::Mutex;

/// How long a thread waits for another command.
const KEPT: Duration = Duration::from_secs(10);

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    works: VecDeque<Work>,
    /// Threads that wait for work.
    idle: usize,
    running: usize,
    is_closed: bool,
}

/// See the module documentation.
pub(crate) struct Workers {
    environment: Environment,
    queue: Mutex<Queue>,
    added: Event,
    /// Notified when a thread has ended.
    ended: Event,
}

impl Workers {
    pub(crate) fn new(environment: &Environment) -> Arc<Workers> {
        let environment = environment.clone();
        let (added, ended) = (Event::new(), Event::new());
        Arc::new(Workers { environment, queue: Mutex::default(), added, ended })
    }

    /// Has a thread do the work. Does not wait for it. Work that comes after the end is dropped.
    pub(crate) fn submit(self: &Arc<Workers>, work: impl FnOnce() + Send + 'static) {
        let needs_thread = {
            let mut queue = self.queue.lock();
            if queue.is_closed {
                return;
            }
            queue.works.push_back(Box::new(work));
            let needs_thread = queue.works.len() > queue.idle;
            queue.running += usize::from(needs_thread);
            needs_thread
        };
        match needs_thread {
            true => self.start(),
            false => self.added.notify_one(),
        }
    }

    fn start(self: &Arc<Workers>) {
        let workers = Arc::clone(self);
        let body = move || workers.run();
        let spawner = &self.environment.spawner;
        let spawn = || drop(spawner.spawn("session", Box::new(body)));
        // Without a thread the work waits for one that is busy.
        if catch_unwind(AssertUnwindSafe(spawn)).is_err() {
            tracing::error!("no thread could be started for a session");
            self.queue.lock().running -= 1;
        }
    }

    fn run(&self) {
        while let Some(work) = self.next() {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("a session's command panicked");
            }
            // The system gets the memory of a deep stack back.
            if stack::was_deep() && self.may_leave() {
                break;
            }
        }
        self.ended.notify_all();
    }

    /// Whether the thread may end before it has looked for more work; then it counts as ended.
    fn may_leave(&self) -> bool {
        let mut queue = self.queue.lock();
        let may = queue.works.is_empty();
        if may {
            queue.running -= 1;
        }
        may
    }

    /// The next work; `None`: the thread counts as ended.
    fn next(&self) -> Option<Work> {
        {
            let mut queue = self.queue.lock();
            if let Some(work) = queue.works.pop_front() {
                return Some(work);
            }
            queue.idle += 1;
        }
        let mut found = None;
        self.added.wait_until(Some(KEPT), || {
            let mut queue = self.queue.lock();
            found = queue.works.pop_front();
            queue.idle -= usize::from(found.is_some());
            found.is_some() || queue.is_closed
        });
        if found.is_none() {
            let mut queue = self.queue.lock();
            found = queue.works.pop_front();
            queue.idle -= 1;
            queue.running -= usize::from(found.is_none());
        }
        found
    }

    /// Drops work that nobody has begun, and waits for the threads, for `timeout` at most.
    pub(crate) fn close(&self, timeout: Duration) -> bool {
        let works = {
            let mut queue = self.queue.lock();
            queue.is_closed = true;
            std::mem::take(&mut queue.works)
        };
        drop(works);
        self.added.notify_all();
        self.ended.wait_until(Some(timeout), || self.queue.lock().running == 0)
    }
}
