//! What a service gets, and how it answers.

use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use firn_base::clock::Clock;

use super::desk::{Desk, OpenCall, Peer};
use crate::credit::{Credit, NoRoom};
use crate::error::{CANCELLED, CLOSING, FIRST_SERVICE_CODE, TOO_LATE, UNANSWERED};
use crate::item::{Kind, ServiceId, cost};
use crate::local::LocalNode;
use crate::payload::{Body, Payload};
use crate::sender::{MAX_PAYLOAD_BYTES, Outgoing};

/// How a request wants to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// By one reply.
    Call,
    /// Not at all.
    Cast,
    /// By pushes, and one reply at the end.
    Follow,
}

#[derive(Debug)]
pub struct Request {
    pub kind: RequestKind,
    pub service: ServiceId,
    pub payload: Payload,
    /// When the caller stops waiting, on this process's monotonic clock; `None`: not by itself.
    pub deadline: Option<Duration>,
    /// Whether the service may do long work, and wait, on the thread that calls it: the connection
    /// has no other request.
    pub is_alone: bool,
}

/// Answers requests. It may answer after `serve` has returned, and on another thread.
pub trait Service: Send + Sync {
    /// Takes a request. Dropping the responder of a call without an answer leaves the caller with
    /// an unknown outcome; for a cast, the drop tells the client that there is room for more.
    fn serve(&self, peer: &Peer, request: Request, responder: Responder);
}

/// Where the requests of a service run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the thread that reads the connection: without a change of threads, in order. For work
    /// that is short and never waits, since it holds up all other requests of the connection.
    Reader,
    /// On the server's workers: calls in any order, casts of a connection one after the other.
    Workers,
}

/// The way back to the caller.
pub struct Responder {
    desk: Arc<Desk>,
    call: Arc<OpenCall>,
    clock: Arc<dyn Clock>,
    /// `None` for a cast.
    number: Option<u64>,
    cost: u64,
    arrived: Duration,
    is_answered: bool,
    /// The thread that reads the connection, if it is the one that calls the service of an
    /// exchange.
    reader: Option<ThreadId>,
}

/// The caller no longer takes what a stream pushes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    #[error("the follower has ended")]
    Ended,
    #[error("the follower has not taken earlier messages in time")]
    TimedOut,
    #[error("a message of {0} bytes is too long for a link")]
    TooLong(usize),
}

impl Responder {
    pub(super) fn new(
        desk: Arc<Desk>,
        call: Arc<OpenCall>,
        clock: Arc<dyn Clock>,
        number: Option<u64>,
        cost: u64,
    ) -> Responder {
        let arrived = clock.monotonic();
        Responder { desk, call, clock, number, cost, arrived, is_answered: false, reader: None }
    }

    /// The calling thread reads the connection, and executes the request before it reads on.
    pub(super) fn on_reader(mut self) -> Responder {
        self.reader = Some(std::thread::current().id());
        self
    }

    /// Sends the reply of a call, or the last word of a stream. Blocks while many replies wait for
    /// the client to read them. A cast has no reply; nothing is sent.
    pub fn reply(mut self, body: impl Into<Body>) {
        let body = body.into();
        if body.len() > MAX_PAYLOAD_BYTES {
            let text = format!("the reply of {} bytes is too long for a link", body.len());
            return self
                .finish(|number| Kind::Refused { number, code: UNANSWERED }, text.into_bytes());
        }
        self.finish(|number| Kind::Reply { number }, body);
    }

    /// Refuses the request, with a code of the service's and a text for people.
    ///
    /// # Panics
    /// If the code is below [`FIRST_SERVICE_CODE`].
    pub fn refuse(mut self, code: u16, text: &str) {
        assert!(code >= FIRST_SERVICE_CODE, "the code {code} is one of the link's");
        self.refuse_with(code, text);
    }

    pub(super) fn refuse_with(&mut self, code: u16, text: &str) {
        self.finish(|number| Kind::Refused { number, code }, text.as_bytes().to_vec());
    }

    fn finish(&mut self, kind: impl FnOnce(u64) -> Kind, body: impl Into<Body>) {
        self.is_answered = true;
        let took = self.clock.monotonic().saturating_sub(self.arrived);
        match self.number {
            Some(number) => self.desk.answer(number, self.cost, kind(number), body.into(), took),
            None => self.desk.finish_cast(self.cost),
        }
    }

    /// Pushes the next message of a stream. Blocks until the follower has room, for `timeout` at
    /// most.
    ///
    /// # Errors
    /// After [`PushError::TimedOut`] the push can be repeated.
    ///
    /// # Panics
    /// If the request did not ask for a stream.
    pub fn push(&self, body: impl Into<Body>, timeout: Duration) -> Result<(), PushError> {
        let body = body.into();
        let (Some(number), Some(room)) = (self.number, &self.call.pushes) else {
            panic!("the request did not ask for a stream");
        };
        if body.len() > MAX_PAYLOAD_BYTES {
            return Err(PushError::TooLong(body.len()));
        }
        self.take_room(room, cost(body.len()), timeout).map_err(|no_room| match no_room {
            NoRoom::Ended => PushError::Ended,
            NoRoom::TimedOut => PushError::TimedOut,
        })?;
        let item = Outgoing { kind: Kind::Push { number }, body };
        self.desk.sender.put([item]).map_err(|_| PushError::Ended)
    }

    /// Takes room for a push. What gives room back comes over the connection: the thread that reads
    /// it reads on meanwhile.
    fn take_room(&self, room: &Credit, cost: u64, timeout: Duration) -> Result<(), NoRoom> {
        if self.reader != Some(std::thread::current().id()) {
            return room.take(cost, timeout);
        }
        let until = self.clock.monotonic().saturating_add(timeout);
        loop {
            let taken = room.take(cost, Duration::ZERO);
            let left = until.saturating_sub(self.clock.monotonic());
            if taken != Err(NoRoom::TimedOut) || left.is_zero() {
                return taken;
            }
            self.desk.read_aside(left);
        }
    }

    /// Whether the caller has given up, or the connection has ended. Long work asks now and then.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.call.is_cancelled()
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_answered {
            self.refuse_with(UNANSWERED, "the service gave no answer");
        }
    }
}

/// A request on its way to its service.
pub(super) struct Job {
    pub(super) service: Arc<dyn Service>,
    pub(super) request: Request,
    pub(super) responder: Responder,
}

impl Job {
    /// Executes the request, unless nobody wants it any more.
    pub(super) fn execute(mut self, local: &LocalNode) {
        let now = self.responder.clock.monotonic();
        let desk = Arc::clone(&self.responder.desk);
        let refusal = if self.responder.is_cancelled() || desk.sender.has_ended() {
            Some((CANCELLED, "the caller has cancelled it"))
        } else if local.has_left(desk.epoch) {
            Some((CLOSING, "the epoch of the connection has ended"))
        } else if self.request.deadline.is_some_and(|deadline| deadline <= now) {
            Some((TOO_LATE, "its deadline had passed before it was executed"))
        } else {
            None
        };
        if let Some((code, text)) = refusal {
            return self.responder.refuse_with(code, text);
        }
        self.service.serve(&desk.peer, self.request, self.responder);
    }
}
