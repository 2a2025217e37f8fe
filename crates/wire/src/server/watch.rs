//! Notices clients that disconnect while their statement runs, and statements that were cancelled
//! but wait for the confirmation of their effects.
//!
//! Short statements pay nothing: a connection's thread only counts its commands. The watch visits
//! all active connections every [`INTERVAL`]. Until its next visit it polls the clients whose
//! command is the same as at the last visit, and cancels the statements of those that disconnect.
//!
//! ```text
//! looks            |     |         |        |
//! statement         =====================X   noticed at once: the second look has found it running
//! ```
//!
//! A commit whose record the log does not confirm may become durable or not, so a cancelled one is
//! neither answered nor undone. If two visits find it so, the connection is closed without an
//! answer, and the session's thread stays until the log answers.
//!
//! Rule 3: the mutex is held only to change or copy the list.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::event::Event;
use firn_base::task;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cancellation::CancelReason;
use crate::connections::ConnectionControl;

/// A disconnect is noticed at once if the statement has run for two intervals, otherwise as soon as
/// it has.
const INTERVAL: Duration = Duration::from_millis(25);

/// The same, for the system.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: INTERVAL.as_nanos() as i64 };

/// The poll events of a client that has disconnected.
const GONE: PollFlags = PollFlags::RDHUP.union(PollFlags::HUP).union(PollFlags::ERR);

/// The watch over active connections.
#[derive(Default)]
pub(super) struct DisconnectWatch {
    active: Mutex<FxHashMap<u32, Arc<ConnectionControl>>>,
    changed: Event,
    stopping: AtomicBool,
}

impl DisconnectWatch {
    pub(super) fn add(&self, connection: &Arc<ConnectionControl>) {
        let was_empty = {
            let mut active = self.active.lock();
            active.insert(connection.id(), connection.clone());
            active.len() == 1
        };
        if was_empty {
            self.changed.notify_all();
        }
    }

    pub(super) fn remove(&self, connection: &ConnectionControl) {
        let removed = self.active.lock().remove(&connection.id());
        drop(removed);
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.changed.notify_all();
    }

    /// Body of the watching thread.
    pub(super) fn run(&self) {
        let (mut seen, mut unconfirmed) = (FxHashMap::default(), FxHashMap::default());
        while !self.stopping.load(Ordering::SeqCst) {
            let active: Vec<_> = self.active.lock().values().cloned().collect();
            if active.is_empty() {
                let awaited =
                    || self.stopping.load(Ordering::SeqCst) || !self.active.lock().is_empty();
                self.changed.wait_until(None, awaited);
            }
            abandon_unconfirmed(&active, &mut unconfirmed);
            look(&active, &mut seen);
        }
    }
}

/// Closes the connections whose cancelled command waits for the same confirmation as at the last
/// visit, when `seen` was left.
fn abandon_unconfirmed(active: &[Arc<ConnectionControl>], seen: &mut FxHashMap<u32, u64>) {
    let mut now = FxHashMap::default();
    for connection in active {
        let Some(command) = connection.unconfirmed() else { continue };
        if seen.get(&connection.id()) == Some(&command) {
            connection.abandon();
        }
        now.insert(connection.id(), command);
    }
    *seen = now;
}

/// One visit, and the wait until the next: `seen` has the commands that were running at the last
/// visit. Blocks for [`INTERVAL`], or until a client disconnects.
fn look(active: &[Arc<ConnectionControl>], seen: &mut FxHashMap<u32, u64>) {
    let running: FxHashMap<u32, u64> = active
        .iter()
        .filter_map(|connection| Some((connection.id(), connection.running()?)))
        .collect();
    let long = |connection: &&Arc<ConnectionControl>| {
        !connection.is_closing()
            && running
                .get(&connection.id())
                .is_some_and(|now| seen.get(&connection.id()) == Some(now))
    };
    for connection in gone(active.iter().filter(long)) {
        connection.end(CancelReason::Disconnected);
    }
    *seen = running;
}

/// The connections whose client has disconnected, or disconnects within [`INTERVAL`].
fn gone<'a>(
    connections: impl Iterator<Item = &'a Arc<ConnectionControl>>,
) -> Vec<&'a Arc<ConnectionControl>> {
    let asked: Vec<_> = connections.filter_map(|one| Some((one, one.socket()?))).collect();
    let mut descriptors: Vec<_> =
        asked.iter().map(|(_, socket)| PollFd::new(*socket, PollFlags::RDHUP)).collect();
    if poll(&mut descriptors, Some(&PATIENCE)).is_err() {
        // Interrupted, or short of memory: the next visit polls again.
        task::sleep(INTERVAL);
        return Vec::new();
    }
    let answers = asked.iter().zip(&descriptors);
    answers
        .filter(|(_, answer)| answer.revents().intersects(GONE))
        .map(|((one, _), _)| *one)
        .collect()
}
