//! Spilled data: the library's files, in a directory of the engine.
//!
//! Each run has a directory within it, which is removed with the run. The files of a crashed
//! process are removed when the engine starts again.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library writes these files itself"
)]

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use datafusion_execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};

/// The place for spilled data.
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
            // The library chooses the modes of its files; the directory's mode keeps other users
            // out.
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
