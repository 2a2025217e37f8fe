//! Decodes the fields of a payload. Any bytes give fields or [`Malformed`]; nothing panics.

/// The payload ended inside a field, or a field has an impossible value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// The unread rest of a payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadReader<'a> {
    rest: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> PayloadReader<'a> {
        PayloadReader { rest: payload }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Consumes the rest.
    pub(crate) fn take_all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u24(&mut self) -> Result<u32, Malformed> {
        self.array::<3>().map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// An integer of one, three, four or nine bytes.
    pub(crate) fn length_encoded_integer(&mut self) -> Result<u64, Malformed> {
        match self.u8()? {
            small @ 0..=0xfa => Ok(u64::from(small)),
            0xfc => self.u16().map(u64::from),
            0xfd => self.u24().map(u64::from),
            0xfe => self.u64(),
            0xfb | 0xff => Err(Malformed),
        }
    }

    /// Bytes with their length before them.
    pub(crate) fn length_encoded_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length_encoded_integer()?;
        self.take(usize::try_from(length).map_err(|_| Malformed)?)
    }

    /// Bytes up to a zero, which is consumed too.
    pub(crate) fn zero_terminated(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.rest.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        let taken = self.take(length)?;
        self.take(1)?;
        Ok(taken)
    }

    /// Bytes up to a zero or to the end.
    pub(crate) fn zero_terminated_or_rest(&mut self) -> &'a [u8] {
        self.zero_terminated().unwrap_or_else(|Malformed| self.take_all())
    }
}
