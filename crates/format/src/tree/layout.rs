//! Offsets of the tree header, and the decoded slot. The parent module draws the layout.

pub(crate) const INDEX: usize = 32;
pub(crate) const LEVEL: usize = 40;
pub(crate) const RESERVED_U8: usize = 41;
pub(crate) const SLOT_COUNT: usize = 42;
pub(crate) const HEAP_START: usize = 44;
pub(crate) const GARBAGE: usize = 46;
pub(crate) const PREFIX_LENGTH: usize = 48;
pub(crate) const LOW_OFFSET: usize = 50;
pub(crate) const LOW_LENGTH: usize = 52;
pub(crate) const HIGH_OFFSET: usize = 54;
pub(crate) const HIGH_LENGTH: usize = 56;
pub(crate) const RESERVED_U16: usize = 58;
pub(crate) const RIGHT: usize = 60;

/// Length of a high fence of +infinity.
pub(crate) const INFINITE: u16 = u16::MAX;
pub(crate) const SLOT_BYTES: usize = 8;

/// A decoded slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// [`head_of`] the suffix.
    pub(crate) head: u32,
    /// Where the heap entry begins.
    pub(crate) offset: u16,
    /// Length of the key suffix.
    pub(crate) suffix_length: u16,
}

impl Slot {
    #[inline]
    pub(crate) fn from_bytes(bytes: &[u8; SLOT_BYTES]) -> Slot {
        let word = u64::from_le_bytes(*bytes);
        Slot { head: word as u32, offset: (word >> 32) as u16, suffix_length: (word >> 48) as u16 }
    }

    pub(crate) fn to_bytes(self) -> [u8; SLOT_BYTES] {
        let word = u64::from(self.head)
            | u64::from(self.offset) << 32
            | u64::from(self.suffix_length) << 48;
        word.to_le_bytes()
    }
}

/// The first four bytes of a suffix as a number that orders as the bytes do, zero padded:
/// `head_of(a) < head_of(b)` implies `a < b`.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<4>() {
        Some(head) => u32::from_be_bytes(*head),
        None => {
            let mut head = [0; 4];
            head[..suffix.len()].copy_from_slice(suffix);
            u32::from_be_bytes(head)
        }
    }
}

/// The length of the common prefix of two keys.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}
