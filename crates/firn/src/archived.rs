//! Where archives are, and directories that are archived or were made from one.
//!
//! ```text
//!   setting `archive` ──► URL ──► object store ──► ArchivePlace ──► a node's archiver
//!   directory of a clone ──► the archive that its pages come from
//! ```

use std::path::Path;
use std::sync::Arc;

use firn_archive::ArchiveError;
use firn_base::Environment;
use firn_node::archived::{ArchivePlace, ArchivedStorage, open_directory};
use firn_node::storage::NodeStorage;
use firn_objects::{Credentials, ObjectStore, ObjectUrl};
use firn_storage::local::{LocalOptions, LocalStorage};

use crate::CommandError;
use crate::configuration::Configuration;

/// The variables with which cloud stores are opened.
fn credentials() -> Credentials {
    let is_ours =
        |name: &str| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix));
    Credentials(std::env::vars().filter(|(name, _)| is_ours(name)).collect())
}

/// Opens the store of an archive.
///
/// # Errors
/// If the URL names no store, or it cannot be opened.
pub(crate) fn open_store(
    environment: &Environment,
    url: &str,
) -> Result<Arc<dyn ObjectStore>, ArchiveError> {
    let parsed: ObjectUrl = url.parse().map_err(|error: firn_objects::UrlError| {
        // The text may have a password in it.
        ArchiveError::Io { place: "the URL of the archive".to_owned(), reason: error.to_string() }
    })?;
    Ok(parsed.open(environment, &credentials())?)
}

/// Opens the directory of a node alone, over an archive if it is a clone. Blocks for I/O.
///
/// # Errors
/// If it cannot be opened.
pub(crate) fn open_local(
    environment: &Environment,
    path: &Path,
    options: LocalOptions,
) -> Result<LocalStorage, CommandError> {
    Ok(open_directory(environment, path, options, &|url| open_store(environment, url))?)
}

/// Where the settings have the database archived.
///
/// # Errors
/// If the archive cannot be opened.
pub(crate) fn archive_place(
    environment: &Environment,
    configuration: &Configuration,
) -> Result<Option<ArchivePlace>, CommandError> {
    let url = configuration.archive.value.as_str();
    if url.is_empty() {
        return Ok(None);
    }
    let (store, options) = (open_store(environment, url)?, configuration.archive_options());
    Ok(Some(ArchivePlace { store, options }))
}

/// Log and pages of a node alone, archived if the settings say so.
///
/// # Errors
/// If the directory or the archive cannot be opened.
pub(crate) fn storage(
    environment: &Environment,
    configuration: &Configuration,
) -> Result<Arc<dyn NodeStorage>, CommandError> {
    let path = &configuration.data_dir.value;
    let place = archive_place(environment, configuration)?;
    let storage = open_local(environment, path, configuration.storage_options())?;
    let Some(place) = place else { return Ok(Arc::new(storage)) };
    Ok(Arc::new(ArchivedStorage::start(environment, storage, place)))
}
