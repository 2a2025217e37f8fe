//! Sockets that listen, for clients and for processes of the cluster alike.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::Address;

/// How many connections may wait to be accepted. The system takes the lesser of this and
/// `net.core.somaxconn`, which is 4,096 by default.
const WAITING_CONNECTIONS: i32 = 65_535;

/// A socket that listens; it does not block. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub enum ListeningSocket {
    /// At a TCP address.
    Tcp(TcpListener),
    /// At this path.
    Unix(UnixListener, PathBuf),
}

impl ListeningSocket {
    /// Listens at an address. A Unix socket that nobody listens at any more is replaced.
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
        }
    }

    /// Where it listens, with the port that it was given.
    ///
    /// # Errors
    /// The operating system's.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            ListeningSocket::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            ListeningSocket::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// The next connection and, over TCP, where it comes from; [`io::ErrorKind::WouldBlock`] if
    /// there is none.
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
            // Left behind, it would only be replaced by the next process.
            let _ = fs::remove_file(path);
        }
    }
}

/// The standard library asks for a queue of 128 connections, which thousands that come at once
/// overflow. The system allows that `listen` is called once more.
fn lengthen_queue(listener: &impl AsFd) -> io::Result<()> {
    Ok(rustix::net::listen(listener, WAITING_CONNECTIONS)?)
}

/// Removes a socket file whose process is gone.
fn remove_abandoned(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_socket());
    let refused = || {
        UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if is_socket && refused() {
        // If it cannot be removed, binding fails and says so.
        let _ = fs::remove_file(path);
    }
}
