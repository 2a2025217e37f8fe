//! Threads that serve active connections. A thread serves one connection until it has been idle for a
//! little while, and then waits for another; after some seconds without one it ends.
//!
//! Rule 2: the list's mutex and a worker's slot are held only to move a connection, and never both.
//!
//! A worker is in `idle` exactly while it waits and nobody has chosen it: whoever takes it off the list owes
//! it a connection (or the news that there will be none).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::stack;
use parking_lot::Mutex;

use super::connection::{Connection, Outcome};
use super::shared::Shared;

/// How long a thread waits for another connection.
const KEPT: Duration = Duration::from_secs(10);

/// The threads.
#[derive(Default)]
pub(super) struct Workers {
    /// Those that wait; the last is the one whose memory is warmest.
    idle: Mutex<Vec<Arc<Worker>>>,
    running: AtomicUsize,
    stopping: AtomicBool,
    /// Notified when a thread ends.
    ended: Event,
}

#[derive(Default)]
struct Worker {
    next: Mutex<Option<Box<Connection>>>,
    given: Event,
}

impl Workers {
    /// Has a thread serve `connection`.
    pub(super) fn submit(&self, shared: &Arc<Shared>, connection: Box<Connection>) {
        let worker = self.idle.lock().pop();
        if let Some(worker) = worker {
            *worker.next.lock() = Some(connection);
            worker.given.notify_all();
            return;
        }
        self.running.fetch_add(1, Ordering::SeqCst);
        let for_thread = shared.clone();
        let spawn = || {
            let body = move || for_thread.workers.run(&for_thread, connection);
            drop(shared.environment.spawner.spawn("connection", Box::new(body)));
        };
        // Without a thread for it, the connection is closed; the server goes on.
        if catch_unwind(AssertUnwindSafe(spawn)).is_err() {
            tracing::error!("no thread could be started for a connection");
            self.one_ended();
        }
    }

    fn run(&self, shared: &Arc<Shared>, first: Box<Connection>) {
        let worker = Arc::new(Worker::default());
        let mut next = Some(first);
        while let Some(connection) = next {
            serve(shared, connection);
            // What a deep recursion has touched of the stack goes with the thread.
            next = if stack::was_deep() { None } else { self.wait_for_next(&worker) };
        }
        self.one_ended();
    }

    fn one_ended(&self) {
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.ended.notify_all();
    }

    fn wait_for_next(&self, worker: &Arc<Worker>) -> Option<Box<Connection>> {
        if self.stopping.load(Ordering::SeqCst) {
            return None;
        }
        self.idle.lock().push(worker.clone());
        let mut next = None;
        let mut take = || {
            next = worker.next.lock().take();
            next.is_some() || self.stopping.load(Ordering::SeqCst)
        };
        worker.given.wait_until(Some(KEPT), &mut take);
        if next.is_some() {
            return next;
        }
        if self.leave_list(worker) {
            return None;
        }
        // Chosen in the last moment: the connection is on its way.
        worker.given.wait_until(None, || {
            next = worker.next.lock().take();
            next.is_some()
        });
        next
    }

    /// False if the worker is no longer in the list.
    fn leave_list(&self, worker: &Arc<Worker>) -> bool {
        let mut idle = self.idle.lock();
        let at = idle.iter().position(|other| Arc::ptr_eq(other, worker));
        if let Some(at) = at {
            idle.swap_remove(at);
        }
        at.is_some()
    }

    /// Ends the threads that wait, and the others when their connections have ended. False if some are left
    /// after `timeout`.
    pub(super) fn stop(&self, timeout: Duration) -> bool {
        self.stopping.store(true, Ordering::SeqCst);
        let idle: Vec<_> = self.idle.lock().clone();
        idle.iter().for_each(|worker| worker.given.notify_all());
        self.ended.wait_until(Some(timeout), || self.running.load(Ordering::SeqCst) == 0)
    }
}

/// Serves a connection until it is idle or has ended. A panic ends it, and nothing else.
fn serve(shared: &Arc<Shared>, mut connection: Box<Connection>) {
    let control = connection.control().clone();
    shared.watch.add(&control);
    let outcome = catch_unwind(AssertUnwindSafe(|| connection.serve()));
    shared.watch.remove(&control);
    match outcome {
        Ok(Outcome::Idle) => shared.poller.park(shared, connection),
        Ok(Outcome::Ended) => discard(connection),
        Err(_) => {
            tracing::error!(connection = control.id(), "a command's handler panicked");
            discard(connection);
        }
    }
}

/// Drops a connection, whose session may panic once more.
pub(super) fn discard(connection: Box<Connection>) {
    let id = connection.control().id();
    if catch_unwind(AssertUnwindSafe(|| drop(connection))).is_err() {
        tracing::error!(connection = id, "the end of a session panicked");
    }
}
