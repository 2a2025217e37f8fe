//! Lanes: connections for one exchange at a time, whose answer is read by the thread that waits
//! for it.
//!
//! ```text
//!   shared   threads ─► queue ─► connection ─► reader ─► worker ─► connection ─► link task ─► thread
//!   lane     thread ───────────► connection ─► reader ───────────► connection ─► thread
//! ```
//!
//! A change of threads costs more than the rest of a short request. The lanes of a session lead to
//! the same server as its shared connection, and end with it: that one finds out that the server is
//! gone. An exchange that finds no lane goes over the shared connection.
//!
//! A lane that nobody has used for the interval of pings is closed, before its server would end it.
//!
//! Latch rule 10: the mutex of the idle lanes is a leaf. That of an exchange is taken by the one
//! thread that waits for it, and is held while it waits.

use std::sync::Arc;
use std::time::Duration;

use firn_base::network::{Connection, NetworkError};
use parking_lot::Mutex;

use super::inbox::{Flow, Next};
use super::link_task::Shared;
use super::session::Session;
use crate::error::CallError;
use crate::hello::EXCHANGE_VERSION;
use crate::item::{Item, Items, Kind, Malformed, ServiceId, cost};
use crate::payload::{Body, Payload};
use crate::statistics::Statistics;

/// How long the steps of opening a lane may take: a request waits for it.
const OPEN_TIMEOUT: Duration = Duration::from_millis(250);
/// The pause after a lane could not be opened.
const PAUSE: Duration = Duration::from_secs(1);
/// How often an exchange that waits looks whether the server is gone.
const LOOK: Duration = Duration::from_secs(1);

/// A connection for exchanges. It is closed when it is dropped.
pub(super) struct Lane {
    connection: Arc<dyn Connection>,
    next_number: u64,
    idle_since: Duration,
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.connection.close();
    }
}

/// The lanes of a session.
#[derive(Default)]
pub(super) struct Lanes(Mutex<State>);

#[derive(Default)]
struct State {
    /// The one that was used last is behind.
    idle: Vec<Lane>,
    /// How many there are, idle or not.
    count: usize,
    /// Until then no further one is opened.
    rests_until: Duration,
    has_ended: bool,
}

enum Found {
    Idle(Lane),
    /// The caller may open another one, and is counted.
    MayOpen,
    Nothing,
}

impl Lanes {
    fn find(&self, now: Duration, most: usize) -> Found {
        let mut state = self.0.lock();
        match state.idle.pop() {
            Some(lane) => Found::Idle(lane),
            None if state.count < most && now >= state.rests_until && !state.has_ended => {
                state.count += 1;
                Found::MayOpen
            }
            None => Found::Nothing,
        }
    }

    /// A lane was closed, or could not be opened.
    fn lost(&self, rests_until: Duration) {
        let mut state = self.0.lock();
        state.count -= 1;
        state.rests_until = state.rests_until.max(rests_until);
    }

    /// An exchange has ended.
    fn put(&self, mut lane: Lane, now: Duration) {
        lane.idle_since = now;
        let mut state = self.0.lock();
        if !state.has_ended {
            return state.idle.push(lane);
        }
        state.count -= 1;
        drop(state);
        drop(lane);
    }

    /// Closes the lanes that nobody has used since then.
    pub(super) fn close_idle(&self, since: Duration) {
        let closed: Vec<Lane> = {
            let mut state = self.0.lock();
            let closed = state.idle.iter().take_while(|lane| lane.idle_since < since).count();
            state.count -= closed;
            state.idle.drain(..closed).collect()
        };
        drop(closed);
    }

    /// The session has ended. Exchanges find it out when they wait.
    pub(super) fn end(&self) {
        let idle = {
            let mut state = self.0.lock();
            state.has_ended = true;
            let idle = std::mem::take(&mut state.idle);
            state.count -= idle.len();
            idle
        };
        drop(idle);
    }
}

impl Shared {
    /// A lane to the session's server; `None` if all are in use, or it gives none. May block for a
    /// short time.
    pub(super) fn lane(&self, session: &Session) -> Option<Lane> {
        if session.agreement.version < EXCHANGE_VERSION {
            return None;
        }
        match session.lanes.find(self.now(), self.settings.most_lanes) {
            Found::Idle(lane) => return Some(lane),
            Found::Nothing => return None,
            Found::MayOpen => {}
        }
        let opened = self.connect(OPEN_TIMEOUT.min(self.settings.connect_timeout));
        if let Ok((connection, agreement)) = opened {
            let lane = Lane { connection, next_number: 1, idle_since: Duration::ZERO };
            let (mine, theirs) = (&session.agreement, &agreement);
            if mine.peer.identity == theirs.peer.identity && mine.epoch == theirs.epoch {
                return Some(lane);
            }
        }
        session.lanes.lost(self.now().saturating_add(PAUSE));
        None
    }
}

/// A request on its lane.
pub(super) struct Exchange {
    shared: Arc<Shared>,
    session: Arc<Session>,
    number: u64,
    window: u64,
    began: Duration,
    under_way: Mutex<UnderWay>,
}

struct UnderWay {
    /// Until the exchange has ended.
    lane: Option<Lane>,
    /// What has arrived and was not taken.
    items: Items,
    flow: Flow,
    message: Vec<u8>,
}

