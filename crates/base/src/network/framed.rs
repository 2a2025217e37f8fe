//! Frames over a stream of bytes that does not block.
//!
//! A call tries first and waits in the system only if it must, so that a busy connection needs one
//! system call for many small messages. A stream that can wait for bytes as it reads them does so.
//!
//! Latch rule: each direction of a connection has a mutex. The thread that sends or receives holds
//! it while it waits in the system. Nothing else takes these mutexes.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::frame::{FrameError, FrameHeader, HEADER_BYTES};
use super::{Address, Connection, NetworkError, NetworkResult, NodeIdentity};
use crate::{pool_thread, task};

/// Most bytes of one read of a stream: many small messages.
const READ_BYTES: usize = 64 << 10;
/// Memory for a long message grows by this much as its bytes arrive.
const GROWTH_BYTES: usize = 1 << 20;
/// The system takes a limited number of pieces at once.
const MOST_PIECES: usize = 1024;
/// A socket that is ready for output has a third of its buffer free. This many bytes fit into that
/// with every buffer that systems give a connection by default.
const ROOM_BYTES: usize = 16 << 10;

/// Bytes in both directions over a socket. No call blocks: where one would have to, it fails with
/// [`io::ErrorKind::WouldBlock`]. One thread may send while another receives.
pub trait Stream: Send + Sync {
    /// Takes some of the bytes, one at least. What was taken may not be on its way before
    /// [`Stream::flush`].
    ///
    /// # Errors
    /// The operating system's. [`io::ErrorKind::InvalidData`] for a peer that cannot be trusted,
    /// with a text that says why.
    fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Sends all that was taken.
    ///
    /// # Errors
    /// As [`Stream::send`].
    fn flush(&self) -> io::Result<()>;

    /// Reads the bytes that are available; 0: the peer has closed the stream.
    ///
    /// # Errors
    /// As [`Stream::send`].
    fn receive(&self, into: &mut [u8]) -> io::Result<usize>;

    /// As [`Stream::receive`], but may wait for the bytes itself, for about `timeout` at most;
    /// `None`: without end. Then one call of the system does what takes three otherwise.
    ///
    /// # Errors
    /// As [`Stream::receive`].
    fn receive_waiting(&self, into: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let _ = timeout;
        self.receive(into)
    }

    /// The socket, to wait for.
    fn socket(&self) -> BorrowedFd<'_>;

    /// Ends both directions. Does not block.
    fn close(&self);

    /// See [`Connection::certified`].
    fn certified(&self) -> Option<NodeIdentity> {
        None
    }
}

/// The end of a call on the monotonic clock; `None`: never.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Option<Duration>);

impl Deadline {
    /// The end of a call that begins now.
    #[must_use]
    pub fn after(timeout: Option<Duration>) -> Deadline {
        // A deadline that a duration cannot hold counts as none.
        Deadline(timeout.and_then(|timeout| task::monotonic().checked_add(timeout)))
    }

    /// `None`: without end.
    #[must_use]
    pub fn left(self) -> Option<Duration> {
        self.0.map(|deadline| deadline.saturating_sub(task::monotonic()))
    }

    #[must_use]
    pub fn is_over(self) -> bool {
        self.left() == Some(Duration::ZERO)
    }

    /// Waits until a socket can be read or has ended; false if the time ran out.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait_for_input(self, socket: &impl AsFd) -> io::Result<bool> {
        self.wait_for(socket, PollFlags::IN)
    }

    /// Waits until a socket takes bytes or has ended; false if the time ran out.
    ///
    /// # Errors
    /// The operating system's.
    pub fn wait_for_output(self, socket: &impl AsFd) -> io::Result<bool> {
        self.wait_for(socket, PollFlags::OUT)
    }

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

/// Whether a socket takes bytes now.
fn takes_output(socket: &impl AsFd) -> bool {
    let mut sockets = [PollFd::new(socket, PollFlags::OUT)];
    rustix::event::poll(&mut sockets, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(1)
}

/// A connection whose messages are frames on a stream.
pub struct FramedConnection<S> {
    stream: S,
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

impl<S: Stream> FramedConnection<S> {
    /// A connection over a stream that carries nothing else.
    #[must_use]
    pub fn over(stream: S, peer: Address) -> FramedConnection<S> {
        let incoming = Incoming {
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            begun: None,
            payload: Vec::new(),
        };
        FramedConnection {
            stream,
            peer,
            sending: Mutex::new(()),
            receiving: Mutex::new(incoming),
            has_ended: AtomicBool::new(false),
        }
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
            io::ErrorKind::InvalidData => {
                NetworkError::Untrusted { peer: self.peer.clone(), reason: source.to_string() }
            }
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
            let some = &rest[..rest.len().min(MOST_PIECES)];
            match self.stream.send(some) {
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(error) => self.wait_for_room(error, deadline)?,
            }
        }
        while let Err(error) = self.stream.flush() {
            self.wait_for_room(error, deadline)?;
        }
        Ok(())
    }

    /// After an error of sending: waits if the peer only has to read.
    fn wait_for_room(&self, error: io::Error, deadline: Deadline) -> NetworkResult<()> {
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(self.failed(error));
        }
        let waited = deadline.wait_for_output(&self.stream.socket());
        if !waited.map_err(|error| self.failed(error))? {
            self.close();
            return Err(self.timed_out());
        }
        Ok(())
    }

    /// Reads the bytes that are available, once; `Ok(0)`: the peer has closed the connection.
    fn read(&self, into: &mut [u8], deadline: Deadline) -> NetworkResult<usize> {
        loop {
            match self.stream.receive_waiting(into, deadline.left()) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let waited = deadline.wait_for_input(&self.stream.socket());
                    if !waited.map_err(|error| self.failed(error))? {
                        return Err(self.timed_out());
                    }
                }
                Err(error) => return Err(self.failed(error)),
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

impl<S: Stream> Connection for FramedConnection<S> {
    fn peer(&self) -> &Address {
        &self.peer
    }

    fn certified(&self) -> Option<NodeIdentity> {
        self.stream.certified()
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

    fn has_room(&self, bytes: usize) -> bool {
        bytes <= ROOM_BYTES && !self.sending.is_locked() && takes_output(&self.stream.socket())
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
        self.stream.close();
    }
}
