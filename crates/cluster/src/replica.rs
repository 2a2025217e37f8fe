//! A process's replica: it follows the log of the cluster and answers what the clients of its
//! process read.
//!
//! ```text
//!   looking for the writer ──► opening ──► serving ── the writer has been replaced ──► looking …
//!        log members ── log ──►  replica  ◄── pages ── page nodes
//!        writer ── place, positions ──┘
//! ```
//!
//! A replica belongs to one writer in one epoch. When another node writes, or the replica has lost
//! its place or its log, it is opened again, at the end of the log and with an empty pool. Clients
//! keep their connections: their statements run at the node that writes meanwhile. It applies
//! durable log alone, so nothing has to be taken back.
//!
//! Of a cluster that is paused, the replica is closed ([`crate::pause`]): the node that writes has
//! it rest before it does so itself, and a replica that was not reached then finds out when it asks
//! for a writer. It is opened again once the node that writes is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use firn_api::{LogError, LogStore, PageStore, WriterNode};
use firn_base::event::Event;
use firn_base::{Environment, Lsn};
use firn_control::pause::Idleness;
use firn_engine::EngineError;
use firn_engine::replica::{Replica, ReplicaOptions, ReplicaStorage};
use firn_engine::rows::replica::ReplicaNode;
use firn_fabric::{Epoch, InProcessFabric};
use firn_log_service::{RemoteLog, RemoteLogOptions};
use firn_node::allocator::release_free_memory;
use firn_node::endpoint::{Endpoint, EndpointError, EndpointOptions};
use firn_page_service::RemotePages;
use firn_sql_collation::Collations;
use firn_sql_evaluation::PureEvaluator;
use firn_writer_service::RemoteWriter;
use parking_lot::Mutex;

use crate::clients::Clients;
use crate::database::{DatabaseState, OnState};
use crate::health::MetricsDoor;
use crate::links::NodeLinks;
use crate::message::{LoadStatus, ReplicaStatus};
use crate::pause::{self, PauseSeat, RestingReplica};
use crate::seen_writer;
use crate::task::{Stop, Task};

/// The replica's files are in this directory below the process's own.
pub(crate) const DIRECTORY: &str = "replica";
/// How often the task looks at its replica.
const LOOK: Duration = Duration::from_millis(50);
/// How often it asks for another writer while its own does not answer.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// How long the node that writes waits until a replica is closed.
const CLOSING_LIMIT: Duration = Duration::from_millis(300);
/// How often a replica that rests asks whether the node that writes is open.
const RESTING_LOOK: Duration = Duration::from_millis(300);
/// The pause before the replica is opened again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a node has to say whether it writes.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How often the load is read.
const LOAD: Duration = Duration::from_millis(500);
/// How often the accounts are read again while the node that writes commits.
const ACCOUNTS: Duration = Duration::from_secs(1);
/// How long a transaction waits for a snapshot that another node has chosen.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(10);
/// Positions of the log that are remembered for the replica's lag: one for each look of a minute.
const MOST_REMEMBERED: usize = 1200;

/// The other processes that a replica needs.
pub(crate) struct ReplicaLinks {
    /// The members of the log group that vote, as of now.
    pub(crate) log: NodeLinks,
    pub(crate) pages: Arc<RemotePages>,
    /// The nodes that may write, as of now.
    pub(crate) writers: NodeLinks,
}

/// How a replica and its endpoint are set up.
pub(crate) struct ReplicaRoleOptions {
    pub(crate) replica: ReplicaOptions,
    pub(crate) endpoint: EndpointOptions,
    /// Those whose reads the replica answers.
    pub(crate) clients: Arc<Clients>,
    /// How long statements may run on when the process ends.
    pub(crate) patience: Duration,
    pub(crate) on_state: OnState,
    /// Where the metrics of the replica's endpoint are shown.
    pub(crate) metrics: Arc<MetricsDoor>,
    /// Has the replica rest.
    pub(crate) pause: Arc<PauseSeat>,
}

