//! The directory of a database: open in one process at a time, and only in a build that knows its
//! format.
//!
//! `DIR/FORMAT` is made before anything else. It is a text file, so that people can read it:
//!
//! ```text
//!   firn directory format 2
//!   database 5f0c9a77e2f14b1c8d5a3e0b9c6d7f21
//!   log created
//! ```
//!
//! The third line is added once the first log segment is durable. From then on, a directory without
//! log segments has lost them, and is refused rather than taken for a new one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use firn_api::{LogError, PageStoreError};
use firn_base::Environment;
use firn_base::disk::{DirectoryLock, Disk, OpenMode};

/// The directory format that this build reads and writes.
pub const DIRECTORY_FORMAT: u32 = 2;

const FORMAT_FILE: &str = "FORMAT";
const TITLE: &str = "firn directory format ";
const DATABASE: &str = "database ";
const LOG_CREATED: &str = "log created";
/// Larger than any format file; a longer file is something else.
const MAX_FORMAT_BYTES: u64 = 4096;

/// Why a directory cannot be opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// Another process has it open.
    #[error(
        "{directory} is in use by another Firn process; stop that one, or give this one a directory of its own"
    )]
    InUse { directory: String },
    /// An older or newer build made it.
    #[error(
        "{directory} has directory format {found}, this build reads and writes format {known}; open it with the build that made it, and load a dump of it into a new directory"
    )]
    Format {
        directory: String,
        /// The format of the directory.
        found: u32,
        /// The format of this build.
        known: u32,
    },
    /// The directory belongs to another database than the one that it was opened for.
    #[error(
        "{directory} has files of database {found}, not of {wanted}; give this process an empty directory, or let it join the other database"
    )]
    OtherDatabase {
        directory: String,
        /// The database of the directory.
        found: DatabaseId,
        /// The database that it was opened for.
        wanted: DatabaseId,
    },
    /// The format file is invalid.
    #[error("{file} is not a Firn format file: {reason}; restore it from a backup")]
    FormatFile { file: String, reason: &'static str },
    /// The directory has files of a database, but no format file.
    #[error(
        "{directory} has files of a database but no FORMAT file; restore it from a backup, or give an empty directory"
    )]
    FormatMissing { directory: String },
    /// The directory is that of a group's member, and somebody opens it as that of a node alone.
    #[error(
        "{directory} belongs to a member of a replicated group; start it as a member of that group"
    )]
    OfGroup { directory: String },
    /// The directory is that of a node alone, and somebody opens it as that of a group's member.
    #[error(
        "{directory} has a log that belongs to no group; give the member of a group an empty directory"
    )]
    NotOfGroup { directory: String },
    /// The directory is a clone that has not copied all of its pages.
    #[error(
        "{directory} is a clone whose pages are partly in an archive; start it with a build and settings that can read that archive"
    )]
    BaseMissing { directory: String },
    /// The disk said no.
    #[error("{place}: {reason}")]
    Io {
        /// The file or directory.
        place: String,
        /// The operating system's message.
        reason: String,
    },
    /// The log cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The pages cannot be used.
    #[error(transparent)]
    Pages(#[from] PageStoreError),
}

/// Adds the place to an I/O error.
pub(crate) trait At<T> {
    /// Turns the error into [`OpenError::Io`] about `place`.
    fn at(self, place: &Path) -> Result<T, OpenError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, place: &Path) -> Result<T, OpenError> {
        self.map_err(|error| OpenError::Io {
            place: place.display().to_string(),
            reason: error.to_string(),
        })
    }
}

/// Distinguishes databases: chosen at random when a database is made, and written into its files,
/// so that a file of another database is never mistaken for one of this database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseId(pub [u8; 16]);

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl DatabaseId {
    /// An id that no other database has.
    #[must_use]
    pub fn random(environment: &Environment) -> DatabaseId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&environment.random.next_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&environment.random.next_u64().to_le_bytes());
        DatabaseId(bytes)
    }

    /// The id in its text form: 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<DatabaseId> {
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| DatabaseId(number.to_be_bytes()))
    }
}

/// The content of the format file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Format {
    database: DatabaseId,
    log_created: bool,
}

enum FormatFault {
    OtherVersion(u32),
    Unreadable(&'static str),
}

impl Format {
    fn to_text(self) -> String {
        let mut text = format!("{TITLE}{DIRECTORY_FORMAT}\n{DATABASE}{}\n", self.database);
        if self.log_created {
            text += LOG_CREATED;
            text += "\n";
        }
        text
    }

    fn parse(text: &str) -> Result<Format, FormatFault> {
        use FormatFault::Unreadable;
        let mut lines = text.lines();
        let version = lines.next().and_then(|line| line.strip_prefix(TITLE));
        let version = version.ok_or(Unreadable("its first line does not name a format"))?;
        let version = version.parse().map_err(|_| Unreadable("its format is not a number"))?;
        if version != DIRECTORY_FORMAT {
            return Err(FormatFault::OtherVersion(version));
        }
        let database = lines.next().and_then(|line| line.strip_prefix(DATABASE));
        let database = database.and_then(DatabaseId::parse);
        let database = database.ok_or(Unreadable("its second line does not name a database"))?;
        let log_created = match lines.next() {
            None => false,
            Some(LOG_CREATED) => true,
            Some(_) => return Err(Unreadable("its third line is not known")),
        };
        Ok(Format { database, log_created })
    }
}

/// An open database directory. Dropping it lets another process open it.
pub struct LocalDirectory {
    environment: Environment,
    path: PathBuf,
    database: DatabaseId,
    log_created: AtomicBool,
    _lock: Box<dyn DirectoryLock>,
}

impl LocalDirectory {
    /// Takes the directory for this process, and makes it a database directory if it is new. Blocks
    /// for I/O.
    ///
    /// # Errors
    /// Any [`OpenError`] except those of the log and the pages.
    pub fn open(environment: &Environment, path: &Path) -> Result<Arc<LocalDirectory>, OpenError> {
        LocalDirectory::open_of(environment, path, None)
    }

