//! Bytes that are handed over without a copy.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use smallvec::SmallVec;

/// Shared bytes: a sender's buffer, or a part of a message as it came from the network. A part
/// keeps the memory of its whole message.
#[derive(Clone)]
pub struct Payload {
    memory: Arc<Vec<u8>>,
    start: usize,
    end: usize,
}

impl Payload {
    /// Some of these bytes, without a copy.
    ///
    /// # Panics
    /// If the range is out of bounds.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Payload {
        assert!(range.start <= range.end && range.end <= self.len(), "the range is out of bounds");
        let (start, end) = (self.start + range.start, self.start + range.end);
        Payload { memory: Arc::clone(&self.memory), start, end }
    }

    /// The bytes as a vector: without a copy if nobody else has a part of the memory.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        let (start, end) = (self.start, self.end);
        match Arc::try_unwrap(self.memory) {
            Ok(mut memory) => {
                memory.truncate(end);
                memory.drain(..start);
                memory
            }
            Err(shared) => shared[start..end].to_vec(),
        }
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload::from(Arc::new(bytes))
    }
}

impl From<Arc<Vec<u8>>> for Payload {
    fn from(memory: Arc<Vec<u8>>) -> Payload {
        let end = memory.len();
        Payload { memory, start: 0, end }
    }
}

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}

/// What a message carries: the concatenation of its parts.
#[derive(Debug, Clone, Default)]
pub struct Body {
    parts: SmallVec<[Payload; 2]>,
    bytes: usize,
}

impl Body {
    pub fn push(&mut self, part: impl Into<Payload>) {
        let part = part.into();
        self.bytes += part.len();
        self.parts.push(part);
    }

    /// The total length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The bytes, as they were pushed.
    #[must_use]
    pub fn parts(&self) -> &[Payload] {
        &self.parts
    }
}

impl<T: Into<Payload>> From<T> for Body {
    fn from(part: T) -> Body {
        let mut body = Body::default();
        body.push(part);
        body
    }
}

impl From<&[u8]> for Body {
    fn from(bytes: &[u8]) -> Body {
        Body::from(bytes.to_vec())
    }
}
