//! The files of a node of a cluster that does not run, for a check of them.
//!
//! ```text
//!   node.record ──► which of these the node has
//!   control…/         its control node: vote, catalog, entries
//!   log-member…/      its member of the log group
//!   page-node/…       its chunks: stored images
//! ```
//!
//! Trees and indexes lie across chunks and nodes. A database node reads them through the network
//! (`CHECK TABLE`).

use std::path::{Path, PathBuf};

use firn_base::Environment;
use firn_base::disk::DirectoryLock;
use firn_control::ChunkId;
use firn_control_service::Place;
use firn_control_service::file::{FileError, MemberFile};
use firn_storage::group::GroupLog;
use firn_storage::local::{LocalDirectory, LogOptions, OpenError};
use firn_storage::page_node::{VerifiedPages, verify_pages};

use crate::log_member::database_of;
use crate::page_role::{self, chunk_path};
use crate::record::{Record, RecordError, RecordFile};

/// A node whose directory no process uses meanwhile.
pub struct StoppedNode {
    environment: Environment,
    directory: PathBuf,
    record: Record,
    _lock: Box<dyn DirectoryLock>,
}

/// Why the files of a node cannot be checked, or what is wrong with them.
#[derive(Debug, thiserror::Error)]
pub enum StoppedError {
    /// The node has no record: it has not been told what it is.
    #[error(
        "{} has no node.record, so nothing says what the node has; start it once with its layout",
        .0.display()
    )]
    NoRecord(PathBuf),
    /// The node has a chunk that its layout does not have yet.
    #[error("{}: nothing says where chunk {} is; start the node once", .0.display(), .1.0)]
    NoPart(PathBuf, ChunkId),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Control(#[from] FileError),
    #[error(transparent)]
    Storage(#[from] OpenError),
}

impl StoppedNode {
    /// Reads the node's record, and keeps processes from using the directory. Blocks for I/O.
    ///
    /// # Errors
    /// If a process uses the directory, or the record cannot be read.
    pub fn open(environment: &Environment, directory: &Path) -> Result<StoppedNode, StoppedError> {
        let disk = &*environment.disk;
        let lock = RecordFile::lock(disk, directory)?;
        let record = RecordFile::read(disk, directory)?;
        let record = record.ok_or_else(|| StoppedError::NoRecord(directory.to_owned()))?;
        let (environment, directory) = (environment.clone(), directory.to_owned());
        Ok(StoppedNode { environment, directory, record, _lock: lock })
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Reads and checks all of the node's control node; `None` without one. Returns the number of
    /// its entries. Blocks for I/O.
    ///
    /// # Errors
    /// If the file is damaged or missing.
    pub fn verify_control(&self) -> Result<Option<usize>, StoppedError> {
        let Some(place) = self.record.control_member.filter(|place| place.is_made) else {
            return Ok(None);
        };
        let directory = Place::from(place).directory(&self.directory);
        let (_, whole) = MemberFile::open(&self.environment.disk, &directory, None)?;
        Ok(Some(whole.entries.len()))
    }

    /// Opens the log of the node's member of the log group; `None` without one. Blocks for I/O.
    ///
    /// # Errors
    /// If it is damaged or missing.
    pub fn open_log(&self, options: LogOptions) -> Result<Option<GroupLog>, StoppedError> {
        let Some(place) = self.record.log_member.filter(|place| place.is_made) else {
            return Ok(None);
        };
        let [path, _] = place.directories(&self.directory);
        let directory =
            LocalDirectory::open_for(&self.environment, &path, database_of(self.record.cluster))?;
        Ok(Some(GroupLog::open_again(&directory, options)?))
    }

    /// The chunks of pages that the node has.
    pub fn chunks(&self) -> impl Iterator<Item = ChunkId> {
        self.record.held.keys().copied()
    }

    /// Reads and checks all pages of a chunk; see [`verify_pages`]. Blocks for I/O.
    ///
    /// # Errors
    /// If an image is damaged, or the chunk's files are.
    pub fn verify_chunk(
        &self,
        chunk: ChunkId,
        progress: &mut dyn FnMut(u64),
    ) -> Result<VerifiedPages, StoppedError> {
        let layout = self.record.layout.as_ref();
        let known = || layout.and_then(|layout| layout.held_part(chunk));
        let part = self.record.parts.get(&chunk).copied().or_else(known);
        let part = part.ok_or_else(|| StoppedError::NoPart(self.directory.clone(), chunk))?;
        let path = chunk_path(&self.directory.join(page_role::DIRECTORY), chunk, &part);
        Ok(verify_pages(&self.environment, &path, database_of(self.record.cluster), progress)?)
    }
}
