//! A new directory at a moment of an archive: as a clone, whose pages stay in the archive until
//! they are needed, or as a restore, which has everything.
//!
//! ```text
//!   DIR.0f3a….new/FORMAT     it is another database
//!                 BASE       which images it begins with
//!                 log/…      the archive's log from the base's start to the moment
//!          ─── for a restore: every page is copied ───
//!          ─── renamed to DIR when all that is durable ───
//! ```
//!
//! The rest is ordinary recovery: the log is applied to pages, and transactions that had not
//! committed at the moment are rolled back.
//!
//! The pages of a page node are made in the same way. Then the log is applied to all of them and
//! removed: the node follows that of its cluster from there on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::{PageStoreError, Watermarks};
use firn_base::{Environment, Lsn, PageId, PageNo, SpaceId};
use firn_format::redo::{Change, GroupBuilder};
use firn_objects::{ObjectError, put_once};
use firn_storage::local::{DatabaseId, LocalDirectory, LocalLog, LocalOptions, LocalStorage};

use crate::archive::{Archive, RestorePlan};
use crate::base::{ArchivedBase, BaseDescription, io_error};
use crate::error::ArchiveError;
use crate::names;

/// How far a restore has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of log that are in the directory, and of all.
    Log { done: u64, total: u64 },
    /// Pages that are in the directory, and at most that many in all.
    Pages { done: u64, total: u64 },
}

/// Log that is written to the new directory at once, in bytes.
const IMPORTED_BYTES: usize = 4 << 20;

/// The outcome of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The new database.
    pub database: DatabaseId,
    /// The last group of the archive that is in the directory ends here.
    pub end: Lsn,
}

/// A restore to a new directory.
pub struct Restore<'a> {
    pub environment: &'a Environment,
    pub archive: &'a Archive,
    /// The URL of the archive, as the directory will name it.
    pub url: &'a str,
    pub plan: &'a RestorePlan,
    /// How the new directory is used.
    pub options: LocalOptions,
}

/// What a new directory becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A database whose pages are in the archive.
    Clone,
    /// A database that has everything.
    Restore,
    /// That of a page node of this database. It has pages and no log.
    PageNode(DatabaseId),
}

