//! Writes of single header fields.

/// Up to eight bytes for one field. For pages whose fields are written one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldWrite {
    at: u16,
    length: u8,
    bytes: [u8; 8],
}

impl FieldWrite {
    pub(crate) fn u32(at: usize, number: u32) -> FieldWrite {
        FieldWrite::new(at, &number.to_le_bytes())
    }

    pub(crate) fn u64(at: usize, number: u64) -> FieldWrite {
        FieldWrite::new(at, &number.to_le_bytes())
    }

    fn new(at: usize, number: &[u8]) -> FieldWrite {
        let mut bytes = [0; 8];
        bytes[..number.len()].copy_from_slice(number);
        FieldWrite { at: at as u16, length: number.len() as u8, bytes }
    }

    /// Offset of the field in its page.
    #[must_use]
    pub fn at(&self) -> u16 {
        self.at
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}
