use std::collections::{BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use firn_base::disk::{Disk, File, OpenMode, SystemDisk};

use super::{Faults, SimulatedDisk};
use crate::random::Random;
use crate::simulation::Simulation;

fn create(disk: &dyn Disk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), OpenMode::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

fn read(disk: &dyn Disk, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// The behaviour of every disk without faults.
fn obeys_the_contract(disk: &dyn Disk, root: &Path) {
    let at = |name: &str| root.join(name);
    let kind = |path: &str, mode| disk.open(&at(path), mode).err().map(|error| error.kind());
    assert_eq!(kind("a", OpenMode::Read), Some(ErrorKind::NotFound));
    assert_eq!(kind("a", OpenMode::ReadWrite), Some(ErrorKind::NotFound));
    assert_eq!(kind("missing/a", OpenMode::CreateNew), Some(ErrorKind::NotFound));
    let file = disk.open(&at("a"), OpenMode::CreateNew).unwrap();
    assert_eq!(kind("a", OpenMode::CreateNew), Some(ErrorKind::AlreadyExists));
    assert!(disk.open(&at("a"), OpenMode::Read).unwrap().write_at(b"x", 0).is_err());

    file.write_at(b"snow", 5000).unwrap();
    file.sync_data().unwrap();
    let mut bytes = [9; 6];
    file.read_at(&mut bytes, 4998).unwrap();
    assert_eq!(&bytes, b"\0\0snow");
    assert_eq!(file.read_at(&mut bytes, 4999).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    file.read_at(&mut [], 5004).unwrap();
    for (length, expected) in [(0, 5004), (100, 5004), (6000, 6000)] {
        file.allocate(length).unwrap();
        assert_eq!(file.length().unwrap(), expected);
    }
    file.set_length(5001).unwrap();
    file.set_length(5003).unwrap();
    file.read_at(&mut bytes[..3], 5000).unwrap();
    assert_eq!(&bytes[..3], b"s\0\0");

    disk.create_directory(&at("d/e")).unwrap();
    disk.create_directory(&at("d/e")).unwrap();
    disk.rename(&at("a"), &at("d/b")).unwrap();
    file.write_at(b"still open", 0).unwrap();
    assert_eq!(disk.list(&at("d")).unwrap(), [at("d/b"), at("d/e")]);
    assert_eq!(disk.list(&at("f")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.rename(&at("a"), &at("c")).unwrap_err().kind(), ErrorKind::NotFound);
    disk.open(&at("d/c"), OpenMode::CreateNew).unwrap();
    disk.rename(&at("d/c"), &at("d/b")).unwrap();
    assert_eq!(disk.open(&at("d/b"), OpenMode::Read).unwrap().length().unwrap(), 0);
    disk.remove(&at("d/b")).unwrap();
    assert_eq!(disk.remove(&at("d/b")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(file.length().unwrap(), 5003, "an open file outlives its name");
    disk.sync_directory(&at("d")).unwrap();
    assert_eq!(disk.sync_directory(&at("f")).unwrap_err().kind(), ErrorKind::NotFound);

    let lock = disk.lock_directory(&at("d")).unwrap();
    assert_eq!(disk.lock_directory(&at("d")).err().unwrap().kind(), ErrorKind::WouldBlock);
    drop(lock);
    drop(disk.lock_directory(&at("d")).unwrap());
    assert_eq!(disk.list(&at("d")).unwrap(), [at("d/LOCK"), at("d/e")]);
}

#[test]
fn the_simulated_disk_and_the_systems_obey_one_contract() {
    let directory = tempfile::tempdir().unwrap();
    obeys_the_contract(&SystemDisk, directory.path());
    let mount = SimulatedDisk::new(Random::new(1)).mount();
    obeys_the_contract(&mount, Path::new("/"));
    mount.create_directory(Path::new("/data")).unwrap();
    obeys_the_contract(&mount, Path::new("/data"));
}

#[test]
fn names_that_were_not_synced_may_be_lost() {
    let mut outcomes = HashSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(Random::new(seed));
        let mount = disk.mount();
        create(&mount, "/kept", b"1").sync_data().unwrap();
        mount.sync_directory(Path::new("/")).unwrap();
        create(&mount, "/new", b"2").sync_data().unwrap();
        mount.rename(Path::new("/kept"), Path::new("/renamed")).unwrap();
        disk.lose_power();
        let files: BTreeSet<PathBuf> = disk.files().into_iter().collect();
        let has = |name: &str| files.contains(Path::new(name));
        assert!(has("/kept") != has("/renamed"), "a rename is whole or not at all: {files:?}");
        outcomes.insert((has("/new"), has("/renamed")));
    }
    assert_eq!(outcomes.len(), 4);
}

#[test]
fn a_directory_that_was_not_synced_takes_its_files_along() {
    let mut lost = 0;
    for seed in 0..50 {
        let disk = SimulatedDisk::new(Random::new(seed));
        let mount = disk.mount();
        mount.create_directory(Path::new("/a/b")).unwrap();
        create(&mount, "/a/b/c", b"x").sync_data().unwrap();
        mount.sync_directory(Path::new("/a/b")).unwrap();
        if seed % 2 == 0 {
            mount.sync_directory(Path::new("/a")).unwrap();
            mount.sync_directory(Path::new("/")).unwrap();
        }
        disk.lose_power();
        let found = disk.files() == [Path::new("/a/b/c")];
        assert!(found || seed % 2 == 1);
        lost += usize::from(!found);
    }
    assert!(lost > 5, "{lost} of 25");
}

#[test]
fn room_is_limited_and_the_limit_moves() {
    let disk = SimulatedDisk::new(Random::new(1));
    let mount = disk.mount();
    disk.set_space_bytes(Some(1100));
    let file = create(&mount, "/a", &[1; 600]);
    let refused = file.write_at(&[2; 600], 600).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::StorageFull);
    let sizes = (disk.used_bytes(), file.length().unwrap());
    assert_eq!(sizes, (1024, 1024), "the sectors that fit are written");
    file.write_at(&[3; 1024], 0).unwrap();
    assert_eq!(file.allocate(1101).unwrap_err().kind(), ErrorKind::StorageFull);
    disk.set_space_bytes(Some(1200));
    file.write_at(&[4; 1200], 0).unwrap();
    disk.set_space_bytes(Some(10));
    file.write_at(&[5; 1200], 0).unwrap();
    assert!(mount.open(Path::new("/b"), OpenMode::CreateNew).unwrap().write_at(b"x", 0).is_err());
    mount.remove(Path::new("/a")).unwrap();
    assert_eq!((disk.used_bytes(), disk.counters().refused_for_space), (0, 3));
}

#[test]
fn faults_strike_the_chosen_files_only() {
    let disk = SimulatedDisk::new(Random::new(1));
    let mount = disk.mount();
    let (log, page) = (create(&mount, "/log", &[0; 64]), create(&mount, "/page", &[0; 64]));
    let files: super::FileFilter = Arc::new(|path| path.ends_with("log"));
    let mut bytes = [0; 64];
    disk.set_faults(Faults { read_bit_flip: 1.0, files: Some(files.clone()), ..Faults::default() });
    log.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    page.read_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [0; 64]);
    disk.set_faults(Faults {
        read_failure: 1.0,
        write_failure: 1.0,
        sync_failure: 1.0,
        files: Some(files),
        ..Faults::default()
    });
    assert!(log.read_at(&mut bytes, 0).is_err());
    assert!(log.write_at(b"x", 0).is_err());
    assert!(log.sync_data().is_err());
    assert!(page.write_at(b"x", 0).is_ok() && page.sync_data().is_ok());
    assert_eq!(disk.counters().faults, 4);
}

#[test]
fn a_write_that_fails_leaves_no_sector_half_written() {
    let mut ends = BTreeSet::new();
    for seed in 0..100 {
        let disk = SimulatedDisk::new(Random::new(seed));
        let file = create(&disk.mount(), "/a", &[1; 2048]);
        disk.set_faults(Faults { write_failure: 1.0, ..Faults::default() });
        assert!(file.write_at(&[2; 1500], 300).is_err());
        disk.set_faults(Faults::default());
        let mut bytes = [0; 2048];
        file.read_at(&mut bytes, 0).unwrap();
        let end = bytes.iter().rposition(|byte| *byte == 2).map(|at| at + 1);
        ends.insert(end.unwrap_or(0));
    }
    assert!(ends.is_subset(&BTreeSet::from([0, 512, 1024, 1536, 1800])), "{ends:?}");
    assert!(ends.len() > 2, "{ends:?}");
}

#[test]
fn names_that_cannot_be_changed_stay_as_they_are() {
    let disk = SimulatedDisk::new(Random::new(1));
    let mount = disk.mount();
    create(&mount, "/a", b"abc");
    disk.set_faults(Faults { name_failure: 1.0, ..Faults::default() });
    assert!(mount.rename(Path::new("/a"), Path::new("/b")).is_err());
    assert!(mount.remove(Path::new("/a")).is_err());
    assert!(mount.open(Path::new("/c"), OpenMode::CreateNew).is_err());
    assert!(mount.create_directory(Path::new("/d")).is_err());
    assert_eq!(read(&mount, "/a"), b"abc");
    assert_eq!(mount.list(Path::new("/")).unwrap(), [Path::new("/a")]);
}

#[test]
fn a_flipped_bit_stays_flipped() {
    let disk = SimulatedDisk::new(Random::new(1));
    let mount = disk.mount();
    create(&mount, "/a", b"abc").sync_data().unwrap();
    assert!(disk.flip_bit(Path::new("/a"), 1, 0));
    assert!(!disk.flip_bit(Path::new("/a"), 3, 0));
    assert_eq!(read(&mount, "/a"), b"acc");
}

#[test]
fn a_mount_that_is_cut_does_nothing_any_more() {
    let disk = SimulatedDisk::new(Random::new(1));
    let mount = disk.mount();
    let file = create(&mount, "/a", b"abc");
    let _lock = mount.lock_directory(Path::new("/")).unwrap();
    mount.cut();
    assert!(file.write_at(b"x", 0).is_err() && file.sync_data().is_err() && file.length().is_err());
    assert!(mount.list(Path::new("/")).is_err());
    let next = disk.mount();
    assert_eq!(read(&next, "/a"), b"abc", "the system still has what a dead process wrote");
    next.lock_directory(Path::new("/")).unwrap();
}

#[test]
fn calls_take_simulated_time() {
    let run = Simulation::new(1).try_run(|world| {
        let disk = world.new_disk();
        let max_latency = Duration::from_millis(10);
        disk.set_faults(Faults { max_latency, ..Faults::default() });
        let node = world.start("node", &disk);
        node.run(|environment| {
            let file = create(&*environment.disk, "/a", b"abc");
            (0..100).for_each(|_| file.sync_data().unwrap());
        })
    });
    let elapsed = run.unwrap().elapsed;
    assert!(
        elapsed > Duration::from_millis(300) && elapsed < Duration::from_secs(1),
        "{elapsed:?}"
    );
}
