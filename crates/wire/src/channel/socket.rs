//! Sockets: TCP or Unix, which differ only in their addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use firn_base::network::Address;
use firn_base::network::sockets::ListeningSocket;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown};

use super::SLICE;
use super::stream::ByteStream;

/// Origin of a client's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerAddress {
    /// Over TCP, from this address.
    Tcp(SocketAddr),
    /// Over the Unix socket.
    Unix,
}

impl PeerAddress {
    /// The host as accounts name it: an address, or `localhost` for the Unix socket.
    #[must_use]
    pub fn host(&self) -> String {
        match self {
            PeerAddress::Tcp(address) => address.ip().to_canonical().to_string(),
            PeerAddress::Unix => "localhost".to_owned(),
        }
    }

    /// The address, for TCP.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            PeerAddress::Tcp(address) => Some(address.ip().to_canonical()),
            PeerAddress::Unix => None,
        }
    }
}

impl std::fmt::Display for PeerAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PeerAddress::Tcp(address) => address.fmt(formatter),
            PeerAddress::Unix => formatter.write_str("localhost"),
        }
    }
}

/// A connected socket. Reads and writes block for one slice at most.
#[derive(Debug)]
pub(crate) struct Socket {
    descriptor: OwnedFd,
    is_tcp: bool,
    /// Bytes received and sent. Only the thread that receives, or sends, adds to them.
    received: AtomicU64,
    sent: AtomicU64,
}

/// Adds to a counter that no other thread writes.
fn add(counter: &AtomicU64, more: usize) {
    counter.store(counter.load(Ordering::Relaxed) + more as u64, Ordering::Relaxed);
}

impl Socket {
    pub(super) fn new(descriptor: OwnedFd, is_tcp: bool) -> io::Result<Socket> {
        sockopt::set_socket_timeout(&descriptor, Timeout::Recv, Some(SLICE))?;
        sockopt::set_socket_timeout(&descriptor, Timeout::Send, Some(SLICE))?;
        if is_tcp {
            sockopt::set_tcp_nodelay(&descriptor, true)?;
            sockopt::set_socket_keepalive(&descriptor, true)?;
        }
        Ok(Socket { descriptor, is_tcp, received: AtomicU64::new(0), sent: AtomicU64::new(0) })
    }

    /// Bytes received and sent so far.
    pub(crate) fn traffic(&self) -> (u64, u64) {
        (self.received.load(Ordering::Relaxed), self.sent.load(Ordering::Relaxed))
    }

    /// Acknowledges received data at once. A client with Nagle's algorithm holds its next packet
    /// back until then, and the system would wait up to 40 ms for a reply to carry the
    /// acknowledgement.
    pub(crate) fn acknowledge(&self) {
        if self.is_tcp {
            // If this fails, the client only waits longer.
            let _ = sockopt::set_tcp_quickack(&self.descriptor, true);
        }
    }

    /// Sends some bytes, or fails with [`io::ErrorKind::WouldBlock`] at once.
    pub(super) fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = rustix::net::send(&self.descriptor, bytes, flags)?;
        add(&self.sent, sent);
        Ok(sent)
    }

    /// Stops receiving: current and later reads return the end of the stream. Replies still go out.
    pub(crate) fn shut_down_reading(&self) {
        // Fails only for a connection that is gone already.
        let _ = rustix::net::shutdown(&self.descriptor, Shutdown::Read);
    }

    pub(crate) fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.descriptor, Shutdown::Both);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl ByteStream for Arc<Socket> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (received, _) = rustix::net::recv(&self.descriptor, buffer, RecvFlags::empty())?;
        add(&self.received, received);
        Ok(received)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = rustix::net::send(&self.descriptor, bytes, SendFlags::NOSIGNAL)?;
        add(&self.sent, sent);
        Ok(sent)
    }
}

/// A listening socket. Accepting does not block.
#[derive(Debug)]
pub(crate) struct Listener(ListeningSocket);

impl Listener {
    pub(crate) fn bind(address: &Address) -> io::Result<Listener> {
        ListeningSocket::bind(address).map(Listener)
    }

    /// The address, with the port that the system has chosen.
    pub(crate) fn address(&self) -> io::Result<Address> {
        self.0.address()
    }

    /// The next client, or [`io::ErrorKind::WouldBlock`].
    pub(crate) fn accept(&self) -> io::Result<(Socket, PeerAddress)> {
        let (descriptor, from) = self.0.accept()?;
        let peer = from.map_or(PeerAddress::Unix, PeerAddress::Tcp);
        Ok((Socket::new(descriptor, from.is_some())?, peer))
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
