//! The states of a connection: greeted, logging in, serving commands, idle.
//!
//! ```text
//!   greet ─► parked ─► log_in ─► serve commands ◄──► parked (idle)
//!                         │            │
//!                         └────────────┴─► ended: the session is dropped, the number is free again
//! ```

use std::sync::Arc;
use std::time::Duration;

use super::shared::Shared;
use crate::auth::{SCRAMBLE_LENGTH, scramble};
use crate::channel::{Channel, Patience, PeerAddress, Received, Socket};
use crate::command::Statements;
use crate::connections::ConnectionControl;
use crate::error::{ServerError, WireError};
use crate::flags::Capabilities;
use crate::handshake::put_greeting;
use crate::reply::put_error;
use crate::service::Session;

/// The longest packet of a client that has not logged in.
const MAX_LOGIN_PACKET_BYTES: usize = 80 << 10;

/// A command buffer that has grown beyond this is freed after the command.
const KEPT_COMMAND_BYTES: usize = 1 << 20;

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The greeting has been sent; the client must have logged in by the deadline.
    Greeted { deadline: Duration },
    /// Logged in.
    Ready,
    /// Idle for too long.
    Expired,
}

/// Result of a worker's turn with a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Nothing to do for now.
    Idle,
    Ended,
}

pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) control: Arc<ConnectionControl>,
    pub(super) channel: Channel,
    pub(super) statements: Statements,
    pub(super) session: Option<Box<dyn Session>>,
    pub(super) multi_statements: bool,
    pub(super) stage: Stage,
    pub(super) scramble: [u8; SCRAMBLE_LENGTH],
    pub(super) command: Vec<u8>,
    /// Whether the connection was parked in the middle of a command.
    pub(super) is_half_sent: bool,
    /// Whether another thread sends the last answer, and ends its command.
    pub(super) is_answer_left: bool,
    parked_before: bool,
    idle_since: Duration,
}

impl Connection {
    pub(super) fn new(shared: &Arc<Shared>, socket: Arc<Socket>, peer: PeerAddress) -> Connection {
        let clock = shared.environment.clock.clone();
        let now = clock.monotonic();
        let control = shared.connections.register(peer, socket.clone());
        control.idle_since(now);
        let mut channel = Channel::new(Box::new(socket), clock, control.closing.clone());
        channel.max_packet_bytes = MAX_LOGIN_PACKET_BYTES;
        channel.write_timeout = shared.limits.connect_timeout();
        channel.allow_late_answers(control.late_answer().cloned());
        Connection {
            shared: shared.clone(),
            control,
            channel,
            statements: Statements::default(),
            session: None,
            multi_statements: false,
            stage: Stage::Greeted { deadline: now.saturating_add(shared.limits.connect_timeout()) },
            scramble: scramble(),
            command: Vec::new(),
            is_half_sent: false,
            is_answer_left: false,
            parked_before: false,
            idle_since: now,
        }
    }

    pub(super) fn control(&self) -> &Arc<ConnectionControl> {
        &self.control
    }

    pub(super) fn greet(&mut self) -> Result<(), WireError> {
        let Shared { options, .. } = &*self.shared;
        put_greeting(
            self.channel.output.begin(),
            &options.server_version,
            self.control.id(),
            &self.scramble,
            self.shared.capabilities(),
            options.collation,
        );
        self.channel.output.commit();
        self.channel.flush()
    }

    /// Serves the connection until it is idle or over.
    pub(super) fn serve(&mut self) -> Outcome {
        let served = self.try_serve();
        if served.as_ref().ok() != Some(&Outcome::Idle) {
            // The answer that is on its way comes first. If it cannot be sent, the client is gone.
            let _ = self.channel.finish_late_answer();
        }
        match served {
            Ok(outcome) => outcome,
            Err(error) => {
                self.say_good_bye(error);
                Outcome::Ended
            }
        }
    }

