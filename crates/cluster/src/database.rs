//! The engine of a process: it runs while the process's member leads the log group.
//!
//! ```text
//!   standby ── the member leads ──► opening ──► serving ── another one leads ──► standby
//! ```
//!
//! A *planned switch* ([`DatabaseRole::hand_over`]) has sessions go on at the next writer. First
//! new transactions wait, and those that were begun come to their end. After
//! [`TRANSACTIONS_GRACE`], sessions go on in the middle of transactions, too, which are handed over
//! with their locks ([`crate::handover`]). What still runs after [`STATEMENTS_GRACE`] is cut: it
//! ends as if it had not been run, and runs at the next writer. What cannot be cut and still runs
//! after [`STATEMENTS_LIMIT`] is rolled back here. Then the member lets the other one lead. If that
//! one does not, the engine, which was never closed, serves again.
//!
//! An engine that nobody uses is closed ([`crate::pause`]), while the member goes on: it leads, and
//! may let another one lead. The engine is opened again for the first client that waits for it.
//!
//! ```text
//!   serving ── idle; replicas rest, sessions have left ──► paused ── a client waits ──► opening
//! ```
//!
//! Opening is the recovery of any engine: what was acknowledged is in the group's log, and pages
//! come from page nodes, which have applied it or will when they are asked. When another member
//! leads, the log's writer ends with an error. Then sessions are ended, whose clients keep their
//! connections and go on at the node that writes, and the engine is thrown away, with all pages
//! that it had in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use firn_api::WriterEpoch;
use firn_api::rows::{HandedSession, HandedSessions, WriterLease};
use firn_base::Environment;
use firn_consensus::{MemberId, Term};
use firn_control::pause::{PauseCommand, PauseEvent};
use firn_node::allocator::release_free_memory;
use firn_node::endpoint::{Endpoint, EndpointError, EndpointOptions, KeptGlobals};
use firn_node::node::{Node, NodeError, NodeOptions, Regions};
use firn_node::replica::as_writer;
use firn_node::storage::NodeStorage;
use firn_region_service::RegionService;
use firn_storage::group::GroupStore;
use firn_writer_service::WriterService;
use parking_lot::Mutex;

use crate::clients::Clients;
use crate::far_memory;
use crate::handover::{self, Handovers, MemberLinks};
use crate::health::MetricsDoor;
use crate::lease::LeaderLease;
use crate::links::NodeLinks;
use crate::near::NearRegions;
use crate::pause::{self, PauseSeat};
use crate::storage::ClusterStorage;
use crate::task::{Stop, Task};

/// How often the task looks whether something has changed.
const LOOK: Duration = Duration::from_millis(20);
/// How long a planned switch waits for open transactions before it hands them over.
const TRANSACTIONS_GRACE: Duration = Duration::from_millis(30);
/// How long it waits for running statements after that before it cuts them, to be run at the next
/// writer.
const STATEMENTS_GRACE: Duration = Duration::from_millis(20);
/// How long it waits for those that cannot be cut.
const STATEMENTS_LIMIT: Duration = Duration::from_secs(2);
/// How long another member may take to lead, once it was told to.
const HAND_OVER_LIMIT: Duration = Duration::from_secs(3);
/// What a planned switch takes at most.
pub(crate) const SWITCH_LIMIT: Duration = Duration::from_secs(6);
/// How often the task looks whether it does.
const HAND_OVER_LOOK: Duration = Duration::from_millis(1);
/// How often an engine that may pause looks whether it is used.
const ACTIVITY_LOOK: Duration = Duration::from_millis(100);
/// How long sessions may take to leave an engine that is about to pause.
const LEAVING_LIMIT: Duration = Duration::from_millis(200);
/// The pause before a node that could not be opened is opened again.
const PAUSE: Duration = Duration::from_millis(500);

/// Whether the process's engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseState {
    /// Another member leads, or nobody.
    Standby,
    /// This process's member leads, and the engine is being opened.
    Opening,
    /// Clients are answered at this address; `None`: a replica without an address, which reads for
    /// those of other nodes.
    Serving(Option<SocketAddr>),
    /// This process's member leads, but the engine cannot be opened. It is tried again.
    Failing(String),
    /// Nobody has used the cluster for a while, and the engine or the replica is closed until
    /// somebody does.
    Paused,
}

