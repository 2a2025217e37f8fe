//! Members of a log group that reach each other over links.
//!
//! Each member calls every other one with casts to [`SERVICE`]. A cast is a version, the group's
//! number, and an encoded [`firn_consensus::Message`] with the log of its entries behind
//! (`docs/formats/cluster.md`). The links compare clusters and certificates, so no process of
//! another cluster is heard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use firn_base::Environment;
use firn_base::network::Address;
use firn_consensus::MemberId;
use firn_link::{Body, Caller, Offer, Peer, Placement, Request, Responder, Service, ServiceId};
use firn_storage::group::lanes::{Carrier, Lanes};
use firn_storage::group::{EntryBytes, Inbox, Outgoing, Peers};
use parking_lot::{Mutex, RwLock};

/// Messages between members of log groups.
pub(crate) const SERVICE: ServiceId = ServiceId(0x0100);
const VERSION: u8 = 1;
/// The bytes before the message: the version and the group's number.
const PREFIX_BYTES: usize = 5;

/// How long a message may wait for a connection and for room.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The other members of a group, each at the end of a link.
pub(crate) struct LinkPeers {
    environment: Environment,
    group: u32,
    lanes: Arc<Lanes<Links>>,
    door: Arc<Door>,
}

struct Links {
    group: u32,
    members: RwLock<BTreeMap<MemberId, Arc<LinkTo>>>,
}

struct LinkTo {
    address: Address,
    caller: Caller,
    /// The connections that the link had had when the last message was sent.
    connections: AtomicU64,
}

/// The service that takes messages of other members in. It hands them to the inboxes of the groups
/// of which this process has a member.
#[derive(Default)]
pub(crate) struct Door {
    inboxes: Mutex<BTreeMap<u32, Arc<dyn Inbox>>>,
}

impl LinkPeers {
    /// A group whose other members are not known yet. What they send comes in at `door`.
    pub(crate) fn new(environment: &Environment, group: u32, door: Arc<Door>) -> LinkPeers {
        let lanes = Lanes::new([], Links { group, members: RwLock::default() });
        LinkPeers { environment: environment.clone(), group, lanes, door }
    }

    /// The other members are at these addresses from now on. `link` makes a link to a member that
    /// is new or has moved. Called after the start.
    pub(crate) fn set_members(
        &self,
        others: &BTreeMap<MemberId, Address>,
        link: impl Fn(MemberId) -> Option<Caller>,
    ) {
        {
            let mut members = self.lanes.carrier().members.write();
            members.retain(|member, known| others.get(member) == Some(&known.address));
            for (member, address) in others {
                if !members.contains_key(member)
                    && let Some(caller) = link(*member)
                {
                    let connections = AtomicU64::new(0);
                    let link = LinkTo { address: address.clone(), caller, connections };
                    members.insert(*member, Arc::new(link));
                }
            }
        }
        self.lanes.set_members(&self.environment, &others.keys().copied().collect());
    }
}

impl Peers for LinkPeers {
    fn start(&self, inbox: Arc<dyn Inbox>) {
        self.door.inboxes.lock().insert(self.group, Arc::clone(&inbox));
        self.lanes.start(&self.environment, inbox);
    }

    fn send(&self, outgoing: Outgoing) -> bool {
        self.lanes.send(outgoing)
    }

    fn flush(&self) {
        self.lanes.flush();
    }

    fn close(&self) {
        self.door.inboxes.lock().remove(&self.group);
        self.lanes.close();
    }
}

impl Links {
    fn to(&self, member: MemberId) -> Option<Arc<LinkTo>> {
        self.members.read().get(&member).cloned()
    }

    fn body(&self, head: &[u8], log: &[EntryBytes]) -> Body {
        let mut prefix = Vec::with_capacity(PREFIX_BYTES + head.len());
        prefix.push(VERSION);
        prefix.extend_from_slice(&self.group.to_le_bytes());
        prefix.extend_from_slice(head);
        let mut body = Body::from(prefix);
        log.iter().for_each(|entry| body.push(Arc::clone(entry)));
        body
    }
}

impl Carrier for Links {
    fn carry(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> Result<(), String> {
        let link = self.to(member).ok_or("nobody knows where the member is")?;
        let connections = link.caller.connections();
        let before = link.connections.swap(connections, Ordering::Relaxed);
        if before != 0 && before != connections {
            // What was under way on the connection before may be lost: the group sends it again.
            return Err("the connection is another one".to_owned());
        }
        let body = self.body(&head, log);
        link.caller.cast(SERVICE, body, TIMEOUT).map_err(|error| error.to_string())
    }

    fn carry_at_once(&self, member: MemberId, head: Vec<u8>, log: &[EntryBytes]) -> bool {
        let Some(link) = self.to(member) else { return false };
        let is_same = link.connections.load(Ordering::Relaxed) == link.caller.connections();
        is_same && link.caller.cast_at_once(SERVICE, self.body(&head, log))
    }
}

impl Door {
    /// The door as a service of this process's server. A message is taken in on the thread that
    /// reads it, in the order of its connection.
    pub(crate) fn offer(self: &Arc<Door>) -> Offer {
        Offer {
            id: SERVICE,
            placement: Placement::Reader,
            service: Arc::clone(self) as Arc<dyn Service>,
        }
    }
}

impl Service for Door {
    fn serve(&self, _: &Peer, request: Request, _: Responder) {
        let Some((prefix, message)) = request.payload.split_first_chunk::<PREFIX_BYTES>() else {
            return;
        };
        let [version, group @ ..] = *prefix;
        let inbox = self.inboxes.lock().get(&u32::from_le_bytes(group)).cloned();
        // A member that has not started yet, or that has left, is sent the message again.
        if let Some(inbox) = inbox.filter(|_| version == VERSION) {
            inbox.receive(message);
        }
    }
}
