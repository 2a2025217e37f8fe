//! Packets that have been composed and not yet been sent.
//!
//! ```text
//!   bytes:  | header | payload | header | payload | header | payload so far…
//!                                                 ^ committed
//! ```
//!
//! Invariant: what lies before `committed` is whole packets; what lies behind it is the packet in work, its
//! header still blank. Beginning a packet drops one that was never committed.

use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH};

/// How much memory an output keeps between replies.
const KEPT_BYTES: usize = 128 << 10;

/// The packets to send.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    committed: usize,
    /// The next packet's number, in either direction.
    pub(crate) sequence: u8,
}

impl Output {
    /// Begins a packet; its payload is what is appended to the buffer until [`Output::commit`].
    #[inline]
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.bytes.truncate(self.committed);
        self.bytes.extend_from_slice(&[0; HEADER_LENGTH]);
        &mut self.bytes
    }

    /// The buffer whose end is the packet in work.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The payload of the packet in work.
    pub(crate) fn payload(&self) -> &[u8] {
        self.bytes.get(self.committed + HEADER_LENGTH..).unwrap_or_default()
    }

    /// Where in the buffer the payload of the packet in work begins.
    #[inline]
    pub(crate) fn payload_start(&self) -> usize {
        self.committed + HEADER_LENGTH
    }

    /// Completes the packet in work, or the packets if it is too long for one.
    #[inline]
    pub(crate) fn commit(&mut self) {
        let length = self.bytes.len() - self.committed - HEADER_LENGTH;
        if length >= MAX_PAYLOAD_LENGTH {
            self.split(length);
        } else {
            self.write_header(self.committed, length);
        }
        self.committed = self.bytes.len();
    }

    #[inline]
    fn write_header(&mut self, at: usize, length: usize) {
        let [a, b, c, ..] = (length as u32).to_le_bytes();
        self.bytes[at..at + HEADER_LENGTH].copy_from_slice(&[a, b, c, self.sequence]);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Makes room for the headers of all following packets, from the last to the first.
    fn split(&mut self, length: usize) {
        let following = length / MAX_PAYLOAD_LENGTH;
        let payload = self.committed + HEADER_LENGTH;
        self.bytes.resize(self.bytes.len() + following * HEADER_LENGTH, 0);
        for number in (1..=following).rev() {
            let from = payload + number * MAX_PAYLOAD_LENGTH;
            let until = (from + MAX_PAYLOAD_LENGTH).min(payload + length);
            self.bytes.copy_within(from..until, from + number * HEADER_LENGTH);
        }
        for number in 0..=following {
            let at = self.committed + number * (MAX_PAYLOAD_LENGTH + HEADER_LENGTH);
            self.write_header(at, (length - number * MAX_PAYLOAD_LENGTH).min(MAX_PAYLOAD_LENGTH));
        }
    }

    /// Appends whole packets that are numbered one after the other; renumbers them if other numbers are due.
    pub(crate) fn append_packets(&mut self, packets: &[u8], count: usize) {
        self.bytes.truncate(self.committed);
        self.bytes.extend_from_slice(packets);
        if packets.get(3).is_some_and(|&number| number != self.sequence) {
            self.renumber();
        }
        self.sequence = self.sequence.wrapping_add(count as u8);
        self.committed = self.bytes.len();
    }

    fn renumber(&mut self) {
        let mut rest = &mut self.bytes[self.committed..];
        let mut sequence = self.sequence;
        while let [a, b, c, number, ..] = rest {
            *number = sequence;
            sequence = sequence.wrapping_add(1);
            let length = HEADER_LENGTH + u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            rest = rest.get_mut(length..).unwrap_or_default();
        }
    }

    pub(crate) fn committed_length(&self) -> usize {
        self.committed
    }

    pub(crate) fn committed(&self) -> &[u8] {
        &self.bytes[..self.committed]
    }

    /// What was committed has been sent.
    pub(crate) fn clear_committed(&mut self) {
        self.bytes.drain(..self.committed);
        self.committed = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Gives the memory back if it holds nothing.
    pub(crate) fn release(&mut self) {
        if self.committed == 0 {
            self.bytes = Vec::new();
        }
    }
}
