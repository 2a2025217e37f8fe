//! Listening sockets, for clients and for processes of the cluster alike.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::framed::Deadline;
use super::{Address, NetworkError, NetworkResult};
use crate::task;

/// How many connections may wait to be accepted. The system uses the smaller of this and
/// `net.core.somaxconn`, which is 4,096 by default.
const WAITING_CONNECTIONS: i32 = 65_535;

/// Interval for retrying a full queue of a Unix socket; the system does not report when the queue
/// has room.
const FULL_QUEUE_INTERVAL: Duration = Duration::from_millis(1);

/// How long the resolver has for a name at which a process listens.
pub const LISTENING_NAME_TIMEOUT: Duration = Duration::from_secs(5);

/// Where an address leads now: to itself, or to the addresses of the host that it names. One at
/// least.
///
/// # Errors
/// [`NetworkError::Unresolved`]
pub fn resolve(address: &Address, timeout: Duration) -> NetworkResult<Vec<Address>> {
    let Address::Named(host, port) = address else { return Ok(vec![address.clone()]) };
    let found = host.resolve(timeout).map_err(|error| NetworkError::Unresolved {
        peer: address.clone(),
        reason: error.to_string(),
    })?;
    Ok(found.into_iter().map(|ip| Address::Tcp(SocketAddr::new(ip, *port))).collect())
}

/// Connects a socket to the first of these addresses that takes it. None of them is a name. Each
/// has its share of the time that is left, so that one that is silent does not hide the others.
///
/// # Errors
/// The operating system's about the last address; [`io::ErrorKind::TimedOut`].
pub fn connect(addresses: &[Address], deadline: Deadline) -> io::Result<OwnedFd> {
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for (address, untried) in addresses.iter().zip((1..=addresses.len() as u32).rev()) {
        let left = deadline.left().unwrap_or(Duration::MAX);
        outcome = connect_once(address, left / untried);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn connect_once(address: &Address, timeout: Duration) -> io::Result<OwnedFd> {
    match address {
        // The standard library refuses a timeout of zero.
        Address::Tcp(address) => {
            TcpStream::connect_timeout(address, timeout.max(Duration::from_micros(1)))
                .map(OwnedFd::from)
        }
        Address::Unix(path) => connect_unix(path, timeout),
        Address::Named(..) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

fn connect_unix(path: &Path, timeout: Duration) -> io::Result<OwnedFd> {
    let deadline = task::monotonic().checked_add(timeout);
    let is_over = || deadline.is_some_and(|deadline| task::monotonic() >= deadline);
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN) if is_over() => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::AGAIN) => task::sleep(FULL_QUEUE_INTERVAL),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes a connected socket blocking. Over TCP, small messages leave at once, and the system
/// looks after a peer that is silent.
///
/// # Errors
/// The operating system's.
pub fn prepare(socket: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(socket, false)?;
    if sockopt::socket_domain(socket)? != AddressFamily::UNIX {
        sockopt::set_tcp_nodelay(socket, true)?;
        sockopt::set_socket_keepalive(socket, true)?;
    }
    Ok(())
}

/// A listening socket in non-blocking mode. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub enum ListeningSocket {
    Tcp(TcpListener),
    /// The file of the socket.
    Unix(UnixListener, PathBuf),
}

impl ListeningSocket {
    /// Listens at an address. Replaces a Unix socket that has no listener any more.
    ///
    /// # Errors
    /// The operating system's.
    pub fn bind(address: &Address) -> io::Result<ListeningSocket> {
        match address {
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                lengthen_queue(&listener)?;
                listener.set_nonblocking(true)?;
                Ok(ListeningSocket::Tcp(listener))
            }
            Address::Unix(path) => {
                remove_abandoned(path);
                let listener = UnixListener::bind(path)?;
                lengthen_queue(&listener)?;
                listener.set_nonblocking(true)?;
                Ok(ListeningSocket::Unix(listener, path.clone()))
            }
            Address::Named(..) => {
                let found = resolve(address, LISTENING_NAME_TIMEOUT).map_err(io::Error::other)?;
                ListeningSocket::bind_first(&found)
            }
        }
    }

    /// Listens at the first of these addresses that is one of this machine.
    ///
    /// # Errors
    /// The operating system's about the last one.
    pub fn bind_first(addresses: &[Address]) -> io::Result<ListeningSocket> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for address in addresses {
            outcome = ListeningSocket::bind(address);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// The listening address, with the port that the system chose.
    ///
    /// # Errors
    /// The operating system's.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            ListeningSocket::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            ListeningSocket::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// Accepts the next connection and, over TCP, returns its peer address;
    /// [`io::ErrorKind::WouldBlock`] if there is none.
    ///
    /// # Errors
    /// The operating system's.
    pub fn accept(&self) -> io::Result<(OwnedFd, Option<SocketAddr>)> {
        match self {
            ListeningSocket::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                Ok((stream.into(), Some(address)))
            }
            ListeningSocket::Unix(listener, _) => Ok((listener.accept()?.0.into(), None)),
        }
    }
}

impl AsFd for ListeningSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ListeningSocket::Tcp(listener) => listener.as_fd(),
            ListeningSocket::Unix(listener, _) => listener.as_fd(),
        }
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        if let ListeningSocket::Unix(_, path) = self {
            // A file that stays behind is replaced by the next process.
            let _ = fs::remove_file(path);
        }
    }
}

/// The standard library asks for a queue of 128 connections, which overflows when thousands arrive
/// at once. The system allows a second call of `listen`.
fn lengthen_queue(listener: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(listener, WAITING_CONNECTIONS)?)
}

/// Removes the file of a socket whose process has ended.
fn remove_abandoned(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let refused = || {
        UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if is_socket && refused() {
        // If the file cannot be removed, binding fails and reports the reason.
        let _ = fs::remove_file(path);
    }
}
