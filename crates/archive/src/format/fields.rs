//! Fields of heads: fixed numbers, and numbers of variable length in seven bits a byte, lowest
//! first.

use super::FormatError;

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub(super) struct FieldWriter(pub(super) Vec<u8>);

impl FieldWriter {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// Reads what [`FieldWriter`] wrote, from untrusted bytes.
#[derive(Debug, Clone)]
pub(super) struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> FieldReader<'a> {
        FieldReader(bytes)
    }

    pub(super) fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], FormatError> {
        let (head, rest) = self.0.split_first_chunk::<LENGTH>().ok_or(FormatError::Short)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of variable length in its only form: without needless high bytes.
    pub(super) fn number(&mut self) -> Result<u64, FormatError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits || (byte == 0 && shift > 0) {
                return Err(FormatError::Invalid);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(FormatError::Invalid)
    }

    /// A count of entries of at least `entry_bytes` each, which the rest must have room for.
    pub(super) fn count(&mut self, entry_bytes: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        match count.checked_mul(entry_bytes) {
            Some(bytes) if bytes <= self.0.len() => Ok(count),
            _ => Err(FormatError::Short),
        }
    }

    /// Fails if there is more.
    pub(super) fn end(&self) -> Result<(), FormatError> {
        if self.0.is_empty() { Ok(()) } else { Err(FormatError::Invalid) }
    }
}
