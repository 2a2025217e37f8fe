//! The images of an archive as the base of a directory.
//!
//! `DIR/BASE` is a text file that says which sets the directory began with:
//!
//! ```text
//!   firn base 1
//!   archive file:///backup/firn
//!   database 5f0c9a77e2f14b1c8d5a3e0b9c6d7f21
//!   clone 0b1d6f21e2f14b1c8d5a3e0b9c6d7f21
//!   range 1048 20992
//!   set 1048 7c0f11aa
//!   set 9000 7c0f11aa
//! ```
//!
//! `database` is that of the archive, `clone` that of the directory. The first set is a full one,
//! the last one the newest. As long as the directory needs them, a pin in the archive keeps them
//! from being removed.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::disk::{Disk, OpenMode};
use firn_base::{Environment, Lsn, PageId};
use firn_format::page::PageBuf;
use firn_objects::{ObjectError, ObjectStore};
use firn_storage::local::{BASE_FILE, BasePages, DatabaseId};
use parking_lot::Mutex;

use crate::archive::{RestorePlan, read_head};
use crate::error::ArchiveError;
use crate::format::{FormatError, ImageSet, ObjectKind, PageHead, decompress};
use crate::names;

const TITLE: &str = "firn base 1";
/// Longer than the file of the longest chain of sets.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Heads of packs in memory; about 10 KiB each.
const MOST_HEADS: usize = 4096;
/// Whole packs in memory, a few MiB each: those of which more than one image was read.
const MOST_PACKS: usize = 8;

/// The content of a directory's `BASE` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseDescription {
    /// The URL of the archive.
    pub archive: String,
    /// The database of the archive.
    pub database: DatabaseId,
    /// The database of the directory.
    pub clone: DatabaseId,
    pub start: Lsn,
    pub end: Lsn,
    /// Start and writer of each set.
    pub sets: Vec<(Lsn, u32)>,
}

impl BaseDescription {
    /// The base of a restore.
    pub(crate) fn of(
        archive: &str,
        (database, clone): (DatabaseId, DatabaseId),
        plan: &RestorePlan,
    ) -> BaseDescription {
        BaseDescription {
            archive: archive.to_owned(),
            database,
            clone,
            start: plan.base().start,
            end: plan.base().end,
            sets: plan.sets.iter().map(|set| (set.start, set.writer)).collect(),
        }
    }

    fn to_text(&self) -> String {
        let mut text = format!("{TITLE}\narchive {}\n", self.archive);
        text += &format!("database {}\nclone {}\n", self.database, self.clone);
        text += &format!("range {} {}\n", self.start.0, self.end.0);
        for (start, writer) in &self.sets {
            text += &format!("set {} {writer:08x}\n", start.0);
        }
        text
    }

    fn parse(text: &str) -> Option<BaseDescription> {
        let mut lines = text.lines();
        lines.next().filter(|line| *line == TITLE)?;
        let archive = lines.next()?.strip_prefix("archive ")?.to_owned();
        let database = DatabaseId::parse(lines.next()?.strip_prefix("database ")?)?;
        let clone = DatabaseId::parse(lines.next()?.strip_prefix("clone ")?)?;
        let (start, end) = lines.next()?.strip_prefix("range ")?.split_once(' ')?;
        let set = |line: &str| {
            let (start, writer) = line.strip_prefix("set ")?.split_once(' ')?;
            Some((Lsn(start.parse().ok()?), u32::from_str_radix(writer, 16).ok()?))
        };
        let (start, end) = (Lsn(start.parse().ok()?), Lsn(end.parse().ok()?));
        let sets: Vec<(Lsn, u32)> = lines.map(set).collect::<Option<_>>()?;
        let is_whole = start <= end && sets.last().is_some_and(|(last, _)| *last == start);
        is_whole.then_some(BaseDescription { archive, database, clone, start, end, sets })
    }

