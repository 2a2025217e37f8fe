#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use super::*;
use crate::disk::{OpenMode, SystemDisk};

const LIMIT_BYTES: u64 = 1000;

struct Fixture {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    area: SpillArea,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        let spill = SpillDirectory::open(Arc::clone(&disk), folder.path(), LIMIT_BYTES);
        Fixture { folder, disk, area: spill.expect("a folder").of_statement() }
    }

    fn file(&self, chunks: &[&[u8]]) -> io::Result<SpilledFile> {
        let file = self.area.create()?;
        chunks.iter().try_for_each(|chunk| file.append(chunk))?;
        Ok(file)
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        self.disk.list(self.folder.path()).expect("a list")
    }
}

#[test]
fn chunks_are_read_in_any_order_and_the_file_goes_with_its_last_user() {
    let fixture = Fixture::new();
    let file = fixture.file(&[b"snow", b"firn", b"ice"]).expect("room");
    assert_eq!(file.length(), 11);
    let mut into = Vec::new();
    for (number, bytes) in [(2, &b"ice"[..]), (0, b"snow"), (1, b"firn")] {
        assert!(file.read(number, &mut into).expect("its bytes"));
        assert_eq!(into, bytes);
    }
    assert!(!file.read(3, &mut into).expect("an end"));
    assert_eq!(fixture.files().len(), 1);
    drop(file);
    assert!(fixture.files().is_empty());
}

#[test]
fn a_byte_is_found_by_its_offset() {
    let file = Fixture::new().file(&[b"snow", b"firn", b"ice"]).expect("room");
    let places = [(0, (0, 0)), (3, (0, 3)), (4, (1, 0)), (10, (2, 2)), (11, (3, 0))];
    for (offset, place) in places {
        assert_eq!(file.chunk_at(offset), place, "{offset}");
    }
}

#[test]
fn a_statement_takes_no_more_than_it_may_and_regains_what_it_removes() {
    let fixture = Fixture::new();
    let most = [7; 600];
    let first = fixture.file(&[&most]).expect("room");
    let refused = fixture.file(&[&most]).map(|_| ()).expect_err("its limit");
    assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
    drop(first);
    assert!(fixture.file(&[&most]).is_ok());
}

#[test]
fn damaged_rows_are_an_error() {
    let fixture = Fixture::new();
    let file = fixture.file(&[b"rows"]).expect("room");
    let on_disk = fixture.disk.open(&fixture.files()[0], OpenMode::ReadWrite).expect("the file");
    on_disk.write_at(b"R", 0).expect("a disk");
    let error = file.read(0, &mut Vec::new()).expect_err("another byte");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn files_of_a_former_process_are_removed() {
    let fixture = Fixture::new();
    std::mem::forget(fixture.file(&[b"rows"]));
    assert_eq!(fixture.files().len(), 1);
    SpillDirectory::open(Arc::clone(&fixture.disk), fixture.folder.path(), LIMIT_BYTES)
        .expect("a folder");
    assert!(fixture.files().is_empty());
}
