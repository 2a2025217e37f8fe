//! Members that reach each other over plain connections: for simulated clusters, and behind a
//! network that nobody else can reach. No peer proves who it is.
//!
//! Each member connects to every other one and only sends there; it receives on the connections
//! that it accepts. A connection keeps the order, so messages overtake each other only when a
//! member connects again. A message is an encoded [`firn_consensus::Message`], followed by the log
//! of its entries.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::{Address, Connection, Delivery, Listener, NetworkError, NetworkResult};
use firn_consensus::MemberId;
use parking_lot::{Mutex, RwLock};

use super::lanes::{Carrier, Lanes};
use super::peers::{EntryBytes, Inbox, Outgoing, Peers};

/// How long one call of the network may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);

/// The other members, by address.
pub struct NetworkPeers {
    lanes: Arc<Lanes<Connections>>,
}

/// A listener, and a connection to each other member.
struct Connections {
    environment: Environment,
    listener: Box<dyn Listener>,
    members: RwLock<BTreeMap<MemberId, Arc<Outbound>>>,
}

struct Outbound {
    address: Address,
    connection: Mutex<Option<Arc<dyn Connection>>>,
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
        let members: BTreeMap<_, _> = others.into_iter().map(outbound).collect();
        let ids: Vec<_> = members.keys().copied().collect();
        let listener = environment.network.listen(own)?;
        let members = RwLock::new(members);
        let connections = Connections { environment: environment.clone(), listener, members };
        Ok(NetworkPeers { lanes: Lanes::new(ids, connections) })
    }

    /// The other members are these from now on. Called after the start.
    pub fn set_members(&self, others: impl IntoIterator<Item = (MemberId, Address)>) {
        let connections = self.lanes.carrier();
        let ids: BTreeSet<MemberId> = {
            let mut members = connections.members.write();
            let mut before = std::mem::take(&mut *members);
            for (member, address) in others {
                let same = before.remove(&member).filter(|known| known.address == address);
                let known = same.unwrap_or_else(|| outbound((member, address)).1);
                members.insert(member, known);
            }
            members.keys().copied().collect()
        };
        self.lanes.set_members(&connections.environment, &ids);
    }
}

fn outbound((member, address): (MemberId, Address)) -> (MemberId, Arc<Outbound>) {
    (member, Arc::new(Outbound { address, connection: Mutex::new(None) }))
}

impl Peers for NetworkPeers {
    fn start(&self, inbox: Arc<dyn Inbox>) {
        let environment = &self.lanes.carrier().environment;
        self.lanes.start(environment, inbox);
        let lanes = Arc::clone(&self.lanes);
        drop(environment.spawner.spawn("group-accept", Box::new(move || accept(&lanes))));
    }

    fn send(&self, outgoing: Outgoing) -> bool {
        self.lanes.send(outgoing)
    }

    fn flush(&self) {
        self.lanes.flush();
    }

    fn close(&self) {
        self.lanes.close();
        self.lanes.carrier().listener.close();
    }
}

impl Drop for NetworkPeers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Carrier for Connections {
    fn carry(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> Result<(), String> {
        let mut parts = vec![head.as_slice()];
        parts.extend(log.iter().map(|entry| entry.as_slice()));
        let outbound = self.outbound(member).ok_or("the member is gone")?;
        outbound.send(&self.environment, &parts).map_err(|error| error.to_string())
    }

    fn carry_at_once(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> bool {
        let connection = self.outbound(member).and_then(|one| one.connection.lock().clone());
        let bytes = head.len() + log.iter().map(|entry| entry.len()).sum::<usize>();
        connection.is_some_and(|connection| connection.has_room(bytes))
            && self.carry(member, head, log).is_ok()
    }
}

impl Connections {
    fn outbound(&self, member: MemberId) -> Option<Arc<Outbound>> {
        self.members.read().get(&member).cloned()
    }
}

impl Outbound {
    /// Connects if needed. After an error, the next call connects again.
    fn send(&self, environment: &Environment, parts: &[&[u8]]) -> NetworkResult<()> {
        let kept = self.connection.lock().take();
        let connection = match kept {
            Some(connection) => connection,
            None => environment.network.connect(&self.address, Delivery::InOrder, TIMEOUT)?,
        };
        connection.send(parts, TIMEOUT)?;
        *self.connection.lock() = Some(connection);
        Ok(())
    }
}

/// What the task `group-accept` does.
fn accept(lanes: &Arc<Lanes<Connections>>) {
    let connections = lanes.carrier();
    while !lanes.is_closed() {
        match connections.listener.accept(Some(TIMEOUT)) {
            Ok(connection) => {
                let lanes = Arc::clone(lanes);
                let body = Box::new(move || receive(&lanes, &*connection));
                drop(connections.environment.spawner.spawn("group-receive", body));
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
fn receive(lanes: &Lanes<Connections>, connection: &dyn Connection) {
    let mut message = Vec::new();
    while !lanes.is_closed() {
        match connection.receive(&mut message, Some(TIMEOUT)) {
            Ok(()) => match lanes.inbox() {
                Some(inbox) => inbox.receive(&message),
                None => return,
            },
            Err(NetworkError::TimedOut { .. }) => {}
            Err(_) => return,
        }
    }
}
