//! Bytes that were received and not yet consumed.

use std::io;

use super::stream::ByteStream;

/// How much one read asks for at most.
const READ_BYTES: usize = 16 << 10;

/// A queue of bytes.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Reads once from `stream`; the number of bytes received.
    pub(crate) fn fill_from(&mut self, stream: &mut dyn ByteStream) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            self.bytes.resize(self.end + READ_BYTES, 0);
        }
        loop {
            match stream.read(&mut self.bytes[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(received) => {
                    self.end += received;
                    return Ok(received);
                }
            }
        }
    }

    /// Appends bytes that did not come from a read of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.end);
        self.bytes.drain(..self.start);
        self.bytes.extend_from_slice(bytes);
        (self.start, self.end) = (0, self.bytes.len());
    }

    /// The received bytes; consumes none.
    pub(crate) fn peek(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Consumes `N` bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn take_array<const N: usize>(&mut self) -> [u8; N] {
        let taken = *self.peek().first_chunk::<N>().expect("the caller has looked at the length");
        self.start += N;
        taken
    }

    /// Moves at most `limit` bytes to the end of `target`; returns how many.
    pub(crate) fn take_into(&mut self, target: &mut Vec<u8>, limit: usize) -> usize {
        let length = self.len().min(limit);
        target.extend_from_slice(&self.bytes[self.start..self.start + length]);
        self.start += length;
        length
    }

    /// Discards at most `limit` bytes; returns how many.
    pub(crate) fn pass_over(&mut self, limit: usize) -> usize {
        let length = self.len().min(limit);
        self.start += length;
        length
    }

    pub(crate) fn take_all(&mut self) -> Vec<u8> {
        let mut taken = Vec::new();
        self.take_into(&mut taken, usize::MAX);
        taken
    }

    /// Frees the memory if the queue is empty.
    pub(crate) fn release(&mut self) {
        if self.start == self.end {
            *self = Input::default();
        }
    }
}
