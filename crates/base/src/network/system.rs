//! The operating system's network: TCP and Unix sockets that carry frames.
//!
//! Sockets do not block. A call tries first and waits in the system only if it must, so that a busy
//! connection needs one system call for many small messages.
//!
//! Latch rule: each direction of a connection has a mutex. The thread that sends or receives holds
//! it while it waits in the system. Nothing else takes these mutexes.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrUnix,
    SocketFlags, SocketType, sockopt,
};

use super::frame::{FrameError, FrameHeader, HEADER_BYTES};
use super::sockets::ListeningSocket;
use super::{Address, Connection, Delivery, Listener, Network, NetworkError, NetworkResult};
use crate::{pool_thread, task};

/// Most bytes of one read of a socket: many small messages.
const READ_BYTES: usize = 64 << 10;
/// Memory for a long message grows by this much as its bytes arrive.
const GROWTH_BYTES: usize = 1 << 20;
/// Interval for retrying a full queue of a Unix socket; the system does not report when the queue
/// has room.
const FULL_QUEUE_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Debug, Default, Clone, Copy)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn listen(&self, address: &Address) -> NetworkResult<Box<dyn Listener>> {
        let refused = |source| NetworkError::System { peer: address.clone(), source };
        let socket = ListeningSocket::bind(address).map_err(refused)?;
        let address = socket.address().map_err(refused)?;
        Ok(Box::new(SystemListener { socket, address, is_closed: AtomicBool::new(false) }))
    }

    fn connect(
        &self,
        peer: &Address,
        _: Delivery,
        timeout: Duration,
    ) -> NetworkResult<Arc<dyn Connection>> {
        let connected = match peer {
            // The standard library refuses a timeout of zero.
            Address::Tcp(address) => {
                TcpStream::connect_timeout(address, timeout.max(Duration::from_micros(1)))
                    .map(OwnedFd::from)
            }
            Address::Unix(path) => connect_unix(path, Deadline::after(Some(timeout))),
        };
        let opened = connected.and_then(|socket| SystemConnection::open(socket, peer.clone()));
        match opened {
            Ok(connection) => Ok(Arc::new(connection)),
            Err(source) => Err(match source.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => {
                    NetworkError::Refused { peer: peer.clone() }
                }
                io::ErrorKind::TimedOut => NetworkError::TimedOut { peer: peer.clone() },
                _ => NetworkError::System { peer: peer.clone(), source },
            }),
        }
    }
}

fn connect_unix(path: &std::path::Path, deadline: Deadline) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN) if deadline.is_over() => return Err(io::ErrorKind::TimedOut.into()),
            Err(Errno::AGAIN) => task::sleep(FULL_QUEUE_INTERVAL),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The end of a call on the monotonic clock; `None`: never.
#[derive(Debug, Clone, Copy)]
struct Deadline(Option<Duration>);

impl Deadline {
    fn after(timeout: Option<Duration>) -> Deadline {
        // A deadline that a duration cannot hold counts as none.
        Deadline(timeout.and_then(|timeout| task::monotonic().checked_add(timeout)))
    }