/// Called with each new state.
pub type OnState = Arc<dyn Fn(&DatabaseState) + Send + Sync>;

/// Log and pages of the engine; `None` while the pages cannot be read yet.
pub(crate) type StorageSource = Box<dyn Fn() -> Option<ClusterStorage> + Send + Sync>;

/// How the engine and its endpoint are set up.
#[derive(Clone)]
pub(crate) struct DatabaseOptions {
    /// Answers replicas while the engine runs.
    pub(crate) writer: Arc<WriterService>,
    /// Lets replicas of other machines read the engine's memory.
    pub(crate) regions: Arc<RegionService>,
    /// Those whose sessions run here while the engine is open.
    pub(crate) clients: Arc<Clients>,
    pub(crate) node: NodeOptions,
    pub(crate) endpoint: EndpointOptions,
    /// How long statements may run on when the process ends.
    pub(crate) patience: Duration,
    pub(crate) on_state: OnState,
    /// Where the metrics of the engine's endpoint are shown.
    pub(crate) metrics: Arc<MetricsDoor>,
    /// What this process was told as the next writer.
    pub(crate) handovers: Arc<Handovers>,
    /// Links to the members that may lead.
    pub(crate) members: Arc<MemberLinks>,
    /// The pause of this process's engine, and its replica.
    pub(crate) pause: Arc<PauseSeat>,
    /// Links to the replicas, which rest before the engine does.
    pub(crate) replicas: Arc<NodeLinks>,
    /// Whether the pages of the engine that was opened last are about to leave this process. Then
    /// it is opened again over those of other nodes.
    pub(crate) are_pages_leaving: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// The task that opens and closes the engine.
pub(crate) struct DatabaseRole {
    shared: Arc<Shared>,
    task: Task,
}

struct Shared {
    environment: Environment,
    group: Arc<GroupStore>,
    source: StorageSource,
    options: DatabaseOptions,
    state: Mutex<DatabaseState>,
    /// The member that leads next.
    successor: Mutex<Option<Successor>>,
    /// The global variables that the engine's endpoint had before the pause.
    globals: Mutex<Option<KeptGlobals>>,
}

/// The member that leads next.
pub(crate) struct Successor {
    pub(crate) member: MemberId,
    /// Told if it does not in the end.
    pub(crate) refused: Option<Box<dyn FnOnce() + Send>>,
}

impl Successor {
    pub(crate) fn refuse(self) {
        if let Some(refused) = self.refused {
            refused();
        }
    }
}

/// Why an engine is not opened.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Node(#[from] NodeError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl DatabaseRole {
    pub(crate) fn start(
        environment: &Environment,
        group: Arc<GroupStore>,
        source: StorageSource,
        options: DatabaseOptions,
    ) -> DatabaseRole {
        let shared = Arc::new(Shared {
            environment: environment.clone(),
            group,
            source,
            options,
            state: Mutex::new(DatabaseState::Standby),
            successor: Mutex::default(),
            globals: Mutex::default(),
        });
        let own = Arc::clone(&shared);
        let task = Task::start(environment, "database", move |stop| own.run(stop));
        DatabaseRole { shared, task }
    }

    pub(crate) fn state(&self) -> DatabaseState {
        self.shared.state.lock().clone()
    }

    /// Begins a planned switch to another member, if the engine serves or is paused. Does not wait.
    pub(crate) fn hand_over(&self, to: Successor) {
        if self.is_in_office() {
            *self.shared.successor.lock() = Some(to);
            self.task.wake();
        }
    }

    /// Whether the engine serves, or would if it were not paused.
    pub(crate) fn is_in_office(&self) -> bool {
        matches!(self.state(), DatabaseState::Serving(_) | DatabaseState::Paused)
    }

