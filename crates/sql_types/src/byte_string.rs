//! Owned bytes that need no allocation if they are few, like most texts of a table, and no copy if
//! they are many.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Bytes kept in place; longer strings are on the heap.
pub const INLINE_BYTES: usize = 30;

/// From this length on, copies share the bytes.
const SHARED_BYTES: usize = 32 << 10;

/// A byte string: UTF-8 for text, any bytes for binary types. A copy of a long one shares its bytes
/// until one of the two is changed.
#[derive(Clone)]
pub struct ByteString(Bytes);

#[derive(Clone)]
enum Bytes {
    Inline { length: u8, bytes: [u8; INLINE_BYTES] },
    Own(Vec<u8>),
    Shared(Arc<Vec<u8>>),
}

// Not larger than a value with a decimal in it.
const _: () = assert!(size_of::<ByteString>() <= 32);

impl ByteString {
    #[must_use]
    pub fn new() -> ByteString {
        ByteString::default()
    }

    /// No bytes yet, with room for this many.
    #[must_use]
    pub fn with_capacity(size_bytes: usize) -> ByteString {
        match size_bytes {
            ..=INLINE_BYTES => ByteString::default(),
            _ => ByteString(Bytes::Own(Vec::with_capacity(size_bytes))),
        }
    }

    /// The same, once it is built: from now on, copies share the bytes if they are many.
    #[must_use]
    #[inline]
    pub fn built(self) -> ByteString {
        match self.0 {
            Bytes::Own(bytes) if bytes.len() >= SHARED_BYTES => {
                ByteString(Bytes::Shared(Arc::new(bytes)))
            }
            _ => self,
        }
    }

    /// The bytes, if copies share them.
    #[must_use]
    pub fn shared(&self) -> Option<&Arc<Vec<u8>>> {
        match &self.0 {
            Bytes::Inline { .. } | Bytes::Own(_) => None,
            Bytes::Shared(bytes) => Some(bytes),
        }
    }

    /// The bytes as text, `None` if they are not UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self).ok()
    }

    /// The bytes as text; invalid UTF-8 is shown as U+FFFD.
    #[must_use]
    pub fn to_str_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self)
    }

    pub fn extend_from_slice(&mut self, more: &[u8]) {
        match &mut self.0 {
            Bytes::Inline { length, bytes } => {
                let (old, new) = (usize::from(*length), usize::from(*length) + more.len());
                match bytes.get_mut(old..new) {
                    Some(room) => {
                        room.copy_from_slice(more);
                        *length = new as u8;
                    }
                    None => {
                        let mut own = Vec::with_capacity(new.max(2 * INLINE_BYTES));
                        own.extend_from_slice(&bytes[..old]);
                        own.extend_from_slice(more);
                        self.0 = Bytes::Own(own);
                    }
                }
            }
            Bytes::Own(own) => own.extend_from_slice(more),
            Bytes::Shared(shared) => Arc::make_mut(shared).extend_from_slice(more),
        }
    }

    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.extend_from_slice(&[byte]);
    }

    /// Keeps the first `size_bytes` bytes.
    pub fn truncate(&mut self, size_bytes: usize) {
        match &mut self.0 {
            Bytes::Inline { length, .. } => *length = (*length).min(size_bytes.min(255) as u8),
            Bytes::Own(own) => own.truncate(size_bytes),
            Bytes::Shared(shared) if size_bytes < shared.len() => match Arc::get_mut(shared) {
                Some(bytes) if size_bytes >= SHARED_BYTES => bytes.truncate(size_bytes),
                // Copies only the bytes that are kept.
                _ => *self = ByteString::from(&shared[..size_bytes]),
            },
            Bytes::Shared(_) => {}
        }
    }
}

impl Default for ByteString {
    fn default() -> ByteString {
        ByteString(Bytes::Inline { length: 0, bytes: [0; INLINE_BYTES] })
    }
}

impl Deref for ByteString {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Inline { length, bytes } => &bytes[..usize::from(*length)],
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl DerefMut for ByteString {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Bytes::Inline { length, bytes } => &mut bytes[..usize::from(*length)],
            Bytes::Own(bytes) => bytes,
            Bytes::Shared(bytes) => &mut Arc::make_mut(bytes)[..],
        }
    }
}

impl PartialEq for ByteString {
    fn eq(&self, other: &ByteString) -> bool {
        self[..] == other[..]
    }
}

impl Eq for ByteString {}

impl PartialOrd for ByteString {
    fn partial_cmp(&self, other: &ByteString) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByteString {
    fn cmp(&self, other: &ByteString) -> Ordering {
        self[..].cmp(&other[..])
    }
}

impl Hash for ByteString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl Borrow<[u8]> for ByteString {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl AsRef<[u8]> for ByteString {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for ByteString {
    #[inline]
    fn from(bytes: &[u8]) -> ByteString {
        let mut octets = ByteString::default();
        match (&mut octets.0, bytes.len()) {
            (Bytes::Inline { length, bytes: place }, size_bytes @ ..=INLINE_BYTES) => {
                place[..size_bytes].copy_from_slice(bytes);
                *length = size_bytes as u8;
            }
            _ => octets = ByteString(Bytes::Own(bytes.to_vec())).built(),
        }
        octets
    }
}

impl From<&str> for ByteString {
    fn from(text: &str) -> ByteString {
        text.as_bytes().into()
    }
}

impl From<Vec<u8>> for ByteString {
    fn from(bytes: Vec<u8>) -> ByteString {
        match bytes.len() {
            ..=INLINE_BYTES => ByteString::from(&bytes[..]),
            _ => ByteString(Bytes::Own(bytes)).built(),
        }
    }
}

impl From<String> for ByteString {
    fn from(text: String) -> ByteString {
        text.into_bytes().into()
    }
}

impl FromIterator<u8> for ByteString {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> ByteString {
        let bytes = bytes.into_iter();
        if bytes.size_hint().0 > INLINE_BYTES {
            return bytes.collect::<Vec<u8>>().into();
        }
        let mut octets = ByteString::default();
        bytes.for_each(|byte| octets.push(byte));
        octets.built()
    }
}

impl fmt::Debug for ByteString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl fmt::Write for ByteString {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_long_strings_share_their_bytes_until_one_is_changed() {
        let long = ByteString::from(vec![b'x'; SHARED_BYTES]);
        let mut copy = long.clone();
        assert!(std::ptr::eq(long.as_ptr(), copy.as_ptr()));
        copy.push(b'y');
        copy[0] = b'z';
        assert_eq!((long.len(), long[0]), (SHARED_BYTES, b'x'));
        assert_eq!((copy.len(), copy[0], copy[SHARED_BYTES]), (SHARED_BYTES + 1, b'z', b'y'));
        let mut cut = long.clone();
        cut.truncate(3);
        assert_eq!((&cut[..], long.len()), (&b"xxx"[..], SHARED_BYTES));
    }

    #[test]
    fn how_the_bytes_are_kept_makes_no_difference_to_their_order() {
        let shared = ByteString::from(vec![b'x'; SHARED_BYTES]);
        let mut own = ByteString::with_capacity(SHARED_BYTES);
        own.extend_from_slice(&shared);
        assert!(shared.shared().is_some() && own.shared().is_none());
        assert_eq!(own, shared);
        assert!(ByteString::from("w") < shared && shared < ByteString::from("y"));
    }
}
