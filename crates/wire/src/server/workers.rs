//! Threads that serve active connections. A thread serves one connection until the connection has
//! been idle for a short time, and then waits for another. After some seconds without one, the
//! thread ends.
//!
//! Rule 2: the list's mutex and a worker's slot are held only to move a connection, and never both
//! at once.
//!
//! A worker is in `idle` exactly while it waits and has not been chosen: the code that takes it off
//! the list must give it a connection, or tell it to end.

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

#[derive(Default)]
pub(super) struct Workers {
    /// Waiting workers; the last one has the warmest caches.
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
    /// Lets a thread serve `connection`.
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
        // Without a thread, the connection is closed; the server continues.
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
            // A thread that has recursed deeply ends, so that the system gets its stack memory
            // back.
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

    /// Ends the waiting threads, and the others when their connections have ended. False if threads
    /// are left after `timeout`.
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

/// Drops a connection, whose session may panic while it is dropped.
pub(super) fn discard(connection: Box<Connection>) {
    let id = connection.control().id();
    if catch_unwind(AssertUnwindSafe(|| drop(connection))).is_err() {
        tracing::error!(connection = id, "the end of a session panicked");
    }
}
