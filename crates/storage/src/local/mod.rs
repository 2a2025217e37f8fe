//! Log and pages in one local directory.
//!
//! ```text
//!   DIR/FORMAT            which format this directory has
//!   DIR/LOCK              held by the one process that has it open
//!   DIR/log/…             log segments, see docs/formats/log.md
//!   DIR/pages/…           page files and the page map, see docs/formats/pages.md
//! ```

pub mod directory;
pub mod log;
pub mod page_log;
pub mod pages;

pub use directory::{DatabaseId, LocalDirectory, OpenError};
pub use log::{LocalLog, LogMemory, LogOptions};
pub use pages::{LocalPages, PageStoreOptions};

use std::path::Path;
use std::sync::Arc;

use firn_base::Environment;

use page_log::PageLog;

/// How a directory is used.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    pub log: LogOptions,
    pub pages: PageStoreOptions,
}

/// Log and pages of an open directory.
#[derive(Clone)]
pub struct LocalStorage {
    pub log: Arc<LocalLog>,
    pub pages: Arc<LocalPages>,
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
        let directory = LocalDirectory::open(environment, path)?;
        let log = LocalLog::open(&directory, options.log)?;
        let pages = LocalPages::open(&directory, options.pages, Arc::clone(&log) as _)?;
        PageLog::wait_until_indexed(&*log, log.durable_lsn())?;
        Ok(LocalStorage { log, pages })
    }

    /// Stops the background tasks. Blocks until their I/O is done.
    pub fn close(&self) {
        self.pages.close();
        self.log.close();
    }
}
