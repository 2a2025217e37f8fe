//! A connection's two byte streams as packets: framing, sequence numbers, compression, TLS,
//! deadlines.
//!
//! ```text
//!   reply ──► Output ──► [compression] ──► ByteStream (socket, or TLS over it)
//!   command ◄── packets ◄── Input ◄── [compression] ◄──┘
//! ```
//!
//! The stream blocks for short slices only ([`SLICE`]). A longer wait is a sequence of slices;
//! between two of them it checks its deadline and whether the connection was told to end.
//!
//! Invariant: a wait that ends early loses no received bytes, so reading a packet can be resumed at
//! any time.

mod compression;
mod input;
mod late;
mod output;
mod socket;
mod stream;
mod tls;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use firn_base::clock::Clock;
use firn_base::memory::{self, NoRoom, Promise, UNASKED_BYTES};

use crate::error::{ServerError, WireError};
use crate::flags::Capabilities;
use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH};

pub(crate) use compression::Compression;
pub use compression::CompressionAlgorithm;
pub(crate) use input::Input;
pub(crate) use late::LateAnswer;
use late::Offer;
pub(crate) use output::{Output, OutputMark};
pub(crate) use socket::Listener;
pub use socket::PeerAddress;
pub(crate) use socket::Socket;
pub(crate) use stream::{ByteStream, MemoryStream};
pub(crate) use tls::TlsAcceptor;
pub use tls::{TlsFiles, TlsInformation, TlsMode};

/// Longest blocking read, and so the time that an idle connection keeps its thread.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Output beyond this size is sent before the reply is complete.
const FLUSH_THRESHOLD_BYTES: usize = 64 << 10;

/// How long to wait for a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Until nothing has arrived for one slice, before the packet or in the middle of it.
    Slice,
    /// Like `Slice`, but no longer than until the clock shows this time.
    SliceUntil(Duration),
    /// Each read may take this long.
    Each(Duration),
    /// Until the clock shows this time.
    Deadline(Duration),
}

/// The result of reading a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// The payload is in the buffer.
    Packet,
    /// No bytes arrived during a slice. The received part of a packet is kept: the next call
    /// continues with it, into the same buffer.
    Idle,
    /// The memory budget has no room for the packet. The packet was discarded, except for its first
    /// bytes (at most [`KEPT_OF_REFUSED_BYTES`]), which are in the buffer.
    Refused(NoRoom),
}

/// Bytes that are kept of a packet for which there is no memory: enough to identify the command.
pub(crate) const KEPT_OF_REFUSED_BYTES: usize = 16;

/// The state of the packet that is being read.
#[derive(Debug, Default)]
enum Reading {
    /// No header has been read, or only a part of one.
    #[default]
    Between,
    /// A part of maximum length was read, so another part's header follows.
    Continued,
    /// In the payload of a part.
    Body { missing: usize, is_last: bool },
}

/// A connection's packets in both directions.
pub(crate) struct Channel {
    stream: Box<dyn ByteStream>,
    input: Input,
    pub(crate) output: Output,
    /// Where the answer to a command is left until its commit is confirmed. `None`: every answer is
    /// sent by the thread that has the connection, because TLS and compression have state.
    late: Option<Arc<LateAnswer>>,
    compression: Option<Compression>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Set by other threads when the connection must end.
    closing: Arc<AtomicBool>,
    /// The capabilities that both sides have.
    pub(crate) capabilities: Capabilities,
    /// Longest time without progress of a write.
    pub(crate) write_timeout: Duration,
    /// Longest time without progress of a read within a command.
    pub(crate) read_timeout: Duration,
    /// The longest payload that is accepted.
    pub(crate) max_packet_bytes: usize,
    /// Whether another process has the client, and counts the packets.
    pub(crate) is_relayed: bool,
    reading: Reading,
    /// Memory for bytes that headers have announced and that have not arrived.
    promise: Promise,
    /// Set while the current packet is discarded for lack of memory.
    refusal: Option<NoRoom>,
    /// Bytes of the current packet that were taken or discarded.
    arrived_bytes: usize,
}

