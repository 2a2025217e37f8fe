//! A pack of page images, each compressed by itself, so that one can be read without the others.

use std::ops::Range;

use firn_base::{Lsn, PageId};
use firn_format::page::{PAGE_SIZE, PageBuf};
use firn_storage::local::DatabaseId;

use super::{
    FRAME_BYTES, FieldReader, FieldWriter, FormatError, ObjectKind, framed, head_length,
    read_database, unframed,
};

const COMPRESSION_LEVEL: i32 = 1;

/// An image of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageEntry {
    pub page: PageId,
    /// The LSN that the image carries.
    pub lsn: Lsn,
    /// Where the image begins, in bytes from the beginning of the body.
    offset: u64,
    /// Its length as it is stored, in bytes.
    length: u32,
}

/// What a pack says of its images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageHead {
    pub database: DatabaseId,
    /// The position at which the pack's set begins.
    pub set: Lsn,
    /// Sorted by page, each page once.
    images: Vec<ImageEntry>,
    /// Where the body begins in the object.
    body_at: usize,
}

impl PageHead {
    /// The head at the front of an object's bytes; the body need not be there.
    ///
    /// # Errors
    /// If the bytes are not such an object.
    pub fn decode(bytes: &[u8]) -> Result<PageHead, FormatError> {
        let (head, _) = unframed(ObjectKind::Pages, bytes)?;
        let mut fields = FieldReader::new(head);
        let (database, set) = (read_database(&mut fields)?, Lsn(fields.u64()?));
        let count = fields.count(3)?;
        let mut images = Vec::with_capacity(count);
        let (mut page, mut offset) = (0_u64, 0_u64);
        for number in 0..count {
            let step = fields.number()?;
            if step == 0 && number > 0 {
                return Err(FormatError::Invalid);
            }
            page = page.checked_add(step).ok_or(FormatError::Invalid)?;
            let lsn = Lsn(fields.number()?);
            let length = u32::try_from(fields.number()?).map_err(|_| FormatError::Invalid)?;
            images.push(ImageEntry { page: PageId::from_u64(page), lsn, offset, length });
            offset += u64::from(length);
        }
        fields.end()?;
        let body_at = FRAME_BYTES + head_length(ObjectKind::Pages, bytes)?;
        Ok(PageHead { database, set, images, body_at })
    }

    /// The images, sorted by page.
    #[must_use]
    pub fn images(&self) -> &[ImageEntry] {
        &self.images
    }

    /// The image of a page, if the pack has one.
    #[must_use]
    pub fn find(&self, page: PageId) -> Option<&ImageEntry> {
        let index = self.images.binary_search_by_key(&page, |entry| entry.page).ok()?;
        Some(&self.images[index])
    }

    /// Where an image lies in the object; `None` if no object is that long.
    #[must_use]
    pub fn image_range(&self, entry: &ImageEntry) -> Option<Range<usize>> {
        let from = self.body_at.checked_add(usize::try_from(entry.offset).ok()?)?;
        Some(from..from.checked_add(entry.length as usize)?)
    }
}

/// Reads an image into `into` and checks that it is the page.
///
/// # Errors
/// If it is not.
pub(crate) fn decompress(
    stored: &[u8],
    page: PageId,
    into: &mut PageBuf,
) -> Result<(), FormatError> {
    let length = zstd::bulk::decompress_to_buffer(stored, &mut into.bytes_mut()[..])
        .map_err(|_| FormatError::Invalid)?;
    if length != PAGE_SIZE {
        return Err(FormatError::Short);
    }
    into.verify(page).map_err(|_| FormatError::Checksum)
}

pub struct PagePacker {
    database: DatabaseId,
    set: Lsn,
    images: Vec<ImageEntry>,
    body: Vec<u8>,
}

impl PagePacker {
    /// An empty pack of the set that begins at `set`.
    #[must_use]
    pub fn new(database: DatabaseId, set: Lsn) -> PagePacker {
        PagePacker { database, set, images: Vec::new(), body: Vec::new() }
    }

    /// Adds an image; pages come in ascending order.
    ///
    /// # Panics
    /// If they do not.
    pub fn add(&mut self, image: &mut PageBuf) {
        image.seal();
        let page = image.page_id();
        assert!(self.images.last().is_none_or(|last| last.page < page), "pages ascend");
        let stored = zstd::bulk::compress(image.bytes(), COMPRESSION_LEVEL)
            .expect("memory takes any bytes compressed");
        let (offset, length) = (self.body.len() as u64, stored.len() as u32);
        self.images.push(ImageEntry { page, lsn: image.lsn(), offset, length });
        self.body.extend_from_slice(&stored);
    }

    /// The number of images.
    #[must_use]
    pub fn len(&self) -> usize {
        self.images.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty()
    }

    /// The first and the last page.
    #[must_use]
    pub fn range(&self) -> Option<(PageId, PageId)> {
        Some((self.images.first()?.page, self.images.last()?.page))
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.bytes(&self.database.0);
        fields.u64(self.set.0);
        fields.u32(self.images.len() as u32);
        let mut before = 0;
        for image in &self.images {
            fields.number(image.page.to_u64() - before);
            fields.number(image.lsn.0);
            fields.number(u64::from(image.length));
            before = image.page.to_u64();
        }
        let mut bytes = framed(ObjectKind::Pages, &fields.0);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}