impl Restore<'_> {
    /// Makes a directory whose pages are still in the archive. Blocks for I/O.
    ///
    /// # Errors
    /// [`ArchiveError::NotEmpty`]; an error of the archive or of the disk. What was made until then
    /// is left beside `directory`, with a name that ends with `.new`.
    pub fn clone_to(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Restored, ArchiveError> {
        self.make(directory, progress, Kind::Clone)
    }

    /// Makes a directory that does not need the archive any more. Blocks for I/O.
    ///
    /// # Errors
    /// As [`Restore::clone_to`].
    pub fn restore_to(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Restored, ArchiveError> {
        self.make(directory, progress, Kind::Restore)
    }

    /// Makes the directory of a page node of `database`. It has all pages as of the returned
    /// position, and the node follows the log of `database` from there on. Blocks for I/O.
    ///
    /// # Errors
    /// As [`Restore::clone_to`].
    pub fn pages_to(
        &self,
        directory: &Path,
        database: DatabaseId,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Lsn, ArchiveError> {
        Ok(self.make(directory, progress, Kind::PageNode(database))?.end)
    }

    fn make(
        &self,
        directory: &Path,
        progress: &mut dyn FnMut(Progress),
        kind: Kind,
    ) -> Result<Restored, ArchiveError> {
        let new = self.new_place(directory)?;
        let (restored, description) = self.build(&new, progress, kind)?;
        if kind != Kind::Clone {
            self.copy_pages(&new, description, progress, |storage| match kind {
                Kind::PageNode(_) => storage.pages.materialise_up_to(restored.end),
                Kind::Clone | Kind::Restore => Ok(()),
            })?;
        }
        if let Kind::PageNode(_) = kind {
            self.remove_log(&new)?;
        }
        self.rename(&new, directory)?;
        Ok(restored)
    }

    fn remove_log(&self, new: &Path) -> Result<(), ArchiveError> {
        let (disk, path) = (self.environment.disk.as_ref(), new.join("log"));
        disk.list(&path)
            .and_then(|names| names.iter().try_for_each(|name| disk.remove(name)))
            .and_then(|()| disk.sync_directory(&path))
            .map_err(|error| io_error(&path, &error))
    }

    /// A place beside `directory`, which must not have anything in it.
    fn new_place(&self, directory: &Path) -> Result<PathBuf, ArchiveError> {
        match self.environment.disk.list(directory) {
            Ok(names) if names.is_empty() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(directory, &error)),
            Ok(_) => {
                return Err(ArchiveError::NotEmpty { directory: directory.display().to_string() });
            }
        }
        let leaf = directory.file_name().unwrap_or_default().to_string_lossy();
        let number = self.environment.random.next_u64();
        Ok(directory.with_file_name(format!("{leaf}.{number:016x}.new")))
    }

    fn rename(&self, new: &Path, directory: &Path) -> Result<(), ArchiveError> {
        let disk = self.environment.disk.as_ref();
        let parent = match directory.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        disk.rename(new, directory)
            .and_then(|()| disk.sync_directory(parent))
            .map_err(|error| io_error(directory, &error))
    }

    /// Makes everything but the pages.
    fn build(
        &self,
        new: &Path,
        progress: &mut dyn FnMut(Progress),
        kind: Kind,
    ) -> Result<(Restored, BaseDescription), ArchiveError> {
        let (directory, pin) = match kind {
            // Several nodes of a database may need the archive at the same time.
            Kind::PageNode(database) => (
                LocalDirectory::open_for(self.environment, new, database)?,
                DatabaseId::random(self.environment),
            ),
            Kind::Clone | Kind::Restore => {
                let directory = LocalDirectory::open(self.environment, new)?;
                let pin = directory.database();
                (directory, pin)
            }
        };
        let (database, plan) = (directory.database(), self.plan);
        let ids = (self.archive.manifest().database, pin);
        let description = BaseDescription::of(self.url, ids, plan);
        description.write(self.environment.disk.as_ref(), new)?;
        self.pin(pin)?;
        let log = LocalLog::open_from(&directory, self.options.log, plan.base().start)?;
        let imported = self.import(&log, progress).and_then(|(end, watermarks)| {
            if let Kind::Clone | Kind::Restore = kind {
                log.import(&watermark_group(watermarks))?;
            }
            Ok(end)
        });
        log.close();
        Ok((Restored { database, end: imported? }, description))
    }

    /// Keeps the archive from removing the sets.
    fn pin(&self, database: DatabaseId) -> Result<(), ArchiveError> {
        let store = self.archive.store().as_ref();
        let content = self.plan.base().start.0.to_le_bytes();
        match put_once(store, &names::pin(database), &content) {
            Err(error @ ObjectError::Refused { .. }) => {
                tracing::warn!(%error, "the archive may remove images that are still needed");
                Ok(())
            }
            other => Ok(other?),
        }
    }

    /// Writes the log up to the target. Returns where it ends, and ids that were not handed out by
    /// then.
    fn import(
        &self,
        log: &Arc<LocalLog>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Lsn, Watermarks), ArchiveError> {
        let (start, target) = (self.plan.base().start, self.plan.target);
        let mut watermarks = self.plan.base().watermarks;
        let mut end = start;
        // A plan without log, whose images end at the target, says so too.
        progress(Progress::Log { done: 0, total: target.since(start) });
        for entry in &self.plan.log {
            let object = self.archive.log_object(entry)?;
            watermarks.raise(object.head.watermarks);
            let mut pending = Vec::new();
            let mut rest = object.groups.as_slice();
            let mut at = entry.from;
            while !rest.is_empty() {
                let group = self.archive.group(entry, rest)?;
                let length = group.length_bytes();
                let (bytes, behind) = rest.split_at(length as usize);
                at = at.advance(length);
                rest = behind;
                if at > target {
                    break;
                }
                if at > end {
                    pending.extend_from_slice(bytes);
                    end = at;
                }
                if pending.len() >= IMPORTED_BYTES {
                    log.import(&pending)?;
                    pending.clear();
                    progress(Progress::Log { done: end.since(start), total: target.since(start) });
                }
            }
            if !pending.is_empty() {
                log.import(&pending)?;
            }
            progress(Progress::Log { done: end.since(start), total: target.since(start) });
        }
        Ok((end, watermarks))
    }

    /// Copies all pages of the base, and has `finish` do the rest.
    fn copy_pages(
        &self,
        new: &Path,
        description: BaseDescription,
        progress: &mut dyn FnMut(Progress),
        finish: impl FnOnce(&LocalStorage) -> Result<(), PageStoreError>,
    ) -> Result<(), ArchiveError> {
        let store = Arc::clone(self.archive.store());
        let base = ArchivedBase::open(self.environment, new, description, store)?;
        let total = base.images();
        let options = self.options.clone();
        let storage =
            LocalStorage::open_over(self.environment, new, options, Some(Arc::new(base)))?;
        let copied = storage.pages.copy_base(&mut |done| progress(Progress::Pages { done, total }));
        let finished = copied.and_then(|()| finish(&storage));
        storage.close();
        Ok(finished?)
    }
}

/// A group that says that ids below these may have been handed out.
fn watermark_group(watermarks: Watermarks) -> Vec<u8> {
    let mut builder = GroupBuilder::new();
    let change = Change::Watermark {
        trx_id_limit: watermarks.trx_id_limit,
        cts_limit: watermarks.cts_limit,
    };
    let page = PageId::new(SpaceId(0), PageNo::NONE);
    change.encode(page, &mut builder);
    builder.finish().to_vec()
}
