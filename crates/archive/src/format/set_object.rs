//! A set of page images: which packs it has, and which spaces are gone.

use firn_base::{Lsn, PageId, SpaceId};
use firn_storage::local::DatabaseId;

use super::{FieldReader, FieldWriter, FormatError, ObjectKind, framed, read_database, unframed};

/// A pack of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackEntry {
    pub first: PageId,
    pub last: PageId,
    pub images: u32,
    /// The size of the object, in bytes.
    pub size_bytes: u64,
}

/// The images of all pages, or of those that changed since the set before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSet {
    pub database: DatabaseId,
    /// Every log group that ends here or before is in the images of this set and those before it.
    pub start: Lsn,
    /// The writer that made the packs: a part of their names.
    pub writer: u32,
    /// In the order of their pages, which do not overlap.
    pub packs: Vec<PackEntry>,
    /// Spaces that were dropped since the set before, sorted. Images of earlier sets are void.
    pub dropped: Vec<SpaceId>,
}

impl ImageSet {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = FieldWriter::default();
        fields.bytes(&self.database.0);
        fields.u64(self.start.0);
        fields.u32(self.writer);
        fields.u32(self.packs.len() as u32);
        fields.u32(self.dropped.len() as u32);
        for pack in &self.packs {
            fields.u64(pack.first.to_u64());
            fields.u64(pack.last.to_u64());
            fields.u32(pack.images);
            fields.u64(pack.size_bytes);
        }
        self.dropped.iter().for_each(|space| fields.u32(space.0));
        framed(ObjectKind::Set, &fields.0)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// If the bytes are not such an object, as a whole.
    pub fn decode(bytes: &[u8]) -> Result<ImageSet, FormatError> {
        let (head, body) = unframed(ObjectKind::Set, bytes)?;
        let mut fields = FieldReader::new(head);
        let database = read_database(&mut fields)?;
        let (start, writer) = (Lsn(fields.u64()?), fields.u32()?);
        let (packs, dropped) = (fields.count(28)?, fields.count(4)?);
        let mut set = ImageSet { database, start, writer, packs: vec![], dropped: vec![] };
        for _ in 0..packs {
            let pack = PackEntry {
                first: PageId::from_u64(fields.u64()?),
                last: PageId::from_u64(fields.u64()?),
                images: fields.u32()?,
                size_bytes: fields.u64()?,
            };
            let follows = set.packs.last().is_none_or(|before| before.last < pack.first);
            if pack.first > pack.last || !follows {
                return Err(FormatError::Invalid);
            }
            set.packs.push(pack);
        }
        for _ in 0..dropped {
            let space = SpaceId(fields.u32()?);
            if set.dropped.last().is_some_and(|before| *before >= space) {
                return Err(FormatError::Invalid);
            }
            set.dropped.push(space);
        }
        fields.end()?;
        if body.is_empty() { Ok(set) } else { Err(FormatError::Invalid) }
    }

    /// The number and entry of the pack that may have an image of `page`.
    #[must_use]
    pub fn pack_of(&self, page: PageId) -> Option<(usize, &PackEntry)> {
        let number = self.packs.partition_point(|pack| pack.last < page);
        self.packs.get(number).filter(|pack| pack.first <= page).map(|pack| (number, pack))
    }
}
