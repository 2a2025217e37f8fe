//! Connections between the processes of a cluster, injected into the process.
//!
//! ```text
//!   a                                        b
//!   network.connect(address)  ──────────►   listener.accept()
//!   connection.send(&[message])  ───────►   connection.receive(&mut message)
//! ```
//!
//! A connection carries messages, not bytes: a message arrives whole or not at all. A caller may
//! rely on this:
//!
//! * a message that arrives was sent, and is unchanged: frames carry checksums ([`frame`]);
//! * [`Delivery::InOrder`]: messages arrive in the order of sending, each at most once. If one is
//!   missing, all later ones are missing too, and the connection has ended;
//! * [`Delivery::Loose`]: messages may be lost, duplicated and reordered. This is for protocols
//!   that number their messages. The system's network keeps the order all the same; the simulated
//!   network does not, and a network of datagrams would not;
//! * every call ends by its timeout. Nothing else detects a peer that is dead or cut off.
//!
//! A caller may not rely on this: that a message has arrived because [`Connection::send`] returned,
//! that it has not arrived because `send` failed, or that messages of two connections to one peer
//! keep any order. A message that is repeated on a new connection may arrive twice, the older copy
//! last.

pub mod frame;
pub mod framed;
pub mod host;
pub mod identity;
pub mod sockets;
pub mod system;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use frame::{FrameError, MAX_MESSAGE_BYTES};
pub use host::HostName;
pub use identity::{ClusterId, NodeId, NodeIdentity, Role, Roles};
pub use system::SystemNetwork;

/// Where a process listens, or where others reach it. It is stored and sent as the text that people
/// write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Address {
    /// A TCP address. Listening at port 0 asks for any free port.
    Tcp(SocketAddr),
    /// A TCP port of the host of this name. The name is resolved each time that a connection is
    /// made, so the host may move.
    Named(HostName, u16),
    /// A Unix socket, for processes of one machine.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(formatter),
            Address::Named(host, port) => write!(formatter, "{host}:{port}"),
            Address::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an address; write IP:PORT, [IP]:PORT, NAME:PORT or unix:PATH")]
pub struct NotAnAddress(String);

impl Address {
    /// The port, if it is that of TCP.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Tcp(address) => Some(address.port()),
            Address::Named(_, port) => Some(*port),
            Address::Unix(_) => None,
        }
    }

    /// A name with a port.
    fn named(text: &str) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Address::Named(host.parse().ok()?, port.parse().ok()?))
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Tcp(address)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl TryFrom<String> for Address {
    type Error = NotAnAddress;

    fn try_from(text: String) -> Result<Address, NotAnAddress> {
        text.parse()
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NotAnAddress(text.to_owned())),
            Some(path) => Ok(Address::Unix(path.into())),
            None => match text.parse() {
                Ok(address) => Ok(Address::Tcp(address)),
                Err(_) => Address::named(text).ok_or_else(|| NotAnAddress(text.to_owned())),
            },
        }
    }
}

/// What a connection promises about its messages; see the module's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In order, each at most once, none after a missing one.
    InOrder,
    /// In any order, any number of times.
    Loose,
}

/// Why a network call failed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The peer's machine answers, but no process listens there.
    #[error("no process listens at {peer}; start it, or check the address")]
    Refused { peer: Address },
    /// The name in the address leads nowhere now.
    #[error("the name in {peer} cannot be resolved: {reason}; check it, or wait until it is known")]
    Unresolved {
        peer: Address,
        /// What the resolver says.
        reason: String,
    },
    /// The time ran out. The connection stays usable, unless a message was sent in part: then the
    /// connection has ended.
    #[error("{peer} did not answer in time")]
    TimedOut { peer: Address },
    /// The connection has ended: one of the two sides has closed it or died.
    #[error("the connection to {peer} has ended")]
    Ended { peer: Address },
    /// The peer sent bytes that are not a message. The connection has ended.
    #[error("{peer} sent bytes that are not a message: {reason}")]
    Damaged { peer: Address, reason: FrameError },
    /// The peer, or the way to it, cannot be trusted. The connection has ended, or was not made.
    #[error("{peer}: {reason}")]
    Untrusted {
        peer: Address,
        /// What happened and what to do.
        reason: String,
    },
    /// A message is longer than [`MAX_MESSAGE_BYTES`]. Nothing of it was sent.
    #[error("a message of {bytes} bytes exceeds the limit of {MAX_MESSAGE_BYTES} bytes")]
    TooLong { bytes: usize },
    /// The operating system refused.
    #[error("{peer}: {source}")]
    System {
        /// The peer, or the address to listen at.
        peer: Address,
        source: io::Error,
    },
}

