//! Answers that travel: a session in one process answers a client whose connection another process
//! has.
//!
//! ```text
//!   session ─► Replies ─► RelayChannel ─► RelayStream ── bytes ──► Replies::relay ─► client
//!                              ▲                                        │
//!                              └──────────── a file's content ◄─────────┘  LOAD DATA LOCAL
//! ```
//!
//! The bytes are whole packets, one behind the other, but they may be cut anywhere on their way.
//! The process that has the client numbers them again, and adds compression and TLS. It sends a
//! packet to the client once all of it has arrived, so an answer that is cut off ends with a whole
//! packet and an error can follow.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use firn_base::clock::Clock;

use crate::channel::{ByteStream, Channel, MemoryStream};
use crate::error::{ServerError, WireError};
use crate::flags::{Capabilities, Status};
use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH, PayloadWriter};

use super::local_infile::LocalInfile;
use super::result_set::CursorRows;
use super::{Progress, Replies, RowFormat};

/// Takes the bytes of answers to the process that has the client, and brings the bytes of files
/// from there.
pub trait RelayStream: Send {
    /// Takes some of the bytes. Fails with [`io::ErrorKind::WouldBlock`] if none could be taken
    /// within 100 ms.
    ///
    /// # Errors
    /// Others if the client is gone.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Bytes of the file that the last packet has asked for; 0 at its end. Fails with
    /// [`io::ErrorKind::WouldBlock`] if none have come within 100 ms.
    ///
    /// # Errors
    /// Others if the client is gone.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
}

/// Content of a file as packets.
struct Framed {
    stream: Box<dyn RelayStream>,
    /// The packet that is being read, and how much of it was.
    packet: Vec<u8>,
    read: usize,
}

/// Longer than anybody waits, and short enough to be added to a time.
const PATIENCE: Duration = Duration::from_secs(u32::MAX as u64);

/// Content of a file that one packet has.
const FILE_PACKET_BYTES: usize = 64 << 10;

impl ByteStream for Framed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.packet.len() {
            self.packet.resize(HEADER_LENGTH + FILE_PACKET_BYTES, 0);
            self.read = self.packet.len();
            let length = self.stream.read(&mut self.packet[HEADER_LENGTH..])?;
            let [a, b, c, ..] = (length as u32).to_le_bytes();
            self.packet[..HEADER_LENGTH].copy_from_slice(&[a, b, c, 0]);
            self.packet.truncate(HEADER_LENGTH + length);
            self.read = 0;
        }
        let taken = io::Read::read(&mut &self.packet[self.read..], buffer)?;
        self.read += taken;
        Ok(taken)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }
}

/// The answers of a session whose client another process has.
pub struct RelayChannel {
    channel: Channel,
}

/// The end of a statement whose rows a cursor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorEnd {
    /// The status at the end of the statement.
    pub status: Status,
    pub warnings: u16,
}

/// Rows of a cursor on their way to the process that has the client.
pub struct RelayedRows(CursorRows);

impl RelayedRows {
    #[must_use]
    pub fn end(&self) -> CursorEnd {
        CursorEnd { status: self.0.status, warnings: self.0.warnings }
    }
}

impl RelayChannel {
    /// A channel of a connection, whose client has these capabilities. `closing` is set when the
    /// connection must end ([`ConnectionControl::closing`](crate::ConnectionControl::closing)).
    #[must_use]
    pub fn new(
        closing: &Arc<AtomicBool>,
        capabilities: Capabilities,
        clock: Arc<dyn Clock>,
    ) -> RelayChannel {
        let nowhere = Box::new(MemoryStream::default());
        let mut channel = Channel::new(nowhere, clock, Arc::clone(closing));
        channel.capabilities = capabilities;
        channel.is_relayed = true;
        // The process that has the client is the one with patience for it.
        channel.read_timeout = PATIENCE;
        RelayChannel { channel }
    }

    /// Runs a command of a session, whose answer goes to `stream`. With `wants_cursor` the rows of
    /// the first result set are returned, for [`RelayChannel::send_rows`].
    ///
    /// # Errors
    /// Those of `answer`; what was answered before has been sent.
    pub fn answer(
        &mut self,
        stream: Box<dyn RelayStream>,
        format: RowFormat,
        wants_cursor: bool,
        answer: impl FnOnce(&mut Replies<'_>) -> Result<(), WireError>,
    ) -> Result<Option<RelayedRows>, WireError> {
        self.channel.output = Default::default();
        self.channel.output.sequence = 1;
        self.channel.set_stream(Box::new(Framed { stream, packet: Vec::new(), read: 0 }));
        let mut cursor = None;
        let mut replies = Replies::new(&mut self.channel, format);
        if wants_cursor {
            replies = replies.with_cursor(&mut cursor);
        }
        let answered = answer(&mut replies);
        let flushed = match &answered {
            Ok(()) | Err(WireError::Refused(_)) => self.channel.flush(),
            Err(_) => Ok(()),
        };
        answered.and(flushed).map(|()| cursor.map(RelayedRows))
    }

    /// Sends the rows of a cursor as packets.
    ///
    /// # Errors
    /// [`WireError::Lost`] if the client is gone.
    pub fn send_rows(&mut self, mut rows: RelayedRows) -> Result<(), WireError> {
        while let Some(payload) = rows.0.fetch() {
            self.channel.output.begin().put(payload);
            self.channel.output.commit();
            self.channel.flush_if_full()?;
        }
        self.channel.flush()
    }

    /// Gives up the stream of the last answer, and memory that only an active connection needs.
    pub fn rest(&mut self) {
        self.channel.set_stream(Box::new(MemoryStream::default()));
        self.channel.release_buffers();
    }
}

/// The packet of a relayed answer that has arrived in part. Its payload so far is the packet under
/// construction in the output.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    header: [u8; HEADER_LENGTH],
    /// Bytes of the header that have arrived.
    of_header: usize,
    /// Bytes of the payload that are missing.
    missing: usize,
    /// Whether the payload goes on in the packet that comes next.
    is_continued: bool,
}

