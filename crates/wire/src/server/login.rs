//! From the client's first packet to its session.

use std::time::Duration;

use super::connection::{Connection, Stage};
use crate::channel::{CompressionAlgorithm, Patience, PeerAddress, Received};
use crate::error::{ServerError, WireError};
use crate::flags::Capabilities;
use crate::handshake::{
    Attempt, AuthenticationContext, ClientHello, HandshakeResponse, authenticate,
    decode_change_user,
};
use crate::packet::Malformed;
use crate::reply::{Completion, Replies, RowFormat};
use crate::service::Login;

impl Connection {
    /// Receives the handshake response, checks the password, opens the session, and sends OK. False
    /// if the response has not arrived: the connection waits for it without a thread.
    pub(super) fn log_in(&mut self, deadline: Duration) -> Result<bool, WireError> {
        // The greeting was packet 0 of this exchange.
        let received =
            self.channel.read_packet(&mut self.command, Patience::SliceUntil(deadline))?;
        if received == Received::Idle {
            self.is_half_sent = self.channel.has_input();
            return Ok(false);
        }
        self.is_half_sent = false;
        let response = self.read_response(deadline)?;
        self.channel.capabilities = response.capabilities & self.shared.capabilities();
        if self.shared.options.require_secure_transport && !self.is_secure() {
            return Err(WireError::Fatal(ServerError::secure_transport_required()));
        }
        self.open_session(&response, deadline, false)?;
        self.apply_limits();
        self.say_ok()?;
        self.start_compression(&response);
        self.stage = Stage::Ready;
        Ok(true)
    }

    /// Reads the response, whose first packet has arrived.
    fn read_response(&mut self, deadline: Duration) -> Result<HandshakeResponse, WireError> {
        let mut hello = ClientHello::decode(&self.command).map_err(|Malformed| bad_handshake())?;
        if hello == ClientHello::SslRequest {
            let acceptor = self.shared.tls.as_ref().ok_or_else(bad_handshake)?;
            self.channel.start_tls(acceptor)?;
            hello = self.read_hello(deadline)?;
        }
        match hello {
            ClientHello::Response(response) => Ok(response),
            ClientHello::SslRequest => Err(bad_handshake()),
        }
    }

    fn read_hello(&mut self, deadline: Duration) -> Result<ClientHello, WireError> {
        let mut payload = Vec::new();
        self.channel.read_packet(&mut payload, Patience::Deadline(deadline))?;
        ClientHello::decode(&payload).map_err(|Malformed| bad_handshake())
    }

    /// Whether the transport keeps others from reading what the client sends.
    fn is_secure(&self) -> bool {
        *self.control.peer() == PeerAddress::Unix || self.channel.tls().is_some()
    }

    fn open_session(
        &mut self,
        response: &HandshakeResponse,
        deadline: Duration,
        ask_again: bool,
    ) -> Result<(), WireError> {
        let shared = self.shared.clone();
        let context = AuthenticationContext {
            service: &*shared.service,
            digests: &shared.digests,
            rsa_key: &shared.rsa_key,
        };
        let attempt = Attempt {
            response,
            host: &self.control.peer().host(),
            scramble: self.scramble,
            secure_transport: self.is_secure(),
            ask_again,
            deadline,
        };
        let credentials = authenticate(&mut self.channel, &context, &attempt)?;
        self.admit()?;
        let session = shared.service.open(self.login(response, credentials.account));
        let session = session.map_err(WireError::Fatal)?;
        self.control.set_canceller(Some(session.canceller()));
        self.session = Some(session);
        self.multi_statements = self.channel.capabilities.contains(Capabilities::MULTI_STATEMENTS);
        Ok(())
    }

    /// Counts the connection among those that have logged in, if there is room.
    fn admit(&self) -> Result<(), WireError> {
        let again = matches!(self.stage, Stage::Ready);
        let limit = self.shared.limits.max_connections();
        match again || self.shared.connections.admit(&self.control, limit) {
            true => Ok(()),
            false => Err(WireError::Fatal(ServerError::too_many_connections())),
        }
    }

    fn login(&self, response: &HandshakeResponse, account: String) -> Login {
        let limits = &self.shared.limits;
        self.control.set_wait_timeout(
            match self.channel.capabilities.contains(Capabilities::INTERACTIVE) {
                true => limits.interactive_timeout(),
                false => limits.wait_timeout(),
            },
        );
        Login {
            connection: self.control.clone(),
            connections: self.shared.connections.clone(),
            user: response.user.clone(),
            account,
            schema: response.schema.clone(),
            collation: response.collation,
            capabilities: self.channel.capabilities,
            attributes: response.attributes.clone(),
            tls: self.channel.tls(),
        }
    }

    /// Applies the limits of a client that has logged in; those before were narrower.
    fn apply_limits(&mut self) {
        let limits = &self.shared.limits;
        self.channel.max_packet_bytes =
            usize::try_from(limits.max_allowed_packet()).unwrap_or(usize::MAX);
        self.channel.read_timeout = limits.net_read_timeout();
        self.channel.write_timeout = limits.net_write_timeout();
    }

    /// Compression begins after the OK that ends the login.
    fn start_compression(&mut self, response: &HandshakeResponse) {
        let capabilities = self.channel.capabilities;
        if capabilities.contains(Capabilities::COMPRESS) {
            self.channel.compress(CompressionAlgorithm::Zlib, 0);
        } else if capabilities.contains(Capabilities::COMPRESS_ZSTD) {
            self.channel.compress(CompressionAlgorithm::Zstd, i32::from(response.zstd_level));
        }
    }

    /// `COM_CHANGE_USER`: ends the session and begins another on the same connection. A client that
    /// fails to log in again is disconnected.
    pub(super) fn change_user(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let decoded = decode_change_user(payload, self.channel.capabilities);
        let response = decoded.map_err(|Malformed| WireError::malformed())?;
        self.end_session();
        let timeout = self.shared.limits.connect_timeout();
        let deadline = self.shared.environment.clock.monotonic().saturating_add(timeout);
        self.open_session(&response, deadline, true)?;
        self.say_ok()
    }

    /// Sends an OK that carries only the session's status.
    pub(super) fn say_ok(&mut self) -> Result<(), WireError> {
        let status = self.session.as_ref().map(|session| session.status()).unwrap_or_default();
        let completion = Completion { status, ..Completion::default() };
        Replies::new(&mut self.channel, RowFormat::Text).ok(&completion)?;
        self.channel.flush()
    }
}

fn bad_handshake() -> WireError {
    WireError::Fatal(ServerError::bad_handshake())
}