/// The task that opens and closes the replica.
pub(crate) struct ReplicaRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    links: ReplicaLinks,
    options: ReplicaRoleOptions,
    state: Mutex<DatabaseState>,
    status: Mutex<ReplicaStatus>,
    idleness: Mutex<Idleness>,
    /// Whether it stays closed until the node that writes is open.
    rests: AtomicBool,
    /// Notified when `rests` is set, and when the replica is closed for it.
    resting: Event,
}

/// Why a replica is not open.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("no node of the cluster says that it writes")]
    NoWriter,
    #[error("its directory cannot be made: {0}")]
    Directory(std::io::Error),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl ReplicaRole {
    pub(crate) fn start(
        environment: &Environment,
        links: ReplicaLinks,
        options: ReplicaRoleOptions,
    ) -> ReplicaRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            links,
            options,
            state: Mutex::new(DatabaseState::Opening),
            status: Mutex::default(),
            idleness: Mutex::default(),
            rests: AtomicBool::new(false),
            resting: Event::new(),
        });
        let resting = Arc::downgrade(&shared);
        shared.options.pause.set_replica(Some(Arc::new(Resting(resting))));
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "replica-role", move |stop| own.run(stop));
        ReplicaRole { shared, task }
    }

    pub(crate) fn state(&self) -> DatabaseState {
        self.shared.state.lock().clone()
    }

    pub(crate) fn status(&self) -> ReplicaStatus {
        self.shared.status.lock().clone()
    }

    /// Closes the replica in order, if it is open, and ends the task.
    pub(crate) fn close(&self) {
        self.shared.options.pause.set_replica(None);
        self.task.close();
        self.shared.links.pages.close();
    }
}

impl Shared {
    fn set(&self, state: DatabaseState) {
        let before = std::mem::replace(&mut *self.state.lock(), state.clone());
        if before != state {
            (self.options.on_state)(&state);
        }
    }

    fn run(&self, stop: &Stop) {
        let mut log = None;
        while !stop.is_set() {
            if self.rests.load(Ordering::SeqCst) {
                self.rest(stop);
                continue;
            }
            if let Err(error) = self.serve(&mut log, stop) {
                if matches!(error, ServeError::NoWriter) && self.writer_rests() {
                    self.rests.store(true, Ordering::SeqCst);
                    continue;
                }
                self.set(DatabaseState::Failing(error.to_string()));
                self.status.lock().is_open = false;
                stop.pause(PAUSE);
            }
        }
        if let Some(log) = log {
            log.close();
        }
        self.set(DatabaseState::Standby);
    }

    /// Waits until the node that writes is open, or none says that it rests.
    fn rest(&self, stop: &Stop) {
        self.set(DatabaseState::Paused);
        self.resting.notify_all();
        self.options.metrics.pause();
        release_free_memory();
        while !stop.is_set() && self.writer_rests() {
            stop.pause(RESTING_LOOK);
        }
        self.options.metrics.end();
        self.set(DatabaseState::Opening);
        self.rests.store(false, Ordering::SeqCst);
    }

    fn writer_rests(&self) -> bool {
        pause::writer_rests(&(self.links.writers)())
    }

    /// For how long nobody has read here.
    fn note_idleness(&self) -> Duration {
        let seen = pause::seen(self.options.clients.reading_activity());
        self.idleness.lock().note(self.environment.clock.monotonic(), seen)
    }

    /// One life of the replica.
    fn serve(&self, log: &mut Option<Arc<RemoteLog>>, stop: &Stop) -> Result<(), ServeError> {
        let writer =
            RemoteWriter::find(&(self.links.writers)(), TIMEOUT).ok_or(ServeError::NoWriter)?;
        let log = match log {
            Some(log) => {
                log.set_members(&(self.links.log)());
                Arc::clone(log)
            }
            None => Arc::clone(log.insert(self.open_log()?)),
        };
        let seen = seen_writer::connect(&self.environment, &writer);
        let replica = Arc::new(self.open_replica(&log, seen)?);
        let rows = ReplicaNode::new(Arc::clone(&replica), SNAPSHOT_TIMEOUT)
            .with_evaluator(Arc::new(PureEvaluator));
        let options = &self.options.endpoint;
        self.environment.disk.create_directory(&options.data_dir).map_err(ServeError::Directory)?;
        let served = Endpoint::start_replica(&self.environment, Arc::new(rows), options)
            .map(|endpoint| self.attend(&replica, &writer, &log, &endpoint, stop));
        replica.close();
        Ok(served?)
    }

