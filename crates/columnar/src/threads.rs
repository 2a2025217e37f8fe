//! The threads on which tasks run: a runtime of the library's, which starts with the first task.
//!
//! It has a worker for each processor, and a worker runs one task at a time. A task that waits in
//! Firn's code, for a page or for another transaction, hands the worker's other tasks over to
//! another thread of the runtime first ([`firn_base::pool_thread`]). So the number of workers
//! bounds what computes at a time, and nothing waits for a worker because others wait. A page that
//! is in memory costs no hand-over.

use std::sync::OnceLock;

use firn_base::{pool_thread, stack};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::stop_reason::{Result, declined};

/// The threads of an engine.
#[derive(Debug)]
pub(crate) struct Threads {
    workers: usize,
    runtime: OnceLock<Runtime>,
}

impl Threads {
    /// This many workers, at least one.
    pub(crate) fn new(workers: usize) -> Threads {
        Threads { workers: workers.max(1), runtime: OnceLock::new() }
    }

    /// How many tasks compute at a time.
    pub(crate) fn workers(&self) -> usize {
        self.workers
    }

    /// Where tasks are started. Starts the workers if there are none.
    pub(crate) fn handle(&self) -> Result<&Handle> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.handle());
        }
        let built = Builder::new_multi_thread()
            .worker_threads(self.workers)
            .thread_name("vectorised")
            // As a session's: the row executor's evaluation recurses as deep on either.
            .thread_stack_size(stack::THREAD_STACK_BYTES)
            .on_thread_start(|| pool_thread::adopt(stack::THREAD_STACK_BYTES, hand_over))
            .build();
        match built {
            Ok(runtime) => Ok(self.runtime.get_or_init(|| runtime).handle()),
            Err(error) => declined(format!("there are no threads: {error}")),
        }
    }
}

fn hand_over(wait: &mut dyn FnMut()) {
    tokio::task::block_in_place(wait);
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use firn_base::event::Event;

    use super::*;

    const WORKERS: usize = 2;
    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn tasks_that_wait_keep_no_worker_from_other_tasks() {
        let threads = Threads::new(WORKERS);
        let handle = threads.handle().expect("threads");
        let gate = Arc::new((Event::new(), AtomicBool::new(false)));
        let (sender, receiver) = channel();
        for _ in 0..4 * WORKERS {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            handle.spawn(async move {
                sender.send("waits").expect("the test listens");
                gate.0.wait_until(None, || gate.1.load(Ordering::SeqCst));
                sender.send("has waited").expect("the test listens");
            });
        }
        let began: std::result::Result<Vec<_>, RecvTimeoutError> =
            (0..4 * WORKERS).map(|_| receiver.recv_timeout(PATIENCE)).collect();
        handle.spawn(async move { sender.send("computes") });
        let computes = receiver.recv_timeout(PATIENCE);
        gate.1.store(true, Ordering::SeqCst);
        gate.0.notify_all();
        assert_eq!(began, Ok(vec!["waits"; 4 * WORKERS]));
        assert_eq!(computes, Ok("computes"));
        let ended: Vec<_> = receiver.iter().collect();
        assert_eq!(ended, ["has waited"; 4 * WORKERS]);
    }
}
