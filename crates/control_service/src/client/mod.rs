//! A node's way to the control nodes: it registers, sends heartbeats, follows the catalog, takes
//! orders, and proposes.
//!
//! ```text
//!   control-beat    register ──► heartbeat, acknowledgements ──► … every interval
//!   control-watch   watch ──► catalog, orders ──► ControlledNode ──► watch ──► …
//! ```
//!
//! Both tasks and all callers of [`ControlClient::propose`] ask the leader as far as it is known,
//! and follow its hints ([`leader`]). Every call has a deadline; attempts that fail are repeated
//! after growing delays.
//!
//! Latch rule: the mutexes are leaves. None is held across a call, a wait or a callback.

mod administrator;
mod beat;
mod leader;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::event::Event;
use firn_base::network::Address;
use firn_base::task::TaskHandle;
use firn_base::{Environment, Lsn};
use firn_consensus::Term;
use firn_control::{
    Applied, Catalog, DirectoryId, Heartbeat, Join, NodeId, NodeRole, Order, OrderNumber, Proposal,
    Release, Started,
};
use firn_link::LocalNode;
use parking_lot::Mutex;

pub use self::administrator::{Administrator, ProposeError};
use self::leader::Leader;
use crate::message::StatusReply;

/// What a node says of itself.
#[derive(Debug, Clone)]
pub struct SelfDescription {
    /// The number that the node got when it joined, if it remembers. Then it does not join again
    /// after it was removed.
    pub node: Option<NodeId>,
    /// Drawn at random when the node's directory was made.
    pub directory: DirectoryId,
    /// Higher than in each life before.
    pub incarnation: u64,
    /// Where other nodes reach it, as `HOST:PORT`.
    pub address: String,
    /// Where clients reach it, if it answers any.
    pub client_address: Option<String>,
    pub roles: std::collections::BTreeSet<NodeRole>,
    pub zone: String,
    /// How many bytes of pages it has room for.
    pub capacity: u64,
    pub release: Release,
}

/// What the client asks of its node, and tells it. The calls of one method come one after the
/// other, those of two methods from two threads. All may block, which delays the client.
pub trait ControlledNode: Send + Sync {
    /// The node is in the cluster, under this number. Called once in a life, before anything else.
    fn joined(&self, node: NodeId);

    /// What the next heartbeat says. `entries` is filled in by the client.
    fn report(&self) -> Heartbeat;

    /// A newer catalog.
    fn catalog(&self, catalog: &Arc<Catalog>);

    /// An order of the leader of `term`, which may be late or repeated: the node judges it by its
    /// [`firn_control::Fence`]. Once it is carried out, the node calls
    /// [`ControlClient::acknowledge`].
    fn order(&self, term: Term, order: Order);

    /// Control does not take the node; the text says why and what to do. The client tries again
    /// now and then.
    fn refused(&self, reason: &str);
}

/// The patience of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Between two heartbeats. A third of the time until control suspects a node, at most.
    pub interval: Duration,
    /// How long one control node has to answer.
    pub call_timeout: Duration,
    /// How long a watch waits at the leader.
    pub watch: Duration,
    /// The delay after an attempt that failed. It doubles with each further one.
    pub least_delay: Duration,
    pub most_delay: Duration,
}

impl Default for ClientOptions {
    /// For ticks of control of about 100 ms.
    fn default() -> ClientOptions {
        ClientOptions {
            interval: Duration::from_millis(400),
            call_timeout: Duration::from_secs(1),
            watch: Duration::from_secs(1),
            least_delay: Duration::from_millis(20),
            most_delay: Duration::from_secs(1),
        }
    }
}

/// A node's client of control. Dropping it ends it without waiting.
pub struct ControlClient {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<Box<dyn TaskHandle>>>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    local: Arc<LocalNode>,
    description: SelfDescription,
    options: ClientOptions,
    node: Arc<dyn ControlledNode>,
    leader: Leader,
    /// The number of the node, once it is registered.
    registered: Mutex<Option<NodeId>>,
    /// The highest number of entries that the leader has told with a heartbeat.
    heard: AtomicU64,
    /// The highest term of a message.
    term: AtomicU64,
    catalog: Mutex<Option<Arc<Catalog>>>,
    acknowledgements: Mutex<Vec<(OrderNumber, Lsn)>>,
    is_stopping: AtomicBool,
    /// Notified when the client stops, has registered, or has something to send.
    changed: Event,
}

