//! The writer: its task takes rounds from the source, sends them to the members and hears of the
//! majorities.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_api::{LogError, LogSource, LogWriter, Room, Tail};
use firn_base::event::Event;
use firn_base::task::{self, TaskHandle};
use firn_base::{Environment, Lsn};
use parking_lot::Mutex;

use super::cluster::{Cluster, Flight, State, WriterId};
use super::member::Rounds;
use super::options::Fault;

/// How long the task waits if it has nothing to do. Log that nobody waits for is sent then.
const IDLE: Duration = Duration::from_millis(2);

/// What the writer's task and its callers share.
struct Shared {
    cluster: Arc<Cluster>,
    source: Arc<dyn LogSource>,
    id: WriterId,
    node: Arc<str>,
    /// The task waits here.
    work: Event,
    durable: AtomicU64,
    failure: Mutex<Option<LogError>>,
    is_closing: AtomicBool,
    is_dropped: AtomicBool,
}

/// The engine's handle of the writer.
pub(super) struct QuorumWriter {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl QuorumWriter {
    /// Starts the writer that has opened with `tail` and the log that `base` holds.
    pub(super) fn start(
        environment: &Environment,
        cluster: &Arc<Cluster>,
        (node, tail, base): (Arc<str>, Tail, Arc<Rounds>),
        source: Arc<dyn LogSource>,
    ) -> QuorumWriter {
        let id = cluster.lock().add_writer(&node, tail, base);
        let shared = Arc::new(Shared {
            cluster: Arc::clone(cluster),
            source,
            id,
            node,
            work: Event::new(),
            durable: AtomicU64::new(tail.end.0),
            failure: Mutex::new(None),
            is_closing: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let task = environment.spawner.spawn("quorum-writer", Box::new(move || own.run()));
        QuorumWriter { shared, task: Mutex::new(Some(task)) }
    }
}

impl State {
    fn add_writer(&mut self, node: &Arc<str>, tail: Tail, base: Arc<Rounds>) -> WriterId {
        self.next_writer += 1;
        let flight = Flight {
            node: Arc::clone(node),
            epoch: tail.epoch,
            base,
            rounds: [].into(),
            durable: tail.end,
            failure: None,
            is_dead: false,
        };
        self.writers.insert(self.next_writer, flight);
        self.next_writer
    }

    /// How many more rounds may be sent.
    fn credit(&self, writer: WriterId) -> usize {
        if self.is_faulty(Fault::TakenWithoutRoom) {
            return usize::MAX;
        }
        let Some(flight) = self.writers.get(&writer) else { return 0 };
        self.options.window.saturating_sub(flight.rounds.len())
    }
}

impl LogWriter for QuorumWriter {
    fn submit(&self, _lsn: Lsn) {
        self.shared.work.notify_all();
    }

    fn wait_durable(&self, lsn: Lsn) -> Result<(), LogError> {
        let shared = &*self.shared;
        shared.work.notify_all();
        let has_ended = || shared.durable() >= lsn || shared.failure().is_some();
        let patience = shared.cluster.options.patience;
        shared.cluster.advanced.wait_until(Some(patience), has_ended);
        if shared.durable() >= lsn {
            return Ok(());
        }
        let silent = || LogError::Unavailable { reason: "the copies take too long".to_owned() };
        Err(shared.failure().unwrap_or_else(|| {
            shared.cluster.lock().check_majority(&shared.node).err().unwrap_or_else(silent)
        }))
    }

    fn room(&self) -> Result<Room, LogError> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure);
        }
        let state = self.shared.cluster.lock();
        state.check_majority(&self.shared.node)?;
        Ok(if state.is_held_back { Room::Scarce } else { Room::Plenty })
    }

    fn failure(&self) -> Option<LogError> {
        self.shared.failure()
    }

    fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.work.notify_all();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }
}

impl Drop for QuorumWriter {
    /// Does not wait for the task, which may itself drop the writer.
    fn drop(&mut self) {
        self.shared.is_dropped.store(true, Ordering::SeqCst);
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::SeqCst))
    }

    fn failure(&self) -> Option<LogError> {
        self.failure.lock().clone()
    }

    fn run(&self) {
        loop {
            let ticket = self.work.listen();
            if self.is_dropped.load(Ordering::SeqCst) {
                return self.end();
            }
            self.hear();
            let has_sent = self.failure().is_none() && self.send();
            if let Some(failure) = self.failure() {
                self.end();
                return self.source.tell(Err(&failure));
            }
            if !has_sent && self.is_closing.load(Ordering::SeqCst) && self.is_all_durable() {
                *self.failure.lock() = Some(LogError::Failed {
                    place: "this node".to_owned(),
                    reason: "the engine is closed".to_owned(),
                });
            } else if !has_sent {
                self.work.wait(ticket, Some(self.pause()));
            }
        }
    }

    /// Handles what the members have replied.
    fn hear(&self) {
        let mut state = self.cluster.lock();
        state.deliver();
        let Some(flight) = state.writers.get(&self.id) else { return };
        let (durable, failure) = (flight.durable, flight.failure.clone());
        drop(state);
        if durable > self.durable() {
            self.source.advance(durable);
            self.durable.store(durable.0, Ordering::SeqCst);
            self.cluster.advance(durable);
            self.source.tell(Ok(durable));
        }
        if failure.is_some() {
            *self.failure.lock() = failure;
            self.cluster.advanced.notify_all();
        }
    }

    /// Takes and sends a round, if there is credit and log. False if nothing was sent.
    fn send(&self) -> bool {
        let (credit, limit_bytes) = {
            let state = self.cluster.lock();
            let most = state.options.round_bytes as u64;
            (state.credit(self.id), 1 + state.random.below(most) as usize)
        };
        if credit == 0 {
            return false;
        }
        let mut bytes = Vec::new();
        let start = self.source.take(&mut bytes, limit_bytes);
        if bytes.is_empty() {
            return false;
        }
        let mut state = self.cluster.lock();
        state.send_round(task::monotonic(), self.id, (start, bytes.into()));
        true
    }

    fn is_all_durable(&self) -> bool {
        let state = self.cluster.lock();
        state.writers.get(&self.id).is_none_or(|flight| flight.rounds.is_empty())
    }

    /// How long nothing happens unless somebody notifies.
    fn pause(&self) -> Duration {
        let due = self.cluster.lock().next_due();
        let until_due = due.map(|due| due.saturating_sub(task::monotonic()));
        until_due.map_or(IDLE, |until| until.clamp(Duration::from_micros(1), IDLE))
    }

    /// Nothing is sent again.
    fn end(&self) {
        if let Some(flight) = self.cluster.lock().writers.get_mut(&self.id) {
            flight.is_dead = true;
        }
        self.cluster.advanced.notify_all();
    }
}
