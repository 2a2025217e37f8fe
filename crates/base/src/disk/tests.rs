use std::io::ErrorKind;

use super::{Disk, OpenMode, SystemDisk};

#[test]
fn modes_say_whether_the_file_must_exist() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let error = |mode| SystemDisk.open(&path, mode).err().map(|error| error.kind());
    assert_eq!(error(OpenMode::Read), Some(ErrorKind::NotFound));
    assert_eq!(error(OpenMode::ReadWrite), Some(ErrorKind::NotFound));
    assert_eq!(error(OpenMode::CreateNew), None);
    assert_eq!(error(OpenMode::CreateNew), Some(ErrorKind::AlreadyExists));
    let read_only = SystemDisk.open(&path, OpenMode::Read).unwrap();
    assert!(read_only.write_at(b"x", 0).is_err());
}

#[test]
fn reads_are_exact_and_holes_are_zero() {
    let directory = tempfile::tempdir().unwrap();
    let file = SystemDisk.open(&directory.path().join("pages"), OpenMode::CreateNew).unwrap();
    file.write_at(b"snow", 3).unwrap();
    for (offset, length) in [(3, 4), (1 << 40, 1), (u64::MAX, u64::MAX)] {
        file.begin_write_back(offset, length);
    }
    file.sync_data().unwrap();
    let mut bytes = [9; 7];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"\0\0\0snow");
    let short = file.read_at(&mut bytes, 1).unwrap_err();
    assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn allocation_extends_and_never_shortens() {
    let directory = tempfile::tempdir().unwrap();
    let file = SystemDisk.open(&directory.path().join("chunk"), OpenMode::CreateNew).unwrap();
    for (asked, length) in [(0, 0), (8192, 8192), (100, 8192)] {
        file.allocate(asked).unwrap();
        assert_eq!(file.length().unwrap(), length);
    }
    file.set_length(5).unwrap();
    assert_eq!(file.length().unwrap(), 5);
}

#[test]
fn without_fallocate_zeros_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("chunk");
    let file = std::fs::File::create_new(&path).unwrap();
    let asked = (3 << 20) + 7;
    for (asked, length) in [(0, 0), (asked, asked), (100, asked)] {
        super::allocate_by_writing(&file, asked).unwrap();
        assert_eq!(file.metadata().unwrap().len(), length);
    }
    // Room is really allocated, and what was written before stays.
    use std::os::unix::fs::{FileExt, MetadataExt};
    assert!(file.metadata().unwrap().blocks() * 512 >= asked);
    file.write_all_at(b"snow", 0).unwrap();
    super::allocate_by_writing(&file, asked + 1).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert_eq!(&bytes[..5], b"snow\0");
    assert!(bytes[4..].iter().all(|byte| *byte == 0));
}

#[test]
fn names_are_listed_in_order_and_replaced_by_rename() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    SystemDisk.create_directory(&at("d/e")).unwrap();
    SystemDisk.create_directory(&at("d/e")).unwrap();
    for name in ["c", "a", "b"] {
        SystemDisk.open(&at(name), OpenMode::CreateNew).unwrap();
    }
    SystemDisk.rename(&at("c"), &at("a")).unwrap();
    SystemDisk.remove(&at("b")).unwrap();
    SystemDisk.sync_directory(directory.path()).unwrap();
    assert_eq!(SystemDisk.list(directory.path()).unwrap(), [at("a"), at("d")]);
    assert_eq!(SystemDisk.remove(&at("b")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_locked_directory_is_refused_until_the_lock_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let lock = SystemDisk.lock_directory(directory.path()).unwrap();
    let second = SystemDisk.lock_directory(directory.path()).err().unwrap();
    assert_eq!(second.kind(), ErrorKind::WouldBlock);
    drop(lock);
    SystemDisk.lock_directory(directory.path()).unwrap();
}

#[test]
fn a_read_leaves_the_time_of_access_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "content").unwrap();
    let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let times = std::fs::FileTimes::new().set_accessed(long_ago);
    std::fs::File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
    let file = SystemDisk.open(&path, OpenMode::Read).unwrap();
    let mut bytes = [0; 7];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"content");
    assert_eq!(std::fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
}