impl Exchange {
    /// Sends a request.
    ///
    /// # Errors
    /// [`CallError::Unknown`]
    pub(super) fn begin(
        shared: &Arc<Shared>,
        session: Arc<Session>,
        mut lane: Lane,
        service: ServiceId,
        body: &Body,
        window: u64,
    ) -> Result<Exchange, CallError> {
        let number = lane.next_number;
        lane.next_number += 1;
        let under_way = UnderWay {
            lane: Some(lane),
            items: Items::of(Vec::new()),
            flow: Flow::default(),
            message: Vec::new(),
        };
        let exchange = Exchange {
            began: shared.now(),
            shared: Arc::clone(shared),
            session,
            number,
            window,
            under_way: Mutex::new(under_way),
        };
        let kind = Kind::Exchange { number, service, window };
        exchange.send(&mut exchange.under_way.lock(), kind, body)?;
        Ok(exchange)
    }

    fn send(&self, under_way: &mut UnderWay, kind: Kind, body: &Body) -> Result<(), CallError> {
        let Some(lane) = &under_way.lane else { return Ok(()) };
        let header = kind.header(body);
        let parts: Vec<&[u8]> =
            std::iter::once(&header[..]).chain(body.parts().iter().map(|part| &**part)).collect();
        let sent = lane.connection.send(&parts, self.shared.settings.send_timeout);
        let statistics = &self.shared.statistics;
        Statistics::add(&statistics.bytes_sent, parts.iter().map(|part| part.len()).sum());
        Statistics::add(&statistics.writes, 1);
        Statistics::add(&statistics.items_sent, 1);
        sent.map_err(|error| self.lose(under_way, &error.to_string()))
    }

    /// See [`super::Follower::next`].
    pub(super) fn next(&self, timeout: Option<Duration>) -> Result<Next, CallError> {
        let until = timeout.map(|timeout| self.shared.now().saturating_add(timeout));
        let mut under_way = self.under_way.lock();
        loop {
            while let Some(item) = under_way.items.next() {
                let taken = item.and_then(|item| self.take(&mut under_way, item));
                match taken {
                    Ok(None) => {}
                    Ok(Some(next)) => return next,
                    Err(malformed) => {
                        return Err(self.lose(&mut under_way, &malformed.to_string()));
                    }
                }
            }
            let left = until.map(|until| until.saturating_sub(self.shared.now()));
            if !self.receive(&mut under_way, left.map_or(LOOK, |left| left.min(LOOK)))?
                && left.is_some_and(|left| left <= LOOK)
            {
                return Ok(Next::Nothing);
            }
        }
    }

    /// Waits for a message. False: none has come.
    fn receive(&self, under_way: &mut UnderWay, timeout: Duration) -> Result<bool, CallError> {
        let Some(lane) = &under_way.lane else { return Err(self.unknown("it has ended")) };
        match lane.connection.receive(&mut under_way.message, Some(timeout)) {
            Ok(()) => {
                let message = std::mem::take(&mut under_way.message);
                Statistics::add(&self.shared.statistics.bytes_received, message.len());
                under_way.items = Items::of(message);
                Ok(true)
            }
            Err(NetworkError::TimedOut { .. }) if self.session.is_open() => Ok(false),
            Err(error) => Err(self.lose(under_way, &error.to_string())),
        }
    }

    /// Takes an item; nothing if it is none for the caller.
    fn take(
        &self,
        under_way: &mut UnderWay,
        item: Item,
    ) -> Result<Option<Result<Next, CallError>>, Malformed> {
        match item.kind {
            Kind::Push { number } if number == self.number => {
                let cost = cost(item.payload.len());
                under_way.flow.arrived(cost, self.window)?;
                let bytes = under_way.flow.taken(cost, self.window);
                if bytes > 0 {
                    let credit = Kind::Credit { number, bytes };
                    if let Err(error) = self.send(under_way, credit, &Body::default()) {
                        return Ok(Some(Err(error)));
                    }
                }
                Ok(Some(Ok(Next::Message(item.payload))))
            }
            Kind::Reply { number } if number == self.number => {
                Ok(Some(Ok(self.end(under_way, item.payload))))
            }
            Kind::Refused { number, code } if number == self.number => {
                let text = String::from_utf8_lossy(&item.payload).into_owned();
                Statistics::add(&self.shared.statistics.failures, 1);
                self.leave(under_way);
                Ok(Some(Err(self.session.refusal(code, text))))
            }
            _ => Err(Malformed),
        }
    }

    fn end(&self, under_way: &mut UnderWay, payload: Payload) -> Next {
        let now = self.leave(under_way);
        self.shared.statistics.count_call(now.saturating_sub(self.began));
        Next::End(payload)
    }

    /// The server has ended the exchange; another one may have its lane. Returns the time.
    fn leave(&self, under_way: &mut UnderWay) -> Duration {
        let now = self.shared.now();
        if let Some(lane) = under_way.lane.take() {
            self.session.lanes.put(lane, now);
        }
        now
    }

    /// The lane has ended before the exchange.
    fn lose(&self, under_way: &mut UnderWay, reason: &str) -> CallError {
        if under_way.lane.take().is_some() {
            self.session.lanes.lost(Duration::ZERO);
            Statistics::add(&self.shared.statistics.failures, 1);
        }
        self.unknown(reason)
    }

    fn unknown(&self, reason: &str) -> CallError {
        CallError::Unknown { peer: Arc::clone(&self.session.name), reason: Arc::from(reason) }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // The server learns by the end of the lane that nobody wants the rest.
        if self.under_way.get_mut().lane.take().is_some() {
            self.session.lanes.lost(Duration::ZERO);
        }
    }
}
