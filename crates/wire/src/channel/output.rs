//! Packets that were composed and not yet sent.
//!
//! ```text
//!   bytes:  | header | payload | header | payload | header | payload so far…
//!                                                 ^ committed
//! ```
//!
//! A long value is not copied. This buffer shares it with its owner and sends it between the bytes
//! before and after its place.
//!
//! Invariant: the bytes before `committed` are whole packets; the bytes after it are the packet
//! under construction, whose header is still blank. Beginning a packet drops one that was not
//! committed.

use std::ops::Range;
use std::sync::Arc;

use super::late::replace_by_error;
use crate::packet::{HEADER_LENGTH, MAX_PAYLOAD_LENGTH};

/// How much memory an output keeps between replies.
const KEPT_BYTES: usize = 128 << 10;

/// The packets to send.
#[derive(Debug, Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    committed: usize,
    /// In the order of their places.
    shared: Vec<SharedPart>,
    /// How many of the shared parts belong to committed packets.
    committed_parts: usize,
    /// The next packet's number, in either direction.
    pub(crate) sequence: u8,
    /// How often committed packets were sent or taken away.
    departures: u64,
}

/// A place in an output to which it can go back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputMark {
    committed: usize,
    committed_parts: usize,
    sequence: u8,
    departures: u64,
}

/// Bytes of a value that other owners share.
#[derive(Debug)]
struct SharedPart {
    /// How many of the output's own bytes come before it.
    place: usize,
    value: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl SharedPart {
    fn bytes(&self) -> &[u8] {
        &self.value[self.range.clone()]
    }
}

impl Output {
    /// Begins a packet. Its payload is the bytes that are appended to the buffer until
    /// [`Output::commit`].
    #[inline]
    pub(crate) fn begin(&mut self) -> &mut Vec<u8> {
        self.bytes.truncate(self.committed);
        if self.shared.len() > self.committed_parts {
            self.shared.truncate(self.committed_parts);
        }
        self.bytes.extend_from_slice(&[0; HEADER_LENGTH]);
        &mut self.bytes
    }

    /// The buffer, which ends with the packet under construction.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a value to the packet under construction without a copy.
    pub(crate) fn share(&mut self, value: &Arc<Vec<u8>>) {
        let (place, range) = (self.bytes.len(), 0..value.len());
        self.shared.push(SharedPart { place, value: Arc::clone(value), range });
    }

    /// The payload of the packet under construction, which must not contain shared parts.
    pub(crate) fn payload(&self) -> &[u8] {
        self.bytes.get(self.committed + HEADER_LENGTH..).unwrap_or_default()
    }

    /// Where in the buffer the payload of the packet under construction begins.
    #[inline]
    pub(crate) fn payload_start(&self) -> usize {
        self.committed + HEADER_LENGTH
    }