    fn open_log(&self) -> Result<Arc<RemoteLog>, LogError> {
        RemoteLog::open(&self.environment, (self.links.log)(), RemoteLogOptions::default())
    }

    fn open_replica(
        &self,
        log: &Arc<RemoteLog>,
        writer: Arc<dyn WriterNode>,
    ) -> Result<Replica, EngineError> {
        let environment = &self.environment;
        let storage = ReplicaStorage {
            log: Arc::clone(log) as Arc<dyn LogStore>,
            pages: Arc::clone(&self.links.pages) as Arc<dyn PageStore>,
            // Other processes cannot reach these regions, so any growing number serves as an epoch.
            fabric: Arc::new(InProcessFabric::new(Epoch(environment.clock.wall_time_ms()))),
            writer,
        };
        Replica::open(environment, storage, self.options.replica.clone(), Arc::new(Collations))
    }

    /// Answers reads until the replica has lost its writer or the process ends.
    fn attend(
        &self,
        replica: &Replica,
        writer: &RemoteWriter,
        log: &RemoteLog,
        endpoint: &Endpoint,
        stop: &Stop,
    ) {
        self.set(DatabaseState::Serving(endpoint.address()));
        self.options.metrics.begin(endpoint.metrics());
        self.options.clients.begin_reading(endpoint);
        let now = || self.environment.clock.monotonic();
        let mut patience = self.options.patience;
        let mut lag = Lag::default();
        let (mut load_at, mut load) = (now(), load_of(now(), endpoint));
        let mut members = (self.links.log)();
        let (mut asked_at, mut accounts_at, mut accounts_of) = (now(), now(), replica.visible());
        let rests = || self.rests.load(Ordering::SeqCst);
        while !stop.is_set() {
            self.resting.wait_until(Some(LOOK), || rests() || stop.is_set());
            lag.note(now(), durable(replica, log));
            if now().saturating_sub(load_at) >= LOAD {
                (load_at, load) = (now(), load_of(now(), endpoint));
            }
            self.tell(replica, log, lag.of(now(), replica.applied_lsn()), load);
            let members_now = (self.links.log)();
            if !members_now.iter().map(Arc::as_ptr).eq(members.iter().map(Arc::as_ptr)) {
                log.set_members(&members_now);
                members = members_now;
            }
            if now().saturating_sub(accounts_at) >= ACCOUNTS && accounts_of != replica.visible() {
                (accounts_at, accounts_of) = (now(), replica.visible());
                endpoint.instance().accounts_may_have_changed();
            }
            self.note_idleness();
            let asks = replica.is_cut_off() && now().saturating_sub(asked_at) >= ASK_AGAIN;
            let is_replaced = asks && self.is_replaced(writer, &mut asked_at);
            if asks && !is_replaced && self.writer_rests() {
                self.rests.store(true, Ordering::SeqCst);
            }
            if rests() {
                patience = Duration::ZERO;
                break;
            }
            if is_replaced || replica.failure().is_some() {
                let failure = replica.failure().map(|failure| failure.to_string());
                tracing::warn!(failure, "this replica has lost its writer and is opened again");
                patience = Duration::ZERO;
                break;
            }
        }
        self.options.metrics.end();
        self.status.lock().is_open = false;
        if rests() {
            tracing::info!("nobody uses the cluster; this replica is closed until somebody does");
        } else if stop.is_set() {
            let begin = now();
            self.options.clients.leave_reading(patience);
            patience = patience.saturating_sub(now().saturating_sub(begin));
        } else {
            self.set(DatabaseState::Opening);
        }
        let have_ended = self.options.clients.end_reading(patience);
        if !endpoint.shutdown(Duration::ZERO) || !have_ended {
            tracing::warn!("some statements did not end in time");
        }
    }

