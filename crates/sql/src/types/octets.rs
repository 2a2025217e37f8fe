//! Owned bytes that need no allocation while they are few, as most texts of a table are.

use std::borrow::Borrow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

/// Bytes kept in place; longer strings are on the heap.
const INLINE_BYTES: usize = 23;

/// A byte string: UTF-8 for text, anything for binary types.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Octets(SmallVec<[u8; INLINE_BYTES]>);

impl Octets {
    /// No bytes.
    #[must_use]
    pub fn new() -> Octets {
        Octets::default()
    }

    /// No bytes yet, with room for so many.
    #[must_use]
    pub fn with_capacity(size_bytes: usize) -> Octets {
        Octets(SmallVec::with_capacity(size_bytes))
    }

    /// The bytes as text, `None` when they are no UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The bytes as text; what is no UTF-8 is shown as U+FFFD.
    #[must_use]
    pub fn to_str_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Appends bytes.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a byte.
    pub fn push(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Keeps the first `size_bytes` bytes.
    pub fn truncate(&mut self, size_bytes: usize) {
        self.0.truncate(size_bytes);
    }
}

impl Deref for Octets {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Octets {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Borrow<[u8]> for Octets {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl AsRef<[u8]> for Octets {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for Octets {
    fn from(bytes: &[u8]) -> Octets {
        Octets(SmallVec::from_slice(bytes))
    }
}

impl From<&str> for Octets {
    fn from(text: &str) -> Octets {
        text.as_bytes().into()
    }
}

impl From<Vec<u8>> for Octets {
    fn from(bytes: Vec<u8>) -> Octets {
        if bytes.len() <= INLINE_BYTES {
            Octets::from(&bytes[..])
        } else {
            Octets(SmallVec::from_vec(bytes))
        }
    }
}

impl From<String> for Octets {
    fn from(text: String) -> Octets {
        text.into_bytes().into()
    }
}

impl FromIterator<u8> for Octets {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Octets {
        Octets(bytes.into_iter().collect())
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl fmt::Write for Octets {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
