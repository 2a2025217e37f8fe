//! The file that keeps the readers that stay. `docs/formats/log_service.md` describes its bytes.
//!
//! It is replaced as a whole. The positions in it may be older than those that readers hold, which
//! only keeps more log after a restart; names and limits are never older than what was answered.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firn_api::LogError;
use firn_base::disk::{Disk, OpenMode, create_durable_directory};

use crate::message::HeldReader;

const MAGIC: [u8; 8] = *b"FIRNRDRS";
const VERSION: u8 = 1;
/// Magic, version, three zeros, length, checksum.
const HEADER_BYTES: usize = 20;

pub(super) struct Registry {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
}

impl Registry {
    /// The registry in a directory, which is created. Blocks for I/O.
    pub(super) fn open(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Registry, LogError> {
        let registry = Registry { disk: Arc::clone(disk), directory: directory.to_owned() };
        create_durable_directory(&**disk, directory)
            .map_err(|error| registry.unreadable(&error))?;
        Ok(registry)
    }

    fn path(&self) -> PathBuf {
        self.directory.join("readers")
    }

    /// The file, for people.
    pub(super) fn place(&self) -> String {
        self.path().display().to_string()
    }

    fn unreadable(&self, error: &io::Error) -> LogError {
        LogError::Unreadable { at: self.place(), reason: error.to_string() }
    }

    /// The readers of the file; none if there is no file. Blocks for I/O.
    pub(super) fn load(&self) -> Result<Vec<HeldReader>, LogError> {
        let file = match self.disk.open(&self.path(), OpenMode::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file.map_err(|error| self.unreadable(&error))?,
        };
        let length = file.length().map_err(|error| self.unreadable(&error))?;
        let mut bytes = vec![0; length as usize];
        file.read_at(&mut bytes, 0).map_err(|error| self.unreadable(&error))?;
        decode(&bytes).map_err(|what| LogError::Damaged { at: self.place(), what: what.to_owned() })
    }

    /// Replaces the file. Blocks for I/O.
    pub(super) fn save(&self, readers: &[HeldReader]) -> io::Result<()> {
        let new = self.directory.join("readers.new");
        match self.disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.disk.open(&new, OpenMode::CreateNew)?;
        file.write_at(&encode(readers), 0)?;
        file.sync_data()?;
        self.disk.rename(&new, &self.path())?;
        self.disk.sync_directory(&self.directory)
    }
}

fn encode(readers: &[HeldReader]) -> Vec<u8> {
    let payload = postcard::to_allocvec(readers).expect("plain fields can always be encoded");
    let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
    bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
    bytes.extend_from_slice(&payload);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<HeldReader>, &'static str> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or("it is not a list of readers")?;
    let (head, payload) = rest.split_at_checked(HEADER_BYTES - 8).ok_or("it ends early")?;
    if head[..4] != [VERSION, 0, 0, 0] {
        return Err("it has an unknown version");
    }
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| head[at + byte]));
    if word(4) as usize != payload.len() || word(8) != crc32c::crc32c(payload) {
        return Err("its checksum does not match");
    }
    let read: Result<(Vec<HeldReader>, &[u8]), _> = postcard::take_from_bytes(payload);
    match read {
        Ok((readers, [])) => Ok(readers),
        _ => Err("its list cannot be read"),
    }
}

/// For the fuzz target: any bytes are refused, or are read as what is written back.
///
/// # Panics
/// If what was read is read differently when it is written.
pub fn check_any_bytes(bytes: &[u8]) {
    if let Ok(readers) = decode(bytes) {
        assert_eq!(decode(&encode(&readers)), Ok(readers));
    }
    // The checksum would keep a fuzzer out.
    if let Ok((readers, _)) = postcard::take_from_bytes::<Vec<HeldReader>>(bytes) {
        assert_eq!(decode(&encode(&readers)), Ok(readers));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use firn_base::Lsn;

    use super::*;

    #[test]
    fn the_file_has_these_bytes() {
        let reader = HeldReader {
            name: "pages-1".to_owned(),
            held: Lsn(128),
            limit_bytes: 1000,
            stays: true,
        };
        let bytes = encode(&[reader]);
        let hex: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        expect!["46 49 52 4e 52 44 52 53 01 00 00 00 0e 00 00 00 fb da 7f 1b 01 07 70 61 67 65 73 2d 31 80 01 e8 07 01"].assert_eq(&hex.join(" "));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let reader = HeldReader { name: "a".to_owned(), held: Lsn(8), limit_bytes: 7, stays: true };
        let bytes = encode(&[reader.clone(), reader]);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(decode(&damaged).is_err(), "byte {at}");
            assert!(decode(&bytes[..at]).is_err(), "{at} bytes");
        }
        check_any_bytes(&bytes);
    }
}
