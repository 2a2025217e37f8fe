//! Members that reach each other over plain connections: for simulated clusters, and behind a
//! network that nobody else can reach. No peer proves who it is.
//!
//! Each member connects to every other one and only sends there; it receives on the connections
//! that it accepts. A connection keeps the order, so messages overtake each other only when a member
//! connects again. A message is an encoded [`firn_consensus::Message`], followed by the log of its
//! entries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::{Address, Connection, Delivery, Listener, NetworkError, NetworkResult};
use firn_consensus::MemberId;
use parking_lot::Mutex;

use super::peers::{EntryLog, Inbox, Outgoing, Peers};

/// The most messages that wait for one member.
const QUEUE_MESSAGES: usize = 1024;
/// The most log, in bytes, that waits for one member.
const QUEUE_BYTES: u64 = 64 << 20;
/// How long one call of the network may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a connection has failed; it doubles each time, up to the longest.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The other members, by address.
pub struct NetworkPeers {
    links: Arc<Links>,
}

struct Links {
    environment: Environment,
    listener: Box<dyn Listener>,
    lanes: BTreeMap<MemberId, Lane>,
    inbox: Mutex<Option<Arc<dyn Inbox>>>,
    is_closed: AtomicBool,
    closed: Event,
}

/// The way to one member.
struct Lane {
    member: MemberId,
    address: Address,
    waiting: Mutex<Waiting>,
    arrived: Event,
}

#[derive(Default)]
struct Waiting {
    messages: VecDeque<Outgoing>,
    log_bytes: u64,
}

impl NetworkPeers {
    /// Listens at `own` for the members at these addresses.
    ///
    /// # Errors
    /// Those of [`firn_base::network::Network::listen`].
    pub fn listen(
        environment: &Environment,
        own: &Address,
        others: impl IntoIterator<Item = (MemberId, Address)>,
    ) -> NetworkResult<NetworkPeers> {
        let lane = |(member, address)| {
            let waiting = Mutex::default();
            (member, Lane { member, address, waiting, arrived: Event::new() })
        };
        let links = Links {
            environment: environment.clone(),
            listener: environment.network.listen(own)?,
            lanes: others.into_iter().map(lane).collect(),
            inbox: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            closed: Event::new(),
        };
        Ok(NetworkPeers { links: Arc::new(links) })
    }
}

impl Peers for NetworkPeers {
    fn start(&self, inbox: Arc<dyn Inbox>) {
        *self.links.inbox.lock() = Some(inbox);
        let spawner = &self.links.environment.spawner;
        let links = Arc::clone(&self.links);
        drop(spawner.spawn("group-accept", Box::new(move || links.accept())));
        for member in self.links.lanes.keys().copied() {
            let links = Arc::clone(&self.links);
            drop(spawner.spawn("group-send", Box::new(move || links.run(member))));
        }
    }

    fn send(&self, outgoing: Outgoing) -> bool {
        let Some(lane) = self.links.lanes.get(&outgoing.message.to()) else { return false };
        let mut waiting = lane.waiting.lock();
        if waiting.messages.len() >= QUEUE_MESSAGES || waiting.log_bytes >= QUEUE_BYTES {
            return false;
        }
        waiting.log_bytes += outgoing.log_bytes();
        waiting.messages.push_back(outgoing);
        drop(waiting);
        lane.arrived.notify_all();
        true
    }

    fn close(&self) {
        self.links.is_closed.store(true, Ordering::SeqCst);
        self.links.listener.close();
        self.links.closed.notify_all();
        self.links.lanes.values().for_each(|lane| lane.arrived.notify_all());
        drop(self.links.inbox.lock().take());
    }
}

impl Drop for NetworkPeers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Links {
    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    fn inbox(&self) -> Option<Arc<dyn Inbox>> {
        self.inbox.lock().clone()
    }

    /// What the task `group-accept` does.
    fn accept(self: &Arc<Links>) {
        while !self.is_closed() {
            match self.listener.accept(Some(TIMEOUT)) {
                Ok(connection) => {
                    let links = Arc::clone(self);
                    let body = Box::new(move || links.receive(&*connection));
                    drop(self.environment.spawner.spawn("group-receive", body));
                }
                Err(NetworkError::TimedOut { .. }) => {}
                Err(NetworkError::Ended { .. }) => return,
                Err(error) => {
                    tracing::warn!(%error, "a member of the group cannot be accepted");
                    firn_base::task::sleep(PAUSE);
                }
            }
        }
    }

    /// What a task `group-receive` does, until its connection ends.
    fn receive(&self, connection: &dyn Connection) {
        let mut message = Vec::new();
        while !self.is_closed() {
            match connection.receive(&mut message, Some(TIMEOUT)) {
                Ok(()) => match self.inbox() {
                    Some(inbox) => inbox.receive(&message),
                    None => return,
                },
                Err(NetworkError::TimedOut { .. }) => {}
                Err(_) => return,
            }
        }
    }

    /// What a task `group-send` does: it sends what waits for one member, and connects as often as
    /// needed.
    fn run(&self, member: MemberId) {
        let lane = &self.lanes[&member];
        let mut connection = None;
        let mut pause = PAUSE;
        while !self.is_closed() {
            let Some(outgoing) = lane.next(|| self.is_closed()) else { return };
            match self.send(lane, &mut connection, &outgoing) {
                Ok(()) => pause = PAUSE,
                Err(error) => {
                    tracing::debug!(%error, %member, "a member of the group is not reached");
                    connection = None;
                    lane.forget_all();
                    let Some(inbox) = self.inbox() else { return };
                    inbox.unreachable(member);
                    self.closed.wait_until(Some(pause), || self.is_closed());
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn send(
        &self,
        lane: &Lane,
        connection: &mut Option<Arc<dyn Connection>>,
        outgoing: &Outgoing,
    ) -> NetworkResult<()> {
        let mut bytes = Vec::new();
        outgoing.message.encode(&mut bytes);
        let kept: &[_] = match &outgoing.log {
            EntryLog::Kept(entries) => entries.as_slice(),
            EntryLog::Stored { from, to } => {
                let Some(inbox) = self.inbox() else { return Ok(()) };
                if let Err(error) = inbox.read(*from, *to, &mut bytes) {
                    tracing::warn!(%error, member = %lane.member, "log for a member is not read");
                    inbox.unreachable(lane.member);
                    return Ok(());
                }
                &[]
            }
        };
        let mut parts = vec![bytes.as_slice()];
        parts.extend(kept.iter().map(|entry| entry.as_slice()));
        let connected = match connection.take() {
            Some(connected) => connected,
            None => self.environment.network.connect(&lane.address, Delivery::InOrder, TIMEOUT)?,
        };
        connection.insert(connected).send(&parts, TIMEOUT)
    }
}

impl Lane {
    /// The next message. Blocks until there is one; `None` if `is_closed`.
    fn next(&self, is_closed: impl Fn() -> bool) -> Option<Outgoing> {
        let is_ready = || is_closed() || !self.waiting.lock().messages.is_empty();
        self.arrived.wait_until(None, is_ready);
        let mut waiting = self.waiting.lock();
        let next = waiting.messages.pop_front()?;
        waiting.log_bytes -= next.log_bytes();
        Some(next)
    }

    fn forget_all(&self) {
        *self.waiting.lock() = Waiting::default();
    }
}