    /// Closes the engine in order, if it runs, and ends the task.
    pub(crate) fn close(&self) {
        self.task.close();
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
        let pause = &self.options.pause;
        while !stop.is_set() {
            if self.group.leads().is_none() {
                self.end_pause();
                self.set(DatabaseState::Standby);
                stop.pause(LOOK);
                continue;
            }
            if pause.is_paused() {
                self.rest(stop);
                continue;
            }
            self.options.clients.set_paused(false);
            self.set(DatabaseState::Opening);
            let Some(storage) = (self.source)() else {
                stop.pause(LOOK);
                continue;
            };
            if let Err(error) = self.serve(Arc::new(storage), stop) {
                self.set(DatabaseState::Failing(error.to_string()));
                stop.pause(PAUSE);
            }
            pause.tell(PauseEvent::Closed);
        }
        self.end_pause();
        self.set(DatabaseState::Standby);
    }

    /// Forgets a pause, and what was kept over it.
    fn end_pause(&self) {
        self.options.pause.tell(PauseEvent::LostOffice);
        self.options.clients.set_paused(false);
        *self.globals.lock() = None;
    }

    /// The cluster is paused: waits until a client waits for the engine, or another member leads.
    fn rest(&self, stop: &Stop) {
        let pause = &self.options.pause;
        self.set(DatabaseState::Paused);
        self.options.metrics.pause();
        tracing::info!("nobody uses the cluster; the engine is closed until somebody does");
        release_free_memory();
        while !stop.is_set() && self.group.leads().is_some() {
            let successor = self.successor.lock().take();
            if let Some(successor) = successor {
                self.hand_over_paused(successor, stop);
            }
            if pause.wait_for_wake(LOOK) && pause.tell(PauseEvent::Woken).is_some() {
                tracing::info!("somebody waits for the engine, which is opened again");
                break;
            }
        }
        self.options.metrics.end();
    }

    /// A planned switch while the cluster is paused: there is nothing to hand over.
    fn hand_over_paused(&self, successor: Successor, stop: &Stop) {
        let Some(term) = self.group.leads() else { return };
        if self.lead_on(term, successor.member, stop) {
            tracing::warn!(to = %successor.member, "the other member does not lead");
            successor.refuse();
        }
    }

    /// Has another member lead, and waits until it does. True: this one still leads.
    fn lead_on(&self, term: Term, to: MemberId, stop: &Stop) -> bool {
        let clock = &self.environment.clock;
        match self.group.hand_over(to) {
            Ok(()) => {
                let end = clock.monotonic() + HAND_OVER_LIMIT;
                while self.group.leads() == Some(term) && clock.monotonic() < end && !stop.is_set()
                {
                    stop.pause(HAND_OVER_LOOK);
                }
            }
            Err(error) => tracing::warn!(%error, "the log group keeps its leader"),
        }
        self.group.leads() == Some(term)
    }

    /// One life of the engine.
    fn serve(&self, storage: Arc<dyn NodeStorage>, stop: &Stop) -> Result<(), ServeError> {
        let options = &self.options;
        let near = NearRegions::serve(&self.environment, &options.endpoint.data_dir);
        let mut node = options.node.clone();
        node.engine.tracks_modifications = near.is_some();
        // As in 003: what the log buffer holds, a replica can read.
        node.engine.log_tail_bytes = near.as_ref().map_or(0, |_| node.engine.log.buffer_bytes);
        let HandedSessions { sessions, node: handed } = options.handovers.take();
        let opened = Node::open_after(
            &self.environment,
            storage,
            WriterEpoch::Next,
            near.as_ref().map_or_else(|| Regions::own(&self.environment), NearRegions::regions),
            &node,
            &handed,
        )?;
        let node = Arc::new(opened);
        let served = self.answer(&node, sessions, near.as_ref(), stop);
        self.group.withdraw_lease();
        options.writer.end();
        options.regions.end();
        match Arc::try_unwrap(node) {
            // A writer that was replaced reports that; its log is the newer one's affair.
            Ok(node) => drop(node.close()),
            Err(_) => tracing::warn!("the engine is still in use; its memory is given back later"),
        }
        served
    }

