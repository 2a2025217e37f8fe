//! The local directory with its log and its pages, opened as the configuration says.

use std::path::Path;
use std::sync::Arc;

use firn_api::PageStoreError;
use firn_base::Environment;
use firn_storage::local::pages::{LocalPages, PageStoreOptions};
use firn_storage::local::{LocalDirectory, LocalLog, LogOptions, OpenError};

use crate::configuration::Configuration;

/// Log and pages of a data directory. Dropping it closes both.
pub(crate) struct LocalStorage {
    /// The directory, held by this process alone.
    pub(crate) directory: Arc<LocalDirectory>,
    /// The log.
    pub(crate) log: Arc<LocalLog>,
    /// The pages that follow the log.
    pub(crate) pages: Arc<LocalPages>,
}

/// Why the storage cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    /// The directory or the log.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The pages.
    #[error(transparent)]
    Pages(#[from] PageStoreError),
}

impl LocalStorage {
    /// Opens what is in the data directory, or makes it. The end of the log is found and cut; pages are
    /// brought up to date in the background. Blocks for I/O.
    ///
    /// # Errors
    /// If the directory is in use, cannot be read or written, or is damaged.
    pub(crate) fn open(
        environment: &Environment,
        configuration: &Configuration,
    ) -> Result<LocalStorage, StorageError> {
        let path: &Path = &configuration.data_dir.value;
        let directory = LocalDirectory::open(environment, path)?;
        let log = LocalLog::open(&directory, log_options(configuration))?;
        let pages = LocalPages::open(&directory, page_options(configuration), log.clone())?;
        Ok(LocalStorage { directory, log, pages })
    }
}

impl Drop for LocalStorage {
    /// The pages first: they read the log until they are closed.
    fn drop(&mut self) {
        self.pages.close();
        self.log.close();
    }
}

fn log_options(configuration: &Configuration) -> LogOptions {
    LogOptions {
        segment_size_bytes: configuration.log_segment_size.value.0,
        ..LogOptions::default()
    }
}

fn page_options(configuration: &Configuration) -> PageStoreOptions {
    PageStoreOptions {
        behind_limit_bytes: configuration.materialise_behind_limit.value.0,
        history_window_ms: configuration.history_window_seconds.value * 1000,
        ..PageStoreOptions::default()
    }
}