impl ControlClient {
    /// Begins to register at the control nodes of these addresses. Does not wait.
    ///
    /// # Panics
    /// Without an address.
    #[must_use]
    pub fn open(
        environment: &Environment,
        local: Arc<LocalNode>,
        addresses: &[Address],
        description: SelfDescription,
        node: Arc<dyn ControlledNode>,
        options: ClientOptions,
    ) -> ControlClient {
        let shared = Arc::new(Shared {
            clock: Arc::clone(&environment.clock),
            leader: Leader::new(environment, &local, addresses, &options),
            local,
            description,
            options,
            node,
            registered: Mutex::new(None),
            heard: AtomicU64::new(0),
            term: AtomicU64::new(0),
            catalog: Mutex::new(None),
            acknowledgements: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            changed: Event::new(),
        });
        let spawner = &environment.spawner;
        let (beating, watching) = (Arc::clone(&shared), Arc::clone(&shared));
        let tasks = vec![
            spawner.spawn("control-beat", Box::new(move || beating.run_beat())),
            spawner.spawn("control-watch", Box::new(move || watching.run_watch())),
        ];
        ControlClient { shared, tasks: Mutex::new(tasks) }
    }

    /// The number of the node in the cluster, once it has registered.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        *self.shared.registered.lock()
    }

    /// Waits until the node has registered. False if it has not within `timeout`.
    #[must_use]
    pub fn wait_until_registered(&self, timeout: Duration) -> bool {
        self.shared.changed.wait_until(Some(timeout), || self.node().is_some())
    }

    /// The newest catalog that has arrived.
    #[must_use]
    pub fn catalog(&self) -> Option<Arc<Catalog>> {
        self.shared.catalog.lock().clone()
    }

    /// The node has carried an order out, and is at that position of the log. It is told soon; if
    /// it is lost, control repeats the order.
    pub fn acknowledge(&self, number: OrderNumber, position: Lsn) {
        self.shared.acknowledge(number, position);
    }

    /// Changes the catalog. Blocks until the change is durable, for `timeout` at most.
    ///
    /// # Errors
    /// [`ProposeError`]
    pub fn propose(&self, proposal: Proposal, timeout: Duration) -> Result<Applied, ProposeError> {
        self.shared.leader.propose(proposal, timeout, false)
    }

    /// What the leader says of the cluster's control.
    ///
    /// # Errors
    /// [`ProposeError::NoLeader`]
    pub fn status(&self, timeout: Duration) -> Result<StatusReply, ProposeError> {
        self.shared.leader.status(timeout)
    }

    /// Ends the client and waits for its tasks.
    pub fn close(&self) {
        self.shared.stop();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            task.join();
        }
        self.shared.leader.close();
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Shared {
    fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.changed.notify_all();
        self.leader.stop();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    fn acknowledge(&self, number: OrderNumber, position: Lsn) {
        self.acknowledgements.lock().push((number, position));
        self.changed.notify_all();
    }

    /// What the node asks to join with.
    fn join(&self) -> Join {
        let own = self.description.clone();
        Join {
            cluster: Some(self.local.identity.cluster),
            name: self.local.identity.name.clone(),
            directory: own.directory,
            address: own.address,
            client_address: own.client_address,
            roles: own.roles,
            zone: own.zone,
            capacity: own.capacity,
            release: own.release,
            number: None,
        }
    }

    fn started(&self, node: NodeId) -> Started {
        let own = self.description.clone();
        Started {
            cluster: self.local.identity.cluster,
            node,
            directory: own.directory,
            incarnation: own.incarnation,
            address: own.address,
            client_address: own.client_address,
            release: own.release,
        }
    }

    /// Whether a message of a leader of `term` counts: no newer leader has been heard.
    fn counts(&self, term: Term) -> bool {
        self.term.fetch_max(term.0, Ordering::SeqCst) <= term.0
    }
}
