//! Fields with tags: the encoding of all options.
//!
//! ```text
//!   01 │ tag  length u32 LE  bytes │ tag  length  bytes │ …        tags ascend, each at most once
//! ```

use firn_sql_types::error::{Result, SqlError};

/// The format that is written.
pub(super) const FORMAT: u8 = 1;

/// Writes fields. The caller leaves out fields that have their default value.
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer { bytes: vec![FORMAT] }
    }

    /// The bytes; none at all if there are no fields.
    pub(crate) fn finish(self) -> Vec<u8> {
        if self.bytes.len() == 1 { Vec::new() } else { self.bytes }
    }

    pub(crate) fn field(&mut self, tag: u8, write: impl FnOnce(&mut Body)) {
        let mut body = Body(Vec::new());
        write(&mut body);
        self.bytes.push(tag);
        self.bytes.extend_from_slice(&length(body.0.len()));
        self.bytes.extend_from_slice(&body.0);
    }

    /// A text, left out if it is empty.
    pub(crate) fn text(&mut self, tag: u8, text: &str) {
        if !text.is_empty() {
            self.field(tag, |body| body.rest(text.as_bytes()));
        }
    }

    /// A list, left out if it is empty.
    pub(crate) fn list<T>(&mut self, tag: u8, items: &[T], mut write: impl FnMut(&mut Body, &T)) {
        if !items.is_empty() {
            self.field(tag, |body| body.list(items, &mut write));
        }
    }
}

fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("options are far smaller than 4 GiB").to_le_bytes()
}

/// The inside of a field.
pub(crate) struct Body(Vec<u8>);

impl Body {
    pub(crate) fn u8(&mut self, number: u8) {
        self.0.push(number);
    }

    pub(crate) fn u16(&mut self, number: u16) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(&length(bytes.len()));
        self.rest(bytes);
    }

    /// Bytes that reach to the end of the field.
    pub(crate) fn rest(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Body, &T)) {
        self.0.extend_from_slice(&length(items.len()));
        items.iter().for_each(|item| write(self, item));
    }
}

/// Calls `field` with each field of `bytes`.
pub(crate) fn each_field<'a>(
    bytes: &'a [u8],
    mut field: impl FnMut(u8, &mut Reader<'a>) -> Result<()>,
) -> Result<()> {
    let Some((&format, bytes)) = bytes.split_first() else { return Ok(()) };
    if format != FORMAT {
        return Err(damaged("format"));
    }
    let mut reader = Reader { bytes };
    let mut last = 0;
    while !reader.bytes.is_empty() {
        let tag = reader.u8()?;
        if tag <= last {
            return Err(damaged("order of fields"));
        }
        last = tag;
        let length = reader.u32()? as usize;
        let mut body = Reader { bytes: reader.take(length)? };
        field(tag, &mut body)?;
        body.end()?;
    }
    Ok(())
}

/// Stored options that are invalid.
pub(crate) fn damaged(what: &str) -> SqlError {
    SqlError::new(1712, format!("Stored options of a definition are damaged: {what}"))
}

/// Reads the inside of a field. Never panics, whatever the bytes.
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or_else(|| damaged("length"))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| damaged("number"))
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| damaged("text"))
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn rest_text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.rest()).map_err(|_| damaged("text"))
    }

    /// A list; memory grows only with the data that is really there.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..count {
            if self.bytes.is_empty() {
                return Err(damaged("list"));
            }
            items.push(read(self)?);
        }
        Ok(items)
    }

    pub(crate) fn end(&self) -> Result<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(damaged("end of a field")) }
    }
}