impl Channel {
    pub(crate) fn new(
        stream: Box<dyn ByteStream>,
        clock: Arc<dyn Clock>,
        closing: Arc<AtomicBool>,
    ) -> Channel {
        Channel {
            stream,
            input: Input::default(),
            output: Output::default(),
            late: None,
            compression: None,
            clock,
            closing,
            capabilities: Capabilities::empty(),
            write_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(30),
            max_packet_bytes: 64 << 20,
            is_relayed: false,
            reading: Reading::Between,
            promise: Promise::default(),
            refusal: None,
            arrived_bytes: 0,
        }
    }

    /// Waits for a packet and puts its whole payload into `payload` in place of the former content.
    /// After [`Received::Idle`], the next call needs the same `payload`, which has the part that
    /// was received.
    pub(crate) fn read_packet(
        &mut self,
        payload: &mut Vec<u8>,
        patience: Patience,
    ) -> Result<Received, WireError> {
        loop {
            match self.reading {
                Reading::Between | Reading::Continued => {
                    if !self.require(HEADER_LENGTH, patience)? {
                        return Ok(Received::Idle);
                    }
                    self.begin_part(payload)?;
                }
                Reading::Body { missing, is_last } => {
                    let missing = missing - self.take_body(payload, missing);
                    self.reading = Reading::Body { missing, is_last };
                    if missing > 0 {
                        if !self.wait_for_more(patience)? {
                            return Ok(Received::Idle);
                        }
                    } else if is_last {
                        return Ok(self.end_packet());
                    } else {
                        self.reading = Reading::Continued;
                    }
                }
            }
        }
    }

    /// Reads a header, and reserves memory for the length that it announces.
    fn begin_part(&mut self, payload: &mut Vec<u8>) -> Result<(), WireError> {
        if matches!(self.reading, Reading::Between) {
            payload.clear();
            self.arrived_bytes = 0;
        }
        let length = self.take_header()?;
        if self.arrived_bytes + length > self.max_packet_bytes {
            return Err(WireError::Fatal(ServerError::packet_too_large()));
        }
        if self.refusal.is_none() {
            match memory::ask(length) {
                Ok(promise) => {
                    self.promise = promise;
                    // Reserves address space at once: a buffer that grows piece by piece is copied
                    // as it grows.
                    if length >= UNASKED_BYTES {
                        payload.reserve(length);
                    }
                }
                Err(refusal) => {
                    self.refusal = Some(refusal);
                    payload.truncate(KEPT_OF_REFUSED_BYTES);
                    payload.shrink_to_fit();
                }
            }
        }
        self.reading = Reading::Body { missing: length, is_last: length < MAX_PAYLOAD_LENGTH };
        Ok(())
    }

    /// Consumes the received bytes of a part's payload; returns how many. Memory grows with the
    /// bytes that arrived, not with the length in the header.
    fn take_body(&mut self, payload: &mut Vec<u8>, missing: usize) -> usize {
        let taken = match self.refusal {
            None => {
                let taken = self.input.take_into(payload, missing);
                self.promise.filled(taken);
                taken
            }
            Some(_) => {
                let kept = KEPT_OF_REFUSED_BYTES.saturating_sub(payload.len()).min(missing);
                let kept = self.input.take_into(payload, kept);
                kept + self.input.pass_over(missing - kept)
            }
        };
        self.arrived_bytes += taken;
        taken
    }

    fn end_packet(&mut self) -> Received {
        self.reading = Reading::Between;
        self.promise = Promise::default();
        self.refusal.take().map_or(Received::Packet, Received::Refused)
    }

    /// Begins an exchange: the next packet of either side has number 0.
    pub(crate) fn begin_exchange(&mut self) {
        self.output.sequence = 0;
        if let Some(compression) = &mut self.compression {
            compression.sequence = 0;
        }
    }

    fn take_header(&mut self) -> Result<usize, WireError> {
        let [a, b, c, sequence] = self.input.take_array();
        // Compressed packets have their own numbers, and clients disagree on the inner ones.
        let is_counted = self.compression.is_none() && !self.is_relayed;
        if is_counted && sequence != self.output.sequence {
            return Err(WireError::Fatal(ServerError::packets_out_of_order()));
        }
        self.output.sequence = sequence.wrapping_add(1);
        Ok(u32::from_le_bytes([a, b, c, 0]) as usize)
    }