    fn left(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_sub(task::monotonic()))
    }

    fn is_over(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Waits until a socket can do something or has ended; false if the time ran out.
    fn wait_for(self, socket: &impl AsFd, what: PollFlags) -> io::Result<bool> {
        loop {
            let left = self.left().map(|left| Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            });
            let mut sockets = [PollFd::new(socket, what)];
            match pool_thread::wait(|| rustix::event::poll(&mut sockets, left.as_ref())) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

struct SystemListener {
    socket: ListeningSocket,
    address: Address,
    is_closed: AtomicBool,
}

impl SystemListener {
    fn refused(&self, source: io::Error) -> NetworkError {
        match self.is_closed.load(Ordering::SeqCst) {
            true => NetworkError::Ended { peer: self.address.clone() },
            false => NetworkError::System { peer: self.address.clone(), source },
        }
    }
}

impl Listener for SystemListener {
    fn address(&self) -> Address {
        self.address.clone()
    }

    fn accept(&self, timeout: Option<Duration>) -> NetworkResult<Arc<dyn Connection>> {
        let deadline = Deadline::after(timeout);
        loop {
            if self.is_closed.load(Ordering::SeqCst) {
                return Err(NetworkError::Ended { peer: self.address.clone() });
            }
            match self.socket.accept() {
                Ok((socket, from)) => {
                    let peer = from.map_or_else(|| self.address.clone(), Address::Tcp);
                    let connection = SystemConnection::open(socket, peer);
                    return Ok(Arc::new(connection.map_err(|error| self.refused(error))?));
                }
                // The peer left before it was accepted; accept the next one.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = deadline.wait_for(&self.socket, PollFlags::IN);
                    if !waited.map_err(|error| self.refused(error))? {
                        return Err(NetworkError::TimedOut { peer: self.address.clone() });
                    }
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        // Wakes the threads that wait in `accept`. A failure has no consequence.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

struct SystemConnection {
    socket: OwnedFd,
    peer: Address,
    sending: Mutex<()>,
    receiving: Mutex<Incoming>,
    has_ended: AtomicBool,
}

/// Bytes that were read from the socket and not yet received.
struct Incoming {
    buffer: Box<[u8]>,
    /// Where in the buffer the next bytes lie.
    start: usize,
    end: usize,
    /// The message whose header was read, and the part of it that has arrived.
    begun: Option<FrameHeader>,
    payload: Vec<u8>,
}

impl SystemConnection {
    fn open(socket: OwnedFd, peer: Address) -> io::Result<SystemConnection> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        if let Address::Tcp(_) = peer {
            sockopt::set_tcp_nodelay(&socket, true)?;
            sockopt::set_socket_keepalive(&socket, true)?;
        }
        let incoming = Incoming {
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            begun: None,
            payload: Vec::new(),
        };
        Ok(SystemConnection {
            socket,
            peer,
            sending: Mutex::new(()),
            receiving: Mutex::new(incoming),
            has_ended: AtomicBool::new(false),
        })
    }

    fn ended(&self) -> NetworkError {
        NetworkError::Ended { peer: self.peer.clone() }
    }

    fn timed_out(&self) -> NetworkError {
        NetworkError::TimedOut { peer: self.peer.clone() }
    }

    /// An error of the system: most say that the connection is gone.
    fn failed(&self, source: io::Error) -> NetworkError {
        let has_ended = self.has_ended.load(Ordering::SeqCst);
        self.close();
        match source.kind() {
            io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::NotConnected => self.ended(),
            _ if has_ended => self.ended(),
            io::ErrorKind::TimedOut => self.timed_out(),
            _ => NetworkError::System { peer: self.peer.clone(), source },
        }
    }

    fn damaged(&self, reason: FrameError) -> NetworkError {
        self.close();
        NetworkError::Damaged { peer: self.peer.clone(), reason }
    }

    /// Sends all of `parts`, or ends the connection.
    fn send_all(&self, parts: &mut [IoSlice<'_>], deadline: Deadline) -> NetworkResult<()> {
        let mut rest = parts;
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let mut nothing = SendAncillaryBuffer::default();
            // The system takes a limited number of pieces at once.
            let some = &rest[..rest.len().min(1024)];
            match rustix::net::sendmsg(&self.socket, some, &mut nothing, SendFlags::NOSIGNAL) {
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let waited = deadline.wait_for(&self.socket, PollFlags::OUT);
                    if !waited.map_err(|error| self.failed(error))? {
                        self.close();
                        return Err(self.timed_out());
                    }
                }
                Err(error) => return Err(self.failed(error.into())),
            }
        }
        Ok(())
    }

    /// Reads the bytes that are available, once; `Ok(0)`: the peer has closed the connection.
    fn read(&self, into: &mut [u8], deadline: Deadline) -> NetworkResult<usize> {
        loop {
            match rustix::net::recv(&self.socket, &mut *into, RecvFlags::empty()) {
                Ok((read, _)) => return Ok(read),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let waited = deadline.wait_for(&self.socket, PollFlags::IN);
                    if !waited.map_err(|error| self.failed(error))? {
                        return Err(self.timed_out());
                    }
                }
                Err(error) => return Err(self.failed(error.into())),
            }
        }
    }

    /// Reads until the header of the next message is complete.
    fn read_header(
        &self,
        incoming: &mut Incoming,
        deadline: Deadline,
    ) -> NetworkResult<FrameHeader> {
        while incoming.end - incoming.start < HEADER_BYTES {
            incoming.buffer.copy_within(incoming.start..incoming.end, 0);
            (incoming.start, incoming.end) = (0, incoming.end - incoming.start);
            let read = self.read(&mut incoming.buffer[incoming.end..], deadline)?;
            if read == 0 {
                return Err(match incoming.end {
                    0 => self.ended(),
                    _ => self.damaged(FrameError::Incomplete),
                });
            }
            incoming.end += read;
        }
        let bytes = &incoming.buffer[incoming.start..][..HEADER_BYTES];
        let bytes = bytes.try_into().expect("a slice of a header's length");
        let header = FrameHeader::decode(bytes).map_err(|reason| self.damaged(reason))?;
        incoming.start += HEADER_BYTES;
        incoming.payload.clear();
        incoming.begun = Some(header);
        Ok(header)
    }

    /// Reads until a message is complete.
    fn read_payload(
        &self,
        incoming: &mut Incoming,
        header: FrameHeader,
        deadline: Deadline,
    ) -> NetworkResult<()> {
        let buffered = (incoming.end - incoming.start).min(header.length - incoming.payload.len());
        let from = &incoming.buffer[incoming.start..][..buffered];
        incoming.payload.extend_from_slice(from);
        incoming.start += buffered;
        while incoming.payload.len() < header.length {
            let had = incoming.payload.len();
            incoming.payload.resize(header.length.min(had + GROWTH_BYTES), 0);
            let read = self.read(&mut incoming.payload[had..], deadline);
            incoming.payload.truncate(had + read.as_ref().map_or(0, |read| *read));
            if read? == 0 {
                return Err(self.damaged(FrameError::Incomplete));
            }
        }
        header.check(&incoming.payload).map_err(|reason| self.damaged(reason))
    }
}

impl Connection for SystemConnection {
    fn peer(&self) -> &Address {
        &self.peer
    }

    fn send(&self, parts: &[&[u8]], timeout: Duration) -> NetworkResult<()> {
        let Some(header) = FrameHeader::of(parts) else {
            let bytes = parts.iter().map(|part| part.len()).sum();
            return Err(NetworkError::TooLong { bytes });
        };
        let header = header.encode();
        let mut slices = Vec::with_capacity(1 + parts.len());
        slices.push(IoSlice::new(&header));
        slices.extend(parts.iter().map(|part| IoSlice::new(part)));
        let deadline = Deadline::after(Some(timeout));
        let Some(_turn) = self.sending.try_lock_for(timeout) else {
            self.close();
            return Err(self.timed_out());
        };
        if self.has_ended.load(Ordering::SeqCst) {
            return Err(self.ended());
        }
        self.send_all(&mut slices, deadline)
    }

    fn receive(&self, message: &mut Vec<u8>, timeout: Option<Duration>) -> NetworkResult<()> {
        message.clear();
        let deadline = Deadline::after(timeout);
        let mut incoming = self.receiving.lock();
        let header = match incoming.begun {
            Some(header) => header,
            None => self.read_header(&mut incoming, deadline)?,
        };
        self.read_payload(&mut incoming, header, deadline)?;
        incoming.begun = None;
        // The caller's memory serves the message after this one.
        std::mem::swap(message, &mut incoming.payload);
        Ok(())
    }

    fn close(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        // Wakes the waiting threads; fails only for a connection that has already ended.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}