    /// Completes the packet under construction, or the packets if it is too long for one.
    #[inline]
    pub(crate) fn commit(&mut self) {
        let length = self.bytes.len() - self.committed - HEADER_LENGTH;
        if self.shared.len() > self.committed_parts {
            self.commit_shared(length);
        } else if length >= MAX_PAYLOAD_LENGTH {
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

    /// Writes the header of a packet with shared parts, or the headers if it is too long for one.
    #[cold]
    fn commit_shared(&mut self, own_bytes: usize) {
        let shared: usize =
            self.shared[self.committed_parts..].iter().map(|one| one.range.len()).sum();
        if own_bytes + shared < MAX_PAYLOAD_LENGTH {
            self.write_header(self.committed, own_bytes + shared);
        } else {
            self.split_shared();
        }
        self.committed_parts = self.shared.len();
    }

    /// Rebuilds a payload with shared parts, with a header at the beginning of each packet.
    fn split_shared(&mut self) {
        let (begin, mut at) = (self.committed, self.committed + HEADER_LENGTH);
        let own = self.bytes.split_off(begin);
        let parts = self.shared.split_off(self.committed_parts);
        let mut packets = Split { output: self, header: begin, length: 0 };
        packets.begin_packet();
        for part in parts {
            packets.own(&own[at - begin..part.place - begin]);
            at = part.place;
            packets.shared(part);
        }
        packets.own(&own[at - begin..]);
        let (header, length) = (packets.header, packets.length);
        self.write_header(header, length);
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

    /// Appends whole packets with consecutive numbers, and renumbers them if the next number
    /// differs.
    pub(crate) fn append_packets(&mut self, packets: &[u8], count: usize) {
        self.bytes.truncate(self.committed);
        self.shared.truncate(self.committed_parts);
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

    /// The end of the committed packets.
    #[inline]
    pub(crate) fn mark(&self) -> OutputMark {
        OutputMark {
            committed: self.committed,
            committed_parts: self.committed_parts,
            sequence: self.sequence,
            departures: self.departures,
        }
    }

    /// Drops what was gathered since the mark; false if some of it is gone.
    pub(crate) fn go_back(&mut self, mark: &OutputMark) -> bool {
        if mark.departures != self.departures {
            return false;
        }
        self.bytes.truncate(mark.committed);
        self.shared.truncate(mark.committed_parts);
        (self.committed, self.committed_parts) = (mark.committed, mark.committed_parts);
        self.sequence = mark.sequence;
        true
    }

    /// Bytes to send.
    #[inline]
    pub(crate) fn committed_length(&self) -> usize {
        // This is called after each row, and few rows share a value.
        if self.committed_parts == 0 {
            return self.committed;
        }
        let shared = self.shared[..self.committed_parts].iter().map(|part| part.range.len());
        self.committed + shared.sum::<usize>()
    }

    /// The bytes to send, if no part of them is shared.
    #[inline]
    pub(crate) fn committed_own(&self) -> Option<&[u8]> {
        (self.committed_parts == 0).then(|| &self.bytes[..self.committed])
    }

    /// The committed packets, if nothing follows them and no part of them is shared. The caller may
    /// take them away, and then calls [`Output::forget_packets`].
    pub(crate) fn own_packets(&mut self) -> Option<&mut Vec<u8>> {
        let is_whole = self.committed > 0 && self.committed == self.bytes.len();
        (is_whole && self.shared.is_empty()).then_some(&mut self.bytes)
    }

    /// The committed packets were taken away.
    pub(crate) fn forget_packets(&mut self) {
        self.departures += 1;
        self.bytes.clear();
        self.committed = 0;
    }

    /// Puts an error packet in the place of the committed packets, which are those of an answer.
    pub(crate) fn replace_by_error(&mut self, payload: &[u8]) {
        replace_by_error(&mut self.bytes, payload);
        self.committed = self.bytes.len();
    }

    /// The bytes to send, piece by piece.
    pub(crate) fn committed(&self) -> impl Iterator<Item = &[u8]> {
        let parts = &self.shared[..self.committed_parts];
        let places = parts.iter().map(|part| part.place);
        let starts = std::iter::once(0).chain(places.clone());
        let own = starts.zip(places.chain(std::iter::once(self.committed)));
        let own = own.map(|(start, end)| &self.bytes[start..end]);
        let shared = parts.iter().map(SharedPart::bytes).map(Some).chain(std::iter::once(None));
        let pieces = own.zip(shared).flat_map(|(own, shared)| [Some(own), shared]);
        pieces.flatten().filter(|piece| !piece.is_empty())
    }

    /// Drops the committed bytes, which have been sent.
    pub(crate) fn clear_committed(&mut self) {
        self.departures += 1;
        if self.committed == self.bytes.len() && self.shared.is_empty() {
            self.bytes.clear();
        } else {
            self.keep_packet_in_work();
        }
        (self.committed, self.committed_parts) = (0, 0);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Moves the packet under construction to the front.
    #[cold]
    fn keep_packet_in_work(&mut self) {
        self.bytes.drain(..self.committed);
        self.shared.drain(..self.committed_parts);
        self.shared.iter_mut().for_each(|part| part.place -= self.committed);
    }

    /// Frees the memory if the output is empty.
    pub(crate) fn release(&mut self) {
        if self.committed == 0 {
            self.bytes = Vec::new();
            self.shared = Vec::new();
        }
    }
}

/// A payload that is being split into packets of maximum length.
struct Split<'o> {
    output: &'o mut Output,
    /// Where the header of the current packet is.
    header: usize,
    /// Bytes of payload in the current packet.
    length: usize,
}

impl Split<'_> {
    fn begin_packet(&mut self) {
        self.header = self.output.bytes.len();
        self.output.bytes.extend_from_slice(&[0; HEADER_LENGTH]);
        self.length = 0;
    }

    /// Adds at most `wanted` bytes to the current packet's length; returns how many fit.
    fn count(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(MAX_PAYLOAD_LENGTH - self.length);
        self.length += taken;
        taken
    }

    fn end_packet_if_full(&mut self) {
        if self.length == MAX_PAYLOAD_LENGTH {
            self.output.write_header(self.header, self.length);
            self.begin_packet();
        }
    }

    fn own(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(self.count(bytes.len()));
            self.output.bytes.extend_from_slice(now);
            bytes = later;
            self.end_packet_if_full();
        }
    }

    fn shared(&mut self, part: SharedPart) {
        let mut range = part.range;
        while !range.is_empty() {
            let end = range.start + self.count(range.len());
            let (place, value) = (self.output.bytes.len(), Arc::clone(&part.value));
            self.output.shared.push(SharedPart { place, value, range: range.start..end });
            range.start = end;
            self.end_packet_if_full();
        }
    }
}
