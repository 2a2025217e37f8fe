//! The operating system's network: TCP and Unix sockets that carry frames.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};

use super::framed::{Deadline, FramedConnection, Stream};
use super::sockets::{self, ListeningSocket};
use super::{Address, Connection, Delivery, Listener, Network, NetworkError, NetworkResult};
use crate::pool_thread;

#[derive(Debug, Default, Clone, Copy)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>> {
        Ok(Box::new(SocketListener::bind(address)?))
    }

    fn connect(
        &self,
        peer: &Address,
        _: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>> {
        let deadline = Deadline::after(Some(timeout));
        let stream = connect(peer, &sockets::resolve(peer, timeout)?, deadline)?;
        Ok(Arc::new(FramedConnection::over(stream, peer.clone())))
    }
}

/// Connects to a peer, which has these addresses.
///
/// # Errors
/// As [`Network::connect`].
pub fn connect(
    peer: &Address,
    addresses: &[Address],
    deadline: Deadline,
) -> NetworkResult<PlainStream> {
    let opened = sockets::connect(addresses, deadline).and_then(PlainStream::open);
    opened.map_err(|error| not_connected(peer, error))
}

/// The error of a connection that could not be opened.
#[must_use]
pub fn not_connected(peer: &Address, source: io::Error) -> NetworkError {
    let peer = peer.clone();
    match source.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
            NetworkError::Refused { peer }
        }
        io::ErrorKind::TimedOut => NetworkError::TimedOut { peer },
        _ => NetworkError::System { peer, source },
    }
}

/// Accepts sockets until it is closed.
pub struct SocketListener {
    socket: ListeningSocket,
    address: Address,
    is_closed: AtomicBool,
}

impl SocketListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// [`NetworkError::System`]
    pub fn bind(address: &Address) -> NetworkResult<SocketListener> {
        let found = sockets::resolve(address, sockets::LISTENING_NAME_TIMEOUT)?;
        SocketListener::bind_first(address, &found)
    }

    /// Listens at the first address that is one of this machine, of those that `address` has.
    ///
    /// # Errors
    /// [`NetworkError::System`]
    pub fn bind_first(address: &Address, found: &[Address]) -> NetworkResult<SocketListener> {
        let refused = |source| NetworkError::System { peer: address.clone(), source };
        let socket = ListeningSocket::bind_first(found).map_err(refused)?;
        let address = socket.address().map_err(refused)?;
        Ok(SocketListener { socket, address, is_closed: AtomicBool::new(false) })
    }

    fn refused(&self, source: io::Error) -> NetworkError {
        match self.is_closed.load(Ordering::SeqCst) {
            true => NetworkError::Ended { peer: self.address.clone() },
            false => NetworkError::System { peer: self.address.clone(), source },
        }
    }

    /// The next socket, and where its peer calls from. See [`Listener::accept`].
    ///
    /// # Errors
    /// As there.
    pub fn accept_socket(&self, timeout: Option<Duration>) -> NetworkResult<(OwnedFd, Address)> {
        let deadline = Deadline::after(timeout);
        loop {
            if self.is_closed.load(Ordering::SeqCst) {
                return Err(NetworkError::Ended { peer: self.address.clone() });
            }
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let peer = from.map_or_else(|| self.address.clone(), Address::Tcp);
                    return Ok((socket, peer));
                }
                // The peer left before it was accepted; accept the next one.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = deadline.wait_for_input(&self.socket);
                    if !waited.map_err(|error| self.refused(error))? {
                        return Err(NetworkError::TimedOut { peer: self.address.clone() });
                    }
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }
}

impl Listener for SocketListener {
    fn address(&self) -> Address {
        self.address.clone()
    }

    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>> {
        let (socket, peer) = self.accept_socket(timeout)?;
        let stream = PlainStream::open(socket).map_err(|error| self.refused(error))?;
        Ok(Arc::new(FramedConnection::over(stream, peer)))
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Wakes the threads that wait in `accept`. A failure has no consequence.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

/// A wait for bytes takes this much longer than asked for, at most.
const PRECISION: Duration = Duration::from_millis(10);

/// A socket whose bytes go as they are. The socket blocks; calls that must not say so.
#[derive(Debug)]
pub struct PlainStream {
    socket: OwnedFd,
    /// How long the socket waits for bytes, in units of [`PRECISION`]; 0: without end.
    patience: AtomicU64,
}

impl PlainStream {
    /// Puts a socket into the mode that a [`Stream`] needs.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(socket: OwnedFd) -> io::Result<PlainStream> {
        sockets::prepare(&socket)?;
        Ok(PlainStream { socket, patience: AtomicU64::new(0) })
    }

    fn receive_with(&self, into: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        loop {
            match rustix::net::recv(&self.socket, &mut *into, flags) {
                Err(Errno::INTR) => {}
                received => return Ok(received?.0),
            }
        }
    }

    /// Sets how long the socket waits for bytes. Connections ask for the same time again and again,
    /// so the system is seldom told. Only the thread that receives calls it.
    fn set_patience(&self, timeout: Option<Duration>) -> io::Result<()> {
        let units = timeout.map_or(0, |timeout| {
            u64::try_from(timeout.as_nanos().div_ceil(PRECISION.as_nanos())).unwrap_or(u64::MAX)
        });
        if self.patience.swap(units, Ordering::Relaxed) != units {
            let timeout = timeout.map(|_| PRECISION.saturating_mul(units.min(1 << 30) as u32));
            sockopt::set_socket_timeout(&self.socket, sockopt::Timeout::Recv, timeout)?;
        }
        Ok(())
    }
}

impl Stream for PlainStream {
    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let mut nothing = SendAncillaryBuffer::default();
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match rustix::net::sendmsg(&self.socket, parts, &mut nothing, flags) {
                Err(Errno::INTR) => {}
                sent => return Ok(sent?),
            }
        }
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        self.receive_with(into, RecvFlags::DONTWAIT)
    }

    fn receive_waiting(&self, into: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        if timeout.is_some_and(|timeout| timeout < 2 * PRECISION) {
            return self.receive(into);
        }
        self.set_patience(timeout)?;
        pool_thread::wait(|| self.receive_with(into, RecvFlags::empty()))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn close(&self) {
        // Wakes the waiting threads; fails only for a connection that has already ended.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}
