//! Log and pages in one local directory.
//!
//! ```text
//!   DIR/FORMAT            which format this directory has
//!   DIR/LOCK              held by the one process that has it open
//!   DIR/log/…             log segments, see docs/formats/log.md
//!   DIR/pages/…           page files and the page map, see docs/formats/pages.md
//!   DIR/BASE              where pages are that were not copied yet; only in a clone
//! ```

pub mod directory;
pub mod log;
pub mod page_log;
pub mod pages;

pub use directory::{DatabaseId, LocalDirectory, OpenError};
pub use log::{LocalLog, LogMemory, LogOptions};
pub use pages::{BasePages, LocalPages, PageCopy, PageStoreOptions};

use std::path::Path;
use std::sync::Arc;

use firn_api::{FollowOptions, LogFollower, LogStore, PageFilter};
use firn_base::Environment;
use firn_base::disk::OpenMode;
use parking_lot::Mutex;

use page_log::PageLog;

/// How a directory is used.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    pub log: LogOptions,
    pub pages: PageStoreOptions,
    /// How many bytes of log, before its durable end, are kept for a reader that registers after
    /// the start and continues where it was. `None`: for no such reader.
    pub hold_log_bytes: Option<u64>,
}

/// Log and pages of an open directory.
#[derive(Clone)]
pub struct LocalStorage {
    /// The database of the directory.
    pub database: DatabaseId,
    pub log: Arc<LocalLog>,
    pub pages: Arc<LocalPages>,
    hold: Arc<Mutex<Option<Box<dyn LogFollower>>>>,
}

/// The name of the file that says where the pages are that were not copied yet.
pub const BASE_FILE: &str = "BASE";

fn has_base(environment: &Environment, path: &Path) -> Result<bool, OpenError> {
    let path = path.join(BASE_FILE);
    match environment.disk.open(&path, OpenMode::Read) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => {
            Err(OpenError::Io { place: path.display().to_string(), reason: error.to_string() })
        }
    }
}

/// Holds the log that is there, before the page store lets any of it go.
fn hold_log(log: &LocalLog, limit_bytes: u64) -> Result<Box<dyn LogFollower>, OpenError> {
    Ok(LogStore::follow(
        log,
        FollowOptions {
            name: "archive".to_owned(),
            from: log.truncated_lsn(),
            until: None,
            pages: PageFilter::All,
            hold_limit_bytes: limit_bytes,
        },
    )?)
}

impl LocalStorage {
    /// Opens a directory, or creates the database in it. When this returns, the page store knows of
    /// everything in the log. Blocks for I/O.
    ///
    /// # Errors
    /// If another process has the directory open, another build wrote its format, or it is damaged.
    pub fn open(
        environment: &Environment,
        path: &Path,
        options: LocalOptions,
    ) -> Result<LocalStorage, OpenError> {
        LocalStorage::open_over(environment, path, options, None)
    }

    /// Like [`LocalStorage::open`], for a directory that began with pages from elsewhere. Blocks
    /// for I/O.
    ///
    /// # Errors
    /// As there; and [`OpenError::BaseMissing`] if the directory has not copied all pages of its
    /// base, and none is given.
    pub fn open_over(
        environment: &Environment,
        path: &Path,
        options: LocalOptions,
        base: Option<Arc<dyn BasePages>>,
    ) -> Result<LocalStorage, OpenError> {
        let directory = LocalDirectory::open(environment, path)?;
        if base.is_none() && has_base(environment, path)? {
            return Err(OpenError::BaseMissing { directory: path.display().to_string() });
        }
        let log = LocalLog::open(&directory, options.log)?;
        let hold = options.hold_log_bytes.map(|limit| hold_log(&log, limit)).transpose()?;
        let pages = LocalPages::open_over(&directory, options.pages, Arc::clone(&log) as _, base)?;
        PageLog::wait_until_indexed(&*log, log.durable_lsn())?;
        let (database, hold) = (directory.database(), Arc::new(Mutex::new(hold)));
        Ok(LocalStorage { database, log, pages, hold })
    }

    /// The hold on all log that was kept when the directory was opened, once: for the reader that
    /// it was taken for.
    #[must_use]
    pub fn take_hold(&self) -> Option<Box<dyn LogFollower>> {
        self.hold.lock().take()
    }

    /// Stops the background tasks. Blocks until their I/O is done.
    pub fn close(&self) {
        self.pages.close();
        self.log.close();
    }
}
