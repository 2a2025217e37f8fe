//! A file that the client sends in the midst of a command (`LOAD DATA LOCAL INFILE`).
//!
//! ```text
//!   server: 0xfb, the file's name
//!   client: a packet of content … a packet of content, an empty packet
//!   server: OK or ERR
//! ```

use std::io::{self, Read};

use crate::channel::{Channel, Patience, Received};
use crate::error::{ServerError, WireError};
use crate::packet::PayloadWriter;

/// The client's file. Read as any file; what is not read is taken off the connection when this is dropped,
/// since the client sends it all the same.
pub struct LocalInfile<'a> {
    channel: &'a mut Channel,
    packet: Vec<u8>,
    taken: usize,
    ended: bool,
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
        channel.flush()?;
        Ok(LocalInfile { channel, packet: Vec::new(), taken: 0, ended: false })
    }

    fn next_packet(&mut self) -> Result<(), WireError> {
        let patience = Patience::Each(self.channel.read_timeout);
        self.taken = 0;
        let received = self.channel.read_packet(&mut self.packet, patience);
        // After a failure there is nothing more to come either.
        self.ended = match &received {
            Ok(Received::Refused(_)) => false,
            Ok(_) => self.packet.is_empty(),
            Err(_) => true,
        };
        match received? {
            Received::Refused(no_room) => {
                self.packet.clear();
                Err(ServerError::out_of_memory(no_room).into())
            }
            _ => Ok(()),
        }
    }
}

impl Read for LocalInfile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.packet.len() && !self.ended {
            self.next_packet().map_err(|error| match error {
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
            // A connection that is gone is noticed by whoever uses it next.
            let _ = self.next_packet();
        }
    }
}
