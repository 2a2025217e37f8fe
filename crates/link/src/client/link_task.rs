//! The task that keeps a client connected: connects, reads until the connection ends, and tries
//! again.
//!
//! Rule 4: this task never waits for the server to read, except for a ping of an idle connection.
//! The server may wait for this task to read. So the two never wait for each other.

use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::event::Event;
use firn_base::network::{Connection, Delivery, NetworkError};
use parking_lot::Mutex;

use super::session::Session;
use super::settings::CallerSettings;
use crate::backoff::Backoff;
use crate::error::{CallError, LinkError};
use crate::handshake::{Agreement, introduce};
use crate::item::{Items, Kind};
use crate::local::LocalNode;
use crate::sender::{Outgoing, SenderLimits};
use crate::statistics::Statistics;

#[derive(Clone)]
pub(super) enum Phase {
    Down {
        reason: Arc<str>,
        /// Waiting does not help: the peer refuses this node.
        is_refused: bool,
    },
    Up(Arc<Session>),
    Closed,
}

/// What the callers and the task share. Latch rule 5: the mutex of the phase is a leaf.
pub(super) struct Shared {
    pub(super) environment: Environment,
    pub(super) local: Arc<LocalNode>,
    pub(super) settings: CallerSettings,
    pub(super) statistics: Arc<Statistics>,
    phase: Mutex<Phase>,
    changed: Event,
}

impl Shared {
    pub(super) fn new(
        environment: Environment,
        local: Arc<LocalNode>,
        settings: CallerSettings,
    ) -> Shared {
        let reason = Arc::from("the first connection is being made");
        Shared {
            environment,
            local,
            settings,
            statistics: Arc::default(),
            phase: Mutex::new(Phase::Down { reason, is_refused: false }),
            changed: Event::new(),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.environment.clock.monotonic()
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.lock().clone()
    }

    /// Waits until there is a session, at most until `deadline`.
    pub(super) fn session(&self, deadline: Duration) -> Result<Arc<Session>, CallError> {
        let timeout = deadline.saturating_sub(self.now());
        let mut found = None;
        self.changed.wait_until(Some(timeout), || {
            found = match self.phase() {
                Phase::Up(session) if session.is_open() => Some(Ok(session)),
                Phase::Down { reason, is_refused: true } => Some(Err(reason)),
                Phase::Closed => Some(Err(Arc::from("the link was closed"))),
                Phase::Up(_) | Phase::Down { .. } => None,
            };
            found.is_some()
        });
        found.unwrap_or_else(|| Err(self.reason())).map_err(|reason| self.not_sent(reason))
    }

    fn reason(&self) -> Arc<str> {
        match self.phase() {
            Phase::Down { reason, .. } => reason,
            Phase::Up(_) | Phase::Closed => Arc::from("the connection has ended"),
        }
    }

    pub(super) fn not_sent(&self, reason: Arc<str>) -> CallError {
        Statistics::add(&self.statistics.failures, 1);
        let peer = match self.phase() {
            Phase::Up(session) => Arc::clone(&session.name),
            _ => self.settings.peer.to_string().into(),
        };
        CallError::NotSent { peer, reason }
    }

    /// Changes the phase, unless the link was closed.
    fn set(&self, phase: Phase) {
        {
            let mut current = self.phase.lock();
            if !matches!(*current, Phase::Closed) {
                *current = phase;
            }
        }
        self.changed.notify_all();
    }

    pub(super) fn close(&self) {
        let before = std::mem::replace(&mut *self.phase.lock(), Phase::Closed);
        if let Phase::Up(session) = before {
            session.sender.end();
        }
        self.changed.notify_all();
    }

    fn is_closed(&self) -> bool {
        matches!(*self.phase.lock(), Phase::Closed)
    }

    /// The body of the task.
    pub(super) fn run(&self) {
        let mut backoff = Backoff::new(self.settings.least_delay, self.settings.most_delay);
        while !self.is_closed() {
            let began = self.now();
            match self.open() {
                Ok(session) => self.serve(&Arc::new(session)),
                Err(error) => {
                    let is_refused = matches!(error, LinkError::Refused(_));
                    self.set(Phase::Down { reason: error.to_string().into(), is_refused });
                }
            }
            if self.now().saturating_sub(began) > self.settings.most_delay {
                backoff.reset();
            }
            let delay = backoff.delay(&*self.environment.random);
            self.changed.wait_until(Some(delay), || self.is_closed());
        }
    }

    /// Connects to the peer and agrees with it. Blocks for `timeout` at most, three times.
    pub(super) fn connect(
        &self,
        timeout: Duration,
    ) -> Result<(Arc<dyn Connection>, Agreement), LinkError> {
        let settings = &self.settings;
        let network = &self.environment.network;
        let connection = network.connect(&settings.peer, Delivery::InOrder, timeout)?;
        let hello = self.local.hello(0);
        let agreement = introduce(&*connection, &hello, settings.wanted, timeout)?;
        Ok((connection, agreement))
    }

    fn open(&self) -> Result<Session, LinkError> {
        let settings = &self.settings;
        let (connection, agreement) = self.connect(settings.connect_timeout)?;
        Statistics::add(&self.statistics.connections, 1);
        let limits = SenderLimits { send_timeout: settings.send_timeout, queue_bytes: u64::MAX };
        let clock = Arc::clone(&self.environment.clock);
        Ok(Session::new(connection, agreement, limits, clock, Arc::clone(&self.statistics)))
    }

    /// Uses a session until it ends.
    fn serve(&self, session: &Arc<Session>) {
        self.set(Phase::Up(Arc::clone(session)));
        // A link that was closed meanwhile does not know the session.
        let reason: Arc<str> = match self.is_closed() {
            true => Arc::from("the link was closed"),
            false => self.read(session),
        };
        session.end(&reason);
        self.set(Phase::Down { reason, is_refused: false });
    }

    /// Reads until the connection has ended; says why it did.
    fn read(&self, session: &Session) -> Arc<str> {
        let interval = self.settings.ping_interval();
        let mut heard = self.now();
        let mut tidied = heard;
        let mut message = Vec::new();
        loop {
            let received = session.sender.connection().receive(&mut message, Some(interval));
            let now = self.now();
            match received {
                Ok(()) => {
                    heard = now;
                    Statistics::add(&self.statistics.bytes_received, message.len());
                    let mut items = Items::of(std::mem::take(&mut message));
                    let taken = items.try_for_each(|item| session.receive(item?, now));
                    if let Err(malformed) = taken {
                        return malformed.to_string().into();
                    }
                }
                Err(NetworkError::TimedOut { .. }) if now - heard < self.settings.silence => {}
                Err(error) => return error.to_string().into(),
            }
            if now.saturating_sub(tidied) >= interval {
                session.lanes.close_idle(now.saturating_sub(interval));
                tidied = now;
            }
            if self.local.has_left(session.agreement.epoch) {
                return Arc::from("the epoch of the connection has ended");
            }
            // Casts have no answer, so a link that sends them all the time needs pings too.
            let hears_nothing = now.saturating_sub(heard) >= interval;
            if hears_nothing || now.saturating_sub(session.sender.last_write()) >= interval {
                // An end shows itself by the next receive.
                let _ = session.sender.put([Outgoing::bare(Kind::Ping)]);
            }
        }
    }
}
