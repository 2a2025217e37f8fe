//! A file that the client sends within a command (`LOAD DATA LOCAL INFILE`).
//!
//! ```text
//!   server: 0xfb, the file's name
//!   client: a packet of content … a packet of content, an empty packet
//!   server: OK or ERR
//! ```

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::channel::{Channel, Patience, Received};
use crate::error::{ServerError, WireError};
use crate::packet::PayloadWriter;

/// The client's file, which is read like any file. Dropping it discards the unread rest, which the
/// client sends in any case.
pub struct LocalInfile<'a> {
    channel: &'a mut Channel,
    packet: Vec<u8>,
    taken: usize,
    ended: bool,
    cancelled: Option<Arc<AtomicBool>>,
}

impl<'a> LocalInfile<'a> {
    pub(super) fn request(
        channel: &'a mut Channel,
        name: &[u8],
    ) -> Result<LocalInfile<'a>, WireError> {
        let buffer = channel.output.begin();
        buffer.put_u8(0xfb);
        buffer.put(name);
        channel.output.commit();
        LocalInfile::requested(channel)
    }

    /// The file that the last packet of the output asks for.
    pub(super) fn requested(channel: &'a mut Channel) -> Result<LocalInfile<'a>, WireError> {
        channel.flush()?;
        Ok(LocalInfile { channel, packet: Vec::new(), taken: 0, ended: false, cancelled: None })
    }

    /// Makes reading fail once `cancelled` is set, even while the client sends nothing.
    #[must_use]
    pub fn until(mut self, cancelled: Arc<AtomicBool>) -> LocalInfile<'a> {
        self.cancelled = Some(cancelled);
        self
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }

    /// Waits for the next packet; `None` if nothing of it has arrived for a slice.
    fn try_next_packet(&mut self) -> Result<Option<()>, WireError> {
        self.receive(Patience::Slice)
    }

    fn next_packet(&mut self) -> Result<(), WireError> {
        self.receive(Patience::Each(self.channel.read_timeout)).map(|_| ())
    }

    fn receive(&mut self, patience: Patience) -> Result<Option<()>, WireError> {
        self.taken = 0;
        let received = self.channel.read_packet(&mut self.packet, patience);
        // After a failure no more packets follow.
        self.ended = match &received {
            Ok(Received::Refused(_) | Received::Idle) => false,
            Ok(_) => self.packet.is_empty(),
            Err(_) => true,
        };
        match received? {
            Received::Refused(no_room) => {
                self.packet.clear();
                Err(ServerError::out_of_memory(no_room).into())
            }
            Received::Idle => Ok(None),
            Received::Packet => Ok(Some(())),
        }
    }

    /// Waits for the next packet, until the read timeout or the end of the statement.
    fn await_packet(&mut self) -> Result<(), WireError> {
        let end = self.channel.clock.monotonic().saturating_add(self.channel.read_timeout);
        while self.try_next_packet()?.is_none() {
            if self.is_cancelled() {
                return Err(WireError::Lost(io::ErrorKind::TimedOut.into()));
            }
            if self.channel.clock.monotonic() >= end {
                self.ended = true;
                return Err(WireError::Fatal(ServerError::read_timeout()));
            }
        }
        Ok(())
    }
}

impl Read for LocalInfile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.packet.len() && !self.ended {
            self.await_packet().map_err(|error| match error {
                WireError::Lost(error) => error,
                error => io::Error::new(io::ErrorKind::InvalidData, error),
            })?;
        }
        let read = (&self.packet[self.taken..]).read(buffer)?;
        self.taken += read;
        Ok(read)
    }
}

impl Drop for LocalInfile<'_> {
    fn drop(&mut self) {
        while !self.ended {
            // The next use of the connection notices if it is lost.
            let _ = self.next_packet();
        }
    }
}
