use firn_base::Environment;
use firn_base::disk::SpillDirectory;
use futures::{FutureExt, TryStreamExt};

use super::*;

fn read(file: &dyn SpillFile) -> LibraryResult<Vec<u8>> {
    let chunks = file.read_stream()?.try_collect::<Vec<Bytes>>().now_or_never();
    Ok(chunks.expect("it waits for nothing else")?.concat())
}

#[test]
fn what_the_library_writes_in_pieces_is_read_in_chunks() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = Environment::system().disk;
    let spill = SpillDirectory::open(disk, folder.path(), 1 << 20).expect("a folder");
    let file = Files(spill.of_statement()).create_temp_file("a sort").expect("a file");
    let long: Vec<u8> = (0..3 * CHUNK_BYTES + 5).map(|number| (number % 251) as u8).collect();
    let mut writer = file.open_writer().expect("a writer");
    for piece in [b"firn", &long[..], b"", b"ice"] {
        writer.write_all(piece).expect("room");
    }
    writer.finish().expect("room");
    let written = [b"firn", &long[..], b"ice"].concat();
    assert_eq!(file.size(), Some(written.len() as u64));
    assert!(read(&*file).expect("its bytes") == written);
}