    /// Waits until `length` bytes were received. False if there are none and `patience` allows
    /// that.
    fn require(&mut self, length: usize, patience: Patience) -> Result<bool, WireError> {
        while self.input.len() < length {
            if !self.wait_for_more(patience)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn wait_for_more(&mut self, patience: Patience) -> Result<bool, WireError> {
        let mut deadline = match patience {
            Patience::Deadline(deadline) | Patience::SliceUntil(deadline) => Some(deadline),
            Patience::Each(_) | Patience::Slice => None,
        };
        loop {
            match self.fill() {
                // A client that sends byte by byte gains no time.
                Ok(()) if deadline.is_some_and(|end| self.clock.monotonic() >= end) => {
                    return Err(WireError::Fatal(ServerError::read_timeout()));
                }
                Ok(()) => return Ok(true),
                Err(WireError::Lost(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.closing.load(Ordering::Relaxed) {
                return Err(WireError::closed());
            }
            let each = match patience {
                Patience::Slice | Patience::SliceUntil(_) => return Ok(false),
                Patience::Each(each) => each,
                Patience::Deadline(_) => Duration::ZERO,
            };
            let now = self.clock.monotonic();
            if now >= *deadline.get_or_insert(now + each.saturating_sub(SLICE)) {
                return Err(WireError::Fatal(ServerError::read_timeout()));
            }
        }
    }

    /// Whether some of the next packet has been received.
    pub(crate) fn has_input(&self) -> bool {
        !self.is_quiet() || !matches!(self.reading, Reading::Between)
    }

    /// Whether nothing of a packet has been received.
    fn is_quiet(&self) -> bool {
        self.input.len() == 0 && self.compression.as_ref().is_none_or(Compression::is_quiet)
    }

    /// Receives some more input, or fails with [`io::ErrorKind::WouldBlock`] when a slice has
    /// passed.
    fn fill(&mut self) -> Result<(), WireError> {
        let received = match &mut self.compression {
            Some(compression) => return compression.fill(&mut *self.stream, &mut self.input),
            None => self.input.fill_from(&mut *self.stream)?,
        };
        if received == 0 { Err(WireError::closed()) } else { Ok(()) }
    }

    /// Sends the gathered output if it exceeds [`FLUSH_THRESHOLD_BYTES`].
    #[inline]
    pub(crate) fn flush_if_full(&mut self) -> Result<(), WireError> {
        if self.is_full() { self.flush() } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.output.committed_length() >= FLUSH_THRESHOLD_BYTES
    }

    /// Lets answers wait for the confirmation of their commits, as long as the stream carries plain
    /// packets.
    pub(crate) fn allow_late_answers(&mut self, late: Option<Arc<LateAnswer>>) {
        self.late = late;
    }

    /// Whether the answer to the running command can wait for a confirmation.
    pub(crate) fn can_answer_late(&self) -> bool {
        self.late.is_some() && self.output.committed_length() == 0
    }

    /// The late answer, if there may be one.
    #[inline]
    fn late_in_use(&self) -> Option<Arc<LateAnswer>> {
        self.late.as_ref().filter(|late| late.is_in_use()).cloned()
    }

    /// Sends the whole answer to a command, or leaves it until its confirmation comes (false).
    pub(crate) fn answer(&mut self) -> Result<bool, WireError> {
        let late = self.late_in_use().filter(|late| late.is_promised());
        if let Some(late) = &late
            && let Some(bytes) = self.output.own_packets()
        {
            match late.offer(bytes) {
                Offer::Left => {
                    self.output.forget_packets();
                    return Ok(false);
                }
                Offer::Send(Ok(())) => {}
                Offer::Send(Err(payload)) => self.output.replace_by_error(&payload),
            }
        }
        let sent = self.flush();
        if let Some(late) = late {
            late.forget();
        }
        sent.map(|()| true)
    }

    /// Whether a late answer has to be finished before the connection gives its thread back.
    pub(crate) fn has_late_answer(&self) -> bool {
        self.late.as_ref().is_some_and(|late| late.is_in_use())
    }

    /// Waits until the next command may begin. Blocks.
    pub(crate) fn wait_for_confirmation(&self) {
        if let Some(late) = self.late_in_use() {
            late.wait_for_confirmation();
        }
    }

    /// Waits until the last answer is confirmed and sent. Blocks.
    pub(crate) fn finish_late_answer(&mut self) -> Result<(), WireError> {
        let Some(late) = self.late_in_use() else { return Ok(()) };
        let rest = late.wait_until_sent();
        late.forget();
        rest.map_or(Ok(()), |rest| self.sender().send(&rest))
    }

    /// Waits until output can follow what was sent (rule 3 of late answers). A command whose output
    /// does not wait for its end waits for its confirmation here.
    fn wait_for_late_answer(&mut self) -> Result<(), WireError> {
        let Some(late) = self.late_in_use() else { return Ok(()) };
        let rest = late.wait_until_sent();
        if late.is_refused() {
            // The output says that all went well, and some of it may be on its way.
            return Err(WireError::closed());
        }
        rest.map_or(Ok(()), |rest| self.sender().send(&rest))
    }

    fn sender(&mut self) -> Sender<'_> {
        Sender {
            stream: &mut *self.stream,
            clock: &*self.clock,
            closing: &self.closing,
            timeout: self.write_timeout,
        }
    }

    /// Sends all committed packets. Blocks while the client does not take them.
    pub(crate) fn flush(&mut self) -> Result<(), WireError> {
        if self.output.committed_length() == 0 {
            return Ok(());
        }
        self.wait_for_late_answer()?;
        let mut sender = Sender {
            stream: &mut *self.stream,
            clock: &*self.clock,
            closing: &self.closing,
            timeout: self.write_timeout,
        };
        let sent = match &mut self.compression {
            None => match self.output.committed_own() {
                Some(bytes) => sender.send(bytes),
                None => self.output.committed().try_for_each(|piece| sender.send(piece)),
            },
            Some(compression) => compression.send(&self.output, &mut sender),
        };
        self.output.clear_committed();
        sent
    }

    /// Compresses both directions from now on.
    pub(crate) fn compress(&mut self, algorithm: CompressionAlgorithm, level: i32) {
        self.late = None;
        self.compression = Some(Compression::new(algorithm, level));
    }

    /// Reads and writes another stream from now on.
    pub(crate) fn set_stream(&mut self, stream: Box<dyn ByteStream>) {
        self.stream = stream;
    }

    /// Starts TLS in both directions. Bytes that were already received belong to it.
    pub(crate) fn start_tls(&mut self, acceptor: &TlsAcceptor) -> Result<(), WireError> {
        self.late = None;
        let early = self.input.take_all();
        let plain = std::mem::replace(&mut self.stream, Box::new(MemoryStream::default()));
        self.stream = acceptor.accept(plain, early)?;
        Ok(())
    }

    /// Parameters of TLS, if it is on.
    pub(crate) fn tls(&self) -> Option<TlsInformation> {
        self.stream.tls()
    }

    /// Announces the end to the client, if the transport can.
    pub(crate) fn close(&mut self) {
        self.stream.close();
    }

    /// Frees the memory that only an active connection needs.
    pub(crate) fn release_buffers(&mut self) {
        self.input.release();
        self.output.release();
        if let Some(compression) = &mut self.compression {
            compression.release();
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }
}

/// Writes everything, slice by slice.
pub(crate) struct Sender<'a> {
    stream: &'a mut dyn ByteStream,
    clock: &'a dyn Clock,
    closing: &'a AtomicBool,
    timeout: Duration,
}

impl Sender<'_> {
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        let mut stalled_since = None;
        loop {
            let written = match bytes {
                [] => self.stream.flush().map(|()| 0),
                _ => self.stream.write(bytes),
            };
            match written {
                Ok(0) if bytes.is_empty() => return Ok(()),
                Ok(0) => return Err(WireError::closed()),
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    stalled_since = None;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let now = self.clock.monotonic();
                    let waited = now.saturating_sub(*stalled_since.get_or_insert(now));
                    if waited >= self.timeout || self.closing.load(Ordering::Relaxed) {
                        return Err(WireError::Lost(io::ErrorKind::TimedOut.into()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
