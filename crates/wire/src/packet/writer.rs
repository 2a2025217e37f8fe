//! Appends fields to a payload.

/// The protocol's primitive fields, appended.
pub(crate) trait PayloadWriter {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// An integer in one, three, four or nine bytes.
    #[inline]
    fn put_length_encoded_integer(&mut self, value: u64) {
        match value {
            0..=0xfa => self.put_u8(value as u8),
            0xfb..=0xffff => {
                self.put_u8(0xfc);
                self.put_u16(value as u16);
            }
            0x1_0000..=0xff_ffff => {
                self.put_u8(0xfd);
                self.put(&value.to_le_bytes()[..3]);
            }
            _ => {
                self.put_u8(0xfe);
                self.put_u64(value);
            }
        }
    }

    /// Bytes with their length before them.
    #[inline]
    fn put_length_encoded_bytes(&mut self, bytes: &[u8]) {
        self.put_length_encoded_integer(bytes.len() as u64);
        self.put(bytes);
    }

    /// Bytes and a zero.
    fn put_zero_terminated(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.put_u8(0);
    }
}

impl PayloadWriter for Vec<u8> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