    /// Opens the endpoint, and answers clients and replicas.
    fn answer(
        &self,
        node: &Arc<Node>,
        sessions: Vec<HandedSession>,
        near: Option<&NearRegions>,
        stop: &Stop,
    ) -> Result<(), ServeError> {
        let lease = Arc::new(LeaderLease::default());
        let options = EndpointOptions {
            lease: Some(Arc::clone(&lease) as Arc<dyn WriterLease>),
            coming: sessions.clone(),
            globals: self.globals.lock().clone(),
            ..self.options.endpoint.clone()
        };
        let endpoint = Endpoint::start(&self.environment, node, &options)?;
        endpoint.take_over(node, sessions).map_err(NodeError::from)?;
        let writer = as_writer(node).map_err(NodeError::from)?;
        let (group, term) = (Arc::clone(&self.group), Term(writer.epoch().0));
        let surely_leads = Arc::new(move || group.surely_leads(term));
        self.group.publish_lease(term, lease.listen(near.map(NearRegions::lease)));
        if let Some(near) = near {
            self.options.regions.begin(near.epoch(), near.peer());
        }
        let _far =
            near.and_then(|near| far_memory::serve(&self.environment, near, &self.options.regions));
        let regions = near.map(NearRegions::place);
        self.options.writer.begin(Arc::new(writer), surely_leads, regions);
        self.options.clients.begin(&endpoint);
        self.options.pause.tell(PauseEvent::Opened);
        self.options.pause.set_open(true);
        self.attend(node, endpoint, stop);
        self.options.pause.set_open(false);
        self.options.metrics.end();
        Ok(())
    }

    /// Answers clients until the log has another writer or the process ends.
    fn attend(&self, node: &Node, endpoint: Endpoint, stop: &Stop) {
        if let Some(address) = endpoint.address() {
            self.set(DatabaseState::Serving(Some(address)));
        }
        let mut patience = self.options.patience;
        let is_near = endpoint.address().is_none_or(|address| address.ip().is_loopback());
        let mut shows_metrics = false;
        let mut looked_at = self.environment.clock.monotonic();
        *self.successor.lock() = None;
        let closes = loop {
            stop.pause_or_wake(LOOK);
            if stop.is_set() {
                break false;
            }
            // Other machines see them once there is an account for other machines.
            if !shows_metrics && (is_near || endpoint.instance().accounts.has_remote_account()) {
                shows_metrics = true;
                self.options.metrics.begin(endpoint.metrics());
            }
            let successor = self.successor.lock().take();
            if let Some(successor) = successor {
                self.hand_over(&endpoint, successor, stop);
            }
            if let Some(failure) = node.engine().failure() {
                tracing::warn!(%failure, "this node does not write any more");
                patience = Duration::ZERO;
                break false;
            }
            if (self.options.are_pages_leaving)() {
                tracing::warn!("the pages leave this process; the engine reads elsewhere");
                break false;
            }
            let now = self.environment.clock.monotonic();
            if now.saturating_sub(looked_at) >= ACTIVITY_LOOK {
                looked_at = now;
                if self.closes_for_pause(&endpoint) {
                    break true;
                }
            }
        };
        match closes {
            true => {
                *self.globals.lock() = Some(endpoint.instance().keep_globals());
                self.options.clients.set_paused(true);
                patience = Duration::ZERO;
            }
            // What was begun of a pause is over.
            false => {
                self.options.pause.tell(PauseEvent::LostOffice);
                *self.globals.lock() = None;
            }
        }
        let have_ended = self.options.clients.end(patience);
        if !endpoint.shutdown(Duration::ZERO) || !have_ended {
            tracing::warn!("some sessions did not end in time");
        }
    }

