#![allow(clippy::disallowed_methods, reason = "tests use the machine as it is")]

use firn_base::disk::SystemDisk;
use firn_base::{Lsn, PageId, PageNo, SpaceId};

use super::super::slots::SlotNo;
use super::super::version::Version;
use super::*;

const DATABASE: DatabaseId = DatabaseId([0xdb; 16]);

fn batch(kind: BatchKind, number: u32) -> Batch {
    let lsn = Lsn(u64::from(number) * 8 + 8);
    let version = Version { lsn, since: Lsn(8), slot: SlotNo(number), is_first: true };
    let puts = vec![(PageId::new(SpaceId(1), PageNo(number)), version)];
    Batch { kind, applied: lsn, horizon: lsn, puts, drops: Vec::new() }
}

fn change(number: u32) -> Batch {
    batch(BatchKind::Change, number)
}

/// A snapshot with page 0 and changes for pages 1, 2 and 3.
fn written(directory: &Path) -> MapFile {
    let mut map = MapFile::new(Arc::new(SystemDisk), directory, DATABASE);
    assert!(map.needs_snapshot());
    map.write_snapshot(&mut [batch(BatchKind::SnapshotEnd, 0)].into_iter()).unwrap();
    (1..4).for_each(|number| map.append(&change(number)).unwrap());
    map
}

/// Opens the map and returns its page numbers.
fn loaded(directory: &Path) -> Result<(MapFile, Vec<u32>), PageStoreError> {
    let mut pages = Vec::new();
    let mut accept = |batch: Batch| {
        pages.extend(batch.puts.iter().map(|(page, _)| page.page_no.0));
        Ok(())
    };
    let map = MapFile::open(Arc::new(SystemDisk), directory, DATABASE, &mut accept)?;
    Ok((map.unwrap(), pages))
}

fn overwrite(directory: &Path, offset: u64, bytes: &[u8]) {
    let path = directory.join("map-0000000001");
    SystemDisk.open(&path, OpenMode::ReadWrite).unwrap().write_at(bytes, offset).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let names = SystemDisk.list(directory).unwrap();
    names.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn what_was_appended_is_read_again_and_appending_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    let (mut map, pages) = loaded(folder.path()).unwrap();
    assert_eq!(pages, [0, 1, 2, 3]);
    assert!(!map.needs_snapshot());
    assert_eq!((map.snapshot_bytes(), map.change_bytes()), (1024, 3 * 512));
    map.append(&change(4)).unwrap();
    assert_eq!(loaded(folder.path()).unwrap().1, [0, 1, 2, 3, 4]);
}

#[test]
fn a_new_snapshot_takes_the_place_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut map = written(folder.path());
    let parts = [batch(BatchKind::SnapshotPart, 7), batch(BatchKind::SnapshotEnd, 8)];
    map.write_snapshot(&mut parts.into_iter()).unwrap();
    map.append(&change(9)).unwrap();
    assert_eq!(names(folder.path()), ["map-0000000002"]);
    assert_eq!(loaded(folder.path()).unwrap().1, [7, 8, 9]);
}

#[test]
fn what_a_crash_leaves_of_a_snapshot_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    std::fs::write(folder.path().join("map-new"), b"half").unwrap();
    std::fs::write(folder.path().join("map-0000000000"), b"an older one").unwrap();
    assert_eq!(loaded(folder.path()).unwrap().1, [0, 1, 2, 3]);
    assert_eq!(names(folder.path()), ["map-0000000001"]);
}

#[test]
fn a_torn_end_is_cut_off_and_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path());
    overwrite(folder.path(), 1024 + 2 * 512 + 60, b"torn");
    let (mut map, pages) = loaded(folder.path()).unwrap();
    assert_eq!(pages, [0, 1, 2]);
    assert!(map.needs_snapshot());
    map.write_snapshot(&mut [batch(BatchKind::SnapshotEnd, 5)].into_iter()).unwrap();
    assert_eq!(loaded(folder.path()).unwrap().1, [5]);
}

#[test]
fn damage_before_the_end_is_refused_with_file_and_offset() {
    for (offset, at) in [(1024 + 60, 1024), (512 + 60, 512), (100, 0), (512, 512), (1024, 1024)] {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path());
        overwrite(folder.path(), offset, b"????");
        let error = loaded(folder.path()).err().unwrap();
        let PageStoreError::StoreDamaged { place, .. } = &error else { panic!("{error}") };
        assert!(place.ends_with(&format!("map-0000000001 at byte {at}")), "{place}");
        assert!(error.to_string().contains("restore it from a backup"), "{error}");
    }
}

#[test]
fn a_directory_without_a_map_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let map = MapFile::open(Arc::new(SystemDisk), folder.path(), DATABASE, &mut |_| Ok(()));
    assert!(map.unwrap().is_none());
}
