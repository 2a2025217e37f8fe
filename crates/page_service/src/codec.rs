//! Numbers and texts as bytes: little endian, one behind the other.

use firn_base::{Lsn, PageId, PageNo, SpaceId};
use firn_format::page::PAGE_SIZE;

/// The version of the messages.
pub const VERSION: u8 = 1;
/// The longest text in bytes; a longer one is cut when it is written.
pub(crate) const MAX_TEXT_BYTES: usize = 512;

/// The bytes are not a message of this version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The other side speaks another version.
    #[error("the other node speaks version {0} of page messages, this one speaks {VERSION}")]
    Version(u8),
    #[error("a page message is damaged: {0}")]
    Message(&'static str),
}

/// The bytes of a message that have not been read.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<&'a [u8; LENGTH], Damage> {
        let (array, rest) =
            self.rest.split_first_chunk().ok_or(Damage::Message("it ends early"))?;
        self.rest = rest;
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Damage> {
        self.array().map(|[byte]| *byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Damage> {
        self.array().map(|bytes| u16::from_le_bytes(*bytes))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Damage> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Damage> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(crate) fn lsn(&mut self) -> Result<Lsn, Damage> {
        self.u64().map(Lsn)
    }

    pub(crate) fn page(&mut self) -> Result<PageId, Damage> {
        Ok(PageId::new(SpaceId(self.u32()?), PageNo(self.u32()?)))
    }

    pub(crate) fn image(&mut self) -> Result<&'a [u8; PAGE_SIZE], Damage> {
        self.array()
    }

    pub(crate) fn text(&mut self) -> Result<String, Damage> {
        let length = usize::from(self.u16()?);
        if length > MAX_TEXT_BYTES {
            return Err(Damage::Message("a text is too long"));
        }
        let (text, rest) =
            self.rest.split_at_checked(length).ok_or(Damage::Message("it ends early"))?;
        self.rest = rest;
        let text = std::str::from_utf8(text).map_err(|_| Damage::Message("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    /// Reads a list: how many, then each. `most` bounds the number.
    pub(crate) fn list<T>(
        &mut self,
        most: usize,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, Damage>,
    ) -> Result<Vec<T>, Damage> {
        let count = self.u32()? as usize;
        if count > most {
            return Err(Damage::Message("a list is too long"));
        }
        (0..count).map(|_| read(self)).collect()
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<(), Damage> {
        match self.rest {
            [] => Ok(()),
            _ => Err(Damage::Message("bytes follow its end")),
        }
    }
}

pub(crate) fn put_u16(bytes: &mut Vec<u8>, number: u16) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u32(bytes: &mut Vec<u8>, number: u32) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_u64(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_page(bytes: &mut Vec<u8>, page: PageId) {
    put_u32(bytes, page.space.0);
    put_u32(bytes, page.page_no.0);
}

pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    put_u16(bytes, end as u16);
    bytes.extend_from_slice(&text.as_bytes()[..end]);
}
