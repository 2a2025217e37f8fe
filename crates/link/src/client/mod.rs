//! The calling side of a link.

mod inbox;
mod lane;
mod link_task;
mod session;
mod settings;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::NodeIdentity;
use firn_base::task::TaskHandle;
use parking_lot::Mutex;

pub use self::inbox::Next;
use self::inbox::{Inbox, Slot};
use self::lane::Exchange;
use self::link_task::{Phase, Shared};
use self::session::{Receiver, Session};
pub use self::settings::CallerSettings;
use crate::credit::NoRoom;
use crate::error::CallError;
use crate::item::{Kind, ServiceId, cost};
use crate::local::LocalNode;
use crate::payload::{Body, Payload};
use crate::sender::{Ended, MAX_PAYLOAD_BYTES, Outgoing};
use crate::statistics::{LinkStatistics, Statistics};

/// A link to one peer. Keeps itself connected; any number of threads may call at the same time.
/// Dropping it closes the link.
pub struct Caller {
    shared: Arc<Shared>,
    task: Mutex<Option<Box<dyn TaskHandle>>>,
}

impl Caller {
    /// Makes a link and begins to connect.
    #[must_use]
    pub fn new(
        environment: &Environment,
        local: Arc<LocalNode>,
        settings: CallerSettings,
    ) -> Caller {
        let shared = Arc::new(Shared::new(environment.clone(), local, settings));
        let of_task = Arc::clone(&shared);
        let task = environment.spawner.spawn("link-client", Box::new(move || of_task.run()));
        Caller { shared, task: Mutex::new(Some(task)) }
    }

    /// Sends a request and waits for its reply. Waits for a connection and for room first; all of
    /// it ends by `timeout`, or by the send timeout if that is longer and the peer does not read.
    ///
    /// # Errors
    /// All of [`CallError`].
    pub fn call(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        timeout: Duration,
    ) -> Result<Payload, CallError> {
        self.begin(service, body, timeout)?.wait()
    }

    /// Sends a request whose reply is waited for later. Blocks until there is room for it.
    ///
    /// # Errors
    /// [`CallError::NotSent`]
    pub fn begin(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        timeout: Duration,
    ) -> Result<Call, CallError> {
        let deadline = self.deadline(timeout);
        let slot = Arc::new(Slot::default());
        let receiver = Receiver::Call(Arc::clone(&slot));
        let kind = |number, now: Duration| {
            let time_left = deadline.saturating_sub(now).as_micros() as u64;
            Kind::Call { number, service, time_left }
        };
        let (session, number) = self.send(body.into(), deadline, &receiver, &kind)?;
        Ok(Call {
            session,
            slot,
            number,
            deadline,
            shared: Arc::clone(&self.shared),
            is_over: false,
        })
    }

    /// Like [`Caller::begin`] for several requests, which leave in as few writes as they fit in.
    pub fn begin_all(
        &self,
        service: ServiceId,
        bodies: impl IntoIterator<Item = Body>,
        timeout: Duration,
    ) -> Vec<Result<Call, CallError>> {
        let deadline = self.deadline(timeout);
        let mut bodies = bodies.into_iter();
        let mut calls = Vec::new();
        if let Ok(session) = self.shared.session(deadline) {
            let mut items = Vec::new();
            for body in bodies.by_ref() {
                match self.enter_at_once(&session, &body, deadline) {
                    Some(call) => {
                        let time_left = deadline.saturating_sub(self.shared.now());
                        let time_left = time_left.as_micros() as u64;
                        let kind = Kind::Call { number: call.number, service, time_left };
                        items.push(Outgoing { kind, body });
                        calls.push(Ok(call));
                    }
                    None => {
                        // What has room goes first: it may be what the others wait for.
                        self.send_entered(&session, &mut items, &mut calls);
                        calls.push(self.begin(service, body, self.left(deadline)));
                    }
                }
            }
            self.send_entered(&session, &mut items, &mut calls);
        }
        calls.extend(bodies.map(|body| self.begin(service, body, self.left(deadline))));
        calls
    }

    /// A call with a number, if it has room now.
    fn enter_at_once(
        &self,
        session: &Arc<Session>,
        body: &Body,
        deadline: Duration,
    ) -> Option<Call> {
        let cost = cost(body.len());
        if body.len() > MAX_PAYLOAD_BYTES || session.credit.take(cost, Duration::ZERO).is_err() {
            return None;
        }
        let slot = Arc::new(Slot::default());
        let number = session.enter(cost, Receiver::Call(Arc::clone(&slot))).ok()?;
        let (session, shared) = (Arc::clone(session), Arc::clone(&self.shared));
        Some(Call { session, slot, number, deadline, shared, is_over: false })
    }

