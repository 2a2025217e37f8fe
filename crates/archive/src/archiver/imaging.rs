//! A set of images under way: which pages are left, and the packs that are there.

use std::collections::{BTreeSet, VecDeque};

use firn_api::{PageStoreError, Watermarks};
use firn_base::{Lsn, PageId, SpaceId};
use firn_format::page::PageBuf;
use firn_storage::local::DatabaseId;

use super::{ArchiveOptions, ArchivedPages};
use crate::error::ArchiveError;
use crate::format::{ImageSet, Mark, PackEntry, PagePacker, SetEntry};
use crate::names;

/// Pages that are listed at once.
const LISTED: usize = 4096;

enum Left {
    /// All after this one.
    After(Option<PageId>),
    /// Those that changed since the set before.
    Changed,
}

/// A set that is being made.
pub(super) struct Imaging {
    start: Lsn,
    watermarks: Watermarks,
    writer: u32,
    database: DatabaseId,
    left: Left,
    next: VecDeque<PageId>,
    dropped: BTreeSet<SpaceId>,
    packer: PagePacker,
    packs: Vec<PackEntry>,
    /// An object that has not been written yet: name and bytes.
    pub(super) unsent: Option<(String, Vec<u8>)>,
    image: Box<PageBuf>,
}

/// What the next step of a set is.
pub(super) enum Step {
    /// There is an object to send.
    Send,
    /// All packs are there.
    Complete,
}

impl Imaging {
    /// A set that begins at `start`: of the `changed` pages, or of all.
    pub(super) fn new(
        database: DatabaseId,
        (start, watermarks): (Lsn, Watermarks),
        writer: u32,
        changed: Option<BTreeSet<PageId>>,
        dropped: BTreeSet<SpaceId>,
    ) -> Imaging {
        let left = if changed.is_some() { Left::Changed } else { Left::After(None) };
        Imaging {
            start,
            watermarks,
            writer,
            database,
            left,
            next: changed.unwrap_or_default().into_iter().collect(),
            dropped,
            packer: PagePacker::new(database, start),
            packs: Vec::new(),
            unsent: None,
            image: PageBuf::boxed(),
        }
    }

    pub(super) fn start(&self) -> Lsn {
        self.start
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(self.left, Left::After(_))
    }

    /// Reads images until a pack is full or none is left. Blocks for I/O.
    pub(super) fn read(
        &mut self,
        pages: &dyn ArchivedPages,
        options: &ArchiveOptions,
    ) -> Result<Step, ArchiveError> {
        while self.unsent.is_none() {
            let Some(page) = self.next_page(pages)? else {
                self.end_pack();
                break;
            };
            match pages.read(page, self.start, &mut self.image) {
                Ok(()) => self.packer.add(&mut self.image),
                Err(PageStoreError::Absent(_)) => {}
                Err(error) => return Err(error.into()),
            }
            self.next.pop_front();
            if self.packer.len() >= options.pack_images {
                self.end_pack();
            }
            firn_base::task::yield_now();
        }
        Ok(if self.unsent.is_some() { Step::Send } else { Step::Complete })
    }

    fn next_page(&mut self, pages: &dyn ArchivedPages) -> Result<Option<PageId>, ArchiveError> {
        if let (Left::After(after), true) = (&mut self.left, self.next.is_empty()) {
            self.next.extend(pages.pages_after(self.start, *after, LISTED)?);
            *after = self.next.back().copied().or(*after);
        }
        Ok(self.next.front().copied())
    }

    fn end_pack(&mut self) {
        let Some((first, last)) = self.packer.range() else { return };
        let packer =
            std::mem::replace(&mut self.packer, PagePacker::new(self.database, self.start));
        let bytes = packer.encode();
        let (images, size_bytes) = (packer.len() as u32, bytes.len() as u64);
        let name = names::pack(self.start, self.writer, self.packs.len());
        self.packs.push(PackEntry { first, last, images, size_bytes });
        self.unsent = Some((name, bytes));
    }

    /// The object that says which packs the set has: name and bytes.
    pub(super) fn object(&self) -> (String, Vec<u8>) {
        let set = ImageSet {
            database: self.database,
            start: self.start,
            writer: self.writer,
            packs: self.packs.clone(),
            dropped: self.dropped.iter().copied().collect(),
        };
        (names::set(self.start, self.writer), set.encode())
    }

    /// The set's entry in the manifest. The `moment` comes after all reads: no image is newer, and
    /// no page is left out because of a later drop of its space.
    pub(super) fn entry(&self, moment: Mark) -> SetEntry {
        SetEntry {
            start: self.start,
            end: moment.lsn,
            is_full: self.is_full(),
            writer: self.writer,
            images: self.packs.iter().map(|pack| u64::from(pack.images)).sum(),
            size_bytes: self.packs.iter().map(|pack| pack.size_bytes).sum(),
            time_ms: moment.time_ms,
            watermarks: self.watermarks,
        }
    }
}
