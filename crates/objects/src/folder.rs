//! Objects as files of a directory.
//!
//! ```text
//!   DIR/log/0000000000000008-0000000000001000     an object
//!   DIR/log/.4f0c9a77e2f14b1c.new                 one that is being written; not listed
//! ```
//!
//! An object's bytes are durable under a temporary name before it gets its own. The directory's
//! lock is held while a name is given, so two processes cannot give the same one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_base::Environment;
use firn_base::disk::{Disk, OpenMode};
use firn_base::random::RandomSource;
use firn_base::task::sleep;
use parking_lot::Mutex;

use crate::{ObjectError, ObjectStore};

/// How often the lock is asked for when another process has it.
const LOCK_ATTEMPTS: usize = 100;
/// How long a process waits between two of them; a name is given in less.
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The file that the lock makes.
const LOCK_FILE: &str = "LOCK";

/// Objects in a directory of this machine.
pub struct FolderObjects {
    disk: Arc<dyn Disk>,
    random: Arc<dyn RandomSource>,
    path: PathBuf,
    location: String,
    /// Names are given one at a time; the lock of the directory excludes other processes only.
    naming: Mutex<()>,
}

impl FolderObjects {
    /// The objects in `path`, which is made when the first one is written.
    #[must_use]
    pub fn new(environment: &Environment, path: &Path) -> FolderObjects {
        FolderObjects {
            disk: Arc::clone(&environment.disk),
            random: Arc::clone(&environment.random),
            path: path.to_owned(),
            location: format!("file://{}", path.display()),
            naming: Mutex::new(()),
        }
    }

    fn error(&self, name: &str, error: &io::Error) -> ObjectError {
        let (location, name) = (self.location.clone(), name.to_owned());
        let reason = error.to_string();
        match error.kind() {
            io::ErrorKind::NotFound => ObjectError::NotFound { location, name },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ObjectError::Full { location, name, reason }
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                ObjectError::Refused { location, name, reason }
            }
            _ => ObjectError::Unavailable { location, name, reason },
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.disk.open(path, OpenMode::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn write_new(&self, folder: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
        if !self.exists(folder)? {
            self.disk.create_directory(folder)?;
            self.disk.sync_directory(&self.path)?;
            if let Some(parent) = self.path.parent() {
                self.disk.sync_directory(parent)?;
            }
        }
        let path = folder.join(format!(".{:016x}.new", self.random.next_u64()));
        let file = self.disk.open(&path, OpenMode::CreateNew)?;
        let written = file.write_at(bytes, 0).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Left behind, it takes room and is not listed.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok(path)
    }

    /// Gives `new` the name `path`; false if the name is taken.
    fn name(&self, new: &Path, path: &Path) -> io::Result<bool> {
        let _naming = self.naming.lock();
        let mut attempts = 0;
        let _lock = loop {
            match self.disk.lock_directory(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    attempts += 1;
                    if attempts == LOCK_ATTEMPTS {
                        return Err(error);
                    }
                    sleep(LOCK_PAUSE);
                }
                other => break other?,
            }
        };
        if self.exists(path)? {
            return Ok(false);
        }
        self.disk.rename(new, path)?;
        Ok(true)
    }

    fn put_file(&self, name: &str, bytes: &[u8]) -> io::Result<bool> {
        let path = self.path.join(name);
        let folder = path.parent().unwrap_or(&self.path);
        let new = self.write_new(folder, bytes)?;
        match self.name(&new, &path) {
            Ok(true) => self.disk.sync_directory(folder).map(|()| true),
            taken_or_failed => {
                let _ = self.disk.remove(&new);
                taken_or_failed
            }
        }
    }

    fn read(&self, name: &str, range: Option<std::ops::Range<u64>>) -> io::Result<Vec<u8>> {
        let file = self.disk.open(&self.path.join(name), OpenMode::Read)?;
        let length = file.length()?;
        let range = range.unwrap_or(0..length);
        let (from, to) = (range.start.min(length), range.end.min(length));
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        file.read_at(&mut bytes, from)?;
        Ok(bytes)
    }
}

impl ObjectStore for FolderObjects {
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), ObjectError> {
        match self.put_file(name, bytes) {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err(ObjectError::Exists { location: self.location.clone(), name: name.to_owned() })
            }
            // A directory that went away meanwhile, such as one that was unmounted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(self.error(name, &io::Error::other(error.to_string())))
            }
            Err(error) => Err(self.error(name, &error)),
        }
    }

    fn get(&self, name: &str) -> Result<Vec<u8>, ObjectError> {
        self.read(name, None).map_err(|error| self.error(name, &error))
    }

    fn get_range(&self, name: &str, range: std::ops::Range<u64>) -> Result<Vec<u8>, ObjectError> {
        self.read(name, Some(range)).map_err(|error| self.error(name, &error))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, ObjectError> {
        let paths = match self.disk.list(&self.path.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(|error| self.error(folder, &error))?,
        };
        let leaves = paths.iter().filter_map(|path| path.file_name()?.to_str());
        let leaves = leaves.filter(|leaf| !leaf.starts_with('.') && *leaf != LOCK_FILE);
        let mut names: Vec<String> = leaves.map(|leaf| format!("{folder}/{leaf}")).collect();
        names.sort();
        Ok(names)
    }

    fn delete(&self, name: &str) -> Result<(), ObjectError> {
        match self.disk.remove(&self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(|error| self.error(name, &error)),
        }
    }

    fn location(&self) -> &str {
        &self.location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, FolderObjects) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive");
        let objects = FolderObjects::new(&Environment::system(), &path);
        (directory, objects)
    }

    #[test]
    fn a_folder_keeps_the_promises_of_an_object_store() {
        crate::conformance::check(&folder().1);
    }

    #[test]
    fn what_is_being_written_is_not_listed() {
        let (_directory, objects) = folder();
        objects.put("log/a", b"1").unwrap();
        let half = objects.path.join("log/.0123.new");
        objects.disk.open(&half, OpenMode::CreateNew).unwrap().write_at(b"x", 0).unwrap();
        assert_eq!(objects.list("log").unwrap(), ["log/a"]);
    }

    #[test]
    fn one_of_many_writers_gives_the_name() {
        let (_directory, objects) = folder();
        let environment = Environment::system();
        let objects = Arc::new(objects);
        let winners = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..8_u8)
            .map(|number| {
                // Each writer is like another process.
                let objects = FolderObjects::new(&environment, &objects.path);
                let winners = Arc::clone(&winners);
                let body = move || {
                    if objects.put("manifest/1", &[number]).is_ok() {
                        winners.lock().push(number);
                    }
                };
                environment.spawner.spawn("writer", Box::new(body))
            })
            .collect();
        tasks.into_iter().for_each(|task| assert!(task.join()));
        let winners = winners.lock();
        assert_eq!(winners.len(), 1);
        assert_eq!(objects.get("manifest/1").unwrap(), *winners);
    }
}