impl Arriving {
    fn is_between_packets(&self) -> bool {
        self.of_header == 0 && self.missing == 0 && !self.is_continued
    }
}

/// Where the payloads of relayed packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Client,
    Cursor,
}

impl Replies<'_> {
    /// Whether the client asked for a cursor, so that the rows of the first result set come by
    /// [`Replies::relay_rows`].
    #[must_use]
    pub fn wants_cursor(&self) -> bool {
        self.cursor.is_some()
    }

    /// Passes on bytes of an answer that a [`RelayChannel`] elsewhere has made. Blocks while much
    /// output waits for the client.
    ///
    /// # Errors
    /// [`WireError::Lost`] if output had to be sent and could not be.
    pub fn relay(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.progress = Progress::InRows;
        let mut rest = bytes;
        if self.arriving.is_between_packets() {
            let (length, count) = whole_packets(bytes);
            self.channel.output.append_packets(&bytes[..length], count);
            rest = &bytes[length..];
        }
        self.take_packets(rest, Goal::Client)?;
        self.channel.flush_if_full()
    }

    /// Takes bytes of the rows that the client's cursor gets.
    ///
    /// # Errors
    /// [`WireError::Refused`] if there is no memory for them.
    pub fn relay_rows(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.take_packets(bytes, Goal::Cursor)
    }

    /// The file that the relayed answer has asked the client for.
    ///
    /// # Errors
    /// [`WireError::Lost`] if it cannot be asked.
    pub fn relay_infile(&mut self) -> Result<LocalInfile<'_>, WireError> {
        LocalInfile::requested(self.channel)
    }

    /// The relayed answer is complete. `cursor` is for an answer whose rows a cursor has.
    pub fn end_relay(&mut self, cursor: Option<CursorEnd>) {
        if let (Some(end), Some(place)) = (cursor, self.cursor.as_deref_mut()) {
            let rows = place.get_or_insert_default();
            (rows.status, rows.warnings) = (end.status, end.warnings);
        }
        self.progress = Progress::Answered;
    }

    /// Takes packets that are cut anywhere, piece by piece.
    fn take_packets(&mut self, mut bytes: &[u8], goal: Goal) -> Result<(), WireError> {
        while !bytes.is_empty() {
            let arriving = &mut self.arriving;
            if arriving.missing == 0 {
                let wanted = &mut arriving.header[arriving.of_header..];
                let taken = io::Read::read(&mut bytes, wanted)?;
                arriving.of_header += taken;
                if arriving.of_header < HEADER_LENGTH {
                    return Ok(());
                }
                let [a, b, c, _] = arriving.header;
                let length = u32::from_le_bytes([a, b, c, 0]) as usize;
                let goes_on =
                    std::mem::replace(&mut arriving.is_continued, length == MAX_PAYLOAD_LENGTH);
                (arriving.of_header, arriving.missing) = (0, length);
                if !goes_on {
                    self.channel.output.begin();
                }
            } else {
                let (now, later) = bytes.split_at(arriving.missing.min(bytes.len()));
                arriving.missing -= now.len();
                self.channel.output.buffer().extend_from_slice(now);
                bytes = later;
            }
            if self.arriving.missing == 0 && !self.arriving.is_continued {
                self.end_packet(goal)?;
            }
        }
        Ok(())
    }

    fn end_packet(&mut self, goal: Goal) -> Result<(), WireError> {
        let output = &mut self.channel.output;
        match (goal, self.cursor.as_deref_mut()) {
            (Goal::Cursor, Some(place)) => {
                let rows = place.get_or_insert_default();
                rows.push(output.payload());
                if let Some(no_room) = rows.refusal {
                    return Err(ServerError::out_of_memory(no_room).into());
                }
            }
            _ => {
                output.commit();
                self.channel.flush_if_full()?;
            }
        }
        Ok(())
    }
}

/// How many bytes of whole packets are at the front, and how many packets they are. A payload of
/// several packets ends the count.
fn whole_packets(bytes: &[u8]) -> (usize, usize) {
    let (mut at, mut count) = (0, 0);
    while let Some([a, b, c, _]) = bytes[at..].first_chunk::<HEADER_LENGTH>() {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        let end = at + HEADER_LENGTH + length;
        if length == MAX_PAYLOAD_LENGTH || end > bytes.len() {
            break;
        }
        (at, count) = (end, count + 1);
    }
    (at, count)
}

#[cfg(test)]
mod tests;
