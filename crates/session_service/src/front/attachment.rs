//! A front's hold on the node that runs its sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use firn_link::{CallError, Follower, Next, ServiceId};
use firn_wire::ConnectionControl;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::{ANSWER_TIMEOUT, BackendLinks, Shared, is_leaving, is_not_here, is_paused};
use crate::message::{Ask, Event, decode, encode};

/// How often sessions that have ended are told of again, if that was not possible at once.
const LOOK: Duration = Duration::from_millis(100);
/// Room for events that the front has not taken. A node that ends tells all transactions at once.
const EVENTS_BYTES: u64 = 4 << 20;

/// A command that runs at a node.
pub(super) struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From the node's welcome until its sessions of this front have ended.
pub(super) struct Attachment {
    /// The front's number, drawn for this attachment.
    pub(super) front: u64,
    pub(super) links: BackendLinks,
    /// The node's service that has the sessions.
    pub(super) service: ServiceId,
    /// How many commands of the front run there.
    running: AtomicUsize,
    is_over: AtomicBool,
    /// See S7.
    is_leaving: AtomicBool,
    /// The connections whose sessions the node has.
    connections: Mutex<FxHashMap<u32, Arc<ConnectionControl>>>,
    /// Sessions that have ended and that the node was not told of.
    ended: Mutex<Vec<u32>>,
    /// Transactions of sessions that the node has ended (S10).
    described: Mutex<FxHashMap<u32, Vec<u8>>>,
    /// Until then no session is opened there, if it is a node that reads.
    pub(super) rests_until: Mutex<Duration>,
}

/// Why a front is not attached to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotAttached {
    /// See S11.
    Paused,
    /// The node runs no sessions, takes none, or does not answer.
    Other,
}

impl NotAttached {
    fn of(error: &CallError) -> NotAttached {
        if is_paused(error) { NotAttached::Paused } else { NotAttached::Other }
    }
}

impl Attachment {
    /// Attaches to a node, if it runs sessions. Blocks.
    pub(super) fn begin(
        shared: &Shared,
        links: &BackendLinks,
        service: ServiceId,
    ) -> Result<(Arc<Attachment>, Follower), NotAttached> {
        if links.control.peer().is_none() || links.commands.peer().is_none() {
            return Err(NotAttached::Other);
        }
        let front = shared.environment.random.next_u64();
        let ask = encode(&Ask::Attach { front });
        let events = links.control.follow(service, ask, EVENTS_BYTES, ANSWER_TIMEOUT);
        let events = events.map_err(|error| NotAttached::of(&error))?;
        let welcome = match events.next(Some(ANSWER_TIMEOUT)) {
            Ok(Next::Message(welcome)) => welcome,
            Ok(_) => return Err(NotAttached::Other),
            Err(error) => return Err(NotAttached::of(&error)),
        };
        let Ok((Event::Welcome, _)) = decode(&welcome) else { return Err(NotAttached::Other) };
        let attachment = Attachment {
            front,
            links: links.clone(),
            service,
            running: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            connections: Mutex::default(),
            ended: Mutex::default(),
            described: Mutex::default(),
            rests_until: Mutex::default(),
        };
        Ok((Arc::new(attachment), events))
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

    /// A command runs there until what is returned is dropped.
    pub(super) fn begin_command(&self) -> Busy<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        Busy(&self.running)
    }

    /// How much the front has it do: running commands, and sessions.
    pub(super) fn load(&self) -> (usize, usize) {
        (self.running.load(Ordering::Relaxed), self.connections.lock().len())
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

    /// Takes what the node tells, or waits for it, for `wait` at most. False once the attachment is
    /// over: dropping the events then has the node end the sessions that are left (S2).
    pub(super) fn take(&self, events: &Follower, wait: Duration) -> bool {
        self.take_one(events, wait);
        self.tell_ended();
        !self.is_over()
    }

    /// Takes all that the node has told, without waiting. False once the attachment is over.
    pub(super) fn take_all(&self, events: &Follower) -> bool {
        while self.take_one(events, Duration::ZERO) && !self.is_over() {}
        self.tell_ended();
        !self.is_over()
    }

    /// Whether the node has told anything.
    fn take_one(&self, events: &Follower, wait: Duration) -> bool {
        let next = events.next(Some(wait));
        let has_told = !matches!(next, Ok(Next::Nothing));
        match next {
            Ok(Next::Message(event)) => match decode(&event) {
                Ok((Event::Leaving, _)) => self.begin_leaving(),
                Ok((Event::Described { session, transaction }, _)) => {
                    self.described.lock().insert(session, transaction.0);
                }
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
        has_told
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

    /// The transaction of a session that the node has ended (S10).
    pub(super) fn take_described(&self, session: u32) -> Option<Vec<u8>> {
        self.described.lock().remove(&session)
    }

    /// The node has a session of that connection.
    pub(super) fn enter(&self, connection: &Arc<ConnectionControl>) {
        self.connections.lock().insert(connection.id(), Arc::clone(connection));
    }

    /// The node does not have the session any more.
    pub(super) fn forget(&self, session: u32) {
        self.connections.lock().remove(&session);
        self.described.lock().remove(&session);
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
        if !self.links.control.cast_at_once(self.service, encode(&ask).into()) {
            self.ended.lock().extend(sessions);
        }
    }
}
