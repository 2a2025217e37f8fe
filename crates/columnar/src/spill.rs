//! Where statements put what they have no memory for: files of the library's, in a directory of the engine's.
//!
//! Each run has a directory of its own in it, which goes with the run; what a crash leaves is removed when the engine
//! starts again.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library writes these files itself"
)]

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Spill {
    directory: PathBuf,
    limit_bytes: u64,
}

impl Spill {
    /// Empties the directory.
    pub(crate) fn open(directory: &Path, limit_bytes: u64) -> io::Result<Spill> {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // What others may not look into keeps them from the library's files, whatever modes
            // those have.
            _ => std::fs::DirBuilder::new().recursive(true).mode(0o750).create(directory)?,
        }
        Ok(Spill { directory: directory.to_owned(), limit_bytes })
    }

    /// The files of a run.
    pub(crate) fn files(&self) -> DiskManagerBuilder {
        DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![self.directory.clone()]))
            .with_max_temp_directory_size(self.limit_bytes)
    }
}
