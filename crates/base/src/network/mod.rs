//! Connections between the processes of a cluster, as the process is given them.
//!
//! ```text
//!   a                                        b
//!   network.connect(address)  ──────────►   listener.accept()
//!   connection.send(&[message])  ───────►   connection.receive(&mut message)
//! ```
//!
//! A connection carries messages, not bytes: a message arrives whole or not at all. What a caller
//! may rely on:
//!
//! * what arrives was sent, and is unchanged: frames carry checksums ([`frame`]);
//! * [`Delivery::InOrder`]: messages arrive in the order in which they were sent, each at most once.
//!   If one is missing, so are all that were sent after it, and the connection has ended;
//! * [`Delivery::Loose`]: messages may be lost, doubled and overtaken. This is for protocols that
//!   number what they say. The system's network keeps the order all the same; the simulated one
//!   does not, and a network of datagrams would not;
//! * every call ends by its timeout. A peer that is dead or cut off is noticed by nothing else.
//!
//! What nobody may rely on: that a message has arrived because [`Connection::send`] returned, that
//! it has not because `send` failed, or that two connections to one peer keep an order between
//! them. Who connects again and repeats a message may have it arrive twice, the older one last.

pub mod frame;
pub mod sockets;
mod system;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use frame::{FrameError, MAX_MESSAGE_BYTES};
pub use system::SystemNetwork;

/// Where a process listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A TCP address; to listen at port 0 asks for any free one.
    Tcp(SocketAddr),
    /// A Unix socket, for processes of one machine.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(formatter),
            Address::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address: write IP:PORT, [IP]:PORT or unix:PATH")]
pub struct NotAnAddress(String);

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        match text.strip_prefix("unix:") {
            Some("") => Err(NotAnAddress(text.to_owned())),
            Some(path) => Ok(Address::Unix(path.into())),
            None => text.parse().map(Address::Tcp).map_err(|_| NotAnAddress(text.to_owned())),
        }
    }
}

/// What a connection promises of its messages, see the module's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// In order, each at most once, none after a missing one.
    InOrder,
    /// In any order, any number of times.
    Loose,
}

/// Why a call did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The peer's machine answers, and nobody listens there.
    #[error("nobody listens at {peer}")]
    Refused {
        /// Who was asked.
        peer: Address,
    },
    /// The time ran out. A connection can be used further, except after a message that was sent in
    /// part: it has then ended.
    #[error("{peer} did not answer in time")]
    TimedOut {
        /// Who was asked.
        peer: Address,
    },
    /// The connection has ended: one of the two sides has closed it or died.
    #[error("the connection to {peer} has ended")]
    Ended {
        /// The other side.
        peer: Address,
    },
    /// The peer sent what is no message. The connection has ended.
    #[error("{peer} sent what is no message: {reason}")]
    Damaged {
        /// The other side.
        peer: Address,
        /// What is wrong with it.
        reason: FrameError,
    },
    /// A message is longer than [`MAX_MESSAGE_BYTES`]. Nothing of it was sent.
    #[error("a message of {bytes} bytes is longer than a message may be")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The operating system refused.
    #[error("{peer}: {source}")]
    System {
        /// The other side, or where the process wanted to listen.
        peer: Address,
        /// What it said.
        source: io::Error,
    },
}

/// What network calls return.
pub type NetworkResult<T> = Result<T, NetworkError>;

/// Opens connections. All calls block.
pub trait Network: Send + Sync {
    /// Listens at an address. A Unix socket that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// [`NetworkError::System`], for instance if somebody else listens there.
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>>;

    /// Connects to the process that listens at `peer`.
    ///
    /// # Errors
    /// [`NetworkError::Refused`], [`NetworkError::TimedOut`], [`NetworkError::System`].
    fn connect(
        &self,
        peer: &Address,
        delivery: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>>;
}

/// Takes connections. Dropping it ends those that nobody has accepted.
pub trait Listener: Send + Sync {
    /// Where it listens, with the port that it was given.
    fn address(&self) -> Address;

    /// The next connection. Blocks until there is one, for `timeout` at most if one is given.
    ///
    /// # Errors
    /// [`NetworkError::TimedOut`]; [`NetworkError::Ended`] after [`Listener::close`];
    /// [`NetworkError::System`].
    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>>;

    /// Takes no more connections: calls that wait and later ones end. Does not block.
    fn close(&self);
}

/// One end of a connection. One thread may send while another receives. Dropping it closes it.
pub trait Connection: Send + Sync {
    /// The other side. Behind a listener this names where the peer called from, which says nothing
    /// about where the peer listens.
    fn peer(&self) -> &Address;

    /// Sends one message, which is put together of `parts`. Blocks while the peer does not keep up.
    /// Threads that send at the same time take turns.
    ///
    /// # Errors
    /// [`NetworkError::TooLong`] leaves the connection as it was. After any other error it has ended,
    /// and whether the message arrives is not known.
    fn send(&self, parts: &[&[u8]], timeout: Duration) -> NetworkResult<()>;

    /// Puts the next message into `message`, in place of what that held. Blocks until there is one,
    /// for `timeout` at most if one is given.
    ///
    /// # Errors
    /// [`NetworkError::TimedOut`], after which the call can be made again; [`NetworkError::Ended`];
    /// [`NetworkError::Damaged`]; [`NetworkError::System`]. `message` is empty after an error.
    fn receive(&self, message: &mut Vec<u8>, timeout: Option<Duration>) -> NetworkResult<()>;

    /// Ends the connection: calls of both sides that wait and later ones end. What was sent before
    /// may still arrive. Does not block.
    fn close(&self);
}

#[cfg(test)]
mod tests;