    /// Like [`LocalDirectory::open`], for a process that has a part of a database which exists
    /// already: a new directory becomes one of `database`. Blocks for I/O.
    ///
    /// # Errors
    /// As there, and [`OpenError::OtherDatabase`].
    pub fn open_for(
        environment: &Environment,
        path: &Path,
        database: DatabaseId,
    ) -> Result<Arc<LocalDirectory>, OpenError> {
        LocalDirectory::open_of(environment, path, Some(database))
    }

    fn open_of(
        environment: &Environment,
        path: &Path,
        wanted: Option<DatabaseId>,
    ) -> Result<Arc<LocalDirectory>, OpenError> {
        let disk = &environment.disk;
        disk.create_directory(path).at(path)?;
        let lock = disk.lock_directory(path).or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                Err(OpenError::InUse { directory: path.display().to_string() })
            }
            _ => Err(error).at(path),
        })?;
        let format = match read_format(disk.as_ref(), path)? {
            Some(format) => format,
            None => create(environment, path, wanted)?,
        };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != format.database) {
            let (directory, found) = (path.display().to_string(), format.database);
            return Err(OpenError::OtherDatabase { directory, found, wanted });
        }
        sync_names(disk.as_ref(), path)?;
        Ok(Arc::new(LocalDirectory {
            environment: environment.clone(),
            path: path.to_owned(),
            database: format.database,
            log_created: AtomicBool::new(format.log_created),
            _lock: lock,
        }))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The environment in which it was opened.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The database that the files belong to.
    #[must_use]
    pub fn database(&self) -> DatabaseId {
        self.database
    }

    /// Whether the first log segment has ever been made durable.
    pub(crate) fn is_log_created(&self) -> bool {
        self.log_created.load(Ordering::SeqCst)
    }

    /// Records permanently that the first log segment is durable.
    pub(crate) fn mark_log_created(&self) -> Result<(), OpenError> {
        let format = Format { database: self.database, log_created: true };
        write_format(self.environment.disk.as_ref(), &self.path, format)?;
        self.log_created.store(true, Ordering::SeqCst);
        Ok(())
    }
}

/// Makes the directory and the names in it durable: a killed process may have left them only in the
/// kernel's memory.
fn sync_names(disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
    disk.sync_directory(directory).at(directory)?;
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => disk.sync_directory(parent).at(parent),
        _ => Ok(()),
    }
}

fn read_format(disk: &dyn Disk, directory: &Path) -> Result<Option<Format>, OpenError> {
    let path = directory.join(FORMAT_FILE);
    let file = match disk.open(&path, OpenMode::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.at(&path)?,
    };
    let mut bytes = vec![0; file.length().at(&path)?.min(MAX_FORMAT_BYTES) as usize];
    file.read_at(&mut bytes, 0).at(&path)?;
    let fault = match std::str::from_utf8(&bytes) {
        Ok(text) => match Format::parse(text) {
            Ok(format) => return Ok(Some(format)),
            Err(fault) => fault,
        },
        Err(_) => FormatFault::Unreadable("it is not text"),
    };
    Err(match fault {
        FormatFault::OtherVersion(found) => OpenError::Format {
            directory: directory.display().to_string(),
            found,
            known: DIRECTORY_FORMAT,
        },
        FormatFault::Unreadable(reason) => {
            OpenError::FormatFile { file: path.display().to_string(), reason }
        }
    })
}

fn create(
    environment: &Environment,
    directory: &Path,
    database: Option<DatabaseId>,
) -> Result<Format, OpenError> {
    let disk = environment.disk.as_ref();
    let names = disk.list(directory).at(directory)?;
    let is_ours = |name: &PathBuf| name.ends_with("log") || name.ends_with("pages");
    if names.iter().any(is_ours) {
        return Err(OpenError::FormatMissing { directory: directory.display().to_string() });
    }
    let database = database.unwrap_or_else(|| DatabaseId::random(environment));
    let format = Format { database, log_created: false };
    write_format(disk, directory, format)?;
    Ok(format)
}

/// Replaces the format file. After a crash, either the old or the new file is there, complete.
fn write_format(disk: &dyn Disk, directory: &Path, format: Format) -> Result<(), OpenError> {
    let (path, new_path) = (directory.join(FORMAT_FILE), directory.join("FORMAT.new"));
    match disk.remove(&new_path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).at(&new_path),
        _ => {}
    }
    let file = disk.open(&new_path, OpenMode::CreateNew).at(&new_path)?;
    file.write_at(format.to_text().as_bytes(), 0).at(&new_path)?;
    file.sync_data().at(&new_path)?;
    disk.rename(&new_path, &path).at(&path)?;
    disk.sync_directory(directory).at(directory)
}

#[cfg(test)]
mod tests;