pub type NetworkResult<T> = Result<T, NetworkError>;

/// Opens connections. All calls block.
pub trait Network: Send + Sync {
    /// Listens at an address. Replaces a Unix socket that has no listener any more.
    ///
    /// # Errors
    /// [`NetworkError::System`], for instance if another process listens there;
    /// [`NetworkError::Unresolved`]; [`NetworkError::Untrusted`].
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>>;

    /// Connects to the process that listens at `peer`. A name is resolved within the timeout; the
    /// addresses that it has are tried one after the other.
    ///
    /// # Errors
    /// [`NetworkError::Refused`], [`NetworkError::Unresolved`], [`NetworkError::TimedOut`],
    /// [`NetworkError::Untrusted`], [`NetworkError::System`].
    fn connect(
        &self,
        peer: &Address,
        delivery: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>>;
}

/// Accepts connections. Dropping it ends the connections that were not accepted.
pub trait Listener: Send + Sync {
    /// The listening address, with the port that the system chose.
    fn address(&self) -> Address;

    /// The next connection. Blocks until there is one, for `timeout` at most if one is given.
    ///
    /// # Errors
    /// [`NetworkError::TimedOut`]; [`NetworkError::Ended`] after [`Listener::close`];
    /// [`NetworkError::System`].
    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>>;

    /// Stops accepting: waiting and later calls of [`Listener::accept`] end. Does not block.
    fn close(&self);
}

/// One end of a connection. One thread may send while another receives. Dropping it closes the
/// connection.
pub trait Connection: Send + Sync {
    /// The other side. On the listener's side this is the address that the peer called from, which
    /// may differ from the address where the peer listens.
    fn peer(&self) -> &Address;

    /// Who the peer is by its certificate. `None` if the connection has no certificates, or has not
    /// received anything yet.
    fn certified(&self) -> Option<NodeIdentity> {
        None
    }

    /// Sends one message, the concatenation of `parts`. Blocks while the peer does not keep up.
    /// Threads that send at the same time take turns.
    ///
    /// # Errors
    /// [`NetworkError::TooLong`] leaves the connection as it was. After any other error the
    /// connection has ended, and the message may or may not arrive.
    fn send(&self, parts: &[&[u8]], timeout: Duration) -> NetworkResult<()>;

    /// Whether a message of this length would be sent now without waiting for the peer. A
    /// connection that cannot tell says no. Does not block.
    fn has_room(&self, bytes: usize) -> bool {
        let _ = bytes;
        false
    }

    /// Replaces the content of `message` with the next message. Blocks until there is one, for
    /// `timeout` at most if one is given.
    ///
    /// # Errors
    /// [`NetworkError::TimedOut`], after which the call can be repeated; [`NetworkError::Ended`];
    /// [`NetworkError::Damaged`]; [`NetworkError::Untrusted`]; [`NetworkError::System`]. `message`
    /// is empty after an error.
    fn receive(&self, message: &mut Vec<u8>, timeout: Option<Duration>) -> NetworkResult<()>;

    /// Ends the connection: waiting and later calls of both sides end. Messages that were sent
    /// before may still arrive. Does not block.
    fn close(&self);
}

#[cfg(test)]
mod tests;
