//! `server_uuid`: identifies a server for as long as its data directory exists.
//!
//! As in MySQL, the file `auto.cnf` of the data directory has it:
//!
//! ```text
//!   [auto]
//!   server-uuid=f3c2a9d4-1a0b-4c5d-8e6f-0123456789ab
//! ```
//!
//! A copy of the directory for another server gets a new identity if the file is removed from it.

#![allow(clippy::disallowed_methods, reason = "files and sockets of the user who runs the binary")]

use std::io;
use std::path::Path;

use firn_api::Incarnation;
use firn_base::Environment;
use firn_base::disk::{Disk, OpenMode};
use uuid::{Builder, Uuid};

const FILE: &str = "auto.cnf";
const KEY: &str = "server-uuid=";
/// More than the file ever has.
const MOST_BYTES: u64 = 4096;

/// The identity of a data directory. Makes and stores one if there is none. Blocks.
///
/// # Errors
/// If the file can be neither read nor written.
pub(crate) fn of_directory(environment: &Environment, directory: &Path) -> io::Result<Uuid> {
    let disk = &*environment.disk;
    if let Some(kept) = kept(disk, &directory.join(FILE))? {
        return Ok(kept);
    }
    let random = (environment.random.next_u64(), environment.random.next_u64());
    let bits = u128::from(random.0) << 64 | u128::from(random.1);
    let made = Builder::from_random_bytes(bits.to_be_bytes()).into_uuid();
    keep(disk, directory, made)?;
    Ok(made)
}

/// A new life of the compute node that has this UUID.
pub(crate) fn incarnation(environment: &Environment, uuid: Uuid) -> Incarnation {
    let (node, _) = uuid.as_u64_pair();
    Incarnation { node, start: environment.random.next_u64() }
}

fn kept(disk: &dyn Disk, path: &Path) -> io::Result<Option<Uuid>> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.length()?.min(MOST_BYTES) as usize];
    file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(KEY));
    Ok(values.next().and_then(|value| Uuid::try_parse(value).ok()))
}

/// Writes a new file and renames it, so that the file is complete or not there.
fn keep(disk: &dyn Disk, directory: &Path, uuid: Uuid) -> io::Result<()> {
    let (path, temporary) = (directory.join(FILE), directory.join("auto.cnf.new"));
    // A crash may have left an incomplete file.
    let _ = disk.remove(&temporary);
    let file = disk.open(&temporary, OpenMode::CreateNew)?;
    file.write_at(format!("[auto]\n{KEY}{uuid}\n").as_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &path)?;
    disk.sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_identity_and_shares_it_with_none() {
        let environment = Environment::system();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = of_directory(&environment, one.path()).unwrap();
        assert_eq!(first.get_version_num(), 4);
        assert_eq!(of_directory(&environment, one.path()).unwrap(), first);
        assert_ne!(of_directory(&environment, other.path()).unwrap(), first);
    }

    #[test]
    fn what_is_no_identity_is_replaced() {
        let environment = Environment::system();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "[auto]\nserver-uuid=\u{e4}\n").unwrap();
        let made = of_directory(&environment, directory.path()).unwrap();
        assert_eq!(of_directory(&environment, directory.path()).unwrap(), made);
    }
}
