//! `server_uuid`: what tells a server from all others, as long as its data directory lives.
//!
//! It is kept where MySQL keeps its own, in a file `auto.cnf` of the data directory:
//!
//! ```text
//!   [auto]
//!   server-uuid=f3c2a9d4-1a0b-4c5d-8e6f-0123456789ab
//! ```
//!
//! A directory that was copied for another server gets another one once the file is removed.

#![allow(clippy::disallowed_methods, reason = "files and sockets of whoever runs the binary")]

use std::io;
use std::path::Path;

use firn_api::Incarnation;
use firn_base::Environment;
use firn_base::disk::{Disk, OpenMode};

const FILE: &str = "auto.cnf";
const KEY: &str = "server-uuid=";
/// More than the file ever has.
const MOST_BYTES: u64 = 4096;

/// The identity of a data directory, made and kept if it has none. Blocks.
///
/// # Errors
/// If the file can be neither read nor written.
pub(crate) fn of_directory(environment: &Environment, directory: &Path) -> io::Result<String> {
    let disk = &*environment.disk;
    if let Some(kept) = kept(disk, &directory.join(FILE))? {
        return Ok(kept);
    }
    let made = random(environment.random.next_u64(), environment.random.next_u64());
    keep(disk, directory, &made)?;
    Ok(made)
}

/// A new life of the compute node that has this UUID.
pub(crate) fn incarnation(environment: &Environment, uuid: &str) -> Incarnation {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    let node = u64::from_str_radix(&digits, 16).unwrap_or_default();
    Incarnation { node, start: environment.random.next_u64() }
}

fn kept(disk: &dyn Disk, path: &Path) -> io::Result<Option<String>> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.length()?.min(MOST_BYTES) as usize];
    file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut values = text.lines().filter_map(|line| line.trim().strip_prefix(KEY));
    Ok(values.next().filter(|value| is_uuid(value)).map(str::to_owned))
}

/// Writes the file under another name first, so that it is there whole or not at all.
fn keep(disk: &dyn Disk, directory: &Path, uuid: &str) -> io::Result<()> {
    let (path, temporary) = (directory.join(FILE), directory.join("auto.cnf.new"));
    // What a crash has left in the midst of this.
    let _ = disk.remove(&temporary);
    let file = disk.open(&temporary, OpenMode::CreateNew)?;
    file.write_at(format!("[auto]\n{KEY}{uuid}\n").as_bytes(), 0)?;
    file.sync_data()?;
    disk.rename(&temporary, &path)?;
    disk.sync_directory(directory)
}

/// A UUID of version 4 out of random bits.
fn random(high: u64, low: u64) -> String {
    let bits = u128::from(high) << 64 | u128::from(low);
    let (version, variant) = (0xf_u128 << 76, 0x3_u128 << 62);
    let bits = bits & !version & !variant | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    let ends = [0..8, 8..12, 12..16, 16..20, 20..32];
    ends.map(|part| digits[part].to_owned()).join("-")
}

fn is_uuid(text: &str) -> bool {
    let is_right = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_keeps_its_identity_and_shares_it_with_none() {
        let environment = Environment::system();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = of_directory(&environment, one.path()).unwrap();
        assert!(is_uuid(&first), "{first}");
        assert_eq!(&first[14..15], "4");
        assert_eq!(of_directory(&environment, one.path()).unwrap(), first);
        assert_ne!(of_directory(&environment, other.path()).unwrap(), first);
    }

    #[test]
    fn what_is_no_identity_is_replaced() {
        let environment = Environment::system();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "[auto]\nserver-uuid=\u{e4}\n").unwrap();
        let made = of_directory(&environment, directory.path()).unwrap();
        assert!(is_uuid(&made), "{made}");
        assert_eq!(of_directory(&environment, directory.path()).unwrap(), made);
    }
}