    /// Reads the file of a directory; `None` if the directory needs no base. Blocks for I/O.
    ///
    /// # Errors
    /// If the file cannot be read or is not such a file.
    pub fn read(
        disk: &dyn Disk,
        directory: &Path,
    ) -> Result<Option<BaseDescription>, ArchiveError> {
        let path = directory.join(BASE_FILE);
        let bytes = (|| {
            let file = disk.open(&path, OpenMode::Read)?;
            let mut bytes = vec![0; file.length()?.min(MAX_FILE_BYTES) as usize];
            file.read_at(&mut bytes, 0)?;
            Ok(bytes)
        })();
        let bytes = match bytes {
            Err(error) if io::Error::kind(&error) == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|error| io_error(&path, &error))?,
        };
        let found = std::str::from_utf8(&bytes).ok().and_then(BaseDescription::parse);
        let reason = "it does not say which images the directory began with".to_owned();
        let place = path.display().to_string();
        found.map(Some).ok_or(ArchiveError::Io { place, reason })
    }

    /// Writes the file of a new directory, durably. Blocks for I/O.
    pub(crate) fn write(&self, disk: &dyn Disk, directory: &Path) -> Result<(), ArchiveError> {
        let path = directory.join(BASE_FILE);
        disk.open(&path, OpenMode::CreateNew)
            .and_then(|file| {
                file.write_at(self.to_text().as_bytes(), 0).and_then(|()| file.sync_data())
            })
            .and_then(|()| disk.sync_directory(directory))
            .map_err(|error| io_error(&path, &error))
    }
}

pub(crate) fn io_error(path: &Path, error: &io::Error) -> ArchiveError {
    ArchiveError::Io { place: path.display().to_string(), reason: error.to_string() }
}

/// The base images of a directory, read from an archive as they are needed.
pub struct ArchivedBase {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    pin: String,
    store: Arc<dyn ObjectStore>,
    description: BaseDescription,
    /// Oldest first.
    sets: Vec<ImageSet>,
    cache: Mutex<Cache>,
}

/// Which pack: the number of its set, and its number there.
type PackPlace = (usize, usize);

/// Parts of packs.
#[derive(Default)]
struct Cache {
    heads: HashMap<PackPlace, Arc<PageHead>>,
    packs: Vec<(PackPlace, Arc<Vec<u8>>)>,
    last_read: Option<PackPlace>,
}

impl ArchivedBase {
    /// Reads the descriptions of the sets. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the store, or damage.
    pub fn open(
        environment: &Environment,
        directory: &Path,
        description: BaseDescription,
        store: Arc<dyn ObjectStore>,
    ) -> Result<ArchivedBase, ArchiveError> {
        let mut sets = Vec::new();
        for (start, writer) in &description.sets {
            let name = names::set(*start, *writer);
            let set = ImageSet::decode(&store.get(&name)?);
            let set = set.map_err(|error| ArchiveError::damaged(store.location(), &name, error))?;
            if (set.database, set.start, set.writer) != (description.database, *start, *writer) {
                let invalid = FormatError::Invalid;
                return Err(ArchiveError::damaged(store.location(), &name, invalid));
            }
            sets.push(set);
        }
        Ok(ArchivedBase {
            disk: Arc::clone(&environment.disk),
            directory: directory.to_owned(),
            pin: names::pin(description.clone),
            store,
            description,
            sets,
            cache: Mutex::default(),
        })
    }

    /// The number of images in all sets: at least that of the pages.
    #[must_use]
    pub fn images(&self) -> u64 {
        self.sets.iter().flat_map(|set| &set.packs).map(|pack| u64::from(pack.images)).sum()
    }

    fn pack_name(&self, place: PackPlace) -> String {
        let set = &self.sets[place.0];
        names::pack(set.start, set.writer, place.1)
    }

    fn head(&self, place: PackPlace) -> Result<Arc<PageHead>, ArchiveError> {
        if let Some(head) = self.cache.lock().heads.get(&place) {
            return Ok(Arc::clone(head));
        }
        let name = self.pack_name(place);
        let bytes = read_head(self.store.as_ref(), ObjectKind::Pages, &name)?;
        let head = PageHead::decode(&bytes);
        let head = head.map_err(|error| self.damaged(&name, error))?;
        if (head.database, head.set) != (self.description.database, self.sets[place.0].start) {
            return Err(self.damaged(&name, FormatError::Invalid));
        }
        let head = Arc::new(head);
        let mut cache = self.cache.lock();
        if cache.heads.len() >= MOST_HEADS {
            cache.heads.clear();
        }
        cache.heads.insert(place, Arc::clone(&head));
        Ok(head)
    }

    fn damaged(&self, name: &str, error: FormatError) -> ArchiveError {
        ArchiveError::damaged(self.store.location(), name, error)
    }

    /// The whole pack, if it is worth reading: several of its images are read in turn.
    fn whole_pack(&self, place: PackPlace) -> Result<Option<Arc<Vec<u8>>>, ArchiveError> {
        let mut cache = self.cache.lock();
        if let Some((_, bytes)) = cache.packs.iter().find(|(other, _)| *other == place) {
            return Ok(Some(Arc::clone(bytes)));
        }
        if cache.last_read.replace(place) != Some(place) {
            return Ok(None);
        }
        drop(cache);
        let bytes = Arc::new(self.store.get(&self.pack_name(place))?);
        let mut cache = self.cache.lock();
        if cache.packs.len() >= MOST_PACKS {
            cache.packs.remove(0);
        }
        cache.packs.push((place, Arc::clone(&bytes)));
        Ok(Some(bytes))
    }

