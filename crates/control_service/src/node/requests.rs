//! What a control node answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::Lsn;
use firn_base::network::Role;
use firn_consensus::{Content, Message, MessageKind, ReceiveError, Refusal};
use firn_control::{Catalog, NodeId, NodeMessage, NodeState, Proposal, ToControl};
use firn_link::{Peer, Request as LinkRequest, RequestKind, Responder, Service};

use super::core::{Core, Watching};
use super::shared::Shared;
use crate::message::{Reply, Request, Unheard, Watcher};

/// The longest time that a watch waits.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// Answers nodes.
pub(super) struct NodeService(pub(super) Arc<Shared>);

/// Takes the messages of the other control nodes.
pub(super) struct GroupService(pub(super) Arc<Shared>);

impl Service for GroupService {
    fn serve(&self, peer: &Peer, request: LinkRequest, responder: Responder) {
        drop(responder);
        let shared = &*self.0;
        let is_control = peer.hello.identity.roles.has(Role::Control);
        if request.kind != RequestKind::Cast || !is_control || shared.is_stopped() {
            return;
        }
        let Some((message, arrived)) = read_message(&request.payload) else {
            let peer = &peer.hello.identity;
            tracing::warn!(%peer, "bytes arrived that are no message of a control node");
            return;
        };
        let received = shared.event(|core| {
            match arrived {
                Arrived::Entries(entries) => core.stash = entries,
                Arrived::Catalog(catalog) => core.stashed_catalog = Some(*catalog),
            }
            let received = core.member.receive(&message);
            // Carried out here, while the entries are in the stash.
            shared.carry_out(core);
            received
        });
        match received {
            Ok(()) => {}
            // One that was replaced, and has not heard of it.
            Err(error @ ReceiveError::Misdirected(_)) => {
                let from = message.from();
                tracing::debug!(%error, %from, "a message for another member");
            }
            Err(ReceiveError::LogLost { .. }) => {
                shared.has_lost_entries.store(true, Ordering::SeqCst);
            }
            Err(error) => {
                let from = message.from();
                tracing::error!(%error, %from, "a message of the group was refused");
            }
        }
    }
}

/// What came behind a message.
enum Arrived {
    /// The bytes of its entries, by where they begin.
    Entries(Vec<(Lsn, Vec<u8>)>),
    Catalog(Box<Catalog>),
}

