//! The exchange before the first command: greeting, TLS, response, password.
//!
//! ```text
//!   server: greeting (version 10) with a challenge
//!   client: [SSL request, TLS begins]  handshake response: user, challenge response, schema, …
//!   server: [auth switch request]      client: [response to another challenge, by another plugin]
//!   server: [more data]                client: [more data]          caching_sha2_password
//!   server: OK or ERR
//! ```

mod exchange;
mod greeting;
mod response;

pub(crate) use exchange::{Attempt, AuthenticationContext, authenticate};
pub(crate) use greeting::{SUPPORTED, put_greeting};
pub(crate) use response::{ClientHello, HandshakeResponse, decode_change_user};

#[cfg(test)]
mod tests;
