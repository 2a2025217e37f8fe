//! A front's hold on the node that runs its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_link::{CallError, Follower, Next};
use firn_wire::ConnectionControl;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{ANSWER_TIMEOUT, BackendLinks, Shared, is_leaving, is_not_here};
use crate::SESSION_SERVICE;
use crate::message::{Ask, Event, decode, encode};

/// How often sessions that have ended are told of again, if that was not possible at once.
const LOOK: Duration = Duration::from_millis(100);
/// Room for events that the front has not taken.
const EVENTS_BYTES: u64 = 64 << 10;

/// From the node's welcome until its sessions of this front have ended.
pub(super) struct Attachment {
    /// The front's number, drawn for this attachment.
    pub(super) front: u64,
    pub(super) links: BackendLinks,
    is_over: AtomicBool,
    /// See S7.
    is_leaving: AtomicBool,
    /// The connections whose sessions the node has.
    connections: Mutex<FxHashMap<u32, Arc<ConnectionControl>>>,
    /// Sessions that have ended and that the node was not told of.
    ended: Mutex<Vec<u32>>,
}

impl Attachment {
    /// Attaches to a node, if it runs sessions. Blocks.
    pub(super) fn begin(
        shared: &Shared,
        links: &BackendLinks,
    ) -> Option<(Arc<Attachment>, Follower)> {
        if links.control.peer().is_none() || links.commands.peer().is_none() {
            return None;
        }
        let front = shared.environment.random.next_u64();
        let ask = encode(&Ask::Attach { front });
        let events = links.control.follow(SESSION_SERVICE, ask, EVENTS_BYTES, ANSWER_TIMEOUT);
        let events = events.ok()?;
        let Ok(Next::Message(welcome)) = events.next(Some(ANSWER_TIMEOUT)) else { return None };
        let (Event::Welcome, _) = decode(&welcome).ok()? else { return None };
        let attachment = Attachment {
            front,
            links: links.clone(),
            is_over: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            connections: Mutex::default(),
            ended: Mutex::default(),
        };
        Some((Arc::new(attachment), events))
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Whether the node wants sessions to go on elsewhere.
    pub(super) fn is_leaving(&self) -> bool {
        self.is_leaving.load(Ordering::SeqCst)
    }

    /// The node wants sessions to go on elsewhere.
    pub(super) fn begin_leaving(&self) {
        self.is_leaving.store(true, Ordering::SeqCst);
    }

    /// A request had no answer: the attachment is over if the node says so, or cannot be reached.
    pub(super) fn doubt(&self, error: &CallError) {
        if is_leaving(error) {
            self.begin_leaving();
        }
        let is_away = self.links.commands.peer().is_none();
        if is_not_here(error) || (is_away && !matches!(error, CallError::Refused { .. })) {
            self.is_over.store(true, Ordering::SeqCst);
        }
    }

    /// Takes what the node tells, until the attachment is over or the node is leaving; blocks.
    /// `look` is called now and then.
    pub(super) fn attend(&self, events: &Follower, mut look: impl FnMut() -> bool) {
        while look() && !self.is_leaving() && self.take(events, LOOK) {}
    }

    /// Takes what the node tells, or waits for it, at most so long. False once the attachment is
    /// over: dropping the events then has the node end the sessions that are left (S2).
    pub(super) fn take(&self, events: &Follower, wait: Duration) -> bool {
        match events.next(Some(wait)) {
            Ok(Next::Message(event)) => match decode(&event) {
                Ok((Event::Leaving, _)) => self.begin_leaving(),
                Ok((event, _)) => self.pass_on(&event),
                Err(_) => {}
            },
            Ok(Next::Nothing) => {}
            Ok(Next::End(_)) => {
                tracing::info!("the node that ran the clients' sessions runs none any more");
                self.end();
            }
            Err(error) => {
                tracing::warn!(%error, "the node that ran the clients' sessions is gone");
                self.end();
            }
        }
        self.tell_ended();
        !self.is_over()
    }

    /// The node has no session of the front any more.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Does at the client's connection what somebody did at the node.
    fn pass_on(&self, event: &Event) {
        let (Event::Killed { session } | Event::Interrupted { session }) = event else { return };
        let connection = self.connections.lock().get(session).cloned();
        match (connection, event) {
            (Some(connection), Event::Killed { .. }) => connection.kill(),
            (Some(connection), _) => connection.kill_query(),
            (None, _) => {}
        }
    }

    /// The node has a session of that connection.
    pub(super) fn enter(&self, connection: &Arc<ConnectionControl>) {
        self.connections.lock().insert(connection.id(), Arc::clone(connection));
    }

    /// The node does not have the session any more.
    pub(super) fn forget(&self, session: u32) {
        self.connections.lock().remove(&session);
    }

    /// Ends a session.
    pub(super) fn leave(&self, session: u32) {
        self.forget(session);
        self.ended.lock().push(session);
        self.tell_ended();
    }

    /// Tells the node which sessions have ended, if that needs no wait.
    fn tell_ended(&self) {
        let sessions = std::mem::take(&mut *self.ended.lock());
        if sessions.is_empty() || self.is_over() {
            return;
        }
        let ask = Ask::Close { front: self.front, sessions: sessions.clone() };
        if !self.links.control.cast_at_once(SESSION_SERVICE, encode(&ask).into()) {
            self.ended.lock().extend(sessions);
        }
    }
}