    /// Sends calls that were entered; those that cannot be sent any more get their error.
    fn send_entered(
        &self,
        session: &Session,
        items: &mut Vec<Outgoing>,
        calls: &mut [Result<Call, CallError>],
    ) {
        let count = items.len();
        if count == 0 || session.sender.put(items.drain(..)).is_ok() {
            return;
        }
        let from = calls.len() - count;
        for call in &mut calls[from..] {
            if let Ok(begun) = call {
                session.leave(begun.number);
                begun.is_over = true;
                *call = Err(self.shared.not_sent(Arc::from("the connection has ended")));
            }
        }
    }

    /// Sends a message without an answer. It arrives after those that this thread cast before on
    /// the same connection, and at most once; when a connection ends, messages under way are lost.
    /// With a timeout of zero it is sent only if that needs no wait for a connection or for room.
    ///
    /// # Errors
    /// [`CallError::NotSent`]
    pub fn cast(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        timeout: Duration,
    ) -> Result<(), CallError> {
        let deadline = self.deadline(timeout);
        let kind = |number, _| Kind::Cast { number, service };
        self.send(body.into(), deadline, &Receiver::Nobody, &kind)?;
        Statistics::add(&self.shared.statistics.casts, 1);
        Ok(())
    }

    /// Like [`Caller::cast`], if that needs no wait: not for a connection, for room, or for the
    /// peer to read. Returns whether it was sent.
    pub fn cast_at_once(&self, service: ServiceId, body: Body) -> bool {
        let Phase::Up(session) = self.shared.phase() else { return false };
        let cost = cost(body.len());
        let has_room = session.sender.connection().has_room(cost as usize)
            && session.credit.take(cost, Duration::ZERO).is_ok();
        if !has_room {
            return false;
        }
        let kind = |number, _| Kind::Cast { number, service };
        let is_sent = self.send_on(&session, body, &Receiver::Nobody, &kind).is_ok();
        Statistics::add(&self.shared.statistics.casts, usize::from(is_sent));
        is_sent
    }

    /// Asks for a stream of messages, which the server pushes while the follower takes them. The
    /// server is ahead by `window` bytes at most, or by one message if that is longer. `timeout`
    /// is for sending the request.
    ///
    /// # Errors
    /// [`CallError::NotSent`]
    pub fn follow(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        window: u64,
        timeout: Duration,
    ) -> Result<Follower, CallError> {
        self.follow_with(service, body, window, timeout, Arc::default())
    }

    /// Like [`Caller::follow`]. `arrived` is notified of each message and of the end of the stream,
    /// so that one thread can wait for several streams: it looks at each by [`Follower::next`] with
    /// a timeout of zero.
    ///
    /// # Errors
    /// [`CallError::NotSent`]
    pub fn follow_with(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        window: u64,
        timeout: Duration,
        arrived: Arc<Event>,
    ) -> Result<Follower, CallError> {
        let deadline = self.deadline(timeout);
        let inbox = Arc::new(Inbox::new(window, arrived));
        let receiver = Receiver::Follower(Arc::clone(&inbox));
        let kind = |number, _| Kind::Follow { number, service, window };
        let (session, number) = self.send(body.into(), deadline, &receiver, &kind)?;
        Ok(Follower(Stream::Shared { session, inbox, number }))
    }

    /// Like [`Caller::follow`], for a request whose answer this thread waits for and takes at once.
    /// It has a connection for itself until its end, if there is one to be had, so that no other
    /// thread stands between the caller and the service. It may overtake requests that were sent
    /// before. A stream that is dropped before its end is cancelled only by its next push.
    ///
    /// # Errors
    /// All of [`CallError`] but [`CallError::Refused`].
    pub fn exchange(
        &self,
        service: ServiceId,
        body: impl Into<Body>,
        window: u64,
        timeout: Duration,
    ) -> Result<Follower, CallError> {
        let body = body.into();
        let session = self.shared.session(self.deadline(timeout))?;
        let lane = match body.len() > MAX_PAYLOAD_BYTES {
            true => None,
            false => self.shared.lane(&session),
        };
        let Some(lane) = lane else { return self.follow(service, body, window, timeout) };
        let exchange = Exchange::begin(&self.shared, session, lane, service, &body, window)?;
        Ok(Follower(Stream::Exchange(exchange)))
    }

    /// Sends a request on the session that there is, or on the next one if that one ends before.
    fn send(
        &self,
        body: Body,
        deadline: Duration,
        receiver: &Receiver,
        kind: &dyn Fn(u64, Duration) -> Kind,
    ) -> Result<(Arc<Session>, u64), CallError> {
        if body.len() > MAX_PAYLOAD_BYTES {
            let bytes = body.len();
            let reason = format!("{bytes} bytes exceed the limit of {MAX_PAYLOAD_BYTES} bytes");
            return Err(self.shared.not_sent(reason.into()));
        }
        loop {
            let session = self.shared.session(deadline)?;
            match session.take_room(cost(body.len()), || self.left(deadline)) {
                Ok(()) => {}
                Err(NoRoom::Ended) => continue,
                Err(NoRoom::TimedOut) => {
                    let reason = "the peer has not worked off earlier requests in time";
                    return Err(self.shared.not_sent(Arc::from(reason)));
                }
            }
            if let Ok(number) = self.send_on(&session, body.clone(), receiver, kind) {
                return Ok((session, number));
            }
        }
    }

