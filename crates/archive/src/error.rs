//! Why an archive cannot be written or read.

use firn_api::{LogError, PageStoreError};
use firn_base::Lsn;
use firn_objects::ObjectError;
use firn_storage::local::{DatabaseId, OpenError};

use crate::format::FormatError;

/// Why an archive cannot be written or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    Objects(#[from] ObjectError),
    /// The log of the database.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The pages of the database.
    #[error(transparent)]
    Pages(#[from] PageStoreError),
    /// The new directory.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A file of the new directory.
    #[error("{place}: {reason}")]
    Io { place: String, reason: String },
    /// An object is not what it should be.
    #[error("{location}: object {name} is damaged: {reason}")]
    Damaged { location: String, name: String, reason: String },
    /// Nothing was ever archived there.
    #[error("there is no archive at {location}; check the URL")]
    Empty { location: String },
    /// The archive belongs to another database.
    #[error(
        "{location} is the archive of database {found}, not of {wanted}; give this database a URL of its own"
    )]
    OtherDatabase { location: String, found: DatabaseId, wanted: DatabaseId },
    /// The archive knows more than the database that it is of.
    #[error(
        "{location} has log up to {archived}, beyond the end of this database, {end}: the database is an older copy; give it a URL of its own"
    )]
    Ahead { location: String, archived: Lsn, end: Lsn },
    /// Another process has written a manifest.
    #[error("{location}: another process writes this archive (manifest {number}); this one stops")]
    Replaced { location: String, number: u64 },
    /// Another process of the cluster has been chosen to archive, and has begun.
    #[error(
        "{location}: a process that was chosen later writes this archive (choice {known}, this one's is {epoch})"
    )]
    Superseded { location: String, epoch: u64, known: u64 },
    /// The archive goes on where the database does not.
    #[error(
        "{location} has log up to {archived}, and the cluster was taken over with log up to {at}: what is behind that is lost to it. Give it a URL of its own; this archive keeps its moments"
    )]
    OfLostLog { location: String, archived: Lsn, at: Lsn },
    /// The archive cannot bring the moment back.
    #[error("{location} cannot restore {wanted}: {reason}")]
    NotCovered { location: String, wanted: String, reason: String },
    /// There is something in the directory.
    #[error("{directory} is not empty; give a directory that does not exist")]
    NotEmpty { directory: String },
}

impl ArchiveError {
    /// Whether a later try may succeed without a change of settings.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            ArchiveError::Objects(error) => error.is_retryable(),
            ArchiveError::Pages(_) => true,
            ArchiveError::Log(error) => matches!(error, LogError::Unavailable { .. }),
            _ => false,
        }
    }

    /// Whether taking the archive over may succeed later: as [`ArchiveError::is_retryable`], or
    /// another process changed the archive meanwhile.
    pub(crate) fn may_begin_again(&self) -> bool {
        let is_changed = match self {
            ArchiveError::Replaced { .. } => true,
            ArchiveError::Objects(error) => error.is_not_found(),
            _ => false,
        };
        is_changed || self.is_retryable()
    }

    pub(crate) fn damaged(location: &str, name: &str, error: FormatError) -> ArchiveError {
        let (location, name) = (location.to_owned(), name.to_owned());
        ArchiveError::Damaged { location, name, reason: error.to_string() }
    }
}