/// A message with what is behind it. `None` if they do not fit.
fn read_message(bytes: &[u8]) -> Option<(Message, Arrived)> {
    let (message, mut rest) = Message::decode(bytes).ok()?;
    if message.kind() == MessageKind::Restart {
        let catalog = Catalog::restore(rest).ok()?;
        return Some((message, Arrived::Catalog(Box::new(catalog))));
    }
    let mut entries = Vec::new();
    for entry in message.entries() {
        if let Content::Log { bytes: length, checksum } = entry.content {
            let (own, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            if crc32c::crc32c(own) != checksum {
                return None;
            }
            entries.push((entry.start, own.to_vec()));
            rest = behind;
        }
    }
    rest.is_empty().then_some((message, Arrived::Entries(entries)))
}

impl Service for NodeService {
    fn serve(&self, peer: &Peer, request: LinkRequest, responder: Responder) {
        let shared = &*self.0;
        let reply = if let Some(failure) = shared.failure.get() {
            Reply::Failed(failure.clone())
        } else if shared.is_stopped() || request.kind != RequestKind::Call {
            Reply::NotLeader { leader: None }
        } else {
            match Request::decode(&request.payload) {
                Ok(request) => return shared.serve(peer, request, responder),
                Err(error) => Reply::Failed(error.to_string()),
            }
        };
        responder.reply(reply.encode());
    }
}

impl Shared {
    fn serve(&self, peer: &Peer, request: Request, responder: Responder) {
        self.event(|core| match request {
            Request::Propose(proposal) => self.take_proposal(core, peer, &proposal, responder),
            Request::Tell(message) => {
                let reply = self.hear(core, peer, &message);
                core.answer(responder, reply);
            }
            Request::Watch { watcher, entries, patience } => {
                let patience = Duration::from_millis(u64::from(patience)).min(MOST_PATIENCE);
                let until = self.clock.monotonic() + patience;
                self.watch(core, peer, Watching { watcher, entries, until, responder });
            }
            Request::Status => {
                let status = Reply::Status(Box::new(self.status(core)));
                core.answer(responder, status);
            }
        });
    }

    fn not_leader(&self, core: &Core) -> Reply {
        let own = core.controller.leads().is_some();
        // A leader without a lease is not worth asking, and does not know a better one.
        Reply::NotLeader { leader: self.leader_of(core).filter(|_| !own) }
    }

    fn take_proposal(
        &self,
        core: &mut Core,
        peer: &Peer,
        proposal: &Proposal,
        responder: Responder,
    ) {
        if core.controller.leads().is_none() {
            let reply = self.not_leader(core);
            return core.answer(responder, reply);
        }
        if let Some(text) = objection(core, peer, proposal) {
            return core.answer(responder, Reply::Refused(text));
        }
        match core.propose(proposal) {
            Ok((index, term)) => {
                core.waiting.insert(index, (term, responder));
            }
            Err(Refusal::NoCredit) => {
                let text = "too many changes of the cluster wait for the other control nodes";
                core.answer(responder, Reply::Failed(format!("{text}; try again later")));
            }
            Err(_) => {
                let reply = self.not_leader(core);
                core.answer(responder, reply);
            }
        }
    }

    fn hear(&self, core: &mut Core, peer: &Peer, message: &ToControl) -> Reply {
        if core.acts().is_none() {
            return self.not_leader(core);
        }
        if !speaks_for(core, peer, message.node) {
            return stranger(peer, message.node);
        }
        if let Err(error) = core.controller.receive(message) {
            return unheard(core, message.node, error.to_string());
        }
        self.carry_out(core);
        let is_heartbeat = matches!(message.body, NodeMessage::Heartbeat(_));
        let heard = is_heartbeat.then(|| core.heard.remove(&message.node)).flatten();
        Reply::News { catalog: None, messages: heard.into_iter().collect() }
    }

    fn watch(&self, core: &mut Core, peer: &Peer, watching: Watching) {
        let refusal = if core.acts().is_none() {
            Some(self.not_leader(core))
        } else {
            watching.watcher.and_then(|watcher| check_watcher(core, peer, watcher))
        };
        match refusal {
            Some(reply) => core.answer(watching.responder, reply),
            None => {
                self.end_earlier_watch(core, watching.watcher);
                core.watching.push(watching);
            }
        }
    }

    /// A node watches once: who watched before has lost its answer.
    fn end_earlier_watch(&self, core: &mut Core, watcher: Option<Watcher>) {
        let Some(node) = watcher.map(|one| one.node) else { return };
        let earlier =
            core.watching.iter().position(|one| one.watcher.is_some_and(|w| w.node == node));
        if let Some(earlier) = earlier {
            let watching = core.watching.swap_remove(earlier);
            core.answer(watching.responder, no_news());
        }
    }

    /// Answers watches for which there is news.
    pub(super) fn tell_watchers(&self, core: &mut Core) {
        let newest = core.controller.catalog().entries();
        let is_due = |one: &Watching, core: &Core| {
            let orders = one.watcher.and_then(|watcher| core.orders.get(&watcher.node));
            one.entries < newest || orders.is_some_and(|orders| !orders.is_empty())
        };
        if core.watching.is_empty() || core.acts().is_none() {
            return;
        }
        let (due, rest) = std::mem::take(&mut core.watching)
            .into_iter()
            .partition::<Vec<_>, _>(|one| is_due(one, core));
        core.watching = rest;
        for watching in due {
            let catalog = (watching.entries < newest).then(|| core.snapshot());
            let messages = match watching.watcher.map(|watcher| check_start(core, watcher)) {
                Some(None) => {
                    let node = watching.watcher.expect("it has just been looked at").node;
                    core.orders.remove(&node).unwrap_or_default().into()
                }
                _ => Vec::new(),
            };
            core.answer(watching.responder, Reply::News { catalog, messages });
        }
    }

    /// Answers watches whose time is over, or all if the node may not act.
    pub(super) fn end_watches(&self, core: &mut Core) {
        let now = self.clock.monotonic();
        let reply = if core.acts().is_some() { no_news() } else { self.not_leader(core) };
        let acts = core.acts().is_some();
        let (over, rest) = std::mem::take(&mut core.watching)
            .into_iter()
            .partition::<Vec<_>, _>(|one| !acts || one.until <= now);
        core.watching = rest;
        for watching in over {
            core.answer(watching.responder, reply.clone());
        }
    }
}

fn no_news() -> Reply {
    Reply::News { catalog: None, messages: Vec::new() }
}

/// Why a node may not watch with that start. `None` if it may.
fn check_watcher(core: &Core, peer: &Peer, watcher: Watcher) -> Option<Reply> {
    if !speaks_for(core, peer, watcher.node) {
        return Some(stranger(peer, watcher.node));
    }
    check_start(core, watcher)
}

fn check_start(core: &Core, watcher: Watcher) -> Option<Reply> {
    let Watcher { node, incarnation } = watcher;
    let known = core.controller.catalog().nodes().get(&node);
    if known.is_some_and(|known| known.incarnation == incarnation) {
        return None;
    }
    Some(unheard(core, node, format!("start {incarnation} of node {node} is not in the catalog")))
}

fn unheard(core: &Core, node: NodeId, text: String) -> Reply {
    let why = match core.controller.catalog().node_state(node) {
        Some(NodeState::Removed) => Unheard::Removed,
        _ => Unheard::Unregistered,
    };
    Reply::Unheard { why, text }
}

fn stranger(peer: &Peer, node: NodeId) -> Reply {
    let text = format!("{} does not speak for node {node}", peer.hello.identity);
    Reply::Unheard { why: Unheard::Stranger, text }
}

/// Whether the peer may speak for a node. A certificate has the node's name.
fn speaks_for(core: &Core, peer: &Peer, node: NodeId) -> bool {
    let known = core.controller.catalog().nodes().get(&node);
    known.is_none_or(|known| has_name(peer, &known.name))
}

fn has_name(peer: &Peer, name: &str) -> bool {
    !peer.is_certified || peer.hello.identity.name == name
}

/// Why nobody may ask for a proposal, or this peer may not.
fn objection(core: &Core, peer: &Peer, proposal: &Proposal) -> Option<String> {
    let own = match proposal {
        Proposal::Join(join) => has_name(peer, &join.name),
        Proposal::Started(started) => speaks_for(core, peer, started.node),
        Proposal::Health { .. }
        | Proposal::Led { .. }
        | Proposal::Measured { .. }
        | Proposal::Lost { .. }
        | Proposal::StopUpgrade { .. }
        | Proposal::Acknowledge { .. }
        | Proposal::Found(_) => {
            return Some("only the leader of the control group proposes this".to_owned());
        }
        _ => true,
    };
    (!own).then(|| format!("{} does not speak for that node", peer.hello.identity))
}

#[cfg(test)]
mod tests;
