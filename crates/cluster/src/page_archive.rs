//! The pages of a page node, taken from an archive.

use std::io;
use std::path::Path;
use std::sync::Arc;

use firn_archive::{Archive, ArchiveError, Moment, Progress, Restore};
use firn_base::disk::Disk;
use firn_base::{Environment, Lsn};
use firn_objects::ObjectStore;
use firn_storage::local::{DatabaseId, LocalOptions};

use crate::layout::Origin;

/// Opens the archive with a URL.
pub type OpenArchive =
    Arc<dyn Fn(&str) -> Result<Arc<dyn ObjectStore>, ArchiveError> + Send + Sync>;

/// Where a page node puts its pages.
pub(crate) struct PagesPlace<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) path: &'a Path,
    pub(crate) database: DatabaseId,
}

impl PagesPlace<'_> {
    /// Whether there are no files. Blocks for I/O.
    pub(crate) fn is_empty(&self) -> bool {
        match self.environment.disk.list(self.path) {
            Ok(names) => names.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Makes all pages as of the moment that a cluster begins with. `tell` gets how far that is,
    /// for people. Blocks for I/O.
    ///
    /// # Errors
    /// An error of the archive or of the disk. Then nothing is at the place.
    pub(crate) fn restore(
        &self,
        open_archive: &OpenArchive,
        origin: &Origin,
        tell: &mut dyn FnMut(String),
    ) -> Result<(), ArchiveError> {
        self.remove_leftovers();
        let archive = Archive::open(&open_archive(&origin.archive)?)?;
        let plan = archive.plan(Moment::Lsn(origin.position))?;
        let restore = Restore {
            environment: self.environment,
            archive: &archive,
            url: &origin.archive,
            plan: &plan,
            options: LocalOptions::default(),
        };
        let what = "its pages are being taken from the archive";
        tell(what.to_owned());
        let end = restore.pages_to(self.path, self.database, &mut |step| match step {
            Progress::Log { done, total } => {
                tell(format!("{what}: {}", percent("log", done, total)))
            }
            Progress::Pages { done, total } => {
                tell(format!("{what}: {}", percent("pages", done, total)));
            }
        })?;
        if end != origin.position {
            let place = archive.store().location().to_owned();
            return Err(ArchiveError::Io { place, reason: other_end(origin.position, end) });
        }
        Ok(())
    }

    /// What attempts before have left. Blocks for I/O.
    fn remove_leftovers(&self) {
        let Some((parent, name)) = self.path.parent().zip(self.path.file_name()) else { return };
        let prefix = format!("{}.", name.to_string_lossy());
        let disk = &*self.environment.disk;
        for path in disk.list(parent).unwrap_or_default() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(".new") {
                remove_files(disk, &path);
            }
        }
    }
}

fn percent(of_what: &str, done: u64, total: u64) -> String {
    format!("{} % of {of_what}", done.saturating_mul(100) / total.max(1))
}

fn other_end(wanted: Lsn, found: Lsn) -> String {
    format!("no log ends at position {wanted}, the last before ends at {found}; correct the layout")
}

/// Removes the files below a directory. What cannot be removed stays.
fn remove_files(disk: &dyn Disk, path: &Path) {
    for name in disk.list(path).unwrap_or_default() {
        if disk.list(&name).is_ok() {
            remove_files(disk, &name);
        } else if let Err(error) = disk.remove(&name) {
            tracing::warn!(%error, file = %name.display(), "a file is left over");
        }
    }
}