    /// Looks what sessions do, and has them and the replicas leave an engine that nobody uses.
    /// True: the engine should be closed now.
    fn closes_for_pause(&self, endpoint: &Endpoint) -> bool {
        let DatabaseOptions { pause, clients, replicas, .. } = &self.options;
        let mut seen = pause::seen(clients.activity());
        seen.is_busy |= endpoint.instance().has_left_sessions();
        let mut command = pause.tell(PauseEvent::Seen(seen));
        loop {
            let event = match command {
                None | Some(PauseCommand::Open) => return false,
                Some(PauseCommand::Close) => return true,
                Some(PauseCommand::AskReplicas { idle_for }) => {
                    match pause::have_replicas_rest(replicas, idle_for) {
                        true => PauseEvent::ReplicasRest,
                        false => PauseEvent::ReplicaIsBusy,
                    }
                }
                Some(PauseCommand::LetSessionsLeave) => match clients.leave(LEAVING_LIMIT) {
                    true => PauseEvent::SessionsHaveLeft,
                    false => PauseEvent::SessionsStay,
                },
                Some(PauseCommand::Stay) => {
                    clients.stay();
                    return false;
                }
            };
            command = pause.tell(event);
        }
    }

    /// A planned switch. Returns once the other member leads, or does not in time.
    fn hand_over(&self, endpoint: &Endpoint, successor: Successor, stop: &Stop) {
        let (clients, clock) = (&self.options.clients, &self.environment.clock);
        let (Some(term), to) = (self.group.leads(), successor.member) else { return };
        tracing::info!(%to, "another member is to write; transactions come to their end first");
        let began = clock.monotonic();
        if !clients.leave(TRANSACTIONS_GRACE)
            && !clients.hand_over(STATEMENTS_GRACE, STATEMENTS_LIMIT)
        {
            tracing::warn!("statements that do not end are rolled back for the switch");
        }
        // What is left is interrupted here, so that its outcome is known.
        clients.end(Duration::ZERO);
        let handed = self.hand_sessions_over(endpoint, to);
        let left = clock.monotonic();
        let leads_on = self.lead_on(term, to, stop);
        let (waited, switched) =
            (left.saturating_sub(began), clock.monotonic().saturating_sub(left));
        match leads_on {
            true => {
                tracing::warn!(%to, "the other member does not lead; this node goes on writing");
                self.take_sessions_back(endpoint, to, handed);
                clients.begin(endpoint);
                // The order may have come more than once meanwhile.
                *self.successor.lock() = None;
                successor.refuse();
            }
            false => tracing::info!(?waited, ?switched, "another member leads"),
        }
    }

    /// Has the next writer keep what sessions have left; returns the handover's number, if there is
    /// anything. Where that is not possible, it ends here, and transactions are rolled back.
    fn hand_sessions_over(&self, endpoint: &Endpoint, to: MemberId) -> Option<u64> {
        let instance = endpoint.instance();
        let number = self.environment.random.next_u64();
        let handed = match instance.hand_over(number) {
            Ok(handed) if handed.sessions.is_empty() => return None,
            Ok(handed) => handed,
            Err(error) => {
                tracing::warn!(%error, "open sessions cannot be handed over");
                instance.end_left_sessions();
                return None;
            }
        };
        let (sessions, transactions) = (handed.sessions.len(), handed.node.transactions.len());
        let kept = match (self.options.members)(to) {
            Some(next) => handover::keep(&next, handed).map_err(|error| error.to_string()),
            None => Err("the layout does not know it".to_owned()),
        };
        match kept {
            Ok(()) => tracing::info!(%to, sessions, transactions, "open sessions are handed over"),
            Err(error) => {
                tracing::warn!(%to, sessions, transactions, %error, "the next writer does not take open sessions; their transactions are rolled back");
                // It may have taken them: nothing commits until it leads, or does not in time.
                instance.roll_back_left_sessions();
            }
        }
        Some(number)
    }

    /// The sessions of this node have back what they have left, unless the other node might go on
    /// with it ([`crate::handover`], rule 1).
    fn take_sessions_back(&self, endpoint: &Endpoint, to: MemberId, handed: Option<u64>) {
        let instance = endpoint.instance();
        instance.keep_writing();
        let Some(number) = handed else { return };
        let next = (self.options.members)(to);
        let is_forgotten = next.is_some_and(|next| handover::forget(&next, number).is_ok());
        if !is_forgotten {
            instance.end_left_sessions();
        }
    }
}
