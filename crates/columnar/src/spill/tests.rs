use firn_base::Environment;
use firn_base::disk::OpenMode;
use futures::{FutureExt, TryStreamExt};

use super::*;

const LIMIT_BYTES: u64 = 1 << 20;

struct Fixture {
    folder: tempfile::TempDir,
    disk: Arc<dyn Disk>,
    run: RunFiles,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = Environment::system().disk;
        let spill = Spill::open(Arc::clone(&disk), folder.path(), LIMIT_BYTES).expect("a folder");
        Fixture { folder, disk, run: spill.of_run() }
    }

    fn spill(&self, pieces: &[&[u8]]) -> LibraryResult<Arc<dyn SpillFile>> {
        let file = self.run.create_temp_file("a sort")?;
        let mut writer = file.open_writer()?;
        for piece in pieces {
            writer.write_all(piece)?;
        }
        writer.finish()?;
        Ok(file)
    }

    fn files(&self) -> Vec<std::path::PathBuf> {
        self.disk.list(self.folder.path()).expect("a list")
    }
}

fn read(file: &dyn SpillFile) -> LibraryResult<Vec<u8>> {
    let chunks = file.read_stream()?.try_collect::<Vec<Bytes>>().now_or_never();
    Ok(chunks.expect("it waits for nothing else")?.concat())
}

#[test]
fn what_was_written_is_read_and_the_file_goes_with_its_last_user() {
    let fixture = Fixture::new();
    let long: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|number| (number % 251) as u8).collect();
    let file = fixture.spill(&[b"firn", &long, b"", b"ice"]).expect("room");
    let written = [b"firn", &long[..], b"ice"].concat();
    assert_eq!(file.size(), Some(written.len() as u64));
    assert!(read(&*file).expect("its bytes") == written);
    assert_eq!(fixture.files().len(), 1);
    drop(file);
    assert!(fixture.files().is_empty());
}

#[test]
fn a_run_spills_no_more_than_it_may_and_regains_what_it_removes() {
    let fixture = Fixture::new();
    let most = vec![7; LIMIT_BYTES as usize - CHUNK_BYTES];
    let first = fixture.spill(&[&most]).expect("room");
    assert!(fixture.spill(&[&most]).is_err());
    drop(first);
    assert!(fixture.spill(&[&most]).is_ok());
}

#[test]
fn damaged_rows_are_an_error() {
    let fixture = Fixture::new();
    let file = fixture.spill(&[b"rows"]).expect("room");
    let on_disk = fixture.disk.open(&fixture.files()[0], OpenMode::ReadWrite).expect("the file");
    on_disk.write_at(b"R", 0).expect("a disk");
    let error = read(&*file).expect_err("another byte").to_string();
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn files_of_a_former_process_are_removed() {
    let fixture = Fixture::new();
    std::mem::forget(fixture.spill(&[b"rows"]));
    assert_eq!(fixture.files().len(), 1);
    let disk = Arc::clone(&fixture.disk);
    Spill::open(disk, fixture.folder.path(), LIMIT_BYTES).expect("a folder");
    assert!(fixture.files().is_empty());
}
