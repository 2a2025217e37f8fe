//! Authentication, once the client has named its user.
//!
//! A user without an account goes through the same exchange as a user with a wrong password, so
//! that clients cannot find out which accounts exist.

use std::time::Duration;

use super::response::HandshakeResponse;
use crate::auth::{
    AuthPlugin, Credentials, MAX_PASSWORD_BYTES, RsaKey, SCRAMBLE_LENGTH, caching_sha2, native,
    scramble,
};
use crate::channel::{Channel, Patience};
use crate::error::{ServerError, WireError};
use crate::flags::Capabilities;
use crate::packet::PayloadWriter;
use crate::service::Service;

/// `caching_sha2_password`: the fast path has succeeded.
const FAST_AUTH_OK: u8 = 3;
/// `caching_sha2_password`: the password itself is needed.
const FULL_AUTH_NEEDED: u8 = 4;
/// `caching_sha2_password`: the client asks for the public key.
const PUBLIC_KEY_REQUEST: &[u8] = &[2];

/// The server's state for checking passwords.
pub(crate) struct AuthenticationContext<'a> {
    pub(crate) service: &'a dyn Service,
    pub(crate) digests: &'a caching_sha2::DigestCache,
    pub(crate) rsa_key: &'a RsaKey,
}

/// One client's attempt to log in.
pub(crate) struct Attempt<'a> {
    pub(crate) response: &'a HandshakeResponse,
    pub(crate) host: &'a str,
    /// The challenge that `response` answers.
    pub(crate) scramble: [u8; SCRAMBLE_LENGTH],
    /// Whether the transport keeps others from reading what the client sends.
    pub(crate) secure_transport: bool,
    /// Whether the client must answer a new challenge even if it has answered this one.
    pub(crate) ask_again: bool,
    /// When the client must have logged in.
    pub(crate) deadline: Duration,
}

/// Runs the exchange; returns the account if the client is authenticated.
pub(crate) fn authenticate(
    channel: &mut Channel,
    context: &AuthenticationContext<'_>,
    attempt: &Attempt<'_>,
) -> Result<Credentials, WireError> {
    let user = &attempt.response.user;
    let credentials = context.service.credentials(user, attempt.host).map_err(WireError::Fatal)?;
    let mut exchange = Exchange {
        channel,
        context,
        attempt,
        credentials: &credentials,
        scramble: attempt.scramble,
        answer: attempt.response.auth_response.clone(),
    };
    exchange.switch_plugin()?;
    let using_password = !exchange.answer_is_empty();
    let proved = exchange.check()?;
    if credentials.exists {
        context.service.attempted(user, attempt.host, proved).map_err(WireError::Fatal)?;
    }
    let secure_enough = attempt.secure_transport || !credentials.requires_secure_transport;
    if proved && credentials.exists && secure_enough {
        return Ok(credentials);
    }
    let denied = ServerError::access_denied(user, attempt.host, using_password);
    Err(WireError::Fatal(denied))
}

struct Exchange<'a> {
    channel: &'a mut Channel,
    context: &'a AuthenticationContext<'a>,
    attempt: &'a Attempt<'a>,
    credentials: &'a Credentials,
    scramble: [u8; SCRAMBLE_LENGTH],
    /// The client's answer to `scramble`.
    answer: Vec<u8>,
}

impl Exchange<'_> {
    /// Asks the client to answer with the account's plugin, unless it already has.
    fn switch_plugin(&mut self) -> Result<(), WireError> {
        let plugin = self.credentials.plugin;
        let can_switch = self.channel.capabilities.contains(Capabilities::PLUGIN_AUTH);
        // A client that names no plugin answers with the oldest one.
        let client_plugin =
            self.attempt.response.plugin.as_deref().unwrap_or(AuthPlugin::NativePassword.name());
        if client_plugin == plugin.name() && !(self.attempt.ask_again && can_switch) {
            return Ok(());
        }
        if !can_switch {
            let message = "Client does not support authentication protocol requested by server; \
                           consider upgrading MySQL client";
            return Err(WireError::Fatal(ServerError::new(1251, b"08004", message)));
        }
        self.scramble = scramble();
        let buffer = self.channel.output.begin();
        buffer.put_u8(0xfe);
        buffer.put_zero_terminated(plugin.name().as_bytes());
        buffer.put_zero_terminated(&self.scramble);
        self.channel.output.commit();
        self.channel.flush()?;
        self.answer = self.read()?;
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u8>, WireError> {
        let mut payload = Vec::new();
        self.channel.read_packet(&mut payload, Patience::Deadline(self.attempt.deadline))?;
        Ok(payload)
    }

    /// A client without a password sends no bytes, or the zero that ends an empty string.
    fn answer_is_empty(&self) -> bool {
        matches!(self.answer[..], [] | [0])
    }

    fn check(&mut self) -> Result<bool, WireError> {
        let stored = &self.credentials.authentication_string;
        if stored.is_empty() || self.answer_is_empty() {
            return Ok(stored.is_empty() && self.answer_is_empty());
        }
        match self.credentials.plugin {
            AuthPlugin::NativePassword => Ok(native::verify(stored, &self.scramble, &self.answer)),
            AuthPlugin::CachingSha2Password => self.check_caching_sha2(),
        }
    }

    fn check_caching_sha2(&mut self) -> Result<bool, WireError> {
        let Credentials { account, authentication_string, .. } = self.credentials;
        let digest = self.context.digests.get(account, authentication_string);
        let fast = digest
            .is_some_and(|digest| caching_sha2::verify_fast(&digest, &self.scramble, &self.answer));
        if fast {
            self.send_more_data(&[FAST_AUTH_OK])?;
            return Ok(true);
        }
        self.send_more_data(&[FULL_AUTH_NEEDED])?;
        let Some(password) = self.read_password()? else { return Ok(false) };
        let right = caching_sha2::verify_password(authentication_string, &password);
        if right {
            self.context.digests.insert(account, authentication_string, &password);
        }
        Ok(right)
    }

    /// The password itself; `None` if the client sent something else.
    fn read_password(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let mut sent = self.read()?;
        if self.attempt.secure_transport {
            let terminated = sent.pop() == Some(0) && sent.len() <= MAX_PASSWORD_BYTES;
            return Ok(terminated.then_some(sent));
        }
        if sent == PUBLIC_KEY_REQUEST {
            let Some(key) = self.context.rsa_key.public_pem() else { return Ok(None) };
            self.send_more_data(key.as_bytes())?;
            sent = self.read()?;
        }
        Ok(self.context.rsa_key.decrypt_password(&sent, &self.scramble))
    }

    fn send_more_data(&mut self, data: &[u8]) -> Result<(), WireError> {
        let buffer = self.channel.output.begin();
        buffer.put_u8(1);
        buffer.put(data);
        self.channel.output.commit();
        // The server's OK follows immediately and is sent together with this.
        if data == [FAST_AUTH_OK] { Ok(()) } else { self.channel.flush() }
    }
}