    /// Sends a request that has got its room.
    fn send_on(
        &self,
        session: &Session,
        body: Body,
        receiver: &Receiver,
        kind: &dyn Fn(u64, Duration) -> Kind,
    ) -> Result<u64, Ended> {
        let number = match receiver {
            // What nothing answers gets its room back by what the server says of all of them.
            Receiver::Nobody => session.next_number(),
            _ => session.enter(cost(body.len()), receiver.clone())?,
        };
        let item = Outgoing { kind: kind(number, self.shared.now()), body };
        session.sender.put([item]).inspect_err(|_| session.leave(number))?;
        Ok(number)
    }

    /// Waits until the link is up; returns whether it is.
    #[must_use]
    pub fn wait_until_up(&self, timeout: Duration) -> bool {
        self.shared.session(self.deadline(timeout)).is_ok()
    }

    /// Who the peer is, while the link is up.
    #[must_use]
    pub fn peer(&self) -> Option<NodeIdentity> {
        match self.shared.phase() {
            Phase::Up(session) => Some(session.agreement.peer.identity.clone()),
            _ => None,
        }
    }

    /// Why the link is down, if it is.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        match self.shared.phase() {
            Phase::Up(_) => None,
            Phase::Down { reason, .. } => Some(reason.to_string()),
            Phase::Closed => Some("the link was closed".to_owned()),
        }
    }

    /// How many connections the link has had: when it changes, what was under way on the one before
    /// is lost. Cheap.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.statistics.connections.load(Ordering::Relaxed)
    }

    #[must_use]
    pub fn statistics(&self) -> LinkStatistics {
        self.shared.statistics.read()
    }

    /// Ends the link and waits for its task. Calls under way end with their errors.
    pub fn close(&self) {
        self.shared.close();
        let task = self.task.lock().take();
        if let Some(task) = task {
            task.join();
        }
    }

    fn deadline(&self, timeout: Duration) -> Duration {
        self.shared.now().saturating_add(timeout)
    }

    fn left(&self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.shared.now())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.shared.close();
    }
}

/// A call that was sent. Dropping it cancels it.
pub struct Call {
    session: Arc<Session>,
    slot: Arc<Slot>,
    number: u64,
    deadline: Duration,
    shared: Arc<Shared>,
    is_over: bool,
}

impl Call {
    /// Waits for the reply until the deadline.
    ///
    /// # Errors
    /// All of [`CallError`]. After the deadline the call is cancelled.
    pub fn wait(self) -> Result<Payload, CallError> {
        self.wait_for(Duration::MAX)
    }

    /// As [`Call::wait`], for `timeout` at most.
    ///
    /// # Errors
    /// As [`Call::wait`].
    pub fn wait_for(mut self, timeout: Duration) -> Result<Payload, CallError> {
        self.is_over = true;
        let left = self.deadline.saturating_sub(self.shared.now()).min(timeout);
        if let Some(answer) = self.slot.take(Some(left)) {
            return answer;
        }
        match self.session.give_up(self.number, "no answer came in time") {
            Some(error) => Err(error),
            // The answer is just being delivered.
            None => self.slot.take(None).expect("an answer whose arrival was waited for"),
        }
    }

    /// Whether [`Call::wait`] would not wait.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.slot.is_filled()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.session.give_up(self.number, "the caller has cancelled");
        }
    }
}

/// An ordered stream of messages that a server pushes. Dropping it ends the stream.
pub struct Follower(Stream);

enum Stream {
    Shared { session: Arc<Session>, inbox: Arc<Inbox>, number: u64 },
    Exchange(Exchange),
}

impl Follower {
    /// Waits for the next message, for `timeout` at most if one is given.
    ///
    /// # Errors
    /// [`CallError`]: the stream has ended without an end by the server. What came before was
    /// complete and in order.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Next, CallError> {
        let (session, inbox, number) = match &self.0 {
            Stream::Shared { session, inbox, number } => (session, inbox, *number),
            Stream::Exchange(exchange) => return exchange.next(timeout),
        };
        let (next, bytes) = inbox.next(timeout);
        if bytes > 0 {
            let credit = Kind::Credit { number, bytes };
            // A connection that has ended says so after the messages that did arrive.
            let _ = session.sender.put([Outgoing::bare(credit)]);
        }
        next
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Stream::Shared { session, inbox, number } = &self.0
            && !inbox.has_ended()
        {
            let _ = session.give_up(*number, "the follower has ended");
        }
    }
}
