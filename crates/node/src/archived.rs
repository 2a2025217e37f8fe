//! A local directory whose log and pages are archived, or that began with pages of an archive.

use std::path::Path;
use std::sync::Arc;

use firn_api::report::ArchiveReport;
use firn_api::{LogStore, PageStore};
use firn_archive::{
    ArchiveError, ArchiveOptions, ArchiveSource, ArchivedBase, Archiver, BaseDescription,
    LocalWriter,
};
use firn_base::Environment;
use firn_objects::ObjectStore;
use firn_storage::local::{BasePages, LocalOptions, LocalStorage};

use crate::storage::{NodeStorage, StorageFigures};

/// Where a database is archived.
#[derive(Clone)]
pub struct ArchivePlace {
    pub store: Arc<dyn ObjectStore>,
    pub options: ArchiveOptions,
}

/// Connects to the archive with a URL.
pub type OpenStore<'a> = &'a dyn Fn(&str) -> Result<Arc<dyn ObjectStore>, ArchiveError>;

/// Opens a directory. If it is a clone that has not copied all pages, connects to the archive that
/// has them. Blocks for I/O.
///
/// # Errors
/// As [`LocalStorage::open_over`]; or an error of that archive.
pub fn open_directory(
    environment: &Environment,
    path: &Path,
    options: LocalOptions,
    open_store: OpenStore<'_>,
) -> Result<LocalStorage, ArchiveError> {
    let description = BaseDescription::read(environment.disk.as_ref(), path)?;
    let base = match description {
        None => None,
        Some(description) => {
            let store = open_store(&description.archive)?;
            let base = ArchivedBase::open(environment, path, description, store)?;
            Some(Arc::new(base) as Arc<dyn BasePages>)
        }
    };
    Ok(LocalStorage::open_over(environment, path, options, base)?)
}

/// Log and pages of a directory that is archived in the background.
pub struct ArchivedStorage {
    storage: LocalStorage,
    archiver: Archiver,
}

impl ArchivedStorage {
    /// Starts to archive `storage`, which should have been opened with a hold on its log
    /// ([`LocalOptions::hold_log_bytes`]). Does not wait for the object store.
    #[must_use]
    pub fn start(
        environment: &Environment,
        storage: LocalStorage,
        place: ArchivePlace,
    ) -> ArchivedStorage {
        let source = ArchiveSource {
            database: storage.database,
            log: Arc::clone(&storage.log) as _,
            pages: Arc::clone(&storage.pages) as _,
            writer: Arc::new(LocalWriter {
                clock: Arc::clone(&environment.clock),
                log: Arc::clone(&storage.log),
            }),
            epoch: 0,
            taken_over: None,
            hold: storage.take_hold(),
        };
        let archiver = Archiver::start(environment, place.store, source, place.options);
        ArchivedStorage { storage, archiver }
    }

    #[must_use]
    pub fn archiver(&self) -> &Archiver {
        &self.archiver
    }
}

impl NodeStorage for ArchivedStorage {
    fn log(&self) -> Arc<dyn LogStore> {
        NodeStorage::log(&self.storage)
    }

    fn pages(&self) -> Arc<dyn PageStore> {
        NodeStorage::pages(&self.storage)
    }

    fn figures(&self) -> StorageFigures {
        let status = self.archiver.status();
        let archive = ArchiveReport {
            node: String::new(),
            archived: status.archived.unwrap_or_default(),
            progress: status.progress,
        };
        StorageFigures { archive: Some(archive), ..self.storage.figures() }
    }

    /// Sends the rest of the log before it closes.
    fn close(&self) {
        self.archiver.close();
        self.storage.close();
    }
}