    fn try_serve(&mut self) -> Result<Outcome, WireError> {
        match self.stage {
            Stage::Greeted { deadline } => {
                if !self.log_in(deadline)? {
                    return Ok(Outcome::Idle);
                }
            }
            Stage::Ready => {}
            Stage::Expired => {
                self.look_whether_to_end()?;
                let half_sent = self.channel.has_input();
                return Err(WireError::Fatal(match half_sent {
                    true => ServerError::read_timeout(),
                    false => ServerError::idle_too_long(),
                }));
            }
        }
        loop {
            self.look_whether_to_end()?;
            // A command whose first part arrived before the connection was parked keeps its
            // sequence numbers.
            if !std::mem::take(&mut self.is_half_sent) {
                self.channel.begin_exchange();
            }
            match self.channel.read_packet(&mut self.command, Patience::Slice) {
                Ok(Received::Packet) => self.channel.wait_for_confirmation(),
                Ok(Received::Idle) if self.channel.has_late_answer() => {
                    self.channel.finish_late_answer()?;
                    self.is_half_sent = self.channel.has_input();
                    continue;
                }
                Ok(Received::Idle) => {
                    self.is_half_sent = self.channel.has_input();
                    return Ok(Outcome::Idle);
                }
                Ok(Received::Refused(no_room)) => {
                    self.channel.wait_for_confirmation();
                    self.refuse_command(no_room)?;
                    continue;
                }
                // The server itself may have ended the reading.
                Err(error) => return self.look_whether_to_end().and(Err(error)),
            }
            if self.run_command()?.is_break() || self.control.ends_after_answer() {
                return Ok(Outcome::Ended);
            }
        }
    }

    fn look_whether_to_end(&self) -> Result<(), WireError> {
        if self.shared.is_stopping() {
            return Err(WireError::Fatal(ServerError::server_shutdown()));
        }
        if self.control.is_closing() { Err(WireError::closed()) } else { Ok(()) }
    }

    fn run_command(&mut self) -> Result<std::ops::ControlFlow<()>, WireError> {
        let command = std::mem::take(&mut self.command);
        let answered = self.answer(&command);
        self.command = command;
        if self.command.capacity() > KEPT_COMMAND_BYTES {
            self.command = Vec::new();
        }
        // The thread that confirms ends a command whose answer was left to it.
        if !std::mem::take(&mut self.is_answer_left) {
            self.control.end_command();
        }
        answered
    }

    /// Tells the client why the connection ends, if that is possible.
    fn say_good_bye(&mut self, error: WireError) {
        if let WireError::Fatal(error) | WireError::Refused(error) = &error {
            let greeted = self.channel.capabilities.contains(Capabilities::PROTOCOL_41);
            put_error(self.channel.output.begin(), error, greeted);
            self.channel.output.commit();
            // The connection is over either way.
            let _ = self.channel.flush();
        }
        tracing::debug!(connection = self.control.id(), %error, "a connection ends");
        self.channel.close();
    }

    /// Frees the memory that an idle connection does not need. True if the poller already knows it.
    pub(super) fn prepare_to_park(&mut self, now: Duration) -> bool {
        self.channel.release_buffers();
        if !self.is_half_sent {
            self.command = Vec::new();
        }
        self.idle_since = now;
        self.control.idle_since(now);
        std::mem::replace(&mut self.parked_before, true)
    }

    /// Whether a parked connection has waited too long.
    pub(super) fn is_expired(&self, now: Duration) -> bool {
        match self.stage {
            Stage::Greeted { deadline } => now >= deadline,
            Stage::Ready => {
                let timeout = match self.is_half_sent {
                    true => self.channel.read_timeout,
                    false => self.control.wait_timeout(),
                };
                now.saturating_sub(self.idle_since) >= timeout
            }
            Stage::Expired => true,
        }
    }

    /// Ends a parked connection that has waited too long. True if its client must be told.
    pub(super) fn expire(&mut self) -> bool {
        std::mem::replace(&mut self.stage, Stage::Expired) == Stage::Ready
    }

    /// Ends the session and forgets its prepared statements.
    pub(super) fn end_session(&mut self) {
        self.forget_statements();
        self.control.set_canceller(None);
        drop(self.session.take());
    }

    pub(super) fn forget_statements(&mut self) {
        let count = self.statements.clear();
        self.shared.release_statements(count);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Frees the connection's number even if the session panics at its end.
        struct Unregister<'a>(&'a Shared, &'a ConnectionControl);
        impl Drop for Unregister<'_> {
            fn drop(&mut self) {
                if let Some(socket) = self.1.socket() {
                    socket.shut_down();
                }
                self.0.connections.unregister(self.1.id());
            }
        }
        let (shared, control) = (self.shared.clone(), self.control.clone());
        let _unregister = Unregister(&shared, &control);
        self.end_session();
    }
}