    fn read_image(&self, page: PageId, into: &mut PageBuf) -> Result<bool, ArchiveError> {
        for (number, set) in self.sets.iter().enumerate().rev() {
            if let Some((pack, _)) = set.pack_of(page) {
                let place = (number, pack);
                let head = self.head(place)?;
                if let Some(entry) = head.find(page) {
                    let name = self.pack_name(place);
                    let invalid = || self.damaged(&name, FormatError::Invalid);
                    let range = head.image_range(entry).ok_or_else(invalid)?;
                    let decompressed = match self.whole_pack(place)? {
                        Some(bytes) => {
                            let stored = bytes.get(range).ok_or_else(invalid)?;
                            decompress(stored, page, into)
                        }
                        None => {
                            let range = range.start as u64..range.end as u64;
                            decompress(&self.store.get_range(&name, range)?, page, into)
                        }
                    };
                    decompressed.map_err(|error| self.damaged(&name, error))?;
                    return Ok(true);
                }
            }
            if set.dropped.contains(&page.space) {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Pages after `after` that have an image in some set, of dropped spaces too.
    fn listed(&self, after: Option<PageId>, limit: usize) -> Result<Vec<PageId>, ArchiveError> {
        let mut found = BTreeSet::new();
        for (number, set) in self.sets.iter().enumerate() {
            let first = set.packs.partition_point(|pack| Some(pack.last) <= after);
            let mut count = 0;
            for pack in first..set.packs.len() {
                if count >= limit {
                    break;
                }
                let head = self.head((number, pack))?;
                let pages = head.images().iter().map(|entry| entry.page);
                let pages: Vec<PageId> = pages.filter(|page| Some(*page) > after).collect();
                count += pages.len();
                found.extend(pages);
            }
        }
        Ok(found.into_iter().take(limit).collect())
    }

    /// Whether the space was dropped after the newest set that may have an image of it.
    fn is_dropped(&self, page: PageId) -> bool {
        self.sets.iter().any(|set| set.dropped.contains(&page.space))
    }
}

/// Translates an error for the readers of a page.
fn of_page(page: PageId, error: ArchiveError) -> PageStoreError {
    match error {
        ArchiveError::Damaged { location, name, reason } => {
            PageStoreError::Damaged { page, place: format!("{location}, object {name}"), reason }
        }
        error => PageStoreError::Unavailable {
            page,
            place: "its archive".to_owned(),
            reason: error.to_string(),
        },
    }
}

impl BasePages for ArchivedBase {
    fn start(&self) -> Lsn {
        self.description.start
    }

    fn end(&self) -> Lsn {
        self.description.end
    }

    fn read(&self, page: PageId, into: &mut PageBuf) -> Result<bool, PageStoreError> {
        self.read_image(page, into).map_err(|error| of_page(page, error))
    }

    fn pages_after(
        &self,
        after: Option<PageId>,
        limit: usize,
    ) -> Result<Vec<PageId>, PageStoreError> {
        let mut after = after;
        loop {
            let mut pages = self
                .listed(after, limit)
                .map_err(|error| of_page(after.unwrap_or(PageId::from_u64(0)), error))?;
            let Some(last) = pages.last().copied() else { return Ok(Vec::new()) };
            pages.retain(|page| !self.is_dropped(*page));
            if !pages.is_empty() {
                return Ok(pages);
            }
            after = Some(last);
        }
    }

    fn release(&self) -> Result<(), PageStoreError> {
        match self.store.delete(&self.pin) {
            Err(error @ ObjectError::Refused { .. }) => {
                tracing::warn!(%error, pin = self.pin, "the archive keeps images for a clone");
            }
            other => other.map_err(|error| {
                let (place, reason) = (self.store.location().to_owned(), error.to_string());
                PageStoreError::Io { place, reason }
            })?,
        }
        let path = self.directory.join(BASE_FILE);
        let removed = match self.disk.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        };
        removed.and_then(|()| self.disk.sync_directory(&self.directory)).map_err(|error| {
            PageStoreError::Io { place: path.display().to_string(), reason: error.to_string() }
        })?;
        tracing::info!("every page of the clone is in its directory now");
        Ok(())
    }
}