    /// Whether another node writes, in a later epoch.
    fn is_replaced(&self, writer: &RemoteWriter, asked_at: &mut Duration) -> bool {
        *asked_at = self.environment.clock.monotonic();
        let found = RemoteWriter::find(&(self.links.writers)(), TIMEOUT);
        found.is_some_and(|found| found.epoch() > writer.epoch())
    }

    fn tell(&self, replica: &Replica, log: &RemoteLog, lag: Duration, load: LoadStatus) {
        let applied = replica.applied_lsn();
        let positions = replica.writer_positions();
        *self.status.lock() = ReplicaStatus {
            is_open: true,
            epoch: positions.epoch.0,
            applied,
            visible: replica.visible(),
            behind_bytes: durable(replica, log).0.saturating_sub(applied.0),
            behind_ms: lag.as_millis() as u64,
            is_cut_off: replica.is_cut_off(),
            load,
        };
    }
}

/// The replica, as the node that writes asks it.
struct Resting(Weak<Shared>);

impl RestingReplica for Resting {
    fn idle_for(&self) -> Option<Duration> {
        let shared = self.0.upgrade()?;
        let is_open = matches!(&*shared.state.lock(), DatabaseState::Serving(_));
        is_open.then(|| shared.note_idleness())
    }

    fn rest(&self, idle_for: Duration) -> bool {
        let Some(shared) = self.0.upgrade() else { return true };
        let is_open = || matches!(&*shared.state.lock(), DatabaseState::Serving(_));
        if !is_open() {
            // One that is being opened finds out that the node that writes rests.
            return true;
        }
        let mark = shared.options.clients.reading_activity().mark;
        if shared.note_idleness() < idle_for || !shared.options.clients.rest_reading(mark) {
            return false;
        }
        shared.rests.store(true, Ordering::SeqCst);
        shared.resting.notify_all();
        shared.resting.wait_until(Some(CLOSING_LIMIT), || !is_open());
        true
    }
}

/// The end of the durable log, as far as it is known. Of log that comes from the writer's memory,
/// the members of the log tell later.
fn durable(replica: &Replica, log: &RemoteLog) -> Lsn {
    log.durable_lsn().max(replica.writer_positions().durable_lsn)
}

/// What the process has done up to `now`.
fn load_of(now: Duration, endpoint: &Endpoint) -> LoadStatus {
    let load = endpoint.load();
    LoadStatus {
        at_us: now.as_micros() as u64,
        processor_us: load.processor.as_micros() as u64,
        processors: load.processors,
        reads: load.reads,
        read_us: load.read_us,
    }
}

/// How long ago the oldest log became known that is not applied yet.
#[derive(Default)]
struct Lag {
    /// Ends of the durable log, with the times at which they were seen.
    seen: VecDeque<(Duration, Lsn)>,
}

impl Lag {
    fn note(&mut self, now: Duration, durable: Lsn) {
        let is_new = self.seen.back().is_none_or(|(_, last)| durable > *last);
        if is_new && self.seen.len() < MOST_REMEMBERED {
            self.seen.push_back((now, durable));
        }
    }

    fn of(&mut self, now: Duration, applied: Lsn) -> Duration {
        while self.seen.front().is_some_and(|(_, durable)| *durable <= applied) {
            self.seen.pop_front();
        }
        self.seen.front().map_or(Duration::ZERO, |(seen, _)| now.saturating_sub(*seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_the_age_of_the_oldest_log_that_is_not_applied() {
        let at = Duration::from_millis;
        let mut lag = Lag::default();
        lag.note(at(0), Lsn(100));
        assert_eq!(lag.of(at(5), Lsn(100)), at(0));
        lag.note(at(10), Lsn(200));
        lag.note(at(20), Lsn(200));
        lag.note(at(30), Lsn(300));
        assert_eq!(lag.of(at(40), Lsn(150)), at(30));
        assert_eq!(lag.of(at(40), Lsn(200)), at(10));
        assert_eq!(lag.of(at(40), Lsn(300)), at(0));
    }
}
